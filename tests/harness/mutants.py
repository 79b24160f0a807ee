"""Mutants drawn by a seed: `python -m harness.mutants --seed 11 --count 200 --resume`, from `tests`.

A mutant is one small change to a covered line of the code that commits, keeps and
rewrites. It runs against the tests that cover its line, the fastest file first,
and if none of them fails against simulated histories. One that survives is a test
to be written, or an equivalent mutant whose reason is in `equivalent_mutants.json`.

The tree is never changed: a mutant lives in a copy of the package that comes
first on the path of its process. Which test runs which line is found out once
and kept in the user's cache.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.mutations import Mutation, mutations
from simulation.planted import commit_of
from simulation.run import RESULTS

ROOT = Path(__file__).parents[2]
TARGETS = ("log/commit", "log/checkpoint", "log/retention.py", "ops/write", "ops/rewrite")
TESTS = ("tests/unit", "tests/property")
HISTORIES = {"log": 100, "table": 30}
REASONS = Path(__file__).with_name("equivalent_mutants.json")
RESULT = RESULTS / "mutants.json"
PATIENCE_S = 900
EMPTY: dict[str, Any] = {"files": {}, "lines": {}, "seconds": {}, "failed": []}


@dataclass(frozen=True)
class Mutant:
    """A mutation and the file it is made in, relative to the package."""

    file: str
    mutation: Mutation

    @property
    def name(self) -> str:
        """The same in any run: file, line and both texts."""
        return f"{self.file}:{self.mutation.line}: {self.mutation.was} -> {self.mutation.becomes}"


@dataclass(frozen=True)
class Fate:
    """What became of a mutant: `test`, `history`, `time` or `survived`, and what noticed it."""

    file: str
    line: int
    was: str
    becomes: str
    end: str
    code: str
    """The line of the file, by which a reason knows it."""
    by: str = ""
    seconds: float = 0.0
    since: bool = False
    """Whether it survived at first, and a test was written that notices it."""


class Laboratory:
    """A copy of the package in which one file at a time is changed, and processes that import it."""

    def __init__(self, root: Path, histories: dict[str, int] = HISTORIES, budget_s: float = math.inf) -> None:
        self.root = root
        self.histories = histories
        self.budget_s = budget_s
        self.place = Path(tempfile.mkdtemp(prefix="mutants-"))
        self.package = self.place / "src" / "indextables"
        shutil.copytree(root / "src", self.place / "src", ignore=shutil.ignore_patterns("__pycache__"))

    def close(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self.place, ignore_errors=True)

    def ask(self, kind: str, *, patience_s: float, **job: Any) -> dict[str, Any] | None:
        """Run one job in a process of its own; None when it does not end in time."""
        file = self.place / "job.json"
        answer = file.with_suffix(".answer")
        answer.unlink(missing_ok=True)
        file.write_text(json.dumps({"kind": kind, **job}))
        path = os.pathsep.join(map(str, (self.place / "src", ROOT / "tests", self.root)))
        command = [sys.executable, "-m", "harness.mutant_tests", str(file)]
        with (self.place / "output").open("w") as output:
            process = subprocess.Popen(
                command,
                cwd=self.root,
                env={**os.environ, "PYTHONPATH": path, "CI": "mutants", "TMPDIR": str(self._scratch())},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                process.wait(patience_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                return None
        if not answer.exists():
            last = (self.place / "output").read_text(errors="replace").strip().splitlines()[-1:]
            return {"failed": f"the process ended with {process.returncode}: {''.join(last)[:200]}"}
        return json.loads(answer.read_text())

    def _scratch(self) -> Path:
        """An empty directory for the temporary files of a process."""
        scratch = self.place / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        return scratch

    def try_out(self, mutant: Mutant, coverage: Coverage) -> Fate:
        """Plant a mutant, run what may notice it, and take it out again."""
        began_s = time.monotonic()
        source = (self.package / mutant.file).read_text()
        self._write(mutant.file, mutant.mutation.apply(source))
        try:
            end, by = self._judge(mutant, coverage)
        finally:
            self._write(mutant.file, source)
        change = mutant.mutation
        seconds = round(time.monotonic() - began_s, 1)
        code = source.splitlines()[change.line - 1].strip()
        return Fate(mutant.file, change.line, change.was, change.becomes, end, code, by, seconds)

    def _write(self, name: str, source: str) -> None:
        """Change a file, and forget what was compiled of it."""
        file = self.package / name
        file.write_text(source)
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            compiled.unlink()

    def _judge(self, mutant: Mutant, coverage: Coverage) -> tuple[str, str]:
        tests = coverage.tests_of(mutant, self.budget_s)
        answer = self.ask("tests", patience_s=PATIENCE_S, seconds=tests)
        if answer is None:
            return "time", "tests"
        if answer["failed"]:
            return "test", answer["failed"]
        if not self.histories:
            return "survived", ""
        answer = self.ask("histories", patience_s=PATIENCE_S, histories=self.histories)
        if answer is None:
            return "time", "histories"
        return ("history", answer["failed"]) if answer["failed"] else ("survived", "")


@dataclass(frozen=True)
class Coverage:
    """Which tests run which line of the package, and how long each takes."""

    lines: dict[str, dict[str, list[str]]]
    seconds: dict[str, float]
    failed: list[str]

    @classmethod
    def of_tree(cls, laboratory: Laboratory) -> Coverage:
        """From the cache, after running every test file that is new or has changed since."""
        root = laboratory.root
        kept = _cache() / f"coverage-{_digest(sorted((root / 'src/indextables').rglob('*.py')))}.json"
        known = json.loads(kept.read_text()) if kept.exists() else dict(EMPTY)
        files = {
            file.relative_to(root).as_posix(): _digest([file])
            for folder in TESTS
            for file in sorted((root / folder).rglob("test_*.py"))
        }
        stale = [file for file, digest in files.items() if known["files"].get(file) != digest]
        if stale:
            include = [
                f"{laboratory.package}/{target}{'' if target.endswith('.py') else '/*'}" for target in TARGETS
            ]
            found = laboratory.ask(
                "map", patience_s=4 * 3600, package=str(laboratory.package), include=include, tests=stale
            )
            if found is None or "lines" not in found:
                raise SystemExit(f"the tests could not be run: {found}")
            known = {"files": files, **_merged(known, found, set(stale) | (known["files"].keys() - files))}
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(known))
        return cls(known["lines"], known["seconds"], known["failed"])

    def tests_of(self, mutant: Mutant, budget_s: float = math.inf) -> dict[str, float]:
        """The tests that run the line of a mutant; for a line of the import, those that run its module.

        They are in the order in which they should run, the fastest file first; files beyond the budget are
        left out.
        """
        lines = self.lines.get(mutant.file, {})
        change = mutant.mutation
        names = self._of_line(lines, change.line) or self._of_line(lines, change.statement_line)
        if not names and {str(change.line), str(change.statement_line)} & lines.keys():
            names = {name for line in lines for name in self._of_line(lines, int(line))}
        files: dict[str, dict[str, float]] = {}
        for name in sorted(names):
            files.setdefault(name.partition("::")[0], {})[name] = self.seconds[name]
        chosen: dict[str, float] = {}
        for tests in sorted(files.values(), key=lambda tests: sum(tests.values())):
            if not chosen or sum(chosen.values()) + sum(tests.values()) <= budget_s:
                chosen |= tests
        return chosen

    def _of_line(self, lines: dict[str, list[str]], line: int) -> set[str]:
        return {name for name in lines.get(str(line), ()) if name in self.seconds and name not in self.failed}


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "indextables-mutants"


def _digest(files: list[Path]) -> str:
    """What is in some files, as one short text."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _merged(known: dict[str, Any], found: dict[str, Any], stale: set[str]) -> dict[str, Any]:
    """What is known of the other test files, and what was found of those that are stale."""

    def stands(name: str) -> bool:
        return name.partition("::")[0] not in stale

    lines: dict[str, dict[str, list[str]]] = {}
    for file in sorted({*known["lines"], *found["lines"]}):
        before, after = known["lines"].get(file, {}), found["lines"].get(file, {})
        lines[file] = {
            line: sorted({*filter(stands, before.get(line, ())), *after.get(line, ())})
            for line in {*before, *after}
        }
    seconds = {name: taken for name, taken in known["seconds"].items() if stands(name)}
    failed = [*filter(stands, known["failed"]), *found["failed"]]
    return {"lines": lines, "seconds": seconds | found["seconds"], "failed": failed}


