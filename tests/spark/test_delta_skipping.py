"""Delta tables of every make on the cluster: the Spark engine keeps what the local one keeps, and reads the rows."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

import indextables as it
from indextables.errors import CorruptLogError, MissingSplitError, OptionError, PredicateError
from indextables.log.delta import snapshot as snapshots
from indextables.log.delta.snapshot import open_snapshot
from indextables.log.replay.long_tail import LongTail
from indextables.log.replay.rule import choose
from indextables.log.scans import last_scans
from indextables.options import Options
from indextables.spark.replay.engine import SparkEngine
from indextables.spark.session import runtime_of
from indextables.storage.store import open_store
from support.deltahistories import keys_of, live_of, random_log
from support.deltarows import inline_vector
from support.deltatables import DeltaLog, add, remove, schema_string

pytestmark = pytest.mark.spark

MAPPED = {"delta.columnMapping.mode": "name"}


def field(name, kind, physical, number):
    metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def put_rows(log, name, rows, **more):
    """Write a data file and commit it with the statistics of its integer columns."""
    table = pa.table(rows)
    path = f"{log.store.local_path('')}/{name}"
    pq.write_table(table, path)
    bounds = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for column in table.column_names:
        values = [value for value in table.column(column).to_pylist() if value is not None]
        bounds["minValues"][column], bounds["maxValues"][column] = min(values), max(values)
        bounds["nullCount"][column] = table.num_rows - len(values)
    size = Path(path).stat().st_size
    log.commit(add(name, stats={"numRecords": table.num_rows, **bounds}, size=size, **more))


def both_engines(spark, log, where):
    """Files kept by the Spark engine and by the local one."""
    snapshot = open_snapshot(log.store.uri, options=Options.of(None), runtime=runtime_of(spark))
    return kept_by_both(snapshot, where)


def kept_by_both(snapshot, where):
    return tuple(keys_of(snapshot.plan(where, engine=name).files) for name in ("spark", "columnar"))


@pytest.mark.parametrize("kind", ["classic", "v2-json"])
def test_swapped_names_are_kept_apart(spark, tmp_path, kind):
    """Two renames gave each column the other's name; a filter is about the names of today."""
    schema = {"type": "struct", "fields": [field("a", "long", "b", 1), field("b", "long", "a", 2)]}
    log = DeltaLog(open_store(tmp_path / "t"), json.dumps(schema), configuration=MAPPED)
    # Logical a is physical b: 60 to 70; logical b is physical a: 1 to 2.
    put_rows(log, "x.parquet", {"a": [1, 2], "b": [60, 70]})
    put_rows(log, "y.parquet", {"a": [60, 70], "b": [1, 2]})
    log.checkpoint(kind)
    where = "a > 50 AND b < 50"
    options = {"distributedLogReplay.fileThreshold": "0"}
    found = it.delta.read(spark, log.store.uri, where, options=options)
    assert sorted(tuple(row) for row in found.collect()) == [(60, 1), (70, 2)]
    on_spark, local = both_engines(spark, log, where)
    assert on_spark == local
    assert [path for path, *_ in local] == ["x.parquet"]


def test_names_swapped_between_a_partition_column_and_another_are_kept_apart(spark, tmp_path):
    """Partition values and statistics carry physical names, and each is the other's logical one."""
    schema = {"type": "struct", "fields": [field("a", "long", "b", 1), field("b", "long", "a", 2)]}
    log = DeltaLog(open_store(tmp_path / "t"), json.dumps(schema), ("a",), configuration=MAPPED)
    put_rows(log, "x.parquet", {"a": [1, 2]}, partitionValues={"b": "60"})
    log.checkpoint("classic")
    put_rows(log, "y.parquet", {"a": [60, 70]}, partitionValues={"b": "1"})
    where = "a > 50 AND b < 50"
    for options in ({"distributedLogReplay.fileThreshold": "0"}, {"distributedLogReplay.localMemory": "1k"}):
        found = it.delta.read(spark, log.store.uri, where, options=options)
        assert sorted(tuple(row) for row in found.collect()) == [(60, 1), (60, 2)]
        snapshots._recent.invalidate()
    assert (
        kept_by_both(far(spark, log), where)
        == ([("x.parquet", None, log.live["x.parquet", None]["size"])],) * 2
    )


