"""Named tables: every statement with its rows and its one commit, in each place a table can have a name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import indextables as it
from support.named_statements import STATEMENTS, Said

PLACES = ("session catalog", "directory catalog", "path")


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


class Place:
    """How names are written in a place, and where their tables lie."""

    def __init__(self, kind: str, root: Path) -> None:
        prefix, base = {
            "session catalog": ("named.", root / "named"),
            "directory catalog": ("lake.deep.", root / "lake" / "deep"),
            "path": ("", root / "paths"),
        }[kind]
        self.paths = {name: base / name for name in "tuv"}
        if kind == "path":
            self.words = {name: f"indextables.`{path}`" for name, path in self.paths.items()}
        else:
            self.words = {name: f"{prefix}{name}" for name in self.paths}
        self.words |= {"q": prefix, "last": "t"}

    def version(self, on: str) -> int:
        path = str(self.paths[on.strip("{}")])
        return it.Table.open(path).version if it.Table.exists(path) else -1


@pytest.mark.parametrize("kind", PLACES)
def test_every_statement_gives_its_rows_and_makes_its_one_commit(spark, warehouse, kind):
    place = Place(kind, warehouse)
    wrong = [found for said in STATEMENTS if (found := outcome(spark, place, said, kind))]
    assert not wrong, "\n".join(wrong)


def outcome(spark, place: Place, said: Said, kind: str) -> str | None:
    """What is wrong with a statement; None when nothing is."""
    if said.named and kind == "path":
        return None
    sql = said.sql.format(**place.words)
    before = place.version(said.on)
    try:
        rows = [tuple(row) for row in spark.sql(sql).collect()]
    except Exception as error:
        if said.refused is None or not re.search(said.refused, str(error)):
            return f"{sql}: {type(error).__name__} {str(error)[:300]}"
        return None if place.version(said.on) == before else f"{sql}: refused, and has made a version"
    if said.refused is not None:
        return f"{sql}: not refused, gave {rows}"
    if said.rows is not None and rows != said.rows:
        return f"{sql}: gave {rows}, not {said.rows}"
    return wrong_commit(place, said, sql, before)


def wrong_commit(place: Place, said: Said, sql: str, before: int) -> str | None:
    after = place.version(said.on)
    if said.op is None:
        created = before == -1 and after == 0
        return None if after in {before, -1} or created else f"{sql}: made version {after}, expected none"
    newest = it.Table.open(str(place.paths[said.on.strip("{}")])).history(1).to_pylist()[0]
    first = before == -1 and after == 1  # a table that is created with its rows
    if (after != before + 1 and not first) or newest["operation"] != said.op:
        return f"{sql}: versions {before} to {after} by {newest['operation']}, expected one {said.op}"
    return None
