"""HTML for notebooks: tables, rows and results as a small table without scripts, styled inline.

Values are escaped, long ones are cut, and no external resource is loaded. What is returned
as an Arrow table (histories, file lists, counts) cannot bring its own HTML, so notebooks
are told how to show it.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from indextables.display.plain import counted, plain_value, size_text

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST = 200
_SHOWN = 20
_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0;max-width:40em;overflow-wrap:anywhere"


def show_arrow_tables() -> None:
    """Have a notebook show Arrow tables as HTML, unless it was told already how to show them."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    formats = getattr(getattr(shell, "display_formatter", None), "formatters", {})
    if "text/html" not in formats:
        return
    try:
        formats["text/html"].lookup_by_type("pyarrow.lib.Table")
    except KeyError:
        formats["text/html"].for_type_by_name("pyarrow.lib", "Table", arrow_html)


def arrow_html(table: pa.Table) -> str:
    """The first rows of an Arrow table, and how many there are."""
    caption = counted(table.num_rows, "row")
    return table_html(
        table.slice(0, _SHOWN), f"{caption}, {_SHOWN} shown" if table.num_rows > _SHOWN else caption
    )


def table_html(rows: pa.Table, caption: str) -> str:
    """Rows of an Arrow table under their column names."""
    columns = [column.to_pylist(maps_as_pydicts="lossy") for column in rows.columns]
    body = ([cell(value) for value in row] for row in zip(*columns, strict=True))
    return _grid([escape(name) for name in rows.column_names], body, caption)


def facts_html(title: str, facts: Iterable[tuple[str, Any]]) -> str:
    """Named values, one per line."""
    return _grid([], ([f"<b>{escape(name)}</b>", _amount(value)] for name, value in facts), title)


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
    if isinstance(plain, dict):
        text = ", ".join(f"{key}: {item}" for key, item in plain.items() if item is not None)
    else:
        text = str(plain)
    return escape(text if len(text) <= _LONGEST else text[:_LONGEST] + "\u2026")


def _amount(value: Any) -> str:
    """A value of a fact; counts are easier to read with their thousands apart."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else cell(value)


def _grid(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    head = "".join(f"<th style='{_CELL}'>{name}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td style='{_CELL}'>{value}</td>" for value in row) + "</tr>" for row in rows
    )
    top = f"<thead><tr>{head}</tr></thead>" if heads else ""
    caption_html = f"<caption style='text-align:left;opacity:.7'>{escape(caption)}</caption>"
    return f"<table style='border-collapse:collapse'>{caption_html}{top}<tbody>{body}</tbody></table>"
