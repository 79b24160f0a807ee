"""Table.update and Table.merge: what becomes of every row, in one commit, and who wins where two try."""

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import indextables as it
from indextables.errors import ConflictError, OptionError, PredicateError, SchemaError, TableError
from indextables.ops.write import update as updating
from indextables.ops.write import upsert as upserting

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("message", pa.string()), ("n", pa.int32())])
TEXT = {"indexing.typemap.message": "text"}


def rows(ids, day="1", message="hello world", n=0) -> pa.Table:
    ids = list(ids)
    columns = {"id": ids, "day": [day] * len(ids), "message": [message] * len(ids), "n": [n] * len(ids)}
    return pa.table(columns, SCHEMA)


@pytest.fixture
def table(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA, partition_by=("day",), options=TEXT)
    for day in ("1", "2", "3"):
        first = int(day) * 10
        made.append(rows(range(first, first + 10), day=day))
    return made


def content(table, *columns):
    names = columns or ("id", "day", "message", "n")
    found = it.Table.open(table.uri).scan(columns=list(names)).read_all().sort_by([("id", "ascending")])
    return [tuple(row.values()) for row in found.to_pylist()]


def test_an_update_changes_matching_rows_and_no_other_file(table):
    before = {add.path for add in table._log.list_files()}
    done = table.update("id IN (11, 12)", {"message": "goodbye", "N": 7})
    assert (done.rows_updated, done.files_removed, done.files_added, done.version) == (2, 0, 1, table.version)
    assert [row for row in content(table) if row[0] in {10, 11, 12, 20}] == [
        (10, "1", "hello world", 0),
        (11, "1", "goodbye", 7),
        (12, "1", "goodbye", 7),
        (20, "2", "hello world", 0),
    ]
    after = {add.path for add in it.Table.open(table.uri)._log.list_files()}
    assert before < after
    assert table.count(query="message:goodbye") == 2
    assert table.count(query="message:hello") == 28
    newest = table.history(1).to_pylist()[0]
    assert newest["operation"] == "UPDATE"


def test_a_new_value_may_be_another_column_or_a_function_of_the_rows(table):
    table.update("id = 15", {"message": it.col("day"), "n": lambda found: pc.multiply(found["id"], 2)})
    table.update(it.col("id") == 16, {"message": None})
    assert content(table)[5:7] == [(15, "1", "1", 30), (16, "1", None, 0)]


def test_rows_move_to_the_partition_that_an_update_gives_them(table):
    table.update("id = 25", {"day": "9"})
    assert table.count("day = '9'") == 1
    assert table.files("day = '9'").num_rows == 1
    assert len(content(table)) == 30


def test_an_update_that_matches_nothing_commits_nothing(table):
    version = table.version
    done = table.update("id = 1000", {"n": 1})
    assert (done.status, done.version, table.version) == ("NO ACTION", version, version)
    assert (done.rows_updated, done.files_removed, done.files_added) == (0, 0, 0)
    assert (done.attempts, done.conflicts, done.message) == (0, 0, "no row matches the condition")


def test_rows_for_which_the_condition_is_null_stay(table):
    table.append(pa.table({"id": [99], "day": ["1"]}))
    done = table.update("n <> 5", {"n": 6})
    assert done.rows_updated == 30
    assert content(table, "id", "n")[-1] == (99, None)


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ({}, SchemaError, "at least one column"),
        ({"nobody": 1}, SchemaError, "no column 'nobody'"),
        ({"n": "text"}, SchemaError, "n"),
        ({"n": it.col("n") > 1}, SchemaError, "col\\('name'\\)"),
        ({"n": lambda found: pa.array([1, 2])}, SchemaError, "one value for each row it is given"),
    ],
)
def test_a_wrong_update_is_refused_and_leaves_nothing(table, values, error, words):
    files = sorted(str(path) for path in _splits(table))
    with pytest.raises(error, match=words):
        table.update("id = 10", values)
    assert sorted(str(path) for path in _splits(table)) == files
    with pytest.raises(PredicateError):
        table.update(None, {"n": 1})


def _splits(table):
    from pathlib import Path

    return Path(table.uri.removeprefix("file://")).rglob("*.split")


