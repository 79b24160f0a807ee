"""A guided tour: from nothing to a table of log events, a filter, a search, a look back, and a repair.

With Spark where Java is there, without it otherwise; the table is the same.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from indextables.cli.tour import Tour
from indextables.errors import MissingPackageError


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
            from indextables.cli.demo_spark import tour_spark

            with _errors_into_file() as log:
                tour_spark(tour)
            tour.say(f"The output of Java and Spark is in {log}")
        kept = f" The table is in {root}." if directory else ""
        console.print(f"\nDone in {time.perf_counter() - began:.0f} s.{kept}")
        again = "" if directory else "indextables demo --no-spark --dir demo && "
        shown = root if directory else "demo/events"
        console.print("Next:", style="bold")
        console.print(f"   {again}indextables serve {shown}", soft_wrap=True, markup=False)
        console.print("   make docs, which builds the documentation in build/site", soft_wrap=True)


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


@contextlib.contextmanager
def _errors_into_file() -> Iterator[str]:
    """Send standard error to a file that stays, that of the Java process started meanwhile included."""
    number, log = tempfile.mkstemp(prefix="indextables-demo-", suffix=".log")
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(number, 2)
    os.close(number)
    try:
        yield log
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)


def _wants_spark(asked: bool | None, console: Console) -> bool:
    if asked is False:
        return False
    try:
        from indextables.spark.java import check_java

        check_java()
    except MissingPackageError as missing:
        if asked:
            raise
        console.print(f"\nThe part with Spark is left out. {missing.message}", style="dim", markup=False)
        return False
    return True