def _files(package: Path) -> list[Path]:
    """The files of which mutants are made."""
    return [
        file
        for target in TARGETS
        for file in (
            [package / target] if target.endswith(".py") else sorted((package / target).glob("*.py"))
        )
    ]


def draw(package: Path, coverage: Coverage, seed: int) -> list[Mutant]:
    """Every mutant of a covered line, in the order that the seed decides."""
    everything = [
        Mutant(file.relative_to(package).as_posix(), mutation)
        for file in _files(package)
        for mutation in mutations(file.read_text())
    ]
    covered = [mutant for mutant in everything if coverage.tests_of(mutant)]
    random.Random(seed).shuffle(covered)
    return covered


def _sources(package: Path) -> dict[str, str]:
    """What is in each file of which mutants are made."""
    return {file.relative_to(package).as_posix(): _digest([file]) for file in _files(package)}


def _earlier(seed: int, sources: dict[str, str]) -> dict[tuple[str, int, str, str], Fate]:
    """What runs of the same seed have found out about files that are still the same."""
    if not RESULT.exists():
        return {}
    kept = json.loads(RESULT.read_text())
    if kept["seed"] != seed:
        return {}
    fates = [Fate(**fate) for fate in kept["mutants"]]
    return {
        (fate.file, fate.line, fate.was, fate.becomes): fate
        for fate in fates
        if kept["sources"].get(fate.file) == sources.get(fate.file)
    }


