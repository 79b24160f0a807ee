"""Extracts from a Spark Column the filter on the files of a Delta table.

The column is used as a filter on an empty relation with the table's columns, and Spark
plans it. The conditions that Spark's planner then passes to the file index are the same
typed trees by which all our queries are pruned.
"""

# because PySpark keeps its JVM objects private
from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.predicate.build.from_spark import from_typed
from indextables.predicate.tree import Node, all_of
from indextables.spark.options import is_connect
from indextables.spark.read.relation import RelationSpec, native_frame
from indextables.spark.read.scans import file_indexes
from indextables.spark.read.wire import Answer


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


def node_of_column(spark: Any, snapshot: DeltaSnapshot, where: Any) -> Node | None:
    """The part of a Column that statistics can decide; None when there is none."""
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
