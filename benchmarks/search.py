"""Full-text search in one split of log lines, against scans of the same file by DuckDB and Polars."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.log_lines import COMMON, RARE, SCHEMA, log_lines

SETTINGS = {
    "indexing.typemap.message": "text",
    "write.targetSplitBytes": "4g",
    "write.maxRowsPerSplit": "100000000",
}
WARM_COUNTS = 200


def prepare(directory: Path, size: str) -> None:
    """The lines as Arrow, and one split of them."""
    import pyarrow as pa

    for name in ("table",):
        shutil.rmtree(directory / name, ignore_errors=True)
    with pa.OSFile(str(directory / "lines.arrow"), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
        for batch in log_lines(count_of(size)):
            writer.write_batch(batch)
    _build(directory, "table")
    _count(directory, RARE)()


def _lines(directory: Path) -> list[Any]:
    import pyarrow as pa

    with pa.ipc.open_file(pa.OSFile(str(directory / "lines.arrow"))) as reader:
        return [reader.get_batch(at) for at in range(reader.num_record_batches)]


def _options(directory: Path) -> Any:
    from indextables.options import Options

    return Options.of(SETTINGS)


def _build(directory: Path, name: str) -> list[Any]:
    from indextables.index.settings import from_options
    from indextables.split.write.build import write_splits
    from indextables.storage.store import open_store

    options = _options(directory)
    spec = from_options(options, SCHEMA)
    store = open_store(directory / name)
    adds = list(write_splits(_lines(directory), SCHEMA, (), spec, options, store))
    return adds


def _split(directory: Path) -> Path:
    (found,) = (directory / "table").glob("*.split")
    return found


def _text_bytes(directory: Path) -> int:
    import pyarrow.compute as pc

    return sum(pc.sum(pc.binary_length(batch["message"])).as_py() for batch in _lines(directory))


def build_ours(directory: Path) -> Operation:
    """Rows to a published split, index included."""
    import tantivy  # noqa: F401 - imports are not part of the time

    import indextables.split.write.build  # noqa: F401

    shutil.rmtree(directory / "again", ignore_errors=True)
    text = _text_bytes(directory)

    def operation() -> Mapping[str, Any]:
        began = time.perf_counter()
        (add,) = _build(directory, "again")
        seconds = time.perf_counter() - began
        return {
            "seconds": seconds,
            "rows_per_second": round(add.num_records / seconds),
            "index_to_text": round(add.hotcache_length / text, 3),
            "split_bytes": add.size,
            "text_bytes": text,
        }

    return operation


def build_tantivy(directory: Path) -> Operation:
    """The same text into a tantivy index and nothing else."""
    import tantivy

    target = directory / "bare"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()

    def operation() -> Mapping[str, Any]:
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("message", tokenizer_name="default", index_option="position")
        index = tantivy.Index(builder.build(), path=str(target))
        writer = index.writer(4_000_000_000, 1)
        for batch in _lines(directory):
            for text in batch["message"].to_pylist():
                document = tantivy.Document()
                document.add_text("message", text)
                writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        return {}

    return operation


def build_pyarrow(directory: Path) -> Operation:
    """The same rows into a Parquet file with the same settings and nothing else."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def operation() -> Mapping[str, Any]:
        path = directory / "bare.parquet"
        text = [name for name in SCHEMA.names if name != "message"]
        with pq.ParquetWriter(
            str(path), SCHEMA, compression="zstd", use_dictionary=text, write_page_index=True, max_rows_per_page=4096,
            write_page_checksum=True, write_batch_size=1024, dictionary_pagesize_limit=64 << 10,
        ) as writer:  # fmt: skip
            writer.write_table(pa.Table.from_batches(_lines(directory)), row_group_size=32_768)
        return {"bytes": path.stat().st_size}

    return operation


def _ours(directory: Path, word: str) -> tuple[Any, ...]:
    from indextables.index.query.syntax import parse_query
    from indextables.index.settings import from_options
    from indextables.split.layout import SplitRef, read_footer
    from indextables.split.source import Source
    from indextables.storage.store import open_store

    options = _options(directory)
    store = open_store(directory / "table")
    path = _split(directory)
    plain = SplitRef(path.name, path.stat().st_size)
    manifest = read_footer(Source(store, path.name), plain).manifest
    ref = plain.placed(manifest)
    query = parse_query(word, from_options(options, SCHEMA), SCHEMA)
    return store, ref, query, options


def _count(directory: Path, word: str) -> Operation:
    from indextables.split.search import count_split

    store, ref, query, options = _ours(directory, word)

    def operation() -> Mapping[str, Any]:
        found = count_split(store, ref, query, SCHEMA, options=options)
        began = time.perf_counter()
        for _ in range(WARM_COUNTS):
            count_split(store, ref, query, SCHEMA, options=options)
        seconds = (time.perf_counter() - began) / WARM_COUNTS
        # Too short a time for the digits that results keep.
        return {"seconds": seconds, "rows": found, "microseconds": round(seconds * 1e6, 1)}

    return operation


def count_ours(directory: Path) -> Operation:
    """A rare word counted by the index, which is open."""
    return _count(directory, RARE)


