"""The golden Delta tables: which versions they have, what is expected of them, and rows in a comparable form."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from support.shared import shared

EVERYTHING = os.environ.get("INDEXTABLES_GOLDEN") == "all"
"""Whether every version is tried on Spark, in every zone; otherwise one in three is."""


def table_path(name: str) -> Path:
    return shared("golden", "delta", "tables", name)


@cache
def manifest() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shared("golden", "delta", "MANIFEST.json").read_text())
    return found


@cache
def expected(name: str) -> dict[str, Any]:
    """What a correct replay of a table gives."""
    found: dict[str, Any] = json.loads(shared("golden", "delta", "expected", f"{name}.json").read_text())
    return found


def versions(*outcomes: str) -> Iterator[tuple[str, int]]:
    """Name and version of every table with one of these outcomes that the corpus expects something of."""
    for row in manifest():
        if row["outcome"] in outcomes:
            for version in expected(row["name"])["versions"]:
                yield row["name"], int(version)


def plain(value: Any) -> Any:
    """A value in a form in which two readers can be compared."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else round(value, 9)
    if isinstance(value, dt.datetime):
        return (value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value).isoformat()
    if isinstance(value, dict):
        return tuple((key, plain(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(plain(item) for item in value)
    return bytes(value) if isinstance(value, bytes | bytearray) else value


def rows_of(table: pa.Table, names: list[str]) -> list[str]:
    """The rows of a table as sorted text."""
    return sorted(str([plain(row.get(name)) for name in names]) for row in table.to_pylist())
