"""What the log of a Delta table says about one version of it: state, history, partitions, properties."""

from __future__ import annotations

from dataclasses import replace

from indextables.errors import NotATableError
from indextables.lazy import pa, pc
from indextables.log.delta.files.file_table import require_partition_values
from indextables.log.delta.history import delta_timeline
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.log.history import history_table
from indextables.ops.delta.scan import COUNTED, live_rows
from indextables.ops.maintain.describe import Description, described, partitions_of, state_columns


def describe_delta(snapshot: DeltaSnapshot) -> Description:
    """The same facts as for an IndexTables table; deleted rows do not count, and there is no index."""
    rows = live_rows(snapshot.sums(COUNTED))
    return replace(described(snapshot, "delta"), num_rows=rows, timestamp_ms=version_time_ms(snapshot))


def state_rows(snapshot: DeltaSnapshot) -> pa.Table:
    """The row of DESCRIBE DETAIL; what only tables of IndexTables have is null."""
    row = describe_delta(snapshot).to_arrow()
    columns = [
        row[column.name] if column.name in row.column_names else pa.nulls(1, column.type)
        for column in state_columns()
    ]
    return pa.table(columns, schema=state_columns())


def history_rows(snapshot: DeltaSnapshot, limit: int | None = None) -> pa.Table:
    """One row per version whose commit is still there, newest first."""
    return history_table(delta_timeline(snapshot.source, snapshot.metadata.configuration), limit)


def partition_rows(snapshot: DeltaSnapshot) -> pa.Table:
    """One row per partition with its files, live rows and bytes."""
    files = snapshot.plan(columns=("partition_values", "size", *COUNTED)).files
    require_partition_values(files, snapshot.store.uri)
    deleted = pc.fill_null(pc.struct_field(files["deletion_vector"], "cardinality"), 0)
    rows = pc.subtract(files["num_records"], deleted)
    at = files.schema.get_field_index("num_records")
    return partitions_of(snapshot, files.set_column(at, "num_records", rows))


def properties(snapshot: DeltaSnapshot) -> dict[str, str]:
    """The properties of the table, with the protocol in the form that Delta Lake shows it."""
    protocol = snapshot.protocol
    shown = {key: value for key, value in snapshot.metadata.configuration.items() if value is not None}
    shown["delta.minReaderVersion"] = str(protocol.min_reader_version)
    shown["delta.minWriterVersion"] = str(protocol.min_writer_version)
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    return shown | {f"delta.feature.{name}": "supported" for name in sorted(features)}


def version_time_ms(snapshot: DeltaSnapshot) -> int:
    """When the version was written, as `as_of` has it; without its commit the best that is known."""
    try:
        timeline = delta_timeline(snapshot.source, snapshot.metadata.configuration)
    except NotATableError:
        return snapshot.timestamp_ms
    at = next((at for at, file in enumerate(timeline.files) if file.version == snapshot.version), None)
    return snapshot.timestamp_ms if at is None else timeline.time_ms(at)
