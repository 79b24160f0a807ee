"""Named tables: every statement with its rows and its one commit, in each place a table can have a name."""

from __future__ import annotations

import pytest

from support.core_statements import CORE
from support.more_statements import MORE
from support.named_statements import STATEMENTS
from support.statement_places import Place, wrong


@pytest.fixture(scope="module")
def warehouse(spark, tmp_path_factory):
    """A database and a catalog of directories, both in a place of this test's own."""
    root = tmp_path_factory.mktemp("warehouse")
    spark.sql(f"CREATE DATABASE IF NOT EXISTS named LOCATION '{root}/named'")
    spark.conf.set("spark.sql.catalog.lake", "io.indextables.DirectoryCatalog")
    spark.conf.set("spark.sql.catalog.lake.warehouse", f"{root}/lake")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.deep")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.wide")
    yield root
    spark.sql("DROP DATABASE named CASCADE")


EVERY = [*STATEMENTS, *MORE]


@pytest.mark.parametrize(
    ("prefix", "below", "statements"),
    [
        pytest.param("named.", "named", EVERY, id="session catalog"),
        pytest.param("lake.deep.", "lake/deep", CORE, id="directory catalog, core", marks=pytest.mark.core),
        pytest.param(None, "paths", CORE, id="path, core", marks=pytest.mark.core),
        pytest.param("lake.wide.", "lake/wide", EVERY, id="directory catalog", marks=pytest.mark.long),
        pytest.param(None, "more-paths", EVERY, id="path", marks=pytest.mark.long),
    ],
)
def test_every_statement_gives_its_rows_and_makes_its_one_commit(spark, warehouse, prefix, below, statements):
    def run(sql: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in spark.sql(sql).collect()]

    failures = wrong(run, Place(prefix, warehouse / below), statements, spark.version)
    assert not failures, "\n".join(failures)
