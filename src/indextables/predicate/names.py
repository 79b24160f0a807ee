"""Column names in predicates, resolved by Spark's rule: regardless of case, fields of structs after a dot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.model.fields import find_field, string_order
from indextables.model.names import no_column
from indextables.model.types import is_variant, type_to_sql
from indextables.predicate.tree import Column

_PART = re.compile(r"`((?:[^`]|``)*)`(?:\.|\Z)|([^`.]+)(?:\.|\Z)")


def resolve(path: Sequence[str], schema: pa.Schema) -> Column:
    """Return the column at a path of names; PredicateError names the first that is not there."""
    fields: Any = schema
    spelled: list[str] = []
    field = None
    for step, name in enumerate(path):
        field = find_field(fields, name)
        if field is None:
            inside = f"the column {'.'.join(spelled)!r}" if step else "the table"
            raise PredicateError(
                no_column([item.name for item in fields], name, inside),
                part=".".join(path), column=name,
            )  # fmt: skip
        spelled.append(field.name)
        is_last = step == len(path) - 1
        if not is_last and (not pa.types.is_struct(field.type) or is_variant(field.type)):
            raise PredicateError(
                f"{'.'.join(spelled)!r} is {type_to_sql(field.type)} and has no field {path[step + 1]!r}",
                part=".".join(path),
            )
        fields = field.type
    if field is None:
        raise PredicateError("a column name is empty", part="")
    return Column(
        tuple(spelled), field.type, string_order(field) if pa.types.is_string(field.type) else "binary"
    )


def split_name(name: str) -> tuple[str, ...]:
    """Split a dotted name into its parts; backticks keep a dot (and, doubled, a backtick) in a part."""
    parts, position = [], 0
    while position < len(name):
        part = _PART.match(name, position)
        if part is None:
            raise PredicateError(f"{name!r} is not a column name", part=name)
        quoted, plain = part.groups()
        parts.append(plain if quoted is None else quoted.replace("``", "`"))
        position = part.end()
    return tuple(parts)
