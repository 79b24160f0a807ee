"""Counters that say how files were chosen."""

from __future__ import annotations

from indextables.lazy import pa
from indextables.records import dataclass


@dataclass(frozen=True, slots=True)
class PruneMetrics:
    """How many files a prune saw and why it left some out; `reasons` has a text per file, null if kept."""

    considered: int = 0
    pruned_by_partition: int = 0
    skipped_by_statistics: int = 0
    kept: int = 0
    reasons: pa.Array | None = None

    def plus(self, other: PruneMetrics) -> PruneMetrics:
        """Return the sum of two prunes over different files."""
        reasons = None
        if self.reasons is not None and other.reasons is not None:
            reasons = pa.concat_arrays([self.reasons, other.reasons])
        return PruneMetrics(
            self.considered + other.considered,
            self.pruned_by_partition + other.pruned_by_partition,
            self.skipped_by_statistics + other.skipped_by_statistics,
            self.kept + other.kept,
            reasons,
        )
