"""Logs of up to ten million files, a fifth of them removed since the checkpoint: list, prune, refresh, write a checkpoint.

    python -m benchmarks.run large --sizes 1M,10M --repeat 1

The files are those of `replay`; each of the twenty commits after the checkpoint removes one in a hundred of them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.replay import PLANNING, load_imports
from benchmarks.workloads import ReplayWorkload, next_native_commit, write_delta, write_native, write_seed

OURS, DELTA, RIVAL = "native", "delta local", "delta-rs"
LIST_S, PRUNE_S, REFRESH_S, PEAK_MB = 4.0, 4.0, 0.1, 1000
"""The goals at ten million files: seconds to list, to prune to one file in a hundred, and to refresh; and memory of the first two."""
_RIVALS = ("10k", "100k", "1M")
"""delta-rs takes about 1 GB for a million files."""


def _workload(directory: Path) -> ReplayWorkload:
    files = count_of(directory.name)
    return ReplayWorkload(files, removes=files // 100, readds=0)


def prepare(directory: Path, size: str) -> None:
    """The same state as a native and as a Delta log."""
    del size
    for name in ("native", "delta"):
        shutil.rmtree(directory / name, ignore_errors=True)
        (directory / name).mkdir(parents=True)
    seed = directory / "seed"
    write_seed(seed, _workload(directory))
    write_native(directory / "native", seed, _workload(directory), "parquet")
    seed.unlink()
    write_delta(directory / "delta", _workload(directory))


def list_native(directory: Path) -> Operation:
    """Open, and name every live file."""
    import indextables as it

    load_imports()
    log = str(directory / "native")
    return lambda: {"files": len(it.TransactionLog.open(log).snapshot().plan(columns=()).files)}


def prune_native(directory: Path) -> Operation:
    """Open, and find the files that a predicate cannot exclude."""
    import indextables as it

    load_imports()
    where = _workload(directory).prune

    def operation() -> Mapping[str, Any]:
        plan = it.TransactionLog.open(str(directory / "native")).snapshot().plan(where, columns=PLANNING)
        return {"files": len(plan.files), "considered": plan.metrics.considered}

    return operation


def list_delta(directory: Path) -> Operation:
    """The same of the Delta log."""
    import indextables as it

    load_imports()
    place = str(directory / "delta")
    return lambda: {"files": len(it.delta.files(place, columns=("path",)))}


def prune_delta(directory: Path) -> Operation:
    """The same of the Delta log."""
    import indextables as it

    load_imports()
    where, place = _workload(directory).prune, str(directory / "delta")
    return lambda: {"files": len(it.delta.files(place, where=where, columns=("path", "size", "num_records")))}


def list_rival(directory: Path) -> Operation:
    """delta-rs: open, and name every file."""
    from deltalake import DeltaTable

    return lambda: {"files": len(DeltaTable(directory / "delta").file_uris())}


def prune_rival(directory: Path) -> Operation:
    """delta-rs: open, and name the files that a predicate cannot exclude."""
    from deltalake import DeltaTable

    where = _workload(directory).prune
    return lambda: {"files": len(DeltaTable(directory / "delta").file_uris(file_pruning_predicate=where))}


def _copied_log(directory: Path, copy: str) -> Path:
    """A copy that may be changed; what is never changed is linked."""
    place = directory / copy
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(directory / "native", place, copy_function=_link)
    return place


def _link(source: str, target: str) -> str:
    Path(target).hardlink_to(source)
    return target


def refresh_native(directory: Path) -> Operation:
    """A handle that has answered before sees one new commit of some hundred files, and answers again."""
    import indextables as it

    load_imports()
    workload = _workload(directory)
    place = _copied_log(directory, "refreshed")
    log = it.TransactionLog.open(str(place))
    log.snapshot().plan(workload.prune, columns=PLANNING)
    next_native_commit(place, ReplayWorkload(workload.files))

    def operation() -> Mapping[str, Any]:
        began = time.perf_counter()
        snapshot = log.snapshot(max_staleness_s=0)
        seen = time.perf_counter()
        files = len(snapshot.plan(workload.prune, columns=PLANNING).files)
        return {"files": files, "snapshot_ms": round((seen - began) * 1e3, 1)}

    return operation


def checkpoint_native(directory: Path) -> Operation:
    """Write a checkpoint of the newest version, on a log that is open."""
    import indextables as it

    load_imports()
    log = it.TransactionLog.open(
        str(_copied_log(directory, "checkpointed")), {"checkpoint.format": "parquet"}
    )
    log.snapshot()

    def operation() -> Mapping[str, Any]:
        log.checkpoint()
        return {}

    return operation


def checkpoint_rival(directory: Path) -> Operation:
    """delta-rs: the same."""
    from deltalake import DeltaTable

    copy = directory / "checkpointed-delta"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory / "delta", copy, copy_function=_link)
    (copy / "_delta_log" / "_last_checkpoint").unlink()
    shutil.copy(directory / "delta" / "_delta_log" / "_last_checkpoint", copy / "_delta_log")
    table = DeltaTable(copy)
    return lambda: table.create_checkpoint()


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the largest size takes beside its goal, and whether a curve bends upward."""
    if not rows:
        return []
    size = max((row["size"] for row in rows), key=count_of)
    lines = []
    for case, system, most in (
        ("list", OURS, LIST_S), ("prune 1%", OURS, PRUNE_S), ("list", DELTA, LIST_S),
        ("prune 1%", DELTA, PRUNE_S), ("refresh", OURS, REFRESH_S),
    ):  # fmt: skip
        own = {row["size"]: row for row in rows if (row["case"], row["system"]) == (case, system)}
        if size not in own:
            continue
        row = own[size]
        seconds, peak = row["cpu_seconds"], row["peak_mb"]
        text = f"{size}: {case}, {system}: {seconds:.2f} CPU s, at most {most:g}: {_verdict(seconds <= most)}"
        if case != "refresh":
            text += f"; {peak:.0f} MB, at most {PEAK_MB}: {_verdict(peak <= PEAK_MB)}"
        lines.append(text)
        smaller = max((other for other in own if other != size), key=count_of, default=None)
        if smaller is not None and case != "refresh":
            files = count_of(size) / count_of(smaller)
            times = seconds / own[smaller]["cpu_seconds"]
            lines.append(
                f"{size}: {case}, {system}: {times:.1f}x the CPU of {smaller} for {files:g}x the files"
            )
    return lines


def _verdict(met: bool) -> str:
    return "met" if met else "MISSED"


TARGET = Target(
    "large",
    prepare,
    [
        Case("list", OURS, "list_native"),
        Case("list", DELTA, "list_delta"),
        Case("list", RIVAL, "list_rival", sizes=_RIVALS, needs="deltalake"),
        Case("prune 1%", OURS, "prune_native"),
        Case("prune 1%", DELTA, "prune_delta"),
        Case("prune 1%", RIVAL, "prune_rival", sizes=_RIVALS, needs="deltalake"),
        Case("refresh", OURS, "refresh_native", repeat=1),
        Case("write checkpoint", OURS, "checkpoint_native", repeat=1),
        Case("write checkpoint", RIVAL, "checkpoint_rival", sizes=_RIVALS, repeat=1, needs="deltalake"),
    ],
    rival=RIVAL,
    packages=("indextables", "deltalake", "pyarrow", "duckdb"),
    goals=goals,
)
