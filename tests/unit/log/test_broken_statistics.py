"""Statistics of our own log: those that are no document are not known, and null counts are asked where they tell."""

from __future__ import annotations

import pyarrow as pa
import pytest

import indextables as it

BROKEN = ["", "null", '{"nullCount":', '{"numRecords": NaN}', '{"nullCount": {"s": "\\ud800"}}', "[1]", "5"]


@pytest.mark.parametrize("form", [None, "json", "parquet"])
@pytest.mark.parametrize("stats", BROKEN)
def test_a_document_that_cannot_be_read_keeps_its_file(tmp_path, stats, form):
    """Arrow's parser ends the process on a line that is `null`, so it never sees one."""
    log = it.TransactionLog.open(str(tmp_path / "t"), {"checkpoint.format": form or "json"})
    log.initialize(pa.schema([("n", pa.int64()), ("s", pa.string())]), [])
    low = {"min_values": {"n": "1"}, "max_values": {"n": "2"}}
    log.add_files([
        it.AddAction(path="f.split", size=1, num_records=1, stats=stats),
        it.AddAction(path="g.split", size=1, num_records=1, **low),
    ])  # fmt: skip
    if form is not None:
        log.checkpoint()
    snapshot = it.TransactionLog.open(str(tmp_path / "t")).snapshot()
    for engine in ("columnar", "reference"):
        assert snapshot.plan("n > 5", engine=engine).files.column("path").to_pylist() == ["f.split"]
        assert snapshot.plan("s IS NULL", engine=engine).files.num_rows == 2


@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize(
    "where", ["(n > 5) IS NULL", "(n > 5) IS NOT TRUE AND n < 0", "(n = 1 OR s = 'b') IS NULL"]
)
def test_null_counts_are_looked_at_for_the_null_ness_of_a_condition(tmp_path, where, form):
    """Both local engines drop a file without nulls, though its bounds alone would not tell."""
    uri = str(tmp_path / "t")
    table = it.Table.create(uri, pa.schema([("n", pa.int64()), ("s", pa.string())]))
    table.append(pa.table({"n": [1, 9], "s": ["a", "c"]}))
    it.TransactionLog.open(uri, {"checkpoint.format": form}).checkpoint()
    snapshot = it.TransactionLog.open(uri).snapshot()
    for engine in ("columnar", "reference"):
        assert snapshot.plan(where, engine=engine).files.num_rows == 0, engine
