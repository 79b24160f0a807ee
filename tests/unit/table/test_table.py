"""A table without Spark: create, open, append, overwrite, scan, search and count on the log."""

from __future__ import annotations

import multiprocessing
import pickle
import random
import threading
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import (
    ConflictError,
    NotATableError,
    OptionError,
    PredicateError,
    QueryError,
    SchemaError,
    TableError,
)
from indextables.log.commit.attempt import CommitPlan, Rule
from indextables.table import Table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("message", pa.string()),
        pa.field("day", pa.string()),
        pa.field("value", pa.float64()),
    ]
)
TEXT = {"indexing.typemap.message": "text"}


def rows(first, last, day="a"):
    numbers = range(first, last)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "message": [f"error number {at}" if at % 2 else f"all is well {at}" for at in numbers],
            "day": [day] * len(numbers),
            "value": [at / 2 for at in numbers],
        },
        schema=SCHEMA,
    )


@pytest.fixture
def table(tmp_path):
    made = Table.create(tmp_path / "t", SCHEMA, ["day"], TEXT)
    made.append(rows(0, 100, "a"))
    made.append(rows(100, 150, "b"))
    return made


def ids(reader):
    return sorted(reader.read_all()["id"].to_pylist())


def test_a_new_table_is_empty_and_says_what_it_is(tmp_path):
    """A1: version 0, the schema and partition columns as given."""
    assert not Table.exists(tmp_path / "t")
    table = Table.create(tmp_path / "t", SCHEMA, ["day"], TEXT)
    assert Table.exists(tmp_path / "t")
    assert (table.version, table.schema, table.partition_columns) == (0, SCHEMA, ("day",))
    assert table.count() == 0
    assert table.scan().read_all().equals(SCHEMA.empty_table())
    assert table.files().num_rows == 0
    assert '"name":"message"' in table.spark_schema.replace(" ", "")
    assert table.metadata.configuration["spark.indextables.indexing.typemap.message"] == "text"


def test_creating_again_opens_it_and_another_schema_is_an_error(table, tmp_path):
    """A3: the same schema and partitioning are no conflict, others are."""
    assert Table.create(tmp_path / "t", SCHEMA, ["day"]).count() == 150
    with pytest.raises(SchemaError):
        Table.create(tmp_path / "t", SCHEMA.append(pa.field("more", pa.string())), ["day"])
    with pytest.raises(OptionError, match="is indexed as text"):
        Table.create(tmp_path / "t", SCHEMA, ["day"], {"indexing.typemap.message": "string"})


