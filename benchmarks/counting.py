"""Counts, facets, histograms and groups, beside DuckDB and Polars over the same Parquet files.

The last case has Spark judge: its GROUP BY over the same files must give the same groups and numbers.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.in_turn import OURS, in_turn, ratios
from benchmarks.log_lines import COMMON, SCHEMA, log_lines

SPLITS = 16
SETTINGS = {
    "indexing.typemap.message": "text",
    "indexing.typemap.level": "string",
    "indexing.typemap.host": "string",
    "write.targetSplitBytes": "4g",
}

Groups = list[tuple[Any, ...]]


def prepare(directory: Path, size: str) -> None:
    """A table of log lines in the order of their time, in sixteen splits."""
    import pyarrow as pa

    import indextables as it

    rows = count_of(size)
    shutil.rmtree(directory / "table", ignore_errors=True)
    options = {**SETTINGS, "write.maxRowsPerSplit": str(-(-rows // SPLITS))}
    table = it.Table.create(str(directory / "table"), SCHEMA, options=options)
    table.append(pa.RecordBatchReader.from_batches(SCHEMA, log_lines(rows)))


def _asked(
    directory: Path, ours: Callable[[Any], Any], sql: str, polars_of: Callable[[Any, Any], Any]
) -> Operation:
    """One question to all three; `polars_of` gets the module and the scan and gives rows of values."""
    import duckdb
    import polars as pl

    import indextables as it

    table = it.Table.open(str(directory / "table"))
    files = sorted(str(file) for file in (directory / "table").glob("*.split"))
    connection = duckdb.connect()
    connection.sql("SET TimeZone = 'UTC'")
    query = sql.format(files=f"read_parquet({files!r})")

    def operation() -> Mapping[str, Any]:
        found = in_turn(
            {
                OURS: lambda: _sorted(ours(table)),
                "duckdb": lambda: _sorted(connection.sql(query).fetchall()),
                "polars": lambda: _sorted(polars_of(pl, pl.scan_parquet(files)).collect().rows()),
            }
        )
        ours(table)
        seen = table.last_scan
        known = {
            "from_log": seen.files_from_log,
            "from_index": seen.files_from_index,
            "read": seen.files_read,
        }
        return {**found, **known}

    return operation


def _sorted(rows: Any) -> Groups:
    return sorted((tuple(map(_plain, row)) for row in rows), key=repr)


def _plain(value: Any) -> Any:
    """Sums of doubles differ in their last digits with the order of the rows, and times in how zones are named."""
    if isinstance(value, float):
        return float(f"{value:.10g}")
    return value.timestamp() if hasattr(value, "timestamp") else value


def _rows(table: Any) -> Groups:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _groups(column: str) -> Callable[[Any, Any], Any]:
    return lambda pl, frame: frame.group_by(column).agg(pl.len())


def _found(pl: Any, frame: Any) -> Any:
    return frame.filter(pl.col("message").str.contains(COMMON, literal=True))


count_all = partial(
    _asked,
    ours=lambda t: [(t.count(),)],
    sql="SELECT count(*) FROM {files}",
    polars_of=lambda pl, f: f.select(pl.len()),
)
count_where = partial(
    _asked,
    ours=lambda t: [(t.count("status >= 500"),)],
    sql="SELECT count(*) FROM {files} WHERE status >= 500",
    polars_of=lambda pl, f: f.filter(pl.col("status") >= 500).select(pl.len()),  # noqa: PLR2004
)
count_query = partial(
    _asked,
    ours=lambda t: [(t.count(query=COMMON),)],
    sql=f"SELECT count(*) FROM {{files}} WHERE contains(message, '{COMMON}')",
    polars_of=lambda pl, f: _found(pl, f).select(pl.len()),
)
count_both = partial(
    _asked,
    ours=lambda t: [(t.count("status >= 500", query=COMMON),)],
    sql=f"SELECT count(*) FROM {{files}} WHERE status >= 500 AND contains(message, '{COMMON}')",
    polars_of=lambda pl, f: _found(pl, f).filter(pl.col("status") >= 500).select(pl.len()),  # noqa: PLR2004
)
facets_indexed = partial(
    _asked,
    ours=lambda t: _rows(t.facets("host", top=None)),
    sql="SELECT host, count(*) FROM {files} GROUP BY host",
    polars_of=_groups("host"),
)
facets_rows = partial(
    _asked,
    ours=lambda t: _rows(t.facets("service", top=None)),
    sql="SELECT service, count(*) FROM {files} GROUP BY service",
    polars_of=_groups("service"),
)
facets_query = partial(
    _asked,
    ours=lambda t: _rows(t.facets("service", query=COMMON, top=None)),
    sql=f"SELECT service, count(*) FROM {{files}} WHERE contains(message, '{COMMON}') GROUP BY service",
    polars_of=lambda pl, f: _groups("service")(pl, _found(pl, f)),
)
histogram_numbers = partial(
    _asked,
    ours=lambda t: _rows(t.histogram("took_ms", 50)),
    sql="SELECT floor(took_ms / 50) * 50 AS b, count(*) FROM {files} GROUP BY b",
    polars_of=lambda pl, f: f.group_by(((pl.col("took_ms") / 50).floor() * 50).alias("b")).agg(pl.len()),
)
histogram_days = partial(
    _asked,
    ours=lambda t: _rows(t.histogram("ts", "1 day")),
    sql="SELECT date_trunc('day', ts) AS b, count(*) FROM {files} GROUP BY b",
    polars_of=lambda pl, f: f.group_by(pl.col("ts").dt.truncate("1d").alias("b")).agg(pl.len()),
)
histogram_minutes = partial(
    _asked,
    ours=lambda t: _rows(t.histogram("ts", "1m")),
    sql="SELECT date_trunc('minute', ts) AS b, count(*) FROM {files} GROUP BY b",
    polars_of=lambda pl, f: f.group_by(pl.col("ts").dt.truncate("1m").alias("b")).agg(pl.len()),
)
bounds = partial(
    _asked,
    ours=lambda t: _rows(t.aggregate(None, ["count(*)", "min(ts)", "max(ts)"])),
    sql="SELECT count(*), min(ts), max(ts) FROM {files}",
    polars_of=lambda pl, f: f.select(pl.len(), pl.col("ts").min().alias("a"), pl.col("ts").max().alias("b")),
)
groups = partial(
    _asked,
    ours=lambda t: _rows(t.aggregate(["level", "status"], ["count(*)", "sum(took_ms)", "max(id)"])),
    sql="SELECT level, status, count(*), sum(took_ms), max(id) FROM {files} GROUP BY level, status",
    polars_of=lambda pl, f: f.group_by("level", "status").agg(
        pl.len(), pl.col("took_ms").sum(), pl.col("id").max()
    ),
)

JUDGED: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "facets of whole values": (
        lambda t: t.facets("host", top=None),
        "SELECT host, count(*) FROM lines GROUP BY host",
    ),
    "facets of other values": (
        lambda t: t.facets("service", top=None),
        "SELECT service, count(*) FROM lines GROUP BY service",
    ),
    "facets of a word": (
        lambda t: t.facets("service", query=COMMON, top=None),
        f"SELECT service, count(*) FROM lines WHERE contains(message, '{COMMON}') GROUP BY service",
    ),
    "facets of a filter": (
        lambda t: t.facets("status", where="level = 'ERROR'", top=None),
        "SELECT status, count(*) FROM lines WHERE level = 'ERROR' GROUP BY status",
    ),
    "histogram of numbers": (
        lambda t: t.histogram("took_ms", 50),
        "SELECT double(floor(took_ms / 50) * 50) AS b, count(*) FROM lines GROUP BY b",
    ),
    "histogram by minute": (
        lambda t: t.histogram("ts", "1m", time_zone="America/New_York"),
        "SELECT date_trunc('minute', ts) AS b, count(*) FROM lines GROUP BY b",
    ),
    "histogram by day": (
        lambda t: t.histogram("ts", "1 day", time_zone="America/New_York"),
        "SELECT date_trunc('day', ts) AS b, count(*) FROM lines GROUP BY b",
    ),
    "groups with sums": (
        lambda t: t.aggregate(["level", "status"], ["count(*)", "sum(took_ms)", "max(id)", "avg(took_ms)"]),
        "SELECT level, status, count(*), sum(took_ms), max(id), avg(took_ms) FROM lines GROUP BY level, status",
    ),
}
"""Questions to us, and the same to Spark, whose time zone is America/New_York."""


def judged(directory: Path) -> Operation:
    """Every question asked of Spark as well; a group that differs is an error."""
    from pyspark.sql import SparkSession

    import indextables as it

    table = it.Table.open(str(directory / "table"))
    files = [str(file) for file in (directory / "table").glob("*.split")]
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "America/New_York")
        .getOrCreate()
    )
    spark.read.parquet(*files).createOrReplaceTempView("lines")

    def operation() -> Mapping[str, Any]:
        groups = {}
        try:
            for question, (ours, sql) in JUDGED.items():
                wanted, found = _sorted(map(tuple, spark.sql(sql).collect())), _sorted(_rows(ours(table)))
                if wanted != found:
                    raise AssertionError(f"{question}: Spark says {wanted!r:.300}, we say {found!r:.300}")
                groups[question] = len(found)
        finally:
            spark.stop()
        return {"groups": groups}

    return operation


CASES = {
    "count": ("count_all", 1.0),
    "count of a filter": ("count_where", None),
    "count of a word": ("count_query", 1.0),
    "count of a word and a filter": ("count_both", None),
    "facets of whole values": ("facets_indexed", 1.0),
    "facets of other values": ("facets_rows", None),
    "facets of a word": ("facets_query", None),
    "histogram of numbers": ("histogram_numbers", None),
    "histogram by day": ("histogram_days", 1.0),
    "histogram by minute": ("histogram_minutes", None),
    "bounds": ("bounds", 1.0),
    "groups with sums": ("groups", None),
}
"""Every question with its function, and the goal where the log or the index can answer."""


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where the log or the index answers, we are to be faster than both."""
    return ratios(rows, {case: goal for case, (_, goal) in CASES.items() if goal is not None})


TARGET = Target(
    name="counting",
    prepare=prepare,
    cases=(
        *(Case(case, OURS, function, repeat=1) for case, (function, _) in CASES.items()),
        Case("equal to Spark's GROUP BY", OURS, "judged", repeat=1, needs="pyspark"),
    ),
    rival="duckdb",
    packages=("pyarrow", "duckdb", "polars"),
    goals=goals,
)
