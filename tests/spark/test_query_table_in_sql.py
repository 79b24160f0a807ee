"""What every kind of query finds or refuses is the same in SQL."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import indextables as it
from indextables.errors import QueryError
from support import query_table

AT_ONCE = 40


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("queries") / "t"
    table = it.Table.create(root, query_table.SCHEMA, options=query_table.OPTIONS)
    for first, last in ((0, 6), (6, 10)):
        table.append(query_table.rows(first, last))
    return root


def test_sql_finds_the_rows_that_a_query_means(spark: SparkSession, path: Path) -> None:
    numbered = list(enumerate(query_table.FOUND))
    found: dict[int, list[int]] = defaultdict(list)
    for start in range(0, len(numbered), AT_ONCE):
        asked = [
            f"SELECT {number} AS query, id FROM indextables.`{path}` WHERE _indexall indexquery {_literal(query)}"
            for number, query in numbered[start : start + AT_ONCE]
        ]
        for row in spark.sql(" UNION ALL ".join(asked)).collect():
            found[row["query"]].append(row["id"])
    for number, query in numbered:
        assert sorted(found[number]) == query_table.FOUND[query], query


def test_sql_refuses_the_same_queries(spark: SparkSession, path: Path) -> None:
    for query, why in query_table.REFUSED.items():
        with pytest.raises(QueryError) as refused:
            spark.sql(
                f"SELECT id FROM indextables.`{path}` WHERE _indexall indexquery {_literal(query)}"
            ).collect()
        assert why in refused.value.message


def test_what_the_author_should_know_is_a_warning(
    spark: SparkSession, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spark.sql(f"SELECT id FROM indextables.`{path}` WHERE message indexquery 'peer and timeout'").collect()
    assert any("`and` is searched as a word" in record.getMessage() for record in caplog.records)


def test_an_option_of_the_session_keeps_operators_in_lower_case(spark: SparkSession, path: Path) -> None:
    key = "spark.indextables.search.lowercaseOperators"
    spark.conf.set(key, "true")
    try:
        for query, expected in query_table.WITH_LOWERCASE_OPERATORS.items():
            rows = spark.sql(
                f"SELECT id FROM indextables.`{path}` WHERE _indexall indexquery {_literal(query)}"
            ).collect()
            assert sorted(row["id"] for row in rows) == expected, query
    finally:
        spark.conf.unset(key)


def _literal(query: str) -> str:
    return "'" + query.replace("\\", "\\\\").replace("'", "\\'") + "'"
