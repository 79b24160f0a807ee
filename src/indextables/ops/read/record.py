"""The record of one scan: how its files were chosen, and what was read of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from indextables.log import scans
from indextables.log.replay.rule import ReplayMetrics
from indextables.log.snapshot import Snapshot
from indextables.ops.foreign_rows import ForeignRows
from indextables.ops.results import Coverage, ScanMetrics
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.split.search.metrics import SearchMetrics

if TYPE_CHECKING:
    from indextables.predicate.tree import Node

_NO_FILES = PruneMetrics()
_NOT_SEARCHED = SearchMetrics()
_NOT_REPLAYED = ReplayMetrics("none")


class Record:
    """Counters of a running scan, from which its metrics are made on request."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._lock = threading.Lock()
        self._snapshot = snapshot
        self._uri = snapshot.store.uri
        self._version = snapshot.version
        self._files, self._replay = _NO_FILES, _NOT_REPLAYED
        self._search = _NOT_SEARCHED
        self._files_read = self._rows = self._from_log = self._from_index = 0
        self._total: int | None = None
        self._notes: tuple[str, ...] = ()
        self._ruled_by: tuple[str, ...] = ()
        self._coverage: Coverage | None = None

    @property
    def metrics(self) -> ScanMetrics:
        """What was noted so far."""
        with self._lock:
            return ScanMetrics(
                self._version,
                self._files,
                files_read=self._files_read,
                rows=self._rows,
                files_from_log=self._from_log,
                files_from_index=self._from_index,
                total=self._total,
                search=self._search,
                replay=self._replay,
                notes=self._notes,
                ruled_by=self._ruled_by,
                coverage=self._coverage,
            )

    def planned(self, files: PruneMetrics, replay: ReplayMetrics, where: Node | None = None) -> None:
        """Note how files were chosen for a filter; this is what a scan logs."""
        coverage = self._snapshot.splits(where).coverage if isinstance(self._snapshot, ForeignRows) else None
        with self._lock:
            self._files, self._replay, self._coverage = files, replay, coverage
        scans.record(self._uri, self._version, files, replay)

    def not_needed(self, files: int) -> None:
        """Note files that turned out not to be needed, by their statistics."""
        with self._lock:
            self._files = replace(
                self._files,
                kept=self._files.kept - files,
                skipped_by_statistics=self._files.skipped_by_statistics + files,
            )

    def read(self, rows: int, files: int = 1) -> None:
        """Note files that were opened, and rows that were returned from them."""
        with self._lock:
            self._files_read += files
            self._rows += rows

    def counted(self, *, from_log: int = 0, from_index: int = 0, total: int | None = None) -> None:
        """Note files that were counted without reading rows, or how many rows a search finds in all."""
        with self._lock:
            self._from_log += from_log
            self._from_index += from_index
            self._total = self._total if total is None else total

    def noted(self, notes: Sequence[str]) -> None:
        """Note what the author of a query should know."""
        if notes:
            with self._lock:
                self._notes = tuple(dict.fromkeys((*self._notes, *notes)))

    def ruled_by(self, fields: Sequence[str]) -> None:
        """Note the fields of the index that rule rows out."""
        with self._lock:
            self._ruled_by = tuple(dict.fromkeys((*self._ruled_by, *fields)))

    def searched(self, search: SearchMetrics) -> None:
        """Note how the search of a split went."""
        with self._lock:
            self._search = self._search.plus(search)
