"""Statements about Delta tables without Spark: those that read answer, and those that change are refused."""

from __future__ import annotations

import uuid
from typing import get_args

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import SchemaError, TableError
from indextables.log.delta.files.file_table import COLUMNS
from indextables.log.delta.snapshot import open_snapshot
from indextables.options import Options
from indextables.sql.commands import (
    BuildCompanion,
    CheckTable,
    Command,
    Describe,
    IndexCommand,
    InvalidateCache,
    ListFiles,
    RepairLog,
    ShowPartitions,
    ShowProperties,
    Unneeded,
)
from indextables.sql.runner import REFUSED, columns
from indextables.storage.store import open_store
from support.deltarows import inline_vector, put_file
from support.deltatables import DeltaLog, schema_string


@pytest.fixture
def uri():
    """Two files in two partitions, one of them with a deleted row."""
    properties = {"delta.appendOnly": "true"}
    store = open_store(f"memory://{uuid.uuid4()}")
    log = DeltaLog(store, schema_string(id="long", p="string"), ("p",), configuration=properties)
    rows = pa.table({"id": list(range(10))})
    log.commit(put_file(log, "f0", rows, partitionValues={"p": "x"}))
    log.commit(put_file(log, "f1", rows, partitionValues={"p": "y"}, dv=inline_vector([3])))
    return store.uri


def test_history_and_detail_are_those_of_the_table(uri):
    table = it.DeltaTable.open(uri)
    assert it.sql(f"DESCRIBE HISTORY '{uri}' LIMIT 2").equals(table.history(2))
    detail = it.sql(f"DESCRIBE DETAIL '{uri}'").to_pylist()[0]
    assert detail["provider"] == "delta"
    assert (detail["version"], detail["num_files"], detail["num_rows"]) == (2, 2, 19)
    assert detail["index_size_bytes"] is None


def test_partitions_count_live_rows(uri):
    shown = it.sql(f"SHOW PARTITIONS '{uri}'").select(["p", "num_files", "num_rows"])
    assert shown.to_pylist() == [
        {"p": "x", "num_files": 1, "num_rows": 10},
        {"p": "y", "num_files": 1, "num_rows": 9},
    ]


def test_properties_are_shown_with_the_protocol(uri):
    shown = dict(it.sql(f"SHOW TBLPROPERTIES '{uri}'").to_pydict().items())
    pairs = dict(zip(shown["key"], shown["value"], strict=True))
    assert pairs["delta.appendOnly"] == "true"
    assert pairs["delta.minReaderVersion"] == "3"
    assert pairs["delta.feature.deletionVectors"] == "supported"
    assert shown["key"] == sorted(shown["key"])
    one = it.sql(f"SHOW TBLPROPERTIES '{uri}' (delta.appendOnly)").to_pylist()
    assert one == [{"key": "delta.appendOnly", "value": "true"}]
    none = it.sql(f"SHOW TBLPROPERTIES '{uri}' ('no.such')").to_pylist()[0]["value"]
    assert none == f"Table {uri} does not have property: no.such"


def test_properties_of_our_own_tables_are_shown_alike(tmp_path):
    it.write(tmp_path / "t", pa.table({"a": ["x"]}), text=["a"])
    shown = it.sql(f"SHOW TBLPROPERTIES '{tmp_path}/t'").to_pylist()
    assert {"key": "spark.indextables.indexing.typemap.a", "value": "text"} in shown


def test_files_are_listed_with_the_columns_that_are_named(uri, tmp_path):
    listed = it.sql(f"DESCRIBE INDEXTABLES FILES '{uri}' COLUMNS (size, path) WHERE id = 3 AND p = 'x'")
    assert listed.column_names == ["size", "path"]
    assert listed["path"].to_pylist() == ["f0"]
    it.write(tmp_path / "t", pa.table({"a": [1, 2]}))
    ours = it.sql(f"DESCRIBE INDEXTABLES FILES '{tmp_path}/t'")
    assert ours.equals(it.open(tmp_path / "t").files())