def test_a_column_the_typed_statistics_do_not_know_keeps_every_file(spark, tmp_path):
    """The 33rd column, and one that was added after the checkpoint."""
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(n="long", late="long"))
    stats = {"numRecords": 1, "minValues": {"n": 5}, "maxValues": {"n": 6}, "nullCount": {"n": 0}}
    log.commit(add("f", stats=stats))
    typed = pa.struct([("n", pa.int64())])
    parsed = pa.struct(
        [("numRecords", pa.int64()), ("minValues", typed), ("maxValues", typed), ("nullCount", typed)]
    )
    log.checkpoint("classic", parsed=parsed, text=False)
    for where, count in (("late > 5", 1), ("late = 7 AND n > 1", 1), ("late = 7 AND n > 9", 0), ("n > 9", 0)):
        on_spark, local = both_engines(spark, log, where)
        assert len(on_spark) == len(local) == count, where


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_native_table_without_partitions_is_replayed_and_read(spark, tmp_path, form):
    """The struct of partition values has no field then."""
    uri = str(tmp_path / "t")
    table = it.Table.create(uri, pa.schema([("n", pa.int64()), ("s", pa.string())]))
    for low in (0, 100):
        table.append(pa.table({"n": list(range(low, low + 10)), "s": ["x"] * 10}))
    it.TransactionLog.open(uri, {"checkpoint.format": form}).checkpoint()
    log = it.TransactionLog.open(uri, runtime=runtime_of(spark))
    on_spark, local = (log.snapshot().plan("n > 50", engine=name) for name in ("spark", "columnar"))
    assert on_spark.files.to_pylist() == local.files.to_pylist()
    assert on_spark.files.num_rows == 1
    opened = it.Table.open(uri, spark=spark, options={"distributedLogReplay.fileThreshold": "0"})
    assert opened.to_df().filter("n > 105").count() == 4
    assert opened.files(engine="spark").num_rows == 2


@pytest.mark.parametrize("memory", ["1k", "1g"], ids=["commits on executors", "commits here"])
def test_tables_of_which_no_column_has_statistics_are_replayed(spark, tmp_path, memory):
    """The structs of minima and maxima have no field then, in either dialect."""
    options = {"distributedLogReplay.localMemory": memory}
    log = DeltaLog(open_store(tmp_path / "delta"), schema_string(b="binary"))
    log.commit(add("f", stats={"numRecords": 3}))
    log.checkpoint("classic")
    log.commit(add("g", stats={"numRecords": 4}))
    ours = it.Table.create(tmp_path / "ours", pa.schema([("b", pa.binary())]))
    for value in (b"x", b"y"):
        ours.append(pa.table({"b": [value]}))
    it.TransactionLog.open(str(tmp_path / "ours")).checkpoint()
    ours.append(pa.table({"b": [b"z"]}))
    for table in (
        it.DeltaTable.open(log.store.uri, spark=spark, options=options),
        it.Table.open(tmp_path / "ours", spark=spark, options=options),
    ):
        for where in (None, "b IS NULL", "b = X'78'"):
            on_spark, local = (table.files(where, engine=name) for name in ("spark", "columnar"))
            assert sorted(on_spark["path"].to_pylist()) == sorted(local["path"].to_pylist()), where
    snapshot = open_snapshot(log.store.uri, options=Options.of(options), runtime=runtime_of(spark))
    on_spark, local = (
        snapshot.plan(columns=("min", "num_records"), engine=name).files for name in ("spark", "columnar")
    )
    assert on_spark.sort_by("path").to_pylist() == local.sort_by("path").to_pylist()


