"""CHECK constraints as they are kept: rows are checked where they become splits, before any commit.

A row breaks a constraint if its condition is false for the row; where the condition is true or null the
row is allowed, as in SQL. A condition is read with times in UTC, so that it means the same to every writer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.errors import ConstraintError, PredicateError, TableError
from indextables.lazy import pc
from indextables.model.constraints import constraints_of
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.evaluate.rows import mask, require_exact
from indextables.predicate.tree import Node, Not, columns_of

_NAME = re.compile(r"\w+")
_ZONE = "UTC"


@dataclass(frozen=True, slots=True)
class Check:
    """A constraint as a tree over the columns of a schema; picklable."""

    name: str
    condition: str
    breaks: Node
    """True for the rows that break it."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the condition looks at."""
        return frozenset(column.path[0] for column in columns_of(self.breaks))

    def first_violation(self, rows: pa.RecordBatch | pa.Table, schema: pa.Schema) -> int | None:
        """The position of a row that breaks it; None if there is none."""
        broken = mask(self.breaks, rows, schema, _ZONE)
        return pc.index(broken, True).as_py() if pc.any(broken, min_count=0).as_py() else None

    def error(self, row: Mapping[str, Any], where: str) -> ConstraintError:
        """The error that shows one row."""
        return ConstraintError(
            f"{where} a row that breaks the constraint {self.name} CHECK ({self.condition}): {dict(row)}. "
            "Nothing was committed.",
            constraint=self.name, condition=self.condition, row=dict(row),
        )  # fmt: skip


def checks_of(configuration: Mapping[str, str | None], schema: pa.Schema) -> tuple[Check, ...]:
    """The constraints of a table, read against the columns that rows are about to be written with."""
    return tuple(read_check(*item, schema) for item in sorted(constraints_of(configuration).items()))


def read_check(name: str, condition: str, schema: pa.Schema) -> Check:
    """A constraint from its text; a condition that is not understood exactly is an error."""
    node = as_node(condition, schema, _ZONE) if condition.strip() else None
    if node is None:
        raise PredicateError(f"constraint {name}: CHECK needs a condition, such as CHECK (price > 0)")
    require_exact(node)
    return Check(name, condition, Not(node))


def named_check(name: str, condition: str, schema: pa.Schema) -> Check:
    """A constraint as a user names it, to be kept under that name in lower case."""
    if not _NAME.fullmatch(name):
        raise TableError(f"{name!r} is no name of a constraint: letters, digits and underscores may be used")
    return read_check(name.lower(), condition.strip(), schema)


def check_rows(checks: Sequence[Check], rows: Any, schema: pa.Schema) -> Any:
    """The same rows; ConstraintError if one of them breaks a constraint."""
    for check in checks:
        at = check.first_violation(rows, schema)
        if at is not None:
            raise check.error(rows.slice(at, 1).to_pylist()[0], "the rows to write have")
    return rows
