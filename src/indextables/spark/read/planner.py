"""The planner of a native relation: chooses the files of a table version for each query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import TableError
from indextables.log import scans
from indextables.ops.read.splits import ruled_out_by_index, splits_at
from indextables.predicate.build.from_spark import from_typed
from indextables.predicate.tree import all_of
from indextables.runtime import in_threads
from indextables.spark.open_logs import open_log
from indextables.spark.read.wire import Answer
from indextables.split.open_splits import open_split
from indextables.storage.store import Store, requests_at_once, require_allowed, resolve

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from indextables.log.snapshot import Snapshot
    from indextables.predicate.tree import Node

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
    only: frozenset[str] | None = None
    """If set, only these files are read."""
    fixed: Snapshot | None = None
    """If set, what is read instead of a version of the log: the files of a stream's batch."""

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
        return snapshot

    def plan(self, filters: Sequence[Mapping[str, Any]]) -> Answer:
        """The files that may hold rows for all these typed filters."""
        snapshot = self.snapshot()
        node = conjunction(filters, snapshot)
        planned = snapshot.plan(node, columns=_COLUMNS, engine=self.engine)
        scan = scans.record(self.uri, snapshot.version, planned.metrics, planned.replay)
        files = planned.files
        if self.only is not None:
            files = files.filter(_among(files.column("path"), self.only))
        excluded, fields = ruled_out_by_index(snapshot, node, lambda: files.column("path").to_pylist())
        if excluded:
            files = files.filter(pc.invert(_among(files.column("path"), excluded)))
        values = files.column("partition_values").combine_chunks()
        return Answer(
            considered=planned.metrics.considered,
            paths=hadoop_paths(snapshot.store, files.column("path")),
            sizes=files.column("size"),
            modified_ms=files.column("modification_time").cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64()),
            partitions=tuple(_child(values, name) for name in snapshot.partition_columns),
            shown=scan.aside() + (f", {len(excluded)} by the index ({', '.join(fields)})" if fields else ""),
            deleted=_deleted(snapshot, files),
        )

    def size_bytes(self) -> int:
        """Bytes of rows: the index inside a split is not read by a scan."""
        sums = self.snapshot().sums(("size", "index_length"), self.engine).sums
        return max(sums["size"] - sums["index_length"], 1)


def _deleted(snapshot: Snapshot, files: pa.Table) -> dict[int, np.ndarray]:
    """The deleted rows of the files that have any, by their index."""
    marked = pc.indices_nonzero(pc.is_valid(files.column("dv"))).to_pylist()
    if not marked:
        return {}
    paths = files.column("path").take(pa.array(marked)).to_pylist()
    refs = splits_at(snapshot, paths)
    rows = in_threads(
        lambda ref: open_split(snapshot.store, ref).hidden, refs, requests_at_once(snapshot.store)
    )
    hidden = {ref.path: some for ref, some in zip(refs, rows, strict=True) if some is not None}
    return {at: hidden[path] for at, path in zip(marked, paths, strict=True)}


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
