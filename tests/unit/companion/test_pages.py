"""Rows of somebody's Parquet files are fetched by their pages, wherever these can be found."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.companion.pages import FilePages, find_pages
from indextables.companion.source import open_source
from indextables.ops.delta.data_file import RowReader
from indextables.options import Options
from indextables.runtime import LOCAL
from indextables.split.parquet.thrift import ThriftError
from indextables.split.read.row_map import RowMap
from indextables.split.source import counting_bytes
from indextables.storage.checksum import crc32
from indextables.storage.stores.memory import MemoryStore

NUMBER = 20_000
SMALL = {"row_group_size": 7_000, "data_page_size": 2_000, "write_batch_size": 128}


def rows():
    rng = random.Random(1)
    texts = [
        None if n % 50 == 3 else f"request {n} by host{n % 9}" + " and more" * rng.randrange(4)
        for n in range(NUMBER)
    ]
    return pa.table(
        {
            "id": pa.array(range(NUMBER), pa.int64()),
            "message": texts,
            "level": [("INFO", "WARN", None)[n % 3] for n in range(NUMBER)],
            "at": pa.array([dt.datetime(2026, 1, 1) + dt.timedelta(seconds=n) for n in range(NUMBER)], pa.timestamp("us", "UTC")),
            "day": pa.array([dt.date(2026, 1, 1 + n % 28) for n in range(NUMBER)]),
            "price": pa.array([None if n % 7 == 0 else n for n in range(NUMBER)], pa.decimal128(12, 2)),
            "small": pa.array([n % 200 for n in range(NUMBER)], pa.uint8()),
            "place": [None if n % 11 == 0 else {"host": f"h{n}", "port": n} for n in range(NUMBER)],
            "tags": [[f"t{n}"] * (n % 4) for n in range(NUMBER)],
        }
    )  # fmt: skip


ROWS = rows()
FLAT = [name for name in ROWS.column_names if name != "tags"]


def by_pyarrow(path, table=ROWS, **options):
    pq.write_table(table, path, **{**SMALL, **options})


def by_duckdb(path):
    duckdb.sql(f"COPY (FROM ROWS) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 6144)")


WRITERS = {
    "plain": by_pyarrow,
    "page index": lambda path: by_pyarrow(path, write_page_index=True),
    "v2 zstd": lambda path: by_pyarrow(path, data_page_version="2.0", compression="zstd"),
    "fallback": lambda path: by_pyarrow(path, dictionary_pagesize_limit=3_000),
    "no dictionary": lambda path: by_pyarrow(path, use_dictionary=False, compression="none"),
    "checksums": lambda path: by_pyarrow(path, write_page_checksum=True),
    "format 1.0": lambda path: by_pyarrow(path, version="1.0"),
    "duckdb": by_duckdb,
    "polars": lambda path: pl.from_arrow(ROWS).write_parquet(path, row_group_size=7_000, data_page_size=4_000),
}  # fmt: skip


def pages_in(store, source):
    """The pages of the one file of a source; None if they are not known."""
    (item,) = source.files
    groups = tuple(group_sizes(store, item.file.path))
    data = find_pages(store, item.file, groups)
    return item.file, None if data is None else FilePages(RowMap.from_bytes(data, crc32(data)))


def group_sizes(store, path):
    metadata = pq.ParquetFile(pa.BufferReader(store.get(path))).metadata
    return [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]


def opened(store):
    return open_source(store.uri, "parquet", options=Options(), runtime=LOCAL)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("seed", range(3))
def test_rows_are_those_that_pyarrow_reads(writer, seed, tmp_path):
    WRITERS[writer](str(tmp_path / "a.parquet"))
    source = opened(it.TransactionLog.open(str(tmp_path)).store)
    file, pages = pages_in(source.store, source)
    groups = group_sizes(source.store, "a.parquet")
    rng = random.Random(seed)
    starts = np.concatenate([[0], np.cumsum(groups)])
    picks = {
        at: np.array(sorted(rng.sample(range(groups[at]), rng.choice([1, 3, 200]))))
        for at in sorted(rng.sample(range(len(groups)), rng.randint(1, len(groups))))
    }
    numbers = np.concatenate([picked + starts[at] for at, picked in picks.items()])
    for names in (FLAT, ["message"], ["price", "id"]):
        reader = RowReader(source.columns, tuple(names))
        with counting_bytes() as tally:
            table = pa.concat_tables(pages.picked(reader, source.store, file, picks))
        expected = pq.read_table(tmp_path / "a.parquet", columns=names).take(pa.array(numbers))
        assert table.to_pylist() == expected.select(names).to_pylist()
        assert table.schema.types == [source.columns.schema.field(name).type for name in names]
        if len(numbers) < 4 and writer not in {"duckdb", "polars"}:
            assert tally.bytes < (tmp_path / "a.parquet").stat().st_size / 2


def test_pages_of_lists_are_known_from_an_index_alone(tmp_path):
    for name, more in (("with", {"write_page_index": True}), ("without", {})):
        by_pyarrow(str(tmp_path / "a.parquet"), **more)
        source = opened(it.TransactionLog.open(str(tmp_path)).store)
        file, pages = pages_in(source.store, source)
        picked = pages.picked(
            RowReader(source.columns, ("tags",)), source.store, file, {1: np.array([5, 6_000])}
        )
        assert (picked is None) == (name == "without")
        if picked is not None:
            assert pa.concat_tables(picked).to_pylist() == [
                {"tags": [f"t{n}"] * (n % 4)} for n in (7005, 13000)
            ]


@pytest.mark.parametrize("indexed", [True, False])
def test_in_an_object_store_the_offset_indexes_are_read_and_no_pages(indexed, tmp_path):
    by_pyarrow(str(tmp_path / "a.parquet"), write_page_index=indexed)
    store = MemoryStore()
    store.put("a.parquet", (tmp_path / "a.parquet").read_bytes())
    source = opened(it.TransactionLog.open(str(tmp_path)).store)
    file, pages = pages_in(store, source)
    assert (pages is None) == (not indexed)
    if pages is not None:
        reader = RowReader(source.columns, tuple(FLAT))
        table = pa.concat_tables(pages.picked(reader, store, file, {0: np.array([9])}))
        assert table.to_pylist() == ROWS.select(FLAT).slice(9, 1).to_pylist()


def test_int96_is_left_to_row_groups(tmp_path):
    table = ROWS.set_column(3, "at", ROWS["at"].cast(pa.timestamp("us")))
    by_pyarrow(str(tmp_path / "a.parquet"), table, use_deprecated_int96_timestamps=True)
    source = opened(it.TransactionLog.open(str(tmp_path)).store)
    file, pages = pages_in(source.store, source)
    assert pages.picked(RowReader(source.columns, ("at",)), source.store, file, {0: np.array([1])}) is None
    assert pages.picked(RowReader(source.columns, ("id",)), source.store, file, {0: np.array([1])})


@pytest.fixture(params=["inside", "beside"])
def companion(tmp_path, request, monkeypatch):
    """A companion whose page maps are part of its source map, or lie beside it."""
    if request.param == "beside":
        monkeypatch.setattr("indextables.companion.build.MOST_INSIDE", 0)
    (tmp_path / "source").mkdir()
    by_pyarrow(str(tmp_path / "source" / "a.parquet"))
    made = it.companion(str(tmp_path / "source"), str(tmp_path / "index"), ["message"])
    by_pyarrow(str(tmp_path / "source" / "b.parquet"), ROWS.slice(0, 9_000))
    made.refresh()
    return made


def found(companion):
    """A rare row of either file, and how many bytes of source files and index were read."""
    with counting_bytes() as tally:
        table = it.open(companion.uri).search("message:8123", columns=FLAT).read_all()
    assert table.to_pylist() == [ROWS.select(FLAT).slice(8123, 1).to_pylist()[0]] * 2
    return tally.bytes


def test_a_merge_keeps_where_the_pages_are(companion):
    size = sum(path.stat().st_size for path in Path(companion.source.removeprefix("file://")).iterdir())
    assert 0 < found(companion) < size / 2
    assert it.open(companion.uri).merge_splits().merged_files == 2
    assert 0 < found(companion) < size / 2


@pytest.mark.parametrize("damage", ["map", "pages"])
def test_a_page_map_that_is_damaged_or_wrong_costs_time_and_no_row(companion, damage, monkeypatch):
    if damage == "map":
        for split in Path(companion.uri.removeprefix("file://")).glob("*.split"):
            body = bytearray(split.read_bytes())
            # The first bytes are the page maps, or else lists of the index.
            body[100] ^= 0xFF
            split.write_bytes(body)
    else:
        monkeypatch.setattr(
            "indextables.split.parquet.page_map.walk_pages",
            lambda whole, start, end: [(0, 9_000, 9_000, start + 1, end - start - 1)],
        )
        by_pyarrow(
            companion.source.removeprefix("file://") + "/b.parquet",
            ROWS.slice(0, 9_000),
            row_group_size=9_000,
        )
        companion.refresh()
    found(companion)


def test_a_file_whose_headers_cannot_be_followed_has_no_map(tmp_path, monkeypatch):
    by_pyarrow(str(tmp_path / "a.parquet"))
    source = opened(it.TransactionLog.open(str(tmp_path)).store)

    def broken(*_):
        raise ThriftError("no header")

    monkeypatch.setattr("indextables.split.parquet.page_map.walk_pages", broken)
    assert pages_in(source.store, source)[1] is None
