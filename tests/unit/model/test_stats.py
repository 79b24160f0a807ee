"""Statistics collected from rows, merged, and read back from adds."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from indextables.model.actions import AddAction
from indextables.model.stats import (
    FileStats,
    StatsCollector,
    collect,
    indexed_columns,
    merge,
    of_add,
    statistics_fields,
)

UTC = pa.timestamp("us", "UTC")


def stats_of(kind, values, **options):
    schema = pa.schema([("c", kind)])
    return collect(pa.table([pa.array(values, kind)], schema=schema), schema, options or None)


@pytest.mark.parametrize(
    ("kind", "values", "least", "greatest"),
    [
        (pa.int64(), [10, 9, None], "9", "10"),
        (pa.int32(), [-5, 3], "-5", "3"),
        (pa.float64(), [2.5, -1.0], "-1.0", "2.5"),
        (pa.decimal128(10, 2), [Decimal("9.50"), Decimal("10.00")], "9.50", "10.00"),
        (pa.bool_(), [True, False], "false", "true"),
        (pa.date32(), [dt.date(1969, 12, 31), dt.date(2024, 1, 1)], "1969-12-31", "2024-01-01"),
        (UTC, [-1, 1], "-1", "1"),
        (pa.timestamp("us"), [dt.datetime(1970, 1, 1, 0, 0, 1)], "1000000", "1000000"),
        (pa.string(), ["b", "\U0010ffff", "\ue000", None], "b", "\U0010ffff"),
    ],
)  # fmt: skip
def test_minima_and_maxima_are_the_text_of_their_type(kind, values, least, greatest):
    """H5: numbers by value, strings by bytes, dates ISO, timestamps microseconds."""
    found = stats_of(kind, values)
    assert (found.min_values, found.max_values) == ({"c": least}, {"c": greatest})
    assert (found.num_records, found.null_count) == (len(values), {"c": values.count(None)})


def test_a_column_with_nan_has_no_maximum():
    """H5, H11: NaN is above everything, and the minimum is that of the numbers."""
    found = stats_of(pa.float64(), [1.0, math.nan, -2.0])
    assert (found.min_values, found.max_values) == ({"c": "-2.0"}, {})
    assert stats_of(pa.float32(), [math.nan]) == FileStats(1, {}, {}, {"c": 0})


def test_infinities_are_bounds_and_zero_has_both_signs():
    """H5: a reader that orders -0.0 below 0.0 still finds both inside."""
    assert stats_of(pa.float64(), [math.inf, -math.inf]).max_values == {"c": "Infinity"}
    for values in ([0.0], [-0.0]):
        found = stats_of(pa.float64(), values)
        assert (found.min_values, found.max_values) == ({"c": "-0.0"}, {"c": "0.0"})


def test_columns_of_nulls_and_files_without_rows_have_only_counts():
    assert stats_of(pa.int32(), [None, None]) == FileStats(2, {}, {}, {"c": 2})
    assert stats_of(pa.string(), []) == FileStats(0, {}, {}, {"c": 0})


def test_structs_have_statistics_by_leaf_and_other_nested_columns_count_nulls():
    schema = pa.schema(
        [
            ("a", pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))])),
            ("l", pa.list_(pa.int32())),
            ("b", pa.binary()),
            ("d.t", pa.int32()),
        ]
    )
    rows = [
        {"a": {"x": 1, "y": {"z": "m"}}, "l": [1], "b": b"q", "d.t": 5},
        {"a": None, "l": None, "b": None, "d.t": None},
        {"a": {"x": 3, "y": None}, "l": [], "b": b"", "d.t": 4},
    ]
    found = collect(pa.Table.from_pylist(rows, schema=schema), schema)
    assert found.min_values == {"a.x": "1", "a.y.z": "m", "d.t": "4"}
    assert found.max_values == {"a.x": "3", "a.y.z": "m", "d.t": "5"}
    assert found.null_count == {"a.x": 1, "a.y.z": 2, "l": 1, "b": 1, "d.t": 1}
    assert [field.name for field in statistics_fields(schema)] == ["a.x", "a.y.z", "d.t"]


def test_dates_and_timestamps_beyond_python_are_collected():
    assert stats_of(UTC, [1 << 62]).max_values == {"c": str(1 << 62)}
    assert stats_of(pa.date32(), [5_000_000]).max_values == {"c": "+15659-07-15"}


def names(schema, **options):
    return [field.name for field in indexed_columns(schema, options)]


def test_the_first_columns_get_statistics_and_named_ones_beat_them():
    """H8: dataSkippingStatsColumns beats dataSkippingNumIndexedCols (32; -1 all; 0 none)."""
    schema = pa.schema([(f"c{number}", pa.int32()) for number in range(40)])
    assert len(names(schema)) == 32
    assert len(names(schema, dataSkippingNumIndexedCols=-1)) == 40
    assert names(schema, dataSkippingNumIndexedCols=0) == []
    assert names(schema, dataSkippingNumIndexedCols=0, dataSkippingStatsColumns="C39, c2") == ["c2", "c39"]


def test_naming_a_struct_names_its_leaves():
    """H8: leaves count one by one, and a struct's name stands for all of them."""
    schema = pa.schema([("a", pa.struct([("x", pa.int32()), ("y", pa.int32())])), ("b", pa.int32())])
    assert names(schema, dataSkippingStatsColumns="a") == ["a.x", "a.y"]
    assert names(schema, dataSkippingNumIndexedCols=2) == ["a.x", "a.y"]