def test_opening_nothing_says_that_it_is_no_table(tmp_path):
    """A7: nothing is created."""
    with pytest.raises(NotATableError):
        Table.open(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_appended_rows_come_back(table):
    assert table.version == 2
    assert table.scan().read_all().sort_by("id").equals(pa.concat_tables([rows(0, 100), rows(100, 150, "b")]))
    assert table.scan(columns=["value", "id"]).schema.names == ["value", "id"]
    assert table.count() == 150


def test_an_append_tells_what_it_did(table):
    result = table.append(rows(150, 160, "c"))
    assert (result.version, result.files_added, result.files_removed, result.rows) == (3, 1, 0, 10)
    assert result.bytes > 0
    assert result.to_arrow().column_names == [
        "version", "files_added", "files_removed", "rows", "bytes", "attempts", "conflicts", "columns_truncated",
        "bytes_saved",
    ]  # fmt: skip


def test_truncated_statistics_are_counted(tmp_path):
    """H1: long values stay out of the log, and the result says how much that saved."""
    table = Table.create(tmp_path / "t", pa.schema([("a", pa.string()), ("b", pa.string())]))
    result = table.append(pa.table({"a": ["x" * 2000], "b": ["short"]}))
    assert result.columns_truncated == 1
    assert result.bytes_saved > 3000


def test_an_empty_append_writes_nothing(table):
    """A5: the version stays."""
    assert table.append(SCHEMA.empty_table()).version == 2
    assert table.version == 2


def test_data_may_come_in_many_forms(table):
    batches = rows(200, 210).to_batches()
    table.append(batches[0])
    table.append(iter(rows(210, 220).to_batches()))
    table.append(rows(220, 230).to_reader())
    table.append(rows(230, 240).to_pandas())
    assert table.count("id >= 200") == 40
    with pytest.raises(SchemaError, match="cannot write str"):
        table.append("rows")


def test_filters_decide_every_row(table):
    """H11: exactly the rows for which the condition is true."""
    assert ids(table.scan("id < 3 OR id = 149")) == [0, 1, 2, 149]
    assert ids(table.scan("day = 'b' AND value > 70")) == list(range(141, 150))
    assert ids(table.scan(it.col("id") == 5)) == [5]
    assert table.count("id < 2") == 2
    with pytest.raises(PredicateError):
        table.scan("soundex(message) = 'e600'")
    with pytest.raises(SchemaError, match="the table has no column 'nope'; it has id"):
        table.scan(columns=["nope"])


def test_the_metrics_say_which_files_were_left_out(table):
    """H9: considered, pruned by partition, skipped by statistics, read."""
    ids(table.scan("day = 'a' AND id > 10"))
    files = table.last_scan.files
    assert (files.considered, files.pruned_by_partition, files.kept) == (2, 1, 1)
    assert (table.last_scan.files_read, table.last_scan.rows) == (1, 89)
    ids(table.scan("id > 120"))
    assert table.last_scan.files.skipped_by_statistics == 1


def test_counting_opens_no_file_where_the_log_knows(table, monkeypatch):
    """A12: the total comes from the log."""
    from indextables.ops.read import scan

    monkeypatch.setattr(scan, "open_split", lambda *_: pytest.fail("a split was opened"))
    assert table.count() == 150
    assert table.count("day = 'b'") == 50
    assert table.count("id >= 0") == 150
    assert table.count("id < -5") == 0


def test_search_finds_words_in_path_and_row_order(table):
    found = table.search("error AND 7")
    assert found.read_all()["id"].to_pylist() == [7]
    assert ids(table.search("error", "id < 10")) == [1, 3, 5, 7, 9]
    assert table.search("error", columns=["message"], limit=4).read_all().num_rows == 4
    assert table.count(query="error") == 75
    assert table.count("day = 'b'", query="error") == 25
    assert table.last_scan.search.by_index == 1
    whole = table.search("error").read_all()
    paths = {add.path: add for add in table._log.list_files()}
    assert [day for day in dict.fromkeys(whole["day"].to_pylist())] == [
        p.split("/")[0][4:] for p in sorted(paths)
    ]


def test_search_with_scores_gives_the_best_first(table):
    found = table.search("number OR 42", score=True, limit=3).read_all()
    assert found.schema.field("_score").type == pa.float32()
    scores = found["_score"].to_pylist()
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 3
    assert 42 in table.search("42", score=True).read_all()["id"].to_pylist()


def test_a_bad_search_is_an_error_before_anything_is_read(table):
    for query in ("(", "nope:x", "value:x"):
        with pytest.raises(QueryError):
            table.search(query)
    with pytest.raises(OptionError):
        table.search("error", limit=-1)


def test_overwriting_replaces_everything(table):
    """A9: removes of every live file and the adds, in one commit."""
    result = table.overwrite(rows(500, 510))
    assert (result.version, result.files_added, result.files_removed) == (3, 1, 2)
    assert ids(table.scan()) == list(range(500, 510))
    assert table.count(query="error") == 5
    assert table.overwrite(SCHEMA.empty_table()).files_removed == 1
    assert table.count() == 0
    table.append(rows(0, 5))
    assert table.count() == 5


def test_overwriting_where_replaces_exactly_the_matching_rows(table):
    """H11: files that hold other rows as well are rewritten without the matching ones."""
    result = table.overwrite(rows(10, 15), where="id >= 10 AND id < 20")
    assert result.version == 3
    assert ids(table.scan()) == [*range(15), *range(20, 150)]
    table.overwrite(rows(1000, 1003, "b"), where="day = 'b'")
    assert ids(table.scan("day = 'b'")) == [1000, 1001, 1002]
    assert table.count(query="error") == len([at for at in [*range(15), *range(20, 100), 1001] if at % 2])


def test_overwriting_where_refuses_rows_outside_the_condition(table, tmp_path):
    before = sorted(p.name for p in (tmp_path / "t").rglob("*.split"))
    with pytest.raises(PredicateError, match=r"rows outside the condition .*'id': 300"):
        table.overwrite(rows(300, 301), where="id < 20")
    assert table.count() == 150
    assert sorted(p.name for p in (tmp_path / "t").rglob("*.split")) == before


def test_an_expected_version_guards_an_overwrite(table, tmp_path):
    """E4: a foreign change of data since then is an error, and no file is left behind."""
    seen = table.version
    Table.open(tmp_path / "t").append(rows(900, 901))
    before = set((tmp_path / "t").rglob("*.split"))
    with pytest.raises(ConflictError):
        table.overwrite(rows(0, 1), expected_version=seen)
    assert set((tmp_path / "t").rglob("*.split")) == before


def test_an_old_version_can_be_read_but_not_written(table, tmp_path):
    """A13: time travel by version and by moment."""
    old = Table.open(tmp_path / "t", version=1)
    assert (old.version, old.count()) == (1, 100)
    for verb in (
        lambda: old.append(rows(0, 1)),
        lambda: old.overwrite(rows(0, 1)),
        lambda: old.delete("id = 1"),
    ):
        with pytest.raises(TableError, match="can only be read"):
            verb()
    assert Table.open(tmp_path / "t", as_of=datetime.now(UTC)).version == 2
    assert old.refresh().version == 2
    old.append(rows(0, 1))
    assert old.version == 3


def test_a_handle_keeps_its_version_until_it_moves(table, tmp_path):
    other = Table.open(tmp_path / "t")
    table.append(rows(150, 160))
    assert other.count() == 150
    assert other.refresh().count() == 160
    assert table.history().num_rows == 4


def test_data_that_does_not_fit_shows_every_difference(table):
    """Names, types and NOT NULL, before anything is written."""
    bad = pa.table({"message": [1], "extra": ["x"], "value": ["text"]})
    with pytest.raises(SchemaError) as caught:
        table.append(bad)
    text = str(caught.value)
    for part in (
        "+ extra",
        "~ message: string in the table, int64 in the data",
        "~ value",
        "- id int64 NOT NULL",
    ):
        assert part in text
    with pytest.raises(SchemaError, match="NOT NULL"):
        table.append(pa.table({"id": pa.array([None], pa.int64()), "day": ["a"]}))
    assert table.version == 2


def test_a_schema_grows_where_asked(tmp_path):
    """Nullable columns at the end, wider numbers, NOT NULL dropped; old files read as before."""
    table = Table.create(
        tmp_path / "t", pa.schema([pa.field("a", pa.int32(), nullable=False), ("f", pa.float32())])
    )
    table.append(pa.table({"a": pa.array([1, 2], pa.int32()), "f": pa.array([0.5, 1.5], pa.float32())}))
    wider = pa.table({"a": pa.array([2**40, None], pa.int64()), "f": [1e300, None], "new": ["x", "y"]})
    with pytest.raises(SchemaError):
        table.append(wider)
    table.append(wider, merge_schema=True, options={"indexing.typemap.new": "text"})
    assert table.schema == pa.schema([("a", pa.int64()), ("f", pa.float64()), ("new", pa.string())])
    assert table.scan().read_all().sort_by("a").to_pylist() == [
        {"a": 1, "f": 0.5, "new": None},
        {"a": 2, "f": 1.5, "new": None},
        {"a": 2**40, "f": 1e300, "new": "x"},
        {"a": None, "f": None, "new": "y"},
    ]
    assert table.search("new:x OR new:y").read_all()["a"].to_pylist() == [2**40, None]
    assert table.count("a > 1") == 2
    table.append(pa.table({"a": [7]}))
    assert table.count("new IS NULL") == 3


def test_a_column_that_new_rows_lack_may_be_null_from_then_on(tmp_path):
    table = Table.create(
        tmp_path / "t", pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.int64())])
    )
    table.append(pa.table({"b": [1]}), merge_schema=True)
    assert table.schema == pa.schema([("a", pa.int64()), ("b", pa.int64())])
    assert table.scan().read_all().to_pylist() == [{"a": None, "b": 1}]


