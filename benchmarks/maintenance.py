"""Maintenance: REPAIR against one existence check per split, the size of a repaired log, and MERGE against a rewrite.

Object stores answer one request in milliseconds and list a thousand names with
it. `LatentStore` gives a local directory those two properties, so that the
number of requests shows; the local disk itself is measured as well.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Operation, Target, count_of

REQUEST_S = 0.005
PAGE_NAMES = 1000
SAMPLE = 2000
DAYS = 100
MERGED_SPLITS = 200
ROWS_PER_SPLIT = 1000
WORDS = [f"word{n}" for n in range(5000)]


def prepare(directory: Path, size: str) -> None:
    """A log of so many splits whose files are there; for the smallest size also the tables of the other cases."""
    shutil.rmtree(directory / "splits", ignore_errors=True)
    _splits(directory / "splits", count_of(size))
    if size == "1k":
        _long_text(directory / "long_text")
        _small_splits(directory / "small")


def _splits(root: Path, count: int) -> None:
    import pyarrow as pa

    import indextables as it

    schema = pa.schema([("id", pa.int64()), ("day", pa.string()), ("message", pa.string())])
    log = it.TransactionLog.open(str(root), {"checkpoint.interval": 5})
    log.initialize(schema, ["day"])
    for day in range(DAYS):
        (root / f"day={day:03}").mkdir(parents=True, exist_ok=True)
    for start in range(0, count, 10_000):
        adds = []
        for n in range(start, min(start + 10_000, count)):
            path = f"day={n % DAYS:03}/part-{n:08}.split"
            (root / path).write_bytes(b"x")
            adds.append(_add(path, n))
        log.add_files(adds)


def _add(path: str, n: int) -> Any:
    import indextables as it

    return it.AddAction(
        path=path,
        partition_values={"day": f"{n % DAYS:03}"},
        size=1,
        modification_time=1_700_000_000_000 + n,
        num_records=1000,
        min_values={"id": str(n * 1000), "message": f"message {n} begins"},
        max_values={"id": str(n * 1000 + 999), "message": f"message {n} ends"},
        stats='{"nullCount":{"id":0,"message":0}}',
        footer_start_offset=1000,
        footer_end_offset=2000,
        hotcache_start_offset=500,
        hotcache_length=500,
        has_footer_offsets=True,
    )


def _long_text(root: Path) -> None:
    import pyarrow as pa

    import indextables as it

    shutil.rmtree(root, ignore_errors=True)
    schema = pa.schema([("id", pa.int64()), ("article", pa.string())])
    options = {"transaction.compression.enabled": "false", "stats.truncation.enabled": "false"}
    table = it.Table.create(root, schema, options=options)
    rng = random.Random(7)
    for n in range(40):
        texts = [" ".join(rng.choices(WORDS, k=4000)) for _ in range(4)]
        table.append(pa.table({"id": range(n * 4, n * 4 + 4), "article": texts}, schema))


def _small_splits(root: Path) -> None:
    import pyarrow as pa

    import indextables as it

    shutil.rmtree(root, ignore_errors=True)
    schema = pa.schema([("id", pa.int64()), ("message", pa.string())])
    table = it.Table.create(
        root, schema, options={"indexing.typemap.message": "text", "checkpoint.interval": 50}
    )
    rng = random.Random(11)
    for n in range(MERGED_SPLITS):
        ids = range(n * ROWS_PER_SPLIT, (n + 1) * ROWS_PER_SPLIT)
        table.append(
            pa.table({"id": ids, "message": [" ".join(rng.choices(WORDS, k=12)) for _ in ids]}, schema)
        )


class LatentStore:
    """A store whose every request takes a while; a listing is one request per thousand names."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in {"get", "get_range", "head", "put", "put_if_absent", "put_file", "delete"}:
            return self._delayed(found)
        return found

    def list(self, prefix: str = "", start_after: str | None = None) -> Iterator[Any]:
        return self._paged(self._inner.list(prefix, start_after))

    def list_level(self, prefix: str = "", start_after: str | None = None) -> Any:
        return [*self._paged(self._inner.list_level(prefix, start_after))]

    def _paged(self, items: Any) -> Iterator[Any]:
        for number, item in enumerate(items):
            if number % PAGE_NAMES == 0:
                time.sleep(REQUEST_S)
            yield item

    def _delayed(self, call: Any) -> Any:
        def run(*arguments: Any, **named: Any) -> Any:
            time.sleep(REQUEST_S)
            return call(*arguments, **named)

        return run


