"""Files as the pruner sees them: statistics of rows, and the Arrow table of many files in the form of `files()`."""

from __future__ import annotations

import pyarrow as pa

from indextables.model.fields import decode_partition_array, decode_stat_array, leaf_fields
from indextables.model.stats import statistics_fields


def files_table(stats, partition_values, schema, partition_columns=()):
    """Build the table that `prune_table` takes from FileStats and partition values, one of each per file."""
    fields = statistics_fields(schema, partition_columns)

    def bounds(which):
        children = [
            decode_stat_array(
                pa.array([getattr(item, which).get(field.name) for item in stats], pa.string()), field.type
            )
            for field in fields
        ]
        return pa.StructArray.from_arrays(
            children, fields=[pa.field(field.name, field.type) for field in fields]
        )

    leaves = [field.name for field in leaf_fields(schema) if field.name not in partition_columns]
    counts = [pa.array([item.null_count.get(name) for item in stats], pa.int64()) for name in leaves]
    values = [
        decode_partition_array(
            pa.array([item[name] for item in partition_values], pa.string()), schema.field(name).type
        )
        for name in partition_columns
    ]
    columns = {
        "path": pa.array([f"{number}.split" for number in range(len(stats))], pa.string()),
        "num_records": pa.array([item.num_records for item in stats], pa.int64()),
        "min": bounds("min_values"),
        "max": bounds("max_values"),
        "null_count": pa.StructArray.from_arrays(counts, names=leaves),
    }
    if partition_columns:
        columns["partition_values"] = pa.StructArray.from_arrays(values, names=list(partition_columns))
    return pa.table(columns)
