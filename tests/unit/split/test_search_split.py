"""Searching one split: kinds of columns, scores, plans, limits, filters, and what the metrics say."""

from __future__ import annotations

import json
import logging
import random
import subprocess
import sys
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from indextables.errors import QueryError, TableError
from indextables.index.query.evaluate import IndexSearch
from indextables.predicate.build.from_sql import as_node
from indextables.split.open_splits import forget_splits
from indextables.split.search import run as search_module
from indextables.storage.stores.memory import MemoryStore
from support.faults import CountingStore
from support.splits import build_split, flip, index_bytes


def documents(rows, settings, tmp_path):
    return build_split(tmp_path, rows, settings)


def damaged(built, tmp_path):
    copy = built.copy(tmp_path / "damaged")
    offset, length = index_bytes(copy)[1]
    flip(copy.path, offset + length // 2)
    return copy


JSON_ROWS = [
    {"user": {"name": "Alice Smith", "id": 7}, "tags": ["a", "b c"], "ok": True},
    {"user": {"name": "bob", "id": 70}, "score": 1.5},
    {"user": {"name": ["alice", "smith"]}, "score": 2, "user id": "x y"},
    {"user.name": "carol", "ok": False},
    None,
    [1, "alice smith"],
    "just text",
]


@pytest.fixture
def payloads(tmp_path):
    texts = [None if row is None else json.dumps(row) for row in JSON_ROWS] + ["{not json", "3"]
    return build_split(tmp_path, pa.table({"p": texts}), {"indexing.typemap.p": "json"})


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("p.user.name:alice", [0, 2]),
        ('p.user.name:"alice smith"', [0]),
        ('p:"alice smith"', [0, 5]),
        ("p.user.name:carol", [3]),
        ("p.user.id:7", [0]),
        ("p.user.id:[7 TO 70]", [0, 1]),
        ("p.user.id:{7 TO *]", [1]),
        ("p.score:[1 TO 2]", [1, 2]),
        ("p.score:1.5", [1]),
        ("p.ok:true", [0]),
        ("p.tags:c", [0]),
        ("p.user:*", [0, 1, 2, 3]),
        ("p.user.id:*", [0, 1]),
        ("p:*", [0, 1, 2, 3, 5, 6, 7, 8]),
        ("p.user.name:ali*", [0, 2]),
        ("p.user.name:[b TO c]", [1]),
        ("p.user\\ id:x", [2]),
        ("NOT p.user:*", [4, 5, 6, 7, 8]),
        ("p:just", [6]),
        ("p:3", [8]),
    ],
)
def test_json_is_searched_by_path(payloads, tmp_path, query, rows):
    assert payloads.hits(query) == rows
    assert damaged(payloads, tmp_path).hits(query) == rows


@pytest.fixture
def addresses(tmp_path):
    texts = [
        "10.0.0.1",
        "10.0.0.200",
        "192.168.1.1",
        None,
        "not an address",
        "::1",
        "::ffff:10.0.0.1",
        "2001:db8::5",
    ]
    return build_split(tmp_path, pa.table({"ip": texts}), {"indexing.typemap.ip": "ip"})


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("ip:10.0.0.1", [0, 6]),
        ("ip:10.0.0.0/24", [0, 1, 6]),
        ("ip:[10.0.0.2 TO 10.0.0.255]", [1]),
        ("ip:>192.0.0.0", [2, 7]),
        ('ip:"::1"', [5]),
        ('ip:"2001:db8::/32"', [7]),
        ("ip:*", [0, 1, 2, 4, 5, 6, 7]),
        ("NOT ip:10.0.0.1", [1, 2, 3, 4, 5, 7]),
    ],
)
def test_addresses_are_searched_by_value_and_network(addresses, tmp_path, query, rows):
    assert addresses.hits(query) == rows
    assert damaged(addresses, tmp_path).hits(query) == rows


