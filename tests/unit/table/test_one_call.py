"""A table in one call: write what people have, read it, and never half a table."""

from __future__ import annotations

import datetime as dt

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import OptionError, SchemaError, TableError

ROWS = [{"id": 1, "message": "link up"}, {"id": 2, "message": "link down"}, {"id": 3, "message": None}]
ARROW = pa.Table.from_pylist(ROWS)
FORMS = {
    "pandas": lambda: pd.DataFrame(ROWS),
    "pandas, filtered": lambda: pd.DataFrame([{"id": 0, "message": "?"}, *ROWS]).query("id > 0"),
    "pandas, named index": lambda: pd.DataFrame(ROWS).set_index("id"),
    "polars": lambda: pl.DataFrame(ROWS),
    "polars, lazy": lambda: pl.LazyFrame(ROWS),
    "dict of columns": lambda: ARROW.to_pydict(),
    "list of dicts": lambda: ROWS,
    "dicts one by one": lambda: iter(ROWS),
    "duckdb": lambda: duckdb.sql(
        "FROM (VALUES (1::BIGINT, 'link up'), (2, 'link down'), (3, NULL)) AS t(id, message)"
    ),
    "table": lambda: ARROW,
    "batch": lambda: ARROW.to_batches()[0],
    "reader": ARROW.to_reader,
    "batches": lambda: [ARROW.slice(0, 1).to_batches()[0], ARROW.slice(1).to_batches()[0]],
    "frames one by one": lambda: (pd.DataFrame(ROWS[at : at + 1]) for at in range(3)),
}


