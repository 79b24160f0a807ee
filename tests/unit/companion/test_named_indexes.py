"""CREATE, DROP, REFRESH and SHOW INDEX on tables of ours, of Delta and of Parquet files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.errors import CommandError, NotATableError, OptionError, TableError
from support.companions import bytes_of

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "level": ["INFO", "ERROR", "ERROR"],
        "message": ["service started", "disk full on node 3", "timeout of the disk"],
    }
)


class Tables:
    """The same rows as a table of one kind, in a directory of its own."""

    def __init__(self, root: Path, kind: str) -> None:
        self.kind, self.path = kind, str(root / "events")
        self.index = self.path if kind == "ours" else f"{self.path}_indexes/words"
        if kind == "ours":
            it.Table.create(self.path, ROWS.schema)
        self.number = 0
        self.append()

    def append(self):
        self.number += 1
        if self.kind == "ours":
            it.Table.open(self.path).append(ROWS)
        elif self.kind == "delta":
            import deltalake

            deltalake.write_deltalake(self.path, ROWS, mode="append")
        else:
            Path(self.path).mkdir(exist_ok=True)
            pq.write_table(ROWS, f"{self.path}/part-{self.number}.parquet")

    def run(self, statement):
        return it.sql(statement.replace("{t}", f"'{self.path}'")).to_pylist()

    def shown(self):
        return {row["index_name"]: (row["columns"], row["state"]) for row in self.run("SHOW INDEXES ON {t}")}


@pytest.fixture(params=["ours", "delta", "parquet"])
def table(request, tmp_path):
    return Tables(tmp_path, request.param)


def test_an_index_is_made_found_refreshed_and_dropped(table):
    (made,) = table.run("CREATE INDEX words ON TABLE {t} USING search (message, level) OPTIONS "
                        "(indexing.typemap.level = 'string')")  # fmt: skip
    assert (made["status"], made["index_path"]) == ("SUCCESS", f"file://{table.index}")
    # A table of ours returns at once: its split waits. A companion is built.
    assert made["waiting"] == (1 if table.kind == "ours" else 0)
    columns = "level string, message text"
    assert table.shown() == {"words": (columns, "STALE" if table.kind == "ours" else "CURRENT")}
    assert it.open(table.index).count(query="disk") == 2

    table.append()
    assert it.open(table.index).count(query="disk") == 4
    assert table.shown() == {"words": (columns, "STALE")}
    assert table.run("REFRESH INDEX WORDS ON {t}")[0]["status"] == "SUCCESS"
    assert table.shown() == {"words": (columns, "CURRENT")}
    assert it.open(table.index).count(query="disk AND level:ERROR") == 4

    assert table.run("DROP INDEX words ON {t}")[0]["status"] == "SUCCESS"
    assert table.shown() == {}
    if table.kind == "ours":
        assert it.open(table.index).count() == 6
    else:
        with pytest.raises(NotATableError):
            it.open(table.index)
    assert table.run("CREATE INDEX words ON {t} (message)")[0]["status"] == "SUCCESS"


def test_an_index_is_made_once(table):
    table.run("CREATE INDEX words ON {t} (message)")
    assert table.run("CREATE INDEX IF NOT EXISTS Words ON {t} (level)")[0]["status"] == "NO ACTION"
    assert table.shown()["words"][0] == "message text"
    with pytest.raises(TableError, match="REFRESH INDEX brings it up to date"):
        table.run("CREATE INDEX WORDS ON {t} (message)")


def test_an_index_that_is_not_there_is_named(table):
    for statement in ("DROP INDEX words ON {t}", "REFRESH INDEX words ON {t}"):
        with pytest.raises(TableError, match="has no index words; its indexes: none"):
            table.run(statement)
    assert table.run("DROP INDEX IF EXISTS words ON {t}")[0]["status"] == "NO ACTION"


def test_the_source_is_never_written(tmp_path):
    table = Tables(tmp_path, "delta")
    before = bytes_of(table.path)
    table.run("CREATE INDEX words ON {t} (message)")
    table.run("REFRESH INDEX words ON {t}")
    table.run("DROP INDEX words ON {t}")
    assert bytes_of(table.path) == before


def test_values_are_indexed_as_values_and_options_are_obeyed(table):
    table.run("CREATE INDEX words ON {t} (id, message) OPTIONS ('indexing.tokenizer.message' = 'en_stem')")
    assert table.shown()["words"][0] == "id fast, message text"
    table.run("REFRESH INDEX words ON {t}")
    assert it.open(table.index).count(query="disks AND id:>2") == 1


@pytest.mark.parametrize(
    ("statement", "error", "problem"),
    [
        ("CREATE INDEX words ON {t} (nothing)", Exception, "nothing"),
        ("CREATE INDEX words ON {t} (message) OPTIONS (indexing.typemap.level = 'string')", OptionError, "'level'"),
        ("CREATE INDEX words ON {t} (message) OPTIONS (location = '/a')", OptionError, "location is none of these"),
        ("CREATE INDEX `../words` ON {t} (message)", OptionError, "no name of an index"),
        ("CREATE INDEX words ON {t} USING bloom (message)", CommandError, "SEARCH"),
        ("CREATE INDEX words ON {t} (message) OPTIONS (a = 1, a = 2)", CommandError, "already given"),
        ("CREATE INDEX IF NOT words ON {t} (message)", CommandError, "expected ON"),
        ("CREATE INDEX words ON {t}", CommandError, r"\("),
        ("SHOW INDEXES {t}", CommandError, "FROM, IN or ON"),
    ],
)  # fmt: skip
def test_what_makes_no_index_is_refused(table, statement, error, problem):
    with pytest.raises(error, match=problem):
        table.run(statement)
    assert table.shown() == {}


def test_a_column_belongs_to_one_index_of_a_table_of_ours(tmp_path):
    table = Tables(tmp_path, "ours")
    table.run("CREATE INDEX words ON {t} (message)")
    with pytest.raises(TableError, match="is a column of the index words"):
        table.run("CREATE INDEX more ON {t} (level, Message)")
    table.run("CREATE INDEX more ON {t} (level)")
    assert list(table.shown()) == ["more", "words"]


def test_columns_without_a_named_index_are_shown_too(tmp_path):
    path = str(tmp_path / "t")
    options = {"indexing.typemap.level": "string", "indexing.typemap.message": "text"}
    it.Table.create(path, ROWS.schema, options=options).append(ROWS)
    it.sql(f"CREATE INDEX words ON '{path}' (message)")
    shown = it.sql(f"SHOW INDEXES ON '{path}'").to_pylist()
    assert [(row["index_name"], row["columns"], row["state"]) for row in shown] == [
        ("words", "message text", "CURRENT"),
        (None, "level string", "CURRENT"),
    ]
    it.sql(f"DROP INDEX words ON '{path}'")
    assert it.open(path).count(query="level:ERROR") == 2


def test_an_index_dropped_halfway_still_answers_and_is_dropped_again(tmp_path):
    table = Tables(tmp_path, "delta")
    table.run("CREATE INDEX words ON {t} (message)")
    for split in Path(table.index).rglob("*.split"):
        split.unlink()
    assert it.open(table.index).count(query="disk") == 2
    table.run("DROP INDEX words ON {t}")
    assert table.shown() == {}


def test_what_is_beside_a_source_and_no_index_of_it_is_left_alone(tmp_path):
    table = Tables(tmp_path, "delta")
    other = it.Table.create(f"{table.path}_indexes/words", ROWS.schema)
    (row,) = table.run("SHOW INDEXES ON {t}")
    assert row["state"] == "BROKEN"
    with pytest.raises(TableError, match="rows of its own"):
        table.run("DROP INDEX words ON {t}")
    assert other.count() == 0


def test_indexes_are_not_made_for_other_systems(tmp_path):
    (tmp_path / "ice" / "metadata").mkdir(parents=True)
    (tmp_path / "ice" / "metadata" / "v1.metadata.json").write_text("{}")
    with pytest.raises(TableError, match="is an Iceberg table: indexes are made for Delta"):
        it.sql(f"CREATE INDEX words ON '{tmp_path}/ice' (message)")
    with pytest.raises(TableError, match="is a companion index"):
        table = Tables(tmp_path, "delta")
        table.run("CREATE INDEX words ON {t} (message)")
        it.sql(f"CREATE INDEX words ON '{table.index}' (message)")
