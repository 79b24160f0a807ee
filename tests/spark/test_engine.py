"""The Spark engine gives what the local engines give, keeps what it need not send, and shares what it has."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from functools import reduce

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import indextables as it
from indextables.errors import CorruptLogError, Error
from indextables.log.delta.snapshot import open_snapshot
from indextables.log.replay.long_tail import LongTail
from indextables.options import Options
from indextables.spark.replay.engine import SparkEngine, replay_frame
from indextables.spark.replay.shared import needs_of
from indextables.spark.session import runtime_of
from indextables.storage.store import open_store
from support.deltahistories import PARSED, PREDICATES, keys_of, live_of, random_log
from support.deltatables import LOG, DeltaLog, add, remove, schema_string, vector
from support.spark_versions import needs

pytestmark = pytest.mark.spark

OPTIONS = Options.of(None)
SCHEMA = pa.schema([("p", pa.int32()), ("id", pa.int64()), ("name", pa.string())])
# Plans of more branches take longer to optimise than their jobs take to run.
TABLES_PER_JOB = 25


def in_jobs(frames):
    """Rows of many frames of one form, several to a job."""
    rows = []
    for start in range(0, len(frames), TABLES_PER_JOB):
        rows += reduce(
            lambda one, two: one.unionByName(two), frames[start : start + TABLES_PER_JOB]
        ).collect()
    return rows


@pytest.mark.slow
def test_random_delta_histories_replay_as_the_protocol_says(spark, tmp_path):
    """K1, K2: with deletion vectors, re-adds, checkpoints of each kind; with predicates, as the local engine."""
    frames, logs = [], {}
    for seed in range(24):
        log = random_log(open_store(tmp_path / str(seed)), random.Random(seed), 1 + seed % 13)
        snapshot = open_snapshot(log.store.uri, options=OPTIONS)
        predicate = PREDICATES[seed % len(PREDICATES)]
        frame = replay_frame(spark, snapshot.request())
        kept = it.delta.apply_skipping(frame, snapshot.schema, predicate) if predicate else frame
        frames.append(frame.select(F.lit(f"all {seed}").alias("log"), "path", "dv", "size"))
        frames.append(kept.select(F.lit(f"kept {seed}").alias("log"), "path", "dv", "size"))
        logs[f"all {seed}"] = live_of(log)
        logs[f"kept {seed}"] = keys_of(snapshot.plan(predicate, engine="columnar").files)
    found = {name: [] for name in logs}
    for row in in_jobs(frames):
        found[row["log"]].append((row["path"], row["dv"], row["size"]))
    assert {name: sorted(rows, key=str) for name, rows in found.items()} == logs


def native_log(directory, seed, commits, **options):
    """A native table with a random history and a checkpoint somewhere in it."""
    rng = random.Random(seed)
    log = it.TransactionLog.open(str(directory), {"checkpoint.interval": "1000", **options})
    log.initialize(SCHEMA, ["p"])
    live = set()
    for number in range(commits):
        if live and rng.random() < 0.3:
            gone = rng.sample(sorted(live), 1)
            log.remove_files(gone)
            live -= set(gone)
        paths = [f"p=1/f{rng.randint(0, 30)}.split" for _ in range(3)]
        log.add_files([_native_add(path, rng) for path in dict.fromkeys(paths)])
        live |= set(paths)
        if number == commits // 2:
            log.checkpoint()
    return log


def _native_add(path, rng):
    low = rng.randint(0, 90)
    return it.AddAction(
        path=path, partition_values={"p": rng.choice(["1", "2", None])}, size=rng.randint(1, 99), num_records=10,
        min_values={"id": str(low), "name": f"n{low}"}, max_values={"id": str(low + 9), "name": f"n{low}z"},
    )  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"checkpoint.actionsPerPart": "5", "checkpoint.format": "json"},
        {"transaction.compression.enabled": "false"},
        {"checkpoint.format": "parquet"},
    ],
    ids=["plain", "parts", "uncompressed", "parquet"],
)
def test_native_histories_replay_as_locally(spark, tmp_path, options):
    """K1: columnar == Spark == reference, for each form of checkpoint."""
    log = native_log(tmp_path / "t", 3, 14, **options)
    snapshot = it.TransactionLog.open(str(tmp_path / "t"), options, runtime=runtime_of(spark)).snapshot()
    for predicate in (None, "id > 50 AND p = 1"):
        on_spark = snapshot.plan(predicate, engine="spark")
        local = snapshot.plan(predicate, engine="columnar")
        assert (
            on_spark.files.to_pylist()
            == local.files.to_pylist()
            == snapshot.plan(predicate, engine="reference").files.to_pylist()
        )
        assert on_spark.files.schema == local.files.schema
        assert on_spark.metrics == local.metrics
        assert on_spark.replay.engine == "spark"
    assert log.latest_version() == snapshot.version
    summed = ("size", "num_records", "index_length", "path")
    assert snapshot.sums(summed, "spark") == snapshot.sums(summed, "columnar")


@pytest.mark.parametrize("partitions", [["p"], []], ids=["partitioned", "plain"])
@pytest.mark.parametrize("checkpoint", [True, False], ids=["checkpoint", "commits only"])
def test_large_native_commits_are_decoded_and_reduced_by_tasks(spark, tmp_path, checkpoint, partitions):
    """K1: adds, removes and re-adds, with and without a checkpoint below; the driver decodes none."""
    uri, rng = str(tmp_path / "t"), random.Random(8)
    log = it.TransactionLog.open(uri, {"checkpoint.enabled": "false"})
    log.initialize(SCHEMA, partitions)
    for number in range(9):
        names = {f"f{rng.randint(0, 20)}.split" for _ in range(6)}
        log.add_files([_native_add(name, rng) for name in sorted(names)])
        log.remove_files(sorted(names)[:2])
        if checkpoint and number == 4:
            log.checkpoint()
    far = {"distributedLogReplay.localMemory": "1k"}
    snapshot = it.TransactionLog.open(uri, far, runtime=runtime_of(spark)).snapshot()
    tail, local = snapshot.state.tail, log.snapshot()
    assert isinstance(tail, LongTail)
    assert snapshot.num_files_hint is not None
    for where in (None, "id > 50 OR p = 1"):
        found, expected = snapshot.plan(where, engine="spark"), local.plan(where, engine="reference")
        assert found.files.to_pylist() == expected.files.to_pylist()
        assert found.metrics == expected.metrics
        assert found.replay.rows_on_executors == found.metrics.considered
    assert snapshot.sums(("size", "num_records"), "spark") == local.sums(("size", "num_records"))
    assert not tail.decoded
    frame = replay_frame(spark, snapshot._request(snapshot.state, None, None, explain=False))
    assert sorted(row.path for row in frame.select("path").collect()) == local.live_paths().to_pylist()
    # An engine of this process reads what the executors would have, and a table is read through it.
    assert snapshot.plan(engine="columnar").files.to_pylist() == local.files().to_pylist()
    damaged = tmp_path / "t" / "_transaction_log" / f"{local.version:020d}.json"
    damaged.write_bytes(b'{"add":{"path":"a"},"remove":{"path":"b"}}\n{"commitInfo":{}}\n')
    with pytest.raises(CorruptLogError, match=f"{local.version:020d}.json"):
        it.TransactionLog.open(uri, far, runtime=runtime_of(spark)).snapshot().plan(engine="spark")


@pytest.fixture
def many(tmp_path):
    """A Delta table of 2,000 files whose filter keeps one in a hundred."""
    log = DeltaLog(
        open_store(tmp_path / "many"), schema_string(p="integer", id="long", name="string"), ("p",)
    )
    for number in range(2000):
        stats = {
            "numRecords": 10,
            "minValues": {"id": number * 10},
            "maxValues": {"id": number * 10 + 9},
            "nullCount": {"id": 0},
        }
        body = add(f"f{number}", stats=stats, partitionValues={"p": str(number % 4)})["add"]
        log.live[f"f{number}", None] = body
    return log


@pytest.mark.parametrize("typed", [False, True], ids=["json statistics", "typed statistics"])
def test_only_kept_files_leave_the_executors(spark, many, typed):
    """K6: the anti-join and the skipping filter run before anything is collected."""
    many.checkpoint("v2-parquet", parsed=PARSED if typed else None, text=not typed)
    many.commit(
        remove("f1000"),
        add(
            "late",
            stats={"numRecords": 1, "minValues": {"id": 10_001}, "maxValues": {"id": 10_001}},
            partitionValues={"p": "1"},
        ),
    )
    snapshot = open_snapshot(many.store.uri, options=OPTIONS, runtime=runtime_of(spark))
    where = "id >= 10000 AND id < 10200 AND p < 2"
    found, local = snapshot.plan(where, engine="spark"), snapshot.plan(where, engine="columnar")
    assert keys_of(found.files) == keys_of(local.files)
    assert found.metrics == local.metrics
    assert found.replay.rows_collected == found.files.num_rows - 1 < 15
    summed = ("size", "num_records", "dv")
    assert snapshot.sums(summed, "spark") == snapshot.sums(summed, "columnar")
    frame = it.delta.apply_skipping(it.delta.replay(spark, many.store.uri), snapshot.schema, where)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "LeftAnti" in plan
    assert "Filter" in plan
    assert frame.count() == local.files.num_rows


@needs("filters that reach Parquet past a column of Python's")
def test_typed_statistics_are_tested_by_the_parquet_reader(spark, many):
    """K6: comparisons reach Parquet's own row-group filter."""
    from indextables.predicate.build.from_sql import as_node
    from indextables.spark.replay.pushdown import pushable

    many.checkpoint("classic", parsed=PARSED, text=False)
    snapshot = open_snapshot(many.store.uri, options=OPTIONS)
    request = snapshot.request(as_node("id > 15000 AND name LIKE 'x%'", snapshot.schema, "UTC"))
    live = SparkEngine(spark).live(request)
    pushed = live.frame.where(pushable(request.where, live.frame, request).condition).select("path")
    plan = pushed._jdf.queryExecution().executedPlan().toString()
    assert "PushedFilters" in plan
    assert "maxValues.id" in plan[plan.index("PushedFilters") :]
    assert pushed.count() == 500


