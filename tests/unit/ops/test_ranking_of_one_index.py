"""The best rows of a table are its best rows, however it was written, filtered, merged or damaged."""

from __future__ import annotations

import random
import tracemalloc

import pyarrow as pa
import pytest

import indextables as it
from indextables.index.read.cache import BlockCache
from indextables.index.read.ranking import Statistics
from indextables.ops.read import ranking
from indextables.ops.read.ranking import table_statistics
from indextables.ops.table_settings import query_of
from indextables.split.read import page_cache
from support.index_merging import indexes_of_any_size  # noqa: F401 - a fixture

SCHEMA = pa.schema(
    [("id", pa.int64()), ("message", pa.string()), ("title", pa.string()), ("day", pa.string())]
)
OPTIONS = {
    "indexing.typemap.message": "text", "indexing.typemap.title": "text", "indexing.tokenizer.title": "en_stem",
}  # fmt: skip
QUERIES = [
    "kafka", "kafka noise", "broker AND kafka", "kafka^3 timeout", '"broker restart"', '"broker restart" kafka', "-noise kafka",
    "title:running kafka", "ka*", "kafka OR broker~1", "(kafka broker)^2 restart", "message:kafka title:run", "rare", "+noise rare",
]  # fmt: skip


def corpus(count=400, seed=3):
    """Rows of very uneven lengths in which some words are common, some rare, and days sort like words."""
    pick = random.Random(seed)
    words = ["kafka", "broker", "restart", "timeout", "noise", "alpha", "beta"]
    lines = []
    for number in range(count):
        common = ["noise"] * (number % 7) if number < count // 2 else []
        text = common + pick.choices(words, k=pick.randint(1, 30)) + (["rare"] if number % 97 == 5 else [])
        lines.append(
            (number, " ".join(text), pick.choice(["running late", "ran", "runs", None]), f"d{number % 4}")
        )
    return pa.table([list(column) for column in zip(*lines, strict=True)], schema=SCHEMA)


