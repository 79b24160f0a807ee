"""Functions of Spark columns that compute with Arrow arrays, whatever the version of Spark calls them by."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import indextables as it
from indextables.spark.versions import arrow_udf

INSTANT = datetime(2024, 3, 10, 7, 30, 0, 123456, UTC)
NESTED = pa.struct(
    [
        ("n", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("l", pa.timestamp("us")), ("d", pa.decimal128(10, 2)),
        ("b", pa.bool_()), ("day", pa.date32()), ("f", pa.list_(pa.float64())), ("m", pa.map_(pa.int32(), pa.string())),
    ]
)  # fmt: skip
COLUMNS = {
    "text": pa.array(["a", None, "ü%\n"]),
    "bytes": pa.array([b"\x00\xff", None, b""]),
    "long": pa.array([2**62 + 1, None, -1], pa.int64()),
    "byte": pa.array([127, None, -1], pa.int8()),
    "float": pa.array([0.1, None, float("-inf")], pa.float32()),
    "double": pa.array([1e-300, None, float("nan")], pa.float64()),
    "truth": pa.array([True, None, False]),
    "day": pa.array([date(1, 1, 1), None, date(9999, 12, 31)]),
    "instant": pa.array([datetime(1, 1, 1, 0, 0, 0, 1, UTC), None, INSTANT], pa.timestamp("us", "UTC")),
    "local": pa.array([datetime(1, 1, 2, 0, 0, 0, 1), None, datetime(2024, 3, 10, 2, 30)], pa.timestamp("us")),
    "decimal": pa.array([Decimal("12345678901234567890.123456789"), None, Decimal("1E-10")], pa.decimal128(38, 10)),
    "list": pa.array([["x", None], None, []], pa.list_(pa.string())),
    "map": pa.array([[("k", "v"), ("n", None)], None, []], pa.map_(pa.string(), pa.string())),
    "nested": pa.array(
        [
            {
                "n": 2**62 + 1, "t": INSTANT, "l": datetime(2024, 3, 10, 2, 30), "d": Decimal("1.20"), "b": True,
                "day": date(2024, 2, 29), "f": [1.5, None, float("inf")], "m": [(1, "one"), (2, None)],
            },
            None,
            dict.fromkeys(NESTED.names),
        ],
        NESTED,
    ),
}  # fmt: skip


def make_shown() -> Callable[..., pa.Array]:
    """A function inside another is sent whole: workers that were not started here cannot import this module."""

    def shown(*arrays: pa.Array) -> pa.Array:
        return pa.array([repr([array[at].as_py() for array in arrays]) for at in range(len(arrays[0]))])

    return shown


@pytest.mark.core
def test_a_function_is_given_every_value_as_the_table_has_it(spark, tmp_path):
    path = str(tmp_path / "t")
    table = pa.table(COLUMNS)
    it.write(path, table)
    rows = spark.read.format("indextables").load(path)
    shown = make_shown()
    function = arrow_udf(shown, "string", table.schema.types)
    computed = [row[0] for row in rows.select(function(*table.schema.names)).collect()]
    assert sorted(computed) == sorted(shown(*table.columns).to_pylist())


@pytest.mark.core
def test_a_function_of_no_rows_gives_none(spark):
    none = spark.createDataFrame([], "text string")
    assert none.select(arrow_udf(make_shown(), "string", [pa.string()])("text")).collect() == []


@pytest.mark.core
def test_rows_of_a_stream_are_searched_and_marked_by_every_kind_of_column(spark, tmp_path):
    path = str(tmp_path / "t")
    rows = {
        "n": [1, 2, None],
        "text": ["an error", "all fine", None],
        "tags": [["red"], ["blue", None], None],
    }
    options = {"indexing.typemap.text": "text", "indexing.typemap.tags": "text", "indexing.fastfields": "n"}
    it.write(path, pa.table(rows), options=options)
    stream = spark.readStream.format("indextables").load(path)
    searched = stream.selectExpr(
        "n",
        "text indexquery 'err*' AS error",
        "tags indexquery 'blue' AS blue",
        "_indexall indexquery 'red OR fine' AS either",
        "indexhighlight(text, 'error') AS marked",
    )
    query = searched.writeStream.format("memory").queryName("searched").trigger(availableNow=True).start()
    query.awaitTermination()
    rows_by_number = {row.n: tuple(row)[1:] for row in spark.table("searched").collect()}
    assert rows_by_number == {
        1: (True, False, True, "an <em>error</em>"),
        2: (False, True, True, "all fine"),
        None: (None, None, None, None),
    }