@pytest.fixture
def typed(tmp_path):
    rows = pa.table(
        {
            "n": pa.array([1, -5, None, 2**63 - 1, -(2**63), 500], pa.int64()),
            "x": pa.array([0.1, -0.0, float("nan"), None, float("inf"), -1.5], pa.float32()),
            "d": pa.array(
                [date(1960, 1, 1), date(2024, 2, 29), None, None, date(1, 1, 1), date(9999, 12, 31)]
            ),
            "t": pa.array([datetime(2024, 1, 1, tzinfo=UTC)] * 5 + [None], pa.timestamp("us", "UTC")),
            "b": [True, False, None, True, False, True],
        }
    )
    return build_split(tmp_path, rows, {"indexing.fastfields": "n,x,d,t,b"})


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("n:1", [0]),
        ("n:[-5 TO 500]", [0, 1, 5]),
        ("n:{-5 TO 500}", [0]),
        ("n:>=9223372036854775807", [3]),
        ("n:[* TO 99999999999999999999999]", [0, 1, 3, 4, 5]),
        ("n:>99999999999999999999999", []),
        ("n:*", [0, 1, 3, 4, 5]),
        ("x:0.1", [0]),
        ("x:0", [1]),
        ("x:[-2 TO 1]", [0, 1, 5]),
        ("x:>0", [0, 4]),
        ("x:*", [0, 1, 2, 4, 5]),
        ("d:[1900-01-01 TO 2024-02-29]", [0, 1]),
        ("d:<1000-01-01", [4]),
        ('t:"2024-01-01T00:00:00Z"', [0, 1, 2, 3, 4]),
        ("t:>2024-01-01T00:00:00Z", []),
        ("b:true AND n:*", [0, 3, 5]),
    ],
)
def test_typed_columns_are_searched_by_value(typed, tmp_path, query, rows):
    assert typed.hits(query) == rows
    assert damaged(typed, tmp_path).hits(query) == rows


@pytest.fixture
def lines(tmp_path):
    dice = random.Random(2)
    words = ["error", "timeout", "disk", "full", "retry", "ok", "fine"]
    rows = pa.table(
        {
            "id": pa.array(range(70_000), pa.int64()),
            "message": ["needle here"] * 10 + [" ".join(dice.choices(words, k=5)) for _ in range(69_990)],
            "level": dice.choices(["INFO", "ERROR"], k=70_000),
        }
    )
    return build_split(tmp_path, rows, {"indexing.typemap.message": "text"})


def test_the_plan_follows_the_number_of_hits(lines):
    for query, plan in (("needle", "by_pages"), ("error", "by_scan")):
        note = []
        found = lines.search(query, note=note)
        assert found["id"].to_pylist() == lines.hits(query)
        assert getattr(note[0], plan) == 1
        assert note[0].hits == found.num_rows


def test_two_of_a_few_hundred_long_documents_are_read_by_their_pages(tmp_path):
    """The documents fit one row group and fewer rows than a page may have; their bytes decide."""
    dice = random.Random(4)
    words = ["".join(dice.choices("abcdefgh", k=8)) for _ in range(5000)]
    bodies = [" ".join([f"needle{at // 2}", *dice.choices(words, k=2000)]) for at in range(300)]
    built = build_split(
        tmp_path, pa.table({"id": range(300), "body": bodies}), {"indexing.typemap.body": "text"}
    )
    note = []
    assert built.search("needle70", note=note)["body"].to_pylist() == bodies[140:142]
    assert note[0].by_pages == 1


@pytest.mark.parametrize("first", [5000, 240_000])
def test_a_cluster_of_hits_reads_only_its_row_groups(tmp_path, first):
    words = ["rare" if first <= at < first + 22_000 else "other" for at in range(300_000)]
    built = build_split(
        tmp_path, pa.table({"message": words, "id": range(300_000)}), {"indexing.typemap.message": "text"}
    )
    note = []
    assert built.search("rare", note=note)["id"].to_pylist() == list(range(first, first + 22_000))
    assert note[0].by_row_groups == 1


