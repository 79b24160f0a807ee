"""Spark over our tables against Spark over plain Parquet files with the same rows.

A case measures its systems in one session and in turn, so that a compiler that
is still warming up or a busy machine is there for all of them: what counts is
what a user of a running session waits for. Plain Parquet is what
`df.write.parquet` makes without any option. Planning is measured on tables of
many files that are links to one small file, since planning opens none of them.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.log_lines import RARE, SCHEMA, log_lines

WARM, MEASURE = (2, 8, 15.0), (3, 11, 30.0)
"""At least and at most so many rounds, and seconds after which no further one begins."""
FILES = 8
FEW_FILES, MANY_FILES = 1_000, 100_000
SPLITS = 1_000
SEARCHED, SCANNED = ("100k", "1M", "10M"), ("100k", "1M", "20M")
ONCE = ("100k", "1M")
"""Sizes of the cases that do not depend on the number of lines, or take their time from writing them."""


def prepare(directory: Path, size: str) -> None:
    """The lines as Parquet and as a table with and without a text index; links for planning; many splits."""
    for name in ("parquet", "plain", "searchable", "splits"):
        shutil.rmtree(directory / name, ignore_errors=True)
    spark = session()
    _lines(spark, count_of(size)).write.parquet(str(directory / "parquet"))
    # Each Parquet file becomes one split.
    spark.conf.set("spark.sql.files.openCostInBytes", str(1 << 30))
    lines = spark.read.parquet(str(directory / "parquet"))
    if size in SCANNED:
        lines.write.format("indextables").save(str(directory / "plain"))
    if size in SEARCHED:
        indexed = lines.write.format("indextables").option("indexing.typemap.message", "text")
        indexed.save(str(directory / "searchable"))
    spark.stop()
    if size in ONCE:
        _many_splits(directory / "splits")
        for count in (FEW_FILES, MANY_FILES):
            _links(directory / f"links-{count}", count)


def _lines(spark: Any, count: int) -> Any:
    """Log lines, made by the tasks of a job."""
    from pyspark.sql.types import StructType

    from indextables.model.fields import schema_to_json

    def make(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for at in batch.column(0).to_pylist():
                part = range(count * at // FILES, count * (at + 1) // FILES)
                yield from log_lines(count, seed=at, part=part)

    schema = StructType.fromJson(json.loads(schema_to_json(SCHEMA)))
    return spark.range(0, FILES, 1, FILES).mapInArrow(make, schema)


def _many_splits(path: Path) -> None:
    """A table of 1,000 small splits, ordered by id."""
    import pyarrow as pa

    import indextables as it

    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    table = it.Table.create(str(path), schema, options={"write.maxRowsPerSplit": "100"})
    ids = range(SPLITS * 100)
    table.append(pa.table({"id": list(ids), "text": [f"row {i}" for i in ids]}, schema=schema))


def _links(path: Path, count: int) -> None:
    """A directory of links to one file, and a log that names them all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import indextables as it

    if path.exists():
        return
    path.mkdir(parents=True)
    schema = pa.schema([("id", pa.int64())])
    pq.write_table(pa.table({"id": [1]}, schema=schema), path / "0.split")
    size = (path / "0.split").stat().st_size
    for at in range(1, count):
        # A file system allows a file only so many names.
        first = at - at % 10_000
        if at == first:
            shutil.copy(path / "0.split", path / f"{at}.split")
        else:
            os.link(path / f"{first}.split", path / f"{at}.split")
    log = it.TransactionLog.open(str(path))
    log.initialize(schema, [])
    adds = [
        it.AddAction(
            path=f"{at}.split", partition_values={}, size=size, modification_time=0, data_change=True,
            num_records=1, min_values={"id": str(at)}, max_values={"id": str(at)},
        )
        for at in range(count)
    ]  # fmt: skip
    log.add_files(adds)
    log.checkpoint()


def session() -> Any:
    """A Spark session of two cores."""
    from pyspark.sql import SparkSession

    import indextables as it

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "2")
        # With tasks of 128 MiB the smaller of two tables is read by an uneven handful of them on two cores.
        .config("spark.sql.files.maxPartitionBytes", "32m")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return it.connect(spark)