def test_scans_of_one_version_share_one_replay_until_the_version_changes(spark, many):
    """K: parallel planning."""
    many.checkpoint("classic")
    snapshot = open_snapshot(many.store.uri, options=OPTIONS, runtime=runtime_of(spark))
    engine = SparkEngine(spark)
    first = engine.live(snapshot.request())
    assert not first.frame.is_cached
    again = engine.live(snapshot.request())
    assert again.frame.is_cached
    assert engine.live(snapshot.request()).frame is again.frame
    many.commit(remove("f7"))
    newer = open_snapshot(many.store.uri, options=OPTIONS, runtime=runtime_of(spark))
    assert keys_of(newer.plan(engine="spark").files) == live_of(many)
    again.frame.unpersist()


def test_scans_in_turn_keep_only_what_they_use(spark, many):
    """K6: the texts of statistics, most of a log, stay out of the cluster's memory until a scan shows them."""
    many.checkpoint("classic")
    many.commit(remove("f1000"))
    snapshot = open_snapshot(many.store.uri, options=OPTIONS, runtime=runtime_of(spark))
    questions = [
        ("id >= 10000 AND id < 10200", ["size"]),
        ("id < 300 AND p = 1", ["partition_values"]),
        (None, ["modification_time", "num_records"]),
        ("id = 7", ["size"]),
        ("id = 7", None),
    ]
    for where, columns in questions:
        found, local = (snapshot.plan(where, columns, engine) for engine in ("spark", "columnar"))
        assert found.files.sort_by("path").to_pylist() == local.files.sort_by("path").to_pylist()
        assert found.metrics == local.metrics
        kept = snapshot.state.memo["spark"].again(needs_of(snapshot.request(None, frozenset())))
        assert ("raw_stats" in kept.columns) == (columns is None)
        assert kept.is_cached


