"""Asks drawn questions of every door and reports where answers differ.

    cd tests && python -m doors.run --tables 0:1000 --questions 20 --jobs 2
    cd tests && python -m doors.run --tables 17 --questions 20 --only 5
    cd tests && python -m doors.run --spark classic --tables 0:50 --questions 20

`--spark connect` starts a Spark Connect server with the package's settings and asks it as a client.
Each table is drawn by its number, each question by table and number: a difference is repeated by
naming both.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from doors import questions, worlds
from doors.doors import DOORS, Asking, NotOffered, expected


@dataclass
class Tally:
    """What was asked, and what differed."""

    cases: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Sum two tallies."""
        self.cases += other.cases
        self.answers += other.answers
        self.differences += other.differences


def ask(
    asking: Asking, where: str, tally: Tally, doors: Mapping[str, Callable[[Asking], Any]] = DOORS
) -> None:
    """Ask one question of every door."""
    tally.cases += 1
    right = expected(asking)
    for name, door in doors.items():
        try:
            answer = door(asking)
        except NotOffered:
            continue
        except Exception as error:  # noqa: BLE001 - whatever a door raises is what it answered
            answer = f"{type(error).__name__}: {error}"
        tally.answers[name] += 1
        if answer != right:
            tally.differences.append(
                f"{where} {name}\n  {asking.question}\n  where {asking.where()!r} query {asking.query()!r}"
                f" zone {asking.zone}\n  table {asking.world.remarks} {asking.world.names}"
                f"\n  expected {right}\n  answered {answer}"
            )


def ask_table(number: int, asked: Iterable[int], directory: Path) -> Tally:
    """Draw a table and its questions, and ask them."""
    _quiet()
    tally = Tally()
    world = worlds.make(directory / f"table{number}", number)
    for at in asked:
        question = questions.draw(world, random.Random(f"{number}/{at}"))
        ask(Asking(world, question), f"--tables {number} --only {at}:", tally)
    return tally


def ask_in_process(numbers: list[int], asked: list[int]) -> Tally:
    """Ask about several tables, in a directory that is removed."""
    tally = Tally()
    for number in numbers:
        with tempfile.TemporaryDirectory(prefix="doors") as directory:
            tally.add(ask_table(number, asked, Path(directory)))
    return tally


def _ask_spark(kind: str, numbers: list[int], asked: int) -> Tally:
    """Ask a session of this process, or a Spark Connect server."""
    from doors.spark_doors import CONNECT_DOORS, SPARK_DOORS, ask_tables

    _quiet()
    with tempfile.TemporaryDirectory(prefix="doors") as made:
        directory = Path(made)
        if kind == "classic":
            with _classic_session() as spark:
                return ask_tables(spark, numbers, asked, directory, SPARK_DOORS)
        import indextables
        from support.connect_statements import server, session

        with server(directory) as address:
            spark = indextables.connect(session(address))
            return ask_tables(spark, numbers, asked, directory, CONNECT_DOORS)


@contextmanager
def _classic_session() -> Iterator[Any]:
    import os

    from pyspark.sql import SparkSession

    import indextables

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    yield indextables.connect(spark)
    spark.stop()


def _quiet() -> None:
    """Damaged indexes are drawn on purpose; what the package says of them is not looked at here."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", default="0:25")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--only", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=20, help="differences to print")
    parser.add_argument("--spark", choices=("classic", "connect"))
    given = parser.parse_args()
    first, colon, last = given.tables.partition(":")
    tables = list(range(int(first), int(last))) if colon else [int(first)]
    asked = list(range(given.questions)) if given.only is None else [given.only]
    began = time.process_time(), time.perf_counter()
    tally = Tally()
    pieces = [tables[at : at + 5] for at in range(0, len(tables), 5)]
    if given.spark:
        tally.add(_ask_spark(given.spark, tables, given.questions))
    elif len(pieces) == 1:
        tally.add(ask_in_process(tables, asked))
    else:
        with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
            for number, part in enumerate(pool.map(ask_in_process, pieces, [asked] * len(pieces)), 1):
                tally.add(part)
                if number % 20 == 0:
                    print(f"{tally.cases} cases, {len(tally.differences)} differences", flush=True)
    for difference in tally.differences[: given.most]:
        print(difference)
    answers = ", ".join(f"{name} {number}" for name, number in sorted(tally.answers.items()))
    print(f"{tally.cases} cases, {sum(tally.answers.values())} answers ({answers})")
    print(f"{len(tally.differences)} differences, {time.perf_counter() - began[1]:.0f} s")
    sys.exit(bool(tally.differences))


if __name__ == "__main__":
    main()
