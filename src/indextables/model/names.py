"""Which column a name means: the one of exactly that name, else the one that differs by case only.

A table never has two columns whose names are equal but for case, so there is at most one.
"""

from __future__ import annotations

from collections.abc import Collection

from indextables.errors import SchemaError


def find_name(names: Collection[str], name: str) -> str | None:
    """Return a name as a table spells it; None where it has none of that name."""
    if name in names:
        return name
    lowered = name.lower()
    return next((item for item in names if item.lower() == lowered), None)


def require_name(names: Collection[str], name: str) -> str:
    """Return the name of a column as the table spells it; SchemaError where it has none of that name."""
    found = find_name(names, name)
    if found is None:
        raise SchemaError(f"there is no column {name!r}; the table has {', '.join(names)}", column=name)
    return found