@pytest.mark.parametrize("engine", ["spark", "columnar", "reference"])
def test_of_files_with_deletion_vectors_the_others_are_not_collected(spark, many, engine):
    """What a read of a table with few deletion vectors needs of the log before it starts."""
    for number in (3, 1000, 1999):
        many.live[f"f{number}", f"u{number:020d}@1"] = {
            **many.live.pop((f"f{number}", None)), "deletionVector": vector(number),
        }  # fmt: skip
    many.checkpoint("classic")
    many.commit(remove("f1000", dv=vector(1000)), add("late", dv=vector(7)), add("plain"))
    session = {"distributedLogReplay.fileThreshold": "0"} if engine == "spark" else {}
    if engine == "reference":
        session = {"transaction.useOptimized": "false"}
    snapshot = open_snapshot(many.store.uri, options=Options.of(session), runtime=runtime_of(spark))
    found = snapshot.files_with_vectors(None, frozenset({"deletion_vector"}))
    assert found.replay.engine == engine
    assert sorted(found.files.column("path").to_pylist()) == ["f1999", "f3", "late"]
    assert found.metrics.considered == found.files.num_rows == 3
    some = snapshot.files_with_vectors(snapshot.filter_of("id < 100"), frozenset())
    assert sorted(some.files.column("path").to_pylist()) == ["f3", "late"]
    if engine == "spark":
        assert found.replay.rows_collected == 2


