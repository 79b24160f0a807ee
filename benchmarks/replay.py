"""Opening a log and finding its live files: native JSON and Parquet checkpoints against delta-rs."""

from __future__ import annotations

import importlib
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.harness import ratio as ratio_of
from benchmarks.workloads import (
    ReplayWorkload,
    next_native_commit,
    write_delta,
    write_native,
    write_seed,
)

PLANNING = ("size", "num_records", "index_offset", "index_length")


def prepare(directory: Path, size: str) -> None:
    """The same state three times."""
    workload = ReplayWorkload(count_of(size))
    for name in ("json", "parquet", "delta"):
        shutil.rmtree(directory / name, ignore_errors=True)
        (directory / name).mkdir(parents=True)
    seed = directory / "seed"
    write_seed(seed, workload)
    write_native(directory / "json", seed, workload, "json")
    write_native(directory / "parquet", seed, workload, "parquet")
    seed.unlink()
    write_delta(directory / "delta", workload)


def _workload(directory: Path) -> ReplayWorkload:
    return ReplayWorkload(count_of(directory.name))


def load_imports() -> None:
    """Import what the operations use, the SQL dialect included: imports are not part of the time, for nobody."""
    for name in ("indextables.log.transaction_log", "indextables.log.replay.columnar", "pyarrow.parquet"):
        importlib.import_module(name)
    import pyarrow as pa

    # The first array made from Python values looks for pandas and loads it.
    pa.array([None])
    from indextables.predicate.build.from_sql import as_node

    as_node("id = 1", pa.schema([("id", pa.int64())]), "UTC")


def _open(directory: Path, form: str) -> Any:
    import indextables as it

    return it.TransactionLog.open(str(directory / form))


def _listing(form: str, columns: Sequence[str] | None) -> Any:
    def case(directory: Path) -> Operation:
        load_imports()

        def operation() -> Mapping[str, Any]:
            files = _open(directory, form).snapshot().plan(columns=columns).files
            return {"files": len(files)}

        return operation

    return case


def _pruning(form: str) -> Any:
    def case(directory: Path) -> Operation:
        load_imports()

        where = _workload(directory).prune

        def operation() -> Mapping[str, Any]:
            plan = _open(directory, form).snapshot().plan(where, columns=PLANNING)
            return {"files": len(plan.files), "considered": plan.metrics.considered}

        return operation

    return case


list_json = _listing("json", ())
list_parquet = _listing("parquet", ())
describe_json = _listing("json", None)
describe_parquet = _listing("parquet", None)
prune_json = _pruning("json")
prune_parquet = _pruning("parquet")


def list_delta(directory: Path) -> Operation:
    """delta-rs: open and name every file."""
    from deltalake import DeltaTable

    return lambda: {"files": len(DeltaTable(directory / "delta").file_uris())}


def describe_delta(directory: Path) -> Operation:
    """delta-rs: open and give every file with its statistics."""
    from deltalake import DeltaTable

    return lambda: {"files": DeltaTable(directory / "delta").get_add_actions(flatten=False).num_rows}


def prune_delta(directory: Path) -> Operation:
    """delta-rs: open and name the files a predicate cannot exclude."""
    from deltalake import DeltaTable

    where = _workload(directory).prune
    return lambda: {"files": len(DeltaTable(directory / "delta").file_uris(file_pruning_predicate=where))}


def _counted(directory: Path) -> tuple[Any, list[tuple[str, str]]]:
    """A log handle and the list of the objects it opens."""
    from indextables.log.transaction_log import TransactionLog
    from indextables.storage.store import open_store

    inner = open_store(str(directory))
    opens: list[tuple[str, str]] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            found = getattr(inner, name)
            if name not in {"get", "get_range", "head", "list", "list_level"}:
                return found

            def call(path: str = "", *rest: Any, **named: Any) -> Any:
                opens.append((name, path))
                return found(path, *rest, **named)

            return call

    return TransactionLog.open(str(directory), store=Counting()), opens


def _tally(opens: Sequence[tuple[str, str]]) -> dict[str, int]:
    listings = sum(name in {"list", "list_level"} for name, _ in opens)
    checkpoints = sum("checkpoint" in path and "last_checkpoint" not in path for _, path in opens)
    commits = sum(path.endswith(".json") and "checkpoint" not in path for _, path in opens)
    return {"requests": len(opens), "listings": listings, "checkpoint_files": checkpoints, "commits": commits}


def refresh(directory: Path) -> Operation:
    """A handle that has answered before sees one new commit and answers again."""
    workload = _workload(directory)
    copy = directory / "refreshed"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory / "json", copy)
    log, opens = _counted(copy)
    log.snapshot().plan(workload.prune, columns=PLANNING)
    next_native_commit(copy, workload)
    opens.clear()

    def operation() -> Mapping[str, Any]:
        began = time.perf_counter()
        snapshot = log.snapshot(max_staleness_s=0)
        seen = time.perf_counter()
        plan = snapshot.plan(workload.prune, columns=PLANNING)
        done = time.perf_counter()
        facts = {"snapshot_ms": round((seen - began) * 1e3, 1), "plan_ms": round((done - seen) * 1e3, 1)}
        return {**facts, "files": len(plan.files), **_tally(opens)}

    return operation


