"""DESCRIBE INDEXTABLES: facts about a table, read from its log and, for sizes, from its splits.

Nothing here needs the rows, so all of it but COMPONENT SIZES also works on
tables whose splits this version cannot read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.display.plain import counted, size_text
from indextables.errors import TableError
from indextables.lazy import later, pc
from indextables.log.format.dialect import NATIVE, LogFile
from indextables.log.format.protocol import describe as protocol_text
from indextables.log.scans import SKIPPING_TOTALS
from indextables.log.segment import list_log, ranges, reconstructible
from indextables.log.skips import in_cooldown
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import (
    Action,
    AddAction,
    CommitInfo,
    RemoveAction,
    SkipAction,
    action_to_wire,
    encode_action,
)
from indextables.model.types import type_to_sql
from indextables.ops.read.matching import live_lengths
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.records import dataclass
from indextables.storage.store import open_store

if TYPE_CHECKING:
    from indextables.display import notebook
else:
    notebook = later("indextables.display.notebook")

_MOMENT = pa.timestamp("ms", tz="UTC")
_TEXTS = pa.map_(pa.string(), pa.string())
_OF_OURS = ("index_size_bytes", "skipped_files", "files_in_cooldown")
_FIELDS = {
    "timestamp": "timestamp_ms",
    "created": "created_ms",
    "index_size_bytes": "index_bytes",
    "log_size_bytes": "log_bytes",
    "schema": "schema_json",
}
"""The columns of STATE that are called otherwise in Python."""


@dataclass(frozen=True, slots=True)
class ColumnDescription:
    """One column of a table, as people read it."""

    name: str
    type: str
    nullable: bool
    partition: bool
    index: str | None


@dataclass(frozen=True, slots=True)
class Description:
    """What a table is at one version."""

    table_path: str
    table_id: str
    version: int
    timestamp_ms: int
    created_ms: int | None
    num_files: int
    num_rows: int | None
    size_bytes: int
    index_bytes: int
    partition_columns: tuple[str, ...]
    protocol: str
    provider: str
    checkpoint_version: int | None
    versions_available: str
    log_files: int
    log_bytes: int
    skipped_files: int
    files_in_cooldown: int
    properties: dict[str, str | None]
    columns: tuple[ColumnDescription, ...]
    schema_json: str

    @property
    def is_delta(self) -> bool:
        """Whether it is a Delta table, which has no index and no files that wait for another try."""
        return self.provider == "delta"

    def to_html(self) -> str:
        """What a notebook shows of a table: what it is, and its columns."""
        facts = [
            ("table", self.table_path),
            ("version", self.version),
            ("rows", self.num_rows),
            ("files", self.num_files),
            ("size", size_text(self.size_bytes)),
            ("partitioned by", ", ".join(self.partition_columns) or "nothing"),
            ("versions", self.versions_available),
        ]
        return notebook.facts_html("Table", facts) + notebook.table_html(self.columns_to_arrow(), "Columns")

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_arrow(self) -> pa.Table:
        """One row with every fact but the columns; of a Delta table without those that only ours have."""
        left_out = _OF_OURS if self.is_delta else ()
        schema = pa.schema([column for column in state_columns() if column.name not in left_out])
        row = {name: getattr(self, _FIELDS.get(name, name)) for name in schema.names}
        return pa.Table.from_pylist([{**row, "properties": list(self.properties.items())}], schema)

    def columns_to_arrow(self) -> pa.Table:
        """One row per column of the table."""
        fields = [
            ("column", pa.string(), [column.name for column in self.columns]),
            ("type", pa.string(), [column.type for column in self.columns]),
            ("nullable", pa.bool_(), [column.nullable for column in self.columns]),
            ("partition", pa.bool_(), [column.partition for column in self.columns]),
        ]
        if not self.is_delta:
            fields.append(("index", pa.string(), [column.index for column in self.columns]))
        return pa.table({name: pa.array(values, kind) for name, kind, values in fields})


def state_columns() -> pa.Schema:
    """The columns of DESCRIBE INDEXTABLES STATE."""
    return pa.schema(
        [
            ("table_path", pa.string()),
            ("table_id", pa.string()),
            ("version", pa.int64()),
            ("timestamp", _MOMENT),
            ("created", _MOMENT),
            ("num_files", pa.int64()),
            ("num_rows", pa.int64()),
            ("size_bytes", pa.int64()),
            ("index_size_bytes", pa.int64()),
            ("partition_columns", pa.list_(pa.string())),
            ("protocol", pa.string()),
            ("provider", pa.string()),
            ("checkpoint_version", pa.int64()),
            ("versions_available", pa.string()),
            ("log_files", pa.int64()),
            ("log_size_bytes", pa.int64()),
            ("skipped_files", pa.int64()),
            ("files_in_cooldown", pa.int64()),
            ("properties", _TEXTS),
            ("schema", pa.string()),
        ]
    )


def describe_state(log: TransactionLog, snapshot: Snapshot | None = None) -> Description:
    """Everything the log says about a version, the newest by default."""
    described_version = snapshot or log.snapshot(max_staleness_s=0)
    return replace(
        described(described_version, str(described_version.metadata.format.get("provider", ""))),
        files_in_cooldown=len(in_cooldown(described_version.skips, log.runtime.clock.now_ms())),
    )


def described(snapshot: Snapshot, provider: str) -> Description:
    """What the log of any dialect says about a version."""
    listing = list_log(snapshot.store, snapshot.dialect)
    metadata, totals = snapshot.metadata, snapshot.totals
    checkpoints = [
        item.version
        for item in snapshot.dialect.checkpoints(listing.files)
        if item.version <= snapshot.version
    ]
    return Description(
        table_path=snapshot.store.uri,
        table_id=metadata.id,
        version=snapshot.version,
        timestamp_ms=snapshot.timestamp_ms,
        created_ms=metadata.created_time,
        num_files=totals.num_files,
        num_rows=totals.num_records,
        size_bytes=totals.size_bytes,
        index_bytes=totals.index_bytes,
        partition_columns=tuple(metadata.partition_columns),
        protocol=protocol_text(snapshot.protocol),
        provider=provider,
        checkpoint_version=max(checkpoints, default=None),
        versions_available=ranges(reconstructible(listing, snapshot.dialect)),
        log_files=len(listing.files),
        log_bytes=sum(file.size for file in listing.files),
        skipped_files=len(snapshot.skips),
        files_in_cooldown=0,
        properties=dict(metadata.configuration),
        columns=_columns(snapshot),
        schema_json=metadata.schema_string,
    )


def _columns(snapshot: Snapshot) -> tuple[ColumnDescription, ...]:
    properties = {key.lower(): value for key, value in snapshot.metadata.configuration.items()}
    return tuple(
        ColumnDescription(
            field.name,
            type_to_sql(field.type),
            field.nullable,
            field.name in snapshot.partition_columns,
            _index_of(field.name, properties),
        )
        for field in snapshot.schema
    )


def _index_of(name: str, properties: dict[str, str | None]) -> str | None:
    """How a column is indexed for search, from the table's properties."""
    for key, value in properties.items():
        if key.endswith(f"indexing.typemap.{name.lower()}"):
            return value
    return None


