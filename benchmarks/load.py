"""`indextables load` of log lines and of CSV, beside DuckDB's own reading of the same file and our append.

Both ways end with the same columns, the message searchable by words. The goals are in rows per CPU second and in
memory, because a load is bound by neither a network nor a disk.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.log_lines import log_lines

OURS, DUCK = "indextables load", "DuckDB reads, we append"
_LEAST = 1.0
"""At least this share of the rival's rows per CPU second."""
_PATTERN = r"^(\S+ \S+) (\w+) ([\w.]+): (.*)$"
_READ = {
    "log": (
        "SELECT strptime(parts.ts, '%Y-%m-%d %H:%M:%S,%g') AS ts, parts.level, parts.program, parts.message FROM ("
        f"SELECT regexp_extract(line, '{_PATTERN}', ['ts', 'level', 'program', 'message']) AS parts FROM "
        "read_csv('{path}', delim='\\x01', quote='', escape='', header=false, columns={{'line': 'VARCHAR'}}))"
    ),
    "csv": "SELECT * FROM read_csv('{path}')",
}


def prepare(directory: Path, size: str) -> None:
    """The same lines as a log and as a CSV file."""
    import pyarrow.csv as pv

    with (directory / "lines.log").open("w") as log, (directory / "lines.csv").open("wb") as csv:
        writer = None
        for batch in log_lines(count_of(size)):
            writer = writer or pv.CSVWriter(csv, batch.schema)
            writer.write(batch)
            log.writelines(
                f"{row['ts']:%Y-%m-%d %H:%M:%S},{row['ts'].microsecond // 1000:03} {row['level']} "
                f"{row['service']}.Handler: {row['message']}\n"
                for row in batch.to_pylist()
            )
        assert writer is not None
        writer.close()


def _ours(directory: Path, form: str) -> Operation:
    from indextables.cli.main import cli

    target = directory / f"ours-{form}"
    shutil.rmtree(target, ignore_errors=True)

    def operation() -> Mapping[str, Any]:
        cli.main(
            ["load", str(directory / f"lines.{form}"), "--to", str(target), "--json"], standalone_mode=False
        )
        return {"rows": _rows(target)}

    return operation


def _duck(directory: Path, form: str) -> Operation:
    import duckdb

    import indextables as it

    target = directory / f"duck-{form}"
    shutil.rmtree(target, ignore_errors=True)

    def operation() -> Mapping[str, Any]:
        rows = duckdb.sql(_READ[form].format(path=directory / f"lines.{form}")).to_arrow_reader(100_000)
        options = {"indexing.typemap.message": "text"}
        it.Table.create(target, rows.schema, options=options).append(rows)
        return {"rows": _rows(target)}

    return operation


def _rows(target: Path) -> int:
    import indextables as it

    return it.Table.open(target).count()


def log_ours(directory: Path) -> Operation:
    return _ours(directory, "log")


def log_duck(directory: Path) -> Operation:
    return _duck(directory, "log")


def csv_ours(directory: Path) -> Operation:
    return _ours(directory, "csv")


def csv_duck(directory: Path) -> Operation:
    return _duck(directory, "csv")


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows per CPU second and memory of both, for each file."""
    lines = []
    for case, size in dict.fromkeys((row["case"], row["size"]) for row in rows):
        by_system = {row["system"]: row for row in rows if (row["case"], row["size"]) == (case, size)}
        if not {OURS, DUCK} <= by_system.keys():
            continue
        rates = {name: count_of(size) / row["cpu_seconds"] for name, row in by_system.items()}
        memory = {name: row["peak_mb"] for name, row in by_system.items()}
        verdict = "met" if rates[OURS] >= _LEAST * rates[DUCK] else "missed"
        lines.append(
            f"{case}, {size}: {rates[OURS]:,.0f} rows per CPU second and {memory[OURS]:,.0f} MB, beside "
            f"{rates[DUCK]:,.0f} and {memory[DUCK]:,.0f} MB; at least {_LEAST:.0%} of the rate: {verdict}"
        )
    return lines


TARGET = Target(
    "load",
    prepare,
    [
        Case("log", OURS, "log_ours", repeat=1),
        Case("log", DUCK, "log_duck", repeat=1),
        Case("csv", OURS, "csv_ours", repeat=1),
        Case("csv", DUCK, "csv_duck", repeat=1),
    ],
    rival=DUCK,
    packages=("duckdb", "pyarrow"),
    goals=goals,
)
