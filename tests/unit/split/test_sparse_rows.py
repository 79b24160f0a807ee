"""When the rows that were found are decoded alone, when they are not, and that nobody can tell."""

from __future__ import annotations

import multiprocessing
import random
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from indextables.duck import database
from indextables.errors import DamagedSplitError
from indextables.split.open_splits import forget_splits, open_split
from indextables.split.read import rows as readers
from indextables.split.read.sparse import UndecodedError
from indextables.split.write import writer
from support.splits import build_split, flip

ROWS = pa.table(
    {
        "id": pa.array(range(10_000), pa.int64()),
        "message": [f"request {at} of user {at % 37}" for at in range(10_000)],
        "level": [("INFO", "WARN", None)[at % 3] for at in range(10_000)],
    }
)
WANTED = list(range(5, 10_000, 11))


@pytest.fixture
def alone(monkeypatch):
    """The calls that decoded rows alone; for these tests no read is too small for it."""
    calls = []

    def spy(path, *rest):
        calls.append(path)
        return decode(path, *rest)

    decode = readers.decode_rows
    monkeypatch.setattr(readers, "decode_rows", spy)
    monkeypatch.setattr(readers, "SPARSE_BYTES", 0)
    return calls


def fetched(built, wanted, columns):
    reader = open_split(built.store, built.ref)
    parts = [table for _, table in reader.fetch(np.array(wanted), columns)]
    return pa.concat_tables(parts)


def expected(rows, wanted, columns):
    return rows.take(pa.array(wanted)).select(columns)


@pytest.mark.parametrize("place", ["plain", "it's [a] *place*?", "p=1", "back\\slash", "日本 語%20"])
def test_rows_are_decoded_alone_wherever_the_file_lies(tmp_path, alone, place):
    built = build_split(tmp_path / place, ROWS)
    assert fetched(built, WANTED, ROWS.column_names).equals(expected(ROWS, WANTED, ROWS.column_names))
    assert alone


def test_few_bytes_are_decoded_whole(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(readers, "decode_rows", lambda *_: calls.append(1))
    built = build_split(tmp_path, ROWS)
    assert fetched(built, WANTED, ROWS.column_names).equals(expected(ROWS, WANTED, ROWS.column_names))
    assert not calls


def test_a_place_that_sql_cannot_name_is_read_by_pages(tmp_path, alone):
    built = build_split(tmp_path / "a\\b*", ROWS)
    assert fetched(built, WANTED, ["id"]).equals(expected(ROWS, WANTED, ["id"]))
    assert not alone


@pytest.mark.parametrize("wanted", [list(range(10_000)), list(range(0, 10_000, 2)) + [9999]])
def test_most_rows_are_not_decoded_alone(tmp_path, alone, wanted):
    built = build_split(tmp_path, ROWS)
    assert fetched(built, wanted, ["message"]).equals(expected(ROWS, wanted, ["message"]))
    assert not alone


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"id": range(9000), "ID": [str(at) for at in range(9000)]}),
        pa.table({"file_row_number": [9000 - at for at in range(9000)]}),
        pa.table({"words": [["a", str(at)] for at in range(9000)]}),
        pa.table({"day": pa.array(range(9000), pa.int64()).cast(pa.timestamp("ns"))}),
    ],
    ids=["names that differ by case", "a column with the name of row numbers", "a list", "nanoseconds"],
)
def test_columns_that_duckdb_reads_otherwise_are_read_by_pages(tmp_path, alone, rows):
    built = build_split(tmp_path, rows)
    wanted = list(range(0, 9000, 5))
    assert (
        fetched(built, wanted, rows.column_names).to_pylist()
        == expected(rows, wanted, rows.column_names).to_pylist()
    )
    assert not alone


def test_text_that_is_no_text_is_read_by_pages(tmp_path, alone):
    """DuckDB refuses what is not UTF-8; what was stored comes back all the same."""
    raw = [b"\xff\xfe%d" % at if at % 100 == 0 else b"fine" for at in range(9000)]
    rows = pa.table({"text": pa.Array.from_buffers(pa.string(), 9000, pa.array(raw, pa.binary()).buffers())})
    built = build_split(tmp_path, rows)
    wanted = list(range(0, 9000, 10))
    found = fetched(built, wanted, ["text"]).column("text").cast(pa.binary())
    assert found.to_pylist() == [raw[at] for at in wanted]
    assert alone


