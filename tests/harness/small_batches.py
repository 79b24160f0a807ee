"""Small batches without end: `python -m harness.small_batches --seconds 120`, from the directory `tests`.

Two processes append a batch at a time, two hand batches to a writer; splits are merged by levels. Each is
killed after some moments and begun again. Two readers of this process open the table again and again, count
and search. At the end every acknowledged row must be there once and every other row at most once, and what an
opening took in the last quarter of the run is set beside the first.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

import indextables as it
from support.commit import current_commit

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "reliability"
ROWS = 10
WORKERS = ("append", "append", "writer", "writer")
READERS = 2
LIVES_S = (0.5, 8.0)
"""A worker lives this long after it is ready; where it is then killed, it may be doing anything."""
PARTS = 4
OPTIONS = {"mergeOnWrite.enabled": "true"}


def batch(worker: str, number: int) -> pa.Table:
    """Ten rows that no other batch has."""
    ids = [f"{worker}-{number}-{row}" for row in range(ROWS)]
    return pa.table({"id": ids, "message": [f"user{number % 97} did {one}" for one in ids]})


def work(uri: str, kind: str, worker: str, acknowledged: str) -> None:
    """What a process does until it is killed: the rows of a batch are noted once they are committed."""
    table = it.Table.open(uri, options=OPTIONS)
    print("ready", flush=True)
    with Path(acknowledged).open("a") as notes:

        def note(number: int) -> None:
            notes.write(f"{worker} {number}\n")
            notes.flush()

        number = 0
        if kind == "append":
            while True:
                table.append(batch(worker, number))
                note(number)
                number += 1
        with table.writer(flush_seconds=0.2) as writer:
            while True:
                tickets = [writer.write(batch(worker, number + step)) for step in range(20)]
                for ticket in tickets:
                    ticket.wait()
                    note(number)
                    number += 1


class _Lives:
    """One worker after another in the same place, each killed at a moment that is drawn."""

    def __init__(self, uri: str, kind: str, place: int, notes: Path, seed: int) -> None:
        self._uri, self._kind, self._place, self._notes = uri, kind, place, notes
        self._dice = random.Random(f"{seed} {place}")
        self.kills = 0

    def run(self, until_s: float) -> None:
        """Begin and kill workers until the time is over."""
        while time.monotonic() < until_s:
            worker = f"{self._kind}{self._place}.{self.kills}"
            command = [sys.executable, "-m", "harness.small_batches", "--work", self._uri, self._kind, worker]
            command.append(str(self._notes / worker))
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            assert process.stdout is not None
            assert process.stderr is not None
            ready = process.stdout.readline()
            time.sleep(max(0.0, min(self._dice.uniform(*LIVES_S), until_s - time.monotonic())))
            early = process.poll()
            process.kill()
            process.wait()
            error = process.stderr.read().decode()
            process.stdout.close()
            process.stderr.close()
            if not ready or early is not None:
                raise AssertionError(f"{worker} ended by itself: {error[-2000:]}")
            self.kills += 1


def run(seconds: float, home: Path, seed: int = 0) -> dict[str, Any]:
    """Run for some time, and return the figures."""
    uri, notes = str(home / "t"), home / "notes"
    notes.mkdir()
    it.Table.create(uri, batch("", 0).schema, text="message")
    began = time.monotonic()
    until_s = began + seconds
    taken: list[tuple[float, float]] = []
    failures: list[str] = []

    def read(seed: int) -> None:
        dice = random.Random(seed)
        least = 0
        while time.monotonic() < until_s:
            start = time.monotonic()
            table = it.Table.open(uri)
            count = table.count()
            table.count(query=f"user{dice.randrange(97)}")
            taken.append((start - began, time.monotonic() - start))
            if count < least:
                raise AssertionError(f"{count} rows after {least}")
            least = count

    def guarded(target: Any, *arguments: Any) -> None:
        try:
            target(*arguments)
        except Exception as error:  # noqa: BLE001 - a thread has nobody else to tell
            failures.append(f"{type(error).__name__}: {error}"[:2000])

    lives = [_Lives(uri, kind, place, notes, seed) for place, kind in enumerate(WORKERS)]
    threads = [threading.Thread(target=guarded, args=(one.run, until_s)) for one in lives]
    threads += [threading.Thread(target=guarded, args=(read, seed * READERS + n)) for n in range(READERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    acknowledged = {tuple(line.split()) for file in notes.iterdir() for line in file.read_text().splitlines()}
    rows = {f"{worker}-{number}-{row}" for worker, number in acknowledged for row in range(ROWS)}
    table = it.Table.open(uri)
    found = Counter(table.scan(columns=["id"]).read_all()["id"].to_pylist())
    cuts = [(part * seconds / PARTS, (part + 1) * seconds / PARTS) for part in range(PARTS)]
    quarters = [[took for at, took in taken if first <= at < last] for first, last in cuts]
    return {
        "seconds": seconds, "kills": sum(one.kills for one in lives), "versions": table.version,
        "splits": table.files().num_rows, "acknowledged": len(rows), "rows": found.total(),
        "lost": len(rows - found.keys()), "doubled": sum(count > 1 for count in found.values()),
        "torn": sum(
            count != ROWS for count in Counter(one.rpartition("-")[0] for one in found).values()
        ),
        "open_ms": [round(1000 * statistics.median(quarter), 1) if quarter else None for quarter in quarters],
        "openings": len(taken), "failures": failures,
    }  # fmt: skip


def main() -> None:
    """Run and print the figures; --keep writes the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help=f"write {RESULTS}/small_batches.json")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(*arguments.work)
        return
    with tempfile.TemporaryDirectory(prefix="batches-") as home:
        figures = {**run(arguments.seconds, Path(home), arguments.seed), "commit": current_commit()}
    print(json.dumps(figures, indent=2))
    if arguments.keep:
        (RESULTS / "small_batches.json").write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
