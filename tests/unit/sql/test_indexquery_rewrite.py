"""Statements with indexquery and paths become Spark SQL over hidden views, with everything else kept."""

from __future__ import annotations

import re

import pytest

from indextables.errors import CommandError
from indextables.sql.recogniser import CreateView, Insert, OtherStatement, insertion_of, recognise
from indextables.sql.select.rewrite import rewrite
from indextables.sql.select.rewritten import Reference

COLUMNS = {"t": ("id", "message"), "u": ("id", "body"), "other": None}


def columns_of(reference: Reference) -> tuple[str, ...] | None:
    if reference.by_path:
        return ("id", "message")
    return COLUMNS.get(reference.name[-1])


def text_of(statement: str, args: object = None) -> str:
    found = rewrite(statement, columns_of, args)
    assert found is not None
    return found.text


def test_plain_sql_is_not_ours() -> None:
    for statement in ("SELECT 1", "SELECT indextables FROM t", "SELECT a FROM indextables.t"):
        assert recognise(statement).is_sparks
    assert rewrite("SELECT 'message indexquery 1' -- indexquery\nFROM t", columns_of) is None


def test_a_path_is_replaced_and_the_rest_kept_to_the_byte() -> None:
    assert text_of("SELECT  *\nFROM indextables.`/a b/c`  WHERE id=1 -- x") == (
        "SELECT  *\nFROM __indextables_0  WHERE id=1 -- x"
    )


def test_a_column_qualified_by_a_table_named_indextables_is_no_path() -> None:
    assert rewrite("SELECT indextables.`id` FROM s AS indextables", columns_of) is None


def test_several_paths_with_time_travel() -> None:
    found = rewrite(
        "SELECT * FROM indextables.`/a` VERSION AS OF 3 x, indextables.`/b` FOR TIMESTAMP AS OF '2020-01-01' y "
        "JOIN indextables.`/c` TIMESTAMP AS OF current_timestamp() z",
        columns_of,
    )
    assert found is not None
    assert found.text == "SELECT * FROM __indextables_0 x, __indextables_1 y JOIN __indextables_2 z"
    assert [(r.version, r.timestamp) for r in found.references] == [
        (3, None), (None, "'2020-01-01'"), (None, "current_timestamp()"),
    ]  # fmt: skip


def test_a_search_under_and_restricts_the_view() -> None:
    found = rewrite("SELECT * FROM t WHERE message indexquery 'a AND b' AND id > 1", columns_of)
    assert found is not None
    assert found.text == "SELECT * FROM __indextables_0 AS t WHERE true AND id > 1"
    assert [(s.column, s.query, s.required) for s in found.searches] == [("message", "a AND b", True)]


@pytest.mark.parametrize(
    "condition",
    [
        "message indexquery 'x' OR id = 1",
        "NOT message indexquery 'x'",
        "message NOT indexquery 'x'",
        "CASE WHEN indexquery(message, 'x') THEN true ELSE false END",
        "(message indexquery 'x') IS NULL",
    ],
)
def test_a_search_elsewhere_becomes_a_hidden_column_that_no_star_shows(condition: str) -> None:
    text = text_of(f"SELECT *, t.*, count(*) FROM t WHERE {condition}")
    assert "* EXCEPT (__indextables_hit_0), t.* EXCEPT (__indextables_hit_0), count(*)" in text
    assert "t.__indextables_hit_0" in text


def test_an_except_list_is_extended() -> None:
    assert text_of("SELECT * EXCEPT (id) FROM t WHERE NOT message indexquery 'x'").startswith(
        "SELECT * EXCEPT (__indextables_hit_0, id) FROM"
    )


def test_each_side_of_a_self_join_gets_its_own_view() -> None:
    found = rewrite(
        "SELECT a.id FROM t a JOIN t b ON a.id = b.id WHERE a.message indexquery 'x' AND b.message indexquery 'y'",
        columns_of,
    )
    assert found is not None
    assert (
        found.text
        == "SELECT a.id FROM __indextables_0 a JOIN __indextables_1 b ON a.id = b.id WHERE true AND true"
    )


def test_searches_in_ctes_subqueries_and_unions() -> None:
    text = text_of(
        "WITH c AS (SELECT * FROM t WHERE _indexall indexquery 'q') SELECT id FROM c UNION ALL "
        "SELECT id FROM other WHERE id IN (SELECT id FROM u WHERE body indexquery 'y')"
    )
    assert text.count("WHERE true") == 2