@pytest.mark.parametrize("name", ["A", "ID"])
def test_names_equal_but_for_case_are_one_column(tmp_path, name):
    table = Table.create(tmp_path / "t", pa.schema([("a", pa.int64()), ("id", pa.int64())]))
    table.append(pa.table({name: [1]}), merge_schema=True)
    assert table.schema.names == ["a", "id"]
    with pytest.raises(SchemaError, match="differ in case only"):
        table.append(pa.table([[1], [2]], names=["a", "A"]), merge_schema=True)


def test_index_settings_are_kept_and_contradictions_refused(table, tmp_path):
    """Fixed by the first write that names the column."""
    again = Table.open(tmp_path / "t", options=TEXT)
    again.append(rows(150, 151))
    with pytest.raises(OptionError, match=r"update_properties.*MERGE SPLITS"):
        table.append(rows(151, 152), options={"indexing.tokenizer.message": "en_stem"})
    with pytest.raises(OptionError, match="has no column 'nope'; it has"):
        table.append(rows(151, 152), options={"indexing.typemap.nope": "text"})
    table.append(rows(151, 152), options={"indexing.typemap.day": "string"})
    assert table.search("day:a AND message:error", "id = 151").read_all().num_rows == 1
    note = table.last_scan.search
    assert note.by_index == 1
    assert table.count(query="day:b") == 50
    assert table.last_scan.search.scanned >= 2