def test_rows_that_are_not_the_wanted_ones_are_never_given(tmp_path, monkeypatch):
    """Whatever DuckDB answers: fewer rows, or others, and the pages are read instead."""
    built = build_split(tmp_path, ROWS)
    answer = database.run
    monkeypatch.setattr(database, "run", lambda *given: answer(*given).slice(1))
    assert fetched(built, WANTED, ["id"]).equals(expected(ROWS, WANTED, ["id"]))
    with pytest.raises(UndecodedError):
        readers.decode_rows(str(built.path), ROWS.schema, ["id"], np.array(WANTED), ROWS.num_rows)


def test_a_flipped_bit_is_found_before_anything_is_decoded(tmp_path, alone):
    dice = random.Random(8)
    sound = build_split(tmp_path / "sound", ROWS)
    truth = expected(ROWS, WANTED, ROWS.column_names)
    reader = open_split(sound.store, sound.ref)
    spans = [reader._map.pages.stretches(0, leaf)[0] for leaf in range(3)]
    for attempt in range(40):
        offset, length, _ = dice.choice(spans)
        damaged = sound.copy(tmp_path / str(attempt))
        flip(damaged.path, offset + dice.randrange(length), dice.randrange(8))
        forget_splits()
        with pytest.raises(DamagedSplitError, match="not what was written") as caught:
            fetched(damaged, WANTED, ROWS.column_names)
        assert str(damaged.path) in str(caught.value).replace("file://", "")
    assert not alone
    assert fetched(sound, WANTED, ROWS.column_names).equals(truth)


def test_many_threads_share_one_database(tmp_path):
    built = build_split(tmp_path, ROWS)
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(
                lambda step: fetched(built, list(range(0, 10_000, step)), ["id", "message"]), range(3, 40)
            )
        )
    for step, table in zip(range(3, 40), found, strict=True):
        assert table.equals(expected(ROWS, list(range(0, 10_000, step)), ["id", "message"]))


@pytest.mark.skipif(sys.platform != "linux", reason="only here is a process copied by default")
def test_a_forked_child_has_a_database_of_its_own(tmp_path):
    built = build_split(tmp_path, ROWS)
    truth = fetched(built, WANTED, ["id"])
    with multiprocessing.get_context("fork").Pool(2) as pool:
        children = pool.starmap_async(fetched, [(built, WANTED, ["id"])] * 4).get(timeout=60)
    assert all(child.equals(truth) for child in children)


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32()], ids=str)
def test_times_beyond_any_calendar_come_back_as_stored(tmp_path, kind):
    """DuckDB takes the ends of the range for infinity."""
    number = pa.int32() if pa.types.is_date(kind) else pa.int64()
    end = 1 << (number.bit_width - 1)
    edges = [0, 1, -1, end - 1, end - 2, -end, -end + 1, -end + 2, end // 2, -end // 2]
    stored = pa.array([edges[at % 10] if at % 3 else 0 for at in range(9000)], number)
    rows = pa.table({"at": stored.view(kind)})
    wanted = list(range(1, 9000, 7))
    found = fetched(build_split(tmp_path, rows), wanted, ["at"]).column("at").combine_chunks()
    assert found.view(number).equals(stored.take(pa.array(wanted)))


def test_large_values_are_fetched_few_at_a_time(tmp_path, monkeypatch, alone):
    """Row groups of large values have few rows; a piece is never more than four of them hold."""
    monkeypatch.setattr(writer, "BYTES_PER_GROUP", 64 << 10)
    rows = pa.table({"id": pa.array(range(9000), pa.int64()), "text": [f"{at:0200d}" for at in range(9000)]})
    built = build_split(tmp_path, rows)
    reader = open_split(built.store, built.ref)
    largest = max(reader.group_rows)
    assert len(reader.groups) > 10
    wanted = list(range(0, 9000, 3))
    pieces = [table for _, table in reader.fetch(np.array(wanted), ["id", "text"])]
    assert max(piece.num_rows for piece in pieces) <= 4 * largest
    assert len(pieces) == len(alone) > 1
    assert pa.concat_tables(pieces).equals(expected(rows, wanted, ["id", "text"]))
