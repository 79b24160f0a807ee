"""Column lookup by name: an exact match first, else one that differs only in case.

A table never has two columns whose names differ only in case, so at most one matches.
"""

from __future__ import annotations

from collections.abc import Collection

from indextables.errors import SchemaError


def find_name(names: Collection[str], name: str) -> str | None:
    """Return the column name as the table spells it; None if there is no such column."""
    if name in names:
        return name
    lowered = name.lower()
    return next((item for item in names if item.lower() == lowered), None)


def require_name(names: Collection[str], name: str) -> str:
    """Return the column name as the table spells it; SchemaError if there is no such column."""
    found = find_name(names, name)
    if found is None:
        raise SchemaError(f"there is no column {name!r}; the table has {', '.join(names)}", column=name)
    return found
