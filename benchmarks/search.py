"""Full-text search in log lines: raw tantivy, Lance and Infino with indexes, DuckDB and Polars with scans."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.log_lines import COMMON, RARE, SCHEMA, log_lines
from benchmarks.search_rivals import (
    build_infino,
    build_lance,
    count_infino,
    facts_of,
    fetch_many_infino,
    fetch_many_lance,
    fetch_ten_infino,
    fetch_ten_lance,
    stored,
    timed,
)

SETTINGS = {
    "indexing.typemap.message": "text",
    "write.targetSplitBytes": "4g",
    "write.maxRowsPerSplit": "100000000",
}
WARM_COUNTS = 200
SPLITS, SPLIT_ROWS = 200, 100
FIXED, DRAWN = 40, 1000
"""Fixed queries, and random ones."""
LATENCY = 0.05
"""Seconds that a request takes when sequential requests are counted."""
MIXED = (
    RARE,
    "nowheretobefound",
    "timed AND internal AND attempt",
    '"timed out after"',
    "timed garbage",
    "conn*",
    "connection",
)
"""One query of every kind: words, an AND, a phrase, a ranking, a prefix."""


def prepare(directory: Path, size: str) -> None:
    """The lines as Arrow, and one split of them."""
    import pyarrow as pa

    for name in ("table", "one", "many", "lance", "infino"):
        shutil.rmtree(directory / name, ignore_errors=True)
    with pa.OSFile(str(directory / "lines.arrow"), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
        for batch in log_lines(count_of(size)):
            writer.write_batch(batch)
    _build(directory, "table")
    _count(directory, RARE)()
    _one_split(directory)
    _many_splits(directory)


def _one_split(directory: Path) -> None:
    """The same lines as a table with a log."""
    import pyarrow as pa

    import indextables

    table = indextables.Table.create(str(directory / "one"), SCHEMA, options=SETTINGS)
    table.append(pa.Table.from_batches(_lines(directory)))


def _many_splits(directory: Path) -> None:
    """What streaming makes: many splits of few rows."""
    import pyarrow as pa

    import indextables

    options = {"indexing.typemap.message": "text", "write.maxRowsPerSplit": str(SPLIT_ROWS)}
    table = indextables.Table.create(str(directory / "many"), SCHEMA, options=options)
    table.append(pa.Table.from_batches(list(log_lines(SPLITS * SPLIT_ROWS))))


def _lines(directory: Path) -> list[Any]:
    import pyarrow as pa

    with pa.ipc.open_file(pa.OSFile(str(directory / "lines.arrow"))) as reader:
        return [reader.get_batch(at) for at in range(reader.num_record_batches)]


def _options(directory: Path) -> Any:
    from indextables.options import Options

    return Options.of(SETTINGS)


def _build(directory: Path, name: str) -> list[Any]:
    from indextables.index.settings import from_options
    from indextables.split.write.build import build_splits
    from indextables.storage.store import open_store

    options = _options(directory)
    spec = from_options(options, SCHEMA)
    store = open_store(directory / name)
    return [built.add for built in build_splits(_lines(directory), SCHEMA, (), spec, options, store)]


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
            "index_bytes": add.hotcache_length,
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
        return {"index_bytes": stored(target)}

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
    from indextables.reading import Reading
    from indextables.split.layout import SplitRef, read_footer
    from indextables.split.search.selection import Selection
    from indextables.split.source import SplitFile
    from indextables.storage.store import open_store

    options = _options(directory)
    store = open_store(directory / "table")
    path = _split(directory)
    plain = SplitRef(path.name, path.stat().st_size)
    manifest = read_footer(SplitFile(store, path.name), plain).manifest
    ref = plain.placed(manifest)
    query = parse_query(word, from_options(options, SCHEMA), SCHEMA)
    return Reading(store, SCHEMA, options), ref, Selection(query, columns=tuple(SCHEMA.names))


def _count(directory: Path, word: str) -> Operation:
    from indextables.split.search.run import count_split

    reading, ref, selection = _ours(directory, word)

    def operation() -> Mapping[str, Any]:
        return facts_of(*timed(lambda: count_split(reading, ref, selection), WARM_COUNTS))

    return operation


def count_ours(directory: Path) -> Operation:
    """A rare word counted by the index, which is open."""
    return _count(directory, RARE)


def count_by_table(directory: Path) -> Operation:
    """The same through a table of one split."""
    import indextables

    table = indextables.Table.open(str(directory / "one"))
    return lambda: facts_of(*timed(lambda: table.count(query=RARE), WARM_COUNTS))


def _questions(corpus: str) -> Callable[[Path], Operation]:
    """Phrases, ANDs and ranked queries over an index alone and over raw tantivy, in turn."""

    def case(directory: Path) -> Operation:
        from benchmarks.index import measure

        rows = sum(batch.num_rows for batch in _lines(directory))

        def operation() -> Mapping[str, Any]:
            measured = measure(corpus, rows, DRAWN, 3)
            return {
                "rows": measured["rows"],
                "bytes_over_tantivy": round(measured["bytes"]["ratio"], 3),
                "build_cpu_over_tantivy": round(
                    measured["build cpu s"]["here"] / measured["build cpu s"]["tantivy"], 3
                ),
                "warm_count_us": round(measured["warm count us"], 1),
                "warm_rows_us": round(measured["warm rows us"], 1),
                "wrong": measured["wrong"],
                "warm_median_ms": round(measured["warm ms"]["median"], 3),
                "warm_p99_ms": round(measured["warm ms"]["p99"], 3),
                "cold_median_ms": round(measured["cold ms"]["median"], 3),
                "cold_p99_ms": round(measured["cold ms"]["p99"], 3),
            }

        return operation

    return case


questions_in_lines, questions_in_text = _questions("lines"), _questions("documentation")


def _fetch(directory: Path, word: str, repeats: int) -> Operation:
    from indextables.split.search.run import count_split, search_split

    reading, ref, selection = _ours(directory, word)
    count_split(reading, ref, selection)

    def operation() -> Mapping[str, Any]:
        notes: list[Any] = []

        def search() -> list[Any]:
            return list(search_split(reading, ref, selection, notes.append))

        parts, seconds, cpu = timed(search, repeats)
        note = notes[0]
        plan = next(name for name in ("by_pages", "by_row_groups", "by_scan") if getattr(note, name))
        return {**facts_of(sum(part.num_rows for part in parts), seconds, cpu), "plan": plan}

    return operation


class _SlowStore:
    """A store in which every request takes a while, and which keeps when each began and ended."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.intervals: list[tuple[float, float]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def get_range(self, *args: Any, **options: Any) -> bytes:
        began = time.perf_counter()
        time.sleep(LATENCY)
        data: bytes = self.inner.get_range(*args, **options)
        self.intervals.append((time.perf_counter(), began))
        return data

    def sequential(self) -> int:
        """The longest chain of requests of which each began after the one before had ended."""
        chain, end = 0, 0.0
        for ended, began in sorted(self.intervals):
            if began >= end:
                chain, end = chain + 1, ended
        return chain


