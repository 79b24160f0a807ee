"""Draw the plots of docs/performance.md from benchmarks/results: `python scripts/plots.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
IMAGES = ROOT / "docs" / "images"
OURS, RIVAL = "#0b7099", "#a8b3bd"
PLOTS: dict[str, tuple[str, str, dict[str, str], tuple[str, ...]]] = {
    "replay": (
        "One million live files in the log",
        "1M",
        {"native parquet": "IndexTables", "delta-rs": "delta-rs"},
        ("list", "prune 1%"),
    ),
    "delta": (
        "One million files of a Delta table",
        "1M",
        {"delta local": "IndexTables", "delta-rs": "delta-rs"},
        ("list", "prune 1%", "describe"),
    ),
    "search": (
        "One million log lines, CPU time",
        "1M",
        {"indextables": "IndexTables", "duckdb": "DuckDB scan", "polars": "Polars scan"},
        ("count a rare word", "fetch 10 rows", "fetch a tenth"),
    ),
    "spark": (
        "Spark",
        "",
        {"indextables": "IndexTables", "parquet": "Parquet"},
        ("rare word", "plan 100k files", "aggregate", "count(*)", "write"),
    ),
}
"""Of each result file: a title, a size (or the largest of each case), the systems by name, the cases."""


def bars(name: str) -> dict[str, dict[str, float]]:
    """Seconds by case and system, as the result file has them."""
    _, size, systems, cases = PLOTS[name]
    rows: list[dict[str, Any]] = json.loads((RESULTS / f"{name}.json").read_text())["rows"]
    found: dict[str, dict[str, float]] = {}
    for case in cases:
        of_case = [row for row in rows if row["case"] == case and row["system"] in systems]
        largest = size or max((row["size"] for row in of_case), key=_number)
        shown = case if size else f"{case}, {largest} rows"
        found[shown] = {systems[row["system"]]: _seconds(row) for row in of_case if row["size"] == largest}
    return found


def draw(name: str) -> None:
    """One plot: for each case a bar a system, on a scale of powers of ten."""
    title, _, systems, _ = PLOTS[name]
    found = bars(name)
    plt.rcParams |= {"svg.hashsalt": name, "font.size": 10, "svg.fonttype": "none"}
    figure, axes = plt.subplots(figsize=(8, 0.7 + 0.62 * len(found)))
    height = 0.8 / len(systems)
    for at, system in enumerate(systems.values()):
        colour = OURS if system == "IndexTables" else RIVAL
        for place, seconds in enumerate(found.values()):
            if system in seconds:
                where = place + at * height
                axes.barh(where, seconds[system], height * 0.9, color=colour)
                axes.text(seconds[system], where, f" {system}, {_text(seconds[system])}", va="center")
    axes.set_yticks([place + 0.4 - height / 2 for place in range(len(found))], list(found))
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.margins(x=0.35)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    figure.tight_layout()
    figure.savefig(IMAGES / f"performance-{name}.svg", metadata={"Date": None})
    plt.close(figure)


def _seconds(row: dict[str, Any]) -> float:
    """Seconds of a row: of CPU where its facts say them, since the clock of a busy machine says little."""
    shortest = row["facts"].get("cpu_us", row["facts"].get("microseconds"))
    return row["seconds"] if shortest is None else shortest / 1e6


def _number(text: str) -> float:
    return float(text[:-1]) * {"k": 1e3, "M": 1e6}[text[-1]]


def _text(seconds: float) -> str:
    if seconds < 1e-3:  # noqa: PLR2004 - a thousandth
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


if __name__ == "__main__":
    for plot in PLOTS:
        draw(plot)
