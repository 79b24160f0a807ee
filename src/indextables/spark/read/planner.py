"""The planner of a native relation: chooses the files of a table version for each query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import TableError
from indextables.log import scans
from indextables.model.column_mapping import all_stored_names
from indextables.ops.counting.aggregation import Aggregate, Aggregation, column_of, key_of
from indextables.ops.counting.run import from_log_alone
from indextables.ops.read.matching import live_lengths
from indextables.ops.read.splits import ruled_out_by_index, splits_at
from indextables.predicate.build.from_spark import from_typed
from indextables.predicate.tree import all_of
from indextables.runtime import in_threads
from indextables.spark.open_logs import open_log
from indextables.spark.read.wire import Answer
from indextables.split.open_splits import open_split
from indextables.storage.store import Store, requests_at_once, require_allowed, resolve

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.log.snapshot import Snapshot
    from indextables.predicate.tree import Column, Node

_ABSOLUTE = r"^([A-Za-z][A-Za-z0-9+.-]*:|/)"
_COLUMNS = frozenset({"path", "size", "modification_time", "partition_values", "dv"})


@dataclass(frozen=True, slots=True)
class TablePlanner:
    """Where a table is and which version of it; the snapshot itself stays in the log's cache."""

    spark: Any
    uri: str
    table_id: str
    version: int | None
    """None reads the newest version each time."""
    options: Mapping[str, str]
    engine: str = "auto"
    only: Mapping[str, np.ndarray | None] | None = None
    """If set, only these files are read; of a file with row numbers, only those rows."""
    limit: int | None = None
    """If set, files with this many rows are enough, whichever they are."""
    fixed: Snapshot | None = None
    """If set, what is read instead of a version of the log: the files of a stream's batch."""
    stored_names: Mapping[str, str] = field(default_factory=dict)
    """Of the newest version: the names under which Spark looks for its columns in files."""

    def snapshot(self) -> Snapshot:
        """The version to read now."""
        if self.fixed is not None:
            return self.fixed
        # The newest version is looked up each time: the one of some seconds ago may have been cleaned away.
        snapshot = open_log(self.spark, self.uri, self.options).snapshot(self.version, max_staleness_s=0)
        if snapshot.table_id != self.table_id:
            raise TableError(
                f"{self.uri} is no longer the table this DataFrame was loaded from: it has been deleted "
                "and created again. Load it again.",
                uri=self.uri,
            )
        stored_names = all_stored_names(snapshot.metadata) if self.stored_names else {}
        gone = [name for name, stored in self.stored_names.items() if stored_names.get(name) != stored]
        if gone:
            raise TableError(
                f"{self.uri}: since this DataFrame or view was made, the columns {', '.join(gone)} were "
                f"renamed or dropped, in version {snapshot.version} or before. Load it, or make it, again.",
                uri=self.uri,
            )
        return snapshot

    def plan(self, filters: Sequence[Mapping[str, Any]]) -> Answer:
        """The files that may hold rows for all these typed filters."""
        snapshot = self.snapshot()
        node = conjunction(filters, snapshot)
        columns = _COLUMNS if self.limit is None else _COLUMNS | {"num_records", "num_deleted"}
        planned = snapshot.plan(node, columns=columns, engine=self.engine)
        scan = scans.record(self.uri, snapshot.version, planned.metrics, planned.replay)
        files = planned.files
        if self.only is not None:
            files = files.filter(_among(files.column("path"), frozenset(self.only)))
        excluded, fields = ruled_out_by_index(snapshot, node, lambda: files.column("path").to_pylist())
        if excluded:
            files = files.filter(pc.invert(_among(files.column("path"), excluded)))
        enough = files.num_rows if self.limit is None else _enough(files, self.limit)
        aside = scan.aside()
        if enough < files.num_rows:
            files, aside = files.slice(0, enough), f"{aside}, enough for LIMIT {self.limit}"
        values = files.column("partition_values").combine_chunks()
        return Answer(
            considered=planned.metrics.considered,
            paths=hadoop_paths(snapshot.store, files.column("path")),
            sizes=files.column("size"),
            modified_ms=files.column("modification_time").cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64()),
            partitions=tuple(_child(values, name) for name in snapshot.partition_columns),
            shown=aside + (f", {len(excluded)} by the index ({', '.join(fields)})" if fields else ""),
            deleted=_deleted(snapshot, files),
            chosen=self._chosen(files),
        )

    def _chosen(self, files: pa.Table) -> dict[int, np.ndarray]:
        """The rows of the files of which not all are read, by their index."""
        if self.only is None:
            return {}
        rows = map(self.only.get, files.column("path").to_pylist())
        return {at: some for at, some in enumerate(rows) if some is not None}

    def count(self, question: Mapping[str, Any]) -> pa.Table | None:
        """Keys and aggregates of the version; None if the log alone cannot tell."""
        if self.only is not None:
            return None
        snapshot = self.snapshot()
        if not snapshot.settings.read.aggregate_pushdown:
            return None
        return counts_of(snapshot, question)

    def size_bytes(self) -> int:
        """Bytes of rows: the index inside a split is not read by a scan."""
        sums = self.snapshot().sums(("size", "index_length"), self.engine).sums
        return max(sums["size"] - sums["index_length"], 1)