def content(uri):
    return sorted(it.read(uri).to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_data_creates_a_table_and_is_appended_to_it(tmp_path, form):
    uri = tmp_path / "t"
    result = it.write(uri, FORMS[form](), text="message")
    assert (result.version, result.rows) == (1, 3)
    assert content(uri) == ROWS
    table = it.open(uri)
    assert table.append(FORMS[form]()).version == 2
    assert content(uri) == sorted(ROWS * 2, key=lambda row: row["id"])
    assert table.merge(FORMS[form](), on="id").rows_inserted == 0
    assert it.read(uri, query="down", columns=["id"]).to_pylist() == [{"id": 2}] * 2


def test_a_script_that_runs_twice_does_not_double_its_rows(tmp_path):
    uri = tmp_path / "t"
    it.write(uri, ROWS)
    with pytest.raises(TableError, match="is a table already"):
        it.write(uri, ROWS)
    assert it.write(uri, ROWS[:1], mode="ignore").version == 1
    assert content(uri) == ROWS
    it.write(uri, ROWS[:1], mode="append")
    assert len(it.open(uri)) == 4
    it.write(uri, ROWS[1:2], mode="overwrite")
    assert content(uri) == ROWS[1:2]
    with pytest.raises(OptionError, match="mode 'apend' is not one of error, ignore, append, overwrite"):
        it.write(uri, ROWS, mode="apend")


@pytest.mark.parametrize("mode", ["error", "ignore", "append", "overwrite"])
def test_every_mode_makes_a_table_where_there_is_none(tmp_path, mode):
    assert it.write(tmp_path / "t", ROWS, mode=mode).version == 1


def test_rows_that_cannot_be_written_leave_no_table(tmp_path):
    def batches():
        yield ARROW
        raise KeyError("the source broke")

    with pytest.raises(KeyError, match="the source broke"):
        it.write(tmp_path / "t", batches())
    with pytest.raises(SchemaError, match=r"~ id: int in the table, string in the data"):
        it.Table.create(tmp_path / "t", pa.schema([("id", pa.int32())]), data={"id": ["one"]})
    assert list(tmp_path.iterdir()) == []


def test_a_failed_creation_takes_its_splits_with_it(tmp_path, monkeypatch):
    from indextables.storage.stores.local import LocalStore

    uri = tmp_path / "t"
    monkeypatch.setattr(LocalStore, "put_if_absent", _refusing)
    with pytest.raises(it.errors.CommitError):
        it.write(uri, ROWS)
    assert list(uri.rglob("*.split")) == []
    monkeypatch.undo()
    assert it.write(uri, ROWS).version == 1


def _refusing(self, path, data):
    raise it.errors.StorageError("no room", final=True)


def test_create_with_data_has_versions_0_and_1_and_refuses_a_table_that_is_there(tmp_path):
    day = dt.date(2026, 11, 15)
    schema = pa.schema([("id", pa.int32()), ("day", pa.date32())])
    table = it.Table.create(tmp_path / "t", schema, data=[{"id": 1, "day": day}], partition_by="day")
    assert (table.version, table.schema, table.partition_columns) == (1, schema, ("day",))
    assert [len(it.open(tmp_path / "t", version=at)) for at in (0, 1)] == [0, 1]
    with pytest.raises(TableError, match="is a table already"):
        it.Table.create(tmp_path / "t", data=[{"id": 1, "day": day}])
    with pytest.raises(SchemaError, match="from a schema, or from data"):
        it.Table.create(tmp_path / "u")


def test_data_without_rows_makes_an_empty_table(tmp_path):
    assert it.write(tmp_path / "t", ARROW.slice(0, 0)).version == 0
    assert len(it.open(tmp_path / "t")) == 0
    with pytest.raises(SchemaError, match="at least one column"):
        it.write(tmp_path / "u", [])


def test_errors_show_the_difference_between_the_schemas(tmp_path):
    uri = tmp_path / "t"
    it.write(uri, ROWS)
    with pytest.raises(SchemaError) as other:
        it.Table.create(uri, pa.schema([("id", pa.string()), ("level", pa.string())]))
    assert other.value.fields["differences"] == (
        "~ id: int64 in the table, string in the given schema",
        "- message string: only in the table",
        "+ level string: only in the given schema",
    )
    with pytest.raises(SchemaError) as reordered:
        it.Table.create(uri, pa.schema([("message", pa.string()), ("id", pa.int64())]))
    assert "the table are id, message, those of the given schema message, id" in str(reordered.value)
    with pytest.raises(SchemaError) as batches:
        it.write(uri, [ARROW, pd.DataFrame({"id": ["x"], "more": [1]})], mode="append")
    assert batches.value.fields["differences"] == (
        "~ id: int64 in the first batch, string in this one",
        "- message string: only in the first batch",
        "+ more int64: only in this one",
    )
    assert content(uri) == ROWS


WRONG = {
    "a row instead of columns": ({"id": 1}, "a dict is taken as columns, and 'id' is 1"),
    "rows of two types": ([{"id": 1}, {"id": "x"}], "Give every value of a column the same type"),
    "a row that is None": ([{"id": 1}, None], "1 of the 2 rows are None"),
    "a frame of two types": (pd.DataFrame({"id": [1, "x"]}), "Conversion failed for column id"),
    "a series": (pd.Series([1]), "make it a DataFrame with to_frame"),
    "only nulls": ({"id": [None]}, "holds only nulls, so its type is not known"),
    "an index named like a column": (
        pd.DataFrame({"id": [1]}, index=pd.Index([5], name="id")),
        "named like a column",
    ),
    "a number": (5, "cannot write int"),
    "a text": ("rows", "cannot write str"),
}


@pytest.mark.parametrize("case", WRONG)
def test_data_that_cannot_be_a_table_says_why(tmp_path, case):
    data, why = WRONG[case]
    with pytest.raises(SchemaError, match=why):
        it.write(tmp_path / "t", data)
    assert not (tmp_path / "t").exists()


def test_a_key_that_only_later_rows_have_is_a_column(tmp_path):
    it.write(tmp_path / "t", [{"id": 1}, {"id": 2, "late": 0.5}])
    assert content(tmp_path / "t") == [{"id": 1, "late": None}, {"id": 2, "late": 0.5}]


def test_text_and_options_may_not_contradict_each_other(tmp_path):
    with pytest.raises(OptionError, match=r"options say indexing.typemap.message = string"):
        it.write(tmp_path / "t", ROWS, text="message", options={"indexing.typemap.message": "string"})
    it.write(tmp_path / "t", ROWS, text=["message"])
    with pytest.raises(OptionError, match="column 'id'"):
        it.write(tmp_path / "t", ROWS, text=["id"], mode="append")


def test_read_takes_a_filter_a_query_and_a_version(tmp_path):
    uri = tmp_path / "t"
    it.write(uri, ROWS, text="message")
    it.write(uri, [{"id": 4, "message": "down again"}], mode="append")
    assert it.read(uri, "id > 3", ["id"]).to_pylist() == [{"id": 4}]
    assert sorted(it.read(uri, query="down").to_arrow()["id"].to_pylist()) == [2, 4]
    assert it.read(uri, "id < 3", query="down").to_arrow()["id"].to_pylist() == [2]
    assert it.read(uri, query="down", version=1).to_arrow()["id"].to_pylist() == [2]
    assert len(it.read(uri, as_of=dt.datetime.now(dt.UTC))) == 4


def test_open_is_the_method_of_table():
    assert it.open == it.Table.open


def test_a_table_has_a_length_a_beginning_and_frames(tmp_path):
    it.write(tmp_path / "t", ROWS)
    with it.open(tmp_path / "t") as table:
        assert len(table) == 3
        assert table.head(2).to_pylist() == ROWS[:2]
        assert table.head().num_rows == 3
        assert table.to_pandas()["id"].tolist() == [1, 2, 3]
        assert table.to_polars()["id"].to_list() == [1, 2, 3]
    assert bool(it.Table.create(tmp_path / "empty", ARROW.schema))


def test_a_sample_gives_every_row_the_same_chance_and_is_the_same_for_a_seed(tmp_path):
    uri = tmp_path / "t"
    for begin in (0, 7, 8):
        it.write(uri, {"id": list(range(begin, {0: 7, 7: 8, 8: 20}[begin]))}, mode="append")
    table = it.open(uri)
    drawn = [table.sample(5, seed)["id"].to_pylist() for seed in range(400)]
    assert all(len(set(ids)) == 5 for ids in drawn)
    assert table.sample(5, 7)["id"].to_pylist() == drawn[7]
    times = [sum(row in ids for ids in drawn) for row in range(20)]
    assert 60 < min(times) <= max(times) < 140, times
    assert sorted(table.sample(50)["id"].to_pylist()) == list(range(20))
    assert table.sample(0).schema == table.schema
    with pytest.raises(OptionError, match="n is -1"):
        table.sample(-1)


def test_a_sample_reads_partitions_and_columns_added_later(tmp_path):
    uri = tmp_path / "t"
    it.write(uri, {"p": ["a", "b"], "id": [1, 2]}, partition_by="p")
    it.open(uri).append({"p": ["a"], "id": [3], "late": [0.5]}, merge_schema=True)
    rows = it.open(uri).sample(10).to_pylist()
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"p": "a", "id": 1, "late": None}, {"p": "b", "id": 2, "late": None}, {"p": "a", "id": 3, "late": 0.5},
    ]  # fmt: skip


def test_two_writers_of_a_new_table_leave_one_table(tmp_path, monkeypatch):
    """The second creates nothing: its rows are refused, left out, or added, as its mode says."""
    from indextables.ops.write.definition import Definition

    create = Definition.create
    for mode in ("error", "ignore", "append"):
        uri = tmp_path / mode

        def late(self, log, uri=uri, **more):
            monkeypatch.setattr(Definition, "create", create)
            it.write(uri, ROWS[:1])
            return create(self, log, **more)

        monkeypatch.setattr(Definition, "create", late)
        if mode == "error":
            with pytest.raises(TableError, match="created by another writer meanwhile"):
                it.write(uri, ROWS[1:], mode=mode)
        else:
            it.write(uri, ROWS[1:], mode=mode)
        assert content(uri) == (ROWS if mode == "append" else ROWS[:1])
        assert len(list(uri.rglob("*.split"))) == (2 if mode == "append" else 1)
