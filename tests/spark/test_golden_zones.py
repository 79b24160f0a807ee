"""Real Delta tables with times in them, read in sessions of three zones: an instant is the same everywhere."""

from __future__ import annotations

import json

import pytest

import indextables as it
from indextables.errors import Error
from support.shared import shared

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ZONES = ("UTC", "America/Los_Angeles", "Asia/Kolkata")
SMALL = 2000


def tables_with_times():
    """Golden tables that have an instant among their columns and rows to read, with those rows."""
    found = {}
    for row in json.loads(shared("golden", "delta", "MANIFEST.json").read_text()):
        if row["outcome"] != "ok":
            continue
        path = shared("golden", "delta", "tables", row["name"])
        try:
            table = it.DeltaTable.open(path)
            if "timestamp" not in str(table.schema) or not 0 < table.count() <= SMALL:
                continue
            found[path] = table.scan().read_all()
        except Error:
            # Data files that the corpus left out.
            continue
    return found


def plain(table, names):
    return sorted(str([row[name] for name in names]) for row in table.select(names).to_pylist())


def test_rows_and_files_do_not_depend_on_the_zone_of_the_session(spark):
    """K7: rows read by Spark and by ourselves, and files kept for a filter with an offset."""
    tables = tables_with_times()
    different = []
    for zone in ZONES:
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            for path, ours in tables.items():
                names = [field.name for field in ours.schema if not str(field.type).startswith("map")]
                theirs = it.delta.read(spark, str(path)).toArrow().cast(ours.schema)
                if plain(theirs, names) != plain(ours, names):
                    different.append((zone, path.name))
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert different == []
    assert len(tables) >= 5
