"""The commit of a write: rows that have become splits, and what an order says about the rows that are there.

Python and Spark build the splits, each where it runs; everything after that is here, once. If the commit
certainly failed, the new splits are deleted again; if its fate is unknown they stay, and PURGE decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from indextables.errors import Error, OptionError
from indextables.log.commit.attempt import CommitPlan, Committed, Rule
from indextables.log.commit.changes import removals
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import Action, AddAction, RemoveAction, TxnAction
from indextables.model.fields import decode_partition
from indextables.model.truncation import Truncated
from indextables.ops.results import WriteResult
from indextables.ops.rewrite.replace import NEVER_COMMITTED
from indextables.ops.rewrite.rows import discard
from indextables.ops.write.after_write import after_write
from indextables.ops.write.data import ArrowData, batches_of, to_arrow
from indextables.ops.write.replace_where import MatchingRowsRemoved, checked, condition
from indextables.ops.write.rows import WritePlan, build, plan_write
from indextables.options import Options
from indextables.predicate.tree import FALSE, Column, Compare, IsNull, Literal, Node, all_of, any_of
from indextables.split.write.build import BuiltSplit

PartitionValues = tuple[str | None, ...]
Taken = tuple[Sequence[AddAction], Sequence[AddAction]]
"""The files to remove from the table, and the rewritten ones that replace them."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a write does to the existing rows, and further facts for its commit."""

    overwrite: bool = False
    where: Any = None
    """Replace only the rows for which this is true."""
    dynamic: bool = False
    """Replace only the partitions of the new rows; a table without partitions is one partition."""
    overwrite_schema: bool = False
    """Replace schema, partitioning and index settings too."""
    partition_by: tuple[str, ...] | None = None
    """The partition columns that the writer names: the table's, or those of the new schema."""
    merge_schema: bool = False
    expected_version: int | None = None
    """Any change of data by others since this version is a conflict."""
    txn: TxnAction | None = None
    user_metadata: str | None = None

    def __post_init__(self) -> None:
        if self.dynamic and self.where is not None:
            raise OptionError(
                "a condition and the partitions of the new rows cannot be combined: both say what is replaced"
            )
        if self.overwrite_schema and (self.dynamic or self.where is not None):
            named = "the partitions of the new rows" if self.dynamic else "a condition"
            raise OptionError(f"a new schema replaces all rows, so {named} cannot limit what is replaced")


APPEND = Order()


def write(log: TransactionLog, data: Any, order: Order = APPEND) -> WriteResult:
    """Write rows as the order says, in one commit, with the options of the log and of the table.

    What is due after a write is done before this returns.
    """
    result = write_rows(log, data, order)
    after_write(log)
    return result


def write_rows(log: TransactionLog, data: Any, order: Order = APPEND) -> WriteResult:
    """Write rows as the order says, in one commit, and nothing else.

    An append does not wait to hear whether there is a newer version before it builds its splits. If the
    table turns out to be described otherwise by now, it begins again, provided its rows can be read again.
    """
    result = None
    cached, source = log.newest_seen(), to_arrow(data)
    if cached is not None and not order.overwrite and isinstance(source, pa.Table):
        result = _write_on(log, cached, source, order, assumed=True)
    if result is None:
        result = _write_on(log, log.snapshot(max_staleness_s=0), source, order)
        assert result is not None
    return result


def _write_on(
    log: TransactionLog, snapshot: Snapshot, source: ArrowData, order: Order, *, assumed: bool = False
) -> WriteResult | None:
    """Write rows planned on a version; None if it was only assumed to be current and is not."""
    newest = log.look_beside()

    def has_changed() -> bool:
        return assumed and newest().metadata != snapshot.metadata

    try:
        batches, settings = batches_of(source), snapshot.settings
        schema = source.schema if source.schema.names else snapshot.schema
        plan = planned(snapshot, schema, settings, order)
        if order.where is not None:
            node = condition(order.where, snapshot.schema, settings)
            batches = checked(batches, plan.schema, node, order.where, settings)
        built = build(log, plan, batches, settings)
    except Error:
        if has_changed():
            return None
        raise
    try:
        changed = has_changed()
    except BaseException:
        discard(log.store, [split.add for split in built])
        raise
    if changed:
        discard(log.store, [split.add for split in built])
        return None
    return commit_splits(log, snapshot, plan, built, order, settings, newest)


def planned(snapshot: Snapshot, schema: pa.Schema, options: Options, order: Order) -> WritePlan:
    """What a write does to the table's description, as its order says."""
    return plan_write(
        snapshot,
        schema,
        options,
        merge_schema=order.merge_schema,
        overwrite_schema=order.overwrite_schema,
        partition_by=order.partition_by,
    )


def commit_splits(  # noqa: PLR0917 - one value, passed on in one place
    log: TransactionLog,
    snapshot: Snapshot,
    plan: WritePlan,
    built: Sequence[BuiltSplit],
    order: Order,
    options: Options,
    begin: Callable[[], Snapshot] | None = None,
) -> WriteResult:
    """Commit splits that were built on a version; if that fails for certain, they are deleted.

    `begin` returns the version to commit on, from a listing that was begun beside the upload.
    """
    adds = [split.add for split in built]
    kind = _write_kind(log, snapshot, plan, adds, order, options)
    try:
        committed = log.commit(kind.commit(plan, built, order, snapshot.segment.purges), begin)
    except NEVER_COMMITTED:
        discard(log.store, [*adds, *kind.rewritten])
        raise
    named = (
        {action.path for action in committed.actions if isinstance(action, AddAction)}
        if committed.written
        else ()
    )
    discard(log.store, [add for add in (*adds, *kind.rewritten) if add.path not in named])
    return outcome(committed, built, kind.truncated)


