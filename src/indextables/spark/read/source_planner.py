"""The planner of a companion's relation: chooses files of the source, which Spark's own reader reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from indextables.companion.opening import open_version
from indextables.companion.snapshot import CompanionSnapshot
from indextables.companion.source import SourceFile
from indextables.errors import CorruptLogError, TableError
from indextables.log import scans
from indextables.ops.delta.data_file import hidden_rows
from indextables.runtime import in_threads
from indextables.spark import errors
from indextables.spark.open_logs import open_log
from indextables.spark.read.planner import conjunction, hadoop_paths, is_absolute
from indextables.spark.read.wire import Answer
from indextables.storage.store import requests_at_once

if TYPE_CHECKING:
    from indextables.companion.source import Source


@dataclass(frozen=True, slots=True)
class SourcePlanner:
    """Chooses the files of one query; rows that deletion vectors hide are named with them."""

    spark: Any
    loaded: CompanionSnapshot
    """The version that was loaded; with `follows` the newest of the same columns is read."""
    options: Mapping[str, str]
    follows: bool = False

    def snapshot(self) -> CompanionSnapshot:
        """The version to read now."""
        if not self.follows:
            return self.loaded
        loaded = self.loaded
        newest = open_version(open_log(self.spark, loaded.store.uri, self.options), max_staleness_s=0)
        same = (newest.table_id, newest.metadata.schema_string, newest.partition_columns)
        if same != (loaded.table_id, loaded.metadata.schema_string, loaded.partition_columns):
            raise TableError(
                f"the columns of {loaded.rows_of.uri} have changed since it was loaded through "
                f"{loaded.store.uri}. Load it again.",
                uri=loaded.store.uri,
            )
        assert isinstance(newest, CompanionSnapshot)
        return newest

    def plan(self, filters: Sequence[Mapping[str, Any]]) -> Answer:
        """The files that may hold rows for all these typed filters."""
        snapshot = self.snapshot()
        source = snapshot.rows_of
        where = conjunction(filters, snapshot)
        chosen = snapshot.chosen(where)
        scan = scans.record(snapshot.store.uri, snapshot.version, chosen.metrics, chosen.replay)
        items = [item for item in source.files if item.file.path in chosen.paths]
        paths = pa.array([item.file.path for item in items], pa.string())
        addresses = hadoop_paths(source.store, paths)
        # A file that is gone when Spark opens it is reported by the name of its table.
        elsewhere = addresses.filter(is_absolute(paths)).to_pylist()
        errors.watch(source.version, source.store.spark_uri("").rstrip("/"), *elsewhere)
        return Answer(
            considered=chosen.metrics.considered,
            paths=addresses,
            sizes=pa.array([item.file.size for item in items], pa.int64()),
            modified_ms=pa.array([item.modified_ms for item in items], pa.int64()),
            partitions=tuple(_values(source, items, name) for name in snapshot.partition_columns),
            shown=f"{scan.aside()}, {snapshot.splits(where).coverage.shown()}",
            deleted=_hidden(source, items),
        )

    def count(self, question: Mapping[str, Any]) -> pa.Table | None:
        """Nothing: the log of a companion has no statistics of rows."""
        del question
        return None

    def size_bytes(self) -> int:
        """Bytes of all files of the source."""
        return max(1, self.snapshot().totals.size_bytes)


def _values(source: Source, items: Sequence[SourceFile], name: str) -> pa.Array:
    for item in items:
        if item.file.partition_values is None:
            raise CorruptLogError(
                f"the log of {source.uri} gives {item.file.path} a partition value that is not of its "
                "column's type, so its rows cannot be read; have the writer correct the entry",
                uri=source.uri, path=item.file.path,
            )  # fmt: skip
    values = [(item.file.partition_values or {})[name] for item in items]
    return pa.array(values, source.columns.schema.field(name).type)


def _hidden(source: Source, items: Sequence[SourceFile]) -> dict[int, np.ndarray]:
    """The rows that deletion vectors hide, by the place of their file."""
    marked = [(at, item.file) for at, item in enumerate(items) if item.file.vector is not None]
    rows = in_threads(lambda pair: hidden_rows(source.store, pair[1]), marked, requests_at_once(source.store))
    return {
        at: numbers.to_numpy(zero_copy_only=False)
        for (at, _), numbers in zip(marked, rows, strict=True)
        if numbers is not None
    }