def _fetch(directory: Path, word: str) -> Operation:
    from indextables.split.search import count_split, search_split

    store, ref, query, options = _ours(directory, word)
    count_split(store, ref, query, SCHEMA, options=options)

    def operation() -> Mapping[str, Any]:
        notes: list[Any] = []
        # Every system gets one run to warm up, and the second one is timed.
        list(search_split(store, ref, query, SCHEMA, SCHEMA.names, options=options))
        began = time.perf_counter()
        parts = list(
            search_split(store, ref, query, SCHEMA, SCHEMA.names, options=options, note=notes.append)
        )
        seconds = time.perf_counter() - began
        note = notes[0]
        plan = next(name for name in ("by_pages", "by_row_groups", "by_scan") if getattr(note, name))
        return {"seconds": seconds, "rows": sum(part.num_rows for part in parts), "plan": plan}

    return operation


def fetch_ten_ours(directory: Path) -> Operation:
    """Ten rows with all columns."""
    return _fetch(directory, RARE)


def fetch_many_ours(directory: Path) -> Operation:
    """A tenth of all rows with all columns."""
    return _fetch(directory, COMMON)


def _duckdb(sql: str) -> Callable[[Path], Operation]:
    def case(directory: Path) -> Operation:
        import duckdb

        connection = duckdb.connect()
        query = sql.format(file=_split(directory))
        connection.sql("select 1").fetchall()

        def operation() -> Mapping[str, Any]:
            connection.sql(query).arrow().read_all()
            began = time.perf_counter()
            found = connection.sql(query).arrow().read_all()
            return {"seconds": time.perf_counter() - began, "rows": found.num_rows}

        return operation

    return case


count_duckdb = _duckdb(f"select count(*) from read_parquet('{{file}}') where contains(message, '{RARE}')")
fetch_ten_duckdb = _duckdb(f"select * from read_parquet('{{file}}') where contains(message, '{RARE}')")
fetch_many_duckdb = _duckdb(f"select * from read_parquet('{{file}}') where contains(message, '{COMMON}')")


def _polars(word: str) -> Callable[[Path], Operation]:
    def case(directory: Path) -> Operation:
        import polars as pl

        frame = pl.scan_parquet(_split(directory)).filter(pl.col("message").str.contains(word, literal=True))

        def operation() -> Mapping[str, Any]:
            frame.collect()
            began = time.perf_counter()
            found = frame.collect()
            return {"seconds": time.perf_counter() - began, "rows": found.height}

        return operation

    return case


fetch_ten_polars = _polars(RARE)
fetch_many_polars = _polars(COMMON)


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which goals the largest measured size meets."""
    if not rows:
        return []
    size = max((row["size"] for row in rows), key=count_of)
    time_of = {(row["case"], row["system"]): row["seconds"] for row in rows if row["size"] == size}
    facts = {(row["case"], row["system"]): row["facts"] for row in rows if row["size"] == size}
    lines = []

    def goal(text: str, ratio: float, met: bool) -> None:
        lines.append(f"{size}: {text}: {ratio:.2f} ({'met' if met else 'missed'})")

    def best(case: str) -> float:
        return min(
            seconds for (name, system), seconds in time_of.items() if name == case and system != "indextables"
        )

    if ("build", "indextables") in time_of:
        ratio = time_of["build", "indextables"] / (time_of["build", "tantivy"] + time_of["build", "pyarrow"])
        goal("build, over tantivy alone plus pyarrow alone (goal <= 1.25)", ratio, ratio <= 1.25)
        built = facts["build", "indextables"]
        lines.append(f"{size}: {built['rows_per_second']} rows/s, index/text {built['index_to_text']}")
    if ("count a rare word", "indextables") in time_of:
        microseconds = facts["count a rare word", "indextables"]["microseconds"]
        ratio = 1e6 * best("count a rare word") / microseconds
        goal("warm count, times faster than DuckDB (goal >= 1000)", ratio, ratio >= 1000)
        ratio = best("fetch 10 rows") / time_of["fetch 10 rows", "indextables"]
        goal("10 rows, times faster than the best scan (goal >= 4)", ratio, ratio >= 4)
        ratio = time_of["fetch a tenth", "indextables"] / best("fetch a tenth")
        goal("a tenth of the rows, over the best scan (goal <= 2)", ratio, ratio <= 2)
    return lines


TARGET = Target(
    name="search",
    prepare=prepare,
    cases=(
        Case("build", "indextables", "build_ours"),
        Case("build", "tantivy", "build_tantivy"),
        Case("build", "pyarrow", "build_pyarrow"),
        Case("count a rare word", "indextables", "count_ours"),
        Case("count a rare word", "duckdb", "count_duckdb"),
        Case("fetch 10 rows", "indextables", "fetch_ten_ours"),
        Case("fetch 10 rows", "duckdb", "fetch_ten_duckdb"),
        Case("fetch 10 rows", "polars", "fetch_ten_polars"),
        Case("fetch a tenth", "indextables", "fetch_many_ours"),
        Case("fetch a tenth", "duckdb", "fetch_many_duckdb"),
        Case("fetch a tenth", "polars", "fetch_many_polars"),
    ),
    rival="duckdb",
    packages=("pyarrow", "tantivy", "duckdb", "polars"),
    goals=goals,
)