_METRICS = {
    "num_files": "+{} files",
    "num_added_files": "+{} files",
    "num_removed_files": "-{} files",
    "num_output_rows": "{} rows written",
    "num_added_rows": "{} rows written",
    "num_inserted_rows": "{} rows inserted",
    "num_updated_rows": "{} rows updated",
    "num_deleted_rows": "{} rows deleted",
    "num_read_rows": "{} rows read",
    "num_copied_rows": "{} rows copied",
    "num_merge_groups": "{} groups",
    "num_restored_files": "{} files restored",
    "num_missing_files": "{} files missing",
}
_OF_NO_CHANGE = ("_ms", "_bytes")
"""How the names of durations and sizes end."""


def metrics_text(metrics: Iterable[tuple[str, str]]) -> str:
    """What a version changed, in few words; zeros, durations and sizes are left out."""
    parts = []
    for key, value in metrics:
        # Spark writes numAddedFiles, delta-rs num_added_files.
        name = re.sub("(?<=[a-z])[A-Z]", lambda capital: f"_{capital[0].lower()}", key)
        if value in ("0", "") or name.endswith(_OF_NO_CHANGE):
            continue
        amount = f"{int(value):,}" if value.isdecimal() else value
        text = _METRICS.get(name, key + " {}").format(amount)
        parts.append(re.sub("(row|file|group)s", r"\1", text) if value == "1" else text)
    return ", ".join(dict.fromkeys(parts))


