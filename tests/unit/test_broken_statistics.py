"""Statistics of our own log that are no document: not known, and no reason to stop."""

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
