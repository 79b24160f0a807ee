"""Options given to one write: every one of them is obeyed by that write, and by no other."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import indextables as it

ROWS = pa.table({"id": [1, 2, 3], "t": ["a", "b", "c"]})
OPTIONS = {
    "checkpoint.interval": "1",
    "transaction.compression.enabled": "false",
    "dataSkippingNumIndexedCols": "1",
}
WRITES = {
    "append": lambda table, options: table.append(ROWS, options=options),
    "overwrite": lambda table, options: table.overwrite(ROWS, options=options),
    "overwrite where": lambda table, options: table.overwrite(ROWS.slice(1, 1), "id = 2", options=options),
    "merge": lambda table, options: table.merge(ROWS, "id", options=options),
}


def text_of(path: Path, version: int) -> bytes:
    return (path / "_transaction_log" / f"{version:020d}.json").read_bytes()


@pytest.mark.parametrize("write", WRITES)
def test_a_write_obeys_its_own_options_also_those_of_the_log(tmp_path, write):
    table = it.Table.create(tmp_path / "t", ROWS.schema)
    table.append(ROWS)
    WRITES[write](table, OPTIONS)
    assert (tmp_path / "t" / "_transaction_log" / f"{2:020d}.checkpoint.json").exists()
    assert text_of(tmp_path / "t", 2).startswith(b"{")
    new = [add for add in table.log.read_version(2) if isinstance(add, it.AddAction)]
    assert new
    assert {tuple(add.min_values) for add in new} == {("id",)}


def test_the_next_write_has_the_options_the_table_was_opened_with(tmp_path):
    table = it.Table.create(tmp_path / "t", ROWS.schema)
    table.append(ROWS, options=OPTIONS)
    assert (table.version, table.count(), table.log.last_commit.version) == (1, 3, 1)
    table.append(ROWS)
    assert not (tmp_path / "t" / "_transaction_log" / f"{2:020d}.checkpoint.json").exists()
    assert not text_of(tmp_path / "t", 2).startswith(b"{")
    assert (table.version, table.count(), len(table.files())) == (2, 6, 2)


def test_a_merge_after_the_write_follows_the_options_of_the_write(tmp_path):
    table = it.Table.create(tmp_path / "t", ROWS.schema)
    table.append(ROWS)
    table.append(ROWS, options={"mergeOnWrite.enabled": "true", "mergeOnWrite.fanIn": "2"})
    assert (table.version, len(table.files()), table.count()) == (3, 1, 6)
    table.append(ROWS)
    assert (table.version, len(table.files())) == (4, 2)
