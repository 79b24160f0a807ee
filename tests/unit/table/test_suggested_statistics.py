"""For which columns statistics pay: suggested from filters, stored when asked, applied by MERGE SPLITS and CHECKPOINT."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.errors import SchemaError, TableError
from indextables.log.scans import FILTERS

SCHEMA = pa.schema(
    [("id", pa.int64()), ("shuffled", pa.int64()), ("note", pa.string()), ("day", pa.string())]
)


@pytest.fixture(autouse=True)
def no_filters():
    FILTERS.clear()


@pytest.fixture
def table(tmp_path):
    """Four files in which `id` ascends from file to file, and `shuffled` has the same range in all."""
    table = it.Table.create(tmp_path / "t", SCHEMA)
    for number in range(4):
        ids = [10 * number, 10 * number + 9]
        rows = {"id": ids, "shuffled": [0, 100], "note": ["a", "z"], "day": [f"d{number}"] * 2}
        table.append(pa.table(rows, SCHEMA))
    return table


def statistics(table):
    return {name for add in it.Table.open(table.uri).log.snapshot().adds() for name in (add.min_values or {})}


def test_a_column_pays_if_its_statistics_rule_out_files(table):
    table.count("id = 15 AND shuffled = 50")
    version = table.version
    suggestion = table.suggest_statistics()
    rows = {row["column"]: row for row in pa.table(suggestion).to_pylist()}
    assert suggestion.suggested == ("id",)
    assert (rows["id"]["filters"], rows["id"]["files"], rows["id"]["files_skipped"]) == (1, 4, 3)
    assert rows["shuffled"]["reason"] == "its statistics rule out no file"
    assert rows["note"]["reason"] == "no filter uses it"
    assert it.Table.open(table.uri).version == version


def test_a_filtered_column_whose_files_lack_statistics_is_suggested(tmp_path):
    table = it.Table.create(tmp_path / "t", SCHEMA, options={"dataSkippingStatsColumns": "id"})
    table.append(pa.table({"id": [1], "shuffled": [1], "note": ["a"], "day": ["d"]}, SCHEMA))
    assert table.suggest_statistics(filters=["note = 'x'"]).suggested == ("note",)
    note = table.suggest_statistics(filters=["note = 'x'"]).columns[2]
    assert (note.files_without_statistics, note.reason) == (1, "files lack its statistics")


def test_columns_can_be_named_and_have_to_be_there(table):
    assert table.suggest_statistics(columns=["NOTE", "day"]).suggested == ("note", "day")
    with pytest.raises(SchemaError, match="nothere"):
        table.suggest_statistics(columns=["nothere"])


def test_storing_without_a_suggestion_is_refused(table):
    with pytest.raises(TableError, match="no column to suggest"):
        table.suggest_statistics(store=True)
    assert "spark.indextables.stats.suggestedColumns" not in table.metadata.configuration


def test_merge_applies_a_stored_suggestion_only_when_adaptive(table):
    """Fewer statistics, the same rows."""
    stored = table.suggest_statistics(filters=["id = 15"], store=True)
    assert (stored.stored, stored.version) == (True, table.version)
    table.merge_splits()
    assert statistics(table) == {"id", "shuffled", "note", "day"}
    table.append(pa.table({"id": [50], "shuffled": [1], "note": ["m"], "day": ["d9"]}, SCHEMA))
    table.update_properties({"stats.adaptive": "true"})
    table.merge_splits()
    assert statistics(table) == {"id"}
    assert table.count("note = 'm' AND day = 'd9'") == 1
    assert table.count("day = 'd2'") == 2
    assert table.count("shuffled IS NULL") == 0


@pytest.mark.parametrize("truncation", ["true", "false"])
@pytest.mark.parametrize("file_format", ["json", "parquet"])
def test_a_checkpoint_applies_it_without_losing_rows(table, file_format, truncation):
    """H14."""
    table.update_properties(
        {
            "stats.adaptive": "true",
            "checkpoint.format": file_format,
            "stats.truncation.enabled": truncation,
        }
    )
    it.sql(f"ANALYZE INDEXTABLES '{table.uri}' FOR SKIPPING COLUMNS (id, `day`) STORE")
    before = table.refresh().scan("shuffled = 0").to_arrow().sort_by("id")
    table.checkpoint()
    reopened = it.Table.open(table.uri)
    assert statistics(table) == {"id", "day"}
    assert reopened.scan("shuffled = 0").to_arrow().sort_by("id").equals(before)
    assert reopened.count("note = 'z'") == 4
    assert reopened.count() == 8


def test_named_statistics_columns_win_over_a_suggestion(table):
    table.update_properties({"stats.adaptive": "true", "dataSkippingStatsColumns": "note"})
    table.suggest_statistics(columns=["id"], store=True)
    table.merge_splits()
    assert statistics(table) == {"note"}


@pytest.mark.parametrize(
    "statement", ["ANALYZE INDEXTABLES '{}'", "ANALYZE TABLE indextables.`{}`", "ANALYZE '{}'"]
)
def test_sql_shows_a_row_for_each_column(table, statement):
    table.count("id = 15")
    rows = it.sql(statement.format(table.uri) + " FOR SKIPPING").to_pylist()
    assert [(row["column"], row["suggested"]) for row in rows] == [
        ("id", True), ("shuffled", False), ("note", False), ("day", False),
    ]  # fmt: skip


def test_numbers_take_little_room_in_a_parquet_checkpoint_and_come_back_exactly(tmp_path):
    """Whole numbers are stored as differences, floats byte by byte."""
    schema = pa.schema([("n", pa.int64()), ("f", pa.float64()), ("d", pa.date32())])
    table = it.Table.create(tmp_path / "t", schema, options={"checkpoint.format": "parquet"})
    for number in (-(2**63), 0, 2**63 - 1):
        table.append(pa.table({"n": [number], "f": [number / 3], "d": [number % 1000]}, schema))
    before = table.files().sort_by("path")
    table.checkpoint()
    assert it.Table.open(table.uri).files().sort_by("path").equals(before)
    (file,) = (tmp_path / "t" / "_transaction_log").glob("*.checkpoint.parquet")
    group = pq.ParquetFile(file).metadata.row_group(0)
    encodings = {
        (column := group.column(at)).path_in_schema: column.encodings for at in range(group.num_columns)
    }
    assert "DELTA_BINARY_PACKED" in encodings["min.n"]
    assert "DELTA_BINARY_PACKED" in encodings["max.d"]
    assert "BYTE_STREAM_SPLIT" in encodings["max.f"]
