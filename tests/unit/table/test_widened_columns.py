"""Columns of ours that were widened: what was written before is still found by its real value."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

import indextables as it

FLOAT = struct.unpack("<f", struct.pack("<f", 3.4))[0]


@pytest.mark.parametrize("form", [None, "json", "parquet"])
def test_a_float_that_became_a_double_is_found_by_the_value_it_has(tmp_path, form):
    """H: the bound of a float is written with the digits of a double, so it needs no second meaning."""
    uri = str(tmp_path / "t")
    table = it.Table.create(uri, pa.schema([("id", pa.int64()), ("d", pa.float32())]))
    table.append(pa.table({"id": [1], "d": pa.array([3.4], pa.float32())}))
    table.append(pa.table({"id": [2], "d": pa.array([3.4], pa.float64())}), merge_schema=True)
    if form is not None:
        it.TransactionLog.open(uri, {"checkpoint.format": form}).checkpoint()
    opened = it.Table.open(uri)
    assert opened.schema.field("d").type == pa.float64()
    for engine in ("columnar", "reference"):
        snapshot = it.TransactionLog.open(uri).snapshot()
        assert snapshot.plan("d > 3.40000001D", engine=engine).files.num_rows == 1, engine
        assert snapshot.plan(f"d = {FLOAT!r}D", engine=engine).files.num_rows == 1, engine
    assert opened.scan("d > 3.40000001D", columns=["id"]).read_all().to_pylist() == [{"id": 1}]
    assert opened.scan("d = 3.4D", columns=["id"]).read_all().to_pylist() == [{"id": 2}]
