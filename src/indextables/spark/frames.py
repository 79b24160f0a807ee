"""DataFrames as the kind of table a caller inside a session gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from indextables.spark.read.loading import frame_of_snapshot
from indextables.spark.search.dataframe import search_frame

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.log.snapshot import Snapshot


class SparkFrames:
    """Arrow tables become DataFrames."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def from_arrow(self, table: pa.Table) -> Any:
        """A DataFrame with the same rows."""
        return self._spark.createDataFrame(table)

    def scan(self, snapshot: Snapshot, *, where: Any = None, columns: Sequence[str] | None = None) -> Any:
        """A DataFrame over a version, or over its rows for which a filter is true."""
        return frame_of_snapshot(self._spark, snapshot, where, columns)

    def search(
        self, snapshot: Snapshot, query: str, *, where: Any = None, columns: Sequence[str] | None = None,
        limit: int | None = None, score: bool = False,
    ) -> Any:  # fmt: skip
        """A DataFrame of the rows a full-text query finds, computed on the executors."""
        return search_frame(
            self._spark, snapshot, query, where=where, columns=columns, limit=limit, score=score,
            options=dict(snapshot.options.explicit),
        )  # fmt: skip
