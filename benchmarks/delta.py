"""Delta logs replayed locally and on Spark, and native logs on Spark, against delta-rs.

The tables are those of the replay target, and the same files as a log of
commits alone. A Spark case measures in a session that has answered questions
before: sessions live long, and the first query of a JVM costs seconds whatever
it asks. `growth` is what the driver's Python (resident memory, at its peak) and
its JVM (heap that a collection leaves) grew by during the question, measured on
a cluster of two workers in processes of their own, where the driver's JVM does
nothing but drive; `executor_mb` is the most that one of the workers had resident,
its JVM and its Python together, of a heap of 2 GB that Java fills before it collects. `scan` reads rows without Spark: of a size, so many rows.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.harness import ratio as ratio_of
from benchmarks.replay import load_imports
from benchmarks.workloads import (
    ReplayWorkload,
    write_delta,
    write_delta_commits,
    write_delta_rows,
    write_native,
    write_native_commits,
    write_seed,
)

PLANNING = ("path", "size", "num_records")
NATIVE_PLANNING = ("size", "num_records")
WARM = 20_000


def prepare(directory: Path, size: str) -> None:
    """The same state as a Delta log and as a native one, and small ones to warm a session with."""
    for name, workload in (("", ReplayWorkload(count_of(size))), ("warm", ReplayWorkload(WARM))):
        place = directory / name
        for form in ("native", "native commits", "delta", "commits", "rows"):
            shutil.rmtree(place / form, ignore_errors=True)
            (place / form).mkdir(parents=True)
        seed = place / "seed"
        write_seed(seed, workload)
        write_native(place / "native", seed, workload, "auto")
        write_native_commits(place / "native commits", workload)
        seed.unlink()
        write_delta(place / "delta", workload)
        write_delta_commits(place / "commits", workload)
    write_delta_rows(directory / "rows", count_of(size))


def _where(directory: Path) -> str:
    return ReplayWorkload(count_of(directory.name)).prune


def _local(columns: Sequence[str] | None, *, prune: bool, form: str = "delta") -> Callable[[Path], Operation]:
    def case(directory: Path) -> Operation:
        # Imports are not part of the time, for nobody; some libraries import parts of themselves when first used.
        import duckdb  # noqa: F401

        load_imports()
        _snapshot(None, directory / "warm", form)

        where = _where(directory) if prune else None

        def operation() -> Mapping[str, Any]:
            snapshot = _snapshot(None, directory, form)
            plan = snapshot.plan(where, columns=columns, engine="local")
            stages = {name: round(spent, 3) for name, spent in plan.replay.seconds.items()}
            return {"files": plan.files.num_rows, "thread_seconds": stages}

        return operation

    return case


def _theirs(question: str, form: str = "delta") -> Callable[[Path], Operation]:
    def case(directory: Path) -> Operation:
        from deltalake import DeltaTable

        place, where = str(directory / form), _where(directory)
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
    # A cluster that loses its driver starts executors anew until its master gives the application up.
    atexit.register(spark.stop)
    return spark


def _snapshot(spark: Any, directory: Path, form: str, options: Mapping[str, str] | None = None) -> Any:
    from indextables.options import Options
    from indextables.runtime import LOCAL

    runtime = LOCAL
    if spark is not None:
        from indextables.spark.runtime import runtime_with

        runtime = runtime_with(spark)
    if not form.startswith("native"):
        from indextables.log.delta.snapshot import open_snapshot

        return open_snapshot(directory / form, options=Options.of(options), runtime=runtime)
    from indextables.log.transaction_log import TransactionLog

    return TransactionLog.open(str(directory / form), options, runtime=runtime).snapshot()


def _on_spark(
    form: str, columns: Sequence[str], *, prune: bool, master: str = "local[2]"
) -> Callable[[Path], Operation]:
    def case(directory: Path) -> Operation:
        spark = _session(master)
        where = _where(directory) if prune else None
        warm = ReplayWorkload(WARM).prune if prune else None
        # Little memory: executors are to decode the commits of the small log, as they do those of a large one.
        little = {"distributedLogReplay.localMemory": "1m"} if form.endswith("commits") else None
        for _ in range(3):
            _snapshot(spark, directory / "warm", form, little).plan(warm, columns=columns, engine="spark")
        before = _memory(spark, begins=True)

        def operation() -> Mapping[str, Any]:
            worked, began = _cpu_seconds(), time.perf_counter()
            snapshot = _snapshot(spark, directory, form)
            plan = snapshot.plan(where, columns=columns, engine="spark")
            # What is measured after the question takes time of its own.
            facts: dict[str, Any] = {"seconds": time.perf_counter() - began}
            facts |= {"files": plan.files.num_rows, "collected": plan.replay.rows_collected}
            facts |= {
                "on_executors": plan.replay.rows_on_executors,
                "jvm_cpu_s": round(_cpu_seconds() - worked, 2),
            }
            after = _memory(spark)
            workers = {"executor_mb": round(after.pop("executor"))} if "executor" in after else {}
            grown = {f"{name}_growth_mb": round(after[name] - before[name]) for name in after}
            return {**facts, **grown, **workers}

        return operation

    return case


def _memory(spark: Any, *, begins: bool = False) -> dict[str, float]:
    """Megabytes: peaks since a measurement began, of this process, the driver's JVM and the largest executor, and the heap."""
    import psutil

    java = [child for child in psutil.Process().children(recursive=True) if "java" in child.name()]
    driver = [child for child in java if "SparkSubmit" in " ".join(child.cmdline())] or java
    executors = [child for child in java if "CoarseGrainedExecutorBackend" in " ".join(child.cmdline())]
    if begins:
        # What was needed before, to warm the session, must not hide what the question needs.
        for process in (os.getpid(), *(one.pid for one in executors)):
            Path(f"/proc/{process}/clear_refs").write_text("5")
    found = {"python": _peak(os.getpid()), "jvm": _peak(driver[0].pid)}
    if executors:
        found["executor"] = max(
            _peak(one.pid) + sum(_peak(worker.pid) for worker in one.children(recursive=True))
            for one in executors
        )
    bean = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()  # noqa: SLF001
    bean.gc()
    found["heap"] = bean.getHeapMemoryUsage().getUsed() / (1 << 20)
    return found


