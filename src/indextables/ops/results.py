"""The results of writing and reading rows: what a write committed, and how the last scan was answered."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from indextables.lazy import later
from indextables.log.replay.rule import ReplayMetrics
from indextables.ops.outcomes import Reported
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.records import dataclass
from indextables.split.search.metrics import SearchMetrics

if TYPE_CHECKING:
    from indextables.display import notebook
else:
    notebook = later("indextables.display.notebook")


@dataclass(frozen=True, slots=True)
class WriteResult(Reported):
    """What a write committed."""

    version: int
    files_added: int
    files_removed: int
    rows: int
    bytes: int
    attempts: int
    conflicts: int
    columns_truncated: int
    bytes_saved: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """How the files of a source are found by its companion index."""

    indexed: int = 0
    """Files that the index answers for."""
    scanned: int = 0
    """Files that it does not cover, whose rows are read."""
    masked: int = 0
    """Files that it covers and that are gone: their rows are left out."""

    def shown(self) -> str:
        """The text that a plan shows."""
        return f"files of the source: {self.indexed} indexed, {self.scanned} scanned, {self.masked} masked"


@dataclass(frozen=True, slots=True)
class ScanMetrics:
    """How a scan, count or search was answered."""

    version: int
    files: PruneMetrics
    """How many files there were, and why the others were not read."""
    files_read: int = 0
    rows: int = 0
    files_from_log: int = 0
    """Files that the log alone counted; nothing of them was read."""
    files_from_index: int = 0
    """Files counted by their index; none of their rows was read."""
    total: int | None = None
    """How many rows a search with `total` finds in all, whatever its limit."""
    search: SearchMetrics = field(default_factory=SearchMetrics)
    replay: ReplayMetrics = field(default_factory=lambda: ReplayMetrics("none"))
    """Which engine found the files, why that one, and how long its stages took."""
    notes: tuple[str, ...] = ()
    """Notes for the author of a query: how it was understood, and what it might have meant."""
    ruled_by: tuple[str, ...] = ()
    """The fields of the index that were asked, as `message as substring`; splits without them are scanned."""
    coverage: Coverage | None = None
    """For a companion index, how the files of its source were looked at; None for other tables."""

    def _repr_html_(self) -> str:
        return notebook.result_html(self)
