"""Run benchmark targets: `python -m benchmarks.run replay --sizes 1k,10k,100k,1M`."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import index_sizes, ranking
from benchmarks.harness import (
    Row,
    beside,
    circumstances,
    count_of,
    installed,
    load,
    machine,
    measure,
    prepare,
    render,
    save,
)

HERE = Path(__file__).parent
TARGETS = (
    "replay",
    "delta",
    "skipping",
    "search",
    "filters",
    "spark",
    "maintenance",
    "startup",
    "ranking",
    "index_sizes",
    "like",
    "counting",
    "dml",
    "log_reads",
    "load",
    "build",
    "rows",
    "fuzzy",
    "tiny",
    "large",
    "known",
    "companion",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, and keep it under results/."""
    options = _parse(arguments)
    names = (
        [name for name in TARGETS if (HERE / f"{name}.py").exists()]
        if options.target == "all"
        else [options.target]
    )
    for name in names:
        _run(name, options)


def _run(name: str, options: argparse.Namespace) -> None:
    if name == "ranking":
        # It measures how good answers are, not how long they take.
        ranking.main(Path(options.results))
        return
    if name == "index_sizes":
        # It measures bytes, which need no repetition.
        index_sizes.main(Path(options.results))
        return
    target = load(name)
    facts = machine(target.packages)
    rows: list[Row] = []
    for size in sorted(options.sizes.split(","), key=count_of):
        directory = Path(options.work) / name / size
        if not (directory / "ready").exists():
            print(f"{name} {size}: preparing", flush=True)
            directory.mkdir(parents=True, exist_ok=True)
            prepare(name, size, directory)
            (directory / "ready").touch()
        for case in target.cases:
            label = f"{case.name} {case.system}"
            if (case.sizes is not None and size not in case.sizes) or options.only not in label:
                continue
            if case.needs is not None and installed(case.needs) is None:
                print(f"{name} {size} {label}: left out, {case.needs} is not installed", flush=True)
                continue
            row = measure(name, case, size, directory, options.repeat, options.timeout)
            print(
                f"{name} {size} {label}: {row.seconds:.3f} s, {row.peak_mb:.0f} MB {dict(row.facts) or ''}",
                flush=True,
            )
            rows += beside(row)
    merged = save(target, rows, Path(options.results), facts)
    print(circumstances(facts, merged))
    print("\n".join(render(target, merged)))
    if target.goals:
        print("\n".join(target.goals(merged)))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("target", choices=[*TARGETS, "all"])
    parser.add_argument("--sizes", default="1k,10k,100k", help="comma-separated, as 1k,10k,100k,1M")
    parser.add_argument("--repeat", type=int, default=3, help="runs per case; the median counts")
    parser.add_argument("--only", default="", help="only cases whose '<case> <system>' contains this")
    parser.add_argument("--timeout", type=float, default=300, help="seconds before a run is given up")
    parser.add_argument(
        "--work", default=str(Path(tempfile.gettempdir()) / "indextables-bench"), help="where data is made"
    )
    parser.add_argument("--results", default=str(HERE / "results"))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
