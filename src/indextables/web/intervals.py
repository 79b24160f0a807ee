"""How wide the bars of a histogram are: a round length of time that gives a readable number of them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

_S, _M, _H, _D = 1, 60, 3600, 86_400
LADDER = (
    ("1ms", 0.001), ("10ms", 0.01), ("100ms", 0.1), ("1s", _S), ("5s", 5 * _S), ("10s", 10 * _S),
    ("30s", 30 * _S), ("1m", _M), ("5m", 5 * _M), ("10m", 10 * _M), ("30m", 30 * _M), ("1h", _H),
    ("3h", 3 * _H), ("6h", 6 * _H), ("12h", 12 * _H), ("1d", _D), ("1w", 7 * _D), ("1mon", 31 * _D),
    ("3mon", 92 * _D), ("1y", 366 * _D), ("10y", 3660 * _D),
)  # fmt: skip
"""Intervals as a histogram takes them, with their length in seconds."""

MOST_BARS = 90


def interval_for(start: date | datetime, end: date | datetime) -> str:
    """The shortest interval that cuts a range into at most `MOST_BARS` bars; days are never cut."""
    whole_days = not isinstance(start, datetime)
    length = (_instant(end) - _instant(start)).total_seconds()
    for name, seconds in LADDER:
        if length / seconds <= MOST_BARS and not (whole_days and seconds < _D):
            return name
    return LADDER[-1][0]


def length_of(interval: str) -> timedelta:
    """About how long an interval is."""
    return timedelta(seconds=dict(LADDER)[interval])


def _instant(value: date | datetime) -> datetime:
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value if value.tzinfo else value.replace(tzinfo=UTC)
