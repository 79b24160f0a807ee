"""Companion indexes: a rare word in a Delta table by an index beside it, by DuckDB's LIKE and by Spark's; making the index.

    python -m benchmarks.run companion

The files are those of DuckDB and Spark too; every case reports how many rows it finds, and these must agree.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.log_lines import RARE, log_lines

FILES = 8
ALLOWED_SHARE, ALLOWED_MB = 0.6, 512
LEAST_TEXT_PER_S = 7.5
"""MB of text that are to be indexed in a second of CPU."""
ALLOWED_REQUESTS, ALLOWED_KB = 4, 256
"""For the first row of a word, from an open handle; the KB are those of the index."""
LEAST_TIMES_LIKE = 20


def prepare(directory: Path, size: str) -> None:
    """Log lines in a Delta table of some files, and a companion of it."""
    import deltalake

    import indextables as it

    source = str(directory / "source")
    count = count_of(size)
    for batch in log_lines(count, batch_rows=-(-count // FILES)):
        deltalake.write_deltalake(source, batch, mode="append")
    it.companion(source, str(directory / "index"), {"message": "text"})


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
    files = sorted((directory / "source").glob("*.parquet"))
    stored = sum(path.stat().st_size for path in files)
    text = sum(
        pc.sum(pc.binary_length(pq.read_table(path, columns=["message"])["message"])).as_py()
        for path in files
    )

    def run() -> Mapping[str, Any]:
        began = time.process_time()
        made = it.companion(str(directory / "source"), str(scratch / "index"), {"message": "text"})
        seconds = time.process_time() - began
        size = made.status().index_bytes
        shutil.rmtree(scratch)
        rate = text / 1e6 / seconds
        return {"cpu_s": round(seconds, 2), "share": round(size / stored, 2), "text_mb_per_s": round(rate, 2)}

    return run


def needle(directory: Path) -> Operation:
    """The requests to an object store for the one row of a word, from a handle that has read no split yet."""
    import deltalake

    import indextables as it
    from benchmarks.far_store import FarStore
    from indextables.index.read.cache import MEMORY
    from indextables.split.open_splits import forget_splits
    from indextables.storage.stores.remote import forget_objects

    far = FarStore()
    source, index = far.uri("source"), far.uri("index")
    storage = {
        "AWS_ENDPOINT_URL": far.endpoint, "AWS_ACCESS_KEY_ID": "far", "AWS_SECRET_ACCESS_KEY": "far",
        "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true", "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
    }  # fmt: skip
    rows = deltalake.DeltaTable(str(directory / "source")).to_pyarrow_table()
    marked = pc.if_else(pc.equal(rows["id"], rows.num_rows // 3), "needle in the middle", rows["message"])
    rows = rows.set_column(rows.schema.get_field_index("message"), "message", marked)
    deltalake.write_deltalake(source, rows, storage_options=storage)
    it.companion(source, index, {"message": "text"}, far.options)

    def run() -> Mapping[str, Any]:
        table = it.Table.open(index, options=far.options)
        forget_splits()
        forget_objects()
        MEMORY.clear()
        far.requests()
        answer = table.search("needle", columns=["message"]).read_all()
        requests = far.requests()
        assert answer.column("message").to_pylist() == ["needle in the middle"]
        of_rows = [one for one in requests if one.key.startswith("source/")]
        of_index = [one for one in requests if one not in of_rows]
        return {
            "rows": answer.num_rows, "requests": len(requests), "row_requests": len(of_rows),
            "index_kb": sum(one.size_bytes for one in of_index) // 1000,
            "row_kb": sum(one.size_bytes for one in of_rows) // 1000,
        }  # fmt: skip

    return run


def rare_word_spark(directory: Path) -> Operation:
    """The ten lines of a rare word in one Spark session, by the companion and by LIKE over the same files."""
    from benchmarks.spark import in_session, session

    spark = session()
    indexed = spark.read.format("indextables").load(str(directory / "index"))
    files = spark.read.parquet(*map(str, (directory / "source").glob("*.parquet")))

    def lines(frame: Any) -> Any:
        return sorted(row["id"] for row in frame.select("id", "message").collect())

    systems = {
        "indextables": lambda: lines(indexed.filter(f"message indexquery '{RARE}'")),
        "spark LIKE": lambda: lines(files.filter(f"message LIKE '%{RARE}%'")),
    }
    return lambda: in_session(systems)


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say whether all find the same rows, and which goals of size, speed, memory and requests are met."""
    lines = []
    by = {(row["case"], row["size"], row["system"]): row for row in rows}
    for (case, size, system), row in by.items():
        rival = by.get((case, size, "duckdb"))
        if system == "indextables" and rival is not None:
            same = row["facts"]["rows"] == rival["facts"]["rows"]
            lines.append(f"{case} at {size}: {'the same rows' if same else 'OTHER ROWS'} as duckdb")
        facts = row["facts"]
        if "share" in facts:
            share, peak, rate = facts["share"], row["peak_mb"], facts["text_mb_per_s"]
            met = "met" if share <= ALLOWED_SHARE and peak <= ALLOWED_MB else "missed"
            lines.append(
                f"{case} at {size}: {share:.2f} of the Parquet ({ALLOWED_SHARE} allowed), {peak:.0f} MB of "
                f"{ALLOWED_MB}: {met}"
            )
            met = "met" if rate >= LEAST_TEXT_PER_S else "missed"
            lines.append(
                f"{case} at {size}: {rate:.2f} MB of text per CPU second ({LEAST_TEXT_PER_S}): {met}"
            )
        if "requests" in facts:
            fine = facts["requests"] <= ALLOWED_REQUESTS and facts["index_kb"] <= ALLOWED_KB
            lines.append(
                f"{case} at {size}: {facts['requests']} requests of {ALLOWED_REQUESTS}, {facts['index_kb']} KB "
                f"of index of {ALLOWED_KB}, {facts['row_kb']} KB of rows: {'met' if fine else 'missed'}"
            )
        like = by.get((case, size, "spark LIKE"))
        if system == "indextables" and like is not None:
            times = like["seconds"] / row["seconds"]
            met = "met" if times >= LEAST_TIMES_LIKE else "missed"
            lines.append(f"{case} at {size}: {times:.1f} times LIKE ({LEAST_TIMES_LIKE}): {met}")
    return lines


TARGET = Target(
    name="companion",
    prepare=prepare,
    cases=[
        Case("rare word", "indextables", "rare_word"),
        Case("rare word", "duckdb", "rare_word_duckdb"),
        Case("build", "indextables", "build"),
        Case("needle", "indextables", "needle", repeat=1),
        Case("rare word in Spark", "indextables", "rare_word_spark", repeat=1, least_timeout_s=600),
    ],
    rival="duckdb",
    packages=("pyarrow", "duckdb", "deltalake", "pyspark"),
    goals=goals,
)
