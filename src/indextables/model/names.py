"""Column names: looked up, missed, and quoted; and text quoted beside them.

A name is looked up exactly first, else regardless of case. A table never has two columns
whose names differ only in case, so at most one matches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from indextables.errors import SchemaError


def find_name(names: Collection[str], name: str) -> str | None:
    """Return the column name as the table spells it; None if there is no such column."""
    if name in names:
        return name
    lowered = name.lower()
    return next((item for item in names if item.lower() == lowered), None)


def require_name(names: Collection[str], name: str) -> str:
    """Return the column name as the table spells it; SchemaError if there is no such column."""
    spelling = find_name(names, name)
    if spelling is None:
        raise SchemaError(no_column(names, name), column=name)
    return spelling


def no_column(names: Iterable[str], name: str, where: str = "the table") -> str:
    """What every error says about a column that is not there."""
    return f"{where} has no column {name!r}; it has {', '.join(names) or 'none'}"


def quoted_name(*parts: str) -> str:
    """A name of one or more parts in backticks, as SQL and Spark take it whatever the parts hold."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def unquoted_name(text: str) -> str:
    """The name that a text in backticks means; any other text is the name itself."""
    stripped = text.strip()
    is_quoted = len(stripped) > 1 and stripped.startswith("`") and stripped.endswith("`")
    return stripped[1:-1].replace("``", "`") if is_quoted else stripped


def quoted_text(text: str) -> str:
    """Text as a SQL literal."""
    return "'" + text.replace("'", "''") + "'"
