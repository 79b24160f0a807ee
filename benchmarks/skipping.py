"""Pruning by statistics: what it costs above reading the columns, and what parsing a predicate costs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.harness import Case, Operation, Target, count_of
from indextables.model.stats import MARKER
from indextables.predicate.build.from_sql import parse
from indextables.predicate.prune.rule import prune_table

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string()), ("d", pa.float64())])
WHERE = "n BETWEEN 500000 AND 504999 AND s >= 'key-0000000000500' AND s < 'key-0000000000505'"
ALLOWED_SECONDS, ALLOWED_PARSE_SECONDS = 0.25, 0.005


def prepare(directory: Path, size: str) -> None:
    """Files of a thousand rows in order, whole and with every text cut at twenty characters."""
    count = count_of(size)
    numbers = pa.array(range(count), pa.int64())
    texts = pc.binary_join_element_wise("key-", pc.utf8_lpad(numbers.cast(pa.string()), 13, "0"), "")
    pq.write_table(_files(numbers, texts), directory / "whole.parquet")
    cut = pc.binary_join_element_wise(texts, MARKER, "")
    pq.write_table(_files(numbers, cut), directory / "cut.parquet")


def _files(numbers: pa.Array, texts: pa.Array) -> pa.Table:
    last = pc.add(pc.multiply(numbers, 1000), 999)
    names = ["n", "s"]
    return pa.table(
        {
            "path": pc.binary_join_element_wise("part-", numbers.cast(pa.string()), ".split", ""),
            "num_records": pa.repeat(pa.scalar(1000, pa.int64()), len(numbers)),
            "min": pa.StructArray.from_arrays([pc.multiply(numbers, 1000), texts], names),
            "max": pa.StructArray.from_arrays([last, texts], names),
            "null_count": pa.StructArray.from_arrays(
                [pa.repeat(pa.scalar(0, pa.int64()), len(numbers))] * 2, names
            ),
        }
    )


def _read(directory: Path, name: str) -> pa.Table:
    return pq.read_table(directory / f"{name}.parquet", columns=["num_records", "min", "max", "null_count"])


def read(directory: Path) -> Operation:
    """Read the columns that the prune asks for, and nothing else."""
    return lambda: {"files": _read(directory, "whole").num_rows}


def prune(directory: Path) -> Operation:
    """Prune files that are already in memory."""
    return _pruning(_read(directory, "whole"))


def prune_cut(directory: Path) -> Operation:
    """The same where every text was truncated."""
    return _pruning(_read(directory, "cut"))


def read_and_prune(directory: Path) -> Operation:
    """Read and prune."""
    node = parse(WHERE, SCHEMA)
    return lambda: {"kept": prune_table(node, _read(directory, "whole"), SCHEMA, ()).metrics.kept}


def _pruning(files: pa.Table) -> Operation:
    node = parse(WHERE, SCHEMA)
    return lambda: {"kept": prune_table(node, files, SCHEMA, ()).metrics.kept}


def in_list(directory: Path) -> Operation:
    """Find the files of a thousand numbers spread over the table."""
    files = _read(directory, "whole")
    step = max(1, files.num_rows)
    node = parse(f"n IN ({', '.join(str(value * step) for value in range(1000))})", SCHEMA)
    return lambda: {"kept": prune_table(node, files, SCHEMA, ()).metrics.kept}


def parsing(directory: Path) -> Operation:  # noqa: ARG001 - needs no data
    """Parse one predicate, warm; the mean of two hundred."""
    parse(WHERE, SCHEMA)

    def run() -> Mapping[str, Any]:
        start = time.perf_counter()
        for _ in range(200):
            parse(WHERE, SCHEMA)
        return {"seconds": (time.perf_counter() - start) / 200}

    return run


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say whether pruning stays within its share, at the largest size measured."""
    largest = max((row["size"] for row in rows), key=count_of)
    seconds = {row["case"]: row["seconds"] for row in rows if row["size"] == largest}
    lines = []
    for case, allowed in (
        ("prune", ALLOWED_SECONDS),
        ("prune truncated", ALLOWED_SECONDS),
        ("parse", ALLOWED_PARSE_SECONDS),
    ):
        if case in seconds:
            met = "met" if seconds[case] <= allowed else "missed"
            lines.append(f"{case} at {largest}: {seconds[case]:.4f} s of {allowed} s allowed: {met}")
    return lines


TARGET = Target(
    name="skipping",
    prepare=prepare,
    cases=[
        Case("read columns", "pyarrow", "read"),
        Case("prune", "indextables", "prune"),
        Case("prune truncated", "indextables", "prune_cut"),
        Case("read and prune", "indextables", "read_and_prune"),
        Case("prune a list of 1000", "indextables", "in_list"),
        Case("parse", "indextables", "parsing"),
    ],
    rival="pyarrow",
    packages=("pyarrow", "sqlglot"),
    goals=goals,
)