def test_the_null_ness_of_an_expression_rules_files_out(spark, tmp_path):
    """It is told from the null counts of the columns in it."""
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(x="long", s="string"))
    for name, nulls in (("full", 0), ("gaps", 2), ("nulls", 4)):
        bounds = {} if nulls == 4 else {"minValues": {"x": 1, "s": "a"}, "maxValues": {"x": 9, "s": "k"}}
        log.commit(add(name, stats={"numRecords": 4, **bounds, "nullCount": {"x": nulls, "s": nulls}}))
    log.checkpoint("classic")
    some, all_but_nulls = ["gaps", "nulls"], ["full", "gaps"]
    expected = {
        "(x > 5) IS NULL": some, "(x > 5 AND s = 'a') IS NULL": some, "upper(s) IS NULL": some,
        "(x + 1) IS NULL": some, "(x IN (1, 2)) IS NULL": some, "(x > 5) IS NOT NULL": all_but_nulls,
        "NOT ((x > 5) IS NULL)": all_but_nulls, "(x <=> 5) IS NULL": [], "NOT (x IS NULL)": all_but_nulls,
    }  # fmt: skip
    for where, wanted in expected.items():
        on_spark, local = both_engines(spark, log, where)
        assert [path for path, *_ in on_spark] == [path for path, *_ in local] == wanted, where
        assert it.delta.files(log.store.uri, where)["path"].to_pylist() == wanted, where


def test_local_times_in_a_filter_are_those_of_the_session(spark, tmp_path):
    """08:30 of UTC is half past midnight in Los Angeles."""
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(t="timestamp"))
    noon = "2024-01-01T08:30:00.000Z"
    log.commit(add("f", stats={"numRecords": 1, "minValues": {"t": noon}, "maxValues": {"t": noon}}))
    log.checkpoint("classic")
    frame = it.delta.replay(spark, log.store.uri)
    where = "t < TIMESTAMP '2024-01-01 01:00:00'"
    schema = pa.schema([("t", pa.timestamp("us", tz="UTC"))])
    found = {}
    for zone in ("America/Los_Angeles", "UTC", "Asia/Tokyo"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            skipped = it.delta.apply_skipping(frame, schema, where).count()
            found[zone] = (
                skipped,
                it.delta.files(log.store.uri, where, spark=spark, engine="spark").num_rows,
            )
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert found == {"America/Los_Angeles": (1, 1), "UTC": (0, 0), "Asia/Tokyo": (0, 0)}


def test_odd_statistics_and_partition_values_are_unknown_on_the_cluster_too(spark, tmp_path):
    """Broken documents, rounded decimals, NaN left out, a widened float, a value that is none of its type."""
    widened = {"delta.typeChanges": [{"toType": "double", "fromType": "float"}]}
    kinds = {"p": "integer", "n": "long", "s": "string", "c": "decimal(21,3)", "w": "double", "d": "double"}
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": widened if name == "w" else {}}
        for name, kind in kinds.items()
    ]
    log = DeltaLog(open_store(tmp_path / "t"), json.dumps({"type": "struct", "fields": fields}), ("p",))
    values = {"n": 5, "s": "m", "w": 3.4, "d": 1.5}
    text = json.dumps({"numRecords": 1, "minValues": values, "maxValues": values, "nullCount": {"n": 0}})
    broken = ["", "null", text[:-9], text.replace("1.5", "NaN"), text.replace('"m"', '"m\\ud800"')]
    rounded = text.replace('"n": 5', '"n": 5, "c": 1.2345678901234568e+17')
    for number, stats in enumerate([*broken, text, rounded]):
        body = add(f"f{number}", partitionValues={"p": "abc" if number == 5 else str(number)})
        body["add"]["stats"] = stats
        log.commit(body)
    predicates = (
        "n > 9", "s > 'n'", "s < 'a'", "c = 123456789012345678.123", "c < 5", "w = double(float('3.4'))",
        "w > 3.5", "w < 3.3", "d > 5", "d < 1", "p > 3", "p IS NULL", "p = 3 AND n < 2", "NOT n = 5",
    )  # fmt: skip
    for kind in (None, "classic", "v2-inline"):
        # Without a checkpoint, executors decode the commits.
        options = {"distributedLogReplay.localMemory": "1k" if kind is None else "1g"}
        if kind is not None:
            log.checkpoint(kind)
        snapshots._recent.invalidate()
        snapshot = open_snapshot(log.store.uri, options=Options.of(options), runtime=runtime_of(spark))
        assert isinstance(snapshot.state.tail, LongTail) == (kind is None)
        frame = it.delta.replay(spark, log.store.uri, options=options).cache()
        for where in {None: predicates[::2], "classic": predicates, "v2-inline": predicates[:3]}[kind]:
            on_spark, local = kept_by_both(snapshot, where)
            skipped = it.delta.apply_skipping(frame, snapshot.schema, where).select("path").collect()
            assert on_spark == local, where
            assert sorted(row["path"] for row in skipped) == [path for path, *_ in local], where
        frame.unpersist()
    assert [path for path, *_ in local] == ["f0", "f1", "f2", "f3", "f4"]


