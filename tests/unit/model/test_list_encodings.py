"""Lists and maps come in several Arrow encodings and are stored in one, value for value."""

from __future__ import annotations

import pyarrow as pa
import pytest

from indextables.errors import SchemaError
from indextables.model.casting import cast_column
from indextables.model.fields import normalise_schema

NUMBERS = pa.list_(pa.field("element", pa.int32()))
ENCODINGS = [
    pa.list_(pa.int32()),
    pa.large_list(pa.int32()),
    pa.list_view(pa.int32()),
    pa.large_list_view(pa.int32()),
]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_every_encoding_of_a_list_keeps_its_values(encoding):
    """The last list, nulls, empty lists and slices included."""
    whole = pa.array([[1], [2, 3], None, [], [4]], encoding)
    for given in (whole, whole.slice(1), whole.slice(1, 2), whole.slice(4), whole.slice(0, 0)):
        stored = cast_column(given, pa.field("x", NUMBERS))
        stored.validate(full=True)
        assert stored.type == NUMBERS
        assert stored.to_pylist() == given.to_pylist()


def test_views_inside_views_keep_their_values():
    values = [[[1], None, []], None, [[2, 3]]]
    given = pa.array(values, pa.list_view(pa.list_view(pa.int32())))
    stored = cast_column(given, pa.field("x", pa.list_(pa.field("element", NUMBERS))))
    stored.validate(full=True)
    assert stored.to_pylist() == values


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.string_view()), pa.list_(pa.large_string()), pa.list_(pa.string_view(), 2)], ids=str
)
def test_texts_in_lists_come_in_any_encoding(kind):
    wanted = pa.list_(pa.field("element", pa.string()))
    whole = pa.array([["a", "b"], None, ["c", None]], kind)
    for given in (whole, whole.slice(1), whole.slice(2)):
        assert cast_column(given, pa.field("x", wanted)).to_pylist() == given.to_pylist()


@pytest.mark.parametrize("value", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_texts_in_maps_come_in_any_encoding(value):
    wanted = pa.map_(pa.string(), pa.field("value", pa.string()))
    whole = pa.array([[("a", "x")], None, [], [("b", None), ("c", "y")]], pa.map_(pa.string(), value))
    for given in (whole, whole.slice(1), whole.slice(3), whole.slice(0, 0)):
        stored = cast_column(given, pa.field("x", wanted))
        stored.validate(full=True)
        assert stored.to_pylist() == given.to_pylist()


def test_nesting_that_no_parquet_reader_would_follow_is_refused():
    kind = pa.int32()
    for _ in range(60):
        kind = pa.list_(kind)
    with pytest.raises(SchemaError, match="'deep' is nested too deeply"):
        normalise_schema(pa.schema([("deep", kind)]))
