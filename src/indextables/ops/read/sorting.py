"""Rows that a query finds, in the order of columns: the best of every split, and then the best of those."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from indextables.errors import SchemaError
from indextables.log.snapshot import Snapshot
from indextables.model.fields import find_field
from indextables.model.names import no_column, unquoted_name
from indextables.model.types import type_to_sql
from indextables.ops.read.in_order import in_order, small_together
from indextables.predicate.evaluate.ordering import spark_order
from indextables.runtime import default_parallelism
from indextables.split.layout import SplitRef
from indextables.split.metrics import Note
from indextables.split.search import sorted_split, unless_empty
from indextables.split.selection import Keys, Selection

_KEY = re.compile(r"\s*(`(?:[^`]|``)+`|.+?)(?:\s+(asc|desc))?\s*\Z", re.IGNORECASE | re.DOTALL)


def sort_keys(snapshot: Snapshot, sort: str | Sequence[str]) -> Keys:
    """Read `ts DESC, id` or a list of such parts; SchemaError names what rows cannot be sorted by."""
    parts = re.findall(r"(?:`(?:[^`]|``)*`|[^,`])+", sort) if isinstance(sort, str) else list(sort)
    found: list[tuple[str, bool]] = []
    for part in parts:
        match = _KEY.match(part)
        name = unquoted_name(match[1]) if match else ""
        field = find_field(snapshot.schema, name) if name else None
        if match is None or field is None:
            unknown = name or part
            raise SchemaError(f"sort: {no_column(snapshot.schema.names, unknown)}", column=unknown)
        if pa.types.is_nested(field.type):
            raise SchemaError(
                f"rows have no order by {name!r}, which is {type_to_sql(field.type)}", column=name
            )
        if all(field.name != known for known, _ in found):
            found.append((field.name, (match[2] or "").lower() == "desc"))
    if not found:
        raise SchemaError("sort names no column; write for example 'ts DESC'")
    return tuple(found)


def sorted_rows(snapshot: Snapshot, refs: Sequence[SplitRef], selection: Selection, note: Note) -> pa.Table:
    """The first `limit` rows of all splits; no more than twice as many are held at a time."""
    columns, keys, limit = selection.columns, selection.keys, selection.limit
    needed = (*columns, *(name for name, _ in keys if name not in columns))
    with_keys = replace(selection, columns=needed)
    best = snapshot.reading.columns(needed).empty_table()

    def first(unit: Sequence[SplitRef]) -> Iterator[pa.Table]:
        for ref in unit:
            yield sorted_split(snapshot.reading, ref, with_keys, note)

    units = small_together(snapshot, unless_empty(snapshot.store, refs, selection.query, note))
    for found in in_order((partial(first, unit) for unit in units), default_parallelism()):
        # The splits come in the order of paths and the sort is stable, so equal rows keep theirs.
        both = pa.concat_tables([best, found])
        best = both if limit is None else both.take(spark_order(both, keys).slice(0, limit))
    return best.take(spark_order(best, keys)).select(list(columns))