def _checkpointing(form: str) -> Any:
    def case(directory: Path) -> Operation:
        """Write a checkpoint after the commits, on a log that is already open, in the form of the one before."""
        copy = directory / f"checkpointed-{form}"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(directory / form, copy)
        load_imports()
        import indextables as it

        log = it.TransactionLog.open(str(copy), {"checkpoint.format": form})
        log.snapshot()

        def operation() -> Mapping[str, Any]:
            log.checkpoint()
            hint = json.loads((copy / "_transaction_log" / "_last_checkpoint").read_text())
            return {"files": hint["numFiles"], "bytes": hint["sizeInBytes"], "parts": hint.get("parts", 1)}

        return operation

    return case


checkpoint_json = _checkpointing("json")
checkpoint_parquet = _checkpointing("parquet")


def checkpoint_delta(directory: Path) -> Operation:
    """delta-rs: the same, on a table that is already open."""
    from deltalake import DeltaTable

    copy = directory / "checkpointed-delta"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory / "delta", copy)
    table = DeltaTable(copy)
    return lambda: table.create_checkpoint()


def _opens(question: str) -> Any:
    def case(directory: Path) -> Operation:
        load_imports()
        log, opens = _counted(directory / "json")

        def operation() -> Mapping[str, Any]:
            if question == "open":
                facts: dict[str, Any] = {"version": log.snapshot().version}
            elif question == "as_of":
                facts = {"version": log.snapshot(as_of="2027-01-15T08:00:00.020Z").version}
            else:
                facts = {"rows": len(log.history(5))}
            return {**facts, **_tally(opens)}

        return operation

    return case


opens_open = _opens("open")
opens_as_of = _opens("as_of")
opens_history = _opens("history")


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The goals of the replay engine, each met or missed."""
    found = {(row["case"], row["system"], row["size"]): row for row in rows}

    def times(case: str, system: str, size: str) -> float | None:
        ours, rival = found.get((case, system, size)), found.get((case, "delta-rs", size))
        return ratio_of(ours, rival)[0] if ours and rival else None

    lines = []

    def say(goal: str, met: bool, number: str) -> None:
        lines.append(f"{'met' if met else 'MISSED'}: {goal}: {number}")

    for case in ("list", "prune 1%"):
        if (ratio := times(case, "native parquet", "1M")) is not None:
            say(f"{case}, native parquet, 1M, at least 8x delta-rs", ratio >= 8, f"{ratio:.1f}x")
    for size in ("1k", "10k", "100k", "1M"):
        for case in ("list", "prune 1%"):
            if (ratio := times(case, "native json", size)) is not None:
                say(f"{case}, native json, {size}, not slower", ratio >= 1, f"{ratio:.1f}x")
    for case, system in product(("list", "prune 1%"), ("native json", "native parquet")):
        ours, rival = found.get((case, system, "1M")), found.get((case, "delta-rs", "1M"))
        if ours and rival:
            share = ours["peak_mb"] / rival["peak_mb"]
            say(f"{case}, {system}, 1M, at most half the memory", share <= 0.5, f"{share:.2f}")
    if (row := found.get(("refresh", "native json", "1M"))) is not None:
        say(
            "refresh after one commit, 1M, under 50 ms",
            row["seconds"] < 0.05,
            f"{row['seconds'] * 1e3:.0f} ms",
        )
        say(
            "refresh reads no checkpoint",
            row["facts"]["checkpoint_files"] == 0,
            str(row["facts"]["checkpoint_files"]),
        )
    for case, system in (("write checkpoint", "native parquet"), ("describe", "native parquet")):
        if (ratio := times(case, system, "1M")) is not None:
            say(f"{case}, {system}, 1M, faster than delta-rs", ratio > 1, f"{ratio:.1f}x")
    return lines


TARGET = Target(
    "replay",
    prepare,
    [
        Case("list", "delta-rs", "list_delta"),
        Case("list", "native json", "list_json"),
        Case("list", "native parquet", "list_parquet"),
        Case("describe", "delta-rs", "describe_delta"),
        Case("describe", "native json", "describe_json"),
        Case("describe", "native parquet", "describe_parquet"),
        Case("prune 1%", "delta-rs", "prune_delta"),
        Case("prune 1%", "native json", "prune_json"),
        Case("prune 1%", "native parquet", "prune_parquet"),
        Case("refresh", "native json", "refresh"),
        Case("write checkpoint", "delta-rs", "checkpoint_delta"),
        Case("write checkpoint", "native json", "checkpoint_json"),
        Case("write checkpoint", "native parquet", "checkpoint_parquet"),
        Case("open", "native json", "opens_open"),
        Case("as_of", "native json", "opens_as_of"),
        Case("history(5)", "native json", "opens_history"),
    ],
    rival="delta-rs",
    packages=("indextables", "deltalake", "pyarrow", "duckdb", "isal", "msgspec"),
    goals=goals,
)
