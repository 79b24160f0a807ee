"""Delta tables of every make, and our own, on the cluster: Spark keeps what one machine keeps, and reads the rows."""

from __future__ import annotations

import random
from functools import partial

import pyarrow as pa
import pytest

import indextables as it
from indextables.log.delta.snapshot import open_snapshot
from indextables.log.replay.long_tail import LongTail
from indextables.options import Options
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.tree import all_of
from indextables.spark.replay.engine import SparkEngine
from indextables.spark.replay.skipping import skipping
from indextables.spark.session import runtime_of
from indextables.storage.store import open_store
from support.deltaworlds import ARROW, arrow_array, build, value_of
from support.predicates import condition
from support.questions import ZONES, matching, questions
from support.spark_meaning import truth

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLES, PREDICATES = 22, 14
asked = {"delta": 0, "native": 0, "long tail": 0}
KINDS = [kind for kind in ARROW if kind != "binary"]


@pytest.fixture
def zone(spark, request):
    """A session in another time zone, for as long as a test takes."""
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def kept_on_spark(spark, request, nodes):
    """Files kept for each of many predicates, asked in one job."""
    live = SparkEngine(spark).live(request)
    if live is None:
        return [set() for _ in nodes]
    columns = live.columns(request)
    masks = [
        skipping(node, columns, frozenset(request.partition_columns)).everything.alias(f"e{number}")
        for number, node in enumerate(nodes)
    ]
    rows = live.frame.select("path", *masks).collect()
    return [{row["path"] for row in rows if row[f"e{number}"]} for number in range(len(nodes))]


@pytest.mark.parametrize("zone", ZONES, indirect=True)
def test_the_cluster_keeps_what_one_machine_keeps(spark, tmp_path, zone):
    """K1, K3: every kind of table and statistic, many predicates to a job; and some rows, read by Spark itself."""
    for seed in range(ZONES.index(zone), TABLES, len(ZONES)):
        world = build(open_store(tmp_path / str(seed)), 1000 + seed)
        uri = world.log.store.uri
        # Every other table, and those without a checkpoint, have commits that executors decode.
        logged = [meta.path for meta in world.log.store.list_level("_delta_log")]
        is_long = seed % 2 == 0 or not any("checkpoint" in path for path in logged)
        memory = {"distributedLogReplay.localMemory": "64"} if is_long else {}
        options = Options.of({"timeZone": zone, **memory})
        snapshot = open_snapshot(uri, options=options, runtime=runtime_of(spark))
        found = questions(world, seed, PREDICATES, zone)
        nodes = [node for _, node in found]
        request = snapshot.request(all_of(nodes))
        recent = snapshot.state.tail
        asked["long tail"] += isinstance(recent, LongTail)
        tail = set() if isinstance(recent, LongTail) else {add.path for add in recent.adds.values()}
        for (text, node), kept in zip(found, kept_on_spark(spark, request, nodes), strict=True):
            local = set(snapshot.plan(text, engine="columnar").files.column("path").to_pylist())
            assert kept == local - tail, (seed, text)
            asked["delta"] += 1
        text, node = found[0]
        rows = it.delta.read(spark, uri, text).select("id").collect()
        assert sorted(row["id"] for row in rows) == sorted(sum(matching(world, node).values(), [])), (
            seed,
            text,
        )


def native_table(path, seed):
    """A table of ours with the same types, its rows by file, and its columns."""
    rng = random.Random(seed)
    kinds = {"id": "long", **{f"c{at}": rng.choice(KINDS) for at in range(rng.choice([3, 40]))}}
    partitions = [] if seed % 2 else ["p"]
    kinds |= dict.fromkeys(partitions, rng.choice(["string", "integer", "date"]))
    table = it.Table.create(
        str(path), pa.schema([(name, ARROW[kind]) for name, kind in kinds.items()]), partitions
    )
    rows = []
    for number in range(5):
        part = None if rng.random() < 0.2 else value_of(kinds.get("p", "long"), rng)
        some = [
            {name: None if rng.random() < 0.15 else value_of(kind, rng) for name, kind in kinds.items()}
            | {"id": number * 10 + at, **dict.fromkeys(partitions, part)}
            for at in range(rng.choice([1, 3]))
        ]
        table.append(
            pa.table({name: arrow_array([row[name] for row in some], kind) for name, kind in kinds.items()})
        )
        rows += some
    return kinds, rows


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_tables_of_ours_are_pruned_alike_by_every_engine(spark, tmp_path, form):
    """K1: with and without partitions, more columns than statistics cover, both forms of checkpoint."""
    for seed in range(3):
        path = tmp_path / str(seed)
        kinds, rows = native_table(path, seed)
        it.TransactionLog.open(str(path), {"checkpoint.format": form}).checkpoint()
        snapshot = it.TransactionLog.open(str(path), runtime=runtime_of(spark)).snapshot()
        rng = random.Random(seed)
        texts = [condition(list(kinds.items()), partial(value_of, rng=rng), rng) for _ in range(12)]
        nodes = [as_node(text, snapshot.schema, "UTC") for text in texts]
        whole = snapshot._request(snapshot.state, all_of(nodes), None, explain=False)
        table = it.Table.open(str(path))
        for text, node, kept in zip(texts, nodes, kept_on_spark(spark, whole, nodes), strict=True):
            local = snapshot.plan(text, engine="columnar").files.column("path").to_pylist()
            plain = snapshot.plan(text, engine="reference").files.column("path").to_pylist()
            assert kept == set(local) == set(plain), (seed, text)
            ids = table.scan(text, columns=["id"]).read_all().column("id").to_pylist()
            assert sorted(ids) == sorted(row["id"] for row in rows if truth(node, row) is True), (seed, text)
            asked["native"] += 1


def test_the_predicates_had_the_number_they_claim():
    if not asked["delta"] or not asked["native"]:
        pytest.skip("the law did not run in this process")
    assert asked["delta"] >= 300
    assert asked["native"] >= 60
    assert asked["long tail"] >= 8
