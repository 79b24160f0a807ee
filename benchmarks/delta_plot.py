"""Draw the results of the delta target: seconds against files, one line per system."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.harness import count_of

HERE = Path(__file__).parent
CASES = ("list", "prune 1%")
STYLES = {
    "delta-rs": ("tab:gray", "--"),
    "delta local": ("tab:blue", "-"),
    "delta spark": ("tab:orange", "-"),
    "native spark": ("tab:green", "-"),
}


def draw(results: Path, picture: Path) -> None:
    """Write the picture of the results."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    found = json.loads(results.read_text())
    figure, axes = plt.subplots(1, len(CASES), figsize=(11, 4.6), sharey=True)
    for axis, case in zip(axes, CASES, strict=True):
        ends = []
        for system, (colour, line) in STYLES.items():
            rows = sorted(
                (count_of(row["size"]), row["seconds"])
                for row in found["rows"]
                if row["case"] == case and row["system"] == system
            )
            if rows:
                files, seconds = zip(*rows, strict=True)
                axis.plot(files, seconds, line, color=colour, marker="o", label=system)
                ends.append((seconds[-1], files[-1], colour))
        for seconds, files, colour, height in _apart(sorted(ends)):
            axis.annotate(f"{seconds:.2g} s", (files, height), xytext=(8, -3), textcoords="offset points",
                          fontsize=8, color=colour)  # fmt: skip
        axis.set(xscale="log", yscale="log", xlabel="files in the table", title=f"open and {case}")
        axis.margins(x=0.14, y=0.1)
        axis.grid(visible=True, which="major", alpha=0.3)
    axes[0].set_ylabel("seconds")
    axes[0].legend(frameon=False)
    facts = found["machine"]
    figure.suptitle(
        f"Delta log replay on {facts['cores']} cores (deltalake {facts['packages']['deltalake']}, "
        f"pyspark {facts['packages']['pyspark']})",
        fontsize=10,
    )
    figure.tight_layout()
    figure.savefig(picture, dpi=110)


def _apart(ends: list[tuple[float, int, str]]) -> list[tuple[float, int, str, float]]:
    """Heights for the labels at the right, each a little above the one below."""
    placed: list[tuple[float, int, str, float]] = []
    for seconds, files, colour in ends:
        height = max(seconds, placed[-1][3] * 1.22) if placed else seconds
        placed.append((seconds, files, colour, height))
    return placed


if __name__ == "__main__":
    draw(HERE / "results" / "delta.json", HERE / "results" / "delta.png")
