"""Pages that were decoded for a few rows are kept: the next rows of them cost no read, and are the right ones."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from indextables.index.settings import from_options
from indextables.options import Options
from indextables.split.layout import SplitRef
from indextables.split.open_splits import forget_splits, open_split
from indextables.split.read import page_cache
from indextables.split.write.build import build_splits
from indextables.storage.stores.memory import MemoryStore
from support.faults import CountingStore

ROWS = 150_000
SCHEMA = pa.schema(
    [("id", pa.int64()), ("text", pa.string()), ("words", pa.list_(pa.field("element", pa.string())))]
)


@pytest.fixture(scope="module")
def rows():
    """Text that repeats in the first half of the rows and hardly in the second, and lists."""
    texts = [
        f"level {at % 5}" if at < ROWS // 2 else f"line {at} {at * 7919 % 1_000_003}" for at in range(ROWS)
    ]
    words = [[f"w{at}"] * (at % 3) if at % 10 else None for at in range(ROWS)]
    return pa.table({"id": range(ROWS), "text": texts, "words": words}, SCHEMA)


@pytest.fixture(scope="module")
def split(rows):
    options = Options.of({"write.targetSplitBytes": "1g", "write.maxRowsPerSplit": "10000000"})
    store = MemoryStore("memory://kept")
    (built,) = build_splits(
        rows.to_batches(50_000), SCHEMA, (), from_options(options, SCHEMA), options, store
    )
    return CountingStore(store), SplitRef.of(built.add)


@pytest.fixture
def reader(split):
    """The split, freshly opened, with its map of pages read."""
    forget_splits()
    store, ref = split
    found = open_split(store, ref)
    assert len(found.group_rows) > 2
    store.clear()
    return found


def test_the_second_read_of_a_row_reads_nothing_and_returns_the_same(reader, split, rows):
    wanted = np.array([5, 50_000, 140_000])
    first = reader.read_rows(wanted, SCHEMA.names)
    split[0].clear()
    assert reader.read_rows(wanted, SCHEMA.names).equals(first)
    assert reader.read_rows(wanted + 1, SCHEMA.names).equals(rows.take(pa.array(wanted + 1)))
    assert not split[0].opens


def test_a_column_that_was_not_read_is_read(reader, split, rows):
    reader.read_rows(np.array([7]), ["id"])
    split[0].clear()
    assert reader.read_rows(np.array([7]), ["text", "id"]).equals(rows.select(["text", "id"]).slice(7, 1))
    assert split[0].opens


def test_pages_that_were_kept_by_different_reads_are_put_together(reader, rows):
    for wanted in ([10], [ROWS - 10], [10, ROWS - 10], [10, ROWS - 10]):
        found = reader.read_rows(np.array(wanted), SCHEMA.names)
        assert found.equals(rows.take(wanted))


def test_any_rows_in_any_order_of_reads_are_those_that_were_written(reader, rows):
    dice = random.Random(11)
    for _ in range(60):
        wanted = np.array(sorted(dice.sample(range(ROWS), dice.randint(1, 12))))
        columns = dice.sample(SCHEMA.names, dice.randint(1, 3))
        assert reader.read_rows(wanted, columns).equals(rows.select(columns).take(pa.array(wanted)))
    assert 0 < page_cache.MEMORY.used <= page_cache.MEMORY.max_bytes


def test_rows_all_over_the_file_are_read_once(reader, split, rows):
    scattered = np.arange(0, ROWS, 97)
    columns = ["text", "id"]
    for way in (
        reader.read_rows,
        lambda some, names: pa.concat_tables(t for _, t in reader.fetch(some, names)),
    ):
        assert way(scattered, columns).equals(rows.select(columns).take(pa.array(scattered)))
        split[0].clear()
        assert way(scattered, columns).equals(rows.select(columns).take(pa.array(scattered)))
        assert not split[0].opens
        assert way(scattered + 1, columns).equals(rows.select(columns).take(pa.array(scattered + 1)))


def test_many_rows_and_large_ones_are_not_kept(reader, monkeypatch):
    monkeypatch.setattr(page_cache, "MOST_ROWS", 0)
    for limit in ("MOST_PICKED_ROWS", "MOST_PICKED_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(page_cache, limit, 10)
            reader.read_rows(np.arange(0, ROWS, 97), SCHEMA.names)
    assert not len(page_cache.MEMORY)


def test_a_file_opened_again_starts_with_nothing_kept(reader, split):
    reader.read_rows(np.array([5]), SCHEMA.names)
    forget_splits()
    assert not len(page_cache.MEMORY)