def log_columns() -> pa.Schema:
    """The columns of DESCRIBE INDEXTABLES TRANSACTION LOG."""
    return pa.schema(
        [
            ("version", pa.int64()),
            ("log_file", pa.string()),
            ("action", pa.string()),
            ("path", pa.string()),
            ("partition_values", _TEXTS),
            ("size", pa.int64()),
            ("data_change", pa.bool_()),
            ("num_records", pa.int64()),
            ("timestamp", _MOMENT),
            ("content", pa.string()),
        ]
    )


def log_rows(log: TransactionLog, *, include_all: bool = False) -> pa.Table:
    """One row per action: of the newest checkpoint and the commits after it, or of every commit file."""
    return _table(log_columns(), [_log_row(*entry) for entry in _actions(log, include_all)])


def _actions(log: TransactionLog, include_all: bool) -> Iterator[tuple[int, str, Action]]:
    snapshot = log.snapshot(max_staleness_s=0)
    if include_all:
        commits: Iterable[LogFile] = list_log(log.store, NATIVE).commits.values()
    else:
        checkpoint = snapshot.segment.checkpoint
        commits = snapshot.segment.commits
        if checkpoint is not None:
            name, head = checkpoint.files[0].name, snapshot.source.reader.head(log.store, checkpoint)
            first = (head.protocol, head.metadata, *head.skips, *head.txns)
            yield from ((checkpoint.version, name, action) for action in first if action is not None)
            for add in snapshot.source.reader.adds(log.store, checkpoint):
                yield checkpoint.version, name, add
    for file in commits:
        for action in snapshot.source.read_commit(file):
            yield file.version, file.name, action


def _log_row(version: int, name: str, action: Action) -> tuple[Any, ...]:
    kind, _ = action_to_wire(action)
    path = size = values = None
    if isinstance(action, (AddAction, RemoveAction, SkipAction)):
        path, size, values = action.path, action.size, list((action.partition_values or {}).items())
    data_change = action.data_change if isinstance(action, (AddAction, RemoveAction)) else None
    records = action.num_records if isinstance(action, AddAction) else None
    content = encode_action(action).decode()
    return version, name, kind, path, values, size, data_change, records, _moment(action), content


def _moment(action: Action) -> int | None:
    match action:
        case AddAction():
            return action.modification_time
        case RemoveAction():
            return action.deletion_timestamp
        case SkipAction():
            return action.skip_timestamp
        case CommitInfo():
            return action.timestamp
    return None


def skipped_columns() -> pa.Schema:
    """The columns of DESCRIBE INDEXTABLES SKIPPED FILES."""
    return pa.schema(
        [
            ("path", pa.string()),
            ("reason", pa.string()),
            ("operation", pa.string()),
            ("skipped_at", _MOMENT),
            ("retry_after", _MOMENT),
            ("skip_count", pa.int32()),
            ("in_cooldown", pa.bool_()),
            ("size", pa.int64()),
            ("partition_values", _TEXTS),
        ]
    )


def skipped_rows(log: TransactionLog) -> pa.Table:
    """One row per split that an operation could not handle."""
    now_ms = log.runtime.clock.now_ms()
    rows = [
        (
            skip.path, skip.reason, skip.operation, skip.skip_timestamp, skip.retry_after, skip.skip_count,
            (skip.retry_after or 0) > now_ms, skip.size, list((skip.partition_values or {}).items()),
        )
        for skip in sorted(log.snapshot(max_staleness_s=0).skips.values(), key=lambda skip: skip.path)
    ]  # fmt: skip
    return _table(skipped_columns(), rows)


