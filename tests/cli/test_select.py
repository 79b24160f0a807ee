"""`indextables sql "SELECT ..."`: DuckDB over our tables, with searches inside, and no Java."""

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import CommandError
from indextables.sql.select import is_select, run_select

SCHEMA = pa.schema([("id", pa.int64()), ("level", pa.string()), ("message", pa.string())])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    root = str(tmp_path_factory.mktemp("select") / "logs")
    table = it.Table.create(root, SCHEMA, options={"indexing.typemap.message": "text"})
    for n in range(3):
        ids = range(n * 10, n * 10 + 10)
        messages = [None if i % 10 == 9 else "a timeout" if i % 5 == 0 else "all quiet" for i in ids]
        table.append(
            pa.table(
                {"id": ids, "level": [["info", "error"][i % 2] for i in ids], "message": messages}, SCHEMA
            )
        )
    return root


def rows(text, path):
    return [tuple(row.values()) for row in run_select(text, {"logs": path}).to_pylist()]


def test_a_table_is_named_by_path_by_version_or_by_a_name(path):
    assert rows("SELECT count(*) FROM logs", path) == [(30,)]
    assert rows(f"SELECT count(*) FROM indextables.`{path}`", path) == [(30,)]
    assert rows(f"SELECT count(*) FROM indextables.`{path}` VERSION AS OF 1", path) == [(10,)]
    assert rows(f"SELECT count(*) FROM '{path}' a JOIN '{path}' b USING (id)", path) == [(30,)]
    assert rows(f"SELECT count(*) FROM '{path}' WHERE message indexquery 'timeout'", path) == [(6,)]
    assert rows("SELECT count(*) FROM logs a JOIN logs b USING (id)", path) == [(30,)]
    assert rows("SELECT 'from' || 'x' AS a FROM logs LIMIT 1", path) == [("fromx",)]


def test_a_search_may_stand_in_any_boolean_position(path):
    found = rows("SELECT id FROM logs WHERE message indexquery 'timeout' ORDER BY id", path)
    assert [n for (n,) in found] == [0, 5, 10, 15, 20, 25]
    assert rows("SELECT level, count(*) FROM logs WHERE indexquery(message, 'timeout') GROUP BY level ORDER BY 1", path) == [
        ("error", 3), ("info", 3),
    ]  # fmt: skip
    either = "SELECT count(*) FROM logs WHERE message indexquery 'timeout' OR id = 1"
    assert rows(either, path) == [(7,)]
    both = (
        "SELECT count(*) FROM logs WHERE message indexquery 'timeout' AND message indexquery 'a' AND id > 4"
    )
    assert rows(both, path) == [(5,)]
    without = "SELECT count(*) FROM logs WHERE NOT message indexquery 'timeout'"
    assert rows(without, path) == [(21,)]


def test_a_text_that_is_null_is_neither_found_nor_not(path):
    found = rows("SELECT message indexquery 'timeout' AS hit, count(*) FROM logs GROUP BY 1", path)
    assert dict(found) == {True: 6, False: 21, None: 3}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT nowhere FROM logs", "nowhere"),
        ("SELECT * FROM read_csv('/etc/passwd')", "DuckDB cannot run"),
        ("SELECT * FROM logs WHERE level indexquery 'x'", "not indexed"),
        ("SELECT * FROM elsewhere", "--table NAME=PATH"),
        ("SELECT * FROM elsewhere WHERE message indexquery 'x'", "--table NAME=PATH"),
    ],
)
def test_mistakes_are_told_and_files_outside_are_not_read(path, text, said):
    with pytest.raises((CommandError, it.errors.QueryError), match=said):
        rows(text, path)


def test_maintenance_commands_are_not_taken_for_a_select():
    assert is_select("  -- a comment\n SELECT 1")
    assert is_select("with a as (select 1) select * from a")
    assert not is_select("MERGE SPLITS 'x'")
    assert not is_select("DESCRIBE INDEXTABLES HISTORY 'x'")
