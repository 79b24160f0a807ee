"""Rows saved at a path: as a new table, or into the one that is there, as the mode says.

A new table gets its splits first, then version 0, then version 1, which names them. A failure before
version 0 leaves nothing behind. One between the two leaves a table at version 0, which has never been written
to: for every mode that is no table yet, so the same call made again finishes it. The first rows of a table
belong to one writer: in modes `error` and `ignore` a commit by another writer in between wins.
Python and Spark build the splits, each where it runs; the rest is here, once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from indextables.errors import ConflictError, NotATableError, OptionError, TableError
from indextables.index.automatic import SAMPLE_ROWS, automatic_kinds
from indextables.log.snapshot import Snapshot
from indextables.log.table_kind import refuse_foreign
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import TxnAction
from indextables.model.constraints import without_constraints
from indextables.ops.results import WriteResult
from indextables.ops.rewrite.rows import discard
from indextables.ops.write.after_write import after_write
from indextables.ops.write.commit import Order, commit_splits, write
from indextables.ops.write.data import batches_of, peeked, to_arrow
from indextables.ops.write.definition import Definition
from indextables.ops.write.evolution import check_data
from indextables.ops.write.rows import WritePlan, build
from indextables.options import Options
from indextables.split.write.build import BuiltSplit

MODES = ("error", "ignore", "append", "overwrite")


def check_mode(mode: str) -> None:
    """Refuse a mode that there is not."""
    if mode not in MODES:
        raise OptionError(f"mode {mode!r} is not one of {', '.join(MODES)}")


def column_list(names: str | Sequence[str]) -> tuple[str, ...]:
    """Column names, of which one may be given by itself."""
    return (names,) if isinstance(names, str) else tuple(names)


def with_text(options: Mapping[str, Any] | Options | None, text: str | Sequence[str]) -> Options:
    """The options of a write, with which these columns can be searched by words."""
    explicit = dict(Options.of(options).explicit)
    for name in column_list(text):
        key = f"indexing.typemap.{name}"
        if explicit.setdefault(key, "text") != "text":
            raise OptionError(f"text names {name!r}, and options say {key} = {explicit[key]}", column=name)
    return Options.of(explicit)


def with_kinds(options: Mapping[str, Any] | Options | None, kinds: Mapping[str, str]) -> Options:
    """The options of a write, with these indexes for columns of which they say nothing."""
    given = Options.of(options)
    indexing = given.indexing
    named = {
        part.strip().lower()
        for text in (*indexing.typemap, *indexing.typemap.values(), *(indexing.fast_fields or ()))
        for part in text.split(",")
    }
    added = {f"indexing.typemap.{name}": kind for name, kind in kinds.items() if name.lower() not in named}
    return Options.of({**added, **given.explicit})


def with_automatic_kinds(
    options: Options, first_rows: pa.Table | pa.RecordBatch, partition_by: Sequence[str]
) -> Options:
    """The options of the write that makes a table, with the indexes that its first rows call for."""
    apart = {name.lower() for name in partition_by}
    kinds = automatic_kinds(first_rows)
    return with_kinds(options, {name: kind for name, kind in kinds.items() if name.lower() not in apart})


def newest(log: TransactionLog) -> Snapshot | None:
    """The newest snapshot of the table; None when there is no table."""
    try:
        return log.snapshot(max_staleness_s=0)
    except NotATableError:
        # Found out before any split is built: nothing is ever written beside another system's log.
        refuse_foreign(log.store)
        return None


def takes_rows(snapshot: Snapshot, mode: str) -> bool:
    """Whether a mode writes rows to the table that is there; mode `error` raises where it does not.

    A table at version 0 has never been written to and takes its first rows in every mode.
    """
    if mode == "error" and snapshot.version > 0:
        uri = snapshot.store.uri
        raise TableError(
            f"{uri} is a table already. Use mode 'append' or 'overwrite', or choose another path.", uri=uri
        )
    return mode != "ignore" or snapshot.version == 0


def first_version(mode: str) -> int | None:
    """The version after which another writer's rows are a conflict, where a mode writes first rows only."""
    return 0 if mode in {"error", "ignore"} else None


def save(  # noqa: PLR0917 - one value, passed on in one place
    log: TransactionLog,
    data: Any,
    mode: str,
    options: Options,
    partition_by: tuple[str, ...],
    schema: Any = None,
    txn: TxnAction | None = None,
) -> WriteResult:
    """Write rows as the mode says; a new table has the columns of `schema`, or of the rows.

    `options` are those of the call, whose index settings a new table keeps. What the table has of a `txn`
    already is not written twice.
    """
    check_mode(mode)
    snapshot = newest(log)
    if snapshot is None:
        source = to_arrow(data)
        if options.indexing.auto:
            first, source = peeked(source, SAMPLE_ROWS)
            options = with_automatic_kinds(options, first, partition_by)
        definition = Definition.of(source.schema if schema is None else schema, partition_by, options=options)
        check_data(definition.schema, source.schema, log.uri)

        def built(plan: WritePlan) -> Sequence[BuiltSplit]:
            return build(log, plan, batches_of(source), log.options)

        result = first_write(log, definition, built, Order(txn=txn), log.options, mode=mode)
        if result is not None:
            after_write(log)
    elif takes_rows(snapshot, mode):
        if schema is not None and snapshot.version == 0:
            Definition.of(schema, partition_by, options=options).create(log)
        order = Order(
            overwrite=mode == "overwrite",
            partition_by=partition_by or None,
            expected_version=first_version(mode),
            txn=txn,
        )
        result = first_or_none(lambda: write(log, data, order), log.uri, mode)
    else:
        result = None
    if result is None:
        return WriteResult(log.snapshot(max_staleness_s=0).version, *[0] * 8)
    return result


def first_or_none(commit: Callable[[], WriteResult], uri: str, mode: str) -> WriteResult | None:
    """A commit of rows; None if another writer's rows came first and the mode is `ignore`."""
    try:
        return commit()
    except ConflictError as another:
        if first_version(mode) is None:
            raise
        if mode == "ignore":
            return None
        raise TableError(
            f"{uri} was written by another writer meanwhile; nothing was written", uri=uri
        ) from another


def first_write(
    log: TransactionLog,
    definition: Definition,
    built: Callable[[WritePlan], Sequence[BuiltSplit]],
    order: Order,
    options: Options,
    *,
    mode: str,
) -> WriteResult | None:
    """The first write of a table; None if another writer was first and the mode is `ignore`."""
    plan = definition.first_plan(str(uuid.uuid4()))
    splits = built(plan)
    adds = [split.add for split in splits]
    try:
        created = definition.create(log, table_id=plan.table_id)
    except BaseException:
        # Whether or not there is a version 0 now, no version names the splits.
        discard(log.store, adds)
        raise
    if created.split_table_id != plan.table_id and mode in {"error", "ignore"}:
        discard(log.store, adds)
        if mode == "ignore":
            return None
        raise TableError(
            f"{log.uri} was created by another writer meanwhile; nothing was written", uri=log.uri
        )
    first = Order(txn=order.txn, user_metadata=order.user_metadata, expected_version=first_version(mode))
    # The rows were checked against no constraint: one that another writer has added by now is a conflict.
    unchecked = replace(created.metadata, configuration=without_constraints(created.metadata.configuration))
    checked = replace(plan, planned_on=unchecked)
    return first_or_none(lambda: commit_splits(log, created, checked, splits, first, options), log.uri, mode)
