"""Spark over our tables against Spark over plain Parquet files with the same rows, in one run.

Every case warms its session up and then takes the median of several runs inside
it: what counts is what a user of a running session waits for. Planning is
measured on tables of many files that are links to one small file, since
planning opens none of them.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.log_lines import RARE, SCHEMA, log_lines

WARM, RUNS = 2, 5
FEW_FILES, MANY_FILES = 1_000, 100_000
SPLITS = 1_000


def prepare(directory: Path, size: str) -> None:
    """The lines as Parquet and as a table with and without a text index; links for planning; many splits."""
    import pyarrow.parquet as pq

    import indextables as it

    for name in ("parquet", "plain", "searchable", "splits"):
        shutil.rmtree(directory / name, ignore_errors=True)
    (directory / "lines").mkdir(exist_ok=True)
    rows = count_of(size)
    with pq.ParquetWriter(directory / "lines" / "lines.parquet", SCHEMA, compression="zstd") as writer:
        for batch in log_lines(rows):
            writer.write_batch(batch)
    spark = _session()
    lines = spark.read.parquet(str(directory / "lines")).repartition(8)
    lines.write.option("compression", "zstd").parquet(str(directory / "parquet"))
    lines.write.format("indextables").save(str(directory / "plain"))
    indexed = lines.write.format("indextables").option("indexing.typemap.message", "text")
    indexed.save(str(directory / "searchable"))
    spark.stop()
    _many_splits(it, directory / "splits")
    for count in (FEW_FILES, MANY_FILES):
        _links(directory / f"links-{count}", count)


def _many_splits(it: Any, path: Path) -> None:
    """A table of 1,000 small splits, ordered by id."""
    import pyarrow as pa

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


def _session() -> Any:
    from pyspark.sql import SparkSession

    import indextables as it

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return it.connect(spark)


def _frame(spark: Any, directory: Path, system: str, table: str = "plain") -> Any:
    if system == "parquet":
        return spark.read.parquet(str(directory / "parquet"))
    return spark.read.format("indextables").load(str(directory / table))


def _median(run: Callable[[], Any], warm: int = WARM, runs: int = RUNS) -> dict[str, Any]:
    for _ in range(warm):
        answer = run()
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        answer = run()
        seconds.append(time.perf_counter() - began)
    return {"seconds": statistics.median(seconds), "answer": str(answer)[:80]}


def _query(directory: Path, system: str, ask: Callable[[Any], Any]) -> Operation:
    spark = _session()
    frame = _frame(spark, directory, system)
    return lambda: _median(lambda: ask(frame))


def _aggregate(frame: Any) -> Any:
    from pyspark.sql import functions as f

    grouped = frame.groupBy("level", "service").agg(
        f.count("*"),
        f.sum("took_ms"),
        f.max("ts"),
        f.min("status"),
        f.max("host"),
        f.sum(f.length("message")),
    )
    return sorted(map(str, grouped.collect()))[0]


def aggregate_ours(directory: Path) -> Operation:
    """Every column, grouped."""
    return _query(directory, "indextables", _aggregate)


def aggregate_parquet(directory: Path) -> Operation:
    """The same over Parquet."""
    return _query(directory, "parquet", _aggregate)


def _sum(frame: Any) -> Any:
    return frame.groupBy().sum("took_ms").first()[0]


def sum_ours(directory: Path) -> Operation:
    """One column."""
    return _query(directory, "indextables", _sum)


def sum_parquet(directory: Path) -> Operation:
    """The same over Parquet."""
    return _query(directory, "parquet", _sum)


def count_ours(directory: Path) -> Operation:
    """count(*)."""
    return _query(directory, "indextables", lambda frame: frame.count())


def count_parquet(directory: Path) -> Operation:
    """The same over Parquet."""
    return _query(directory, "parquet", lambda frame: frame.count())


def _planning(directory: Path, system: str, count: int) -> Operation:
    """From load to the partitions of a scan, nothing read."""
    spark = _session()
    path = str(directory / f"links-{count}")

    def plan() -> int:
        if system == "parquet":
            frame = spark.read.schema("id long").option("pathGlobFilter", "*.split").parquet(path)
        else:
            frame = spark.read.format("indextables").load(path)
        return int(frame._jdf.queryExecution().executedPlan().execute().getNumPartitions())

    return lambda: _median(plan, warm=1, runs=3)


def plan_few_ours(directory: Path) -> Operation:
    """1,000 files."""
    return _planning(directory, "indextables", FEW_FILES)


def plan_few_parquet(directory: Path) -> Operation:
    """1,000 files."""
    return _planning(directory, "parquet", FEW_FILES)


def plan_many_ours(directory: Path) -> Operation:
    """100,000 files."""
    return _planning(directory, "indextables", MANY_FILES)


def plan_many_parquet(directory: Path) -> Operation:
    """100,000 files."""
    return _planning(directory, "parquet", MANY_FILES)


def _writing(directory: Path, system: str) -> Operation:
    spark = _session()
    lines = spark.read.parquet(str(directory / "parquet")).cache()
    lines.count()
    target = directory / f"written-{system}"

    def write() -> None:
        shutil.rmtree(target, ignore_errors=True)
        if system == "parquet":
            lines.write.option("compression", "zstd").parquet(str(target))
        else:
            lines.write.format("indextables").save(str(target))

    return lambda: _median(write, warm=1, runs=3)


def write_ours(directory: Path) -> Operation:
    """All rows, no text index."""
    return _writing(directory, "indextables")


def write_parquet(directory: Path) -> Operation:
    """The same as Parquet."""
    return _writing(directory, "parquet")


def rare_ours(directory: Path) -> Operation:
    """The ten lines with a rare word, all columns, found on the executors."""
    import indextables as it

    spark = _session()
    table = it.Table.open(str(directory / "searchable"), spark=spark)
    return lambda: _median(lambda: len(table.search_df(RARE).collect()))


def rare_sql(directory: Path) -> Operation:
    """The same through spark.sql."""
    spark = _session()
    text = f"SELECT * FROM indextables.`{directory / 'searchable'}` WHERE message indexquery '{RARE}'"
    return lambda: _median(lambda: len(spark.sql(text).collect()))


def rare_like(directory: Path) -> Operation:
    """LIKE over Parquet."""
    return _query(directory, "parquet", lambda frame: len(frame.filter(f"message LIKE '%{RARE}%'").collect()))


def selective_ours(directory: Path) -> Operation:
    """Two rows of a table of 1,000 splits; the facts say which share of the bytes their files hold."""
    spark = _session()
    frame = _frame(spark, directory, "indextables", "splits")
    import indextables as it

    table = it.Table.open(str(directory / "splits"))
    total = sum(table.files()["size"].to_pylist())
    kept = sum(table.files("id IN (4242, 77777)")["size"].to_pylist())

    def operation() -> Mapping[str, Any]:
        found = _median(lambda: frame.filter("id IN (4242, 77777)").count())
        return {**found, "bytes_share": round(kept / total, 5)}

    return operation


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which goals these rows reach."""
    lines = []
    for size in sorted({row["size"] for row in rows}, key=count_of):
        by = {(row["case"], row["system"]): row for row in rows if row["size"] == size}
        for case, most in (("aggregate", 1.1), ("one-column sum", 1.2), ("count(*)", 1.2), ("write", 1.5)):
            lines += _ratio(by, size, case, most)
        for case, slack in (("plan 1k files", 0.3), ("plan 100k files", 3.0)):
            lines += _above(by, size, case, slack)
        for system in ("indextables", "indextables sql"):
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
    met = ratio <= most or (case in ("one-column sum", "count(*)") and above <= 0.06)
    return [f"{case} {size}: {ratio:.2f}x Parquet ({above * 1000:+.0f} ms) {_met(met)} goal {most}x"]