def repair_local(directory: Path) -> Operation:
    return _repair(directory, latent=False)


def repair_latent(directory: Path) -> Operation:
    return _repair(directory, latent=True)


def _repair(directory: Path, *, latent: bool) -> Operation:
    import indextables.log.replay.columnar  # noqa: F401
    from indextables.ops.maintain.repair.relocated_log import LogDirectory
    from indextables.ops.maintain.repair.repair import RepairJob, RepairRequest
    from indextables.ops.maintain.repair.run import carry_out
    from indextables.options import Options
    from indextables.storage.store import open_store

    root = directory / "splits"
    target = root / f"_repaired_{os.getpid()}"
    store: Any = open_store(str(root))
    store = LatentStore(store) if latent else store
    request = RepairRequest(f"{root}/_transaction_log", str(target))
    source, place = LogDirectory(store, "_transaction_log"), LogDirectory(store, target.name)
    job = RepairJob(request, source, place, Options.of())

    def operation() -> Mapping[str, Any]:
        began = time.perf_counter()
        result = carry_out(job)
        seconds = time.perf_counter() - began
        shutil.rmtree(target)
        assert result.status == "SUCCESS", result.status
        assert result.valid_splits == count_of(directory.name)
        return {"splits": result.valid_splits, "seconds": seconds}

    return operation


def check_local(directory: Path) -> Operation:
    return _check_each(directory, latent=False)


def check_latent(directory: Path) -> Operation:
    return _check_each(directory, latent=True)


def _check_each(directory: Path, *, latent: bool) -> Operation:
    """One existence check per split, one after the other; a part of them is measured and scaled up."""
    from indextables.log.transaction_log import TransactionLog
    from indextables.storage.store import open_store

    root = directory / "splits"
    paths = [add.path for add in TransactionLog.open(str(root)).list_files()]
    store: Any = open_store(str(root))
    store = LatentStore(store) if latent else store
    measured = min(SAMPLE, len(paths)) if latent else len(paths)

    def operation() -> Mapping[str, Any]:
        began = time.perf_counter()
        for path in paths[:measured]:
            store.head(path)
        seconds = time.perf_counter() - began
        return {"splits": len(paths), "checked": measured, "seconds": seconds * len(paths) / measured}

    return operation


def repaired_size(directory: Path) -> Operation:
    import indextables as it

    root = directory / "long_text"
    target = root / f"_repaired_{os.getpid()}"

    def operation() -> Mapping[str, Any]:
        plain = {"transaction.compression.enabled": "false"}
        result = it.repair_log(f"{root}/_transaction_log", str(target), plain)
        assert result.status == "SUCCESS", result.status
        before, after = _bytes(root / "_transaction_log"), _bytes(target)
        shutil.rmtree(target)
        return {
            "before_bytes": before,
            "after_bytes": after,
            "smaller_percent": round(100 * (1 - after / before), 2),
        }

    return operation


def _bytes(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.iterdir())


def merge_here(directory: Path) -> Operation:
    import indextables as it

    copy = _copied(directory)
    table = it.Table.open(copy)
    return lambda: _merged(table.merge_splits().to_arrow().to_pylist()[0], copy)


def merge_spark(directory: Path) -> Operation:
    spark, copy = _session(directory), _copied(directory)
    return lambda: _merged(spark.sql(f"MERGE SPLITS '{copy}'").first().asDict(), copy)


