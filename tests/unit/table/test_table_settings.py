"""Index settings of a table: kept from the first write, changed by a property and a merge."""

from __future__ import annotations

import pyarrow as pa
import pytest

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


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"indexing.tokenizer.t": "nosuch"}, "expected one of default"),
        ({"indexing.typemap.other": "text"}, "the table has no column 'other'; it has"),
        ({"checkpoint.interval": "-3"}, "expected auto, or a whole number"),
    ],
)
def test_a_property_that_nobody_could_use_is_refused_and_nothing_is_committed(tmp_path, properties, said):
    table = it.Table.create(
        tmp_path / "t", pa.schema([("t", pa.string())]), options={"indexing.typemap.t": "text"}
    )
    with pytest.raises(it.errors.OptionError, match=said):
        table.update_properties(properties)
    assert it.Table.open(tmp_path / "t").version == 0


def test_properties_are_set_and_removed_and_the_handle_moves_along(tmp_path):
    table = it.Table.create(tmp_path / "t", pa.schema([("t", pa.string())]))
    assert table.update_properties({"owner": "ann", "checkpoint.interval": 5}) == table.version == 1
    assert table.metadata.configuration == {
        "spark.indextables.deletionVectors.enabled": "true",
        "owner": "ann",
        "checkpoint.interval": "5",
    }
    assert table.update_properties({"owner": None}) == 2
    assert "owner" not in it.Table.open(tmp_path / "t").metadata.configuration


@pytest.mark.parametrize("verb", ["append", "overwrite", "overwrite where"])
def test_a_batch_that_is_sent_again_is_written_once(tmp_path, verb):
    rows = pa.table({"id": pa.array([1, 2], pa.int64())})
    table = it.Table.create(tmp_path / "t", rows.schema)
    for _ in range(2):
        handle, txn = it.Table.open(tmp_path / "t"), it.TxnAction(app_id="billing", version=7)
        if verb == "append":
            handle.append(rows, txn=txn)
        else:
            handle.overwrite(rows, "id < 10" if verb == "overwrite where" else None, txn=txn)
    assert table.refresh().count() == 2
    assert table.version == 1
