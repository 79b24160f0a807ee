"""Companion indexes: a rare word in Parquet files by an index beside them, and by DuckDB's LIKE; making the index.

    python -m benchmarks.run companion

The files are those of DuckDB too; every case reports how many rows it finds, and these must agree.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.log_lines import RARE, log_lines

FILES = 8
ALLOWED_SHARE, ALLOWED_MB = 0.6, 512


def prepare(directory: Path, size: str) -> None:
    """Log lines in some Parquet files, and a companion of them."""
    import indextables as it

    source = directory / "source"
    source.mkdir()
    count = count_of(size)
    for number, batch in enumerate(log_lines(count, batch_rows=-(-count // FILES))):
        pq.write_table(pa.Table.from_batches([batch]), source / f"{number}.parquet")
    it.companion(str(source), str(directory / "index"), {"message": "text"})


def rare_word(directory: Path) -> Operation:
    """Rows with a rare word, by the companion; it is opened each time."""
    import indextables as it

    # What is loaded by the first search is not part of it.
    it.open(directory / "index").search(RARE, limit=1).read_all()

    def run() -> Mapping[str, Any]:
        rows = it.open(directory / "index").search(RARE, columns=["message"]).read_all()
        return {"rows": rows.num_rows}

    return run


def rare_word_duckdb(directory: Path) -> Operation:
    """The same by LIKE."""
    import duckdb

    text = f"SELECT message FROM '{directory}/source/*.parquet' WHERE message LIKE '%{RARE}%'"

    def run() -> Mapping[str, Any]:
        return {"rows": len(duckdb.sql(text).fetchall())}

    return run


def build(directory: Path) -> Operation:
    """Making the index of all files."""
    import indextables as it

    scratch = Path(tempfile.mkdtemp(dir=directory, prefix="run-"))
    stored = sum(path.stat().st_size for path in (directory / "source").glob("*.parquet"))

    def run() -> Mapping[str, Any]:
        began = time.process_time()
        made = it.companion(str(directory / "source"), str(scratch / "index"), {"message": "text"})
        seconds = time.process_time() - began
        size = made.status().index_bytes
        shutil.rmtree(scratch)
        return {"cpu_s": round(seconds, 2), "share": round(size / stored, 2)}

    return run


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say whether both find the same rows, how large the index is, and whether memory stays bounded."""
    lines = []
    by = {(row["case"], row["size"], row["system"]): row for row in rows}
    for (case, size, system), row in by.items():
        rival = by.get((case, size, "duckdb"))
        if system == "indextables" and rival is not None:
            same = row["facts"]["rows"] == rival["facts"]["rows"]
            lines.append(f"{case} at {size}: {'the same rows' if same else 'OTHER ROWS'} as duckdb")
        if "share" in row["facts"]:
            share, peak = row["facts"]["share"], row["peak_mb"]
            met = "met" if share <= ALLOWED_SHARE and peak <= ALLOWED_MB else "missed"
            lines.append(
                f"{case} at {size}: {share:.2f} of the Parquet ({ALLOWED_SHARE} allowed), {peak:.0f} MB of "
                f"{ALLOWED_MB}: {met}"
            )
    return lines


TARGET = Target(
    name="companion",
    prepare=prepare,
    cases=[
        Case("rare word", "indextables", "rare_word"),
        Case("rare word", "duckdb", "rare_word_duckdb"),
        Case("build", "indextables", "build"),
    ],
    rival="duckdb",
    packages=("pyarrow", "duckdb"),
    goals=goals,
)
