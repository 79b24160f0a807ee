"""Lists under real processes: `python -m lists.processes --seeds 0:20`, from the directory `tests`.

`--until 200` goes on where the last run ended and keeps the figures.

Writers, readers and one process that merges, checkpoints and erases history share a table on a local disk,
for two rounds; some of them are killed with SIGKILL, by their own hand as they are about to touch a file
for the n-th time or from outside after some time. Each says what it is about to do and what came of it in
a file of its own, which outlives it. The checker is given all of that, and a last read.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import indextables as it
from harness.nursery import Nursery, note
from indextables.errors import CommitError, ConflictError, VersionNotFoundError
from lists.checker import ABORTED, COMMITTED, UNKNOWN, Append, Read, Transaction, check
from lists.workload import (
    FORMS,
    SCHEMA,
    Stream,
    append_rows,
    draw_appends,
    first_cells,
    read_lists,
    read_some_lists,
    replace_rows,
    update_cells,
)
from support.seeded import run_from_command_line

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "reliability" / "lists.json"
OPTIONS = {
    "indexing.typemap.body": "text",
    "checkpoint.interval": "5",
    "transaction.retry.baseDelayMs": "5",
    "transaction.retry.maxAttempts": "100",
    "purge.retentionCheckEnabled": "false",
}
ROUNDS = 2
WRITERS = 3
READERS = 2
STEPS = 8


@dataclass
class Tally:
    """What many histories came to."""

    runs: int = 0
    """Seeds that were run, from 0 on."""
    killed: int = 0
    transactions: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    appends: int = 0
    """Elements whose transaction was acknowledged."""
    reads: int = 0
    broken: dict[str, list[str]] = field(default_factory=dict)
    seconds: float = 0.0
    commit: str = ""
    """The commit that the newest of them ran on."""

    def to_json(self) -> dict[str, Any]:
        """The figures, for a result file."""
        return {**vars(self), "outcomes": dict(sorted(self.outcomes.items()))}

    @classmethod
    def of_json(cls, figures: dict[str, Any]) -> Tally:
        """Read a result file."""
        return cls(**{**figures, "outcomes": Counter(figures["outcomes"])})


# What a child does


class _Client:
    """One process: a table, and a file of notes."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.chance = random.Random(f"{job['seed']}:{job['name']}")
        self.table = it.Table.open(job["root"], options=OPTIONS)
        self.stream: Stream | None = None
        self.made = 0

    def new_element(self) -> str:
        """A name that nobody else gives."""
        self.made += 1
        return f"{self.job['name']}n{self.made}"

    def write(self, step: int) -> None:
        """Append to some lists."""
        form, appends, reads = self.job["form"], draw_appends(self.chance, self.new_element), {}
        self._tell(step, "begun", operations=_wire(appends))
        outcome, version = COMMITTED, None
        try:
            if form == "rows":
                version = append_rows(self.table, appends)
            elif form == "cells":
                version = update_cells(self.table, appends, reads)
            else:
                base = self.table.refresh().version
                reads |= {read.key: read for read in read_lists(self.table, form)}
                version = replace_rows(self.table, list(reads.values()), appends, base)
        except (ConflictError, VersionNotFoundError):
            # Others were faster, or erased the version that UPDATE was reading: nothing was committed.
            outcome = ABORTED
        except CommitError as error:
            outcome = UNKNOWN if error.fields.get("outcome") == "unknown" else ABORTED
        self._tell(step, "ended", outcome=outcome, version=version, reads=_wire(reads.values()))

    def read(self, step: int) -> None:
        """Read lists as they are, as they were seen last, as they were, or by following."""
        form, chance = self.job["form"], self.chance
        way = chance.choice(("now", "now", "as seen", "version", *(("stream",) if form == "rows" else ())))
        self._tell(step, "begun", operations=[], fresh=way in {"now", "stream"}, session=way != "version")
        try:
            if way == "stream":
                self.stream = self.stream or Stream(self.table.log)
                reads = list(self.stream.reads())
                version = self.stream.follower.version
            else:
                table = self.table
                if way == "now":
                    table.refresh()
                elif way == "version":
                    first = 1 if form == "cells" else 0
                    versions = [number for number in table.log.versions() if number >= first]
                    table = it.Table.open(self.job["root"], version=chance.choice(versions))
                reads, version = read_some_lists(table, form, chance), table.version
        except VersionNotFoundError:
            # History was erased meanwhile: the read says so, and saw nothing.
            self.table.refresh()
            return
        self._tell(step, "ended", outcome=COMMITTED, version=version, reads=_wire(reads))

    def keep(self, _step: int) -> None:
        """Do what changes no row."""
        try:
            getattr(self, f"_{self.chance.choice(('merge', 'merge', 'checkpoint', 'truncate', 'purge'))}")()
        except ConflictError:
            self.table.refresh()

    def _merge(self) -> None:
        self.table.merge_splits()

    def _checkpoint(self) -> None:
        self.table.checkpoint()

    def _truncate(self) -> None:
        self.table.truncate_history()

    def _purge(self) -> None:
        self.table.purge(older_than_hours=24, log_retention_hours=1)

    def _tell(self, step: int, what: str, **more: Any) -> None:
        note(self.job["notes"], {what: step, "at": time.monotonic(), **more})


