"""Write the figures of the corruptions into docs/reliability.md: `python -m corruption.page`, from `tests`."""

from __future__ import annotations

from collections import Counter

from corruption.damage import KINDS
from corruption.run import Figures
from simulation.page import PAGE, with_section

_FILES = ("version 0", "version", "checkpoint", "part", "hint", "split")


def text() -> str:
    """What was damaged how often, and what the tables answered."""
    found = Figures.load()
    by_file = Counter({tuple(name.split(", ")): times for name, times in found.damages.items()})
    rows = [f"| {file} | {' | '.join(f'{by_file[file, kind]:,}' for kind in KINDS)} |" for file in _FILES]
    outcomes = Counter(found.outcomes)
    told = (
        f"{found.corruptions:,} corruptions, {outcomes.total():,} answers: {outcomes['truth']:,} times the truth,",
        f"{outcomes['error']:,} times an error, {outcomes['rolled back']:,} times the version before, where the",
        "file of the newest one was deleted, which nothing in the directory can show;",
        f"{outcomes['third thing']:,} times a third thing.",
    )
    return "\n".join(
        [
            "One file of a table is damaged, and the table is asked everything: the rows, counts and searches",
            "of its newest version, an old version, its history, and for every third table a change and the",
            "rows after it. Tables have compressed and plain logs, checkpoints in one document, in parts and in",
            "Parquet. Each answer must be the truth, known from a list of rows, or an error of our own tree.",
            "",
            f"| damaged file | {' | '.join(KINDS)} |",
            f"|---|{'---:|' * len(KINDS)}",
            *rows,
            "",
            *told,
            "",
            f"`cd tests && python -m corruption.run --seeds 0:10000 --resume`, over {found.commit}",
        ]
    )


def render(page: str) -> str:
    """The page with today's figures."""
    return with_section(page, "corruption", text())


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text()))