def test_counting_fetches_no_rows(lines, tmp_path):
    memory = MemoryStore("memory://count")
    memory.put(lines.add.path, lines.path.read_bytes())
    counting = CountingStore(memory)
    remote = type(lines)(counting, lines.add, lines.schema, lines.spec, lines.options)
    assert remote.count("needle") == 10
    assert [operation for operation, _ in counting.opens] == ["get_range"]
    assert remote.count("error") == len(lines.hits("error"))
    assert len(counting.opens) == 1


def test_a_remote_split_is_read_by_ranges_index_first_then_pages(lines):
    memory = MemoryStore("memory://ranges")
    memory.put(lines.add.path, lines.path.read_bytes())
    counting = CountingStore(memory)
    forget_splits()
    remote = type(lines)(counting, lines.add, lines.schema, lines.spec, lines.options)
    assert remote.search("needle").num_rows == 10
    assert {operation for operation, _ in counting.opens} == {"get_range"}
    assert len(counting.opens) <= 4


def test_a_limit_takes_the_first_rows(lines):
    expected = lines.hits("error")[:7]
    assert lines.search("error", ["id"], limit=7)["id"].to_pylist() == expected
    assert lines.search("error", ["id"], limit=0).num_rows == 0


def test_a_filter_and_a_limit_work_together(lines):
    where = as_node("id >= 100 AND level = 'ERROR'", lines.schema, "UTC")
    levels = lines.search("*", ["level"])["level"].to_pylist()
    expected = [row for row in lines.hits("timeout") if row >= 100 and levels[row] == "ERROR"]
    assert lines.search("timeout", ["id"], where=where, limit=5)["id"].to_pylist() == expected[:5]
    assert lines.count("timeout", where=where) == len(expected)


def test_a_filter_also_decides_when_few_rows_are_counted(lines):
    hits = lines.hits("needle")
    assert len(hits) == 10
    some = as_node(f"id <= {hits[6]}", lines.schema, "UTC")
    assert lines.count("needle", where=some) == 7
    assert lines.count("needle", where=as_node("id < 0", lines.schema, "UTC")) == 0


def test_scores_are_bm25_and_come_best_first(tmp_path):
    texts = [
        "apple",
        "apple apple apple",
        "banana",
        None,
        "apple banana",
        "a long text about an apple among other fruit",
    ]
    built = build_split(tmp_path, pa.table({"t": texts, "id": range(6)}), {"indexing.typemap.t": "text"})
    found = built.search("apple OR banana", score=True)
    assert found["id"].to_pylist()[0] == 4
    scores = found["_score"].to_pylist()
    assert found.schema.field("_score").type == pa.float32()
    assert scores == sorted(scores, reverse=True)
    assert built.search("apple", score=True, limit=2)["id"].to_pylist() == [1, 0]


@pytest.mark.parametrize(
    "query", ["apple", "apple OR ban*", '"apple pie"~2', "-apple", "apple^3 banana", "t:[a TO b]"]
)
def test_a_damaged_index_gives_the_same_scores(tmp_path, query):
    dice = random.Random(4)
    texts = [
        " ".join(dice.choices(["apple", "banana", "pie", "cherry"], k=dice.randrange(6))) for _ in range(300)
    ]
    built = build_split(tmp_path, pa.table({"t": texts, "id": range(300)}), {"indexing.typemap.t": "text"})
    broken = damaged(built, tmp_path)
    found, expected = (item.search(query, score=True, limit=300) for item in (broken, built))
    assert sorted(found["id"].to_pylist()) == sorted(expected["id"].to_pylist())
    scores = dict(zip(expected["id"].to_pylist(), expected["_score"].to_pylist(), strict=True))
    for row, score in zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True):
        assert score == pytest.approx(scores[row], rel=1e-5)