@pytest.mark.parametrize("name", ["p", "Day"])
def test_partition_columns_get_none(name):
    schema = pa.schema([(name, pa.int32()), ("c", pa.int32())])
    rows = pa.table({name: pa.array([1], pa.int32()), "c": pa.array([2], pa.int32())})
    assert collect(rows, schema, None, [name]).min_values == {"c": "2"}


def test_batches_give_what_the_whole_gives():
    schema = pa.schema([("f", pa.float64()), ("s", pa.string())])
    whole = pa.table([pa.array([1.0, math.nan, None, -5.0]), pa.array(["b", "a", None, "c"])], schema=schema)
    collector = StatsCollector(schema)
    for batch in whole.to_batches(max_chunksize=1):
        collector.update(batch)
    assert collector.finish() == collect(whole, schema) == collect(whole.to_batches(), schema)


def test_merged_statistics_hold_for_all_rows_together():
    schema = pa.schema([("c", pa.int32()), ("s", pa.string())])
    left = FileStats(2, {"c": "9", "s": "b"}, {"c": "9", "s": "b"}, {"c": 0, "s": 1})
    right = FileStats(3, {"c": "10", "s": "a"}, {"c": "11", "s": "z"}, {"c": 1, "s": 0})
    assert merge([left, right], schema) == FileStats(
        5, {"c": "9", "s": "a"}, {"c": "11", "s": "z"}, {"c": 1, "s": 1}
    )
    assert merge([], schema) == FileStats(0)


def test_what_one_part_does_not_know_is_unknown_unless_it_is_all_null():
    schema = pa.schema([("c", pa.int32())])
    known, silent, empty = (
        FileStats(1, {"c": "1"}, {"c": "2"}, {"c": 0}),
        FileStats(1),
        FileStats(4, {}, {}, {"c": 4}),
    )
    assert merge([known, silent], schema) == FileStats(2, {}, {}, {})
    assert merge([known, empty], schema) == FileStats(5, {"c": "1"}, {"c": "2"}, {"c": 4})
    assert merge([known, FileStats(None, {"c": "zz"}, {"c": "3"})], schema) == FileStats(
        None, {}, {"c": "3"}, {}
    )


def test_truncated_texts_merge_by_their_bounds():
    """H3: the prefix counts as the least, its successor as the greatest."""
    schema = pa.schema([("s", pa.string())])
    cut, whole = (
        FileStats(1, {"s": "ab [TRUNCATED]"}, {"s": "ab [TRUNCATED]"}),
        FileStats(1, {"s": "ab\x00"}, {"s": "abz"}),
    )
    assert merge([cut, whole], schema) == FileStats(2, {"s": "ab [TRUNCATED]"}, {"s": "ab [TRUNCATED]"}, {})
    endless = FileStats(1, {"s": "a"}, {"s": "\U0010ffff [TRUNCATED]"})
    assert merge([endless, whole], schema).max_values == {}


def test_an_add_is_read_wherever_its_statistics_stand():
    top = AddAction(
        path="a",
        num_records=3,
        min_values={"c": "1", "n": None},
        max_values={"c": "2"},
        stats='{"nullCount":{"c":1}}',
    )
    assert of_add(top) == FileStats(3, {"c": "1"}, {"c": "2"}, {"c": 1})
    inside = AddAction(
        path="a",
        stats='{"numRecords":"3","minValues":{"c":1,"s":{"x":true}},"maxValues":{"c":2.5},"nullCount":{"c":1.0,"s":{"x":0}}}',
    )
    assert of_add(inside) == FileStats(3, {"c": "1", "s.x": "true"}, {"c": "2.5"}, {"c": 1, "s.x": 0})
    for broken in ("", "{", "[]", '{"nullCount": 5, "numRecords": "x", "minValues": 3}'):
        assert of_add(AddAction(path="a", stats=broken)) == FileStats()


def test_the_stats_text_carries_what_has_no_other_place():
    assert FileStats(3, {"c": "1"}, {"c": "1"}, {"c": 2}).stats_json() == '{"nullCount":{"c":2}}'
    assert FileStats(3).stats_json() is None
