"""The query of a search as a constant expression, and the name of a column that is a search."""

from __future__ import annotations

import pytest

import indextables as it


@pytest.fixture(scope="module")
def lines(tmp_path_factory) -> str:
    path = str(tmp_path_factory.mktemp("lines") / "t")
    it.write(path, [{"id": 1, "msg": "error here"}, {"id": 2, "msg": "all well"}], text=["msg"])
    return f"indextables.`{path}`"


@pytest.mark.parametrize(
    "condition",
    [
        "msg indexquery concat('err', 'or')",
        "msg indexquery lower('ERROR')",
        "indexquery(msg, concat('err', 'or'))",
        "NOT msg indexquery concat('w', concat('el', 'l'))",
    ],
)
def test_a_constant_expression_is_a_query(spark, lines, condition):
    assert [row["id"] for row in spark.sql(f"SELECT id FROM {lines} WHERE {condition}").collect()] == [1]


def test_a_query_that_differs_by_row_is_refused(spark, lines):
    with pytest.raises(it.errors.CommandError, match="indexquery needs its query as a string"):
        spark.sql(f"SELECT id FROM {lines} WHERE msg indexquery lower(msg)").collect()


def test_an_unnamed_column_is_named_after_the_call(spark, lines):
    assert spark.sql(f"SELECT msg indexquery 'error' FROM {lines}").columns == ["indexquery(msg, error)"]
    assert spark.sql(f"SELECT indexquery(msg, 'error') FROM {lines}").collect()[0][0] in (True, False)
