"""Rows that are decoded alone are the rows that whole pages hold, value for value, in every type that allows it."""

from __future__ import annotations

import datetime as dt
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.split.open_splits import open_split
from indextables.split.read import rows as readers
from indextables.split.read.sparse import WHOLE_FILE, can_decode, decode_rows
from support.splits import build_split

INTEGERS = {f"int{bits}": (getattr(pa, f"int{bits}")(), bits) for bits in (8, 16, 32, 64)}
FARTHEST = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)

VALUES = {
    "flag": (pa.bool_(), st.booleans()),
    **{
        name: (kind, st.integers(-(1 << bits - 1), (1 << bits - 1) - 1))
        for name, (kind, bits) in INTEGERS.items()
    },
    "single": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "text": (pa.string(), st.text(max_size=40)),
    "bytes": (pa.binary(), st.binary(max_size=40)),
    "day": (pa.date32(), st.dates()),
    "moment": (pa.timestamp("us", "UTC"), st.datetimes(max_value=FARTHEST).map(lambda at: at.replace(tzinfo=dt.UTC))),
    "local": (pa.timestamp("us"), st.datetimes(max_value=FARTHEST)),
    "money": (pa.decimal128(12, 2), st.integers(-(10**12) + 1, 10**12 - 1).map(lambda n: Decimal(n).scaleb(-2))),
    "huge": (pa.decimal128(38, 10), st.integers(-(10**15), 10**15).map(lambda n: Decimal(n).scaleb(-10))),
}  # fmt: skip


@st.composite
def tables(draw):
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=5, unique=True))
    rows = draw(st.integers(2, 60))
    columns = {}
    for name in names:
        kind, values = VALUES[name]
        few = draw(st.lists(st.none() | values, min_size=1, max_size=8))
        # Many rows from few values: some columns get a dictionary, some pages are full of nulls.
        at = draw(st.lists(st.integers(0, len(few) - 1), min_size=rows, max_size=rows))
        columns[name] = pa.array([few[place] for place in at], kind)
    wanted = draw(st.sets(st.integers(0, rows - 1), min_size=1))
    return pa.table(columns), sorted(wanted)


@settings(max_examples=60, deadline=None)
@given(tables(), st.booleans())
def test_rows_decoded_alone_are_the_rows_of_whole_pages(given, large):
    """Also as if the file were large: then several rows of it share a bit."""
    table, wanted = given
    with tempfile.TemporaryDirectory() as directory:
        built = build_split(Path(directory), table)
        reader = open_split(built.store, built.ref)
        columns = table.schema.names
        assert can_decode(str(built.path), reader._schema, columns)
        total = WHOLE_FILE + 1 if large else table.num_rows
        alone = decode_rows(str(built.path), reader._schema, columns, np.array(wanted), total)
        whole = reader.read_groups(list(reader.groups), columns).take(pa.array(wanted))
        assert alone.schema.equals(whole.schema)
        # Compared as bytes are, because no number equals NaN.
        assert str(alone.to_pylist()) == str(whole.to_pylist())
        assert alone.num_rows == len(wanted)


@pytest.mark.parametrize("most", [0, 0.003, 4])
@settings(max_examples=15, deadline=None)
@given(wanted=st.sets(st.integers(0, 69_999), min_size=1, max_size=300))
def test_rows_come_in_order_whatever_a_piece_holds(many, most, wanted):
    table, built = many
    rows = sorted(wanted)
    before, readers.GROUPS_AT_ONCE = readers.GROUPS_AT_ONCE, most
    try:
        parts = list(open_split(built.store, built.ref).fetch(np.array(rows), ["id", "text"]))
    finally:
        readers.GROUPS_AT_ONCE = before
    assert [row for some, _ in parts for row in some] == rows
    assert pa.concat_tables([part for _, part in parts]).equals(table.take(pa.array(rows)))


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Three row groups."""
    table = pa.table(
        {
            "id": pa.array(range(70_000), pa.int64()),
            "text": [f"{at * 7919 % 70_000:x}" for at in range(70_000)],
        }
    )
    return table, build_split(tmp_path_factory.mktemp("many"), table)