def test_queries_may_be_parameters() -> None:
    named = rewrite(
        "SELECT * FROM t WHERE message indexquery :q AND id = :id", columns_of, {"q": "x", "id": 1}
    )
    assert named is not None
    assert named.searches[0].query == "x"
    marked = rewrite("SELECT * FROM t WHERE id = ? AND message indexquery ?", columns_of, [1, "y"])
    assert marked is not None
    assert (marked.searches[0].query, marked.used_arguments) == ("y", frozenset({1}))


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT * FROM (SELECT message m FROM t) s WHERE m indexquery 'x'", "m:"),
        ("SELECT * FROM u LEFT JOIN t ON t.id = u.id WHERE t.message indexquery 'x'", "outer join"),
        ("SELECT * FROM t RIGHT JOIN u ON t.id = u.id WHERE t.message indexquery 'x'", "outer join"),
        ("SELECT * FROM other WHERE message indexquery 'x'", "message"),
        ("SELECT * FROM t, indextables.`/p` WHERE message indexquery 'x'", "ambiguous"),
        ("SELECT * FROM t WHERE message indexquery concat('a', 'b')", "string or a parameter"),
        ("SELECT * FROM t WHERE upper(message) indexquery 'a'", "column on its left"),
        ("SELECT * FROM t WHERE message indexquery", "query on its right"),
        ("FROM t |> WHERE message indexquery 'x'", "|>"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_is_said(statement: str, said: str) -> None:
    with pytest.raises(CommandError, match=re.escape(said)):
        rewrite(statement, columns_of)


def test_the_kept_side_of_an_outer_join_and_its_condition_can_be_searched() -> None:
    assert "WHERE true" in text_of(
        "SELECT 1 FROM t LEFT JOIN u ON t.id = u.id WHERE t.message indexquery 'x'"
    )
    assert "t.__indextables_hit_0" in text_of(
        "SELECT 1 FROM u LEFT JOIN t ON t.id = u.id AND t.message indexquery 'x'"
    )


def test_view_definitions_are_taken_apart() -> None:
    created = recognise(
        "CREATE OR REPLACE TEMP VIEW v USING indextables OPTIONS (path '/a', spark.indextables.x = '1')"
    ).form
    assert isinstance(created, CreateView)
    assert (created.name, created.replace, created.temporary) == ("v", True, True)
    assert created.options == {"path": "/a", "spark.indextables.x": "1"}
    assert recognise("CREATE TEMPORARY VIEW v USING parquet OPTIONS (path '/a')").form == OtherStatement()
    assert recognise("CREATE TABLE v AS SELECT 1").form == OtherStatement()
    assert recognise("CREATE TABLE").form == OtherStatement()


def insert_of(text: str) -> Insert:
    insert = recognise(text).form
    assert isinstance(insert, Insert)
    return insert


def test_inserts_are_taken_apart() -> None:
    insert = insert_of("WITH c AS (SELECT 1) INSERT INTO TABLE v (a, b) SELECT * FROM c")
    assert (insert.target, insert.overwrite) == (("v",), False)
    assert insertion_of(insert).columns == ("a", "b")
    assert insertion_of(insert).query == "WITH c AS (SELECT 1) SELECT * FROM c"
    assert insert_of("WITH c AS (SELECT '(' AS a) INSERT INTO v SELECT * FROM c").target == ("v",)
    assert insertion_of(insert_of("INSERT INTO v REPLACE WHERE p = 1 SELECT 1")).replace_where == "p = 1"
    by_path = insert_of("insert overwrite indextables.`/x` values (1, 2), (3, 4)")
    assert (by_path.target, by_path.overwrite) == (("indextables", "/x"), True)
    with pytest.raises(CommandError, match="PARTITION"):
        insertion_of(insert_of("INSERT INTO v PARTITION (p = 1) SELECT 1"))


@pytest.mark.parametrize("number", ["3", "'3'"])
def test_a_version_is_a_number_with_or_without_quotes(number: str) -> None:
    """Spark takes both."""
    found = rewrite(f"SELECT * FROM indextables.`/a` VERSION AS OF {number}", columns_of)
    assert found is not None
    assert [reference.version for reference in found.references] == [3]
