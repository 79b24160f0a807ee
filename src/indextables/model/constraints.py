"""CHECK constraints as the log keeps them: table properties, one for each, whose value is the condition.

The names are compared without case. NOT NULL is not among them: it is part of the schema.
"""

from __future__ import annotations

from collections.abc import Mapping

PROPERTY = "indextables.constraints."
"""What the name of such a property begins with."""


def constraints_of(configuration: Mapping[str, str | None]) -> dict[str, str]:
    """The conditions of a table's constraints by name."""
    return {
        key.removeprefix(PROPERTY): value
        for key, value in configuration.items()
        if key.startswith(PROPERTY) and value is not None
    }


def without_constraints(configuration: Mapping[str, str | None]) -> dict[str, str | None]:
    """All other properties."""
    return {key: value for key, value in configuration.items() if not key.startswith(PROPERTY)}
