"""Delta logs replayed locally and on Spark, and native logs on Spark, against delta-rs.

The tables are those of the replay target. A Spark case measures in a session
that has answered one question before: sessions live long, and the first query
of a JVM costs seconds whatever it asks. `growth` is what the driver's Python
and JVM grew by during the question, measured on a cluster of two workers in
processes of their own, where the driver's JVM does nothing but drive.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.workloads import ReplayWorkload, write_delta, write_native, write_seed

PLANNING = ("path", "size", "num_records")
WARM = 20_000


def prepare(directory: Path, size: str) -> None:
    """The same state as a Delta log and as a native one, and small ones to warm a session with."""
    for name, workload in (("", ReplayWorkload(count_of(size))), ("warm", ReplayWorkload(WARM))):
        place = directory / name
        for form in ("json", "delta"):
            shutil.rmtree(place / form, ignore_errors=True)
            (place / form).mkdir(parents=True)
        seed = place / "seed"
        write_seed(seed, workload)
        write_native(place / "json", seed, workload, "json")
        seed.unlink()
        write_delta(place / "delta", workload)


def _where(directory: Path) -> str:
    return ReplayWorkload(count_of(directory.name)).prune


def _local(columns: Sequence[str] | None, *, prune: bool) -> Callable[[Path], Operation]:
    def case(directory: Path) -> Operation:
        # Imports are not part of the time, for nobody; some libraries import parts of themselves when first used.
        import duckdb  # noqa: F401
        import pyarrow.parquet  # noqa: F401
        import sqlglot

        from indextables.log.delta_snapshot import open_snapshot
        from indextables.options import Options

        sqlglot.parse_one("a = 1", read="spark")

        where = _where(directory) if prune else None

        def operation() -> Mapping[str, Any]:
            snapshot = open_snapshot(directory / "delta", options=Options.of(None))
            plan = snapshot.plan(where, columns=columns, engine="local")
            stages = {name: round(spent, 3) for name, spent in plan.replay.seconds.items()}
            return {"files": plan.files.num_rows, "thread_seconds": stages}

        return operation

    return case


def _theirs(question: str) -> Callable[[Path], Operation]:
    def case(directory: Path) -> Operation:
        from deltalake import DeltaTable

        place, where = str(directory / "delta"), _where(directory)
        if question == "list":
            return lambda: {"files": len(DeltaTable(place).file_uris())}
        if question == "describe":
            return lambda: {"files": DeltaTable(place).get_add_actions(flatten=False).num_rows}
        return lambda: {"files": len(DeltaTable(place).file_uris(file_pruning_predicate=where))}

    return case


def _session(master: str) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName("indextables benchmark")
    confs = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.executor.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.maxResultSize": "2g",
    }
    for key, value in confs.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _snapshot(spark: Any, directory: Path, form: str) -> Any:
    from indextables.options import Options
    from indextables.spark.session import runtime_of

    if form == "delta":
        from indextables.log.delta_snapshot import open_snapshot

        return open_snapshot(directory / "delta", options=Options.of(None), runtime=runtime_of(spark))
    from indextables.log.transaction_log import TransactionLog

    return TransactionLog.open(str(directory / "json"), runtime=runtime_of(spark)).snapshot()


def _on_spark(
    form: str, columns: Sequence[str], *, prune: bool, master: str = "local[2]"
) -> Callable[[Path], Operation]:
    def case(directory: Path) -> Operation:
        spark = _session(master)
        where = _where(directory) if prune else None
        warm = ReplayWorkload(WARM).prune if prune else None
        for _ in range(3):
            _snapshot(spark, directory / "warm", form).plan(warm, columns=columns, engine="spark")
        before = _memory(spark)

        def operation() -> Mapping[str, Any]:
            worked = _cpu_seconds()
            plan = _snapshot(spark, directory, form).plan(where, columns=columns, engine="spark")
            facts = {"files": plan.files.num_rows, "collected": plan.replay.rows_collected}
            facts["jvm_cpu_s"] = round(_cpu_seconds() - worked, 2)
            after = _memory(spark)
            return {**facts, **{f"{name}_growth_mb": round(after[name] - before[name]) for name in before}}

        return operation

    return case


def _memory(spark: Any) -> dict[str, float]:
    """Most memory so far of this process and of the driver's JVM."""
    import psutil

    java = [child for child in psutil.Process().children(recursive=True) if "java" in child.name()]
    driver = [child for child in java if "SparkSubmit" in " ".join(child.cmdline())] or java
    return {"python": _peak(os.getpid()), "jvm": _peak(driver[0].pid)}