@dataclass(frozen=True, slots=True)
class _WriteKind:
    """A kind of write: what it removes from a version, and which commits by others it tolerates."""

    rule: Rule
    files_to_replace: Callable[[Snapshot], Taken]
    parameters: dict[str, str]
    scope: Node | None = None
    read_version: int | None = None
    if_empty: bool = True
    """Whether a write without rows changes anything."""
    rewritten: Sequence[AddAction] = field(default=())
    truncated: Callable[[], Truncated] | None = None
    """What was left out of the statistics of rewritten files."""

    def commit(
        self, plan: WritePlan, built: Sequence[BuiltSplit], order: Order, purges: frozenset[str]
    ) -> CommitPlan:
        adds = [split.add for split in built]

        def actions(base: Snapshot) -> Sequence[Action]:
            if not (adds or self.if_empty):
                return []
            metadata = plan.metadata_on(base)
            removed, rewritten_adds = self.files_to_replace(base)
            return [
                *([metadata] if metadata is not None else ()),
                *removals(base, removed),
                *rewritten_adds,
                *adds,
            ]

        return CommitPlan(
            "OVERWRITE" if order.overwrite else "WRITE",
            self.rule,
            actions,
            scope=self.scope,
            read_version=self.read_version,
            written_for=plan.planned_on,
            purges=purges,
            txn=order.txn,
            parameters={"mode": "overwrite" if order.overwrite else "append", **self.parameters},
            metrics={"numOutputRows": _rows(adds)},
            truncated=Truncated.total(split.truncated for split in built),
            truncated_by_build=self.truncated,
            user_metadata=order.user_metadata,
        )


def _write_kind(  # noqa: PLR0917 - one value, passed on in one place
    log: TransactionLog,
    snapshot: Snapshot,
    plan: WritePlan,
    adds: Sequence[AddAction],
    order: Order,
    options: Options,
) -> _WriteKind:
    expected = order.expected_version
    if not order.overwrite:
        # Rows that must be the first are refused by the rule of an overwrite; they remove nothing.
        rule = Rule.APPEND if expected is None else Rule.OVERWRITE
        return _WriteKind(rule, lambda _: ((), ()), {}, read_version=expected, if_empty=False)
    if order.overwrite_schema:
        version = snapshot.version
        return _WriteKind(Rule.EXCLUSIVE, _everything, {"overwriteSchema": "true"}, read_version=version)
    if order.where is not None:
        node = condition(order.where, snapshot.schema, options)
        without_matches = MatchingRowsRemoved(log, node, options)
        parameters = {"predicate": str(order.where)}
        return _WriteKind(
            Rule.OVERWRITE_WHERE,
            without_matches.on,
            parameters,
            node,
            expected,
            rewritten=without_matches.rewritten,
            truncated=lambda: without_matches.truncated,
        )
    if order.dynamic and plan.partition_columns:
        return _partitions(snapshot, adds, expected)
    return _WriteKind(Rule.OVERWRITE, _everything, {}, read_version=expected)


def _everything(base: Snapshot) -> Taken:
    return base.adds(), ()


def _partitions(snapshot: Snapshot, adds: Sequence[AddAction], expected: int | None) -> _WriteKind:
    columns = snapshot.partition_columns
    touched = {_values(add, columns) for add in adds}
    tests = [_partition(values, snapshot) for values in sorted(touched, key=str)]
    scope = any_of(tests) if tests else FALSE

    def files_to_replace(base: Snapshot) -> Taken:
        candidate_paths = base.plan(scope, columns={"path"}).files.column("path").to_pylist()
        return [add for add in base.adds(candidate_paths) if _values(add, columns) in touched], ()

    parameters = {"partitionOverwriteMode": "dynamic"}
    return _WriteKind(Rule.OVERWRITE_WHERE, files_to_replace, parameters, scope, expected, if_empty=False)


def _values(add: AddAction, columns: Sequence[str]) -> PartitionValues:
    values = add.values
    return tuple(values.get(name) for name in columns)


def _partition(values: PartitionValues, snapshot: Snapshot) -> Node:
    """The condition that holds for the rows of one partition."""
    tests: list[Node] = []
    for name, text in zip(snapshot.partition_columns, values, strict=True):
        kind = snapshot.schema.field(name).type
        column = Column((name,), kind)
        tests.append(
            IsNull(column)
            if text is None
            else Compare("=", column, Literal(decode_partition(text, kind), kind))
        )
    return all_of(tests)


def outcome(
    committed: Committed, built: Sequence[BuiltSplit], rewritten: Callable[[], Truncated] | None = None
) -> WriteResult:
    """The result of a committed write; `rewritten` says what was truncated in files it rewrote."""
    committed_paths = {action.path for action in committed.actions if isinstance(action, AddAction)}
    committed_splits = [split for split in built if split.add.path in committed_paths]
    removed = sum(isinstance(action, RemoveAction) for action in committed.actions)
    in_rewritten = () if rewritten is None or not committed.written else (rewritten(),)
    truncated = Truncated.total((*(split.truncated for split in committed_splits), *in_rewritten))
    return WriteResult(
        version=committed.version,
        files_added=len(committed_paths),
        files_removed=removed,
        rows=_rows([split.add for split in committed_splits]),
        bytes=sum(split.add.size for split in committed_splits),
        attempts=committed.attempts,
        conflicts=committed.conflicts,
        columns_truncated=len(truncated.columns),
        bytes_saved=truncated.bytes_saved,
    )


def _rows(adds: Sequence[AddAction]) -> int:
    return sum(add.num_records or 0 for add in adds)
