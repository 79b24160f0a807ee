"""Named tables: every statement with its rows and its one commit, in each place a table can have a name."""

from __future__ import annotations

import pytest

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
    yield root
    spark.sql("DROP DATABASE named CASCADE")


@pytest.mark.parametrize(
    ("prefix", "below"),
    [("named.", "named"), ("lake.deep.", "lake/deep"), (None, "paths")],
    ids=["session catalog", "directory catalog", "path"],
)
def test_every_statement_gives_its_rows_and_makes_its_one_commit(spark, warehouse, prefix, below):
    def run(sql: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in spark.sql(sql).collect()]

    found = wrong(run, Place(prefix, warehouse / below), [*STATEMENTS, *MORE])
    assert not found, "\n".join(found)