def test_columns_of_a_file_list_are_known_before_it_is_made(uri, tmp_path):
    """Spark asks for the columns when it parses a statement."""
    it.write(tmp_path / "t", pa.table({"a": [1, 2], "p": ["x", "y"]}), partition_by=["p"])
    for table in (uri, str(tmp_path / "t")):
        for text in ("", " COLUMNS (path)", " COLUMNS (min, uri, partition_values)"):
            statement = f"DESCRIBE INDEXTABLES FILES '{table}'{text}"
            assert columns(statement).equals(it.sql(statement).schema.remove_metadata()), statement


def test_every_column_of_a_file_list_can_be_had_alone(uri):
    snapshot = open_snapshot(uri, options=Options.of(None))
    table = it.DeltaTable.open(uri)
    whole = snapshot.plan(columns=COLUMNS).files
    for name in COLUMNS:
        alone = table.files(columns=[name])
        assert alone.column_names == [name]
        assert alone[name].equals(whole[name]), name
    assert it.delta.files(uri, "p = 'y'", columns=["path"])["path"].to_pylist() == ["f1"]


def test_a_column_that_a_file_list_does_not_have_is_named(uri):
    with pytest.raises(SchemaError, match=r"files\(\) has no column 'rows'; it has path, uri"):
        it.delta.files(uri, columns=["rows"])
    for columns_given in ([], "path"):
        with pytest.raises(SchemaError, match="give a list of names"):
            it.delta.files(uri, columns=columns_given)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("OPTIMIZE '{}'", "OPTIMIZE"),
        ("VACUUM '{}'", "VACUUM"),
        ("PURGE ROWS '{}'", "PURGE ROWS"),
        ("RESTORE TABLE '{}' TO VERSION AS OF 1", "RESTORE"),
        ("CHECKPOINT INDEXTABLES '{}'", "CHECKPOINT INDEXTABLES"),
        ("DELETE FROM INDEXTABLES '{}' WHERE id = 1", "DELETE FROM INDEXTABLES"),
        ("DROP INDEXTABLES PARTITIONS FROM '{}' WHERE p = 'x'", "DROP INDEXTABLES PARTITIONS"),
        ("TRUNCATE INDEXTABLES TIME TRAVEL '{}'", "TRUNCATE INDEXTABLES TIME TRAVEL"),
        ("ANALYZE '{}' FOR SKIPPING", "ANALYZE ... FOR SKIPPING"),
        ("ALTER TABLE '{}' ADD CONSTRAINT c CHECK (id > 0)", "ALTER TABLE ADD CONSTRAINT"),
        ("ALTER TABLE '{}' DROP CONSTRAINT c", "ALTER TABLE DROP CONSTRAINT"),
        ("ALTER TABLE '{}' ALTER COLUMN id SET NOT NULL", "ALTER TABLE ALTER COLUMN SET NOT NULL"),
    ],
)
def test_statements_that_change_a_table_are_refused_by_their_words(uri, text, words):
    with pytest.raises(TableError, match=f"{words}.* is not possible: {uri} is a Delta table, which"):
        it.sql(text.format(uri))


def test_every_command_that_changes_a_table_has_words_for_its_refusal():
    """Those of Delta tables either read, are refused by their words, or are about more than one table."""
    reading = {Describe, ShowPartitions, ShowProperties, ListFiles, CheckTable, InvalidateCache}
    elsewhere = {RepairLog, BuildCompanion, Unneeded, *get_args(IndexCommand)}
    assert set(REFUSED) == set(get_args(Command)) - reading - elsewhere


def test_statements_about_what_delta_does_not_have_say_which_describe_it(uri):
    with pytest.raises(TableError, match="TRANSACTION LOG is for tables of IndexTables.*DESCRIBE HISTORY"):
        it.sql(f"DESCRIBE INDEXTABLES TRANSACTION LOG '{uri}'")