def _above(by: Mapping[Any, Any], size: str, case: str, slack: float) -> list[str]:
    ours, rival = by.get((case, "indextables")), by.get((case, "parquet"))
    if ours is None or rival is None:
        return []
    above = ours["seconds"] - rival["seconds"]
    return [f"{case}: {above:+.2f} s against Parquet {_met(above <= slack)} goal +{slack} s"]


def _faster(by: Mapping[Any, Any], size: str, system: str) -> list[str]:
    ours, rival = by.get(("rare word", system)), by.get(("rare word", "parquet"))
    if ours is None or rival is None:
        return []
    least = 20 if count_of(size) >= 10_000_000 else 5
    ratio = rival["seconds"] / ours["seconds"]
    return [
        f"rare word {size} by {system}: {ratio:.1f}x faster than LIKE {_met(ratio >= least)} goal {least}x"
    ]


def _met(reached: bool) -> str:
    return "reaches" if reached else "misses"


TARGET = Target(
    "spark",
    prepare,
    [
        Case("aggregate", "indextables", "aggregate_ours"),
        Case("aggregate", "parquet", "aggregate_parquet"),
        Case("one-column sum", "indextables", "sum_ours"),
        Case("one-column sum", "parquet", "sum_parquet"),
        Case("count(*)", "indextables", "count_ours"),
        Case("count(*)", "parquet", "count_parquet"),
        Case("plan 1k files", "indextables", "plan_few_ours", repeat=1),
        Case("plan 1k files", "parquet", "plan_few_parquet", repeat=1),
        Case("plan 100k files", "indextables", "plan_many_ours", repeat=1),
        Case("plan 100k files", "parquet", "plan_many_parquet", repeat=1),
        Case("write", "indextables", "write_ours", repeat=1),
        Case("write", "parquet", "write_parquet", repeat=1),
        Case("rare word", "indextables", "rare_ours"),
        Case("rare word", "indextables sql", "rare_sql"),
        Case("rare word", "parquet", "rare_like"),
        Case("selective filter", "indextables", "selective_ours", repeat=1),
    ],
    rival="parquet",
    packages=("pyspark", "pyarrow", "tantivy"),
    goals=goals,
)
