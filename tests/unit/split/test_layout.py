"""The layout of a split: a Parquet file to everybody, an index to us, and checks on every byte."""

from __future__ import annotations

import pickle
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from indextables.errors import DamagedSplitError, MissingSplitError, NewerSplitError, SplitError
from indextables.index.settings import IndexSpec
from indextables.split import layout
from indextables.split.layout import SplitRef, parse_footer, read_footer
from indextables.split.open_splits import forget_splits, open_split
from indextables.split.parquet.thrift import ThriftError, decode, encode
from indextables.split.source import SplitFile, coalesce
from indextables.storage.store import open_store
from support.splits import build_all, build_split

ROWS = pa.table(
    {
        "id": pa.array(range(5000), pa.int64()),
        "message": [f"line {at} of the log" for at in range(5000)],
        "day": ["a" if at % 2 else "b" for at in range(5000)],
    }
)
TEXT = {"indexing.typemap.message": "text"}


@pytest.fixture
def built(tmp_path):
    return build_split(tmp_path, ROWS, TEXT)


def test_the_index_lies_between_the_pages_and_the_footer(built):
    add, manifest = built.add, built.manifest
    metadata = pq.ParquetFile(built.path).metadata
    last = max(
        metadata.row_group(g).column(c).data_page_offset
        for g in range(metadata.num_row_groups)
        for c in range(metadata.num_columns)
    )
    assert last < add.hotcache_start_offset == manifest.offset
    assert add.hotcache_start_offset + add.hotcache_length == add.footer_start_offset
    assert add.footer_end_offset == add.size == built.path.stat().st_size


def test_the_manifest_says_what_is_inside(built):
    manifest = built.manifest
    assert manifest.rows == 5000
    assert IndexSpec.from_wire(manifest.fields) == built.spec
    assert manifest.table_id == "t"
    assert {"words", "lists", "root", "row map"} <= set(manifest.components)
    assert sum(manifest.components.values()) == manifest.length
    assert manifest.tokens == {"message": 5 * 5000}
    assert b"indextables.index" in pq.ParquetFile(built.path).metadata.metadata


def test_the_footer_of_every_parquet_file_survives_decoding_and_encoding(built):
    """Whatever pyarrow wrote is carried through byte by byte."""
    body = built.path.read_bytes()[built.add.footer_start_offset : -8]
    assert encode(decode(body)[0]) == body


@pytest.mark.parametrize(
    "garbage", [b"", b"\x15", b"\x19\xfc\xff\xff\xff\x0f", b"\x1c" * 200, bytes(range(1, 256))]
)
def test_bytes_that_are_no_structure_are_refused(garbage):
    with pytest.raises(ThriftError):
        decode(garbage)


def test_a_split_is_found_without_any_offsets(built):
    """A bare path is enough: the file says the rest itself."""
    footer = read_footer(SplitFile(built.store, built.add.path), SplitRef(built.add.path))
    assert footer.manifest == built.manifest


def test_offsets_that_lie_are_not_believed(built):
    """The log's offsets save a read; the file decides."""
    wrong = SplitRef(built.add.path, built.add.size, 4, 100)
    assert read_footer(SplitFile(built.store, built.add.path), wrong).manifest == built.manifest


def test_a_foreign_parquet_file_is_refused_by_name(tmp_path):
    pq.write_table(ROWS, tmp_path / "foreign.parquet")
    with pytest.raises(SplitError, match=r"foreign\.parquet is a Parquet file but not a split"):
        open_split(open_store(tmp_path), SplitRef("foreign.parquet"))


def test_a_file_that_is_no_parquet_at_all_is_damaged(tmp_path):
    (tmp_path / "x.split").write_bytes(b"hello world, this is text")
    with pytest.raises(DamagedSplitError, match=r"x\.split"):
        open_split(open_store(tmp_path), SplitRef("x.split"))


def test_a_missing_split_says_so_and_what_to_do(tmp_path):
    with pytest.raises(MissingSplitError, match="does not exist"):
        open_split(open_store(tmp_path), SplitRef("gone.split", 100, 10, 10))
    with pytest.raises(MissingSplitError):
        open_split(open_store(tmp_path), SplitRef("gone.split"))


