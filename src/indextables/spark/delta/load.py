"""`load` of a Delta table: a native relation where Spark's reader suffices, else as `delta.read`.

If the files hold the table's columns under their own names and all rows are live, the
table is read by a Parquet scan of the files left by the log, per query, like our own
tables. A table with deletion vectors, mapped columns or unusual type widening is read as
`delta.read` does it, and its files are pruned per query as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import CorruptLogError, OptionError, TableError
from indextables.log import scans
from indextables.log.delta.snapshot import DeltaSnapshot, open_snapshot
from indextables.ops.delta.scan import require_schema
from indextables.spark.delta import tables
from indextables.spark.delta.scan import num_vectors, physical_fields
from indextables.spark.hadoop import hadoop_settings
from indextables.spark.options import CallSettings
from indextables.spark.read.frame import LoadedTable, reading_way, remember
from indextables.spark.read.planner import conjunction, counts_of, hadoop_paths
from indextables.spark.read.relation import RelationSpec, native_frame
from indextables.spark.read.wire import Answer

_NAMES = frozenset({"path", "dv", "size", "modification_time", "partition_values"})


def load_delta(spark: Any, snapshot: DeltaSnapshot, settings: CallSettings, unique: str = "") -> Any:
    """A DataFrame over one version of a Delta table, or over its newest one with `refresh`.

    `unique` is for a snapshot that is no version of the log: its relation is equal to no other.
    """
    require_schema(snapshot)
    if "query" in settings.call:
        raise OptionError(
            f"option 'query' searches an index, and {snapshot.store.uri} is a Delta table, which has none. "
            "Load it and filter its rows, or use DeltaTable.search.",
            key="query",
        )
    if is_plain(spark, snapshot):
        return _native(spark, snapshot, settings, unique)
    return tables.read(spark, snapshot, None)


def listed_delta(spark: Any, snapshot: DeltaSnapshot, settings: CallSettings) -> Any:
    """A relation that knows the files of a version by partition, whatever Spark would read of them."""
    return _native(spark, snapshot, settings, " listed", reads=False)


def is_plain(spark: Any, snapshot: DeltaSnapshot) -> bool:
    """Whether Spark's Parquet reader alone returns the right rows: own names, no deletions, usual types."""
    if snapshot.columns.mode != "none" or reading_way(spark, snapshot) != "native":
        return False
    if tables.widens_oddly(snapshot) or '"void"' in snapshot.metadata.schema_string:
        return False
    return not num_vectors(snapshot)


def _native(
    spark: Any, snapshot: DeltaSnapshot, settings: CallSettings, unique: str, *, reads: bool = True
) -> Any:
    follows = settings.flag("refresh")
    uri, version = snapshot.store.uri, None if follows else snapshot.version
    engine = settings.call.get("engine", "auto")
    options = json.dumps([dict(settings.table), engine], sort_keys=True)
    digest = hashlib.sha256(options.encode()).hexdigest()[:16]
    shown = "newest version" if follows else f"version {version}"
    identity = f"delta {snapshot.metadata.id}@{'newest' if follows else version} {uri} {digest}{unique}"
    fields = physical_fields(json.loads(snapshot.metadata.schema_string)["fields"], "none")
    spec = RelationSpec(
        root=snapshot.store.spark_uri("").rstrip("/"),
        identity=identity,
        label=f"{uri} {shown}",
        schema_json=json.dumps({"type": "struct", "fields": fields}),
        partition_columns=snapshot.columns.partition_columns,
        options=hadoop_settings(uri, settings.table),
    )
    pinned = "versionAsOf" in settings.call or "timestampAsOf" in settings.call
    remember(identity, LoadedTable(uri, settings.table, version, pinned))
    return native_frame(spark, spec, DeltaPlanner(snapshot, follows=follows, engine=engine, reads=reads))


@dataclass(frozen=True, slots=True)
class DeltaPlanner:
    """Chooses the files of one query."""

    loaded: DeltaSnapshot
    """The version that was loaded; with `follows` the newest of the same shape is read."""
    follows: bool = False
    engine: str = "auto"
    reads: bool = True
    """Whether rows are read; else only partitions are listed, and deleted rows do not matter."""

    def snapshot(self) -> DeltaSnapshot:
        """The version to read now."""
        if not self.follows:
            return self.loaded
        loaded = self.loaded
        newest = open_snapshot(loaded.store.uri, options=loaded.opened_with(), runtime=loaded.runtime)
        same = (newest.metadata.id, newest.metadata.schema_string, newest.columns.mode)
        if same != (loaded.metadata.id, loaded.metadata.schema_string, loaded.columns.mode):
            raise TableError(
                f"the columns of {loaded.store.uri} have changed since version {loaded.version}, which was "
                "loaded. Load it again.",
                uri=loaded.store.uri,
            )
        return newest

    def plan(self, filters: Sequence[Mapping[str, Any]]) -> Answer:
        """The files that may hold rows for all these typed filters."""
        snapshot = self.snapshot()
        planned = snapshot.plan(conjunction(filters, snapshot), columns=_NAMES, engine=self.engine)
        scan = scans.record(snapshot.store.uri, snapshot.version, planned.metrics, planned.replay)
        files = planned.files
        self._require_plain(files)
        values = files.column("partition_values").combine_chunks()
        return Answer(
            considered=planned.metrics.considered,
            paths=hadoop_paths(snapshot.store, files.column("path")),
            sizes=files.column("size"),
            modified_ms=files.column("modification_time").cast(pa.int64()),
            partitions=tuple(
                pc.struct_field(values, [at]) for at in range(len(snapshot.columns.partition_columns))
            ),
            shown=scan.aside(),
        )

    def count(self, question: Mapping[str, Any]) -> pa.Table | None:
        """Keys and aggregates of the version; None if the log alone cannot tell.

        Other writers cut texts and instants short in their statistics, and differ about NaN.
        """
        snapshot = self.snapshot()
        named = [
            item["column"]
            for item in question["aggregates"]
            if "column" in item and item["function"] != "count"
        ]
        if any(not _has_exact_bounds(snapshot.schema.field(name).type) for name in named):
            return None
        if not snapshot.settings.read.aggregate_pushdown or num_vectors(snapshot):
            return None
        return counts_of(snapshot, question)

    def size_bytes(self) -> int:
        """Bytes of the whole version."""
        return max(1, self.snapshot().sums(("size",), self.engine).sums["size"])

    def _require_plain(self, files: pa.Table) -> None:
        """Refuse what Spark's reader would get wrong: deleted rows, and unreadable partition values."""
        uri = self.loaded.store.uri
        vectors, values = files.column("dv"), files.column("partition_values")
        if self.reads and vectors.null_count != len(vectors):
            raise TableError(
                f"{uri} has gained deletion vectors since it was loaded at version {self.loaded.version}. "
                "Load it again.",
                uri=uri,
            )
        if values.null_count:
            path = files.column("path").filter(pc.is_null(values))[0].as_py()
            raise CorruptLogError(
                f"the log of {uri} gives {path} a partition value that is not of its column's type, so its "
                "rows cannot be read; have the writer correct the entry",
                uri=uri, path=path,
            )  # fmt: skip


def _has_exact_bounds(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_decimal(kind))
