"""LIKE and RLIKE over a column with trigrams, beside scans of the same file by DuckDB and Polars."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.in_turn import OURS, in_turn, ratios
from benchmarks.log_lines import COMMON, RARE, SCHEMA, log_lines

SETTINGS = {
    "indexing.typemap.message": "substring",
    "write.targetSplitBytes": "4g",
    "write.maxRowsPerSplit": "100000000",
}
RARE_AT_MOST, DENSE_AT_MOST = 0.1, 1.2


def prepare(directory: Path, size: str) -> None:
    """One split of log lines with the trigrams of their messages."""
    import pyarrow as pa

    import indextables as it

    shutil.rmtree(directory / "table", ignore_errors=True)
    table = it.Table.create(str(directory / "table"), SCHEMA, options=SETTINGS)
    table.append(pa.RecordBatchReader.from_batches(SCHEMA, log_lines(count_of(size))))


def _asked(directory: Path, ours: str, duckdb_sql: str, polars_of: Callable[[Any], Any]) -> Operation:
    """How many lines match, asked of all three."""
    import duckdb
    import polars as pl

    import indextables as it

    table = it.Table.open(str(directory / "table"))
    (file,) = (directory / "table").glob("*.split")
    connection = duckdb.connect()
    query = f"SELECT count(*) FROM read_parquet('{file}') WHERE {duckdb_sql}"
    frame = pl.scan_parquet(file).filter(polars_of(pl.col("message"))).select(pl.len())

    def operation() -> Mapping[str, Any]:
        found = in_turn(
            {
                OURS: lambda: table.count(ours),
                "duckdb": lambda: connection.sql(query).fetchall()[0][0],
                "polars": lambda: frame.collect().item(),
            }
        )
        sizes = table.files()
        return {**found, "rows": table.count(ours), "index_bytes": sizes["index_length"][0].as_py()}

    return operation


def _like(text: str) -> Callable[[Path], Operation]:
    condition = f"message LIKE '%{text}%'"
    return partial(
        _asked, ours=condition, duckdb_sql=condition, polars_of=lambda m: m.str.contains(text, literal=True)
    )


def _rlike(pattern: str) -> Callable[[Path], Operation]:
    return partial(
        _asked,
        ours=f"message RLIKE '{pattern}'",
        duckdb_sql=f"regexp_matches(message, '{pattern}')",
        polars_of=lambda m: m.str.contains(pattern),
    )


like_rare = _like(RARE)
like_few = _like("key orders:77")
like_absent = _like("no such text")
like_tenth = _like(COMMON)
like_third = _like("ms")
rlike_rare = _rlike("kab+oom")
rlike_dense = _rlike("timed out after [0-9]+ ms")

GOALS = {
    "LIKE, 10 lines": RARE_AT_MOST,
    "LIKE, a few lines of common words": RARE_AT_MOST,
    "LIKE, no line": RARE_AT_MOST,
    "RLIKE, 10 lines": RARE_AT_MOST,
    "LIKE, a tenth of the lines": DENSE_AT_MOST,
    "LIKE, a third of the lines": DENSE_AT_MOST,
    "RLIKE, a twelfth of the lines": DENSE_AT_MOST,
}


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which goals are met, and what the trigrams cost."""
    size = max((row["size"] for row in rows), key=count_of, default="")
    stored = [
        row["facts"].get("index_bytes") for row in rows if row["size"] == size and row["system"] == OURS
    ]
    cost = [f"{size}: the trigrams take {stored[0] / 1e6:.1f} MB"] if stored and stored[0] else []
    return [*ratios(rows, GOALS), *cost]


TARGET = Target(
    name="like",
    prepare=prepare,
    cases=tuple(
        Case(name, OURS, function, repeat=1)
        for name, function in zip(
            GOALS,
            ("like_rare", "like_few", "like_absent", "rlike_rare", "like_tenth", "like_third", "rlike_dense"),
            strict=True,
        )
    ),
    rival="duckdb",
    packages=("pyarrow", "duckdb", "polars"),
    goals=goals,
)
