"""Streams that are killed: `python -m streams.kills --seeds 0:10`, from the directory `tests`.

`--until 20` goes on where the last run with this line of Spark ended, and keeps its figures.

Ten seeds are one story: five tables that somebody appends to, three of ours and two of Delta's, and an
application with a stream for each that copies it to another table, two files at a time. Each seed kills the
driver, its JVM and its Python workers with SIGKILL at a moment that it draws, and starts the streams again
from their checkpoints. In the end the copies must have every row exactly once.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

import indextables as it
from support.seeded import run_from_command_line

LINE = ".".join(version("pyspark").split(".")[:2])
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "reliability" / f"stream-kills-{LINE}.json"
KINDS = ("ours", "ours", "ours", "delta", "delta")
"""The tables of a story."""
_PATIENCE_S = 600
_SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
_APPLICATION = """
import sys
from pyspark.sql import SparkSession
import indextables as it

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = it.connect(it.configure(builder).getOrCreate(), check=False)
follow, roots = sys.argv[1] == "follow", sys.argv[2:]
queries = []
for root in roots:
    frame = spark.readStream.format("indextables").option("maxFilesPerTrigger", "2").load(root + "/source")
    writer = frame.writeStream.format("indextables").option("checkpointLocation", root + "/checkpoint")
    writer = writer.trigger(processingTime="0 seconds") if follow else writer.trigger(availableNow=True)
    queries.append(writer.start(root + "/target"))
print("started", flush=True)
for query in queries:
    query.awaitTermination()
