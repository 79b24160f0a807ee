"""A word and a filter: counts, rows and the best ten of log lines, against scans of the same file.

One filter keeps lines wherever they are; the other keeps a fiftieth that lie side by side,
so that statistics rule out most of the file. The scans look for the word as a piece of text, and their best ten
are the first ten: they have no scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.log_lines import COMMON, SCHEMA, log_lines
from benchmarks.search import SETTINGS
from benchmarks.search_rivals import facts_of, timed

REPEATS = 5
RIVALS = ("DuckDB", "Polars")


def prepare(directory: Path, size: str) -> None:
    """A table of one split."""
    import pyarrow as pa

    import indextables

    table = indextables.Table.create(str(directory / "table"), SCHEMA, options=SETTINGS)
    table.append(pa.RecordBatchReader.from_batches(SCHEMA, log_lines(count_of(size))))


def _spread(_rows: int) -> str:
    return "status = 500"


def _together(rows: int) -> str:
    return f"id >= {rows // 2} AND id < {rows // 2 + rows // 50}"


Filter = Callable[[int], str]


def _ours(question: str, where: Filter) -> Callable[[Path], Operation]:
    def case(directory: Path) -> Operation:
        import indextables

        table = indextables.Table.open(str(directory / "table"))
        text = where(table.count())

        def ask() -> int:
            if question == "count":
                return table.count(text, query=COMMON)
            best = {"score": True, "limit": 10} if question == "best ten" else {}
            return table.search(COMMON, where=text, **best).read_all().num_rows

        ask()
        return lambda: facts_of(*timed(ask, REPEATS))

    return case


def _file(directory: Path) -> tuple[str, int]:
    import pyarrow.parquet as pq

    (found,) = (directory / "table").glob("*.split")
    return str(found), pq.read_metadata(found).num_rows


def _duckdb(question: str, where: Filter) -> Callable[[Path], Operation]:
    def case(directory: Path) -> Operation:
        import duckdb

        file, rows = _file(directory)
        connection = duckdb.connect()
        condition = f"read_parquet('{file}') where contains(message, '{COMMON}') and {where(rows)}"

        def ask() -> int:
            if question == "count":
                return int(connection.sql(f"select count(*) from {condition}").fetchall()[0][0])
            limit = " limit 10" if question == "best ten" else ""
            return int(connection.sql(f"select * from {condition}{limit}").to_arrow_table().num_rows)

        ask()
        return lambda: facts_of(*timed(ask, REPEATS))

    return case


def _polars(question: str, where: Filter) -> Callable[[Path], Operation]:
    def case(directory: Path) -> Operation:
        import polars as pl

        file, rows = _file(directory)
        word = pl.col("message").str.contains(COMMON, literal=True)
        frame = pl.scan_parquet(file).filter(word & pl.sql_expr(where(rows)))

        def ask() -> int:
            if question == "count":
                return int(frame.select(pl.len()).collect().item())
            return int((frame.head(10) if question == "best ten" else frame).collect().height)

        ask()
        return lambda: facts_of(*timed(ask, REPEATS))

    return case


SYSTEMS = {"indextables": _ours, "DuckDB": _duckdb, "Polars": _polars}
FILTERS = {"spread": _spread, "together": _together}
QUESTIONS = ("count", "rows", "best ten")


def _cases() -> tuple[Case, ...]:
    """One case for every question, filter and system, its function under a name of this module."""
    made = []
    for question in QUESTIONS:
        for kind, where in FILTERS.items():
            for system, case in SYSTEMS.items():
                name = f"{question}_{kind}_{system}".replace(" ", "_").lower()
                globals()[name] = case(question, where)
                made.append(Case(f"{question}, filter {kind}", system, name))
    return tuple(made)


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Whether each answer took no more CPU time than the better scan."""
    lines = []
    cpu = {(row["case"], row["size"], row["system"]): row["facts"]["cpu_us"] for row in rows}
    for (case, size, system), ours in cpu.items():
        scans = [cpu[case, size, rival] for rival in RIVALS if (case, size, rival) in cpu]
        if system == "indextables" and scans:
            times = ours / min(scans)
            met = "met" if times <= 1 else "MISSED"
            lines.append(f"{case}, {size}: {times:.2f}x the CPU time of the better scan (goal: 1x): {met}")
    return lines


TARGET = Target(
    "filters", prepare, _cases(), rival="Polars", packages=("duckdb", "polars", "pyarrow"), goals=goals
)
