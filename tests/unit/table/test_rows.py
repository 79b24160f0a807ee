"""What scan and search return: a stream where it is used as one, a table where it is used as one."""

import pyarrow as pa
import pytest

import indextables as it
from indextables.display.notebook import show_arrow_tables

SCHEMA = pa.schema([("id", pa.int64()), ("note", pa.string())])


@pytest.fixture
def table(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA, options={"indexing.typemap.note": "text"})
    for n in range(3):
        made.append(pa.table({"id": range(n * 10, n * 10 + 10), "note": ["<b>word</b>"] * 10}, SCHEMA))
    return made


def ids(batches):
    return sorted(value for batch in batches for value in batch.column("id").to_pylist())


def test_it_is_read_as_a_reader_is(table):
    rows = table.scan()
    assert rows.schema == SCHEMA
    first = rows.read_next_batch()
    assert ids([first, *rows]) == list(range(30))
    with pytest.raises(StopIteration):
        rows.read_next_batch()
    half = table.search("word")
    taken = half.read_next_batch().num_rows
    assert half.read_all().num_rows == 30 - taken
    with table.scan() as stopped:
        stopped.read_next_batch()


def test_it_becomes_a_table_that_stays(table):
    rows = table.search("word", columns=["id"])
    assert len(rows) == 30
    assert rows.to_arrow() is rows.read_all()
    assert ids(rows) == ids(rows) == list(range(30))
    assert sorted(row["id"] for row in rows.to_pylist()) == list(range(30))
    assert rows.to_pandas()["id"].sum() == rows.to_polars()["id"].sum() == sum(range(30))


def test_the_head_of_a_stream_is_still_in_it(table):
    rows = table.scan()
    assert rows.head(3).num_rows == 3
    assert ids(rows) == list(range(30))
    assert table.scan().head(99).num_rows == 30


def test_rows_that_were_taken_are_never_silently_missing(table):
    rows = table.scan()
    for _ in rows:
        pass
    with pytest.raises(it.errors.TableError, match="as a stream"):
        iter(rows)
    part = table.scan()
    part.read_next_batch()
    with pytest.raises(TypeError, match="as a stream"):
        len(part)
    for again in (part.to_arrow, part.to_pylist, part.head):
        with pytest.raises(it.errors.TableError, match="as a stream"):
            again()


def test_other_libraries_take_tables_and_results_as_they_are(table):
    import duckdb
    import polars as pl

    found = table.search("word")  # noqa: F841 - DuckDB finds it by its name
    assert duckdb.sql("SELECT sum(id) FROM found").fetchall() == [(435,)]
    assert pl.DataFrame(table)["id"].sum() == 435
    assert pa.table(table).num_rows == pa.table(table.scan("id < 5")).num_rows + 25
    other = it.Table.create(table.uri + "-copy", SCHEMA)
    assert other.append(table.scan()).rows == 30


def test_a_notebook_shows_tables_rows_and_results_as_escaped_html(table):
    rows = table.search("word")
    for shown in (
        table,
        rows,
        table.last_scan,
        table.describe(),
        table.checkpoint(),
        it.Table.open(table.uri).scan("id < 2"),
    ):
        html = shown._repr_html_()
        assert html.startswith("<table")
        assert "<b>word</b>" not in html
        assert "0x" not in html
    assert "&lt;b&gt;word&lt;/b&gt;" in rows._repr_html_()
    assert len(rows) == 30
    assert "30 rows, 20 shown" in rows._repr_html_()
    assert "Rows(id, note; 30 rows)" == repr(rows)


def test_a_notebook_shows_histories_files_and_findings_as_escaped_html(table):
    shells = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    shell = shells.instance()
    try:
        show_arrow_tables()
        for shown in (table.history(), table.files(), table.facets("note"), it.check(table.uri)):
            data, _ = shell.display_formatter.format(shown)
            assert data["text/html"].startswith("<table")
            assert "<b>word</b>" not in data["text/html"]
        assert "mode: append" in shell.display_formatter.format(table.history())[0]["text/html"]
        many = shell.display_formatter.format(pa.table({"n": range(1234)}))[0]["text/html"]
        assert "1,234 rows, 20 shown" in many
    finally:
        shells.clear_instance()


def test_delta_tables_give_the_same_kind_of_rows(tmp_path):
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "d"), pa.table({"id": [1, 2]}))
    table = it.DeltaTable.open(tmp_path / "d")
    assert len(table.scan("id > 1")) == 1
    assert table._repr_html_().startswith("<table")