print("ended", flush=True)
"""


class Finding(Exception):
    """Rows that a stream lost or wrote twice, or a stream that did not go on."""


@dataclass
class Tally:
    """What many kills came to."""

    runs: int = 0
    """Seeds that were run, from 0 on."""
    kills: Counter[str] = field(default_factory=Counter)
    """Streams that were killed, by the kind of table."""
    moments: Counter[str] = field(default_factory=Counter)
    """Whether the checkpoint had a batch that was begun and not finished."""
    rows: int = 0
    """Rows that were compared."""
    broken: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    commit: str = ""

    def to_json(self) -> dict[str, Any]:
        """The figures, for a result file."""
        return {**vars(self), "kills": dict(self.kills), "moments": dict(self.moments)}

    @classmethod
    def of_json(cls, figures: dict[str, Any]) -> Tally:
        """Read a result file."""
        counters = {name: Counter(figures[name]) for name in ("kills", "moments")}
        return cls(**{**figures, **counters})


class Copy:
    """One table and the stream that copies it."""

    def __init__(self, root: Path, kind: str) -> None:
        self.root, self.kind = root, kind
        self.appended = 0
        self.append()

    def append(self) -> None:
        """Commit three rows to the table."""
        ids = range(self.appended, self.appended + 3)
        rows = pa.table({"id": list(ids), "text": [f"row {number}" for number in ids]}, schema=_SCHEMA)
        append_to = _append_to_ours if self.kind == "ours" else _append_to_delta
        append_to(str(self.root / "source"), rows)
        self.appended += len(ids)

    def last(self, what: str) -> int:
        """The number of the newest batch that the checkpoint has offsets or a commit of; -1 for none."""
        directory = self.root / "checkpoint" / what
        names = os.listdir(directory) if directory.exists() else []
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def require_once(self) -> None:
        """Compare the copy with the table."""
        copied = it.Table.open(str(self.root / "target")).scan(columns=["id"]).read_all()["id"].to_pylist()
        try:
            require_once(self.appended, copied)
        except Finding as finding:
            raise Finding(f"{self.root.name} ({self.kind}): {finding}") from finding


class Story:
    """Some tables, an application that copies them, and somebody who appends and kills."""

    def __init__(self, root: Path, kinds: Sequence[str], tally: Tally) -> None:
        self.tally = tally
        self.copies = [Copy(root / f"t{number}", kind) for number, kind in enumerate(kinds)]

    def kill(self, seed: int) -> None:
        """Run the streams, appending meanwhile, and kill them at the moment that the seed draws."""
        chance = random.Random(f"stream {seed}")
        with _Application(self.copies, "follow") as application:
            application.wait_for("started")
            begun = [copy.last("offsets") for copy in self.copies]
            for copy in self.copies:
                for _ in range(chance.randint(1, 3)):
                    copy.append()
            if chance.random() < 0.5:
                time.sleep(chance.uniform(0, 3))
            else:
                # Soon after a batch was begun it is half done.
                chosen = chance.randrange(len(self.copies))
                application.wait_until(lambda: self.copies[chosen].last("offsets") > begun[chosen])
                time.sleep(chance.uniform(0, 0.5))
            application.kill()
        for copy in self.copies:
            during = copy.last("offsets") > copy.last("commits")
            self.tally.kills[copy.kind] += 1
            self.tally.moments["in a batch" if during else "between batches"] += 1

    def end(self) -> None:
        """Let the streams read the rest, and compare."""
        for copy in self.copies:
            copy.append()
        with _Application(self.copies, "end") as application:
            application.wait_for("ended")
        for copy in self.copies:
            copy.require_once()
            self.tally.rows += copy.appended


def require_once(appended: int, copied: Sequence[int]) -> None:
    """Raise unless the numbers below `appended` were all copied, each once."""
    times = Counter(copied)
    lost = [number for number in range(appended) if number not in times]
    twice = [number for number, count in times.items() if count > 1]
    if lost or twice or len(times) != appended:
        raise Finding(f"of {appended} rows {lost[:5]} are lost and {twice[:5]} are there twice")


class _Application:
    """A driver with a stream for each copy, in a group of processes of its own."""

    def __init__(self, copies: Sequence[Copy], kind: str) -> None:
        command = [sys.executable, "-c", _APPLICATION, kind, *(str(copy.root) for copy in copies)]
        self._errors = tempfile.TemporaryFile(mode="w+")
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._errors, text=True, start_new_session=True
        )

    def wait_for(self, word: str) -> None:
        """Wait until the application says a word."""
        assert self._process.stdout is not None
        late = threading.Timer(_PATIENCE_S, self.kill)
        late.start()
        try:
            for line in self._process.stdout:
                if line.strip() == word:
                    return
        finally:
            late.cancel()
        self._errors.seek(0)
        raise Finding(f"the stream ended before it said {word!r}: {self._errors.read()[-2000:]}")

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is true that the stream brings about."""
        late = time.monotonic() + _PATIENCE_S
        while not condition():
            if time.monotonic() > late or self.ended():
                raise Finding("the stream did not begin another batch")
            time.sleep(0.02)

    def ended(self) -> bool:
        """Whether the application is no more."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """The driver, its JVM and its Python workers die together."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.ended():
            self.kill()
        self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()


def _append_to_ours(path: str, rows: pa.Table) -> None:
    table = it.Table.open(path) if it.Table.exists(path) else it.Table.create(path, rows.schema)
    table.append(rows)


def _append_to_delta(path: str, rows: pa.Table) -> None:
    from deltalake import write_deltalake

    write_deltalake(path, rows, mode="append")


def run_story(root: Path, kinds: Sequence[str], seeds: range, tally: Tally) -> None:
    """Kill the streams once for each seed, and compare at the end."""
    story = Story(root, kinds, tally)
    for seed in seeds:
        story.kill(seed)
    story.end()


def run_seeds(seeds: range, tally: Tally) -> None:
    """Run the story of some seeds; one that breaks is kept in the tally by its first seed."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="streams-") as root:
        try:
            run_story(Path(root), KINDS, seeds, tally)
        except Finding as finding:
            tally.broken[str(seeds.start)] = str(finding)
    tally.runs = seeds.stop
    tally.seconds += time.monotonic() - began


if __name__ == "__main__":
    run_from_command_line(__doc__, RESULTS, Tally, run_seeds)
