"""Arrays of integers and texts are what pyarrow makes of the same values."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.model.arrays import from_values

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
