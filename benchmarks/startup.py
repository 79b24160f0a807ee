"""Start-up: how long a new process takes to import the library, to open a small table, and to run a verb.

Each run times whole processes, from the start of the interpreter to its end, imports included. The libraries are those of this environment, with their bytecode compiled by a run that does not count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import Case, Operation, Target

PROCESSES = 11
SIZE = ("1k",)
GOALS = {"import Table": 0.25, "indextables inspect": 0.4, "indextables search": 0.4}
CPU_GOALS = {"count a word": 0.35, "count a word with a filter": 0.5}


def prepare(directory: Path, size: str) -> None:
    """A table of three commits with an index, the same rows as a Delta and as a Lance table."""
    import pyarrow as pa
    from deltalake import write_deltalake

    import indextables as it

    rows = pa.table(
        {"id": list(range(100)), "message": [f"event {n}, an error after a timeout" for n in range(100)]}
    )
    ours = it.Table.create(directory / "ours", rows.schema, options={"indexing.typemap.message": "text"})
    for _ in range(3):
        ours.append(rows)
        write_deltalake(str(directory / "delta"), rows, mode="append")
    try:
        import lancedb
    except ImportError:
        return
    made = lancedb.connect(str(directory / "lance")).create_table("rows", rows)
    for _ in range(2):
        made.add(rows)


def import_ours(_directory: Path) -> Operation:
    return _python("import indextables as it; it.Table")


def import_delta(_directory: Path) -> Operation:
    return _python("from deltalake import DeltaTable")


def import_lance(_directory: Path) -> Operation:
    return _python("import lancedb")


def import_arrow(_directory: Path) -> Operation:
    return _python("import pyarrow")


def open_ours(directory: Path) -> Operation:
    return _python(
        f"import indextables as it; assert it.Table.open({str(directory / 'ours')!r}).count() == 300"
    )


def word_ours(directory: Path) -> Operation:
    return _python(
        "import indextables as it; "
        f"assert it.Table.open({str(directory / 'ours')!r}).count(query='timeout') == 300"
    )


def filter_ours(directory: Path) -> Operation:
    return _python(
        "import indextables as it; "
        f"assert it.Table.open({str(directory / 'ours')!r}).count('id < 50', query='timeout') == 150"
    )


def filter_duckdb(directory: Path) -> Operation:
    files = f"read_parquet('{directory / 'ours'}/*.split')"
    question = f"SELECT count(*) FROM {files} WHERE message LIKE '%timeout%' AND id < 50"
    return _python(f"import duckdb; assert duckdb.sql({question!r}).fetchall() == [(150,)]")


def filter_polars(directory: Path) -> Operation:
    question = (
        f"pl.scan_parquet('{directory / 'ours'}/*.split')"
        ".filter(pl.col('message').str.contains('timeout', literal=True), pl.col('id') < 50).collect().height"
    )
    return _python(f"import polars as pl; assert {question} == 150")


def filter_lance(directory: Path) -> Operation:
    return _python(
        "import lancedb; "
        f"rows = lancedb.connect({str(directory / 'lance')!r}).open_table('rows')"
        ".search().where(\"id < 50 AND message LIKE '%timeout%'\").limit(1000).to_arrow(); "
        "assert len(rows) == 150"
    )


def word_duckdb(directory: Path) -> Operation:
    files = f"read_parquet('{directory / 'ours'}/*.split')"
    asked = f"SELECT count(*) FROM {files} WHERE message LIKE '%timeout%'"
    return _python(f"import duckdb; assert duckdb.sql({asked!r}).fetchall() == [(300,)]")


def open_delta(directory: Path) -> Operation:
    return _python(
        f"from deltalake import DeltaTable; assert DeltaTable({str(directory / 'delta')!r}).count() == 300"
    )


def open_lance(directory: Path) -> Operation:
    return _python(
        "import lancedb; "
        f"assert lancedb.connect({str(directory / 'lance')!r}).open_table('rows').count_rows() == 300"
    )


def verb_help(_directory: Path) -> Operation:
    return _timed("-m", "indextables", "--help")


def verb_inspect(directory: Path) -> Operation:
    return _timed("-m", "indextables", "inspect", str(directory / "ours"))


def verb_search(directory: Path) -> Operation:
    return _timed("-m", "indextables", "search", str(directory / "ours"), "error AND timeout")


def _python(program: str) -> Operation:
    return _timed("-c", program)


def _timed(*arguments: str) -> Operation:
    """An operation that reports the median of several processes, and the CPU time of the one that took least."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    start = partial(
        subprocess.run, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True
    )
    start([sys.executable, *arguments])

    def run() -> Mapping[str, Any]:
        runs = [_seconds(start, *arguments) for _ in range(PROCESSES)]
        return {
            "seconds": median(seconds for seconds, _ in runs),
            "cpu_seconds": min(cpu for _, cpu in runs),
        }

    return run


def _seconds(start: Any, *arguments: str) -> tuple[float, float]:
    before, began = os.times(), time.perf_counter()
    start([sys.executable, *arguments])
    seconds, after = time.perf_counter() - began, os.times()
    return (
        seconds,
        after.children_user + after.children_system - before.children_user - before.children_system,
    )


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which goals are met, by the wall time of a median process or the CPU time of the one that took least."""
    found = []
    for row in rows:
        for column, unit, wanted in (("seconds", "s", GOALS), ("cpu_seconds", "CPU s", CPU_GOALS)):
            goal = wanted.get(row["case"]) if row["system"] == "indextables" else None
            if goal is not None:
                met = "met" if row[column] <= goal else "MISSED"
                found.append(f"{row['case']}: {row[column]:.2f} {unit} (goal: {goal} {unit}): {met}")
    return found


TARGET = Target(
    "startup",
    prepare,
    (
        Case("import Table", "indextables", "import_ours", sizes=SIZE),
        Case("import Table", "deltalake", "import_delta", sizes=SIZE),
        Case("import Table", "lancedb", "import_lance", sizes=SIZE, needs="lancedb"),
        Case("import Table", "pyarrow alone", "import_arrow", sizes=SIZE),
        Case("open and count", "indextables", "open_ours", sizes=SIZE),
        Case("open and count", "deltalake", "open_delta", sizes=SIZE),
        Case("open and count", "lancedb", "open_lance", sizes=SIZE, needs="lancedb"),
        Case("count a word", "indextables", "word_ours", sizes=SIZE),
        Case("count a word", "DuckDB scan", "word_duckdb", sizes=SIZE),
        Case("count a word with a filter", "indextables", "filter_ours", sizes=SIZE),
        Case("count a word with a filter", "DuckDB scan", "filter_duckdb", sizes=SIZE),
        Case("count a word with a filter", "Polars scan", "filter_polars", sizes=SIZE),
        Case("count a word with a filter", "lancedb scan", "filter_lance", sizes=SIZE, needs="lancedb"),
        Case("indextables --help", "indextables", "verb_help", sizes=SIZE),
        Case("indextables inspect", "indextables", "verb_inspect", sizes=SIZE),
        Case("indextables search", "indextables", "verb_search", sizes=SIZE),
    ),
    rival="deltalake",
    packages=("deltalake", "lancedb", "duckdb", "polars", "pyarrow"),
    goals=goals,
)