SOURCE = pa.table({"id": [11, 500, None], "day": ["1", "5", "5"], "message": ["merged", "new", "nobody"]})


def test_a_merge_updates_what_has_a_key_and_inserts_the_rest(table):
    done = table.merge(SOURCE, "id")
    assert (done.rows_updated, done.rows_deleted, done.rows_inserted) == (1, 0, 2)
    assert (done.files_removed, done.files_added, table.version) == (0, 2, done.version)
    found = content(table)
    assert found[1] == (11, "1", "merged", 0)
    assert found[-2:] == [(500, "5", "new", None), (None, "5", "nobody", None)]
    assert table.count(query="message:merged") == 1


@pytest.mark.parametrize(
    ("clauses", "left"),
    [
        ({"matched": "delete", "not_matched": None}, 29),
        ({"matched": None}, 32),
        ({"matched": "update", "not_matched": None, "not_matched_by_source": "delete"}, 1),
        ({"not_matched_by_source": "delete"}, 3),
    ],
)
def test_every_clause_of_a_merge_does_its_part(table, clauses, left):
    table.merge(SOURCE, on=["id"], **clauses)
    assert len(content(table)) == left


def test_a_merge_by_several_columns_leaves_rows_alone_that_share_only_one(table):
    source = pa.table({"day": ["1"], "id": [12], "message": ["new"], "n": [5]})
    done = table.merge(source, ["day", "id"])
    assert (done.rows_updated, done.rows_inserted) == (1, 0)
    assert [row[0] for row in content(table) if row[2:] == ("new", 5)] == [12]


def test_a_merge_by_several_columns_keeps_like_texts_apart(table):
    table.append(rows([1], day="12", message="3"))
    source = pa.table({"day": ["12", "1"], "message": ["3", "23"], "n": [5, 6], "id": [1, 1]})
    done = table.merge(source, ["day", "message"])
    assert (done.rows_updated, done.rows_inserted) == (1, 1)


def test_a_merge_by_several_columns_compares_bytes_that_are_no_text(tmp_path):
    schema = pa.schema([("raw", pa.binary()), ("n", pa.int32()), ("message", pa.string())])
    table = it.Table.create(tmp_path / "t", schema)
    raw = [b"\xff\x00", b"\xfe", b"1:", None]
    table.append(pa.table({"raw": raw, "n": [1] * 4, "message": ["old"] * 4}, schema))
    source = {"raw": [b"\xff\x00", b"\xfd", b"", None], "n": [1, 1, 1, 1], "message": ["new"] * 4}
    done = table.merge(pa.table(source, schema), ["raw", "n"])
    assert (done.rows_updated, done.rows_inserted) == (1, 3)
    found = table.scan("message = 'old'").read_all()["raw"].to_pylist()
    assert sorted(found, key=str) == [None, b"1:", b"\xfe"]


def test_a_repeated_key_is_an_error_unless_rows_are_only_deleted(table):
    twice = pa.table({"id": [11, 11], "day": ["1", "1"], "n": pa.array([1, 2], pa.int32())})
    with pytest.raises(TableError, match="several rows of the source have the key {'id': 11}"):
        table.merge(twice, "id")
    table.merge(twice, "id", matched="delete", not_matched=None)
    assert 11 not in [row[0] for row in content(table)]
    with pytest.raises(TableError, match="several rows of the source have the key {'id': 11}"):
        table.merge(twice, "id")
    assert 11 not in [row[0] for row in content(table)]