def property_columns() -> pa.Schema:
    """The columns of SHOW TBLPROPERTIES, which are Spark's."""
    return pa.schema([("key", pa.string()), ("value", pa.string())])


def property_rows(properties: Mapping[str, str | None], key: str | None, uri: str) -> pa.Table:
    """The properties of a table in the order of their keys, or the one of a key."""
    if key is not None and key not in properties:
        return _table(property_columns(), [(key, f"Table {uri} does not have property: {key}")])
    chosen = properties if key is None else {key: properties[key]}
    return _table(property_columns(), sorted(chosen.items()))


def partition_rows(snapshot: Snapshot) -> pa.Table:
    """One row per partition, in the order of its values; a table without partition columns is an error."""
    files = snapshot.plan(columns=("partition_values", "num_records", "num_deleted", "size")).files
    at = files.schema.get_field_index("num_records")
    return partitions_of(snapshot, files.set_column(at, "num_records", live_lengths(files)))


def partitions_of(snapshot: Snapshot, files: pa.Table) -> pa.Table:
    """The same from a list of the live files."""
    uri, columns = snapshot.store.uri, list(snapshot.partition_columns)
    if not columns:
        raise TableError(
            f"{uri} is not partitioned. DESCRIBE INDEXTABLES STATE shows what is in it.", uri=uri
        )
    values = files["partition_values"].combine_chunks()
    if values.null_count:
        raise TableError(
            f"{uri} has {counted(values.null_count, 'file')} with partition values of another type than the "
            "column's. CHECK INDEXTABLES says which.",
            uri=uri,
        )
    keys = [f"key_{at}" for at in range(len(columns))]
    measures = {"num_records": files["num_records"], "size": files["size"]}
    grouped = (
        pa.table({**dict(zip(keys, (values.field(name) for name in columns), strict=True)), **measures})
        .group_by(keys)
        .aggregate(
            [
                ("size", "count"),
                # A file whose rows the log does not count makes the count unknown, not smaller.
                ("num_records", "sum", pc.ScalarAggregateOptions(skip_nulls=False)),
                ("size", "sum"),
            ]
        )
        .sort_by([(key, "ascending") for key in keys])
    )
    columns_in_order = grouped.select([*keys, "size_count", "num_records_sum", "size_sum"])
    return columns_in_order.rename_columns([*columns, "num_files", "num_rows", "size_bytes"])


def skipping_columns() -> pa.Schema:
    """The columns of DESCRIBE INDEXTABLES DATA SKIPPING STATS."""
    return pa.schema(
        [
            ("table_path", pa.string()),
            ("queries", pa.int64()),
            ("files_considered", pa.int64()),
            ("files_pruned_by_partition", pa.int64()),
            ("files_skipped_by_statistics", pa.int64()),
            ("files_kept", pa.int64()),
            ("skip_rate", pa.float64()),
        ]
    )


def skipping_rows(uri: str | None = None) -> pa.Table:
    """What pruning spared the queries of this process, one row per table."""
    only_path = None if uri is None else open_store(uri).uri
    rows = [
        (path, queries, *_skipping_figures(metrics))
        for path, queries, metrics in SKIPPING_TOTALS.entries()
        if only_path is None or path == only_path
    ]
    return _table(skipping_columns(), rows)


def _skipping_figures(metrics: PruneMetrics) -> tuple[int, int, int, int, float]:
    skipped = metrics.considered - metrics.kept
    return (
        metrics.considered,
        metrics.pruned_by_partition,
        metrics.skipped_by_statistics,
        metrics.kept,
        skipped / metrics.considered if metrics.considered else 0.0,
    )


def _table(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows of values, in the order of the columns, as Arrow."""
    arrays = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)]
    return pa.Table.from_arrays(arrays, schema=schema)
