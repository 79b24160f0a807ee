"""Delta tables on a Spark session: their live files, and their rows, as DataFrames."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.model.fields import normalise_schema, schema_to_json
from indextables.ops.delta.scan import require_schema
from indextables.predicate.build.from_spark import from_typed
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.prune.rule import columns_needed
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


def replay(spark: Any, snapshot: DeltaSnapshot, num_partitions: int | None = None) -> Any:
    """The live files in the layout of `files()`, as a DataFrame that stays on the cluster."""
    frame = engine.replay_frame(spark, snapshot.request())
    return frame if num_partitions is None else frame.repartition(num_partitions, "path")


def apply_skipping(
    frame: Any, schema: Any, where: Any, partition_filters: Any = None, data_filters: Any = None
) -> Any:
    """Drop the files that cannot hold a row matching all of these filters."""
    spark, table_schema = frame.sparkSession, normalise_schema(schema)
    partitions = frame.schema["partition_values"].dataType if "partition_values" in frame.columns else None
    partition_columns = frozenset(getattr(partitions, "names", ()))

    def node_of(filters: Any) -> Node | None:
        listed = filters if isinstance(filters, (list, tuple)) else [filters]
        nodes = [
            _node_of_column(spark, schema_json(schema, table_schema), table_schema, item)
            if is_column(item)
            else as_node(item, table_schema, session_zone(spark))
            for item in listed
            if item is not None
        ]
        conditions = [node for node in nodes if node is not None]
        return all_of(conditions) if conditions else None

    by_partition, by_data = node_of(partition_filters), node_of(data_filters)
    for node, is_partition, name in (
        (by_partition, True, "partition_filters"),
        (by_data, False, "data_filters"),
    ):
        needs = columns_needed(node, partition_columns)
        misplaced = needs.statistics if is_partition else needs.partitions
        if misplaced:
            other = "data_filters" if is_partition else "partition_filters"
            raise PredicateError(
                f"{name} has a filter on {', '.join(sorted(misplaced))}; give it in {other}, or as where"
            )
    conditions = [node for node in (by_partition, by_data, node_of(where)) if node is not None]
    return engine.skip(frame, all_of(conditions) if conditions else None, partition_columns)


def schema_json(schema: Any, table_schema: pa.Schema) -> str:
    """A schema in any of its forms as the JSON text of a StructType."""
    if isinstance(schema, str):
        return schema
    return str(schema.json()) if hasattr(schema, "json") else schema_to_json(table_schema)


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
    """The part of a Column that statistics can decide; None when there is none."""
    return _node_of_column(spark, snapshot.metadata.schema_string, snapshot.schema, where)


def _node_of_column(spark: Any, document: str, schema: pa.Schema, where: Any) -> Node | None:
    """The same over columns of any schema, which is given as the JSON text of a StructType too.

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
        root="file:///",
        identity=f"filter {uuid.uuid4()}",
        label="a filter",
        schema_json=document,
        partition_columns=(),
    )
    frame = native_frame(spark, spec, recorder).filter(where)
    for leaf, _ in file_indexes(frame):
        leaf.selectedPartitions()
    nodes = [from_typed(tree, schema) for tree in recorder.filters]
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

    def count(self, question: Mapping[str, Any]) -> pa.Table | None:
        """Nothing, so that the filters are planned."""
        del question
        return None

    def size_bytes(self) -> int:
        """As small as can be."""
        return 1
