"""UPDATE: give columns other values in the rows for which a condition is true, in one commit.

Only splits that may hold such a row are looked into, reading the columns of the
condition alone. With `deletionVectors.enabled` the rows leave their splits by deletion
vectors and are written into a new one; where many rows of a split change, and without
vectors, it is written anew, and what does not change is copied. A new value is a
constant, another column (`col("name")`), or a function that is given the matching rows
as a pyarrow Table and returns one value for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.display.plain import counted
from indextables.errors import PredicateError, SchemaError
from indextables.lazy import pc
from indextables.log.transaction_log import TransactionLog
from indextables.model.arrays import replaced
from indextables.model.casting import cast_column
from indextables.model.fields import find_field, missing_value
from indextables.model.names import require_name, unquoted_name
from indextables.ops.outcomes import NO_ACTION, SUCCESS, UpdateResult
from indextables.ops.progress import Progress, silent, watched
from indextables.ops.rewrite.replace import change_metrics, commit_or_discard, replace_plan
from indextables.ops.rewrite.rows import (
    RewriteGroup,
    RewriteOutcome,
    RewriteSetting,
    discard,
    require_read,
    require_writable,
    rewrite,
    rows_matching,
)
from indextables.ops.rewrite.values import rewrite_values
from indextables.ops.rewrite.vectors import (
    DeletedRows,
    MovedRows,
    VectorCommit,
    moved_rows,
    rows_to_delete,
    uses_vector,
    vector_metrics,
)
from indextables.ops.write.after_write import after_write
from indextables.ops.write.rows import build, plan_write
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.evaluate.rows import mask, require_exact
from indextables.predicate.expr import Expr
from indextables.predicate.tree import Node, columns_of

NewValue = Any | Callable[["pa.Table"], Any]


@dataclass(frozen=True, slots=True)
class SetColumns:
    """New values for some columns of the matching rows; the others stay."""

    node: Node
    values: tuple[tuple[str, NewValue], ...]
    schema: pa.Schema
    time_zone: str

    @property
    def looks_at(self) -> frozenset[str]:
        """The columns of the condition."""
        return frozenset(column.path[0] for column in columns_of(self.node))

    @property
    def reads(self) -> frozenset[str]:
        """The columns of the condition and of the new values; a function is given whole rows."""
        named: set[str] = set()
        for _, value in self.values:
            if isinstance(value, Expr):
                named.add(_column(value, self.schema))
            elif callable(value):
                return frozenset(self.schema.names)
        return self.looks_at | named

    @property
    def sets(self) -> tuple[str, ...]:
        """The columns that get new values, in the order of the call."""
        return tuple(dict.fromkeys(name for name, _ in self.values))

    def count(self, rows: pa.Table, at: int) -> int:
        """How many rows match the condition."""
        del at
        return int(mask(self.node, rows, self.schema, self.time_zone).true_count)

    def apply(self, rows: pa.Table, at: int) -> pa.Table:
        """The rows with their new values."""
        del at
        matches = mask(self.node, rows, self.schema, self.time_zone)
        positions = pc.indices_nonzero(matches)
        if not len(positions):
            return rows
        matching = rows.take(positions)
        changed = rows
        for name, value in self.values:
            field = self.schema.field(name)
            values, at = _values(value, matching, field), rows.schema.get_field_index(name)
            if values.null_count and not field.nullable:
                raise missing_value(field, matching.set_column(at, name, values), values)
            column = replaced(rows.column(name), matches, cast_column(values, field))
            changed = changed.set_column(at, field, column)
        return changed


def _values(value: NewValue, matching: pa.Table, field: pa.Field) -> pa.Array:
    if isinstance(value, Expr):
        new_values = matching.column(_column(value, matching.schema)).combine_chunks()
    elif callable(value):
        new_values = value(matching)
        new_values = new_values.combine_chunks() if isinstance(new_values, pa.ChunkedArray) else new_values
        if isinstance(new_values, pa.Scalar):
            new_values = pa.repeat(new_values, matching.num_rows)
        if not isinstance(new_values, pa.Array) or len(new_values) != matching.num_rows:
            raise SchemaError(
                f"the function for column {field.name!r} has to return a pyarrow Array with one value for "
                f"each row it is given ({counted(matching.num_rows, 'row')} here)"
            )
    else:
        # A number or a text is of its own type; of an empty list, or a null, only the column knows it.
        nested = pa.types.is_nested(field.type) and not isinstance(value, str | bytes)
        kind = field.type if value is None or nested else None
        try:
            new_values = pa.array([value], kind).take(pa.array([0] * matching.num_rows))
        except (pa.ArrowException, TypeError, ValueError) as bad:
            raise SchemaError(
                f"column {field.name!r} holds {field.type}, and {value!r} is not such a value"
            ) from bad
    return new_values


def _column(value: Expr, schema: pa.Schema) -> str:
    named = str(value.args[0]) if value.op == "column" else ""
    field = find_field(schema, unquoted_name(named)) if named else None
    if field is None:
        raise SchemaError(f"a new value is a constant, a column as col('name') or a function, not {value!r}")
    return str(field.name)


def run_update(
    log: TransactionLog, where: Any, values: Mapping[str, NewValue], progress: Progress = silent
) -> UpdateResult:
    """Update matching rows; nothing is committed unless everything could be read."""
    snapshot = log.snapshot(max_staleness_s=0)
    require_writable(snapshot)
    zone = snapshot.time_zone
    node = as_node(where, snapshot.schema, zone)
    if node is None:
        raise PredicateError("UPDATE needs a condition; 'true' updates every row")
    require_exact(node)
    change = SetColumns(node, _named(values, snapshot.schema), snapshot.schema, zone)
    paths = snapshot.plan(node, columns={"path"}).files.column("path").to_pylist()
    look = RewriteSetting.of(log, snapshot, drop=node)
    write = RewriteSetting.of(log, snapshot, change=change)
    pieces = [(RewriteGroup(look, (add,)), RewriteGroup(write, (add,))) for add in snapshot.adds(paths)]
    outcomes: list[tuple[RewriteOutcome, int]] = []
    moved: list[DeletedRows] = []
    settings = snapshot.settings
    try:
        built = build(
            log,
            plan_write(snapshot, snapshot.schema, settings),
            _changed_rows(log, pieces, outcomes, moved, progress),
            settings,
        )
    except BaseException:
        discard(log.store, [add for item, _ in outcomes for add in item.adds])
        raise
    adds = [*(add for item, _ in outcomes for add in item.adds), *(split.add for split in built)]
    removed = [add for item, _ in outcomes for add in item.sources]
    rows = sum(matching for _, matching in outcomes) + sum(len(item.rows) for item in moved)
    if not removed and not moved:
        message = "no row matches the condition"
        return UpdateResult(log.uri, NO_ACTION, snapshot.version, 0, 0, 0, 0, 0, message)
    vectors = VectorCommit(log, "UPDATE", moved) if moved else None
    plan = replace_plan(
        snapshot, "UPDATE", removed, adds, parameters={"predicate": str(where), "set": sorted(values)},
        metrics={**change_metrics(updated=rows), **vector_metrics(moved)},
        truncated=[*(item.truncated for item, _ in outcomes), *(split.truncated for split in built)],
        vectors=vectors,
    )  # fmt: skip
    committed = commit_or_discard(log, plan, adds, vectors)
    after_write(log)
    return UpdateResult(
        log.uri, SUCCESS, committed.version, rows, len(removed), len(adds), committed.attempts,
        committed.conflicts, f"updated {counted(rows, 'row')} in version {committed.version}",
    )  # fmt: skip


def _named(values: Mapping[str, NewValue], schema: pa.Schema) -> tuple[tuple[str, NewValue], ...]:
    if not values:
        raise SchemaError("UPDATE needs at least one column to set, such as {'status': 'done'}")
    named = []
    for name, value in values.items():
        named.append((require_name(schema.names, name), value))
    return tuple(named)


def _changed_rows(
    log: TransactionLog,
    pieces: Sequence[tuple[RewriteGroup, RewriteGroup]],
    outcomes: list[tuple[RewriteOutcome, int]],
    moved: list[DeletedRows],
    progress: Progress,
) -> Iterator[pa.RecordBatch]:
    """The changed rows that leave their split; what becomes of each split is added to the lists."""
    for item in watched(log.runtime.workers.map(_update_in, pieces), progress, "Updating", len(pieces)):
        if isinstance(item, MovedRows):
            moved.append(item.deleted)
            yield from item.rows.to_batches()
        elif item is not None:
            outcomes.append(item)
            require_read(item[0], "UPDATE")


def _update_in(piece: tuple[RewriteGroup, RewriteGroup]) -> tuple[RewriteOutcome, int] | MovedRows | None:
    """The changed rows of one split, or the split written anew with them; None when no row of it matches."""
    look, write = piece
    if write.setting.reading.settings.vectors.enabled:
        deleted = rows_to_delete(look)
        if not len(deleted.rows):
            return None
        if uses_vector(write.setting, deleted):
            return moved_rows(write.setting, deleted)
    outcome = rewrite_values(write)
    if outcome is not None:
        return (outcome, outcome.rows_changed or 0) if outcome.sources else None
    matching, _ = rows_matching(look)
    return (rewrite(write), matching) if matching else None