def requests_ours(directory: Path) -> Operation:
    """How many requests follow each other, the most of all kinds of queries, after the index was opened."""
    from dataclasses import replace

    from indextables.index.read.cache import MEMORY
    from indextables.split.open_splits import forget_splits
    from indextables.split.search.run import count_split, search_split
    from indextables.storage.stores.memory import MemoryStore

    path = _split(directory)
    memory = MemoryStore("memory://requests")
    memory.put(path.name, path.read_bytes())

    def most(ask: Callable[..., Any]) -> Mapping[str, int]:
        chains = {}
        for text in MIXED:
            reading, ref, selection = _ours(directory, text)
            store = _SlowStore(memory)
            forget_splits()
            MEMORY.clear()
            ask(replace(reading, store=store), ref, selection)
            # The first request opens the index.
            chains[text] = store.sequential() - 1
        return chains

    def operation() -> Mapping[str, Any]:
        counts = most(count_split)
        rows = most(
            lambda reading, ref, selection: list(
                search_split(reading, ref, replace(selection, limit=10, score=True))
            )
        )
        return {
            "without_rows": max(counts.values()), "ten_rows": max(rows.values()),
            "each": {text: (counts[text], rows[text]) for text in MIXED},
        }  # fmt: skip

    return operation


def fetch_ten_ours(directory: Path) -> Operation:
    """Ten rows with all columns."""
    return _fetch(directory, RARE, 10)


