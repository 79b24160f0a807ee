"""An aggregation: the keys of its groups and its aggregates, read and checked against the schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError, SchemaError
from indextables.model.types import type_to_sql
from indextables.ops.counting.buckets import Bucket
from indextables.predicate.names import resolve, split_name
from indextables.predicate.tree import Column

FUNCTIONS = ("count", "sum", "avg", "min", "max")
_CALL = re.compile(r"\s*(\w+)\s*\(\s*(distinct\s+)?(\*|.+?)\s*\)\s*\Z", re.IGNORECASE | re.DOTALL)
_OTHER_NAMES = {"mean": "avg"}


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A column that rows are grouped by, as it is or by bucket."""

    name: str
    column: Column
    bucket: Bucket | None = None

    @property
    def type(self) -> pa.DataType:
        """The type of the key in the result."""
        return self.column.type if self.bucket is None else self.bucket.kind_for(self.column.type)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function of a column over the rows of a group; `count` without a column counts rows."""

    name: str
    function: str
    column: Column | None = None
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The keys of groups, and what is computed of each group."""

    keys: tuple[GroupKey, ...]
    aggregates: tuple[Aggregate, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The top-level columns that have to be read."""
        read = [key.column for key in self.keys] + [item.column for item in self.aggregates if item.column]
        return tuple(dict.fromkeys(column.path[0] for column in read))


AggregateTexts = Mapping[str, str] | Sequence[str] | str
"""Aggregates as texts, such as `sum(bytes)`, or by the names of their columns in the result."""


def aggregation_of(
    schema: pa.Schema, group_by: str | Sequence[str] | None, aggregates: AggregateTexts
) -> Aggregation:
    """Read column names and texts such as `sum(bytes)`; errors say what is wrong before a row is read."""
    names = [group_by] if isinstance(group_by, str) else list(group_by or ())
    if isinstance(aggregates, str):
        aggregates = [aggregates]
    named = aggregates if isinstance(aggregates, Mapping) else {text: text for text in aggregates}
    keys = tuple(key_of(schema, name) for name in names)
    items = tuple(_aggregate(schema, name, text) for name, text in named.items())
    shown = [key.name for key in keys] + [item.name for item in items]
    for name in shown:
        if shown.count(name) > 1:
            raise SchemaError(f"the result would have two columns {name!r}; give one of them another name")
    if not items:
        raise SchemaError("there is nothing to compute; give aggregates, such as ['count(*)', 'max(price)']")
    return Aggregation(keys, items)


def key_of(schema: pa.Schema, name: str, bucket: Bucket | None = None, shown: str | None = None) -> GroupKey:
    """A key of groups; columns without equality cannot be one."""
    column = column_of(schema, name)
    if pa.types.is_nested(column.type):
        raise SchemaError(
            f"rows cannot be grouped by {name!r}, which is {type_to_sql(column.type)}; "
            "name a field inside it, such as a.b",
            column=name,
        )
    _require_binary(column, "grouped by")
    return GroupKey(shown or column.name, column, bucket)


def column_of(schema: pa.Schema, name: Any) -> Column:
    """The column of a name, with the fields of structs after dots; SchemaError when there is none."""
    if not isinstance(name, str):
        raise SchemaError(f"{name!r} is not the name of a column")
    # A column whose own name has a dot is meant before the field of a struct.
    path = (name,) if name in schema.names else split_name(name)
    try:
        return resolve(path, schema)
    except PredicateError as bad:
        raise SchemaError(str(bad), column=name) from bad


def _aggregate(schema: pa.Schema, name: str, text: str) -> Aggregate:
    call = _CALL.match(text) if isinstance(text, str) else None
    function = call[1].lower() if call else ""
    function = _OTHER_NAMES.get(function, function)
    if call is None or function not in FUNCTIONS:
        raise SchemaError(
            f"{text!r} is not an aggregate; use {', '.join(f'{one}(column)' for one in FUNCTIONS)}, "
            "count(*) or count(distinct column)"
        )
    distinct = call[2] is not None
    if call[3] == "*":
        if function != "count" or distinct:
            raise SchemaError(f"{text!r}: only count takes *")
        return Aggregate(name, "count")
    return aggregate_of(schema, name, function, call[3], distinct=distinct)


def aggregate_of(
    schema: pa.Schema, name: str, function: str, of: str, *, distinct: bool = False
) -> Aggregate:
    """An aggregate of a column, checked against the column's type."""
    column = column_of(schema, of)
    text = f"{function}({'distinct ' if distinct else ''}{of})"
    if distinct and function != "count":
        raise SchemaError(f"{text!r}: only count takes distinct")
    if function in ("sum", "avg") and not _is_number(column.type):
        raise SchemaError(f"{text!r} needs a column of numbers, and {of} is {type_to_sql(column.type)}")
    if distinct or function in ("min", "max"):
        if pa.types.is_nested(column.type):
            raise SchemaError(f"{text!r} compares values, and {of} is {type_to_sql(column.type)}")
        _require_binary(column, "compared")
    return Aggregate(name, function, column, distinct)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _require_binary(column: Column, what: str) -> None:
    if column.order != "binary" and not column.order.startswith("char("):
        raise SchemaError(
            f"{column} has the collation {column.order}; by its rules values can only be {what} in Spark",
            column=column.name,
        )