def test_damage_is_warned_of_once_and_counted(lines, tmp_path, caplog):
    search_module.warn_once.cache_clear()
    broken = damaged(lines, tmp_path)
    note = []
    with caplog.at_level(logging.WARNING, "indextables"):
        for _ in range(3):
            assert broken.count("needle", note) == 10
    assert [n.damaged for n in note] == [1, 1, 1]
    warnings = [r for r in caplog.records if "scanned instead" in r.getMessage()]
    assert len(warnings) == 1
    assert broken.path.name in warnings[0].getMessage()


def test_words_of_any_length_are_found(tmp_path):
    giant = "z" * 70_000
    texts = ["small", giant, f"before {giant} after", "zz top", None]
    built = build_split(tmp_path, pa.table({"t": texts}), {"indexing.typemap.t": "text"})
    assert built.hits(f'"{giant}"') == [1, 2]
    assert built.hits("zz*") == [1, 2, 3]
    assert built.hits("t:[y TO zzz]") == [3]
    assert built.hits("t:[zzz TO *]") == [1, 2]
    assert built.hits("NOT zz*") == [0, 4]
    assert built.hits("before") == [2]


def test_null_empty_and_blank_text(tmp_path):
    texts = [None, "", "   ", "word"]
    built = build_split(tmp_path, pa.table({"t": texts}), {"indexing.typemap.t": "text"})
    assert built.hits("word") == [3]
    assert built.hits("t:*") == [1, 2, 3]
    assert built.hits("NOT word") == [0, 1, 2]
    assert built.hits("*") == [0, 1, 2, 3]


def test_several_texts_in_one_row_are_separate(tmp_path):
    rows = pa.table({"t": [["red green", "blue"], ["green blue"], [], None, ["red", None, "blue"]]})
    built = build_split(tmp_path, rows, {"indexing.typemap.t": "text"})
    assert built.hits('"green blue"') == [1]
    assert built.hits('"green blue"~5') == [1]
    assert built.hits("blue") == [0, 1, 4]
    assert built.hits("t:*") == [0, 1, 2, 4]


def test_a_string_column_matches_whole_values_only(tmp_path):
    rows = pa.table({"s": ["New York", "new york", "York", None, "a\nb"]})
    built = build_split(tmp_path, rows, {"indexing.typemap.s": "string"})
    assert built.hits('"New York"') == [0]
    assert built.hits("York") == [2]
    assert built.hits("s:New*") == [0]
    assert built.hits('s: IN ["new york" York]') == [1, 2]
    assert built.hits("s:[A TO Z]") == [0, 2]


def test_too_many_hits_are_refused_where_a_limit_is_set(tmp_path, monkeypatch):
    """They are counted before they are gathered: a billion row numbers would not fit into memory."""
    gathered = []
    rows_of = IndexSearch.rows
    monkeypatch.setattr(IndexSearch, "rows", lambda *given: gathered.append(1) or rows_of(*given))
    rows = pa.table({"t": ["x"] * 50})
    built = build_split(tmp_path, rows, {"indexing.typemap.t": "text", "search.maxHits": "10"})
    with pytest.raises(TableError, match=r"finds 50 rows .* more than search.maxHits = 10"):
        built.search("x")
    assert not gathered
    assert built.search("x", limit=5).num_rows == 5


def test_a_bad_query_opens_no_file(lines):
    counting = CountingStore(lines.store)
    remote = type(lines)(counting, lines.add, lines.schema, lines.spec, lines.options)
    for query in ("(", "nope:x"):
        with pytest.raises(QueryError):
            remote.hits(query)
    assert counting.opens == []


