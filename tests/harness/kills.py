"""Kill writers at chosen moments: `python -m harness.kills --seeds 0:50`, from the directory `tests`.

`--until 1000` goes on where the last run ended and keeps the figures.

A seed chooses the verb, the moment and whether another writer goes on beside
the one that dies. Afterwards the table must hold what was acknowledged, all or
nothing of what was under way, and nothing else; every version that it offers
must open; and life must go on.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.inquest import Finding, read, require_history, require_life, require_one_of, require_repairs
from harness.nursery import Nursery
from harness.verbs import BESIDE, VERBS, Content, effects, make_template
from support.commit import current_commit

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "reliability"
_TOUCHES = {
    "append": 150, "append once": 100, "overwrite where": 150, "delete": 130, "delete many": 130, "restore": 60, "merge": 120,
    "checkpoint": 130, "purge": 90, "truncate": 120, "repair": 110,
}  # fmt: skip
"""About how often a verb touches files of the template in all its steps."""
_LONGEST_S = 0.6
_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Death:
    """One seed's plan."""

    seed: int
    verb: str
    kill_at: int | None
    kill_after_s: float | None
    beside: bool

    @classmethod
    def of(cls, seed: int) -> Death:
        """What a seed stands for."""
        dice = random.Random(f"death {seed}")
        verb = list(VERBS)[seed % len(VERBS)]
        counted = dice.random() < 0.7
        return cls(
            seed, verb,
            dice.randint(1, _TOUCHES[verb]) if counted else None,
            None if counted else dice.uniform(0.005, _LONGEST_S),
            verb in BESIDE and dice.random() < 0.3,
        )  # fmt: skip


@dataclass
class Tally:
    """What many kills came to."""

    runs: int = 0
    """Seeds that were run, from 0 on."""
    killed: int = 0
    beside: int = 0
    acknowledged: int = 0
    under_way: int = 0
    landed: int = 0
    """Steps under way whose commit was found to be there."""
    verbs: Counter[str] = field(default_factory=Counter)
    broken: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    commit: str = ""
    """The commit that the newest of them ran on."""

    def to_json(self) -> dict[str, Any]:
        """The figures, for a result file."""
        return {**vars(self), "verbs": dict(self.verbs)}

    @classmethod
    def of_json(cls, figures: dict[str, Any]) -> Tally:
        """Read a result file."""
        return cls(**{**figures, "verbs": Counter(figures["verbs"])})


class Scene:
    """Where the deaths happen: a template, copied for each of them."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.template = home / "template"
        make_template(self.template)
        self.base = read(self.template)

    def copy(self, seed: int) -> Path:
        """A table of its own for one seed."""
        return Path(shutil.copytree(self.template, self._home / f"t{seed}"))

    def notes(self, seed: int, name: str) -> Path:
        """Where a child says how far it came."""
        return self._home / f"{seed}-{name}.notes"


def investigate(scene: Scene, nursery: Nursery, death: Death, tally: Tally) -> None:
    """Let one plan happen and look at what is left; Finding when a promise is broken."""
    tally.runs += 1
    root = scene.copy(death.seed)
    jobs = [_job(scene, root, death, "victim", death.verb)]
    jobs[0] |= {"kill_at": death.kill_at, "kill_after_s": death.kill_after_s}
    if death.beside:
        jobs.append(_job(scene, root, death, "other", "append"))
    wanted = [effects(str(root), job["verb"], job["name"], job["seed"]) for job in jobs]
    ends = nursery.run(jobs)
    tally.killed += ends[0] < 0
    tally.beside += death.beside
    tally.verbs[death.verb] += ends[0] < 0
    told = [_told(scene.notes(death.seed, job["name"])) for job in jobs]
    failed = [note["failed"] for notes in told for note in notes if "failed" in note]
    if failed:
        raise Finding(f"a verb failed without a cause: {failed[0]}")
    content = Counter(scene.base)
    for effect in wanted[1] if death.beside else ():
        content = effect(content)
    done = sum("done" in note for note in told[0])
    begun = sum("begun" in note for note in told[0])
    for effect in wanted[0][:done]:
        content = effect(content)
    allowed = [content]
    if begun > done:
        allowed.append(wanted[0][done](content))
        tally.under_way += 1
    tally.acknowledged += done
    found = require_one_of(root, allowed)
    tally.landed += begun > done and found != content
    if death.verb == "append once" and ends[0] < 0:
        found = _write_again(nursery, scene, root, death, wanted[0], scene.base, death.beside)
    require_repairs(root, scene.base if death.beside else found, found)
    require_history(root)
    require_life(root, found)
    shutil.rmtree(root)


def _job(scene: Scene, root: Path, death: Death, name: str, verb: str) -> dict[str, Any]:
    notes = scene.notes(death.seed, name)
    return {"root": str(root), "verb": verb, "name": name, "seed": death.seed, "notes": str(notes)}


def _told(notes: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []


def _write_again(  # noqa: PLR0917
    nursery: Nursery, scene: Scene, root: Path, death: Death, wanted: list[Any], base: Content, beside: bool
) -> Content:
    """The dead writer's successor writes all batches again: each of them is there once."""
    ends = nursery.run([_job(scene, root, death, "victim", death.verb)])
    if ends != [0]:
        raise Finding(f"writing the same batches again ended with {ends}")
    content = Counter(base)
    for effect in [*wanted, *(effects(str(root), "append", "other", death.seed) if beside else [])]:
        content = effect(content)
    return require_one_of(root, [content])


def run_kills(seeds: range, home: Path, tally: Tally | None = None) -> Tally:
    """Run a range of seeds; what broke is in the tally."""
    tally = tally or Tally()
    began = time.monotonic()
    scene = Scene(home)
    with Nursery() as nursery:
        for seed in seeds:
            death = Death.of(seed)
            try:
                investigate(scene, nursery, death, tally)
            except Finding as found:
                tally.broken[str(seed)] = f"{death}: {found}"
            except Exception as error:  # noqa: BLE001 - an inquest that fails is a finding
                tally.broken[str(seed)] = f"{death}: {type(error).__name__}: {error}"
    tally.seconds = round(tally.seconds + time.monotonic() - began, 1)
    return tally


def main() -> None:
    """Run seeds and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:50", help="first:end, or one seed")
    parser.add_argument("--until", type=int, help=f"go on up to this seed, and keep {RESULTS}/kills.json")
    arguments = parser.parse_args()
    kept = RESULTS / "kills.json"
    tally = Tally()
    if arguments.until is None:
        first, _, end = arguments.seeds.partition(":")
        seeds = range(int(first), int(end or int(first) + 1))
    else:
        tally = Tally.of_json(json.loads(kept.read_text())) if kept.exists() else tally
        seeds = range(tally.runs, arguments.until)
    for start in range(seeds.start, seeds.stop, _AT_ONCE):
        with tempfile.TemporaryDirectory(prefix="kills-") as home:
            run_kills(range(start, min(start + _AT_ONCE, seeds.stop)), Path(home), tally)
        tally.commit = current_commit()
        if arguments.until is not None:
            kept.write_text(json.dumps(tally.to_json(), indent=2) + "\n")
    print(json.dumps(tally.to_json(), indent=2))
    raise SystemExit(1 if tally.broken else 0)


if __name__ == "__main__":
    main()