def test_changed_settings_are_honoured_by_scanning_until_a_merge(table):
    """A search always uses the table's settings, whatever a split was indexed with."""
    assert table.count(query="message:numbers") == 0
    table._log.update_properties({"spark.indextables.indexing.tokenizer.message": "en_stem"})
    table.refresh()
    assert table.count(query="message:numbers") == 75
    assert table.last_scan.search.scanned == 2
    table.merge_splits()
    assert table.count(query="message:numbers") == 75
    assert (table.last_scan.search.scanned, table.last_scan.search.by_index) == (0, 2)


def test_every_arrow_type_is_mapped_or_refused(tmp_path):
    """The table's types are Spark's."""
    data = pa.table(
        {
            "u8": pa.array([1], pa.uint8()),
            "u64": pa.array([2**63], pa.uint64()),
            "large": pa.array(["x"], pa.large_string()),
            "view": pa.array(["y"], pa.string_view()),
            "coded": pa.array(["z"]).dictionary_encode(),
            "ms": pa.array([1], pa.timestamp("ms", "UTC")),
            "fixed": pa.array([b"ab"], pa.binary(2)),
            "half": pa.array([1.5], pa.float16()),
            "dec": pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
            "list": pa.array([[1]], pa.large_list(pa.int32())),
            "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
        }
    )
    table = Table.create(tmp_path / "t", data.schema)
    assert table.schema.field("u64").type == pa.decimal128(20, 0)
    assert table.schema.field("ms").type == pa.timestamp("us", "UTC")
    table.append(data)
    assert table.scan().read_all().to_pylist()[0]["u64"] == Decimal(2**63)
    for bad in (pa.time64("us"), pa.duration("s"), pa.sparse_union([pa.field("a", pa.int8())])):
        with pytest.raises(SchemaError):
            Table.create(tmp_path / "bad", pa.schema([("x", bad)]))


def test_nanoseconds_are_cut_only_when_asked(tmp_path):
    schema = pa.schema([("t", pa.timestamp("us", "UTC"))])
    table = Table.create(tmp_path / "t", schema)
    fine = pa.table({"t": pa.array([1001], pa.timestamp("ns", "UTC"))})
    with pytest.raises(SchemaError, match="timestamps=truncate"):
        table.append(fine)
    table.append(fine, options={"timestamps": "truncate"})
    assert table.count() == 1


def test_a_failed_append_leaves_no_file(table, tmp_path):
    before = set((tmp_path / "t").rglob("*.split"))

    def failing():
        yield rows(0, 40_000).to_batches()[0]
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        table.append(failing(), options={"write.maxRowsPerSplit": "1000"})
    assert set((tmp_path / "t").rglob("*.split")) == before
    assert table.refresh().version == 2


def test_a_table_of_another_container_is_refused_for_its_rows(table):
    """The log can be described, the rows cannot be read."""
    from dataclasses import replace

    from indextables.log.commit.attempt import CommitPlan, Rule

    foreign = replace(table.metadata, format={"provider": "indextables", "options": {}})
    table._log.commit(CommitPlan("TEST", Rule.APPEND, lambda _: [foreign]))
    table.refresh()
    for read in (lambda: table.scan(), lambda: table.search("error"), lambda: table.count("id = 1")):
        with pytest.raises(TableError, match="not in Parquet; only its log can be read here"):
            read()
    assert table.files().num_rows == 2


