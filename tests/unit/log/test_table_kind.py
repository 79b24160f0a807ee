"""What a directory without a log of ours holds, and what its reader is told."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.errors import NotATableError, TableError
from indextables.log.table_kind import TableKind, recognise
from indextables.storage.store import open_store
from support.deltatables import DeltaLog, add, schema_string

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def delta(tmp_path):
    DeltaLog(open_store(tmp_path / "d"), schema_string(id="long")).commit(add("f"))
    return tmp_path / "d"


def iceberg(root):
    (root / "metadata").mkdir(parents=True)
    (root / "metadata" / "00000-1.metadata.json").write_text("{}")


def hudi(root):
    (root / ".hoodie").mkdir(parents=True)
    (root / ".hoodie" / "hoodie.properties").write_text("")


def parquet(root):
    (root / "day=1").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), root / "day=1" / "f.parquet")


def text(root):
    root.mkdir()
    (root / "notes.txt").write_text("hello")


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (iceberg, TableKind.ICEBERG, "It is an Iceberg table"),
        (hudi, TableKind.HUDI, "It is a Hudi table"),
        (parquet, TableKind.FILES, "data files without a transaction log"),
        (text, TableKind.OTHER, "none of a table"),
        (lambda _root: None, TableKind.NOTHING, "There is nothing there"),
    ],
)
def test_opening_what_is_no_table_says_what_it_is(tmp_path, make, kind, words):
    make(tmp_path / "t")
    assert recognise(open_store(tmp_path / "t")) is kind
    for opened in (it.Table.open, it.delta.files):
        with pytest.raises(NotATableError, match=words) as error:
            opened(tmp_path / "t")
        assert error.value.kind is kind


def test_opening_a_delta_table_as_a_table_names_the_call_that_reads_it(delta):
    with pytest.raises(NotATableError, match=r"It is a Delta table.*DeltaTable\.open"):
        it.Table.open(delta)
    assert not it.Table.exists(delta)


def test_opening_a_table_as_a_delta_table_names_the_call_that_reads_it(tmp_path):
    it.Table.create(tmp_path / "t", SCHEMA)
    assert recognise(open_store(tmp_path / "t")) is TableKind.NATIVE
    with pytest.raises(NotATableError, match=r"It is an IndexTables table: open it with Table\.open"):
        it.delta.files(tmp_path / "t")


@pytest.mark.parametrize("make", [iceberg, hudi])
def test_no_table_is_created_inside_one_of_another_system(tmp_path, make):
    make(tmp_path / "t")
    with pytest.raises(TableError, match="does not write to"):
        it.Table.create(tmp_path / "t", SCHEMA)
    assert not (tmp_path / "t" / "_transaction_log").exists()


def test_no_table_is_created_inside_a_delta_table(delta):
    with pytest.raises(TableError, match="is a Delta table, which IndexTables does not write to"):
        it.Table.create(delta, SCHEMA)
    assert not (delta / "_transaction_log").exists()


def test_a_table_may_be_created_beside_data_files(tmp_path):
    parquet(tmp_path / "t")
    assert it.Table.create(tmp_path / "t", SCHEMA).version == 0