@pytest.fixture
def damaged(tmp_path):
    """Eight commits and a checkpoint over them, one of whose sidecars is damaged."""
    log = DeltaLog(open_store(tmp_path / "damaged"), schema_string(id="long"))
    for number in range(8):
        log.commit(add(f"f{number}", stats={"numRecords": 1}))
    log.checkpoint("v2-json")
    sidecar = next(meta.path for meta in log.store.list(f"{LOG}/_sidecars"))
    data = bytearray(log.store.get(sidecar))
    data[200:400] = bytes(200)
    log.store.put(sidecar, bytes(data))
    return log


def test_a_damaged_checkpoint_leads_to_the_commits_below_it(spark, damaged):
    """K5, C6: on the cluster as locally."""
    snapshot = open_snapshot(damaged.store.uri, options=OPTIONS, runtime=runtime_of(spark))
    found = snapshot.plan(engine="spark").files
    assert keys_of(found) == keys_of(snapshot.plan(engine="local").files) == live_of(damaged)
    assert found.num_rows == 8


def test_a_damaged_checkpoint_without_commits_below_it_is_an_error(spark, damaged):
    """K5: never fewer files."""
    damaged.drop_commits(damaged.version)
    damaged.commit(add("late"))
    with pytest.raises(Error, match="checkpoint"):
        it.delta.files(damaged.store.uri, spark=spark, engine="spark")


@pytest.mark.parametrize("dialect", ["delta", "native"])
def test_a_damaged_commit_is_an_error_on_the_cluster(spark, tmp_path, dialect):
    """K5: a line that cannot be read is not a null row, and not a lost commit."""
    if dialect == "delta":
        log = DeltaLog(open_store(tmp_path / "t"), schema_string(id="long"))
        log.commit(add("one"))
        store = log.store
        name = f"{LOG}/{1:020}.json"
    else:
        native_log(tmp_path / "t", 3, 6, **{"transaction.compression.enabled": "false"})
        store = open_store(tmp_path / "t")
        name = max(
            meta.path
            for meta in store.list("_transaction_log")
            if meta.path.endswith(".json") and "check" not in meta.path
        )
    store.put(name, store.get(name)[:-9] + b"\n")
    with pytest.raises(Error, match=name.rpartition("/")[2]):
        if dialect == "delta":
            it.delta.files(store.uri, spark=spark, engine="spark")
        else:
            it.TransactionLog.open(store.uri, runtime=runtime_of(spark)).snapshot().plan(engine="spark")


