"""Times cut to a unit of local time."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from indextables.predicate.evaluate.times import truncated
from indextables.predicate.evaluate.values import Computed, compute, of_literal
from indextables.predicate.functions import call
from indextables.predicate.tree import Call, Column, Literal

UTC = pa.timestamp("us", "UTC")


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "America/St_Johns", "Africa/Monrovia", "+05:45"])
def test_many_times_are_cut_as_each_is_cut_alone(zone):
    """H11: around changes of the clock, before and after zones were off by whole minutes."""
    rng = Random(zone)
    near = [1_710_054_000, 1_730_613_600, 520_000_000, 63_593_070, 0, -86_400 * 40_000]
    instants = [rng.choice(near) * 1_000_000 + rng.randrange(-(10**11), 10**11) for _ in range(400)]
    rows = Computed(pa.array(instants, pa.int64()).cast(UTC))
    for unit in ("second", "minute", "hour", "day", "week", "month", "quarter", "year"):
        word = Literal(unit, pa.string())
        cut = call("date_trunc", [word, Column(("ts",), UTC)], zone)
        assert isinstance(cut, Call)
        found = compute(cut, [Computed(of_literal(word, len(instants))), rows]).values
        assert found.cast(pa.int64()).to_pylist() == [truncated(micros, unit, zone) for micros in instants]