def test_a_partition_value_that_cannot_be_read_is_an_error_not_a_null(spark, tmp_path):
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(p="integer", n="long"), ("p",))
    put_rows(log, "bad.parquet", {"n": [1]}, partitionValues={"p": "abc"})
    put_rows(log, "good.parquet", {"n": [50]}, partitionValues={"p": "7"})
    with pytest.raises(CorruptLogError, match="bad.parquet"):
        it.delta.read(spark, log.store.uri).collect()
    assert [tuple(row) for row in it.delta.read(spark, log.store.uri, "n > 40").collect()] == [(7, 50)]


def test_a_deletion_vector_hides_its_rows_though_the_protocol_does_not_name_the_feature(spark, tmp_path):
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(n="long"), features=())
    put_rows(log, "f.parquet", {"n": [1, 2, 3, 4]}, dv=inline_vector([1, 3]))
    assert sorted(row["n"] for row in it.delta.read(spark, log.store.uri).collect()) == [1, 3]


@pytest.mark.core
def test_one_local_file_has_one_key_on_the_cluster(spark, tmp_path):
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(n="long"))
    log.commit(add("file:/x/f"), add("file:///x/g"), add("h"))
    log.checkpoint("classic")
    log.commit(remove("/x/f"), remove("file:/x/g"))
    on_spark, local = both_engines(spark, log, None)
    assert on_spark == local == [("h", None, 100)]


def test_a_missing_data_file_is_named_in_an_error_of_ours(spark, tmp_path):
    """Whichever way the rows are asked for."""
    log = DeltaLog(open_store(tmp_path / "a table"), schema_string(n="long"))
    put_rows(log, "gone file.parquet", {"n": [1]})
    (tmp_path / "a table" / "gone file.parquet").unlink()
    table = it.DeltaTable.open(log.store.uri, spark=spark)
    doors = {
        "read": lambda: it.delta.read(spark, log.store.uri).collect(),
        "load": lambda: spark.read.format("indextables").load(log.store.uri).collect(),
        "path in SQL": lambda: spark.sql(f"SELECT * FROM indextables.`{tmp_path}/a table`").collect(),
        "to_df": lambda: table.to_df("n > 0").toPandas(),
        "without Spark": lambda: table.scan().read_all(),
    }
    for door, rows in doors.items():
        with pytest.raises(MissingSplitError, match="gone(%20| )file.parquet.*VACUUM"):
            rows()
            pytest.fail(f"{door} found rows")


def far(spark, log, **options):
    """A snapshot whose commits are too large for the memory it may use."""
    snapshots._recent.invalidate()
    given = Options.of({"distributedLogReplay.localMemory": "1k", **options})
    return open_snapshot(log.store.uri, options=given, runtime=runtime_of(spark))


