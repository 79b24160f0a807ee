"""Writing rows: append, and overwrite of everything. Splits are built first, then one commit names them.

The schema and the index settings are checked before the first row is read.
Settings a write brings for columns that have none become table properties in
the same commit; settings that contradict the table's are an error. If building
fails, what was published is deleted again; if the commit's fate is unknown the
splits stay, and PURGE decides about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from indextables.errors import (
    AttemptsExhaustedError,
    ConflictError,
    OptionError,
    ProtocolError,
    SchemaError,
    SplitError,
)
from indextables.index.settings import IndexField, IndexSpec, from_options
from indextables.log.commit.attempt import CommitPlan, Committed, Rule
from indextables.log.commit.changes import removals
from indextables.log.snapshot import Snapshot
from indextables.log.table_options import with_table
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import Action, AddAction, MetadataAction, TxnAction
from indextables.model.fields import cast_table, schema_to_json
from indextables.ops.results import WriteResult
from indextables.ops.rewrite.rows import discard, require_writable
from indextables.ops.table_settings import indexing_of, settings_of
from indextables.ops.write.evolution import check_data, evolved
from indextables.options import IndexingOptions, Options
from indextables.split.write.build import BuiltSplit, build_splits

NEVER_COMMITTED = (
    ConflictError, AttemptsExhaustedError, OptionError, ProtocolError, SchemaError, SplitError,
)  # fmt: skip
"""Failures after which it is certain that no version names the new splits."""


@dataclass(frozen=True, slots=True)
class WritePlan:
    """What a write will do to the table's description, decided before any row is read; picklable."""

    schema: pa.Schema
    partition_columns: tuple[str, ...]
    spec: IndexSpec
    table_id: str
    data_schema: pa.Schema
    merge_schema: bool = False
    new_properties: tuple[tuple[str, str], ...] = ()
    made_for: MetadataAction | None = None
    """What the table was when this was planned; None where it is about to be created."""

    def metadata_on(self, base: Snapshot) -> MetadataAction | None:
        """The metadata this write needs on top of a version; None when it is there already."""
        schema = (
            evolved(base.schema, self.data_schema, base.partition_columns)
            if self.merge_schema
            else base.schema
        )
        missing = {key: value for key, value in self.new_properties if key not in base.metadata.configuration}
        if schema.equals(base.schema) and not missing:
            return None
        text = base.metadata.schema_string if schema.equals(base.schema) else schema_to_json(schema)
        return replace(
            base.metadata,
            schema_string=text,
            configuration={**base.metadata.configuration, **missing},
        )


def plan_write(
    snapshot: Snapshot, data_schema: pa.Schema, options: Options, *, merge_schema: bool = False
) -> WritePlan:
    """Check data and settings against the table; nothing is read or written."""
    require_writable(snapshot)
    schema = snapshot.schema
    if merge_schema:
        schema = evolved(schema, data_schema, snapshot.partition_columns)
    check_data(schema, data_schema, snapshot.store.uri)
    known = settings_of(snapshot)
    spec = settings_for_write(snapshot, schema, options)
    kept = known.to_properties()
    new = tuple((key, value) for key, value in spec.to_properties().items() if kept.get(key) != value)
    return WritePlan(
        schema,
        snapshot.partition_columns,
        spec,
        snapshot.split_table_id,
        data_schema,
        merge_schema,
        new,
        snapshot.metadata,
    )


def effective(snapshot: Snapshot, options: Options | None) -> Options:
    """The options of one write: its own, with the table's properties in the place of defaults."""
    if options is None:
        return snapshot.settings
    return with_table(options, snapshot.metadata.configuration, snapshot.store.uri)


def settings_for_write(snapshot: Snapshot, schema: pa.Schema, options: Options) -> IndexSpec:
    """The table's settings with those a write brings for further columns."""
    table = indexing_of(snapshot.metadata.configuration)
    known = settings_of(snapshot)
    explicit = Options.of(indexing_of(options.explicit))
    # Another kind is found first: what the table says of a text's words would not fit it.
    kinds = from_options(IndexingOptions(typemap=explicit.indexing.typemap), schema)
    for item in known.fields:
        now = kinds.get(item.column)
        if now is not None and now.kind != item.kind:
            raise _contradiction(item, now, snapshot.store.uri)
    asked = from_options(Options.of(explicit, table=table), schema)
    for item in known.fields:
        now = asked.get(item.column)
        if now is not None and replace(now, fast=now.fast or item.fast) != item:
            raise _contradiction(item, now, snapshot.store.uri)
    fields = {item.column: item for item in (*asked.fields, *known.fields)}
    return IndexSpec(tuple(fields[name] for name in schema.names if name in fields))


def _contradiction(known: IndexField, asked: IndexField, uri: str) -> OptionError:
    return OptionError(
        f"column {known.column!r} of {uri} is indexed as {_shown(known)}, and this write asks for "
        f"{_shown(asked)}. Leave the setting out, or change it with update_properties and MERGE SPLITS, "
        "which indexes the existing splits anew.",
        column=known.column,
    )


def _shown(item: IndexField) -> str:
    return f"{item.kind} (tokenizer {item.tokenizer}, {item.record})" + (" fast" if item.fast else "")