@pytest.mark.parametrize("keys", [[0, 21], [1, 20, 5]])
def test_only_splits_that_can_hold_a_key_are_opened(tmp_path, keys):
    table = it.Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("n", pa.int64())]))
    for first in (0, 10, 20):
        table.append(pa.table({"id": [first, first + 1], "n": [1, 1]}))
    (between,) = table.files("id = 10")["path"].to_pylist()
    Path(tmp_path, "t", between).rename(tmp_path / "away")
    done = table.merge(pa.table({"id": keys, "n": [2] * len(keys)}), "id")
    assert (done.rows_updated, done.rows_inserted) == (2, len(keys) - 2)
    Path(tmp_path, "away").rename(Path(tmp_path, "t", between))
    assert table.count("n = 2") == len(keys)
    assert table.count("n = 1") == 4


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("kind", ["string", "text", None])
def test_a_merge_by_an_indexed_key_is_one_by_any_key(tmp_path, kind, vectors):
    keys = [f"user {number * 7919 % 1000:04} x" for number in range(600)]
    options = {"deletionVectors.enabled": vectors, **({"indexing.typemap.key": kind} if kind else {})}
    table = it.Table.create(
        tmp_path / "t", pa.schema([("key", pa.string()), ("n", pa.int64())]), options=options
    )
    for at in range(0, 600, 200):
        table.append(pa.table({"key": [*keys[at : at + 200], None], "n": [1] * 201}))
    table.delete(f"key = '{keys[5]}'")
    source = [*keys[3:9], *keys[250:255], "user new x", None]
    done = table.merge(pa.table({"key": source, "n": [2] * len(source)}), "key")
    assert (done.rows_updated, done.rows_inserted) == (10, 3)
    rows = sorted(((row["key"] or "", row["n"]) for row in table.scan().to_pylist()))
    changed = {key for key in source if key}
    expected = [(key, 1) for key in keys if key not in changed] + [(key, 2) for key in changed]
    assert rows == sorted([*expected, *[("", 1)] * 3, ("", 2)])


def test_wrong_merges_are_refused(table):
    with pytest.raises(OptionError, match="matched is 'upsert'"):
        table.merge(SOURCE, "id", matched="upsert")
    with pytest.raises(SchemaError, match="the source has no column 'n'"):
        table.merge(SOURCE, "n")
    with pytest.raises(SchemaError, match="the table has no such column"):
        table.merge(SOURCE.append_column("other", pa.array([1, 2, 3])), "id")
    with pytest.raises(SchemaError, match="at least one key"):
        table.merge(SOURCE, [])
    nested = pa.table({"s": pa.array([{"x": 1}])})
    other = it.Table.create(f"{table.uri}-nested", nested.schema)
    with pytest.raises(SchemaError, match="cannot be merged on 's'.*single values"):
        other.merge(nested, "s")


def racing(table, monkeypatch, module, foreign):
    """Let another writer commit after the plan is made and before it is carried out."""
    plan_of = module.replace_plan

    def late(*args, **kwargs):
        foreign(it.Table.open(table.uri))
        return plan_of(*args, **kwargs)

    monkeypatch.setattr(module, "replace_plan", late)


def test_rows_that_others_append_meanwhile_stay(table, monkeypatch):
    racing(table, monkeypatch, updating, lambda other: other.append(rows([77], day="1")))
    table.update("day = '1'", {"n": 3})
    assert content(table)[-1] == (77, "1", "hello world", 0)
    assert sum(row[3] == 3 for row in content(table)) == 10


def test_of_two_updates_of_a_row_one_wins_and_the_other_can_be_repeated(table, monkeypatch):
    with monkeypatch.context() as patched:
        racing(table, patched, updating, lambda other: _as_it_is(patched, other))
        with pytest.raises(ConflictError, match="UPDATE needs"):
            table.update("id = 10", {"n": 1})
    assert content(table)[0][3] == 2
    table.refresh().update("id = 10", {"n": 1})
    assert content(table)[0][3] == 1


def _as_it_is(patched, other):
    patched.undo()
    other.update("id = 10", {"n": 2})


def test_two_merges_never_insert_the_same_key_twice(table, monkeypatch):
    def foreign(other):
        patched.undo()
        other.merge(pa.table({"id": [500], "day": ["5"], "n": pa.array([1], pa.int32())}), "id")

    with monkeypatch.context() as patched:
        racing(table, patched, upserting, foreign)
        with pytest.raises(ConflictError, match="MERGE was prepared on version 3, and version 4 added"):
            table.merge(SOURCE, "id")
    assert [row[0] for row in content(table)].count(500) == 1
    table.refresh().merge(SOURCE, "id")
    assert [row[0] for row in content(table)].count(500) == 1


