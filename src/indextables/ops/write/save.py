"""Rows saved at a path: as a new table, or into the one that is there, as the mode says.

A new table gets its splits first, then version 0, then version 1, which names them. A failure before
version 0 leaves nothing behind; if the store fails between the two, the table is there and empty.
Python and Spark build the splits, each where it runs; the rest is here, once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from indextables.errors import NotATableError, OptionError, TableError
from indextables.log.snapshot import Snapshot
from indextables.log.table_kind import refuse_foreign
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import TxnAction
from indextables.ops.results import WriteResult
from indextables.ops.rewrite.rows import discard
from indextables.ops.write.after_write import after_write
from indextables.ops.write.commit import Order, commit_splits, write
from indextables.ops.write.data import batches_of, to_arrow
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


def newest(log: TransactionLog) -> Snapshot | None:
    """The newest snapshot of the table; None when there is no table."""
    try:
        return log.snapshot(max_staleness_s=0)
    except NotATableError:
        # Found out before any split is built: nothing is ever written beside another system's log.
        refuse_foreign(log.store)
        return None


def exists_error(uri: str) -> TableError:
    """The error of mode `error` where there is a table already."""
    return TableError(
        f"{uri} is a table already. Use mode 'append' or 'overwrite', or choose another path.", uri=uri
    )


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
        definition = Definition.of(source.schema if schema is None else schema, partition_by, options=options)
        check_data(definition.schema, source.schema, log.uri)

        def built(plan: WritePlan) -> Sequence[BuiltSplit]:
            return build(log, plan, batches_of(source), log.options)

        result = first_write(log, definition, built, Order(txn=txn), log.options, mode=mode)
        if result is not None:
            after_write(log)
            return result
        snapshot = log.snapshot(max_staleness_s=0)
    if mode == "error":
        raise exists_error(log.uri)
    if mode == "ignore":
        return WriteResult(snapshot.version, *[0] * 8)
    order = Order(overwrite=mode == "overwrite", partition_by=partition_by or None, txn=txn)
    return write(log, data, order)


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
    if created.split_table_id != plan.table_id and mode in ("error", "ignore"):
        discard(log.store, adds)
        if mode == "ignore":
            return None
        raise TableError(
            f"{log.uri} was created by another writer meanwhile; nothing was written", uri=log.uri
        )
    first = Order(txn=order.txn, user_metadata=order.user_metadata)
    return commit_splits(log, created, plan, splits, first, options)
