"""Rows in the order of columns: the first of every split, and then the first of those.

The order is Spark's, and the same wherever rows are sorted: nulls come first when ascending and last
when descending, NaN is above every number, the two zeros are equal, texts are compared by their bytes.
Rows with equal keys keep the order of paths and rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from indextables.errors import PredicateError, SchemaError
from indextables.lazy import pc
from indextables.log.snapshot import Snapshot
from indextables.model.arrays import from_values, integers
from indextables.model.fields import find_field
from indextables.model.names import no_column, quoted_name, unquoted_name
from indextables.model.types import type_to_sql
from indextables.ops.read.in_order import in_order, splits_at_once, work_units
from indextables.ops.read.matching import FILE_COLUMNS
from indextables.ops.table_settings import settings_of
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.evaluate.ordering import spark_order
from indextables.predicate.expr import col
from indextables.predicate.names import resolve
from indextables.predicate.prune.rule import prune_table
from indextables.predicate.tree import IsNull, Node, all_of, any_of
from indextables.split.layout import SplitRef
from indextables.split.search.filtered import Filtered
from indextables.split.search.metrics import Note
from indextables.split.search.narrowing import index_for
from indextables.split.search.run import sorted_of, sorted_split, unless_empty
from indextables.split.search.selection import Keys, Selection

SplitRows = tuple[SplitRef, pa.Table]
_SPLIT = "\0split"
_FARTHER = 4
"""How many times as many rows are reached for when the splits before did not have enough."""
_KEY = re.compile(r"\s*(`(?:[^`]|``)+`|.+?)(?:\s+(asc|desc))?\s*\Z", re.IGNORECASE | re.DOTALL)


def sort_keys(snapshot: Snapshot, sort: str | Sequence[str]) -> Keys:
    """Read `ts DESC, id` or a list of such parts; SchemaError names what rows cannot be sorted by."""
    parts = re.findall(r"(?:`(?:[^`]|``)*`|[^,`])+", sort) if isinstance(sort, str) else list(sort)
    keys: list[tuple[str, bool]] = []
    for part in parts:
        match = _KEY.match(part)
        name = unquoted_name(match[1]) if match else ""
        field = find_field(snapshot.schema, name) if name else None
        if match is None or field is None:
            unknown = name or part
            raise SchemaError(f"sort: {no_column(snapshot.schema.names, unknown)}", column=unknown)
        if pa.types.is_nested(field.type):
            raise SchemaError(
                f"rows cannot be sorted by {name!r}, which is {type_to_sql(field.type)}", column=name
            )
        if all(field.name != earlier for earlier, _ in keys):
            keys.append((field.name, (match[2] or "").lower() == "desc"))
    if not keys:
        raise SchemaError("sort names no column; write for example 'ts DESC'")
    return tuple(keys)


def sorted_rows(
    snapshot: Snapshot, refs: Sequence[SplitRef], selection: Selection, note: Note
) -> tuple[pa.Table, int]:
    """The first rows that a query finds, and the number of splits that were searched for them."""

    def first_of(some: Sequence[SplitRef], columns: Sequence[str], near: Node | None) -> Iterator[SplitRows]:
        narrowed = replace(selection, columns=tuple(columns), where=_both(selection.where, near))

        def first(unit: Sequence[SplitRef]) -> Iterator[SplitRows]:
            for ref in unit:
                yield ref, sorted_split(snapshot.reading, ref, narrowed, note)

        units = work_units(snapshot, unless_empty(snapshot.store, some, selection.query, note))
        return in_order((partial(first, unit) for unit in units), splits_at_once(snapshot))

    keys, limit = selection.keys, selection.limit
    return _first_rows(snapshot, refs, selection.columns, keys=keys, limit=limit, first_of=first_of)


def sorted_scan(
    snapshot: Snapshot,
    refs: Sequence[SplitRef],
    where: Node | None,
    columns: Sequence[str],
    *,
    keys: Keys,
    limit: int | None,
) -> tuple[pa.Table, int]:
    """The first rows that a filter keeps, and the number of splits that were read for them."""
    spec = settings_of(snapshot)

    def first_of(some: Sequence[SplitRef], needed: Sequence[str], near: Node | None) -> Iterator[SplitRows]:
        node = _both(where, near)

        def first(unit: Sequence[SplitRef]) -> Iterator[SplitRows]:
            for ref in unit:
                index = None if node is None else index_for(snapshot.reading, ref, node, spec)
                rows = Filtered(snapshot.reading, ref, node, index).every()
                yield ref, sorted_of(snapshot.reading, ref, rows, needed, keys=keys, limit=limit)

        units = work_units(snapshot, some)
        return in_order((partial(first, unit) for unit in units), splits_at_once(snapshot))

    return _first_rows(snapshot, refs, columns, keys=keys, limit=limit, first_of=first_of)


def _first_rows(
    snapshot: Snapshot,
    refs: Sequence[SplitRef],
    columns: Sequence[str],
    *,
    keys: Keys,
    limit: int | None,
    first_of: Callable[[Sequence[SplitRef], Sequence[str], Node | None], Iterator[SplitRows]],
) -> tuple[pa.Table, int]:
    """The first rows of all splits, in order; `first_of` returns the first matching rows of some splits.

    With a limit, the splits that seem to hold the first rows are read first. Once there are enough rows, a
    split is read only if it may hold a row that does not come after the last of them. That is decided as
    for any filter: a split whose statistics are missing or cut short may hold anything.
    """
    needed = [*columns, *(name for name, _ in keys if name not in columns)]
    best = snapshot.reading.columns(needed).append(pa.field(_SPLIT, pa.int64())).empty_table()
    # Rows with equal keys come in the order of paths, whatever the order in which the splits are read.
    order = (*keys, (_SPLIT, False))
    number_of = {ref.path: number for number, ref in enumerate(refs)}
    files = None if limit is None or len(refs) == 1 else _likely_first(snapshot, refs, keys[0])
    near: Node | None = None
    searched, reach = 0, limit or 0
    while files is None or files.num_rows:
        count = len(refs) if files is None else _reaching(files, reach)
        some = (
            refs if files is None else [refs[number_of[path]] for path in files["path"][:count].to_pylist()]
        )
        for ref, table in first_of(some, needed, near):
            number = integers(np.full(table.num_rows, number_of[ref.path]))
            both = pa.concat_tables([best, table.append_column(_SPLIT, number)])
            best = both if limit is None else both.take(spark_order(both, order).slice(0, limit))
        searched += count
        if files is None:
            break
        files, reach = files.slice(count), reach * _FARTHER
        if best.num_rows == limit:
            near = _not_after(snapshot, best, keys[0])
            files = files.filter(prune_table(near, files, snapshot.schema, snapshot.partition_columns).mask)
    return best.take(spark_order(best, order)).select(list(columns)), searched


def _likely_first(snapshot: Snapshot, refs: Sequence[SplitRef], key: tuple[str, bool]) -> pa.Table:
    """The splits with the bounds of a column, those first whose bounds come first or are not known."""
    name, descends = key
    bounds = snapshot.once(f"bounds of {name}", lambda: _bounds(snapshot, name))
    if len(refs) < bounds.num_rows:
        bounds = bounds.filter(pc.is_in(bounds["path"], from_values([ref.path for ref in refs], pa.string())))
    assert bounds.num_rows == len(refs), "every split is a live file"
    side = bounds["max" if descends else "min"]
    if not len(side) or side.type.get_field_index(name) < 0:
        return bounds
    edges = pa.table({"edge": pc.struct_field(side, name)})
    way = "descending" if descends else "ascending"
    return bounds.take(pc.sort_indices(edges, [("edge", way, "at_start")]))


def _bounds(snapshot: Snapshot, name: str) -> pa.Table:
    """What the log says about one column of every file, in the form of `files()`."""
    files = snapshot.plan(columns=FILE_COLUMNS).files
    for side in ("min", "max", "null_count"):
        kind = files.schema.field(side).type
        at = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        only = pa.struct([kind.field(at)] if at >= 0 else [])
        values = [
            pa.StructArray.from_arrays(
                [chunk.field(at)] if at >= 0 else [], fields=list(only), mask=pc.is_null(chunk)
            )
            if at >= 0
            else pa.nulls(len(chunk), only)
            for chunk in files[side].chunks
        ]
        files = files.set_column(files.schema.get_field_index(side), side, pa.chunked_array(values, only))
    return files


def _reaching(files: pa.Table, rows: int) -> int:
    """How many of the first files hold `rows` rows; a file of unknown length counts as empty."""
    lengths = pc.fill_null(files["num_records"].combine_chunks(), 0)
    at: int = pc.index(pc.greater_equal(pc.cumulative_sum(lengths), rows), True).as_py()
    return files.num_rows if at < 0 else at + 1


def _not_after(snapshot: Snapshot, best: pa.Table, key: tuple[str, bool]) -> Node | None:
    """What holds for every row that comes before the last of some sorted rows, or beside it."""
    name, descends = key
    column = resolve((name,), snapshot.schema)
    last = best.column(name)[best.num_rows - 1]
    if not last.is_valid:
        # Nulls come last in descending order, so that everything may come before this one.
        return None if descends else IsNull(column)
    if column.order != "binary":
        return None
    try:
        value, by = last.as_py(), col(quoted_name(name))
        node = as_node(by >= value if descends else by <= value, snapshot.schema, snapshot.time_zone)
    except (PredicateError, ValueError, OverflowError):
        # A value that no filter can name, such as bytes or a year beyond Python's.
        return None
    return node if descends or node is None else any_of([node, IsNull(column)])


def _both(where: Node | None, near: Node | None) -> Node | None:
    parts = [part for part in (where, near) if part is not None]
    return all_of(parts) if parts else None
