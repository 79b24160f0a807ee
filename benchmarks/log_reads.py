"""Reading the log with and without checkpoints, threads and truncation, where every request takes 5 ms.

The tables of sections 3.2.4 and 3.3.4 of the specification, measured: a process that has read
nothing of a log of so many transactions opens it and lists the live files. The size of a run is the number of
transactions. `long statistics` has 60,000 characters as minimum and maximum of every file, 100 files in a transaction.
Opening a log without a checkpoint takes three requests one after the other (the hint, the listing, the versions side
by side), whatever the versions hold: 15 ms that truncation cannot save.
"""

from __future__ import annotations

import random
import shutil
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.maintenance import LatentStore

AFTER_CHECKPOINT = 10
TAILS = (10, 50, 100)
LONG = 60_000
LONG_TRANSACTIONS = (1, 10)
SMALLEST = ("100",)
WITHOUT_CHECKPOINTS = {"checkpoint.enabled": "false"}


def prepare(directory: Path, size: str) -> None:
    """The same transactions with and without a checkpoint; for the smallest size also tails and long texts."""
    count = count_of(size)
    _log(directory / "plain", count)
    _log(directory / "checkpointed", count, checkpoint_at=count - AFTER_CHECKPOINT)
    if size in SMALLEST:
        for tail in TAILS:
            _log(directory / f"tail{tail}", count + tail, checkpoint_at=count)
        for transactions in LONG_TRANSACTIONS:
            _long_text(directory / f"long{transactions}", count, transactions, truncate=False)
            _long_text(directory / f"truncated{transactions}", count, transactions, truncate=True)


def _log(root: Path, count: int, *, checkpoint_at: int | None = None) -> None:
    """A log of so many commits, each with one file."""
    log = _new(root)
    for n in range(count):
        log.add_files([_add(n, {"id": str(n)}, {"id": str(n)})])
        if n + 1 == checkpoint_at:
            log.checkpoint()


def _long_text(root: Path, count: int, transactions: int, *, truncate: bool) -> None:
    """Commits of `count` files each, as in section 8 of the text on truncation."""
    import indextables as it

    dice = random.Random(7)
    log = _new(root)
    bounds = [["".join(dice.choices(string.ascii_letters, k=LONG)) for _ in range(2)] for _ in range(count)]
    for start in range(0, transactions * count, count):
        adds = []
        for n, (least, most) in enumerate(bounds, start):
            lower, upper = {"id": str(n), "article": least}, {"id": str(n), "article": most}
            adds.append(_add(n, *(it.truncate_statistics(lower, upper) if truncate else (lower, upper))))
        log.add_files(adds)


def _new(root: Path) -> Any:
    import pyarrow as pa

    import indextables as it

    shutil.rmtree(root, ignore_errors=True)
    log = it.TransactionLog.open(str(root), WITHOUT_CHECKPOINTS)
    log.initialize(pa.schema([("id", pa.int64()), ("article", pa.string())]), [])
    return log


def _add(n: int, lower: Mapping[str, str], upper: Mapping[str, str]) -> Any:
    import indextables as it

    return it.AddAction(
        path=f"part-{n:08}.split", partition_values={}, size=1000, modification_time=1_700_000_000_000 + n,
        num_records=10, min_values=lower, max_values=upper,
    )  # fmt: skip


def _read(root: Path, threads: int) -> Operation:
    import indextables.log.replay.columnar  # noqa: F401
    from indextables.log.transaction_log import TransactionLog
    from indextables.options import Options
    from indextables.runtime import LOCAL
    from indextables.storage.store import open_store

    options = Options.of({"checkpoint.parallelism": str(threads)})

    def read(store: Any) -> int:
        return int(TransactionLog(store, options, LOCAL).snapshot().files().num_rows)

    store: Any = open_store(str(root))
    read(store)  # What a process does once, such as importing, is not what is measured.

    def operation() -> Mapping[str, Any]:
        return {"files": read(LatentStore(store)), "log_bytes": _bytes(root)}

    return operation


def _bytes(root: Path) -> int:
    return sum(path.stat().st_size for path in (root / "_transaction_log").iterdir())


def plain_1(directory: Path) -> Operation:
    return _read(directory / "plain", 1)


