"""Run histories: `python -m simulation.run --seeds 0:2000`, from the directory `tests`.

A failing seed is shrunk: actors and steps are left out as long as the same
promise stays broken. What is left is printed with its trace, and with the
command that runs it again, exactly.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from simulation.history import TOPICS, Outcome, Part, Plan, plan_history, plan_topic, run_plan
from simulation.seams import deterministic
from simulation.stories import STORIES
from support.commit import current_commit

CHUNK = 50
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "reliability"


@dataclass
class Tally:
    """What many histories came to."""

    histories: int = 0
    seconds: float = 0.0
    """Of processor time."""
    operations: int = 0
    commits: int = 0
    strays: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    verbs: Counter[str] = field(default_factory=Counter)
    broken: dict[str, list[int]] = field(default_factory=dict)
    """The seeds that broke each promise."""

    def count(self, seed: int, outcome: Outcome) -> None:
        """Take in one history."""
        self.histories += 1
        self.operations += outcome.operations
        self.commits += outcome.commits
        self.strays += outcome.strays
        self.faults.update(outcome.faults)
        self.verbs.update(outcome.verbs)
        for promise in sorted({violation.promise for violation in outcome.violations}):
            self.broken.setdefault(promise, []).append(seed)

    def add(self, other: Tally) -> None:
        """Take in what another run came to."""
        self.histories += other.histories
        self.seconds += other.seconds
        self.operations += other.operations
        self.commits += other.commits
        self.strays += other.strays
        self.faults.update(other.faults)
        self.verbs.update(other.verbs)
        for promise, seeds in other.broken.items():
            self.broken.setdefault(promise, []).extend(seeds)

    def to_json(self) -> dict[str, Any]:
        """The figures, for a result file."""
        return {
            "histories": self.histories,
            "seconds": round(self.seconds, 1),
            "operations": self.operations,
            "commits": self.commits,
            "strays": self.strays,
            "faults": dict(sorted(self.faults.items())),
            "verbs": dict(sorted(self.verbs.items())),
            "broken": {promise: sorted(seeds) for promise, seeds in sorted(self.broken.items())},
        }

    @classmethod
    def of_json(cls, figures: dict[str, Any]) -> Tally:
        """Read a result file."""
        return cls(
            figures["histories"], figures["seconds"], figures["operations"], figures["commits"], figures["strays"],
            Counter(figures["faults"]), Counter(figures["verbs"]), dict(figures["broken"]),
        )  # fmt: skip


def plan_of(level: str, seed: int) -> Plan:
    """The plan of a seed."""
    if level == "table":
        from simulation.tables import plan_table_history

        return plan_table_history(seed)
    if level == "lists":
        from lists.simulated import plan_lists

        return plan_lists(seed)
    if level in STORIES:
        return STORIES[level](seed)
    return plan_topic(level, seed) if level in TOPICS else plan_history(seed)


def run_seeds(level: str, seeds: Iterable[int], mutant: str | None = None) -> Iterator[tuple[int, Outcome]]:
    """Run histories one after the other, with a planted bug if one is named.

    All is put back before an outcome is given: who asks for no further one leaves nothing behind.
    """
    from simulation.mutants import planted

    for seed in seeds:
        with deterministic() as chance, planted(mutant):
            outcome = run_plan(plan_of(level, seed), chance)
        yield seed, outcome


def run_chunk(job: tuple[str, int, int]) -> Tally:
    """Run a range of seeds; the unit of work of a process."""
    level, first, end = job
    tally, began_s = Tally(), time.process_time()
    for seed, outcome in run_seeds(level, range(first, end)):
        tally.count(seed, outcome)
    tally.seconds = time.process_time() - began_s
    return tally


def run_range(level: str, first: int, end: int, *, jobs: int = 1) -> Iterator[tuple[int, Tally]]:
    """Run a range of seeds in chunks, in order; each chunk's end and figures as it is done."""
    work = [(level, at, min(at + CHUNK, end)) for at in range(first, end, CHUNK)]
    if jobs <= 1:
        for job in work:
            yield job[2], run_chunk(job)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for job, tally in zip(work, pool.imap(run_chunk, work), strict=True):
            yield job[2], tally


# Shrinking


def smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with one thing less: an actor, a step, a kind of fault, a wrong clock."""
    parts = plan.parts
    for at in range(len(parts)):
        if len(parts) > 1:
            yield replace(plan, parts=(*parts[:at], *parts[at + 1 :]))
    for at, part in enumerate(parts):
        for step in range(len(part.steps)):
            steps = (*part.steps[:step], *part.steps[step + 1 :])
            yield _with(plan, at, replace(part, steps=steps))
    for at, part in enumerate(parts):
        for kind in ("error", "lost_reply", "late", "echo", "crash", "pause", "after_put", "freeze"):
            if getattr(part.faults, kind):
                yield _with(plan, at, replace(part, faults=replace(part.faults, **{kind: 0.0})))
        if part.skew_ms:
            yield _with(plan, at, replace(part, skew_ms=0))


def _with(plan: Plan, at: int, part: Part) -> Plan:
    parts = plan.parts
    kept = (part,) if part.steps else ()
    return replace(plan, parts=(*parts[:at], *kept, *parts[at + 1 :]))


def shrink(plan: Plan, promise: str, chance: Any) -> Plan:
    """The smallest plan found that still breaks the promise."""
    found = True
    while found:
        found = False
        for candidate in smaller(plan):
            outcome = run_plan(candidate, chance)
            if any(violation.promise == promise for violation in outcome.violations):
                plan, found = candidate, True
                break
    return plan


def explain(level: str, seed: int, mutant: str | None = None, *, whole: bool = False) -> str:
    """The minimal trace of a failing seed, and how to see it again."""
    from simulation.mutants import planted

    with deterministic() as chance, planted(mutant):
        plan = plan_of(level, seed)
        outcome = run_plan(plan, chance, keep_trace=True)
        if outcome.violations and not whole:
            plan = shrink(plan, outcome.violations[0].promise, chance)
            outcome = run_plan(plan, chance, keep_trace=True)
    extra = f" MUTANT={mutant}" if mutant else ""
    again = f"make simulate SEEDS={seed} LEVEL={level}{extra}"
    options = " ".join(f"{key}={value}" for key, value in sorted(plan.options.items()))
    broken = [f"broken: {violation}" for violation in outcome.violations] or ["nothing is broken"]
    return "\n".join([f"seed {seed}, level {level}; again: {again}", options, *outcome.trace, *broken])


# The command


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="simulation.run", description=__doc__)
    parser.add_argument("--seeds", default="0:500", help="one seed, or first:end")
    parser.add_argument("--level", default="log", choices=("log", "table", "lists", *TOPICS, *STORIES))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--mutant", help="plant a bug; see simulation.mutants")
    parser.add_argument("--whole", action="store_true", help="do not shrink the trace")
    parser.add_argument("--resume", help="go on with the named result file, and keep it up to date")
    asked = parser.parse_args(arguments)
    first, _, end = asked.seeds.partition(":")
    if not end:
        print(explain(asked.level, int(first), asked.mutant or None, whole=asked.whole))
        return 0
    if asked.mutant:
        return _hunt(asked.level, range(int(first), int(end)), asked.mutant)
    tally = _run_resumable(asked.level, int(first), int(end), asked.jobs, asked.resume)
    print(json.dumps(tally.to_json(), indent=1))
    for promise, seeds in tally.broken.items():
        print(f"\n{promise}: {len(seeds)} histories, the first is\n{explain(asked.level, min(seeds))}")
    return 1 if tally.broken else 0


def _hunt(level: str, seeds: range, mutant: str) -> int:
    for seed, outcome in run_seeds(level, seeds, mutant):
        if outcome.violations:
            print(explain(level, seed, mutant))
            return 0
    print(f"{mutant} was not caught by seeds {seeds.start} to {seeds.stop - 1}")
    return 1


def _run_resumable(level: str, first: int, end: int, jobs: int, name: str | None) -> Tally:
    """Run a range; with a result file, go on where it ends and write it after every chunk."""
    file = None if name is None else RESULTS / f"{name}-{level}.json"
    tally, done, commit = Tally(), first, current_commit()
    if file is not None and file.exists():
        known = json.loads(file.read_text())
        if known["first"] == first:
            tally, done = Tally.of_json(known), known["end"]
    for at, more in run_range(level, done, end, jobs=jobs):
        tally.add(more)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            figures = {"level": level, "first": first, "end": at, **tally.to_json(), "commit": commit}
            waiting = file.with_suffix(".part")
            waiting.write_text(json.dumps(figures, indent=1) + "\n")
            os.replace(waiting, file)
    return tally


if __name__ == "__main__":
    sys.exit(main())
