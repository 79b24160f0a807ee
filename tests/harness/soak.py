"""A long run of readers and writers in one process: `python -m harness.soak --seconds 600`, from `tests`.

Writers append, a keeper merges and purges, readers refresh, count and search.
What it shows: how long a commit and a refresh take, at the beginning and at the
end, and whether memory, open files and threads stay where they are. At the end
every acknowledged row must be there once.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import indextables as it
from harness.verbs import OPTIONS, SCHEMA, rows
from support.commit import current_commit

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "reliability"
WRITERS, READERS = 2, 2
SAMPLE_S = 0.5
PARTS = 4
"""Into how many stretches of equal length the run is cut for comparison."""


@dataclass
class Watch:
    """What was measured: latencies with the time they were taken at, and samples of what the process holds."""

    began_s: float = field(default_factory=time.monotonic)
    commits: list[tuple[float, float]] = field(default_factory=list)
    refreshes: list[tuple[float, float]] = field(default_factory=list)
    samples: list[tuple[float, int, int, int]] = field(default_factory=list)
    """Time, resident bytes, open files, threads."""
    failures: list[str] = field(default_factory=list)

    def timed(self, into: list[tuple[float, float]], call: Callable[[], Any]) -> None:
        """Run something and note how long it took."""
        start = time.monotonic()
        call()
        into.append((start - self.began_s, time.monotonic() - start))

    def sample(self, process: psutil.Process) -> None:
        """Note what the process holds now."""
        with process.oneshot():
            held = process.memory_info().rss, process.num_fds(), process.num_threads()
        self.samples.append((time.monotonic() - self.began_s, *held))


def run_soak(uri: str, seconds: float, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Run for some time and return the figures."""
    chosen = {**OPTIONS, "checkpoint.interval": "10", **(options or {})}
    it.Table.create(uri, SCHEMA, ["day"], options=chosen)
    watch, stop = Watch(), threading.Event()
    acknowledged: Counter[str] = Counter()
    lock = threading.Lock()

    def write(name: str) -> None:
        table, batch = it.Table.open(uri, options=chosen), 0
        while not stop.is_set():
            new = rows(name, batch)
            watch.timed(watch.commits, lambda new=new: table.append(new))
            with lock:
                acknowledged.update(new["id"].to_pylist())
            batch += 1

    def look() -> None:
        table, log = it.Table.open(uri, options=chosen), it.TransactionLog.open(uri, chosen)
        while not stop.is_set():
            watch.timed(watch.refreshes, lambda: log.snapshot(max_staleness_s=0))
            table.refresh()
            table.count("day = '1'")
            table.search("message:row", limit=3).read_all()

    def keep() -> None:
        table = it.Table.open(uri, options=chosen)
        while not stop.wait(1):
            try:
                table.refresh().merge_splits()
            except it.errors.ConflictError:
                continue
            table.purge()

    work = [*(lambda n=n: write(f"w{n}") for n in range(WRITERS)), *(look for _ in range(READERS)), keep]
    threads = [threading.Thread(target=_guarded, args=(item, watch), daemon=True) for item in work]
    for thread in threads:
        thread.start()
    process = psutil.Process()
    while time.monotonic() - watch.began_s < seconds:
        watch.sample(process)
        time.sleep(SAMPLE_S)
    stop.set()
    for thread in threads:
        thread.join()
    found = Counter(it.Table.open(uri, options=chosen).scan(columns=["id"]).read_all()["id"].to_pylist())
    return _figures(
        watch, seconds, lost=(acknowledged - found).total(), doubled=(found - acknowledged).total()
    )


def _guarded(work: Callable[[], None], watch: Watch) -> None:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - a thread has nobody else to tell
        watch.failures.append(f"{type(error).__name__}: {error}"[:500])


def _figures(watch: Watch, seconds: float, *, lost: int, doubled: int) -> dict[str, Any]:
    cuts = [(n * seconds / PARTS, (n + 1) * seconds / PARTS) for n in range(PARTS)]
    return {
        "seconds": seconds,
        "commits": len(watch.commits),
        "refreshes": len(watch.refreshes),
        "commit_ms": [_percentiles(watch.commits, *cut) for cut in cuts],
        "refresh_ms": [_percentiles(watch.refreshes, *cut) for cut in cuts],
        "memory_mib": [_middle(watch.samples, 1, *cut) // (1 << 20) for cut in cuts],
        "open_files": [_middle(watch.samples, 2, *cut) for cut in cuts],
        "threads": [_middle(watch.samples, 3, *cut) for cut in cuts],
        "most_threads": max(sample[3] for sample in watch.samples),
        "lost": lost,
        "doubled": doubled,
        "failures": watch.failures,
    }


def _percentiles(taken: list[tuple[float, float]], first: float, last: float) -> dict[str, float]:
    found = sorted(1000 * took for at, took in taken if first <= at < last)
    if not found:
        return {"p50": 0.0, "p99": 0.0}
    return {"p50": round(found[len(found) // 2], 1), "p99": round(found[int(len(found) * 0.99)], 1)}


def _middle(samples: list[tuple[float, int, int, int]], column: int, first: float, last: float) -> int:
    return int(statistics.median(int(sample[column]) for sample in samples if first <= sample[0] < last))


def main() -> None:
    """Run and print the figures; --keep writes the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--keep", action="store_true", help=f"write {RESULTS}/soak.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as home:
        figures = {**run_soak(str(Path(home) / "t"), arguments.seconds), "commit": current_commit()}
    print(json.dumps(figures, indent=2))
    if arguments.keep:
        (RESULTS / "soak.json").write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