def plain_4(directory: Path) -> Operation:
    return _read(directory / "plain", 4)


def checkpointed_1(directory: Path) -> Operation:
    return _read(directory / "checkpointed", 1)


def checkpointed_4(directory: Path) -> Operation:
    return _read(directory / "checkpointed", 4)


def tail10_1(directory: Path) -> Operation:
    return _read(directory / "tail10", 1)


def tail10_4(directory: Path) -> Operation:
    return _read(directory / "tail10", 4)


def tail50_1(directory: Path) -> Operation:
    return _read(directory / "tail50", 1)


def tail50_4(directory: Path) -> Operation:
    return _read(directory / "tail50", 4)


def tail100_1(directory: Path) -> Operation:
    return _read(directory / "tail100", 1)


def tail100_4(directory: Path) -> Operation:
    return _read(directory / "tail100", 4)


def long_statistics_1(directory: Path) -> Operation:
    return _read(directory / "long1", 4)


def truncated_statistics_1(directory: Path) -> Operation:
    return _read(directory / "truncated1", 4)


def long_statistics_10(directory: Path) -> Operation:
    return _read(directory / "long10", 4)


def truncated_statistics_10(directory: Path) -> Operation:
    return _read(directory / "truncated10", 4)


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the numbers show beside what the specification estimates."""
    by = {(row["case"], row["system"], row["size"]): row["seconds"] for row in rows}
    lines = []
    for size, estimate in (("100", 70), ("500", 92), ("1k", 95)):
        without = by.get(("whole log", "every version, 1 thread", size))
        using = by.get(("whole log", "checkpoint, 4 threads", size))
        if without and using:
            lines.append(
                f"{size} transactions: {1000 * without:.0f} ms without a checkpoint, {1000 * using:.0f} ms with "
                f"one, {100 * (1 - using / without):.0f} % less (3.3.4 estimates {estimate} %)"
            )
    for tail, estimate in ((100, 70), (50, 68), (10, 60)):
        one, four = (by.get((f"{tail} versions after the checkpoint", f"{n}", "100")) for n in _THREADS)
        if one and four:
            lines.append(
                f"{tail} versions after the checkpoint: {1000 * one:.0f} ms with 1 thread, {1000 * four:.0f} ms "
                f"with 4, {100 * (1 - four / one):.0f} % less (3.2.4 estimates {estimate} %)"
            )
    cpu = {(row["case"], row["system"], row["size"]): row["cpu_seconds"] for row in rows}
    for transactions in LONG_TRANSACTIONS:
        kept, cut = ((_long_case(transactions), system, "100") for system in ("kept", "truncated"))
        if kept in by and cut in by:
            lines.append(
                f"log of {transactions} x 100 files: {1000 * by[kept]:.0f} ms with long statistics, "
                f"{1000 * by[cut]:.0f} ms with truncated ones, {by[kept] / by[cut]:.1f}x faster and "
                f"{cpu[kept] / cpu[cut]:.0f}x less CPU (the specification says 10x)"
            )
    return lines


def _long_case(transactions: int) -> str:
    return f"statistics of 60,000 characters in {transactions} transactions of 100 files"


_THREADS = ("checkpoint, 1 thread", "checkpoint, 4 threads")

TARGET = Target(
    name="log_reads",
    prepare=prepare,
    cases=[
        Case("whole log", "every version, 1 thread", "plain_1"),
        Case("whole log", "every version, 4 threads", "plain_4"),
        Case("whole log", "checkpoint, 1 thread", "checkpointed_1"),
        Case("whole log", "checkpoint, 4 threads", "checkpointed_4"),
        *(
            Case(f"{tail} versions after the checkpoint", system, f"tail{tail}_{threads}", SMALLEST)
            for tail in TAILS
            for threads, system in zip((1, 4), _THREADS, strict=True)
        ),
        *(
            Case(_long_case(transactions), system, f"{function}_{transactions}", SMALLEST)
            for transactions in LONG_TRANSACTIONS
            for system, function in (("kept", "long_statistics"), ("truncated", "truncated_statistics"))
        ),
    ],
    rival="every version, 1 thread",
    packages=("pyarrow",),
    goals=goals,
)
