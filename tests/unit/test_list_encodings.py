"""Lists come in several Arrow encodings and are stored as one, value for value."""

from __future__ import annotations

import pyarrow as pa
import pytest

from indextables.model.casting import cast_column

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
