"""SHOW PARTITIONS: the partitions of a table and what is in each, from the log alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indextables.display.plain import counted
from indextables.errors import TableError
from indextables.log.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa


def partition_rows(snapshot: Snapshot) -> pa.Table:
    """One row per partition, in the order of its values; a table without partition columns is an error."""
    import pyarrow as pa
    import pyarrow.compute as pc

    uri, columns = snapshot.store.uri, list(snapshot.partition_columns)
    if not columns:
        raise TableError(
            f"{uri} is not partitioned. DESCRIBE INDEXTABLES STATE shows what is in it.", uri=uri
        )
    files = snapshot.plan(columns=("partition_values", "num_records", "size")).files
    values = files["partition_values"].combine_chunks()
    if values.null_count:
        raise TableError(
            f"{uri} has {counted(values.null_count, 'file')} with partition values of another type than the "
            "column's. "
            "CHECK INDEXTABLES says which.",
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
    shown = grouped.select([*keys, "size_count", "num_records_sum", "size_sum"])
    return shown.rename_columns([*columns, "num_files", "num_rows", "size_bytes"])
