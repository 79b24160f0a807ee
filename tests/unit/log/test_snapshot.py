"""One version of a table: its files as rows, asked from many sides."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from indextables.errors import CorruptLogError, PredicateError, VersionNotFoundError
from indextables.log.commit.attempt import CommitPlan, Rule
from indextables.model.fields import schema_to_json
from support.builder import SCHEMA, LogBuilder, add, checkpoint_path, commit_path

ENGINES = ("reference", "columnar")
TYPED = pa.schema(
    [
        ("id", pa.int64()), ("name", pa.string()), ("price", pa.decimal128(10, 2)), ("at", pa.timestamp("us", "UTC")),
        ("place", pa.struct([("city", pa.string())])), ("tags", pa.list_(pa.string())), ("day", pa.date32()),
    ]
)  # fmt: skip


@pytest.fixture(params=[False, True], ids=["from commits", "from a checkpoint"])
def builder(request):
    built = LogBuilder().create(TYPED, ["day"])
    whole = add(
        "day=2024-01-02/b.split", partition_values={"day": "2024-01-02"}, size=5, modification_time=1000,
        num_records=3, min_values={"id": "1", "price": "1.50", "at": "1704067200000000", "place.city": "Ulm"},
        max_values={"id": "9", "price": "2.50", "at": "1704153600000000", "place.city": "Ulm"},
        stats='{"nullCount":{"id":0,"place.city":2,"tags":1}}', tags={"k": "v"}, hotcache_start_offset=100,
        hotcache_length=20,
    )  # fmt: skip
    built.append(whole, add("s3://else/where.split", partition_values={"day": None}, num_records=None))
    return built.checkpoint() if request.param else built


@pytest.mark.parametrize("engine", ENGINES)
def test_files_are_rows_with_typed_values(builder, engine):
    files = builder.log().snapshot().files(engine=engine)
    assert files.column_names == [
        "path", "uri", "size", "modification_time", "num_records", "partition_values", "min", "max", "null_count",
        "data_change", "index_offset", "index_length", "tags", "dv", "num_deleted",
    ]  # fmt: skip
    first, second = files.to_pylist()
    assert first["path"] == "day=2024-01-02/b.split"
    assert first["uri"] == f"{builder.store.uri}/day=2024-01-02/b.split"
    assert (first["size"], first["num_records"], first["data_change"]) == (5, 3, True)
    assert first["modification_time"] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert first["partition_values"] == {"day": date(2024, 1, 2)}
    assert (first["min"]["id"], first["max"]["id"]) == (1, 9)
    assert str(first["max"]["price"]) == "2.50"
    assert first["min"]["at"] == datetime(2024, 1, 1, tzinfo=UTC)
    assert first["min"]["place.city"] == "Ulm"
    assert first["min"]["name"] is None
    assert (first["null_count"]["id"], first["null_count"]["place.city"], first["null_count"]["tags"]) == (
        0,
        2,
        1,
    )
    assert (first["index_offset"], first["index_length"]) == (100, 20)
    assert dict(first["tags"]) == {"k": "v"}
    assert second["uri"] == "s3://else/where.split"
    assert second["partition_values"] == {"day": None}
    assert (second["num_records"], second["index_offset"], second["tags"]) == (None, None, None)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_plan_returns_only_the_columns_asked_for_and_counts_what_it_left_out(builder, engine):
    plan = (
        builder.log().snapshot().plan("day = DATE '2024-01-02' AND id > 5", columns=["size"], engine=engine)
    )
    assert plan.files.column_names == ["path", "size"]
    assert plan.files.column("path").to_pylist() == ["day=2024-01-02/b.split"]
    assert (plan.metrics.considered, plan.metrics.pruned_by_partition, plan.metrics.kept) == (2, 1, 1)
    none = builder.log().snapshot().plan("id > 50 AND day IS NOT NULL", engine=engine)
    assert len(none.files) == 0
    assert none.metrics.skipped_by_statistics + none.metrics.pruned_by_partition == 2


def test_a_snapshot_never_changes(builder):
    log = builder.log()
    before = log.snapshot()
    files = before.files()
    builder.append("later").overwrite("all new").checkpoint()
    assert before.files().equals(files)
    assert log.snapshot(max_staleness_s=0).live_paths().to_pylist() == ["all new"]


def test_a_schema_that_grows_is_followed_by_a_handle_that_already_answered():
    """The base was read under the old schema; the answer is the one a fresh handle gives."""
    old = pa.schema([("id", pa.int32()), ("name", pa.string())])
    builder = LogBuilder().create(old)
    builder.append(add("a", min_values={"id": "1"}, max_values={"id": "2"})).checkpoint()
    log = builder.log()
    log.snapshot().files()
    new = pa.schema([("id", pa.int64()), ("name", pa.string()), ("more", pa.float64())])
    builder.log().commit(
        CommitPlan(
            "SCHEMA", Rule.EXCLUSIVE, lambda base: [replace(base.metadata, schema_string=schema_to_json(new))]
        )
    )
    builder.append(add("b", min_values={"id": "5000000000", "more": "1.5"}))
    followed = log.snapshot(max_staleness_s=0)
    assert followed.schema.equals(new)
    assert followed.files().equals(builder.log().snapshot().files(engine="reference"))
    assert followed.plan("id = 1").files.column("path").to_pylist() == ["a"]


def test_many_threads_ask_one_handle_at_once():
    builder = LogBuilder().create(SCHEMA, ["day"]).appends(12, files=5)
    log = builder.log()
    start, answers = threading.Barrier(8, timeout=30), []

    def ask(number):
        start.wait()
        snapshot = log.snapshot()
        columns = [None, ("size",), (), ("min", "max")][number % 4]
        answers.append(snapshot.plan("id IS NULL OR id > 0", columns=columns).files.num_rows)
        answers.append(snapshot.num_files)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [60] * 16


def test_a_version_without_metadata_says_so():
    builder = LogBuilder().create().append("a")
    builder.store.put(commit_path(0), b'{"protocol":{"minReaderVersion":2,"minWriterVersion":2}}')
    with pytest.raises(CorruptLogError, match="no metaData"):
        _ = builder.log().snapshot().schema


def test_a_snapshot_of_a_table_made_anew_does_not_mix_the_two():
    builder = LogBuilder().create().append("old").checkpoint()
    stale = builder.log().snapshot()
    for meta in list(builder.store.list()):
        builder.store.delete(meta.path)
    builder.create().append("new")
    assert checkpoint_path(1).rpartition("/")[2] not in builder.names()
    with pytest.raises(VersionNotFoundError, match="created again"):
        stale.files()


def test_a_text_is_parsed_once_for_each_use_while_it_is_among_the_newest_and_not_long():
    snapshot = LogBuilder().create(SCHEMA).log().snapshot()
    seen: list[str] = []

    def parsed(text, use="words"):
        return snapshot.parsed(text, use, lambda: seen.append(text) or f"{use} {text}")

    assert [parsed("a"), parsed("a"), parsed("a", "filter")] == ["words a", "words a", "filter a"]
    assert seen == ["a", "a"]
    for number in range(100):
        parsed(str(number))
    parsed("99")
    assert len(seen) == 102
    parsed("a")
    assert seen[-1] == "a"
    long = "x" * 10_000
    assert parsed(long) == parsed(long) and seen[-2:] == [long, long]


def test_a_text_that_cannot_be_parsed_is_refused_every_time():
    snapshot = LogBuilder().create(SCHEMA).log().snapshot()
    for _ in range(2):
        with pytest.raises(PredicateError):
            snapshot.filter_of("no such column = 1")
    assert snapshot.filter_of("id = 1") is snapshot.filter_of("id = 1")
    assert snapshot.filter_of(None) is None
