"""The frame of the live files of one version, which the scans of that version share.

One scan reads the log and forgets it. The second makes the cluster keep the rows, in
memory or on disk, with the columns that scans of this version have used so far and no
others: the texts of statistics are most of a log, and few scans show them.
"""

from __future__ import annotations

import logging
import weakref
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from indextables.log.adds.file_table import files_schema
from indextables.log.delta.files.file_table import STATISTICS, FileProjection
from indextables.log.delta.replay import DeltaRequest, projections_of
from indextables.log.replay.long_tail import LongTail
from indextables.log.replay.rule import ReplayRequest
from indextables.predicate.prune.rule import columns_needed
from indextables.spark.replay.delta_adds import raw_column

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FrameColumns:
    """What a frame of files must have: columns of the files() form, and statistics of some table columns."""

    columns: frozenset[str]
    statistics: frozenset[str] = frozenset()
    """Physical names. Of a native log statistics are columns like others, with all their fields."""

    def covers(self, other: FrameColumns) -> bool:
        """Whether a frame made for this will do for another."""
        return other.columns <= self.columns and other.statistics <= self.statistics

    def with_columns(self, other: FrameColumns) -> FrameColumns:
        """The same statistics, and the columns of both."""
        return FrameColumns(self.columns | other.columns, self.statistics)


def needs_of(request: ReplayRequest) -> FrameColumns:
    """What a frame must have for a request."""
    if isinstance(request, DeltaRequest):
        parts = [part for part in projections_of(request) if part is not None]
        leaves = frozenset(".".join(leaf.physical) for part in parts for leaf in part.leaves)
        return FrameColumns(frozenset(name for part in parts for name in part.columns) - {"uri"}, leaves)
    shown = files_schema(request.schema, request.partition_columns, request.columns).names
    needs = columns_needed(request.where, request.partition_columns)
    names = {*shown, *({"partition_values"} if needs.partitions else ())}
    if needs.statistics:
        names |= {"num_records", "min", "max", "null_count"}
    return FrameColumns(frozenset(names - {"uri"}))


class SharedFrame:
    """The frame of one version, cached with its snapshot."""

    def __init__(self, key: object, needs: FrameColumns, frame: DataFrame, request: ReplayRequest) -> None:
        self.key = key
        self.needs = needs
        self._frame = frame
        self._is_delta = isinstance(request, DeltaRequest)
        # Spark reads any column of a Parquet checkpoint; of commits only the requested fields are decoded.
        self._has_all = self._is_delta and not isinstance(request.tail, LongTail)
        self._is_persisted = False

    def covers(self, needs: FrameColumns) -> bool:
        """Whether it has what a request needs."""
        has = self.needs.with_columns(needs) if self._has_all else self.needs
        return has.covers(needs)

    def again(self, needs: FrameColumns) -> DataFrame:
        """The same rows, computed once from now on."""
        if not self._is_persisted:
            self.needs = self.needs.with_columns(needs)
            if self._is_delta:
                self._frame = self._frame.select(*self._used())
            self._is_persisted, self._has_all = True, False
            self._frame.persist(StorageLevel.MEMORY_AND_DISK)
            weakref.finalize(self, _forget, self._frame)
        return self._frame

    def _used(self) -> list[str]:
        """The columns of a Delta frame that stand for columns of the files() form."""
        names = self.needs.columns
        raw = {raw_column(source) for source in FileProjection(names - STATISTICS).sources(None)}
        used = {"path", *(names & (STATISTICS | {"partition_values"})), *raw}
        return [name for name in self._frame.columns if name in used]


def _forget(frame: DataFrame) -> None:
    try:
        frame.unpersist()
    except Exception:
        logger.debug("a persisted file list could not be released", exc_info=True)
