"""Branch coverage of `log/` by the simulation alone: `python -m simulation.branches`, from `tests`.

No unit test runs here: what is counted are the lines and branches that histories
take. The figures are kept under benchmarks/results/reliability with the commit,
and with the lines that no history reached. `log/delta` is left out: no history
has a Delta table.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import coverage

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "results" / "reliability" / "branches.json"
LEVELS = {
    "log": 10, "table": 3, "reuse": 1, "restore": 1, "purge": 1, "birth": 1, "upsert": 1, "clocks": 1, "strangers": 1, "frozen": 1,
    "slow": 1, "swap": 1, "exchanged": 1,
}  # fmt: skip
"""How many of a share of histories are of each level."""


def measure(histories: int) -> tuple[dict[str, Any], dict[str, int]]:
    """Run histories, and say what they reached of each file of `log/`."""
    package = ROOT / "src" / "indextables" / "log"
    measured = coverage.Coverage(
        data_file=None,
        branch=True,
        concurrency=["greenlet", "thread"],
        include=[f"{package}/*"],
        omit=[f"{package}/delta/*"],
    )
    measured.exclude("if TYPE_CHECKING:")
    measured.start()
    # Only now, so that the lines that run at import count as well.
    from simulation.run import run_seeds

    counts = {level: max(1, histories * share // sum(LEVELS.values())) for level, share in LEVELS.items()}
    for level, count in counts.items():
        for seed, outcome in run_seeds(level, range(count)):
            assert not outcome.violations, f"{level} {seed}: {outcome.violations}"
    measured.stop()
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.json"
        measured.json_report(outfile=str(report))
        files = json.loads(report.read_text())["files"]
    return {
        Path(name).as_posix().partition("indextables/")[2]: found for name, found in files.items()
    }, counts


def ranges(lines: Sequence[int]) -> str:
    """Line numbers as text: 3-5, 9."""
    runs: list[list[int]] = []
    for line in lines:
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def figures(files: dict[str, Any]) -> dict[str, Any]:
    """Of each file: statements and branches, those reached, and what was not."""
    kept = {}
    for name, found in sorted(files.items()):
        summary = found["summary"]
        kept[name] = {
            "statements": summary["num_statements"],
            "reached": summary["covered_lines"],
            "branches": summary["num_branches"],
            "taken": summary["covered_branches"],
            "missing": ranges(found["missing_lines"]),
            "not_taken": [f"{first}->{second}" for first, second in found["missing_branches"]],
        }
    return kept


def main(arguments: list[str] | None = None) -> int:
    """Measure and keep the figures."""
    parser = argparse.ArgumentParser(prog="simulation.branches", description=__doc__)
    parser.add_argument("--histories", type=int, default=900)
    options = parser.parse_args(arguments)
    files, counts = measure(options.histories)
    from simulation.planted import commit_of

    kept = {
        "commit": commit_of(ROOT),
        "asked": options.histories,
        "histories": counts,
        "files": figures(files),
    }
    RESULT.write_text(json.dumps(kept, indent=1) + "\n")
    for name, found in kept["files"].items():
        print(
            f"{name:40} {found['taken']:4} of {found['branches']:4} branches; not reached: {found['missing']}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
