"""Values made presentable: as JSON can carry them, and counts and sizes as people read them."""

from __future__ import annotations

import base64
import datetime as dt
import math
from typing import Any

_STEP = 1024
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(value: float) -> str:
    """A number of bytes in the largest unit that keeps it above one."""
    for unit in _UNITS[:-1]:
        if abs(value) < _STEP:
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= _STEP
    return f"{value:,.1f} {_UNITS[-1]}"


def counted(number: int, noun: str) -> str:
    """A count with its noun, in the singular or the plural: `1 split`, `2 splits`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def plain_value(value: Any) -> Any:
    """A value in a form that JSON can represent, including the contents of lists and dicts.

    Times become ISO text, bytes base64, and infinities and NaN text.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (dt.datetime, dt.date)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {str(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(item) for item in value]
    return str(value)
