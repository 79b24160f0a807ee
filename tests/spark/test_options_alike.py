"""Every option means the same to Python and to Spark: as an option of one call, and as a property of the table."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import indextables as it
from indextables.errors import ConflictError, Error, PredicateError
from indextables.options import KEYS
from support.alike import InPython, OnSpark, Run, Save, sorted_rows, written

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("message", pa.string()),
        ("code", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)
LONG = "a rather long message that goes on"


def rows(*ids: int) -> pa.Table:
    noon = dt.datetime(2024, 3, 10, 12, tzinfo=dt.UTC)
    made = [{"id": at, "message": f"{LONG} {at:03d}", "code": f"c-{at}", "at": noon} for at in ids]
    return pa.Table.from_pylist(made, schema=SCHEMA)


INDEXED = {
    "indexing.typemap.message": "text",
    "indexing.typemap.code": "string",
    "indexing.tokenizer.message": "en_stem",
    "indexing.indexrecordoption.message": "freq",
    "indexing.fastfields": "id,at",
}
# Values other than the defaults, in sets that show different sides of a table.
WRITING: dict[str, dict[str, str]] = {
    "small splits, short statistics": {
        **INDEXED,
        "write.maxRowsPerSplit": "2",
        "write.maxOpenSplits": "1",
        "stats.truncation.maxLength": "9",
        "stats.truncation.strategy": "truncate",
        "dataSkippingNumIndexedCols": "2",
        "checkpoint.interval": "2",
        "checkpoint.actionsPerPart": "1",
        "checkpoint.format": "json",
        "transaction.compression.enabled": "false",
        "transaction.txnRetentionHours": "0",
        "indexFilters.enabled": "true",
        "deletionVectors.enabled": "true",
        "deletionVectors.foldShare": "0.6",
    },
    "Parquet in the log, merges after writes": {
        "dataSkippingStatsColumns": "message",
        "stats.truncation.enabled": "false",
        "checkpoint.interval": "3",
        "checkpoint.format": "parquet",
        "checkpointRetention.duration": "0",
        "transaction.compression.codec": "gzip",
        "transaction.compression.gzip.level": "9",
        "mergeOnWrite.enabled": "true",
        "mergeOnWrite.fanIn": "2",
        "purgeOnWrite.enabled": "true",
        "merge.targetBytes": "1M",
        "merge.skipSplitThreshold": "0.9",
        "merge.maxSourceSplitsPerMerge": "2",
        "skippedFiles.cooldownHours": "0",
    },
    "no checkpoints, tiny splits": {
        "checkpoint.enabled": "false",
        "write.targetSplitBytes": "1",
        "cleanup.enabled": "false",
        "cleanup.failurePolicy": "fail",
        "logRetention.duration": "0",
        "purge.defaultRetentionHours": "30",
        "purge.minRetentionHours": "3",
        "purge.retentionCheckEnabled": "false",
    },
}
READING = {
    "search.maxHits": "1",
    "search.defaultOperator": "and",
    "search.lowercaseOperators": "true",
    "timeZone": "Asia/Kolkata",
    "transaction.useOptimized": "false",
    "transaction.cache.enabled": "false",
    "distributedLogReplay.enabled": "false",
    "distributedLogReplay.fileThreshold": "0",
    "distributedLogReplay.numPartitions": "2",
    "checkpoint.parallelism": "1",
}
ELSEWHERE = {
    "write.timestamps": "a DataFrame has no nanoseconds",
    "write.optimizeWrite": "about the tasks of a Spark job",
    "read.allowedRoots": "tests/unit/log/test_untrusted_tables.py",
    "read.allowCloneSource": "tests/unit/log/delta/test_refusals.py",
    "read.noNaN": "about Delta tables: tests/spark/test_delta_skipping.py",
    "indexing.auto": "about the first write of a table: tests/cli/test_load.py, tests/spark/test_indexed_columns_on_spark.py",
    "protocol.checkEnabled": "tables of a newer protocol are refused below Python and Spark",
    "aggregatePushdown.enabled": "about plans of Spark: tests/spark/test_answers_from_the_log.py",
    "indexCache.dir": "about remote storage",
    "indexCache.maxBytes": "about remote storage",
    "checkpoint.read.timeoutSeconds": "a time limit",
    "transaction.cache.expirationSeconds": "a time limit",
    "transaction.maxStalenessSeconds": "a time limit",
    "transaction.retry.maxAttempts": "tests/unit/test_commit_conflicts.py",
    "transaction.retry.baseDelayMs": "tests/unit/test_commit_conflicts.py",
    "transaction.retry.maxDelayMs": "tests/unit/test_commit_conflicts.py",
    "distributedLogReplay.localMemory": "where a log is replayed: tests/spark/test_engine.py",
    "stats.adaptive": "tests/unit/table/test_suggested_statistics.py, and on Spark tests/spark/test_verbs_alike.py",
    "stats.suggestedColumns": "written by ANALYZE ... FOR SKIPPING STORE, which test_verbs_alike.py runs on both",
    "repair.validateSplits": "asked below",
    "repair.preserveStats": "asked below",
    "repair.parallelism": "asked below",
    "repair.failOnMissing": "asked below",
}


def test_every_option_is_asked_of_both_or_says_why_not() -> None:
    asked = {key for group in WRITING.values() for key in group} | set(READING)
    assert {key for key in asked if not key.startswith("indexing.t") and "recordoption" not in key} | set(
        ELSEWHERE
    ) == set(KEYS)
    assert not asked & set(ELSEWHERE)


STEPS: list[Save | Run] = [
    Save(rows(1, 2, 3)),
    Save(rows(4, 5, 6)),
    Save(rows(5), mode="overwrite", where="id = 5"),
    Run(lambda t: t.delete("id = 2"), "DELETE FROM INDEXTABLES '{path}' WHERE id = 2"),
    Run(lambda t: t.merge_splits(), "MERGE SPLITS '{path}'"),
    Run(lambda t: t.purge(dry_run=True), "PURGE INDEXTABLE '{path}' DRY RUN"),
    Run(lambda t: t.describe(), "DESCRIBE INDEXTABLES STATE '{path}'"),
]


@pytest.mark.parametrize("given", ["with each call", "as properties"])
@pytest.mark.parametrize("name", WRITING)
def test_options_of_writing_have_the_same_effect(
    spark: SparkSession, tmp_path: Path, name: str, given: str
) -> None:
    chosen = WRITING[name]
    python, on_spark = InPython(tmp_path / "python"), OnSpark(spark, tmp_path / "spark")
    if given == "as properties":
        for side in (python, on_spark):
            side.save(Save(rows(0)))
            it.Table.open(side.path).update_properties(chosen)
    for step in STEPS:
        if isinstance(step, Run):
            assert python.run(step) == on_spark.run(step), step.statement
            continue
        options = tuple(chosen.items()) if given == "with each call" else ()
        for side in (python, on_spark):
            side.save(Save(step.data, step.mode, where=step.where, options=options))
    left, right = written(python.path), written(on_spark.path)
    for version, (one, other) in enumerate(zip(left["commits"], right["commits"], strict=True)):
        assert one == other, f"version {version}"
    assert left == right


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("told") / "t")
    table = it.Table.create(path, SCHEMA, options=INDEXED)
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5, 6))
    return path


@pytest.mark.parametrize("key", READING)
def test_an_option_of_reading_has_the_same_effect(spark: SparkSession, told: str, key: str) -> None:
    options = {key: READING[key]}
    plain = it.Table.open(told, options=options)
    within = it.Table.open(told, options=options, spark=spark)

    reader = spark.read.format("indextables").options(**options)

    def found(search: Any, query: str) -> tuple[str, Any]:
        try:
            rows = search(query)
        except Error as refusal:
            return type(refusal).__name__, str(refusal)
        return "", sorted_rows(rows.to_pylist())

    ways = [
        lambda query: within.search(query).read_all(),
        lambda query: within.search_df(query).toArrow(),
        lambda query: reader.option("query", query).load(told).toArrow(),
    ]
    for query in ("message:long", "message:long 004", "id:[2 TO 5]"):
        expected = found(lambda text: plain.search(text).read_all(), query)
        assert [found(way, query) for way in ways] == [expected] * 3, query
    where = "at >= '2024-03-10 15:00:00'"
    assert plain.count(where) == within.count(where)
    assert plain.count(where) == within.to_df(where).count()
    assert plain.files(where).equals(within.files(where))


def test_times_in_a_filter_are_those_of_the_option_whatever_the_zone_of_the_session(
    spark: SparkSession, told: str
) -> None:
    committed = it.Table.open(told).history()["timestamp"][0].as_py()
    for zone in ("Asia/Kolkata", "America/New_York"):
        plain = it.Table.open(told, options={"timeZone": zone})
        within = it.Table.open(told, options={"timeZone": zone}, spark=spark)
        local = str(dt.datetime(2024, 3, 10, 12, tzinfo=dt.UTC).astimezone(ZoneInfo(zone)))[:19]
        for where in (f"at = '{local}'", it.col("at") >= local, f"at < TIMESTAMP '{local}' OR id = 2"):
            expected = sorted_rows(plain.scan(where).read_all().to_pylist())
            assert expected, where
            assert sorted_rows(within.to_df(where).toArrow().to_pylist()) == expected, where
        with pytest.raises(PredicateError, match=f"the option timeZone is {zone}.*session.timeZone"):
            within.to_df("hour(at) = 12")
        # A moment after the newest version for this zone, and years before it for none.
        at = str((committed + dt.timedelta(seconds=1)).astimezone(ZoneInfo(zone)))[:19]
        asked = spark.read.format("indextables").options(timestampAsOf=at, timeZone=zone)
        assert it.Table.open(told, as_of=at, options={"timeZone": zone}).version == 2
        assert asked.load(told).count() == 6


@pytest.mark.parametrize(
    "options",
    [{}, {"repair.validateSplits": "false"}, {"repair.validateSplits": "deep", "repair.preserveStats": "false"},
     {"repair.failOnMissing": "true", "repair.parallelism": "1"}],
    ids=str,
)  # fmt: skip
def test_an_option_of_repair_has_the_same_effect(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    path = str(tmp_path / "t")
    table = it.Table.create(path, SCHEMA, options=INDEXED)
    for at in range(3):
        table.append(rows(at))
    (Path(path) / table.files()["path"][0].as_py()).unlink()
    source, heard, made = f"{path}/_transaction_log", [], []
    for name, session in (("python", None), ("spark", spark)):
        statement = f"REPAIR INDEXFILES TRANSACTION LOG '{source}' AT LOCATION '{tmp_path}/{name}'"
        try:
            found = it.sql(statement, spark=session, options=options).to_pylist()
        except Error as refusal:
            found = [type(refusal).__name__, str(refusal)]
        heard.append(str(found).replace(f"/{name}", "/TARGET"))
        made.append(sorted(item.name for item in Path(tmp_path, name).glob("*")))
    assert heard[0] == heard[1]
    assert made[0] == made[1]


def test_a_value_that_an_option_cannot_have_is_refused_with_the_same_words(
    spark: SparkSession, told: str
) -> None:
    def heard(ask: Any, *args: Any, **options: Any) -> str:
        try:
            ask(*args, **options)
        except Error as refusal:
            return f"{type(refusal).__name__}: {refusal}"
        return "accepted"

    table, frame = it.Table.open(told), spark.range(1)
    before = written(told)
    found: dict[str, list[str]] = {}
    for key in [*KEYS, "write.maxRowPerSplit", "indexing.typemap.nope", "indexing.tokenizer.message"]:
        bad = {key: "none such"}
        reader = spark.read.format("indextables").options(**bad)
        writer = frame.write.format("indextables").mode("append").options(**bad)
        properties = f"ALTER TABLE indextables.`{told}` SET TBLPROPERTIES ('{key}' = 'none such')"
        if key.startswith("indexing.t"):
            continue
        answers = [
            heard(it.Table.open, told, options=bad),
            heard(reader.load, told),
            heard(it.sql, f"DESCRIBE INDEXTABLES STATE '{told}'", options=bad),
        ]
        assert answers == answers[:1] * 3, key
        found[key] = answers
        if answers[0] == "accepted" or key == "write.maxRowPerSplit":
            continue
        assert heard(writer.save, told) == answers[0], key
        assert heard(table.append, rows(9), options=bad) == answers[0], key
        refused = heard(table.update_properties, bad)
        assert refused == heard(spark.sql, properties), key
        assert "none such" in refused, key
    accepted = {key for key, answers in found.items() if answers[0] == "accepted"}
    assert accepted == {
        "dataSkippingStatsColumns", "indexCache.dir", "indexing.fastfields", "read.allowedRoots", "timeZone",
        "stats.truncation.strategy", "stats.suggestedColumns",
    }  # fmt: skip
    assert written(told) == before


WRONG: dict[str, Save] = {
    "an option that is none": Save(rows(1), options=(("write.maxRowsPerSplt", "1"),)),
    "a condition and whole partitions": Save(rows(1), mode="overwrite", where="id = 1", dynamic=True),
    "two columns of one name": Save(rows(1).append_column("ID", pa.array([1]))),
    "a column of no fields": Save(
        rows(1).append_column("e", pa.array([{}], pa.struct([]))), merge_schema=True
    ),
    "a narrower type": Save(rows(1).set_column(0, "id", pa.array(["1"])), merge_schema=True),
    "no column that the table has": Save(pa.table({"other": [1]})),
    "another index of a column": Save(rows(1), options=(("indexing.tokenizer.message", "raw"),)),
    "an index of a column of numbers": Save(rows(1), options=(("indexing.typemap.id", "text"),)),
    "a tokenizer that is none": Save(rows(1), options=(("indexing.tokenizer.code", "klingon"),)),
    "rows outside the condition": Save(rows(1, 2), mode="overwrite", where="id = 2"),
}


def test_a_write_that_cannot_be_made_is_refused_with_the_same_words(
    spark: SparkSession, tmp_path: Path
) -> None:
    python, on_spark = InPython(tmp_path / "python"), OnSpark(spark, tmp_path / "spark")
    heard: dict[str, dict[str, str]] = {}
    for side in (python, on_spark):
        side.save(Save(rows(1, 2), options=tuple(INDEXED.items())))
        before = written(side.path)
        for name, step in WRONG.items():
            with pytest.raises(Exception) as refusal:  # noqa: PT011 - which one is what the test is about
                side.save(step)
            said = f"{type(refusal.value).__name__}: {refusal.value}"
            heard.setdefault(name, {})[type(side).__name__] = said.replace(side.path, "TABLE")
        assert written(side.path) == before
    assert {name: said["OnSpark"] for name, said in heard.items()} == {
        name: said["InPython"] for name, said in heard.items()
    }


def test_what_a_sender_sends_again_is_not_written_again(spark: SparkSession, tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("python", "spark")]
    for path in paths:
        it.Table.create(path, SCHEMA).append(rows(0))
    sent = [("a", 1), ("a", 1), ("a", 0), ("b", 0), ("a", 2)]
    frame = spark.createDataFrame(rows(1))
    for app, number in sent:
        it.Table.open(paths[0]).append(rows(1), txn=it.TxnAction(app_id=app, version=number))
        writer = frame.write.format("indextables").mode("append")
        writer.options(txnAppId=app, txnVersion=number).save(paths[1])
    assert [it.Table.open(path).count() for path in paths] == [4, 4]
    assert [it.Table.open(path).version for path in paths] == [4, 4]


def test_an_overwrite_of_a_version_that_is_no_longer_the_newest_is_refused_alike(
    spark: SparkSession, tmp_path: Path
) -> None:
    heard = []
    for name in ("python", "spark"):
        path = str(tmp_path / name)
        table = it.Table.create(path, SCHEMA)
        table.append(rows(0))
        table.append(rows(1))
        with pytest.raises(ConflictError) as refusal:
            if name == "python":
                table.overwrite(rows(2), expected_version=1)
            else:
                writer = spark.createDataFrame(rows(2)).write.format("indextables").mode("overwrite")
                writer.option("expectedVersion", 1).save(path)
        heard.append(re.sub(r"part-[0-9a-f-]+", "part", str(refusal.value)).replace(path, "TABLE"))
        assert it.Table.open(path).count() == 2
        assert len(list(Path(path).rglob("*.split"))) == 2, "what was written in vain is deleted"
    assert heard[0] == heard[1]
