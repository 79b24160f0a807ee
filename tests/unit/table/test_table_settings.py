"""Index settings of a table: kept from the first write, changed by a property and a merge."""

from __future__ import annotations

import pyarrow as pa

import indextables as it


def test_a_column_gets_another_kind_of_index_by_one_property_and_a_merge(tmp_path):
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "t": ["node seven", "node eight"]})
    table = it.Table.create(str(tmp_path / "t"), rows.schema, options={"indexing.typemap.t": "text"})
    table.append(rows)
    it.TransactionLog.open(str(tmp_path / "t")).update_properties(
        {"spark.indextables.indexing.typemap.t": "string"}
    )
    table = it.Table.open(str(tmp_path / "t"))
    assert table.search('t:"node seven"').read_all()["id"].to_pylist() == [1]
    assert table.search("t:seven").read_all().num_rows == 0
    assert table.last_scan.search.scanned == 1
    table.append(rows)
    table.merge_splits()
    assert table.search('t:"node seven"').read_all()["id"].to_pylist() == [1, 1]
    assert table.last_scan.search.scanned == 0