@pytest.mark.parametrize("kind", ["empty table", "only a checkpoint", "only commits"])
def test_boundaries(spark, tmp_path, kind):
    """The specification's boundary cases."""
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(day="date", id="long"), ("day",))
    if kind != "empty table":
        for day in ("2024-01-01", "2024-01-02", None):
            log.commit(
                add(
                    f"day={day}/x",
                    stats={"numRecords": 1, "minValues": {"id": 5}, "maxValues": {"id": 9}},
                    partitionValues={"day": day},
                )
            )
    if kind == "only a checkpoint":
        log.checkpoint("multipart")
        log.drop_commits(log.version)
    for predicate in (None, "day = DATE '2024-01-02'", "id > 7", "day IS NULL AND id < 6", "id > 9"):
        ours = it.delta.files(log.store.uri, predicate, spark=spark, engine="spark")
        assert keys_of(ours) == keys_of(it.delta.files(log.store.uri, predicate, engine="columnar"))


def test_the_engine_is_chosen_by_what_the_hint_says(spark, many):
    """K4: an explicit threshold, the automatic one, and force."""
    many.checkpoint("classic")

    def engine(asked="auto", **options):
        runtime = runtime_of(spark)
        found = open_snapshot(many.store.uri, options=Options.of(options), runtime=runtime)
        return found.plan(columns=["size"], engine=asked).replay

    key = "distributedLogReplay.fileThreshold"
    assert engine().engine == "columnar"
    assert engine(**{key: "2000"}).engine == "columnar"
    assert engine(**{key: "1999"}).engine == "spark"
    assert engine(**{"spark.databricks.delta.v2.distributedLogReplay.fileThreshold": "10"}).engine == "spark"
    assert engine(**{key: "10", "distributedLogReplay.enabled": "false"}).engine == "columnar"
    assert engine(**{"distributedLogReplay.localMemory": "1k"}).engine == "spark"
    assert engine("spark").engine == "spark"
    assert engine("local").engine == "columnar"
    assert "2000 files" in engine(**{key: "1999"}).why


CLUSTER = """
import sys, indextables as it
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    .config("spark.executor.memory", "1g").config("spark.driver.host", "127.0.0.1").getOrCreate())
delta = it.delta.files(sys.argv[1], "id >= 10000 AND id < 10200", spark=spark, engine="spark")
table = it.TransactionLog.open(sys.argv[2], runtime=__import__("indextables.spark.session", fromlist=["x"]).runtime_of(spark))
native = table.snapshot().plan("id > 50", engine="spark")
print("ANSWER", delta.num_rows, native.files.num_rows, native.metrics.considered)
spark.stop()
"""


@pytest.mark.long
def test_a_cluster_of_two_workers_replays_both_dialects(many, tmp_path):
    """K1: executors in processes of their own, with nothing but what was sent to them."""
    many.checkpoint("v2-parquet")
    native_log(tmp_path / "native", 5, 10, **{"checkpoint.actionsPerPart": "5", "checkpoint.format": "json"})
    local = it.TransactionLog.open(str(tmp_path / "native")).snapshot().plan("id > 50")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER, str(many.store.local_path("")), str(tmp_path / "native")],
        capture_output=True, text=True, timeout=500, env=environment, check=False, cwd=tmp_path,
    )  # fmt: skip
    answer = [line for line in done.stdout.splitlines() if line.startswith("ANSWER")]
    assert answer == [f"ANSWER 20 {local.files.num_rows} {local.metrics.considered}"], done.stderr[-2000:]
