"""HTML for notebooks: tables, rows and results as a small table without scripts, styled inline.

Values are escaped, long ones are cut, and no external resource is loaded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from indextables.model.plain import plain_value, size_text

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST = 200
_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0;max-width:40em;overflow-wrap:anywhere"


def table_html(rows: pa.Table, caption: str) -> str:
    """Rows of an Arrow table under their column names."""
    body = ([cell(value) for value in row.values()] for row in rows.to_pylist(maps_as_pydicts="lossy"))
    return _grid([escape(name) for name in rows.column_names], body, caption)


def facts_html(title: str, facts: Iterable[tuple[str, Any]]) -> str:
    """Named values, one per line."""
    return _grid([], ([f"<b>{escape(name)}</b>", cell(value)] for name, value in facts), title)


def result_html(result: Any) -> str:
    """The fields of a frozen result with their values; nested fields carry the outer field's name."""
    return facts_html(type(result).__name__, _fields(result))


def _fields(value: Any, prefix: str = "") -> Iterable[tuple[str, Any]]:
    for item in dataclasses.fields(value):
        inner = getattr(value, item.name)
        name = f"{prefix}{item.name}".replace("_", " ")
        if dataclasses.is_dataclass(inner) and not isinstance(inner, type):
            yield from _fields(inner, f"{item.name} ")
        elif isinstance(inner, int) and not isinstance(inner, bool) and "bytes" in item.name:
            yield name, size_text(inner)
        else:
            yield name, inner


def cell(value: Any) -> str:
    """One value, escaped."""
    if value is None:
        return "<i style='opacity:.5'>null</i>"
    plain = plain_value(value)
    text = f"{plain:,}" if isinstance(plain, int) and not isinstance(plain, bool) else str(plain)
    return escape(text if len(text) <= _LONGEST else text[:_LONGEST] + "\u2026")


def _grid(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    head = "".join(f"<th style='{_CELL}'>{name}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td style='{_CELL}'>{value}</td>" for value in row) + "</tr>" for row in rows
    )
    top = f"<thead><tr>{head}</tr></thead>" if heads else ""
    said = f"<caption style='text-align:left;opacity:.7'>{escape(caption)}</caption>"
    return f"<table style='border-collapse:collapse'>{said}{top}<tbody>{body}</tbody></table>"