def test_a_stream_that_is_left_early_leaves_no_thread_behind(tmp_path):
    before = set(threading.enumerate())
    table = Table.create(tmp_path / "t", SCHEMA)
    for at in range(6):
        table.append(rows(at * 1000, at * 1000 + 1000))
    taken = table.scan()
    assert taken.read_next_batch().num_rows
    del taken
    pooled = [thread for thread in threading.enumerate() if thread.name.startswith("indextables_")]
    assert not set(pooled) - before
    assert table.count() == 6000


def test_dynamic_overwrite_replaces_the_partitions_of_the_new_rows_and_no_other(tmp_path):
    table = Table.create(tmp_path / "t", SCHEMA, ["day"])
    for day in "ab":
        table.append(rows(0, 3, day))
    assert table.overwrite(rows(7, 9, "b"), partitions="dynamic").files_removed == 1
    left = table.scan(columns=["id", "day"]).read_all()
    assert sorted(zip(left["day"].to_pylist(), left["id"].to_pylist(), strict=True)) == [
        ("a", 0), ("a", 1), ("a", 2), ("b", 7), ("b", 8),
    ]  # fmt: skip
    table.overwrite(rows(0, 0), partitions="dynamic")
    assert table.count() == 5
    with pytest.raises(OptionError, match="expected static or dynamic"):
        table.overwrite(rows(0, 1), partitions="all")
    with pytest.raises(OptionError, match="cannot be combined"):
        table.overwrite(rows(0, 1), where="id = 0", partitions="dynamic")


def test_an_overwrite_may_bring_another_schema_and_a_word_for_the_history(tmp_path):
    table = Table.open(Table.create(tmp_path / "t", SCHEMA, ["day"], TEXT).uri)
    table.append(rows(0, 3), user_metadata="from the archive")
    new = pa.table({"name": pa.array(["a", "b"], pa.large_string()), "n": pa.array([1, 2], pa.uint8())})
    table.overwrite(new, overwrite_schema=True, partition_by=["n"], user_metadata="renamed")
    assert (table.schema.names, table.partition_columns) == (["name", "n"], ("n",))
    assert table.scan("n = 2").read_all()["name"].to_pylist() == ["b"]
    with pytest.raises(QueryError, match="no column is indexed"):
        table.search("anything")
    assert table.history(2)["user_metadata"].to_pylist() == ["renamed", "from the archive"]
    assert Table.open(table.uri, version=1).count(query="message:1") == 1
    with pytest.raises(OptionError, match="a condition cannot limit"):
        table.overwrite(new, where="n = 1", overwrite_schema=True)
    with pytest.raises(SchemaError, match="is partitioned by n, not by name"):
        table.overwrite(new, partition_by=["name"])


def test_random_filters_agree_with_a_plain_loop(tmp_path):
    """H11 over several files: scan, count and search say the same as Python."""
    dice = random.Random(9)
    table = Table.create(tmp_path / "t", SCHEMA, ["day"], TEXT)
    everything = []
    for start in range(0, 600, 100):
        part = rows(start, start + 100, dice.choice("abc"))
        everything += part.to_pylist()
        table.append(part)
    for _ in range(25):
        low, high, day = dice.randrange(600), dice.randrange(600), dice.choice("abcd")
        where = f"(id BETWEEN {low} AND {high} OR day = '{day}') AND NOT value = {low / 2}"
        expected = sorted(
            r["id"]
            for r in everything
            if (low <= r["id"] <= high or r["day"] == day) and r["value"] != low / 2
        )
        assert ids(table.scan(where)) == expected
        assert table.count(where) == len(expected)
        errors = [at for at in expected if at % 2]
        assert ids(table.search("error", where)) == errors
        assert table.count(where, query="error") == len(errors)


def test_rows_without_columns_are_as_many_as_are_found(tmp_path):
    rows = pa.table({"m": ["red fox"] * 5 + ["dog"] * 95, "x": range(100)})
    table = Table.create(tmp_path / "t", rows.schema, options={"indexing.typemap.m": "text"})
    table.append(rows)

    def found(**given):
        return sum(batch.num_rows for batch in table.search("fox", columns=[], **given))

    assert (found(), found(limit=2), found(limit=50), found(where="x < 3")) == (5, 2, 5, 3)
    assert table.count("x < 3", query="fox") == 3
    assert table.count("x > 50", query="fox") == 0


