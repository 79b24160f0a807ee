"""Delta tables on a Spark session: their live files, and their rows, as DataFrames."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.model.fields import normalise_schema
from indextables.ops.delta.scan import require_schema
from indextables.predicate.build.from_spark import from_typed
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.tree import Node, all_of
from indextables.spark.delta.rows import rows_frame
from indextables.spark.delta.scan import scan
from indextables.spark.options import is_connect, session_zone
from indextables.spark.read.filters import filtered, is_column
from indextables.spark.read.frame import reading_way
from indextables.spark.read.relation import RelationSpec, native_frame
from indextables.spark.read.scans import file_indexes
from indextables.spark.read.wire import Answer
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


def node_of_column(spark: Any, snapshot: DeltaSnapshot, where: Any) -> Node | None:
    """The part of a Column that statistics can decide; None when there is none.

    The Column is used as a filter on an empty relation with the table's columns. Spark plans it, and passes
    the conditions to the relation's planner as the typed trees by which all queries are pruned.
    """
    if is_connect(spark):
        raise PredicateError(
            "on Spark Connect a Column cannot be looked into; write the filter as text or with col(...), "
            "or use to_df, which takes the Column"
        )
    recorder = _FilterRecorder()
    spec = RelationSpec(
        root=snapshot.store.spark_uri("").rstrip("/"),
        identity=f"filter {uuid.uuid4()}",
        label="a filter",
        schema_json=snapshot.metadata.schema_string,
        partition_columns=(),
    )
    frame = native_frame(spark, spec, recorder).filter(where)
    for leaf, _ in file_indexes(frame):
        leaf.selectedPartitions()
    nodes = [from_typed(tree, snapshot.schema) for tree in recorder.filters]
    return all_of(nodes) if nodes else None


class _FilterRecorder:
    """A planner that has no files and records the filters it is given."""

    def __init__(self) -> None:
        self.filters: Sequence[Mapping[str, Any]] = ()

    def plan(self, filters: Sequence[Mapping[str, Any]]) -> Answer:
        """No file at all."""
        self.filters = filters
        nothing = pa.array([], pa.int64())
        return Answer(0, pa.array([], pa.string()), nothing, nothing, ())

    def size_bytes(self) -> int:
        """As small as can be."""
        return 1
