"""Damage tables and ask them everything: `python -m corruption.run --seeds 0:1000`, from the directory `tests`.

One seed is one table, one damaged file, and all the questions. The answer to
each must be the truth or an error of ours: never other rows, never a foreign
exception. A failing seed prints what was done and what came out, and running it
again does the same.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import indextables as it
from corruption.damage import Damage, inflict, kind_of
from corruption.tables import FORMS, SCHEMA, WORDS, Row, Rows, Template, make, table_of
from indextables.errors import Error
from indextables.options import KEYS
from indextables.split.open_splits import forget_splits
from indextables.storage.store import open_store
from indextables.storage.stores.memory import forget_memory
from simulation.seams import deterministic
from support.commit import current_commit

KEPT = Path(__file__).parents[2] / "benchmarks" / "results" / "reliability" / "corruption.json"
CHUNK = 250
CACHE_DIR = "indexCache.dir"
CHANGED = 1 / 3
"""The share of tables that are changed after their damage; building splits takes most of the time."""
NEW_ROW: Row = (999_999, "omega new", "d1")


@dataclass(frozen=True)
class Violation:
    """A third thing: neither the truth nor an error of ours."""

    seed: int
    form: str
    damage: Damage
    question: str
    found: str

    def __str__(self) -> str:
        return (
            f"seed {self.seed} ({self.form}): {self.damage.kind} {self.damage.path}: {self.damage.what}\n"
            f"  {self.question}: {self.found}"
        )


@dataclass
class Tally:
    """What many seeds came to."""

    seeds: int = 0
    questions: Counter[str] = field(default_factory=Counter)
    """By outcome: truth, error, rolled back, third thing."""
    damages: Counter[str] = field(default_factory=Counter)
    """By kind of file and damage."""
    violations: list[Violation] = field(default_factory=list)


class Trial:
    """One damaged table, and the questions that are asked of it."""

    def __init__(self, seed: int, template: Template, other: Template, chance: random.Random) -> None:
        self.seed = seed
        self.template = template
        self.chance = chance
        files, self.damage = inflict(template.files, other.files, chance)
        self.uri = f"memory://damaged-{seed}"
        self.directory = Path(tempfile.mkdtemp(prefix="corruption-"))
        cached = {CACHE_DIR: str(self.directory)} if CACHE_DIR in KEYS else {}
        self.options = {**template.options, **cached}
        store = open_store(self.uri)
        for path, data in files.items():
            store.put(path, data)
        self.outcomes: Counter[str] = Counter()
        self.violations: list[Violation] = []

    def run(self) -> None:
        """Ask about the newest version and about an old one, then change the table and ask again."""
        past = self.chance.randrange(self.template.newest + 1)
        word = self.chance.choice(WORDS)
        verb = self.chance.choice(sorted(VERBS)) if self.chance.random() < CHANGED else None
        self.ask("rows of the newest version", lambda: self._rows(None))
        self.ask("count of the newest version", lambda: self._count(None))
        self.ask("search of the newest version", lambda: self._search(None, word))
        self.ask(f"rows of version {past}", lambda: self._rows(past))
        self.ask(f"filtered rows of version {past}", lambda: self._filtered(past))
        self.ask("history", self._history)
        if verb is not None:
            self.ask(verb, lambda: VERBS[verb](self))

    def ask(self, name: str, question: Callable[[], str]) -> None:
        """One question: `question` returns the outcome, or raises."""
        try:
            outcome = question()
        except Error:
            outcome = "error"
        except Exception as foreign:
            outcome = f"{type(foreign).__name__}: {foreign}"
        if outcome not in {"truth", "error", "rolled back"}:
            self.violations.append(Violation(self.seed, self.template.form, self.damage, name, outcome))
            outcome = "third thing"
        self.outcomes[outcome] += 1

    def open(self, version: int | None = None) -> it.Table:
        """The table by a handle of its own."""
        return it.Table.open(self.uri, version=version, options=self.options)

    def compare(self, found: Rows, version: int, wanted: Callable[[Rows], Rows] = tuple) -> str:
        """Hold rows of a version against the truth."""
        truth = wanted(self.template.truth.get(version, ()))
        if found != truth:
            return f"{len(found)} rows {_short(found)} and not {len(truth)} {_short(truth)}"
        return "truth" if version == self.template.newest else self._older(version)

    def _older(self, version: int) -> str:
        """The newest version was lost with its only file, and nothing in the directory can tell."""
        damage = self.damage
        gone = damage.kind == "delete" and damage.path.endswith(f"{self.template.newest:020d}.json")
        return "rolled back" if gone and version == self.template.newest - 1 else f"newest is {version}"

    def _read(
        self, version: int | None, rows: Callable[[it.Table], Rows], wanted: Callable[[Rows], Rows]
    ) -> str:
        table = self.open(version)
        found = rows(table)
        if version is None:
            return self.compare(found, table.version, wanted)
        return (
            "truth" if found == wanted(self.template.truth[version]) else self.compare(found, version, wanted)
        )

    def _rows(self, version: int | None) -> str:
        return self._read(version, all_rows, tuple)

    def _count(self, version: int | None) -> str:
        return self._read(
            version,
            lambda table: ((table.count(), "", ""),),
            lambda rows: ((len(rows), "", ""),),
        )

    def _search(self, version: int | None, word: str) -> str:
        def search(table: it.Table) -> Rows:
            return rows_of(table.search(f"text:{word}").read_all().to_pylist())

        return self._read(version, search, lambda rows: tuple(row for row in rows if word in row[1]))

    def _filtered(self, version: int | None) -> str:
        def scan(table: it.Table) -> Rows:
            return rows_of(table.scan("day = 'd2' AND id > 4").read_all().to_pylist())

        return self._read(
            version, scan, lambda rows: tuple(row for row in rows if row[2] == "d2" and row[0] > 4)
        )

    def _history(self) -> str:
        versions = self.open().history()["version"].to_pylist()
        newest = self.template.newest
        if versions and versions[0] == newest - 1:
            return self._older(newest - 1)
        # Versions that cannot be rebuilt any more are not offered.
        sound = versions[:1] == [newest] and versions == sorted(set(versions), reverse=True)
        return "truth" if sound and versions[-1] >= 0 else f"versions {versions}"

    def close(self) -> None:
        """Let go of the table and of what was kept of it."""
        shutil.rmtree(self.directory, ignore_errors=True)
        forget_memory(self.uri.removeprefix("memory://"))


def all_rows(table: it.Table) -> Rows:
    """Every row, sorted."""
    return rows_of(table.scan().read_all().to_pylist())


def rows_of(found: Iterable[dict[str, object]]) -> Rows:
    """Rows as the model has them, sorted."""
    return tuple(sorted(tuple(row[name] for name in SCHEMA.names) for row in found))  # type: ignore[misc]


def _short(rows: Rows) -> str:
    return f"[{', '.join(str(row[0]) for row in rows[:12])}]"


def _then(verb: Callable[[it.Table], object], change: Callable[[Rows], Rows]) -> Callable[[Trial], str]:
    """A verb that changes the table: afterwards its rows are the truth, changed as the verb says."""

    def run(trial: Trial) -> str:
        table = trial.open()
        before = table.version
        try:
            verb(table)
        except Error:
            # It may have refused; what is there must still be the truth.
            return trial._rows(None)
        found, truth = all_rows(trial.open()), trial.template.truth[trial.template.newest]
        if found == tuple(sorted(change(truth))):
            return "truth"
        if before == trial.template.newest - 1 and trial._older(before) == "rolled back":
            return (
                "rolled back"
                if found == tuple(sorted(change(trial.template.truth[before])))
                else "other rows"
            )
        return f"{len(found)} rows {_short(found)} afterwards"

    return run


VERBS: dict[str, Callable[[Trial], str]] = {
    "append": _then(lambda table: table.append(table_of([NEW_ROW])), lambda rows: (*rows, NEW_ROW)),
    "delete": _then(
        lambda table: table.delete("id = 4"), lambda rows: tuple(row for row in rows if row[0] != 4)
    ),
    "merge": _then(lambda table: table.merge_splits(), tuple),
    "checkpoint": _then(lambda table: table.checkpoint(), tuple),
    "overwrite": _then(lambda table: table.overwrite(table_of([NEW_ROW])), lambda _: (NEW_ROW,)),
    "purge": _then(lambda table: table.purge(), tuple),
    "truncate history": _then(lambda table: table.truncate_history(), tuple),
}


def run_seeds(seeds: Iterable[int]) -> Tally:
    """Run trials, one per seed; the same seed is the same trial in any process."""
    tally = Tally()
    with deterministic() as ids:
        ids.seed(0)
        made = {form: (make(form), make(form, 500)) for form in FORMS}
        for seed in seeds:
            chance = random.Random(seed)
            ids.seed(seed)
            template, other = made[chance.choice(sorted(made))]
            trial = Trial(seed, template, other, chance)
            try:
                trial.run()
            finally:
                trial.close()
            forget_splits()
            tally.seeds += 1
            tally.questions.update(trial.outcomes)
            tally.damages[f"{kind_of(trial.damage.path)}, {trial.damage.kind}"] += 1
            tally.violations += trial.violations
    return tally


@dataclass
class Figures:
    """What all seeds from 0 on came to, as the page shows it."""

    corruptions: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    damages: dict[str, int] = field(default_factory=dict)
    broken: list[int] = field(default_factory=list)
    commit: str = ""
    """The commit that the newest of them ran on."""

    @classmethod
    def load(cls) -> Figures:
        """The figures of the runs so far."""
        return cls(**json.loads(KEPT.read_text())) if KEPT.exists() else cls()

    def add(self, tally: Tally) -> None:
        """Take in what some seeds came to."""
        self.corruptions += tally.seeds
        self.outcomes = dict(sorted((Counter(self.outcomes) + tally.questions).items()))
        self.damages = dict(sorted((Counter(self.damages) + tally.damages).items()))
        self.broken += sorted({violation.seed for violation in tally.violations})
        self.commit = current_commit()

    def save(self) -> None:
        """Keep them for the page and for the next run."""
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        KEPT.write_text(json.dumps(asdict(self), indent=1) + "\n")


def seeds_of(text: str) -> range:
    """`17`, or `first:end`."""
    first, colon, end = text.partition(":")
    return range(int(first), int(end) if colon else int(first) + 1)


def main(arguments: list[str] | None = None) -> int:
    """Run a range of seeds and print what broke; with `--resume` go on where the last run ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=seeds_of, default=range(1000))
    parser.add_argument("--resume", action="store_true", help="keep the figures for docs/reliability.md")
    given = parser.parse_args(arguments)
    figures = Figures.load() if given.resume else Figures()
    first = max(given.seeds.start, figures.corruptions) if given.resume else given.seeds.start
    began = time.perf_counter()
    for start in range(first, given.seeds.stop, CHUNK):
        tally = run_seeds(range(start, min(start + CHUNK, given.seeds.stop)))
        for violation in tally.violations[:20]:
            print(violation)
        figures.add(tally)
        if given.resume:
            figures.save()
    print(f"{figures.corruptions} corruptions, {figures.outcomes}, {time.perf_counter() - began:.0f} s")
    return 1 if figures.broken else 0


if __name__ == "__main__":
    sys.exit(main())