def test_an_empty_split_finds_nothing(tmp_path):
    from indextables.index.query.syntax import parse_query
    from indextables.index.settings import from_options
    from indextables.options import Options
    from indextables.reading import Reading
    from indextables.split.layout import SplitRef
    from indextables.split.search.run import count_split
    from indextables.split.search.selection import Selection
    from indextables.split.write.writer import SplitWriter
    from indextables.storage.store import open_store

    schema = pa.schema([("t", pa.string())])
    options = Options.of({"indexing.typemap.t": "text"})
    spec = from_options(options, schema)
    writer = SplitWriter(schema, spec, options)
    try:
        store = open_store(tmp_path / "table")
        store.put_file("empty.split", writer.finish().path)
    finally:
        writer.close()
    for query in ("x", "*", "NOT x", "x*"):
        selection = Selection(parse_query(query, spec, schema))
        assert count_split(Reading(store, schema, options), SplitRef("empty.split"), selection) == 0


def test_the_index_answers_phrases_with_gaps_and_prefixes_by_itself(tmp_path):
    texts = ["red big fox", "red fox", "fox red", "red a b c fox", "red foxes", "red big foxes", None]
    rows = pa.table({"t": texts, "l": [[text] if text else None for text in texts]})
    built = build_split(tmp_path, rows, {"indexing.typemap.t": "text", "indexing.typemap.l": "text"})
    for column in ("t", "l"):
        notes = []
        assert built.hits(f'{column}:"red fox"~1', note=notes) == [0, 1]
        assert notes[0].verified_rows == 0
        assert built.hits(f'{column}:"red fox"~3') == [0, 1, 3]
        notes = []
        assert built.hits(f'{column}:"red fo"*', note=notes) == [1, 4]
        assert notes[0].verified_rows == 0
    assert built.hits('t:"red zebra"*') == []


def test_a_gap_does_not_reach_from_one_text_of_a_row_into_the_next(tmp_path):
    rows = pa.table({"l": [["red", "fox"], ["red big fox"], ["a red", "fox"]]})
    built = build_split(tmp_path, rows, {"indexing.typemap.l": "text"})
    assert built.hits('l:"red fox"~2') == [1]


def test_a_phrase_may_end_in_a_prefix_of_many_words(tmp_path):
    rows = pa.table({"t": [f"red w{at}" for at in range(200)] + ["red dog", "w1 red"]})
    built = build_split(tmp_path, rows, {"indexing.typemap.t": "text"})
    assert built.hits('t:"red w"*') == list(range(200))
    assert built.hits('t:"red w19"*') == [19, *range(190, 200)]


PROGRAM = """
import sys
import pyarrow as pa
from indextables.options import Options
from indextables.index.settings import from_options
from indextables.split.layout import SplitRef
from indextables.index.query.syntax import parse_query
from indextables.reading import Reading
from indextables.split.search.run import count_split, search_split
from indextables.split.search.selection import Selection
from indextables.storage.store import open_store

root, path, size, offset, length = sys.argv[1:]
schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
options = Options.of({"indexing.typemap.text": "text"})
reading = Reading(open_store(root), schema, options)
ref = SplitRef(path, int(size), int(offset), int(length))
for word, limit in (("w3", None), ("word", 5)):
    query = parse_query(word, from_options(options, schema), schema)
    print(count_split(reading, ref, Selection(query)))
    selection = Selection(query, columns=tuple(schema.names), limit=limit)
    print(sum(part.num_rows for part in search_split(reading, ref, selection)))
print("pandas" in sys.modules)
"""


def test_a_search_does_not_load_pandas(tmp_path):
    """Executors start many processes, and pyarrow looks for pandas to make a value of a Python object."""
    pytest.importorskip("pandas")
    pytest.importorskip("duckdb", minversion="2", reason="DuckDB 1 loads pandas itself")
    rows = pa.table(
        {"id": pa.array(range(9000), pa.int64()), "text": [f"word w{at % 10}" for at in range(9000)]}
    )
    built = build_split(tmp_path, rows, {"indexing.typemap.text": "text"})
    add = built.add
    where = [add.path, add.size, add.hotcache_start_offset, add.hotcache_length]
    arguments = [str(item) for item in (tmp_path / "table", *where)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, check=True, text=True
    )
    assert done.stdout.split() == ["900", "900", "9000", "5", "False"]
