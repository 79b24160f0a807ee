"""A minimum above its maximum in our own log: such a split is read, and nothing is answered from its statistics."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import indextables as it
from indextables.log.transaction_log import TransactionLog

SCHEMA = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("name", pa.string())])


@pytest.fixture
def path(tmp_path):
    """A table whose only split was recorded with minimum and maximum exchanged."""
    path = tmp_path / "t"
    table = it.Table.create(path, SCHEMA)
    table.append(pa.table({"id": [1, 5, 9], "price": [1.0, 5.0, 9.0], "name": ["b", "f", "m"]}, SCHEMA))
    (split,) = table.log.list_files()
    wrong = replace(split, min_values=split.max_values, max_values=split.min_values, stats=None)
    log = TransactionLog.open(path)
    log.overwrite_files([wrong])
    return path


@pytest.mark.parametrize(
    "where", ["id = 5", "id > 4 AND id < 6", "price = 5", "name = 'f'", "name LIKE 'f%'"]
)
def test_its_rows_are_found(path, where):
    table = it.Table.open(path)
    assert table.scan(where).read_all().column("id").to_pylist() == [5]
    assert table.count(where) == 1
    assert table.count(f"NOT ({where})") == 2


def test_an_aggregate_reads_the_rows(path):
    wanted = {"low": "min(id)", "high": "max(id)", "last": "max(name)"}
    found = it.Table.open(path).aggregate(None, wanted)
    assert found.to_pylist() == [{"low": 1, "high": 9, "last": "m"}]
