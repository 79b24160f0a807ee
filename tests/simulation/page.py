"""Write the figures of the simulation into docs/reliability.md: `python -m simulation.page`, from `tests`.

The figures come from the result files that `make harness` keeps under
benchmarks/results/reliability; the page holds them between two marks.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from simulation.mutants import MUTANTS
from simulation.planted import kept
from simulation.run import RESULTS

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def results(name: str) -> list[dict[str, Any]]:
    """The result files of one run, the log's before the table's."""
    return [json.loads(file.read_text()) for file in sorted(RESULTS.glob(f"{name}-*.json"))]


def simulation_text() -> str:
    """The figures of the simulation."""
    now, before = results("simulation"), results("before")
    lines = [
        "| level | histories | store operations | commits | faults | CPU seconds | promises broken | over |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for found in now:
        lines.append(
            f"| {found['level']} | {found['histories']:,} | {found['operations']:,} | {found['commits']:,} | "
            f"{sum(found['faults'].values()):,} | {found['seconds']:,.0f} | {_seeds(found['broken']):,} | {found.get('commit', '')} |"
        )
    faults: dict[str, int] = {}
    for found in now:
        for kind, times in found["faults"].items():
            faults[kind] = faults.get(kind, 0) + times
    told = ", ".join(f"{times:,} {kind.replace('_', ' ')}" for kind, times in sorted(faults.items()))
    lines += ["", f"Faults: {told}.", "", "### What it found", ""]
    lines += [
        "In its first form, whose seeds drew other plans, over commit 844e157, before the protocol was mended:",
        "",
        "| promise | log | table |",
        "|---|---:|---:|",
    ]
    promises = sorted({promise for found in before for promise in found["broken"]})
    counts = {found["level"]: found for found in before}
    for promise in promises:
        cells = [_share(counts.get(level), promise) for level in ("log", "table")]
        lines.append(f"| {promise} | {' | '.join(cells)} |")
    return "\n".join(lines)


def mutants_text() -> str:
    """The planted bugs, and after how many histories each was caught."""
    planted = kept()
    rows = []
    for name, mutant in MUTANTS.items():
        counted = planted["bugs"][name]
        rows.append(
            f"| `{name}` | {mutant.what} | {counted['promise']} | {counted['histories']:,} ({counted['level']}) |"
        )
    return "\n".join(
        [
            f"`cd tests && python -m simulation.planted`, over {_commits(planted['bugs'].values())}:",
            "",
            "| planted bug | what it does | promise broken | histories until then |",
            "|---|---|---|---:|",
            *rows,
        ]
    )


def _commits(counts: Iterable[dict[str, Any]]) -> str:
    """The commits that bugs were counted on, each with their number if there are several."""
    commits = Counter(counted["commit"] for counted in counts)
    if len(commits) == 1:
        return f"commit {next(iter(commits))}"
    return "commits " + ", ".join(f"{commit} ({times:,} bugs)" for commit, times in commits.items())


def _seeds(broken: dict[str, list[int]]) -> int:
    return len({seed for seeds in broken.values() for seed in seeds})


def _share(found: dict[str, Any] | None, promise: str) -> str:
    if found is None:
        return ""
    return f"{len(found['broken'].get(promise, ())):,} of {found['histories']:,}"


def with_section(page: str, name: str, text: str) -> str:
    """The page with the text between the marks of a section."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    found = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    assert found.search(page), f"the page has no marks for {name}"
    return found.sub(lambda _: f"{begin}\n{text}\n{end}", page)


def render(page: str) -> str:
    """The page with today's figures."""
    return with_section(with_section(page, "simulation", simulation_text()), "planted bugs", mutants_text())


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text()))
