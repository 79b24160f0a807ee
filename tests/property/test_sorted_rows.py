"""Rows in the order of columns: what `scan(sort=)` and `search(sort=)` give is what Python sorts."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import indextables as it

SCHEMA = pa.schema(
    [
        ("n", pa.int32()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("s", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("d", pa.date32()),
        ("p", pa.decimal128(10, 2)),
        ("b", pa.bool_()),
        ("y", pa.binary()),
        ("text", pa.string()),
        ("row", pa.int64()),
    ]
)
LONG = "x" * 70
VALUES = {
    "n": st.integers(-3, 3) | st.sampled_from([-(2**31), 2**31 - 1]),
    "f": st.sampled_from([float("nan"), -0.0, 0.0, 1.5, -1.5, float("inf"), float("-inf"), 5e-324]),
    "g": st.sampled_from([float("nan"), -0.0, 0.0, 0.5, 2.0**100, float("inf")]),
    "s": st.sampled_from(["", "a", "A", "é", "\uffff", "\U0001f600", LONG, LONG + "a", LONG + "b", LONG + "\U0001f600"]),
    "t": st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(lambda at: at.replace(tzinfo=UTC)),
    "d": st.dates(date(1, 1, 1), date(9999, 12, 31)),
    "p": st.integers(-5, 5).map(lambda n: Decimal(n).scaleb(-2)),
    "b": st.booleans(),
    "y": st.binary(max_size=2),
    "text": st.sampled_from(["common", "common rare"]),
}  # fmt: skip
COLUMNS = [name for name in VALUES if name != "text"]


@st.composite
def splits(draw):
    """The rows of some splits; of each, which columns have values at all."""
    made, number = [], 0
    for _ in range(draw(st.integers(1, 6))):
        filled = draw(st.sets(st.sampled_from(COLUMNS)))
        rows = []
        for _ in range(draw(st.integers(1, 6))):
            row = {name: draw(st.none() | VALUES[name]) if name in filled else None for name in COLUMNS}
            rows.append({**row, "text": draw(VALUES["text"]), "row": number})
            number += 1
        made.append(rows)
    return made


def place(value):
    """Spark's order of single values: null, then numbers, then NaN; texts by their bytes; one zero."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value + 0.0)
    return (1, value.encode() if isinstance(value, str) else value)


def in_order(rows, keys):
    for name, descends in reversed(keys):
        # A reversed sort of Python keeps equal rows in their order too.
        rows = sorted(rows, key=lambda row: place(row[name]), reverse=descends)
    return rows


@settings(
    max_examples=40, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(
    made=splits(),
    keys=st.lists(
        st.tuples(st.sampled_from(COLUMNS), st.booleans()),
        min_size=1,
        max_size=2,
        unique_by=lambda key: key[0],
    ),
    limit=st.none() | st.integers(0, 12),
    statistics=st.sampled_from(["all", "none", "cut"]),
    narrowed=st.booleans(),
)
def test_rows_come_in_the_order_that_python_gives(tmp_path_factory, made, keys, limit, statistics, narrowed):
    options = {"indexing.typemap.text": "text"}
    if statistics == "none":
        options["dataSkippingNumIndexedCols"] = "0"
    if statistics == "cut":
        options |= {"stats.truncation.maxLength": "4", "stats.truncation.strategy": "truncate"}
    table = it.Table.create(tmp_path_factory.mktemp("sorted") / "t", SCHEMA, options=options)
    for rows in made:
        table.append(pa.Table.from_pylist(rows, SCHEMA), options=options)
    every = table.scan(columns=["row", "text", *COLUMNS]).to_pylist()
    sort = ", ".join(f"{name.upper()} {'DESC' if descends else ''}" for name, descends in keys)
    where = "row <> 3" if narrowed else None
    kept = [row for row in every if not narrowed or row["row"] != 3]
    expected = [row["row"] for row in in_order(kept, keys)]
    scanned = table.scan(where, ["row"], limit, sort=sort)
    assert scanned.to_arrow().column("row").to_pylist() == expected[:limit]
    rare = {row["row"] for row in kept if "rare" in row["text"]}
    searched = table.search("rare", where, ["row"], limit, sort=sort)
    assert searched.to_arrow().column("row").to_pylist() == [row for row in expected if row in rare][:limit]


@pytest.mark.parametrize("sort", ["n DESC", "n"])
def test_the_ends_of_a_table_written_in_order_are_read_from_there(tmp_path, sort):
    schema = pa.schema([("n", pa.int64()), ("text", pa.string())])
    table = it.Table.create(tmp_path / "t", schema, options={"indexing.typemap.text": "text"})
    for split in range(20):
        numbers = range(split * 100, split * 100 + 100)
        table.append(pa.table({"n": numbers, "text": ["common"] * 100}, schema))
    numbers = list(range(2000))
    expected = (numbers[::-1] if "DESC" in sort else numbers)[:150]
    for found in (
        table.scan(None, ["n"], 150, sort=sort),
        table.search("common", None, ["n"], 150, sort=sort),
    ):
        assert found.to_arrow().column("n").to_pylist() == expected
        assert table.last_scan.files_read == 2
        assert table.last_scan.files.skipped_by_statistics == 18


def test_a_split_that_only_ties_with_the_last_row_is_asked_too(tmp_path):
    """The split with the greatest value has enough rows, and another has a row that comes before its last."""
    schema = pa.schema([("k", pa.int64()), ("n", pa.int64())])
    table = it.Table.create(tmp_path / "t", schema)
    for rows in ([(5, 0)], [(6, 9), (5, 9)], [(4, 0)]):
        table.append(pa.table({"k": [k for k, _ in rows], "n": [n for _, n in rows]}, schema))
    found = table.scan(sort="k DESC, n", limit=2)
    assert found.to_pylist() == [{"k": 6, "n": 9}, {"k": 5, "n": 0}]
    assert table.last_scan.files_read == 2