def live(job: dict[str, Any]) -> None:
    """Take the steps of one process."""
    client = _Client(job)
    for step in range(STEPS):
        getattr(client, job["role"])(step)


def _wire(operations: Any) -> list[Any]:
    return [
        ["append", item.key, item.element] if isinstance(item, Append) else ["read", item.key, item.blocks]
        for item in operations
    ]


def _operations(wire: list[Any]) -> list[Append | Read]:
    return [
        Append(key, what) if kind == "append" else Read(key, tuple(map(tuple, what)))
        for kind, key, what in wire
    ]


# What came of it


def _told(job: dict[str, Any]) -> tuple[list[Transaction], list[str]]:
    """The transactions of one process, and what failed there without a cause."""
    place = Path(job["notes"])
    notes = [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []
    ended = {item["ended"]: item for item in notes if "ended" in item}
    transactions = []
    for begun in (item for item in notes if "begun" in item):
        end = ended.get(begun["begun"])
        appends = _operations(begun["operations"])
        if end is None and not appends:
            continue
        outcome = UNKNOWN if end is None else end["outcome"]
        reads = [] if end is None else _operations(end["reads"])
        transactions.append(
            Transaction(
                f"{job['name']}#{begun['begun']}", job["name"], outcome, begun["at"],
                begun["at"] if end is None else end["at"], (*reads, *appends),
                begun.get("fresh", True), begun.get("session", True), version=end and end["version"],
            )
        )  # fmt: skip
    return transactions, [item["failed"] for item in notes if "failed" in item]


def _jobs(root: Path, seed: int, round_: int, form: str) -> list[dict[str, Any]]:
    chance = random.Random(f"round {seed} {round_}")
    roles = ["write"] * WRITERS + ["read"] * READERS + ["keep"]
    jobs = [
        {
            "work": "lists.processes:live", "root": str(root), "role": role, "seed": seed, "form": form,
            "name": f"{role[0]}{at}r{round_}", "notes": str(root.parent / f"{seed}-{round_}-{at}.notes"),
        }
        for at, role in enumerate(roles)
    ]  # fmt: skip
    for victim in chance.sample(jobs, chance.randint(1, 2)):
        if chance.random() < 0.7:
            victim["kill_at"] = chance.randint(10, 200)
        else:
            victim["kill_after_s"] = chance.uniform(0.1, 1.5)
    return jobs


def run_seed(
    nursery: Nursery, home: Path, seed: int, tally: Tally, before_the_end: Callable[[it.Table], object] = id
) -> list[str]:
    """Let one history happen; what it breaks. A planted bug is done to the table before the last read."""
    root, form = home / f"t{seed}", FORMS[seed % len(FORMS)]
    table = it.Table.create(str(root), SCHEMA, options=OPTIONS)
    if form == "cells":
        table.append(first_cells())
    transactions: list[Transaction] = []
    findings: list[str] = []
    for round_ in range(ROUNDS):
        jobs = _jobs(root, seed, round_, form)
        ends = nursery.run(jobs)
        tally.killed += sum(end < 0 for end in ends)
        for job in jobs:
            told, failed = _told(job)
            transactions += told
            findings += [f"{job['name']} failed without a cause: {reason}" for reason in failed]
    now = time.monotonic()
    before_the_end(it.Table.open(str(root)))
    newest = it.Table.open(str(root))
    reads = tuple(read_lists(newest, form))
    transactions.append(
        Transaction("the last read", "parent", COMMITTED, now, now, reads, final=True, version=newest.version)
    )
    tally.runs += 1
    tally.transactions += len(transactions)
    tally.outcomes.update(item.outcome for item in transactions)
    tally.appends += sum(len(item.appends) for item in transactions if item.outcome == COMMITTED)
    tally.reads += sum(len(item.reads) for item in transactions)
    return [*findings, *map(str, check(transactions))]


def run_seeds(seeds: range, tally: Tally | None = None) -> Tally:
    """Run a range of seeds; what broke is in the tally."""
    tally = tally or Tally()
    began = time.monotonic()
    with Nursery() as nursery:
        for seed in seeds:
            with tempfile.TemporaryDirectory(prefix="lists-") as home:
                broken = run_seed(nursery, Path(home), seed, tally)
            if broken:
                tally.broken[str(seed)] = broken
    tally.seconds = round(tally.seconds + time.monotonic() - began, 1)
    return tally


def main() -> None:
    """Run seeds and print what came of them."""
    run_from_command_line(__doc__, RESULTS, Tally, run_seeds)


if __name__ == "__main__":
    main()