def rewrite_spark(directory: Path) -> Operation:
    spark, copy = _session(directory), _copied(directory)
    target = copy.parent / f"rewritten-{os.getpid()}"

    def operation() -> Mapping[str, Any]:
        frame = spark.read.format("indextables").load(str(copy)).repartition(1)
        writer = frame.write.format("indextables").option("indexing.typemap.message", "text")
        writer.mode("overwrite").save(str(target))
        return {"files": len(list(target.rglob("*.split")))}

    return operation


def _merged(row: Mapping[str, Any], copy: Path) -> Mapping[str, Any]:
    assert row["status"] == "SUCCESS", row
    assert row["merged_files"] == MERGED_SPLITS
    return {"groups": row["merge_groups"], "bytes": row["merged_size_bytes"]}


def _copied(directory: Path) -> Path:
    copy = directory / f"copy-{os.getpid()}"
    shutil.copytree(directory / "small", copy)
    import atexit

    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    atexit.register(shutil.rmtree, directory / f"rewritten-{os.getpid()}", ignore_errors=True)
    return copy


def _session(directory: Path) -> Any:
    """A session whose Python workers are warm: starting them is nobody's merit."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    import indextables as it

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = it.connect(builder.config("spark.driver.host", "127.0.0.1").getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    warm = directory / f"warm-{os.getpid()}"
    options = {"indexing.typemap.message": "text"}
    rows = spark.range(100).selectExpr("id", "cast(id as string) as message").repartition(2)
    rows.write.format("indextables").options(**options).mode("overwrite").save(str(warm))
    spark.read.format("indextables").load(str(warm)).count()
    spark.sql(f"MERGE SPLITS '{warm}'").collect()
    shutil.rmtree(warm)
    return spark


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the numbers must show."""
    by = {(row["case"], row["system"], row["size"]): row for row in rows}
    lines = []
    for case in ("repair, 5 ms per request", "repair, local disk"):
        ours, theirs = by.get((case, "REPAIR", "100k")), by.get((case, "check each split", "100k"))
        if ours and theirs:
            factor = theirs["seconds"] / ours["seconds"]
            goal = " (goal: 10x)" if "5 ms" in case else ""
            lines.append(
                f"{case}: 100,000 splits in {ours['seconds']:.1f} s, {factor:.1f}x the speed of one check each{goal}"
            )
    size = by.get(("repaired log of long text", "REPAIR", "1k"))
    if size:
        lines.append(f"repaired log of long text: {size['facts']['smaller_percent']} % smaller (goal: 98 %)")
    rival = by.get(("merge of 200 splits", "Spark rewrite", "1k"))
    for system in ("MERGE SPLITS", "MERGE SPLITS on Spark"):
        ours = by.get(("merge of 200 splits", system, "1k"))
        if ours and rival:
            lines.append(
                f"{system}: {rival['seconds'] / ours['seconds']:.2f}x the speed of a Spark rewrite (goal: 1x)"
            )
    return lines


SMALLEST = ("1k",)
TARGET = Target(
    name="maintenance",
    prepare=prepare,
    cases=[
        Case("repair, local disk", "REPAIR", "repair_local"),
        Case("repair, local disk", "check each split", "check_local"),
        Case("repair, 5 ms per request", "REPAIR", "repair_latent"),
        Case("repair, 5 ms per request", "check each split", "check_latent", repeat=1),
        Case("repaired log of long text", "REPAIR", "repaired_size", SMALLEST, repeat=1),
        Case("merge of 200 splits", "MERGE SPLITS", "merge_here", SMALLEST),
        Case("merge of 200 splits", "MERGE SPLITS on Spark", "merge_spark", SMALLEST),
        Case("merge of 200 splits", "Spark rewrite", "rewrite_spark", SMALLEST),
    ],
    rival="check each split",
    packages=("pyarrow", "tantivy", "pyspark"),
    goals=goals,
)
