"""Statistics and partition values of Delta tables: typed, by logical name, and never a bound that does not hold."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from indextables.log.delta.files.text import (
    _texts_by_duckdb,
    decode_paths,
    record_counts,
    texts_by_msgspec,
    typed,
)
from indextables.log.delta.snapshot import open_snapshot
from indextables.options import Options
from indextables.storage.store import open_store
from support.deltatables import DeltaLog, add, schema_string

OPTIONS = Options.of(None)


def log_of(schema, partition_columns=(), **more):
    return DeltaLog(open_store(f"memory://{uuid.uuid4()}"), schema, partition_columns, **more)


def rows(log, *columns):
    files = open_snapshot(log.store.uri, options=OPTIONS).plan(columns=columns).files
    return {row.pop("path"): row for row in files.to_pylist()}


@pytest.mark.parametrize("checkpointed", [False, True])
def test_every_type_is_read_from_its_json_form(checkpointed):
    """H5: numbers, decimals beyond a double, dates before 1970, timestamps with any offset."""
    log = log_of(
        schema_string(i="integer", l="long", d="double", f="float", c="decimal(38,18)", s="string", b="boolean",
                      day="date", t="timestamp", n="timestamp_ntz", raw="binary", bad="integer")
    )  # fmt: skip
    values = {
        "i": -5, "l": 9007199254740993, "d": -0.5, "f": 1.1, "c": 12345678901234567890.123456789012345678, "s": 'a"b',
        "b": True, "day": "1899-12-31", "t": "2020-06-01T12:00:00.123-07:00", "n": "2020-06-01T12:00:00.123",
        "raw": "zz", "bad": "x",
    }  # fmt: skip
    text = json.dumps(
        {"numRecords": 3, "minValues": values, "maxValues": values, "nullCount": dict.fromkeys(values, 0)}
    )
    text = text.replace("1.2345678901234567e+19", "12345678901234567890.123456789012345678")
    body = add("x")
    body["add"]["stats"] = text
    log.commit(body)
    if checkpointed:
        log.checkpoint("classic")
    low, high = rows(log, "min", "max")["x"].values()
    assert low == {
        "i": -5, "l": 9007199254740993, "d": -0.5, "f": pytest.approx(1.1), "s": 'a"b', "b": True,
        "c": Decimal("12345678901234567890.123456789012345678"), "day": date(1899, 12, 31),
        "t": datetime(2020, 6, 1, 19, 0, 0, 123000, UTC), "n": datetime(2020, 6, 1, 12, 0, 0, 123000),
        "raw": None, "bad": None,
    }  # fmt: skip
    assert high["t"] == datetime(2020, 6, 1, 19, 0, 0, 123999, UTC)
    assert high["n"] == datetime(2020, 6, 1, 12, 0, 0, 123999)


def test_nan_is_never_a_bound():
    """H5: NaN and infinities."""
    log = log_of(schema_string(d="double"))
    name = "part-00000-0.c000.snappy.parquet"
    log.commit(add(name, stats={"numRecords": 1, "minValues": {"d": "NaN"}, "maxValues": {"d": "Infinity"}}))
    found = rows(log, "min", "max")[name]
    assert found == {"min": {"d": None}, "max": {"d": float("inf")}}


@pytest.mark.parametrize(("nulls", "known"), [(0, 0), (10, 10), (4, None)])
def test_wide_bounds_leave_a_null_count_only_at_its_ends(nulls, known):
    """H6: `tightBounds` false."""
    log = log_of(schema_string(d="long"))
    log.commit(add("wide", stats={"numRecords": 10, "nullCount": {"d": nulls}, "tightBounds": False}))
    log.commit(add("tight", stats={"numRecords": 10, "nullCount": {"d": nulls}, "tightBounds": True}))
    log.commit(add("unsaid", stats={"numRecords": 10, "nullCount": {"d": nulls}}))
    found = {path: row["null_count"]["d"] for path, row in rows(log, "null_count").items()}
    assert found == {"wide": known, "tight": nulls, "unsaid": nulls}


def test_nested_columns_carry_statistics_under_their_dotted_name():
    nested = {"type": "struct", "fields": [{"name": "b", "type": "long", "nullable": True, "metadata": {}}]}
    log = log_of(schema_string(a=nested, v="variant", gone="void"))
    log.commit(add("x", stats={"numRecords": 1, "minValues": {"a": {"b": 4}, "v": "0S&u501"}}))
    assert rows(log, "min")["x"]["min"] == {"a.b": 4}


def test_column_mapping_leads_physical_names_back():
    """K7: statistics and partition values carry physical names."""

    def field(name, kind, physical, number):
        metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
        return {"name": name, "type": kind, "nullable": True, "metadata": metadata}

    schema = json.dumps(
        {"type": "struct", "fields": [field("price", "long", "c-1", 1), field("day", "date", "c-2", 2)]}
    )
    log = log_of(schema, ("day",), configuration={"delta.columnMapping.mode": "name"})
    log.commit(
        add(
            "x",
            stats={"numRecords": 2, "minValues": {"c-1": 7, "price": 1}},
            partitionValues={"c-2": "2024-02-29"},
        )
    )
    found = rows(log, "min", "partition_values")["x"]
    assert found == {"min": {"price": 7}, "partition_values": {"day": date(2024, 2, 29)}}


@pytest.mark.parametrize("kind", ["classic", "v2-json", None])
def test_partition_values_are_typed_and_the_empty_string_is_null(kind):
    """H7, I2: in Delta an empty string means null, for every type."""
    log = log_of(
        schema_string(s="string", i="integer", t="timestamp", c="decimal(10,2)", b="boolean"), tuple("sitcb")
    )
    log.commit(
        add(
            "full",
            partitionValues={"s": "a/b", "i": "10", "t": "2024-01-01 10:00:00", "c": "1.5", "b": "true"},
        ),
        add("empty", partitionValues=dict.fromkeys("sitcb", "")),
        add("null", partitionValues=dict.fromkeys("sitcb")),
        add("iso", partitionValues={"t": "2024-01-01T10:00:00.000001Z"}),
    )
    if kind:
        log.checkpoint(kind)
    found = {path: row["partition_values"] for path, row in rows(log, "partition_values").items()}
    assert found["full"] == {
        "s": "a/b",
        "i": 10,
        "t": datetime(2024, 1, 1, 10, tzinfo=UTC),
        "c": Decimal("1.50"),
        "b": True,
    }
    assert found["empty"] == found["null"] == dict.fromkeys("sitcb")
    assert found["iso"]["t"] == datetime(2024, 1, 1, 10, 0, 0, 1, tzinfo=UTC)


def test_both_json_readers_cut_out_the_same_texts():
    """The large and the small way to read statistics agree."""
    documents = pa.array(
        [
            '{"numRecords":3,"minValues":{"a":1,"s":{"b":"x\\"y","c/d":null}},"x":[1]}',
            None,
            '{"minValues":{"a":{"z":1}},"numRecords":4}',
            "{}",
            '{"minValues":{"a":-1.5,"s":null}}',
        ]
    )
    paths = [
        ("numRecords",),
        ("minValues", "a"),
        ("minValues", "s", "b"),
        ("minValues", "s", "c/d"),
        ("no", "where"),
    ]
    small = [text.to_pylist() for text in texts_by_msgspec(documents, paths)]
    assert small == [text.to_pylist() for text in _texts_by_duckdb(documents, paths)]
    assert small == [
        ["3", None, "4", None, None], ["1", None, None, None, "-1.5"], ['x"y', None, None, None, None],
        [None] * 5, [None] * 5,
    ]  # fmt: skip


def test_row_counts_are_found_wherever_they_stand():
    """A12."""
    documents = [
        '{"numRecords":12,"é":1}',
        '{ "a":{"numRecords":9}, "numRecords" : 5}',
        "{}",
        None,
        '{"numRecords":7}',
    ]
    assert record_counts(pa.array(documents)).to_pylist() == [12, 5, None, None, 7]


def test_paths_are_decoded_as_a_whole_column():
    """K2."""
    written = ["a", "b%20c", "x=%2520/y z", "x=%C3%A9/%41", None, "q%zz", "p/%ff", "%61/b/%62"]
    assert decode_paths(pa.array(written)).to_pylist() == [
        "a", "b c", "x=%20/y z", "x=é/A", None, "q%zz", "p/%ff", "a/b/b",
    ]  # fmt: skip


def test_what_cannot_be_typed_is_not_known():
    assert typed(pa.array(["1", "x", None, "9999999999"]), pa.int32()).to_pylist() == [1, None, None, None]
