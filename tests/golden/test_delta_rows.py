"""Rows of real Delta tables, read without Spark: what another reader reads, at every version."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import MissingSplitError, TableError
from support.golden import rows_of, table_path, versions
from support.sampled import first_of

# What the other reader itself says or does about these tables.
NOT_COMPARABLE = {
    "delta-rs__table_with_edge_timestamps": "deltalake overflows on the year 9999 and gives 1816",
}
PARTS = 3
LEAST = 398 // PARTS - 10


def rows_of_others(path, version):
    """The version as the deltalake package reads it; None where it cannot, or where data files are not there."""
    import deltalake

    try:
        table = deltalake.DeltaTable(str(path), version=version)
        return pa.table(deltalake.QueryBuilder().register("t", table).execute("select * from t").read_all())
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


@pytest.mark.slow
@pytest.mark.parametrize("part", first_of(1, range(PARTS)))
def test_rows_and_counts_are_what_another_reader_reads(part):
    """K7: every version of every golden table whose files are there."""
    compared, different, unread = 0, [], []
    for name, version in list(versions("ok"))[part::PARTS]:
        if name in NOT_COMPARABLE:
            continue
        path = table_path(name)
        theirs = rows_of_others(path, version)
        try:
            table = it.DeltaTable.open(path, version=version)
            ours = table.scan().read_all()
            assert table.count() == ours.num_rows, (name, version)
        except (MissingSplitError, TableError) as refused:
            if theirs is not None:
                unread.append((name, version, str(refused)))
            continue
        if theirs is None:
            continue
        compared += 1
        if rows_of(ours, ours.column_names) != rows_of(theirs, ours.column_names):
            different.append((name, version))
    assert different == []
    assert unread == []
    assert compared >= LEAST


def test_widened_types_are_those_of_the_newest_schema():
    """The other reader refuses this table; its rows were looked up in its files."""
    table = it.DeltaTable.open(table_path("kernel-rs__type-widening"))
    first = table.scan("byte_long = 1").read_all().to_pylist()
    assert [
        (row["float_double"], str(row["int_decimal"]), str(row["date_timestamp_ntz"])) for row in first
    ] == [(3.4000000953674316, "3.0", "2024-09-09 00:00:00")]
    assert table.count("float_double > 3.4 AND float_double < 3.5") == 1


def test_variants_come_as_the_bytes_they_are_stored_as():
    name = "delta-kernel__spark-shredded-variant-preview-delta"
    table = it.DeltaTable.open(table_path(name))
    rows = table.scan(columns=["id", "v"]).read_all()
    assert rows.num_rows == table.count() == 102
    assert set(rows.schema.field("v").type.field(at).name for at in range(2)) == {"metadata", "value"}


def test_a_shredded_variant_is_refused_and_its_neighbours_are_not():
    name = "delta-spark__variant-stats-no-checkpoint"
    table = it.DeltaTable.open(table_path(name))
    with pytest.raises(TableError, match="shredded variant"):
        table.scan().read_all()
    variants = [
        item["name"]
        for item in json.loads(table.spark_schema)["fields"]
        if "variant" in json.dumps(item["type"])
    ]
    others = [item for item in table.schema.names if item not in variants]
    assert table.scan(columns=others).read_all().num_rows == table.count()
