"""A guided tour: from nothing to a table of log events, a filter, a search, a look back, and a repair.

With Spark where Java is there, without it otherwise; the table is the same.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from indextables.cli.demo_spark import tour_spark
from indextables.cli.tour import Tour


def run_demo(rows: int, directory: str | None, spark: bool | None) -> None:
    """Run the tour in a directory that is removed afterwards, or in one that is kept."""
    console = Console(highlight=False)
    began = time.perf_counter()
    with _quiet(), _place(directory) as root:
        if root.exists() and any(root.iterdir()):
            console.print(f"{root} is not empty; choose another --dir.", style="red")
            raise SystemExit(1)
        tour = Tour(console, root, rows)
        tour.run()
        if _wants_spark(spark, console):
            tour_spark(tour)
        kept = f" The table is in {root}." if directory else ""
        console.print(f"\nDone in {time.perf_counter() - began:.0f} s.{kept}")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No warnings meanwhile: the damage of the last step is part of the show."""
    logger = logging.getLogger("indextables")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def _place(directory: str | None) -> Iterator[Path]:
    if directory:
        yield Path(directory) / "events"
        return
    with tempfile.TemporaryDirectory(prefix="indextables-demo-") as made:
        yield Path(made) / "events"


def _wants_spark(asked: bool | None, console: Console) -> bool:
    if asked is False:
        return False
    if shutil.which("java") is None:
        console.print("\nNo Java on the path, so the part with Spark is left out.", style="dim")
        return False
    return True
