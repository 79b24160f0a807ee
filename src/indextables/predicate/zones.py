"""Time zones: from a local time to an instant and back, as Java and therefore Spark does it.

A local time that happened twice is the earlier of the two; one that never
happened is moved on by the length of the gap. Beyond the years of Python's
`datetime` the rules of the nearest calendar year with the same weekdays hold.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from indextables.errors import PredicateError
from indextables.model.calendar import US_PER_DAY, US_PER_SECOND, date_of

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?\Z", re.ASCII)
_UTC = frozenset({"Z", "UTC", "GMT", "UT", "ETC/UTC", "UTC+0", "GMT0"})
_CYCLE_US = 146_097 * US_PER_DAY  # 400 years: the calendar and its weekdays repeat
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - arithmetic on local times
_MIN_YEAR, _MAX_YEAR = 2, 9998

Zone = int | ZoneInfo


@lru_cache(maxsize=256)
def zone_of(name: str) -> Zone:
    """Return a zone: its fixed offset in microseconds, or its rules; PredicateError when there is none."""
    text = name.strip()
    if text.upper() in _UTC:
        return 0
    if match := _OFFSET.match(text):
        sign, hours, minutes, seconds = match.groups()
        total = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
        if total <= 18 * 3600 and int(minutes or 0) < 60 and int(seconds or 0) < 60:  # noqa: PLR2004 - the clock
            return (-total if sign == "-" else total) * US_PER_SECOND
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError) as bad:
        raise PredicateError(
            f"time zone {name!r} is not known; use a region such as Europe/Paris or an offset such as +02:00",
            part=name,
        ) from bad


def to_instant(local_us: int, zone: Zone) -> int:
    """Return the instant of a local time (microseconds of a clock without zone)."""
    if isinstance(zone, int):
        return local_us - zone
    moment = _EPOCH + timedelta(microseconds=local_us + _shift(local_us))
    offset = moment.replace(tzinfo=zone).utcoffset()
    return local_us - _microseconds(offset)


def to_local(instant_us: int, zone: Zone) -> int:
    """Return the local time of an instant."""
    if isinstance(zone, int):
        return instant_us + zone
    shift = _shift(instant_us)
    moment = (_EPOCH + timedelta(microseconds=instant_us + shift)).replace(tzinfo=zone)
    return instant_us + _microseconds(zone.fromutc(moment).utcoffset())


def start_of_day(days: int, zone: Zone) -> int:
    """Return the first instant of a local date: midnight, or the end of the gap that midnight fell into."""
    local = days * US_PER_DAY
    instant = to_instant(local, zone)
    if to_local(instant, zone) == local:
        return instant
    # The time was moved on by the length of the gap; the day begins where the gap ends.
    low, high = instant - US_PER_DAY, instant
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if to_local(middle, zone) >= local else (middle, high)
    return high


def _microseconds(offset: timedelta | None) -> int:
    return 0 if offset is None else offset // timedelta(microseconds=1)


def _shift(micros: int) -> int:
    """Return whole calendar cycles that bring a time into the years Python can hold."""
    year = date_of(micros // US_PER_DAY)[0]
    if year < _MIN_YEAR:
        return math.ceil((_MIN_YEAR - year) / 400) * _CYCLE_US
    if year > _MAX_YEAR:
        return -math.ceil((year - _MAX_YEAR) / 400) * _CYCLE_US
    return 0