def written(path, rows, splits):
    table = it.Table.create(path, SCHEMA, options=OPTIONS)
    step = -(-rows.num_rows // splits)
    for start in range(0, rows.num_rows, step):
        table.append(rows.slice(start, step))
    return table


def scores(table, query, **more):
    found = table.search(query, columns=["id"], score=True, **more).read_all()
    values = found["_score"].to_pylist()
    assert values == sorted(values, reverse=True)
    return dict(zip(found["id"].to_pylist(), values, strict=True))


@pytest.fixture(scope="module")
def rows():
    return corpus()


@pytest.fixture(scope="module")
def one(rows, tmp_path_factory):
    return written(tmp_path_factory.mktemp("one") / "t", rows, 1)


@pytest.fixture(scope="module")
def many(rows, tmp_path_factory):
    return written(tmp_path_factory.mktemp("many") / "t", rows, 20)


def test_scores_do_not_depend_on_the_splits_or_the_order_of_writing(one, many, rows, tmp_path):
    order = list(range(rows.num_rows))
    random.Random(1).shuffle(order)
    shuffled = written(tmp_path / "t", rows.take(order), 7)
    for query in QUERIES:
        wanted = scores(one, query)
        for table in (many, shuffled):
            assert scores(table, query) == pytest.approx(wanted, abs=1e-5), query
            top = scores(table, query, limit=10)
            assert sorted(top.values()) == pytest.approx(sorted(wanted.values())[-10:], abs=1e-5), query
            assert top == pytest.approx({key: wanted[key] for key in top}, abs=1e-5), query


def test_a_filter_leaves_out_rows_and_changes_no_score(one, many):
    for query in QUERIES:
        wanted = scores(one, query)
        for table in (one, many):
            kept = scores(table, query, where="day = 'd1' AND id > 50")
            assert kept == pytest.approx({k: v for k, v in wanted.items() if k % 4 == 1 and k > 50}, abs=1e-5)
            top = scores(table, query, where="day = 'd1'", limit=5)
            assert list(top.values()) == pytest.approx(
                sorted((v for k, v in wanted.items() if k % 4 == 1), reverse=True)[:5], abs=1e-5
            )


def test_merging_changes_no_score_and_deleting_rows_scores_like_a_table_without_them(rows, tmp_path):
    table = written(tmp_path / "t", rows, 8)
    before = {query: scores(table, query) for query in QUERIES}
    table.merge_splits()
    assert table.files().num_rows < 8
    for query in QUERIES:
        assert scores(table, query) == pytest.approx(before[query], abs=1e-5)
    table.delete("id >= 300")
    left = written(tmp_path / "left", rows.slice(0, 300), 1)
    for query in QUERIES:
        assert scores(table, query) == pytest.approx(scores(left, query), abs=1e-5)


def test_splits_that_must_be_scanned_count_like_any_other(rows, one, tmp_path):
    table = written(tmp_path / "t", rows, 5)
    for file in table.files().to_pylist()[:2]:
        path = tmp_path / "t" / file["path"]
        data = bytearray(path.read_bytes())
        data[file["index_offset"] : file["index_offset"] + file["index_length"]] = bytes(file["index_length"])
        path.write_bytes(data)
    for query in QUERIES:
        assert scores(it.Table.open(tmp_path / "t"), query) == pytest.approx(scores(one, query), abs=1e-5), (
            query
        )


def test_rows_older_than_a_column_count_as_rows_without_it(tmp_path):
    first = pa.table({"id": [1, 2], "message": ["kafka", "broker kafka"]})
    later = pa.table({"id": [3], "message": ["kafka"], "title": ["running kafka"]})
    table = it.Table.create(tmp_path / "t", first.schema, options={"indexing.typemap.message": "text"})
    table.append(first)
    table.append(later, merge_schema=True, options={"indexing.typemap.title": "text"})
    whole = it.Table.create(
        tmp_path / "one",
        later.schema,
        options={f"indexing.typemap.{c}": "text" for c in ("message", "title")},
    )
    whole.append(pa.concat_tables([first.append_column("title", pa.nulls(2, pa.string())), later]))
    for query in ("kafka", "title:kafka", "message:kafka title:running", "broker"):
        assert scores(table, query) == pytest.approx(scores(whole, query), abs=1e-5)


def test_the_statistics_of_a_word_are_asked_for_once_per_version(rows, tmp_path):
    snapshot = written(tmp_path / "t", rows.slice(0, 20), 4)._snapshot
    asked = []

    def ask(terms):
        asked.append(list(terms))
        return [Statistics(20, {"message": 300}, dict.fromkeys(terms, 7))]

    first = table_statistics(snapshot, query_of(snapshot, "message:(restart alpha)"), ask)
    again = table_statistics(snapshot, query_of(snapshot, "message:(alpha beta)"), ask)
    table_statistics(snapshot, query_of(snapshot, "message:(alpha beta)"), ask)
    assert asked == [[("message", b"restart"), ("message", b"alpha")], [("message", b"beta")]]
    assert (first.rows, first.tokens) == (again.rows, again.tokens) == (20, {"message": 300})
    assert again.frequencies[("message", b"restart")] == 7


def test_a_score_is_explained_by_parts_that_add_up(one, many):
    for table in (one, many):
        file = table.files().to_pylist()[0]["path"]
        first = table.scan(columns=["id"]).read_all()["id"][0].as_py()
        for query in ("kafka^3 timeout noise", '"broker restart" noise', "ka* noise", "title:run noise^2"):
            wanted = scores(table, query)
            parts = table.explain_score(query, file, 0)
            if first not in wanted:
                assert parts is None
                continue
            assert sum(parts["score"].to_pylist()) == pytest.approx(wanted[first], abs=1e-5)
            words = [part for part in parts.to_pylist() if part["part"] == "word"]
            assert all(part["documents"] == 400 for part in words)
            assert all(0 < part["document_frequency"] < 400 for part in words)
    with pytest.raises(it.errors.TableError, match=r"has no split 'nowhere\.split'"):
        one.explain_score("kafka", "nowhere.split", 0)


def test_all_rows_are_ranked_without_holding_them_all(rows, many, monkeypatch):
    monkeypatch.setattr(ranking, "ROWS_AT_ONCE", 32)
    reader = many.search("kafka noise", score=True)
    batches = list(reader)
    assert max(batch.num_rows for batch in batches) <= 32
    found = pa.Table.from_batches(batches)
    by_id = {row["id"]: row for row in rows.to_pylist()}
    for row in found.to_pylist():
        assert {name: row[name] for name in SCHEMA.names} == by_id[row["id"]]
    values = found["_score"].to_pylist()
    assert values == sorted(values, reverse=True)


def test_all_rows_best_first_are_never_in_memory_together(tmp_path, monkeypatch):
    monkeypatch.setattr(ranking, "ROWS_AT_ONCE", 4096)
    monkeypatch.setattr(page_cache, "MEMORY", BlockCache(1 << 20))
    rows = 60_000
    payload = pa.array([f"{number:08d}" + "x" * 600 for number in range(rows)])
    schema = pa.schema([("message", pa.string()), ("payload", pa.string())])
    table = it.Table.create(tmp_path / "t", schema, options={"indexing.typemap.message": "text"})
    words = ["error", "error error", "an error here"]
    table.append(pa.table({"message": [words[at % 3] for at in range(rows)], "payload": payload}, schema))
    pools = (pa.default_memory_pool(), pa.system_memory_pool())
    before = sum(pool.bytes_allocated() for pool in pools)
    tracemalloc.start()
    seen, most, last = 0, 0, float("inf")
    for batch in table.search("error", score=True):
        seen += batch.num_rows
        most = max(most, sum(pool.bytes_allocated() for pool in pools) - before)
        assert batch["_score"][0].as_py() <= last
        last = batch["_score"][-1].as_py()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen == rows
    assert most < payload.nbytes / 4
    assert peak < payload.nbytes / 4