@pytest.mark.parametrize("seed", [4, 6])
def test_large_commits_are_decoded_and_reduced_by_tasks(spark, tmp_path, seed):
    """Adds, removes, re-adds and deletion vectors, with and without a checkpoint below; the driver decodes none."""
    log = random_log(open_store(tmp_path / "t"), random.Random(seed), 14)
    log.commit(*(add(f"late{number}", stats={"numRecords": number}) for number in range(30)))
    snapshot = far(spark, log)
    tail = snapshot.state.tail
    assert isinstance(tail, LongTail)
    questions = (None, "id > 50 OR p = 1")
    answers = [snapshot.plan(where, engine="spark") for where in questions]
    sums = snapshot.sums(("size", "num_records", "dv"), "spark")
    assert not tail.decoded
    assert sums == snapshot.sums(("size", "num_records", "dv"), "columnar")
    for where, found in zip(questions, answers, strict=True):
        local = snapshot.plan(where, engine="columnar")
        assert keys_of(found.files) == keys_of(local.files)
        assert found.metrics == local.metrics
    frame = it.delta.replay(spark, log.store.uri, options={"distributedLogReplay.localMemory": "1k"})
    assert keys_of(frame.select("path", "dv", "size").toArrow()) == live_of(log)
    log.commit(remove("late3"))
    newer = open_snapshot(log.store.uri, options=snapshot.opened_with(), runtime=runtime_of(spark))
    assert isinstance(newer.state.tail, LongTail)
    assert newer.plan(engine="spark").files.num_rows == len(log.live)


def test_a_damaged_line_of_a_large_commit_is_an_error(spark, tmp_path):
    """K5: executors report it with the file's name."""
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(n="long"))
    log.commit(*(add(f"f{number}") for number in range(20)))
    name = f"_delta_log/{1:020d}.json"
    log.store.put(name, log.store.get(name).replace(b'"f7"', b'"f7'))
    with pytest.raises(CorruptLogError, match=f"{1:020d}.json"):
        far(spark, log).plan(engine="spark")


@pytest.mark.parametrize("kind", ["classic", "multipart", "v2-json", "v2-inline"])
def test_a_threshold_is_honoured_though_no_hint_says_the_size(spark, tmp_path, kind):
    """K4: the footers of the checkpoint know how many rows it has."""
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(n="long"))
    log.commit(*(add(f"f{number}") for number in range(30)))
    log.checkpoint(kind, hint=False)

    def engine(threshold):
        options = Options.of({"distributedLogReplay.fileThreshold": threshold})
        found = open_snapshot(log.store.uri, options=options, runtime=runtime_of(spark))
        return found.num_files_hint, choose(options, found.num_files_hint, {"spark"})

    assert engine("30") == (30, "columnar")
    assert engine("29") == (30, "spark")


def test_the_number_of_partitions_is_the_one_that_was_asked_for(spark, tmp_path):
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(n="long"))
    log.commit(*(add(f"f{number}") for number in range(40)))
    log.checkpoint("classic")
    options = Options.of({"distributedLogReplay.numPartitions": "7"})
    snapshot = open_snapshot(log.store.uri, options=options, runtime=runtime_of(spark))
    live = SparkEngine(spark).live(snapshot.request())
    assert live.frame.rdd.getNumPartitions() == 7


@pytest.mark.parametrize("typed", [False, True], ids=["text", "typed"])
def test_unusual_statistics_keep_the_same_files_on_the_cluster(spark, tmp_path, typed):
    """Cut maxima, a minimum above its maximum, and maxima that leave NaN out."""
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(n="long", s="string", d="double"))
    letters, zeros = "x" * 32, dict.fromkeys("nsd", 0)
    bounds = {
        "cut": ({"n": 1, "s": "a", "d": 1.0}, {"n": 2, "s": letters + "\ufffd", "d": 2.0}),
        "half": ({"n": 1, "s": "a", "d": 3.0}, {"n": 2, "s": letters[1:] + "?\ufffd", "d": 4.0}),
        "crossed": ({"n": 9, "s": "m", "d": 9.5}, {"n": 1, "s": "b", "d": 1.5}),
        "sound": ({"n": 50, "s": "y", "d": 50.0}, {"n": 60, "s": "z", "d": 60.0}),
    }
    for name, (low, high) in bounds.items():
        stats = {"numRecords": 1, "minValues": low, "maxValues": high, "nullCount": zeros}
        log.commit(add(name, stats=stats))
    kinds = pa.struct([("n", pa.int64()), ("s", pa.string()), ("d", pa.float64())])
    counts = pa.struct([(name, pa.int64()) for name in "nsd"])
    parsed = pa.struct(
        [("numRecords", pa.int64()), ("minValues", kinds), ("maxValues", kinds), ("nullCount", counts)]
    )
    log.checkpoint("classic", parsed=parsed if typed else None, text=not typed)
    log.drop_commits(log.version)
    face = "\U0001f600"
    expected = {
        f"s = '{letters}{face}'": {"cut", "half", "crossed"},
        f"s = '{letters[1:]}{face}'": {"half", "crossed"},
        f"s LIKE '{letters}{face}%'": {"cut", "half", "crossed"},
        "s > 'y'": {"crossed", "sound"},
        "n = 5": {"crossed"},
        "n > 100": {"crossed"},
        "n IN (5, 55)": {"crossed", "sound"},
        "d = 1.5": {"cut", "crossed"},
        "d BETWEEN 3 AND 3.5": {"half", "crossed"},
        "d IN (1.5, 55)": {"cut", "crossed", "sound"},
        "d IN (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 3.5)": {"half", "crossed"},
        "d > 55": {"cut", "half", "crossed", "sound"},
        "d > 55 AND d < 58": {"crossed", "sound"},
        "d = double('NaN')": {"cut", "half", "crossed", "sound"},
        "d <> 1": {"cut", "half", "crossed", "sound"},
    }
    for where, names in expected.items():
        on_spark, local = both_engines(spark, log, where)
        assert on_spark == local, where
        assert {path for path, *_ in local} == names, where
    files = it.delta.replay(spark, log.store.uri, options={"read.noNaN": "true"})
    table = it.DeltaTable.open(log.store.uri, options={"read.noNaN": "true"})
    above = it.delta.apply_skipping(files, table.schema, "d > 55")
    assert (
        {row.path for row in above.collect()}
        == {"crossed", "sound"}
        == set(table.files("d > 55")["path"].to_pylist())
    )


