"""Skipping on executors keeps exactly the files that the local pruner keeps."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa
import pytest

from indextables.model.truncation import MARKER
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.prune.rule import prune_table
from indextables.spark.replay.engine import present_columns, skip
from indextables.spark.replay.skipping import skipping

SCHEMA = pa.schema(
    [
        ("p", pa.int32()),
        ("q", pa.string()),
        ("n", pa.int64()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("t", pa.timestamp("us", tz="UTC")),
        ("z", pa.timestamp("us")),
        ("c", pa.decimal128(10, 2)),
        ("b", pa.bool_()),
    ]
)
PARTITIONS = ("p", "q")
COMPARED = [field for field in SCHEMA if field.name not in PARTITIONS]


def value_of(rng, kind):
    if pa.types.is_integer(kind):
        return rng.randint(-5, 5)
    if pa.types.is_floating(kind):
        return rng.choice([-1.5, -0.0, 0.0, 2.5, float("inf"), float("nan"), 3.0])
    if pa.types.is_string(kind):
        return rng.choice(
            ["", "a", "ab", "abc", "b", "é", "\U0010ffff", "ab?", f"ab{MARKER}", f"é\ufffd{MARKER}"]
        )
    if pa.types.is_date(kind):
        return dt.date(1969, 12, 28) + dt.timedelta(days=rng.randint(0, 8))
    if pa.types.is_timestamp(kind):
        zone = dt.UTC if kind.tz else None
        return dt.datetime(1969, 12, 31, 23, 59, 58, 999_999, zone) + dt.timedelta(
            microseconds=rng.randint(0, 3)
        )
    if pa.types.is_decimal(kind):
        return Decimal(rng.randint(-300, 300)) / 100
    return rng.random() < 0.5


def files_of(rows: int) -> pa.Table:
    rng = random.Random(7)

    def child(field):
        return None if rng.random() < 0.25 else value_of(rng, field.type)

    table = []
    for number in range(rows):
        records = rng.choice([None, 0, 3])
        table.append(
            {
                "path": f"f{number}",
                "num_records": records,
                "partition_values": None
                if rng.random() < 0.1
                else {name: child(SCHEMA.field(name)) for name in PARTITIONS},
                "min": {field.name: child(field) for field in COMPARED},
                "max": {field.name: child(field) for field in COMPARED},
                "null_count": {field.name: rng.choice([None, 0, 1, 3]) for field in COMPARED},
            }
        )
    bounds = pa.struct([(field.name, field.type) for field in COMPARED])
    counts = pa.struct([(field.name, pa.int64()) for field in COMPARED])
    values = pa.struct([SCHEMA.field(name) for name in PARTITIONS])
    types = [pa.string(), pa.int64(), values, bounds, bounds, counts]
    names = ["path", "num_records", "partition_values", "min", "max", "null_count"]
    return pa.table({name: pa.array([row[name] for row in table], kind) for name, kind in zip(names, types)})


PREDICATES = [
    "n = 2", "n <=> 2", "n <> 2", "n < 0", "n <= 0", "n > 4", "n >= 4", "NOT n > 4", "NOT (n = 1 OR n = 2)",
    "n IN (1, 2)", "n NOT IN (1, 2)", "n IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)", "n IN (100)", "n BETWEEN -1 AND 1",
    "n IS NULL", "n IS NOT NULL", "NOT n IS NULL", "n IN (1, NULL)", "n NOT IN (1, NULL)", "n > 2.5", "n = 1.0e0",
    "d = 0.0", "d < 0", "d >= 2.5", "d > 1e300", "d = 'NaN'", "d IN (0.0, 2.5)", "d NOT IN (2.5)", "NOT d < 3",
    "s = 'ab'", "s < 'ab'", "s > 'ab'", "s >= 'abz'", "s LIKE 'ab%'", "s LIKE '%b'", "s NOT LIKE 'ab%'", "s = 'é'",
    "startswith(s, 'ab')", "NOT startswith(s, 'ab')", "s IN ('ab', 'zz')", "s IN ('a','b','c','d','e','f','g','h','i')",
    "s NOT IN ('a')", "s <=> 'b'", "NOT s <=> 'b'", "day = DATE '1970-01-01'", "day < DATE '1970-01-01'",
    "day IN (DATE '1970-01-01', DATE '1980-01-01')", "t > TIMESTAMP '1970-01-01 00:00:00Z'",
    "t <= TIMESTAMP '1969-12-31 23:59:58.999999Z'", "t = TIMESTAMP '1970-01-01 00:00:00Z'",
    "z > TIMESTAMP_NTZ '1969-12-31 23:59:59'", "z <= TIMESTAMP_NTZ '1969-12-31 23:59:59'", "c > 1.5", "c = 0.25",
    "c IN (0.1, 0.2, 3.0)", "NOT c > 1.5", "b = true", "b", "NOT b", "p = 2", "p IS NULL", "p > 0 AND n > 0",
    "p > 0 OR n > 0", "p IN (1, 2, 3) AND s LIKE 'a%'", "q = 'ab'", "q LIKE 'a%'", "q IS NOT NULL AND d > 0",
    "q <> 'ab'", "p <=> 1", "NOT (p = 1 AND n = 1)", "(p = 1 AND n > 0) OR (p = 2 AND n < 0)", "p NOT IN (1, 2)",
    "true", "false", "n = 1 AND false",
]  # fmt: skip


@pytest.fixture(scope="module")
def files():
    return files_of(300)


@pytest.mark.spark
def test_the_cluster_keeps_what_the_local_pruner_keeps(spark, files):
    """K1, K3, H3, H5, H6, H7: every kind of predicate over every kind of statistic, in one job."""
    frame = spark.createDataFrame(files)
    columns, expected = [], []
    for number, text in enumerate(PREDICATES):
        node = as_node(text, SCHEMA, "UTC")
        found = skipping(node, present_columns(frame), frozenset(PARTITIONS))
        columns += [found.everything.alias(f"e{number}"), found.by_partition.alias(f"p{number}")]
        expected.append(prune_table(node, files, SCHEMA, PARTITIONS))
    answers = {row["path"]: row for row in frame.select("path", *columns).collect()}
    order = files.column("path").to_pylist()
    different = {}
    for number, (text, pruned) in enumerate(zip(PREDICATES, expected)):
        kept = [answers[path][f"e{number}"] for path in order]
        by_partition = sum(not answers[path][f"p{number}"] for path in order)
        rows = [at for at, (here, there) in enumerate(zip(kept, pruned.mask.to_pylist())) if here != there]
        if rows or by_partition != pruned.metrics.pruned_by_partition:
            different[text] = (rows, by_partition, pruned.metrics.pruned_by_partition)
    assert different == {}


@pytest.mark.spark
def test_a_file_without_statistics_is_kept(spark):
    """K3: a frame that lacks every column of statistics keeps all its files."""
    frame = spark.createDataFrame(pa.table({"path": ["a", "b"]}))
    for text in ("n = 1", "s LIKE 'a%' AND t > TIMESTAMP '2020-01-01 00:00:00Z'", "p = 1"):
        assert skip(frame, as_node(text, SCHEMA, "UTC"), frozenset(PARTITIONS)).count() == 2