def as_batches(data: Any) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema and the batches of whatever holds Arrow data."""
    if isinstance(data, pa.RecordBatch):
        return data.schema, iter([data])
    if isinstance(data, pa.Table):
        return data.schema, iter(data.to_batches())
    if isinstance(data, pa.RecordBatchReader):
        return data.schema, iter(data)
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return reader.schema, iter(reader)
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, dict)):
        batches = iter(data)
        first = next(batches, None)
        if first is None:
            return pa.schema([]), iter(())
        schema, parts = as_batches(first)
        return schema, _chained(parts, batches, schema)
    raise SchemaError(
        f"cannot write {type(data).__name__}; give a pyarrow Table, RecordBatch or RecordBatchReader, "
        "an iterable of batches, or anything with the Arrow C stream interface"
    )


def _chained(
    first: Iterator[pa.RecordBatch], rest: Iterator[Any], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    yield from first
    for item in rest:
        found, parts = as_batches(item)
        if not found.equals(schema):
            raise SchemaError(f"a batch has the schema {found}, and the first had {schema}")
        yield from parts


def build(
    log: TransactionLog, plan: WritePlan, batches: Iterable[pa.RecordBatch], options: Options
) -> list[BuiltSplit]:
    """Write the rows as splits that no version names yet; after a failure none is left."""
    timestamps = options.write.timestamps
    rows = (cast_table(batch, plan.schema, timestamps=timestamps) for batch in batches if batch.num_rows)
    built: list[BuiltSplit] = []
    try:
        built.extend(
            build_splits(
                rows,
                plan.schema,
                plan.partition_columns,
                plan.spec,
                options,
                log.store,
                table_id=plan.table_id,
                now_ms=log.runtime.clock.now_ms(),
            )
        )
    except BaseException:
        discard(log.store, [split.add for split in built])
        raise
    return built


def append(
    log: TransactionLog,
    data: Any,
    *,
    options: Options | None = None,
    merge_schema: bool = False,
    txn: TxnAction | None = None,
    user_metadata: str | None = None,
) -> WriteResult:
    """Add rows in one commit."""
    schema, batches = as_batches(data)
    snapshot = log.snapshot(max_staleness_s=0)
    chosen = effective(snapshot, options)
    plan = plan_write(snapshot, schema, chosen, merge_schema=merge_schema)
    built = build(log, plan, batches, chosen)
    adds = [split.add for split in built]
    commit = append_plan(plan, adds, txn=txn, user_metadata=user_metadata)
    return outcome(commit_or_discard(log, commit, adds), built)


def append_plan(
    plan: WritePlan,
    adds: Sequence[AddAction],
    *,
    txn: TxnAction | None = None,
    user_metadata: str | None = None,
    operation: str = "WRITE",
) -> CommitPlan:
    """The commit of an append."""

    def actions(base: Snapshot) -> Sequence[Action]:
        metadata = plan.metadata_on(base) if adds else None
        return [*([metadata] if metadata is not None else ()), *adds]

    return CommitPlan(
        operation,
        Rule.APPEND,
        actions,
        written_for=plan.made_for,
        txn=txn,
        parameters={"mode": "append"},
        metrics={"numOutputRows": _rows(adds)},
        user_metadata=user_metadata,
    )


def overwrite(
    log: TransactionLog,
    data: Any,
    *,
    options: Options | None = None,
    merge_schema: bool = False,
    expected_version: int | None = None,
    txn: TxnAction | None = None,
    user_metadata: str | None = None,
) -> WriteResult:
    """Replace all rows in one commit."""
    schema, batches = as_batches(data)
    snapshot = log.snapshot(max_staleness_s=0)
    chosen = effective(snapshot, options)
    if not schema.names:
        schema = snapshot.schema
    plan = plan_write(snapshot, schema, chosen, merge_schema=merge_schema)
    built = build(log, plan, batches, chosen)
    adds = [split.add for split in built]
    commit = overwrite_plan(
        plan, adds, expected_version=expected_version, txn=txn, user_metadata=user_metadata
    )
    return outcome(commit_or_discard(log, commit, adds), built)


def overwrite_plan(
    plan: WritePlan,
    adds: Sequence[AddAction],
    *,
    expected_version: int | None = None,
    txn: TxnAction | None = None,
    user_metadata: str | None = None,
) -> CommitPlan:
    """The commit of an overwrite: everything live at its base goes."""

    def actions(base: Snapshot) -> Sequence[Action]:
        metadata = plan.metadata_on(base)
        return [*([metadata] if metadata is not None else ()), *removals(base, base.adds()), *adds]

    return CommitPlan(
        "OVERWRITE",
        Rule.OVERWRITE,
        actions,
        read_version=expected_version,
        written_for=plan.made_for,
        txn=txn,
        parameters={"mode": "overwrite"},
        metrics={"numOutputRows": _rows(adds)},
        user_metadata=user_metadata,
    )


def commit_or_discard(log: TransactionLog, plan: CommitPlan, adds: Sequence[AddAction]) -> Committed:
    """Commit; splits that certainly did not become part of the table are deleted."""
    try:
        done = log.commit(plan)
    except NEVER_COMMITTED:
        discard(log.store, adds)
        raise
    if not done.written:
        discard(log.store, adds)
    return done


def outcome(done: Committed, built: Sequence[BuiltSplit]) -> WriteResult:
    """What a committed write came to."""
    named = {action.path for action in done.actions if isinstance(action, AddAction)}
    mine = [split for split in built if split.add.path in named]
    removed = sum(type(action).__name__ == "RemoveAction" for action in done.actions)
    return WriteResult(
        version=done.version,
        files_added=len(named),
        files_removed=removed,
        rows=_rows([split.add for split in mine]),
        bytes=sum(split.add.size for split in mine),
        attempts=done.attempts,
        conflicts=done.conflicts,
        columns_truncated=len({name for split in mine for name in split.truncated.columns}),
        bytes_saved=sum(split.truncated.bytes_saved for split in mine),
    )


def _rows(adds: Sequence[AddAction]) -> int:
    return sum(add.num_records or 0 for add in adds)