def keep(options: argparse.Namespace, sources: dict[str, str], covered: int, fates: list[Fate]) -> None:
    """Write the result file."""
    figures = {
        "seed": options.seed,
        "budget": options.budget,
        "commit": commit_of(ROOT),
        "sources": sources,
        "covered": covered,
        "histories": HISTORIES,
        "mutants": [asdict(fate) for fate in fates],
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    waiting = RESULT.with_suffix(".part")
    waiting.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
    os.replace(waiting, RESULT)


def run(options: argparse.Namespace) -> Iterator[Fate]:
    """Try mutants out, keeping the results; what is known already is not repeated."""
    budget_s = options.budget or math.inf
    laboratories = [Laboratory(ROOT, budget_s=budget_s) for _ in range(options.jobs)]
    try:
        coverage = Coverage.of_tree(laboratories[0])
        mutants = draw(laboratories[0].package, coverage, options.seed)
        sources = _sources(laboratories[0].package)
        known = _earlier(options.seed, sources) if options.resume or options.again else {}
        free: queue.SimpleQueue[Laboratory] = queue.SimpleQueue()
        for laboratory in laboratories:
            free.put(laboratory)

        def fate_of(mutant: Mutant) -> tuple[Fate, bool]:
            change = mutant.mutation
            earlier = known.get((mutant.file, change.line, change.was, change.becomes))
            if earlier is not None and not (options.again and earlier.end == "survived"):
                return earlier, False
            laboratory = free.get()
            try:
                fate = laboratory.try_out(mutant, coverage)
            finally:
                free.put(laboratory)
            return replace(fate, since=earlier is not None and fate.end != "survived"), True

        fates: list[Fate] = []
        with ThreadPoolExecutor(options.jobs) as threads:
            for fate, fresh in threads.map(fate_of, mutants[: options.count]):
                fates.append(fate)
                if fresh:
                    # What is known of later mutants stays in the file while earlier ones are tried again.
                    later = list(known.values())[len(fates) :]
                    keep(options, sources, len(mutants), [*fates, *later])
                    yield fate
        keep(options, sources, len(mutants), fates)
    finally:
        for laboratory in laboratories:
            laboratory.close()


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for; 1 when a mutant survived that is not known as equivalent."""
    parser = argparse.ArgumentParser(prog="harness.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--resume", action="store_true", help="go on where the result file ends")
    parser.add_argument("--again", action="store_true", help="try those that survived once more")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--budget", type=float, default=0, help="at most so many seconds of tests for each")
    options = parser.parse_args(arguments)
    for fate in run(options):
        print(
            f"{fate.seconds:7.1f} {fate.end:9} {fate.file}:{fate.line}: {fate.was} -> {fate.becomes}  [{fate.by}]"
        )
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