def _cpu_seconds() -> float:
    """Processor time of every process below this one: what a question costs whatever else runs here."""
    import psutil

    children = psutil.Process().children(recursive=True)
    return sum(sum(child.cpu_times()[:2]) for child in children)


def _peak(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


list_local = _local((), prune=False)
describe_local = _local(None, prune=False)
prune_local = _local(PLANNING, prune=True)
list_theirs = _theirs("list")
describe_theirs = _theirs("describe")
prune_theirs = _theirs("prune")
list_spark = _on_spark("delta", (), prune=False)
prune_spark = _on_spark("delta", PLANNING, prune=True)
list_native_spark = _on_spark("json", (), prune=False)
prune_native_spark = _on_spark("json", ("size", "num_records"), prune=True)
growth_spark = _on_spark("delta", PLANNING, prune=True, master="local-cluster[2,1,2048]")


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The goals of the Delta and Spark engines, each met or missed."""
    found = {(row["case"], row["system"], row["size"]): row for row in rows}
    lines = []

    def say(goal: str, met: bool, number: str) -> None:
        lines.append(f"{'met' if met else 'MISSED'}: {goal}: {number}")

    def times(case: str, system: str, size: str) -> float | None:
        ours, rival = found.get((case, system, size)), found.get((case, "delta-rs", size))
        return rival["seconds"] / ours["seconds"] if ours and rival else None

    for case, system, least in (
        ("list", "delta local", 5.0), ("prune 1%", "delta local", 3.0),
        ("list", "delta spark", 1.0), ("prune 1%", "delta spark", 0.5),
    ):  # fmt: skip
        if (ratio := times(case, system, "1M")) is not None:
            say(f"{case}, {system}, 1M, at least {least}x delta-rs", ratio >= least, f"{ratio:.1f}x")
    for size in ("1k", "10k", "100k"):
        for case in ("list", "prune 1%"):
            if (ratio := times(case, "delta local", size)) is not None:
                say(f"{case}, delta local, {size}, not slower", ratio >= 1, f"{ratio:.1f}x")
    row = found.get(("growth", "delta spark", "1M"))
    if row is not None:
        for name in ("python", "jvm"):
            grown = row["facts"][f"{name}_growth_mb"]
            say(f"driver {name} growth, prune 1%, 1M, under 300 MB", grown < 300, f"{grown} MB")
    return lines


TARGET = Target(
    "delta",
    prepare,
    [
        Case("list", "delta-rs", "list_theirs"),
        Case("list", "delta local", "list_local"),
        Case("list", "delta spark", "list_spark", repeat=1),
        Case("list", "native spark", "list_native_spark", repeat=1),
        Case("describe", "delta-rs", "describe_theirs"),
        Case("describe", "delta local", "describe_local"),
        Case("prune 1%", "delta-rs", "prune_theirs"),
        Case("prune 1%", "delta local", "prune_local"),
        Case("prune 1%", "delta spark", "prune_spark", repeat=1),
        Case("prune 1%", "native spark", "prune_native_spark", repeat=1),
        Case("growth", "delta spark", "growth_spark", sizes=("1M",), repeat=1),
    ],
    rival="delta-rs",
    packages=("indextables", "deltalake", "pyarrow", "duckdb", "pyspark"),
    goals=goals,
)