def test_of_merges_in_threads_that_insert_the_same_keys_one_is_committed(table):
    """Nothing is patched: every source waits until all merges have read the version they merge into."""
    meeting = threading.Barrier(4)

    def merge(number):
        def batches():
            meeting.wait(60)
            yield rows([600, 601, 602], day="6", n=number).to_batches()[0]

        source = pa.RecordBatchReader.from_batches(SCHEMA, batches())
        it.Table.open(table.uri).merge(source, "id", matched=None)
        return number

    with ThreadPoolExecutor(4) as pool:
        merges = [pool.submit(merge, number) for number in range(4)]
    refused = [done.exception() for done in merges if done.exception() is not None]
    assert [type(error) for error in refused] == [ConflictError] * 3
    (won,) = [done.result() for done in merges if done.exception() is None]
    assert content(table, "id", "n")[-4:] == [(39, 0), (600, won), (601, won), (602, won)]


def test_a_merge_lets_an_append_pass_and_a_merge_elsewhere(table, monkeypatch):
    def foreign(other):
        patched.undo()
        other.append(rows([500], day="5"))
        other.refresh().merge(pa.table({"id": [9000], "day": ["9"]}), "id")

    with monkeypatch.context() as patched:
        racing(table, patched, upserting, foreign)
        table.merge(SOURCE.slice(0, 2), "id")
    assert [row[0] for row in content(table)][-3:] == [500, 500, 9000]


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.update("id = 11", {"n": 1}),
        lambda table: table.merge(SOURCE.slice(0, 1), "id", matched="delete", not_matched="insert"),
        lambda table: table.delete("id = 11"),
    ],
    ids=["update", "merge", "delete"],
)
def test_every_change_merges_small_splits_after_it_where_the_table_asks_for_it(table, change):
    table.append(rows([1], day="1"))
    table.update_properties({"mergeOnWrite.enabled": "true", "mergeOnWrite.fanIn": "2"})
    table.append(rows([2], day="1"), options={"mergeOnWrite.enabled": "false"})
    change(table)
    assert table.history(1)["operation"].to_pylist() == ["MERGE SPLITS"]
    assert table.files("day = '1'").num_rows == 2


def test_an_update_reads_times_in_the_zone_of_the_table(tmp_path):
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("n", pa.int64())])
    made = it.Table.create(tmp_path / "t", schema)
    seven = dt.datetime(2024, 1, 8, 7, tzinfo=dt.UTC)  # two in the morning in New York
    made.append(pa.table({"at": [seven], "n": [0]}, schema))
    made.update_properties({"timeZone": "America/New_York"})
    where = "at = '2024-01-08 02:00:00'"
    assert made.count(where) == 1
    assert made.update(where, {"n": 1}).rows_updated == 1
    assert made.scan(columns=["n"]).read_all().to_pylist() == [{"n": 1}]


def test_the_two_zeros_are_one_key_and_so_are_all_nans(tmp_path):
    schema = pa.schema([("x", pa.float64()), ("y", pa.float32()), ("n", pa.int64())])
    zero, nan = 0.0, float("nan")
    made = it.Table.create(tmp_path / "t", schema)
    made.append(pa.table({"x": [-zero, zero, nan, None], "y": [zero, -zero, nan, 1.0], "n": [0] * 4}, schema))
    for on, source in (("x", {"x": [-zero, nan]}), (["x", "y"], {"x": [zero, nan], "y": [-zero, nan]})):
        rows = pa.table({**source, "n": [7, 8]}, pa.schema([schema.field(name) for name in [*source, "n"]]))
        done = made.merge(rows, on, not_matched=None)
        assert done.rows_updated == 3, on


def test_an_empty_list_is_a_value(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))])
    made = it.Table.create(tmp_path / "t", schema)
    made.append(pa.table({"id": [1, 2], "tags": [["a"], ["b"]]}, schema))
    made.update("id = 1", {"tags": []})
    made.update("id = 2", {"tags": ["c", None]})
    assert made.scan().read_all()["tags"].to_pylist() == [[], ["c", None]]
    with pytest.raises(
        SchemaError, match="column 'tags' holds list<element: string>, and 5 is not such a value"
    ):
        made.update("id = 2", {"tags": 5})
    with pytest.raises(SchemaError, match="tags"):
        made.update("id = 2", {"tags": "x"})