def test_a_vector_that_does_not_fit_its_file_is_the_error_of_a_local_scan(spark, tmp_path):
    for name, vector, message in (
        ("beyond", inline_vector([7]), "inline of f.parquet names row 7, counted from 0, but the file has 5 rows"),
        ("wrong", {**inline_vector([1]), "cardinality": 2}, "inline of f.parquet holds 1 rows, but the log says 2"),
    ):  # fmt: skip
        log = DeltaLog(open_store(tmp_path / name), schema_string(id="long"))
        (tmp_path / name).mkdir(exist_ok=True)
        put_rows(log, "f.parquet", {"id": [0, 1, 2, 3, 4]}, dv=vector)
        for ask in (
            lambda uri=log.store.uri: it.delta.read(spark, uri).collect(),
            lambda uri=log.store.uri: spark.read.format("indextables").load(uri).count(),
            lambda uri=log.store.uri: it.DeltaTable.open(uri, spark=spark).count(),
            lambda uri=log.store.uri: it.DeltaTable.open(uri).scan().read_all(),
        ):
            with pytest.raises(CorruptLogError, match=message):
                ask()


def test_the_version_before_a_torn_one_is_read_by_number_and_by_time(spark, tmp_path):
    table = it.Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    moment = str(table.history()["timestamp"][1])
    newest = tmp_path / "t" / f"_transaction_log/{3:020d}.json"
    newest.write_bytes(newest.read_bytes()[:20])
    uri = str(tmp_path / "t")
    reader = spark.read.format("indextables")
    assert reader.option("versionAsOf", 2).load(uri).count() == 2
    assert spark.sql(f"SELECT * FROM indextables.`{uri}` VERSION AS OF 2").count() == 2
    assert spark.sql(f"SELECT * FROM indextables.`{uri}` TIMESTAMP AS OF '{moment}'").count() == 2
    with pytest.raises(CorruptLogError, match="can be opened: 0-2"):
        spark.read.format("indextables").load(uri).count()


@pytest.fixture(scope="module")
def by_day(tmp_path_factory):
    """Ten files of ten rows in two partitions, five of them behind a checkpoint."""
    log = DeltaLog(
        open_store(tmp_path_factory.mktemp("days") / "t"), schema_string(n="long", p="string"), ("p",)
    )
    for number in range(10):
        rows = {"n": list(range(number * 10, number * 10 + 10))}
        put_rows(log, f"f{number}", rows, partitionValues={"p": "even" if number % 2 == 0 else "odd"})
        if number == 4:
            log.checkpoint("classic")
    return log