def _rows(system: str, where: str | None, columns: Sequence[str] | None) -> Callable[[Path], Operation]:
    """Read the rows of the table into memory: all of them, or one in a hundred of two columns.

    Each system has answered a question about the same files before.
    """

    def case(directory: Path) -> Operation:
        place = str(directory / "rows")
        last = count_of(directory.name) // 100
        condition = None if where is None else where.format(last=last)
        shown = "*" if columns is None else ", ".join(columns)
        if system == "delta local":
            import indextables as it

            it.DeltaTable.open(place).count("id = 1")
            return lambda: {"rows": it.DeltaTable.open(place).scan(condition, columns).read_all().num_rows}
        if system == "duckdb":
            import duckdb

            text = f"SELECT {shown} FROM read_parquet('{place}/*.parquet')"
            text += "" if condition is None else f" WHERE {condition}"
            duckdb.sql(f"SELECT count(*) FROM read_parquet('{place}/*.parquet') WHERE id = 1").fetchall()
            return lambda: {"rows": duckdb.sql(text).to_arrow_table().num_rows}
        import deltalake
        import pyarrow as pa

        text = f"SELECT {shown} FROM t" + ("" if condition is None else f" WHERE {condition}")

        def theirs() -> Mapping[str, Any]:
            engine = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(place))
            return {"rows": pa.table(engine.execute(text).read_all()).num_rows}

        warm = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(place))
        warm.execute("SELECT count(*) FROM t WHERE id = 1").read_all()
        return theirs

    return case


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
list_commits_theirs = _theirs("list", "commits")
list_commits_local = _local((), prune=False, form="commits")
list_commits_spark = _on_spark("commits", (), prune=False)
prune_commits_theirs = _theirs("prune", "commits")
prune_commits_local = _local(PLANNING, prune=True, form="commits")
prune_commits_spark = _on_spark("commits", PLANNING, prune=True)
list_native_local = _local((), prune=False, form="native")
prune_native_local = _local(NATIVE_PLANNING, prune=True, form="native")
list_native_spark = _on_spark("native", (), prune=False)
prune_native_spark = _on_spark("native", NATIVE_PLANNING, prune=True)
growth_spark = _on_spark("delta", PLANNING, prune=True, master="local-cluster[2,1,2048]")
growth_commits_spark = _on_spark("commits", PLANNING, prune=True, master="local-cluster[2,1,2048]")
growth_native = _on_spark("native", NATIVE_PLANNING, prune=True, master="local-cluster[2,1,2048]")
growth_native_commits = _on_spark(
    "native commits", NATIVE_PLANNING, prune=True, master="local-cluster[2,1,2048]"
)
list_native_commits_local = _local((), prune=False, form="native commits")
list_native_commits_spark = _on_spark("native commits", (), prune=False)
prune_native_commits_local = _local(NATIVE_PLANNING, prune=True, form="native commits")
prune_native_commits_spark = _on_spark("native commits", NATIVE_PLANNING, prune=True)
FEW = "id < {last}"
SOME = ("id", "host")
scan_local, scan_few_local = _rows("delta local", None, None), _rows("delta local", FEW, SOME)
scan_theirs, scan_few_theirs = _rows("delta-rs", None, None), _rows("delta-rs", FEW, SOME)
scan_duckdb, scan_few_duckdb = _rows("duckdb", None, None), _rows("duckdb", FEW, SOME)


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The goals of the Delta and Spark engines, each met or missed."""
    found = {(row["case"], row["system"], row["size"]): row for row in rows}
    lines = []

    def say(goal: str, met: bool, number: str) -> None:
        lines.append(f"{'met' if met else 'MISSED'}: {goal}: {number}")

    def times(case: str, system: str, size: str) -> float | None:
        ours, rival = found.get((case, system, size)), found.get((case, "delta-rs", size))
        return ratio_of(ours, rival)[0] if ours and rival else None

    for case, system, least in (
        ("list", "delta local", 8.0), ("prune 1%", "delta local", 5.0),
        ("list", "delta spark", 1.0), ("prune 1%", "delta spark", 0.5),
    ):  # fmt: skip
        if (ratio := times(case, system, "1M")) is not None:
            say(f"{case}, {system}, 1M, at least {least}x delta-rs", ratio >= least, f"{ratio:.1f}x")
    for size in ("1k", "10k", "100k"):
        for case in ("list", "prune 1%"):
            if (ratio := times(case, "delta local", size)) is not None:
                say(f"{case}, delta local, {size}, not slower", ratio >= 1, f"{ratio:.1f}x")
    for case, system in product(("growth", "growth commits"), ("delta spark", "native spark")):
        row = found.get((case, system, "1M"))
        if row is not None:
            goal = f"{case} of the driver, {system}, prune 1%, 1M, at most 100 MB"
            if "timed_out" in row["facts"]:
                say(goal, False, "no answer in time")
                continue
            grown = row["facts"]["python_growth_mb"] + row["facts"]["heap_growth_mb"]
            say(goal, grown <= 100, f"{grown} MB")
    return lines


def _growth(name: str, system: str, function: str) -> Case:
    return Case(name, system, function, sizes=("1M",), repeat=1, least_timeout_s=1200)


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
        Case("list", "native local", "list_native_local"),
        Case("prune 1%", "native local", "prune_native_local"),
        Case("list commits", "delta-rs", "list_commits_theirs"),
        Case("list commits", "delta local", "list_commits_local"),
        Case("list commits", "delta spark", "list_commits_spark", repeat=1, sizes=("1M",)),
        Case("prune commits", "delta-rs", "prune_commits_theirs"),
        Case("prune commits", "delta local", "prune_commits_local"),
        Case("prune commits", "delta spark", "prune_commits_spark", repeat=1, sizes=("1M",)),
        Case("list commits", "native local", "list_native_commits_local"),
        Case("list commits", "native spark", "list_native_commits_spark", repeat=1, sizes=("1M",)),
        Case("prune commits", "native local", "prune_native_commits_local"),
        Case("prune commits", "native spark", "prune_native_commits_spark", repeat=1, sizes=("1M",)),
        _growth("growth", "native spark", "growth_native"),
        _growth("growth commits", "native spark", "growth_native_commits"),
        _growth("growth", "delta spark", "growth_spark"),
        _growth("growth commits", "delta spark", "growth_commits_spark"),
        Case("scan", "delta-rs", "scan_theirs"),
        Case("scan", "duckdb", "scan_duckdb"),
        Case("scan", "delta local", "scan_local"),
        Case("scan 1%", "delta-rs", "scan_few_theirs"),
        Case("scan 1%", "duckdb", "scan_few_duckdb"),
        Case("scan 1%", "delta local", "scan_few_local"),
    ],
    rival="delta-rs",
    packages=("indextables", "deltalake", "pyarrow", "duckdb", "pyspark"),
    goals=goals,
)
