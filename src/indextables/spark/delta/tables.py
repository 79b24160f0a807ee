"""Delta tables on a Spark session: their live files, and their rows, as DataFrames."""

from __future__ import annotations

from typing import Any

from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.model.fields import normalise_schema
from indextables.ops.delta.scan import require_schema
from indextables.predicate.build.from_sql import as_node
from indextables.spark.delta.column_filter import node_of_column
from indextables.spark.delta.rows import rows_frame
from indextables.spark.delta.scan import scan
from indextables.spark.options import session_zone
from indextables.spark.read.filters import filtered, is_column
from indextables.spark.read.frame import reading_way
from indextables.spark.replay import engine

__all__ = ["apply_skipping", "node_of_column", "read", "replay"]


def replay(spark: Any, snapshot: DeltaSnapshot) -> Any:
    """The live files in the layout of `files()`, as a DataFrame that stays on the cluster."""
    return engine.replay_frame(spark, snapshot.request())


def apply_skipping(frame: Any, schema: Any, where: Any) -> Any:
    """Drop the files that cannot hold a row matching `where`."""
    table_schema = normalise_schema(schema)
    partitions = frame.schema["partition_values"].dataType if "partition_values" in frame.columns else None
    names = frozenset(getattr(partitions, "names", ()))
    return engine.skip(frame, as_node(where, table_schema, session_zone(frame.sparkSession)), names)


def read(spark: Any, snapshot: DeltaSnapshot, where: Any) -> Any:
    """The live rows, filtered exactly."""
    require_schema(snapshot)
    zone = snapshot.time_zone
    # A Spark Column is applied to files per query, by the plan it becomes part of.
    node = None if is_column(where) else as_node(where, snapshot.schema, zone)
    rows = scan if reading_way(spark, snapshot) == "native" and not widens_oddly(snapshot) else rows_frame
    return filtered(rows(spark, snapshot, node), where, snapshot.schema, zone)


def widens_oddly(snapshot: DeltaSnapshot) -> bool:
    """Whether a column may have been widened to a decimal, which Spark supports only for some integers."""
    changes = '"delta.typeChanges"'
    return changes in snapshot.metadata.schema_string and "decimal" in snapshot.metadata.schema_string
