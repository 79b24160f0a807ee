"""Which transaction is the newest: whoever follows a file goes on with it after a restart."""

from __future__ import annotations

import pyarrow as pa
import pytest

import indextables as it


@pytest.mark.parametrize("checkpoint_after", [0, 1, 2, 3, None])
def test_the_transaction_that_was_committed_last_comes_last(tmp_path, checkpoint_after):
    rows = pa.table({"id": [1]})
    table = it.Table.create(tmp_path / "t", rows.schema, options={"checkpoint.enabled": "false"})
    for number, (app, version) in enumerate((("a", 1), ("b", 1), ("a", 2), ("c", 1))):
        table.append(rows, txn=it.TxnAction(app_id=app, version=version))
        if number == checkpoint_after:
            table.checkpoint()
    assert list(table.log.snapshot().txns) == ["b", "a", "c"]
    assert list(it.TransactionLog.open(tmp_path / "t").snapshot().txns) == ["b", "a", "c"]