def test_a_split_of_a_later_format_is_refused(built, monkeypatch):
    data = built.path.read_bytes()
    monkeypatch.setattr(layout, "FORMAT_VERSION", 0)
    with pytest.raises(NewerSplitError, match="Upgrade indextables"):
        parse_footer(data[built.add.footer_start_offset :], len(data), "a.split")


def test_errors_about_splits_survive_pickling(tmp_path):
    with pytest.raises(MissingSplitError) as caught:
        open_split(open_store(tmp_path), SplitRef("gone.split"))
    assert pickle.loads(pickle.dumps(caught.value)).path == caught.value.path


def test_some_rows_touch_few_bytes(tmp_path):
    """A needle read takes the pages of its row, not the file."""
    from indextables.storage.stores.memory import MemoryStore
    from support.faults import CountingStore

    rows = pa.table(
        {"id": pa.array(range(60_000), pa.int64()), "text": [f"{at:>200}" for at in range(60_000)]}
    )
    built = build_split(tmp_path, rows)
    memory = MemoryStore("memory://needle")
    memory.put(built.add.path, built.path.read_bytes())
    counting = CountingStore(memory)
    forget_splits()
    reader = open_split(counting, built.ref)
    asked = len(counting.opens)
    found = reader.read_rows(np.array([41_234]), ["id", "text"])
    assert found.to_pylist() == rows.slice(41_234, 1).to_pylist()
    assert len(counting.opens) - asked <= 2
    assert all(operation == "get_range" for operation, _ in counting.opens)


@pytest.mark.parametrize(
    "wanted", [[0], [4999], [0, 1, 2, 1023, 1024, 4999], list(range(5000)), list(range(0, 5000, 7))]
)
def test_wanted_rows_come_back_in_order_whatever_the_plan(built, wanted):
    reader = open_split(built.store, built.ref)
    parts = list(reader.fetch(np.array(wanted), ["message", "id"]))
    assert [row for rows, _ in parts for row in rows] == wanted
    expected = ROWS.take(pa.array(wanted)).select(["message", "id"])
    assert pa.concat_tables([table for _, table in parts]).equals(expected)
    assert reader.read_rows(np.array(wanted), ["id"]).equals(expected.select(["id"]))


def test_nested_columns_are_fetched_by_page_as_well(tmp_path):
    rows = pa.table(
        {
            "id": pa.array(range(9000), pa.int64()),
            "items": pa.array([[f"{at}-{k}" * (at % 50) for k in range(at % 5)] for at in range(9000)]),
            "inside": pa.array(
                [{"a": at, "b": [{"c": str(at)}] * (at % 3)} if at % 7 else None for at in range(9000)]
            ),
            "pairs": pa.array([[(str(at), at)] for at in range(9000)], pa.map_(pa.string(), pa.int64())),
        }
    )
    built = build_split(tmp_path, rows)
    reader = open_split(built.store, built.ref)
    wanted = [3, 1500, 1501, 8999]
    found = reader.read_rows(np.array(wanted), rows.schema.names)
    assert found.to_pylist() == rows.take(pa.array(wanted)).to_pylist()
    assert (
        reader.read_rows(np.array(wanted), ["inside"]).to_pylist()
        == rows.take(pa.array(wanted)).select(["inside"]).to_pylist()
    )


def test_close_ranges_are_read_together():
    assert coalesce([(0, 10), (12, 5), (100, 1)], gap=8) == [(0, 17), (100, 1)]
    assert coalesce([(0, 10), (2, 3)], gap=0) == [(0, 10)]


def test_a_split_of_no_index_still_checks_its_pages(tmp_path):
    (plain,) = build_all(tmp_path, ROWS)
    assert plain.manifest.fields == ()
    assert set(plain.manifest.components) == {"row map"}
    assert plain.manifest.root is None
    assert plain.add.tags == {"splitFormat": "2", "rowMap": plain.manifest.row_map.to_tag()}


def test_the_length_before_the_magic_is_parquets(built):
    data = built.path.read_bytes()
    assert struct.unpack("<I", data[-8:-4])[0] == len(data) - 8 - built.add.footer_start_offset
    assert data[:4] == data[-4:] == b"PAR1"
