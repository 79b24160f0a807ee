"""Arrays of integers and texts are what pyarrow makes of the same values."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.model.arrays import booleans, from_values, scalar
from indextables.model.arrow_internals import cast_values, filter_values, take_rows

_INTEGERS = st.none() | st.integers(-(2**63), 2**63 - 1)
_TEXTS = st.none() | st.text(max_size=20)


@given(st.lists(_INTEGERS, max_size=40))
def test_integers_are_those_of_pyarrow(values):
    made = from_values(values, pa.int64())
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.int64()))


@given(st.lists(_TEXTS, max_size=40))
def test_texts_are_those_of_pyarrow(values):
    made = from_values(values, pa.string())
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.string()))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([None, None], pa.int64()),
        ([None, None], pa.string()),
        ([0, None, 1], pa.int64()),
        (["", None, "plain", "größe"], pa.string()),
        ([1, 2.0], pa.int64()),
        ([True, None], pa.bool_()),
    ],
)
def test_nulls_and_mixed_types_are_those_of_pyarrow(values, kind):
    made = from_values(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))
    assert made.null_count == values.count(None)


@pytest.mark.parametrize(
    ("values", "kind"),
    [([2**70], pa.int64()), (["\ud800"], pa.string()), ([3], pa.string())],
)
def test_what_does_not_fit_is_an_error_as_it_is_with_pyarrow(values, kind):
    with pytest.raises((OverflowError, UnicodeEncodeError, pa.ArrowException)):
        from_values(values, kind)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, pa.bool_()),
        (None, pa.bool_()),
        (-(2**63), pa.int64()),
        (7, pa.int32()),
        (7, pa.int8()),
        (0.5, pa.float64()),
        (0.5, pa.float32()),
        ("größe", pa.string()),
        (19_000, pa.date32()),
        (1_700_000_000_123_456, pa.timestamp("us", "UTC")),
        (1_700_000_000_123_456, pa.timestamp("us")),
        (Decimal("1.50"), pa.decimal128(10, 2)),
        (b"a", pa.binary()),
        (None, pa.decimal128(10, 2)),
    ],
)
def test_a_single_value_is_that_of_pyarrow(value, kind):
    made = scalar(value, kind)
    assert made.type == kind
    assert made.equals(pa.scalar(value, kind))


@pytest.mark.parametrize(("value", "kind"), [(2**40, pa.int32()), ("a", pa.int64())])
def test_a_single_value_of_another_type_is_an_error_as_it_is_with_pyarrow(value, kind):
    with pytest.raises((OverflowError, pa.ArrowException)):
        scalar(value, kind)


@given(st.lists(_TEXTS, min_size=1, max_size=40), st.data())
def test_picked_and_cast_values_are_those_of_the_methods_of_pyarrow(values, data):
    table = pa.table(
        {"text": from_values(values, pa.string()), "at": from_values(range(len(values)), pa.int64())}
    )
    at = from_values(data.draw(st.lists(st.integers(0, len(values) - 1), max_size=40)), pa.int64())
    assert take_rows(table, at).equals(table.take(at))
    mask = booleans(len(text or "") % 2 for text in values)
    assert filter_values(table["at"].chunk(0), mask).equals(table["at"].chunk(0).filter(mask))
    coded = table["text"].dictionary_encode()
    assert cast_values(coded, pa.string()).equals(table["text"])


def test_a_value_that_does_not_fit_the_other_type_is_refused():
    with pytest.raises(pa.ArrowInvalid, match="not in range"):
        cast_values(pa.chunked_array([from_values([1, 1 << 40], pa.int64())]), pa.int32())