def paths(frame):
    return sorted(row["path"] for row in frame.select("path").collect())


@pytest.mark.core
def test_filters_of_every_form_skip_the_same_files(spark, by_day):
    frame, snapshot = it.delta.replay(spark, by_day.store.uri), it.DeltaTable.open(by_day.store.uri)
    text = "n > 62 AND p = 'odd'"
    for where in (
        text,
        (it.col("n") > 62) & (it.col("p") == "odd"),
        (F.col("n") > 62) & (F.col("p") == "odd"),
        ["n > 62", F.col("p") == "odd"],
    ):
        for schema in (
            snapshot.schema,
            snapshot.spark_schema,
            T.StructType.fromJson(json.loads(snapshot.spark_schema)),
        ):
            assert paths(it.delta.apply_skipping(frame, schema, where)) == ["f7", "f9"]
    assert paths(it.delta.apply_skipping(frame, snapshot.schema)) == sorted(f"f{at}" for at in range(10))
    # What statistics cannot decide skips nothing.
    assert len(paths(it.delta.apply_skipping(frame, snapshot.schema, F.rand() > 2))) == 10


def test_partition_and_data_filters_are_given_apart(spark, by_day):
    frame, schema = it.delta.replay(spark, by_day.store.uri), it.DeltaTable.open(by_day.store.uri).schema
    for by_partition, by_data in (
        ("p = 'odd'", "n > 62"),
        (F.col("p") == "odd", [F.col("n") > 62, "n < 90"]),
    ):
        skipped = it.delta.apply_skipping(frame, schema, partition_filters=by_partition, data_filters=by_data)
        assert paths(skipped)[0] == "f7"
    assert len(paths(it.delta.apply_skipping(frame, schema, partition_filters="p = 'odd'"))) == 5
    assert paths(it.delta.apply_skipping(frame, schema, "n < 5", partition_filters="p = 'even'")) == ["f0"]
    with pytest.raises(PredicateError, match="partition_filters has a filter on n; give it in data_filters"):
        it.delta.apply_skipping(frame, schema, partition_filters="n = 1")
    with pytest.raises(PredicateError, match="data_filters has a filter on p; give it in partition_filters"):
        it.delta.apply_skipping(frame, schema, data_filters="p = 'odd'")


@pytest.mark.core
def test_a_replay_takes_a_version_a_moment_and_a_number_of_partitions(spark, by_day):
    uri = by_day.store.uri
    times = {row["version"]: row["timestamp"] for row in it.DeltaTable.open(uri).history().to_pylist()}
    assert paths(it.delta.replay(spark, uri, version=3)) == ["f0", "f1", "f2"]
    assert paths(it.delta.replay(spark, uri, as_of=times[3])) == ["f0", "f1", "f2"]
    assert it.delta.read(spark, uri, as_of=times[3]).count() == 30
    spread = it.delta.replay(spark, uri, num_partitions=3)
    assert (spread.rdd.getNumPartitions(), len(paths(spread))) == (3, 10)
    with pytest.raises(OptionError, match="num_partitions is 0"):
        it.delta.replay(spark, uri, num_partitions=0)
    with pytest.raises(OptionError, match="not both"):
        it.delta.replay(spark, uri, version=1, as_of=times[3])


def test_several_scans_of_one_query_replay_the_log_once(spark, by_day):
    """Each scan prunes for itself, at once with the others, and what one read of the log serves all."""
    uri = by_day.store.uri
    snapshots._recent.invalidate()
    frame = spark.read.format("indextables").load(uri)
    before = len(last_scans(uri, 1000))
    parts = [frame.filter(f"n >= {at * 10} AND n < {at * 10 + 5}") for at in range(5)]
    rows = reduce(lambda one, two: one.unionByName(two), parts)
    with ThreadPoolExecutor(4) as threads:
        counts = list(threads.map(lambda _: rows.count(), range(4)))
    assert counts == [25] * 4
    scans = last_scans(uri, 1000)[: len(last_scans(uri, 1000)) - before]
    assert len(scans) >= 5
    assert len([scan for scan in scans if "read" in scan.seconds]) == 1
