"""Rows on their way in, under processes that are killed: `python -m ingestion.run --seeds 0:20`, from `tests`.

`--until 100` goes on where the last run ended and keeps the figures.

- `indextables tail -f` follows a log that is written and rotated meanwhile, one process or two at once; each is
  killed with SIGKILL and started again. Another process follows the table and notes the rows that it is given.
- `indextables load` brings in files of every format and is killed on its way: all rows of its commit or none.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import indextables as it
from harness.nursery import Nursery, note
from indextables.ops.read.follow import Follower
from ingestion.rotation import Rotation
from support.seeded import run_from_command_line

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "reliability" / "ingestion.json"
ROUNDS = 3
STEPS = 14
LOADS = 4
FORMATS = ("csv", "jsonl", "parquet", "log")


@dataclass
class Tally:
    """What many runs came to."""

    runs: int = 0
    """Seeds that were run, from 0 on."""
    killed: int = 0
    rotations: Counter[str] = field(default_factory=Counter)
    lines: int = 0
    """Whole lines that were written to logs."""
    arrived: int = 0
    excused: int = 0
    """Lines that were gone before anybody could read them."""
    followed: int = 0
    """Rows that followers were given."""
    loads: int = 0
    loads_landed: int = 0
    broken: dict[str, list[str]] = field(default_factory=dict)
    seconds: float = 0.0
    commit: str = ""

    def to_json(self) -> dict[str, Any]:
        """The figures, for a result file."""
        return {**vars(self), "rotations": dict(sorted(self.rotations.items()))}

    @classmethod
    def of_json(cls, figures: dict[str, Any]) -> Tally:
        """Read a result file."""
        return cls(**{**figures, "rotations": Counter(figures["rotations"])})


# What children do


def command(job: dict[str, Any]) -> None:
    """Run the command line in this process; what it says on standard error is the reason if it fails."""
    from indextables.cli.main import main

    sys.argv = ["indextables", *job["arguments"]]
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"exit {end.code}: {said.getvalue()[-1500:]}") from None


def follow(job: dict[str, Any]) -> None:
    """Follow a table from its first version, and note what is given, until a file exists."""
    follower = None
    is_over = False
    while not is_over:
        is_over = Path(job["until"]).exists()
        if follower is None and it.Table.exists(job["root"]):
            follower = Follower(it.Table.open(job["root"]).log, columns=["message"], after=0)
        for rows in follower.poll() if follower else ():
            note(job["notes"], {"given": rows["message"].to_pylist()})
        time.sleep(0.05)


# A run


class Run:
    """One seed."""

    def __init__(self, seed: int, home: Path, nursery: Nursery, tally: Tally) -> None:
        self.chance = random.Random(f"ingestion {seed}")
        self.home, self.nursery, self.tally = home, nursery, tally
        self.findings: list[str] = []
        self.root = str(home / "t")

    def go(self) -> list[str]:
        """Let everything happen; what it breaks."""
        self.tail()
        self.load()
        self.tally.runs += 1
        return self.findings

    def _jobs_done(self, jobs: list[dict[str, Any]]) -> list[int]:
        ends = self.nursery.run(jobs)
        self.tally.killed += sum(end < 0 for end in ends)
        for job in jobs:
            told = _notes(job)
            self.findings += [f"{job['name']}: {item['failed']}" for item in told if "failed" in item]
        return ends

    def _job(self, name: str, work: str, **more: Any) -> dict[str, Any]:
        notes = str(self.home / f"{name}.notes")
        return {"name": name, "work": f"ingestion.run:{work}", "root": self.root, "notes": notes, **more}

    # Following a log

    def lines(self) -> Counter[str]:
        """The lines that the table has."""
        if not it.Table.exists(self.root):
            return Counter()
        return Counter(it.Table.open(self.root).scan(columns=["message"]).read_all()["message"].to_pylist())

    def tail(self) -> None:
        """Follow a log through rotations and kills, and hold the table against what was written."""
        folder = self.home / "logs"
        folder.mkdir()
        rotation = Rotation(folder, self.chance, self.lines)
        arguments = ["tail", str(rotation.log), "--to", self.root]
        followers = []
        for number in range(ROUNDS):
            over = self.home / f"over{number}"
            jobs = []
            for at in range(self.chance.choice((1, 1, 2))):
                job = self._job(
                    f"tail{number}{at}", "command", arguments=[*arguments, "-f", "--every", "0.1"]
                )
                job["kill_when"] = str(over)
                if self.chance.random() < 0.5:
                    job["kill_at"] = self.chance.randint(5, 400)
                jobs.append(job)
            followers.append(self._job(f"follow{number}", "follow", until=str(over)))
            busy = threading.Thread(target=self._jobs_done, args=([*jobs, followers[-1]],))
            busy.start()
            last = self.chance.randrange(STEPS // 2, STEPS)
            for step in range(STEPS):
                rotation.step()
                time.sleep(self.chance.choice((0.0, 0.02, 0.1)))
                if step == last:
                    over.touch()
            busy.join()
        # What ends by itself brings in everything that is there.
        self._jobs_done([self._job("last", "command", arguments=arguments)])
        arrived = self.lines()
        self.findings += rotation.findings(arrived)
        for job in followers:
            self._check_followed(job, arrived)
        self.tally.rotations.update(rotation.rotations)
        self.tally.lines += sum(len(item.lines) for item in rotation.generations)
        self.tally.arrived += len(arrived)
        self.tally.excused += rotation.excused(arrived)

    def _check_followed(self, job: dict[str, Any], arrived: Counter[str]) -> None:
        given = [line for item in _notes(job) for line in item.get("given", ())]
        self.tally.followed += len(given)
        twice = [line for line, times in Counter(given).items() if times > 1]
        if twice:
            self.findings.append(f"{job['name']} was given {twice[0][:40]} twice")
        if set(given) - arrived.keys():
            self.findings.append(f"{job['name']} was given lines that the table does not have")
        newest = it.Table.open(self.root).log
        whole = [
            row for rows in Follower(newest, columns=["message"], after=0).poll() for row in rows.to_pylist()
        ]
        if given != [row["message"] for row in whole][: len(given)]:
            self.findings.append(f"{job['name']} was not given the first rows in their order")

    # Loading files

    def load(self) -> None:
        """Load files, killed on the way: the rows of a command are there as often as its commits, and whole."""
        self.root = str(self.home / "loaded")
        form = self.chance.choice(FORMATS)
        count = self.chance.choice((3, 500, 20_000))
        files = [self._file(form, at, count) for at in range(self.chance.choice((1, 2)))]
        expected = Counter(f"f{at}r{row}" for at in range(len(files)) for row in range(count))
        landed = 0
        for attempt in range(LOADS):
            arguments = ["load", *files, "--to", self.root, "--again"]
            jobs = [self._job(f"load{attempt}{at}", "command", arguments=arguments) for at in range(2)]
            for job in jobs:
                if attempt < LOADS - 1 and self.chance.random() < 0.7:
                    job["kill_at"] = self.chance.randint(1, 40)
            ends = self._jobs_done(jobs)
            rows = self._loaded()
            self.tally.loads += len(jobs)
            times = {rows.get(name, 0) for name in expected}
            if len(times) > 1 or rows.keys() - expected.keys():
                self.findings.append(f"load of {form} left a part of its rows: {sorted(times)}")
                return
            now = times.pop()
            if not landed + ends.count(0) <= now <= landed + len(jobs):
                self.findings.append(
                    f"load of {form}: {now} commits after {landed}, and the ends were {ends}"
                )
            self.tally.loads_landed += now - landed
            landed = now

    def _loaded(self) -> Counter[str]:
        if not it.Table.exists(self.root):
            return Counter()
        table = it.Table.open(self.root)
        column = "message" if "message" in table.schema.names else "name"
        return Counter(table.scan(columns=[column]).read_all()[column].to_pylist())

    def _file(self, form: str, at: int, count: int) -> str:
        path = self.home / f"file{at}.{form}"
        names = [f"f{at}r{row}" for row in range(count)]
        table = pa.table({"name": names, "number": list(range(count))})
        if form == "csv":
            pyarrow.csv.write_csv(table, path)
        elif form == "parquet":
            pyarrow.parquet.write_table(table, path)
        elif form == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
        else:
            path.write_text("".join(f"{name}\n" for name in names))
        return str(path)


def _notes(job: dict[str, Any]) -> list[dict[str, Any]]:
    place = Path(job["notes"])
    if not place.exists():
        return []
    # A process that is killed while it notes something leaves half a line.
    lines = place.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def run_seeds(seeds: range, tally: Tally | None = None) -> Tally:
    """Run a range of seeds; what broke is in the tally."""
    tally = tally or Tally()
    began = time.monotonic()
    with Nursery() as nursery:
        for seed in seeds:
            with tempfile.TemporaryDirectory(prefix="ingestion-") as home:
                findings = Run(seed, Path(home), nursery, tally).go()
            if findings:
                tally.broken[str(seed)] = findings
    tally.seconds = round(tally.seconds + time.monotonic() - began, 1)
    return tally


def main() -> None:
    """Run seeds and print what came of them."""
    run_from_command_line(__doc__, RESULTS, Tally, run_seeds)


if __name__ == "__main__":
    main()
