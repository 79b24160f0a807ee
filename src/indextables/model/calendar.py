"""Dates and instants as Spark holds them: days and microseconds since 1970, proleptic Gregorian.

Python's `datetime` ends at the years 1 and 9999 while Spark goes far beyond
both, so the log's texts are read and written with plain integer arithmetic.
"""

from __future__ import annotations

import re

US_PER_SECOND = 1_000_000
US_PER_DAY = 86_400 * US_PER_SECOND
_DAYS_PER_ERA = 146_097
_YEARS_PER_ERA = 400
_FOUR_DIGITS = 9999
_DAYS_0000_TO_1970 = 719_468  # from 0000-03-01, where the reckoning below starts

_DATE = re.compile(r"([+-]?\d{4,7})-(\d{2})-(\d{2})\Z", re.ASCII)
_TIMESTAMP = re.compile(
    r"([+-]?\d{4,7}-\d{2}-\d{2})[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
    r"(Z|[+-]\d{2}:?\d{2}(?::?\d{2})?)?\Z",
    re.ASCII,
)


def days_of(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date; ValueError when there is no such date."""
    if not (1 <= month <= 12 and 1 <= day <= days_in_month(year, month)):  # noqa: PLR2004 - months of a year
        raise ValueError(f"{year:04d}-{month:02d}-{day:02d} is not a date")
    shifted = year - (month <= 2)  # noqa: PLR2004 - years that start in March end with the leap day
    era, year_of_era = divmod(shifted, _YEARS_PER_ERA)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _DAYS_PER_ERA + day_of_era - _DAYS_0000_TO_1970


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01."""
    era, day_of_era = divmod(days + _DAYS_0000_TO_1970, _DAYS_PER_ERA)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    month = (shifted_month + 2) % 12 + 1
    year = year_of_era + era * _YEARS_PER_ERA + (month <= 2)  # noqa: PLR2004 - see days_of
    return year, month, day_of_year - (153 * shifted_month + 2) // 5 + 1


def days_in_month(year: int, month: int) -> int:
    """Length of a month."""
    if month == 2:  # noqa: PLR2004 - February
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % _YEARS_PER_ERA == 0) else 28
    return 30 if month in {4, 6, 9, 11} else 31


def format_date(days: int) -> str:
    """Write a date in ISO form; years beyond four digits carry a sign, as in Java."""
    year, month, day = date_of(days)
    sign = "-" if year < 0 else "+" if year > _FOUR_DIGITS else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def parse_date(text: str) -> int:
    """Read an ISO date into days; ValueError on anything else."""
    match = _DATE.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not an ISO date")
    return days_of(int(match.group(1)), int(match.group(2)), int(match.group(3)))


def format_timestamp(micros: int) -> str:
    """Write microseconds since 1970 as `yyyy-MM-ddTHH:mm:ss.ffffff`, without a zone."""
    days, rest = divmod(micros, US_PER_DAY)
    seconds, fraction = divmod(rest, US_PER_SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{format_date(days)}T{hour:02d}:{minute:02d}:{second:02d}.{fraction:06d}"


def parse_timestamp(text: str) -> tuple[int, bool]:
    """Read an ISO date and time: microseconds since 1970, and whether the text names its offset.

    With an offset the result is the instant; without one it is the local time
    as if it were UTC. Digits beyond microseconds are cut, as Spark does.
    """
    match = _TIMESTAMP.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not an ISO date and time")
    date, hour, minute, second, fraction, offset = match.groups()
    clock = int(hour), int(minute), int(second or 0)
    if clock > (23, 59, 59) or clock[1] > 59 or clock[2] > 59:  # noqa: PLR2004 - the clock
        raise ValueError(f"{text!r} is not a time of day")
    micros = parse_date(date) * US_PER_DAY + (clock[0] * 3600 + clock[1] * 60 + clock[2]) * US_PER_SECOND
    micros += int((fraction or "0").ljust(6, "0")[:6])
    return micros - (parse_offset(offset) if offset else 0), offset is not None


def parse_offset(text: str) -> int:
    """Read `Z` or `+hh:mm[:ss]` into microseconds east of Greenwich."""
    if text == "Z":
        return 0
    digits = text[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6] or 0)
    if seconds > 18 * 3600 or int(digits[2:4]) > 59 or int(digits[4:6] or 0) > 59:  # noqa: PLR2004 - the clock
        raise ValueError(f"{text!r} is not a zone offset")
    return (-seconds if text[0] == "-" else seconds) * US_PER_SECOND
