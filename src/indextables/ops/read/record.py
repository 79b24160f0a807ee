"""The record of one scan: how its files were chosen, and what was read of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from indextables.log import scans
from indextables.log.replay.rule import ReplayMetrics
from indextables.log.snapshot import Snapshot
from indextables.ops.results import ScanMetrics
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.split.metrics import SearchMetrics


class Record:
    """The metrics of a scan while it goes on."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._lock = threading.Lock()
        self._uri = snapshot.store.uri
        self.metrics = ScanMetrics(snapshot.version, PruneMetrics(0, 0, 0, 0))

    def planned(self, files: PruneMetrics, replay: ReplayMetrics) -> None:
        """Note how files were chosen; this is what a scan logs."""
        self.metrics = replace(self.metrics, files=files, replay=replay)
        scans.record(self._uri, self.metrics.version, files, replay)

    def read(self, rows: int, files: int = 1) -> None:
        """Note files that were opened, and rows that were returned from them."""
        with self._lock:
            self.metrics = replace(
                self.metrics, files_read=self.metrics.files_read + files, rows=self.metrics.rows + rows
            )

    def counted(self, *, from_log: int = 0, from_index: int = 0, total: int | None = None) -> None:
        """Note files that were counted without reading rows, or how many rows a search finds in all."""
        with self._lock:
            self.metrics = replace(
                self.metrics,
                files_from_log=self.metrics.files_from_log + from_log,
                files_from_index=self.metrics.files_from_index + from_index,
                total=self.metrics.total if total is None else total,
            )

    def noted(self, notes: Sequence[str]) -> None:
        """Note what the author of a query should know."""
        with self._lock:
            known = dict.fromkeys((*self.metrics.notes, *notes))
            self.metrics = replace(self.metrics, notes=tuple(known))

    def searched(self, search: SearchMetrics) -> None:
        """Note how the search of a split went."""
        with self._lock:
            self.metrics = replace(self.metrics, search=self.metrics.search.plus(search))