def _deleted(snapshot: Snapshot, files: pa.Table) -> dict[int, np.ndarray]:
    """The deleted rows of the files that have any, by their index."""
    # Arrow's indices_nonzero ends the process where a column has no chunk.
    marked = pc.is_valid(files.column("dv")).to_numpy().nonzero()[0].tolist()
    if not marked:
        return {}
    paths = files.column("path").take(pa.array(marked)).to_pylist()
    refs = splits_at(snapshot, paths)
    rows = in_threads(
        lambda ref: open_split(snapshot.store, ref).hidden, refs, requests_at_once(snapshot.store)
    )
    hidden = {ref.path: some for ref, some in zip(refs, rows, strict=True) if some is not None}
    return {at: hidden[path] for at, path in zip(marked, paths, strict=True)}


def _enough(files: pa.Table, limit: int) -> int:
    """How many files, from the first on, have so many rows; one that does not say its number has none."""
    totals = np.cumsum(pc.fill_null(live_lengths(files), 0).to_numpy())
    return int(np.searchsorted(totals, limit)) + 1


def counts_of(snapshot: Snapshot, question: Mapping[str, Any]) -> pa.Table | None:
    """The answer of a log to a question of `CountingRule.java`.

    Where minimum or maximum is a zero of floating point there is none: the log does not tell 0.0 from -0.0.
    """
    aggregation = Aggregation(
        tuple(key_of(snapshot.schema, name) for name in question["keys"]),
        tuple(
            Aggregate(f"aggregate {at}", str(item["function"]), _column(snapshot, item.get("column")))
            for at, item in enumerate(question["aggregates"])
        ),
    )
    counts = from_log_alone(snapshot, aggregation, conjunction(question["filters"], snapshot))
    if counts is None:
        return None
    zeros = (
        pc.any(pc.equal(column, 0), min_count=0)
        for column in counts.columns
        if pa.types.is_floating(column.type)
    )
    return None if any(zero.as_py() for zero in zeros) else counts


def _column(snapshot: Snapshot, name: str | None) -> Column | None:
    return None if name is None else column_of(snapshot.schema, name)


def conjunction(filters: Sequence[Mapping[str, Any]], snapshot: Snapshot) -> Node | None:
    """The conjunction of all filters, as a predicate tree."""
    nodes = [from_typed(tree, snapshot.schema) for tree in filters]
    return all_of(nodes) if nodes else None


def chosen_of(paths: pa.ChunkedArray, only: frozenset[str]) -> pa.ChunkedArray:
    """The paths that are in a set."""
    return paths.filter(_among(paths, only))


def _among(paths: pa.ChunkedArray, only: frozenset[str]) -> pa.ChunkedArray:
    return pc.is_in(paths, value_set=pa.array(sorted(only), pa.string()))


def hadoop_paths(store: Store, paths: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The Hadoop paths of the files a log names."""
    plain = paths.combine_chunks() if hasattr(paths, "combine_chunks") else paths
    root = store.spark_uri("").rstrip("/")
    joined = pc.binary_join_element_wise(pa.scalar(root), plain, "/")
    absolute = is_absolute(plain)
    # In a local table a relative path may lead elsewhere too, through a symbolic link.
    own_machine = store.local_path("") is not None
    require_allowed(store, (plain if own_machine else plain.filter(absolute)).to_pylist())
    if not pc.any(absolute, min_count=0).as_py():
        return joined
    outside = [
        _spark_uri(store, path.as_py()) if out.as_py() else None
        for path, out in zip(plain, absolute, strict=True)
    ]
    return pc.if_else(absolute, pa.array(outside, pa.string()), joined)


def is_absolute(paths: pa.ChunkedArray | pa.Array) -> pa.Array:
    """For each path in a log, whether it is absolute and not relative to the table."""
    return pc.match_substring_regex(paths, _ABSOLUTE)


def _spark_uri(store: Store, path: str) -> str:
    home, inside = resolve(store, path)
    return home.spark_uri(inside)


def _child(values: pa.StructArray, name: str) -> pa.Array:
    return pc.struct_field(values, values.type.get_field_index(name))
