"""The plan of a table's first rows says what the table is, and asks for nothing more."""

from __future__ import annotations

import pyarrow as pa

import indextables as it
from indextables.ops.write.definition import Definition


def test_the_first_rows_do_not_grow_a_table_that_another_writer_made_narrower(tmp_path):
    made = it.Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    definition = Definition.of(pa.schema([("id", pa.int64()), ("name", pa.string())]), ())
    plan = definition.first_plan("0")
    assert not plan.merge_schema
    assert plan.metadata_on(made.log.snapshot()) is None
