"""What runs inside the process of one mutant: tests in a given order, or histories.

`python -m harness.mutant_tests job.json` reads a job and writes its answer beside
it. The parent, `harness.mutants`, decides which code is imported: the package of
the tree, or a copy of it with one change.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SLOWER = 5
"""A test that takes this many times longer than without the mutant hangs."""
AT_LEAST_S = 20
QUIET = ("-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-W", "ignore")
BATCHES = (3, 9, 27, 10_000)
"""Test files are collected in batches of this many, so that most mutants end after the first."""


class Mapping:
    """Records which test runs which line, how long each test takes, and whether it passes."""

    def __init__(self, cov: Any) -> None:
        self.cov = cov
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self.cov.switch_context(item.nodeid)
        began_s = time.perf_counter()
        result = yield
        self.seconds[item.nodeid] = round(time.perf_counter() - began_s, 4)
        return result

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)


class Selection:
    """Runs the named tests only, in the order of their names, each within its time."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.order = {name: at for at, name in enumerate(seconds)}
        self.seconds = seconds
        self.failed: str | None = None

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted((item for item in items if item.nodeid in self.order), key=self._place)

    def _place(self, item: Any) -> int:
        return self.order[item.nodeid]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        def hangs(_number: int, _frame: Any) -> None:
            raise TimeoutError(f"{item.nodeid} takes too long")

        signal.signal(signal.SIGALRM, hangs)
        signal.alarm(int(max(AT_LEAST_S, SLOWER * self.seconds[item.nodeid])))
        try:
            return (yield)
        finally:
            signal.alarm(0)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid


def map_tests(job: dict[str, Any]) -> dict[str, Any]:
    """Run all tests once, and say for every line of the package which tests run it."""
    import coverage

    cov = coverage.Coverage(data_file=None, include=job["include"], concurrency=["thread"])
    mapping = Mapping(cov)
    cov.start()
    cov.switch_context("import")
    pytest.main([*QUIET, *job["tests"], "-m", "not slow and not spark"], plugins=[mapping])
    cov.stop()
    data, lines = cov.get_data(), {}
    for file in data.measured_files():
        lines[Path(file).relative_to(job["package"]).as_posix()] = data.contexts_by_lineno(file)
    return {"lines": lines, "seconds": mapping.seconds, "failed": sorted(mapping.failed)}


def run_tests(job: dict[str, Any]) -> dict[str, Any]:
    """Run the named tests until one fails."""
    files: dict[str, dict[str, float]] = {}
    for name, seconds in job["seconds"].items():
        files.setdefault(name.partition("::")[0], {})[name] = seconds
    order = list(files)
    at = 0
    for size in BATCHES:
        batch = order[at : at + size]
        at += size
        if not batch:
            break
        selection = Selection({name: seconds for file in batch for name, seconds in files[file].items()})
        code = pytest.main([*QUIET, "-x", *batch], plugins=[selection])
        if selection.failed is not None or code not in (0, 5):
            return {"failed": selection.failed or f"pytest ended with {int(code)}"}
    return {"failed": None}


def run_histories(job: dict[str, Any]) -> dict[str, Any]:
    """Run simulated histories until one breaks a promise."""
    from simulation.run import run_seeds

    for level, count in job["histories"].items():
        try:
            for seed, outcome in run_seeds(level, range(count)):
                if outcome.violations:
                    return {"failed": f"{level} {seed}: {outcome.violations[0].promise}"}
        except Exception as error:
            return {"failed": f"{level}: {type(error).__name__}: {error}"[:200]}
    return {"failed": None}


def main() -> None:
    """Do what the job asks for."""
    file = Path(sys.argv[1])
    job = json.loads(file.read_text())
    answer = {"map": map_tests, "tests": run_tests, "histories": run_histories}[job["kind"]](job)
    file.with_suffix(".answer").write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
