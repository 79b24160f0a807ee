"""Parts of dates and times, for arrays; local times are in the zone of the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.lazy import pc
from indextables.model.calendar import US_PER_DAY, US_PER_SECOND, date_of, days_of
from indextables.predicate.evaluate.casts import local_times_of
from indextables.predicate.evaluate.each import applied
from indextables.predicate.tree import Call, Literal
from indextables.predicate.zones import start_of_day, to_instant, to_local, zone_of

_SMALL = {"microsecond": 1, "millisecond": 1000, "second": US_PER_SECOND}
_MINUTE_US = 60 * US_PER_SECOND
_WHOLE_MINUTES_US = days_of(1973, 1, 1) * US_PER_DAY


def _floored(micros: Any, unit: int) -> tuple[np.ndarray, np.ndarray]:
    held = pc.fill_null(micros.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return np.floor_divide(held, unit), np.mod(held, unit)


def days_of_times(local: Any) -> Any:
    """The days since 1970 of local times."""
    numbers = pa.array(_floored(local, US_PER_DAY)[0].astype(np.int32), pa.int32())
    return pc.if_else(pc.is_valid(local), numbers, pa.scalar(None, pa.int32()))


def date_parts(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    """`year`, `month` and `day`, for all dates there are."""
    days = pc.fill_null(args[0].cast(pa.int32()), 0).to_numpy(zero_copy_only=False)
    dates = days.astype(np.int64).astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    if call.name == "year":
        numbers = months.astype("datetime64[Y]").astype(np.int64) + 1970
    elif call.name == "month":
        numbers = np.mod(months.astype(np.int64), 12) + 1
    else:
        numbers = (dates - months.astype("datetime64[D]")).astype(np.int64) + 1
    part = pa.array(numbers.astype(np.int32), pa.int32())
    return pc.if_else(pc.is_valid(args[0]), part, pa.scalar(None, pa.int32())), None


def time_parts(call: Call, args: Sequence[Any], zone: str) -> tuple[Any, Any]:
    """`hour`, `minute` and `second` of the local time."""
    local = local_times_of(args[0], zone) if args[0].type.tz else args[0]
    unit, period = {"hour": (3600, 24), "minute": (60, 60), "second": (1, 60)}[call.name]
    numbers = pa.array(np.mod(_floored(local, unit * US_PER_SECOND)[0], period).astype(np.int32), pa.int32())
    return pc.if_else(pc.is_valid(local), numbers, pa.scalar(None, pa.int32())), None


def truncated(micros: int, unit: str, zone: str) -> int:
    """An instant cut to a unit of local time, as Spark's `date_trunc` does.

    >>> truncated(90_000_000, "minute", "UTC")
    60000000
    """
    small = _SMALL.get(unit)
    if small is not None:
        return micros - micros % small
    place = zone_of(zone)
    local = to_local(micros, place)
    clock = {"minute": 60 * US_PER_SECOND, "hour": 3600 * US_PER_SECOND, "day": US_PER_DAY}.get(unit)
    if clock is not None:
        cut = local - local % clock
        # An hour that happens twice keeps the offset it has.
        same_offset = micros - (local - cut)
        return same_offset if to_local(same_offset, place) == cut else to_instant(cut, place)
    days = local // US_PER_DAY
    year, month, _ = date_of(days)
    if unit == "week":
        return start_of_day(days - (days + 3) % 7, place)
    first = {"year": 1, "quarter": (month - 1) // 3 * 3 + 1, "month": month}[unit]
    return start_of_day(days_of(year, first, 1), place)


def truncations(call: Call, args: Sequence[Any], zone: str) -> tuple[Any, Any]:
    """`date_trunc` of instants."""
    unit = call.args[0]
    assert isinstance(unit, Literal)
    instants = args[1].cast(pa.int64())
    # Since then every zone is off by whole minutes, and its clocks change at whole minutes.
    minutes = pc.multiply(pc.divide(instants, _MINUTE_US), _MINUTE_US)
    if unit.value not in _SMALL:
        instants = pc.if_else(pc.greater_equal(instants, _WHOLE_MINUTES_US), minutes, instants)
    distinct = instants.dictionary_encode()
    rows = [[micros] for micros in distinct.dictionary.to_pylist()]
    cut, _ = applied(lambda micros: truncated(micros, unit.value, zone), rows, call.type)
    return cut.take(distinct.indices), None
