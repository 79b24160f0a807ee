"""Real Delta tables on Spark at every version: files replayed on executors, rows in sessions of three zones.

Files of one version in three are tried, and rows of one in six, each in one zone; newest versions with times in them are
read in every zone. `make golden` tries everything.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import reduce

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import indextables as it
from indextables.errors import Error
from indextables.log.delta.snapshot import open_snapshot
from indextables.options import Options
from indextables.spark.replay.engine import replay_frame
from indextables.spark.session import runtime_of
from support.golden import EVERYTHING, expected, plain, rows_of, table_path, versions

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.usefixtures("plain_plans")]

# So little memory that every commit is left to the executors, and one task for them: the tables are small.
FAR = Options.of({"distributedLogReplay.localMemory": "1", "distributedLogReplay.numPartitions": "1"})
KEY = ("path", "dv", "size", "num_records")
ZONES = ("UTC", "America/Los_Angeles", "Asia/Kolkata")
# Plans of more branches take longer to optimise than their jobs take to run.
BRANCHES = 12
MOST_ROWS = 20_000
VERSION = "__version"
OUTCOMES = ("ok", "refuse-or-lenient")


def in_parts(items):
    return [items[start : start + BRANCHES] for start in range(0, len(items), BRANCHES)]


def test_the_files_of_every_version_are_those_the_corpus_expects(spark):
    """K7: each commit decoded by executors, each checkpoint read by them."""
    tried = list(versions(*OUTCOMES))[:: 1 if EVERYTHING else 3]
    different = []
    for part in in_parts(tried):
        frames, wanted = [], {}
        for name, version in part:
            snapshot = open_snapshot(
                table_path(name), version=version, options=FAR, runtime=runtime_of(spark)
            )
            frames.append(
                replay_frame(spark, snapshot.request()).select(
                    F.lit(name).alias("table"), F.lit(version).alias("version"), *KEY
                )
            )
            wanted[name, version] = files_of(name, version)
        found = {key: [] for key in wanted}
        for row in reduce(lambda one, two: one.unionByName(two), frames).toArrow().to_pylist():
            found[row["table"], row["version"]].append([row[key] for key in KEY])
        different += [key for key, files in wanted.items() if sorted(found[key], key=str) != files]
    assert different == []
    assert len(tried) >= (400 if EVERYTHING else 130)
    print(f"files of {len(tried)} versions on the executors are as expected")


def files_of(name, version):
    """The files of a version: as the corpus has them for the newest, else by an engine checked against its sums."""
    state = expected(name)
    if version == state["version"]:
        return sorted(([path, dv, size, count] for path, dv, size, _, count in state["files"]), key=str)
    snapshot = open_snapshot(table_path(name), version=version, options=Options.of(None))
    files = snapshot.plan(columns=list(KEY), engine="reference").files
    sums = state["versions"][str(version)]
    assert (files.num_rows, sum(files.column("size").to_pylist())) == (sums["n_files"], sums["bytes"])
    return sorted(([row[key] for key in KEY] for row in files.to_pylist()), key=str)


def test_the_rows_of_every_version_are_the_same_in_every_zone(spark):
    """K7: what Spark reads is what we read ourselves, which is compared with another reader elsewhere."""
    different, compared = [], 0
    ours = local_rows()
    for at, zone in enumerate(ZONES):
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            for number, (name, known) in enumerate(ours.items()):
                timed = any(has_times(rows.schema) for rows in known.values())
                if EVERYTHING or timed or number % len(ZONES) == at:
                    compared += len(known)
                    different += [(zone, name, version) for version in differing(spark, name, known)]
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert different == []
    assert compared >= (1000 if EVERYTHING else 60)
    print(f"rows of {compared} versions on Spark are those read without it")


def local_rows():
    """Rows of the tried versions by table and version; data files that the corpus left out are not."""
    found = defaultdict(dict)
    for at, (name, version) in enumerate(versions(*OUTCOMES)):
        table = it.DeltaTable.open(table_path(name), version=version)
        is_newest = version == expected(name)["version"]
        if not (EVERYTHING or at % 6 == 0 or (is_newest and has_times(table.schema))):
            continue
        try:
            if table.metadata.schema_string and table.count() <= MOST_ROWS:
                found[name][version] = table.scan(columns=comparable(table)).read_all()
        except Error:
            continue
    return found


def has_times(schema):
    return "timestamp" in str(schema)


def comparable(table):
    """The columns both give: variants come as bytes without Spark, and not at all as Arrow from Spark."""
    fields = json.loads(table.spark_schema)["fields"]
    return [field["name"] for field in fields if '"variant"' not in json.dumps(field["type"])]


def differing(spark, name, known):
    """The versions of a table whose rows are not the known ones; those of one schema are read in one job."""
    alike = defaultdict(list)
    for version, rows in known.items():
        alike[str(rows.schema.remove_metadata())].append(version)
    wrong = []
    for group in alike.values():
        for part in in_parts(group):
            names = known[part[0]].column_names
            quoted = ["`" + column.replace("`", "``") + "`" for column in names]
            frames = [
                it.delta.read(spark, str(table_path(name)), version=version).select(
                    F.lit(version).cast("long").alias(VERSION), *quoted
                )
                for version in part
            ]
            rows = reduce(lambda one, two: one.union(two), frames).toArrow()
            shape = pa.schema([rows.schema.field(0), *known[part[0]].schema])
            by_version = defaultdict(list)
            for row in rows.cast(shape).to_pylist():
                by_version[row[VERSION]].append(str([plain(row[column]) for column in names]))
            wrong += [
                version for version in part if sorted(by_version[version]) != rows_of(known[version], names)
            ]
    return wrong