def fetch_many_ours(directory: Path) -> Operation:
    """A tenth of all rows with all columns."""
    return _fetch(directory, COMMON, 2)


def first_count_of_many_splits(directory: Path) -> Operation:
    """The first count of a handle that has read nothing, over many small splits."""
    import indextables
    from indextables.index.read.cache import MEMORY
    from indextables.split.open_splits import forget_splits

    # What a search imports is not part of the time; what it read is forgotten.
    indextables.Table.open(str(directory / "many")).count(query=RARE)
    forget_splits()
    MEMORY.clear()
    table = indextables.Table.open(str(directory / "many"))

    def operation() -> Mapping[str, Any]:
        cpu, began = time.process_time(), time.perf_counter()
        rows = table.count(query=RARE)
        seconds = time.perf_counter() - began
        return facts_of(rows, seconds, time.process_time() - cpu)

    return operation


def warm_count_of_many_splits(directory: Path) -> Operation:
    """The same count again."""
    import indextables

    table = indextables.Table.open(str(directory / "many"))
    return lambda: facts_of(*timed(lambda: table.count(query=RARE), WARM_COUNTS // 10))


def fresh_process(directory: Path) -> Operation:
    """A process that imports, opens a table of one split and counts a word."""
    program = (
        "import sys, time, indextables\n"
        "table = indextables.Table.open(sys.argv[1])\n"
        "assert table.count(query='kaboom')\n"
        "print(time.process_time())"
    )

    def operation() -> Mapping[str, Any]:
        command = [sys.executable, "-c", program, str(directory / "one")]
        began = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return {"seconds": time.perf_counter() - began, "cpu_us": round(float(done.stdout) * 1e6)}

    return operation


def _duckdb(sql: str) -> Callable[[Path], Operation]:
    def case(directory: Path) -> Operation:
        import duckdb

        connection = duckdb.connect()
        query = sql.format(file=_split(directory))
        connection.sql("select 1").fetchall()

        def operation() -> Mapping[str, Any]:
            found, seconds, cpu = timed(lambda: connection.sql(query).arrow().read_all(), 2)
            return facts_of(found.num_rows, seconds, cpu)

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
            found, seconds, cpu = timed(frame.collect, 2)
            return facts_of(found.height, seconds, cpu)

        return operation

    return case


fetch_ten_polars = _polars(RARE)
fetch_many_polars = _polars(COMMON)


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which goals the largest measured size meets, by CPU time: a busy machine changes it least."""
    if not rows:
        return []
    size = max((row["size"] for row in rows), key=count_of)
    facts = {(row["case"], row["system"]): row["facts"] for row in rows if row["size"] == size}
    builds = {
        row["system"]: row["cpu_seconds"] for row in rows if (row["case"], row["size"]) == ("build", size)
    }
    lines: list[str] = []

    def goal(text: str, found: float | None, most: float) -> None:
        if found is not None:
            lines.append(
                f"{size}: {text}: {found:.3g}, goal <= {most:g}: {'met' if found <= most else 'MISSED'}"
            )

    def cpu(case: str, system: str = "indextables") -> float | None:
        found = facts.get((case, system), {}).get("cpu_us")
        return None if found is None else float(found)

    def over(case: str, *systems: str) -> float | None:
        mine, theirs = cpu(case), [one for system in systems if (one := cpu(case, system)) is not None]
        return mine / min(theirs) if mine is not None and theirs else None

    index = {system: facts.get(("build", system), {}).get("index_bytes") for system in builds}
    mine = index.get("indextables")
    if mine:
        for rival, most in (("tantivy", 0.45), ("lance", 1.0)):
            goal(f"index bytes over {rival}", mine / index[rival] if index.get(rival) else None, most)
    if {"indextables", "tantivy", "pyarrow"} <= builds.keys():
        alone = builds["tantivy"] + builds["pyarrow"]
        goal("build, CPU over tantivy plus pyarrow", builds["indextables"] / alone, 1.0)
    goal("warm count of a rare word in a split, us of CPU", cpu("count a rare word"), 60)
    ten = cpu("fetch 10 rows")
    goal("10 rows with all columns, ms of CPU", None if ten is None else ten / 1000, 2)
    goal("10 rows over Lance, CPU", over("fetch 10 rows", "lance"), 1)
    goal("10 rows over Infino, CPU", over("fetch 10 rows", "infino"), 1)
    goal("a tenth of the rows over the best scan, CPU", over("fetch a tenth", "duckdb", "polars"), 1)
    goal("a tenth of the rows over Lance, CPU", over("fetch a tenth", "lance"), 1)
    for case, text, most in (
        ("first count, 200 splits", "first count over 200 splits of 100 rows, ms of CPU", 150),
        ("warm count, 200 splits", "warm count over them, ms of CPU", 5),
        ("fresh process", "a fresh process that imports, opens and counts, ms of CPU", 350),
    ):
        found = cpu(case)
        goal(text, None if found is None else found / 1000, most)
    goal("warm count of a rare word through Table.count, us of CPU", cpu("count through a table"), 60)
    for corpus, bytes_most, build_most in (("log lines", 0.45, 1.0), ("text", 0.7, 1.3)):
        asked = facts.get((f"questions, {corpus}", "indextables"), {})
        for name, text, most in (
            ("wrong", "answers that differ from tantivy's", 0),
            ("bytes_over_tantivy", "index bytes over raw tantivy", bytes_most),
            ("build_cpu_over_tantivy", "index build over raw tantivy, CPU", build_most),
            ("warm_count_us", "warm count of a word in the engine, us", 20),
            ("warm_rows_us", "warm row numbers of a common word, us", 2000),
            ("warm_median_ms", f"{FIXED + DRAWN} queries, warm, median, ms", 2),
            ("warm_p99_ms", "of these, the 99th percentile, ms", 20),
            ("cold_median_ms", "the same, nothing cached but the root, median, ms of CPU", 10),
        ):
            goal(f"{corpus}: {text}", asked.get(name), most)
    requests = facts.get(("requests", "indextables"), {})
    goal("sequential requests after open, an answer without rows", requests.get("without_rows"), 3)
    goal("sequential requests after open, ten rows", requests.get("ten_rows"), 5)
    return lines


TARGET = Target(
    name="search",
    prepare=prepare,
    cases=(
        Case("build", "indextables", "build_ours"),
        Case("build", "tantivy", "build_tantivy"),
        Case("build", "pyarrow", "build_pyarrow"),
        Case("build", "lance", "build_lance", needs="lancedb"),
        Case("build", "infino", "build_infino", needs="infino"),
        Case("count a rare word", "indextables", "count_ours"),
        Case("count a rare word", "infino", "count_infino", needs="infino"),
        Case("count a rare word", "duckdb", "count_duckdb"),
        Case("fetch 10 rows", "indextables", "fetch_ten_ours"),
        Case("fetch 10 rows", "duckdb", "fetch_ten_duckdb"),
        Case("fetch 10 rows", "polars", "fetch_ten_polars"),
        Case("fetch 10 rows", "lance", "fetch_ten_lance", needs="lancedb"),
        Case("fetch 10 rows", "infino", "fetch_ten_infino", needs="infino"),
        Case("fetch a tenth", "indextables", "fetch_many_ours"),
        Case("fetch a tenth", "duckdb", "fetch_many_duckdb"),
        Case("fetch a tenth", "polars", "fetch_many_polars"),
        Case("fetch a tenth", "lance", "fetch_many_lance", needs="lancedb"),
        Case("fetch a tenth", "infino", "fetch_many_infino", needs="infino"),
        Case("count through a table", "indextables", "count_by_table"),
        Case("questions, log lines", "indextables", "questions_in_lines", repeat=1, needs="tantivy"),
        Case("questions, text", "indextables", "questions_in_text", repeat=1, needs="tantivy"),
        Case("requests", "indextables", "requests_ours", repeat=1),
        Case("first count, 200 splits", "indextables", "first_count_of_many_splits"),
        Case("warm count, 200 splits", "indextables", "warm_count_of_many_splits"),
        Case("fresh process", "indextables", "fresh_process"),
    ),
    rival="duckdb",
    packages=("pyarrow", "tantivy", "duckdb", "polars", "lancedb", "infino"),
    goals=goals,
)

__all__ = [
    "TARGET",
    "build_infino",
    "build_lance",
    "count_infino",
    "fetch_many_infino",
    "fetch_many_lance",
    "fetch_ten_infino",
    "fetch_ten_lance",
]