def _parquet(spark: Any, directory: Path) -> Any:
    return spark.read.parquet(str(directory / "parquet"))


def _ours(spark: Any, directory: Path, table: str = "plain") -> Any:
    return spark.read.format("indextables").load(str(directory / table))


def in_session(systems: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """The median of each system, measured one after the other; they have to answer the same."""
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    answers: dict[str, str] = {}
    for is_warm in (False, True):
        least, most, enough_s = MEASURE if is_warm else WARM
        since = time.perf_counter()
        for at in range(most):
            if at >= least and time.perf_counter() - since > enough_s:
                break
            for name, run in systems.items():
                began = time.perf_counter()
                answers[name] = str(run())
                if is_warm:
                    seconds[name].append(time.perf_counter() - began)
    if len(set(answers.values())) != 1:
        raise AssertionError(f"the answers differ: {answers}")
    medians = {name: statistics.median(taken) for name, taken in seconds.items()}
    return {
        "seconds": medians.pop("indextables"),
        "answer": answers["indextables"][:60],
        "beside": medians,
    }


def _query(directory: Path, ask: Callable[[Any], Any]) -> Operation:
    spark = session()
    ours, parquet = _ours(spark, directory), _parquet(spark, directory)
    return lambda: in_session({"indextables": lambda: ask(ours), "parquet": lambda: ask(parquet)})


def aggregate(directory: Path) -> Operation:
    """Every column, grouped."""
    from pyspark.sql import functions as f

    def ask(frame: Any) -> Any:
        grouped = frame.groupBy("level", "service").agg(
            f.count("*"),
            f.sum("took_ms"),
            f.max("ts"),
            f.min("status"),
            f.sum(f.length("host")),
            f.sum(f.length("message")),
            f.max("id"),
        )
        return sorted(map(str, grouped.collect()))[0]

    return _query(directory, ask)


def one_column(directory: Path) -> Operation:
    """The sum of one column."""
    return _query(directory, lambda frame: frame.groupBy().sum("took_ms").first()[0])


def counting(directory: Path) -> Operation:
    """count(*)."""
    return _query(directory, lambda frame: frame.count())


def _planning(directory: Path, count: int) -> Operation:
    """From load to the partitions of a scan, nothing read."""
    spark = session()
    path = str(directory / f"links-{count}")

    def partitions(frame: Any) -> int:
        return int(frame._jdf.queryExecution().executedPlan().execute().getNumPartitions())

    def ours() -> int:
        return partitions(spark.read.format("indextables").load(path))

    def parquet() -> int:
        frame = spark.read.schema("id long").option("pathGlobFilter", "*.split").parquet(path)
        return partitions(frame)

    return lambda: in_session({"indextables": ours, "parquet": parquet})


def plan_few(directory: Path) -> Operation:
    """1,000 files."""
    return _planning(directory, FEW_FILES)


def plan_many(directory: Path) -> Operation:
    """100,000 files."""
    return _planning(directory, MANY_FILES)


def writing(directory: Path) -> Operation:
    """All rows, no text index, from memory."""
    spark = session()
    lines = _parquet(spark, directory).cache()
    lines.count()

    def target(system: str) -> str:
        path = directory / f"written-{system}"
        shutil.rmtree(path, ignore_errors=True)
        return str(path)

    systems = {
        "indextables": lambda: lines.write.format("indextables").save(target("ours")),
        "parquet": lambda: lines.write.parquet(target("parquet")),
        "parquet zstd": lambda: lines.write.option("compression", "zstd").parquet(target("zstd")),
    }
    return lambda: in_session(systems)


def rare_word(directory: Path) -> Operation:
    """The ten lines with a rare word, all columns: by SQL, by search_df, and by LIKE over Parquet."""
    import indextables as it

    spark = session()
    table = it.Table.open(str(directory / "searchable"), spark=spark)
    text = f"SELECT * FROM indextables.`{directory / 'searchable'}` WHERE message indexquery '{RARE}'"
    parquet = _parquet(spark, directory)
    systems = {
        "indextables": lambda: len(spark.sql(text).collect()),
        "indextables search_df": lambda: len(table.search_df(RARE).collect()),
        "parquet": lambda: len(parquet.filter(f"message LIKE '%{RARE}%'").collect()),
    }
    return lambda: in_session(systems)


def selective(directory: Path) -> Operation:
    """Two rows of a table of 1,000 splits, and which share of the table's bytes Spark's reader has read."""
    spark = session()
    frame = _ours(spark, directory, "splits")
    total = sum(path.stat().st_size for path in (directory / "splits").glob("*.split"))

    def ask() -> int:
        return len(frame.filter("id IN (4242, 77777)").collect())

    def operation() -> Mapping[str, Any]:
        ask()
        before = _bytes_read(spark)
        ask()
        share = (_bytes_read(spark) - before) / total
        return {**in_session({"indextables": ask}), "bytes_share": round(share, 5)}

    return operation


def _bytes_read(spark: Any) -> int:
    """What Hadoop's file systems in this JVM have read so far."""
    statistics_of = spark.sparkContext._jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
    return sum(int(one.getBytesRead()) for one in statistics_of)


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which goals these rows reach."""
    lines = []
    for size in sorted({row["size"] for row in rows}, key=count_of):
        by = {(row["case"], row["system"]): row for row in rows if row["size"] == size}
        for case, most in (("aggregate", 1.1), ("one-column sum", 1.2), ("count(*)", 1.2), ("write", 1.5)):
            lines += _ratio(by, size, case, most)
        for case, slack in (("plan 1k files", 0.3), ("plan 100k files", 3.0)):
            lines += _above(by, case, slack)
        for system in ("indextables", "indextables search_df"):
            lines += _faster(by, size, system)
        found = by.get(("selective filter", "indextables"))
        if found is not None:
            share = found["facts"]["bytes_share"]
            lines.append(f"selective filter {size}: {share:.2%} of the bytes {_met(share <= 0.02)} goal 2 %")
    return lines


def _ratio(by: Mapping[Any, Any], size: str, case: str, most: float) -> list[str]:
    ours, rival = by.get((case, "indextables")), by.get((case, "parquet"))
    if ours is None or rival is None:
        return []
    ratio, above = ours["seconds"] / rival["seconds"], ours["seconds"] - rival["seconds"]
    small = case in ("one-column sum", "count(*)") and count_of(size) <= 1_000_000
    goal = "+60 ms" if small else f"{most}x"
    met = above <= 0.06 if small else ratio <= most
    return [f"{case} {size}: {ratio:.2f}x Parquet ({above * 1000:+.0f} ms) {_met(met)} goal {goal}"]


def _above(by: Mapping[Any, Any], case: str, slack: float) -> list[str]:
    ours, rival = by.get((case, "indextables")), by.get((case, "parquet"))
    if ours is None or rival is None:
        return []
    above = ours["seconds"] - rival["seconds"]
    return [f"{case}: {above:+.2f} s against Parquet {_met(above <= slack)} goal +{slack} s"]


def _faster(by: Mapping[Any, Any], size: str, system: str) -> list[str]:
    ours, rival = by.get(("rare word", system)), by.get(("rare word", "parquet"))
    if ours is None or rival is None:
        return []
    ratio = rival["seconds"] / ours["seconds"]
    said = f"rare word {size} by {system}: {ratio:.1f}x faster than LIKE"
    least = {"1M": 5, "10M": 20}.get(size)
    return [said if least is None else f"{said} {_met(ratio >= least)} goal {least}x"]


def _met(reached: bool) -> str:
    return "reaches" if reached else "misses"


TARGET = Target(
    "spark",
    prepare,
    [
        Case("aggregate", "indextables", "aggregate", SCANNED, repeat=1),
        Case("one-column sum", "indextables", "one_column", SCANNED, repeat=1),
        Case("count(*)", "indextables", "counting", SCANNED, repeat=1),
        Case("plan 1k files", "indextables", "plan_few", ONCE, repeat=1),
        Case("plan 100k files", "indextables", "plan_many", ONCE, repeat=1),
        Case("write", "indextables", "writing", ONCE, repeat=1),
        Case("rare word", "indextables", "rare_word", SEARCHED, repeat=1),
        Case("selective filter", "indextables", "selective", ONCE, repeat=1),
    ],
    rival="parquet",
    packages=("pyspark", "pyarrow", "tantivy"),
    goals=goals,
)