def test_a_table_goes_to_another_process_at_its_version(tmp_path):
    table = Table.create(tmp_path / "t", pa.schema([("x", pa.int64())]))
    table.append(pa.table({"x": [1, 2]}))
    sent = pickle.dumps(table)
    old = pickle.dumps(Table.open(tmp_path / "t", version=0))
    table.append(pa.table({"x": [3]}))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(Table.count, table, "x > 1").result() == 2
    again = pickle.loads(sent)
    assert (again.version, again.count(), again.refresh().count()) == (1, 2, 3)
    again.append(pa.table({"x": [4]}))
    with pytest.raises(TableError, match="older version"):
        pickle.loads(old).append(pa.table({"x": [4]}))


def test_fast_fields_of_text_are_found_by_their_whole_value(tmp_path):
    rows = pa.table({"code": ["a-1", "a-2", "b-1", None], "n": [1, 2, 3, 4]})
    table = Table.create(tmp_path / "t", rows.schema, options={"indexing.fastfields": "code,n"})
    table.append(rows)
    assert table.count(query='code:"a-2"') == 1
    assert table.count(query="code:[a TO b]") == 2
    assert table.count(query="n:[2 TO 3] AND code:b*") == 1
    with pytest.raises(OptionError, match="is indexed as string .* asks for text"):
        table.append(rows, options={"indexing.typemap.code": "text"})


def test_words_among_the_fast_fields_of_an_older_table_keep_nobody_from_searching(tmp_path):
    rows = pa.table({"m": ["red fox", "blue dog"]})
    table = Table.create(tmp_path / "t", rows.schema, options={"indexing.typemap.m": "text"})
    table.append(rows)
    metadata = table.metadata
    settings = {**metadata.configuration, "spark.indextables.indexing.fastfields": "m"}
    log = it.TransactionLog.open(str(tmp_path / "t"))
    action = replace(metadata, configuration=settings)
    log.commit(CommitPlan("SET PROPERTIES", Rule.APPEND, lambda _: (action,)))
    table.refresh()
    assert table.count(query="fox") == 1
    with pytest.raises(OptionError, match="fastfields names column 'm'"):
        table.append(rows)


def test_a_required_field_below_a_null_parent_is_written_and_merged(tmp_path):
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", pa.string(), nullable=False)])
    kind = pa.list_(pa.field("element", inner))
    schema = pa.schema([("n", pa.int64()), ("s", inner), ("l", kind)])
    rows = [
        {"n": 0, "s": None, "l": [None, {"x": 1, "y": "a"}]},
        {"n": 1, "s": {"x": 2, "y": ""}, "l": None},
        {"n": 2, "s": None, "l": []},
    ]
    table = Table.create(tmp_path / "t", schema)
    table.append(pa.Table.from_pylist(rows, schema=schema))
    table.append(pa.Table.from_pylist(rows, schema=schema).slice(1))
    assert table.merge_splits().to_arrow().num_rows
    assert table.files().num_rows == 1
    assert table.scan().read_all().sort_by("n").to_pylist() == [rows[0], rows[1], rows[1], rows[2], rows[2]]
    with pytest.raises(SchemaError, match="NOT NULL"):
        table.append(pa.table({"n": [3], "s": pa.array([{"x": None, "y": ""}])}))


def test_a_partition_column_with_a_capital_letter_is_found_however_it_is_spelled(tmp_path):
    """H4: it has partition values and no statistics, and prunes."""
    schema = pa.schema([("Day", pa.string()), ("n", pa.int64())])
    table = it.Table.create(
        tmp_path / "t", schema, partition_by=["day"], options={"stats.truncation.maxLength": 4}
    )
    table.append(pa.table({"Day": ["monday", "sunday"], "n": [1, 2]}, schema))
    assert table.partition_columns == ("Day",)
    files = table.files("DAY = 'sunday'").to_pylist()
    assert [(file["partition_values"], file["min"]["Day"], file["max"]["n"]) for file in files] == [
        ({"Day": "sunday"}, None, 2)
    ]
    assert table.count("day = 'monday'") == 1
