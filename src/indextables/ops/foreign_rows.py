"""Tables whose rows lie in files of somebody else: companion indexes, seen from what reads rows.

The log of a companion says so by the container of its splits, which hold an index and no rows. A reader is
given the source's rows as `ForeignRows`; to everything else the table refuses itself by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from indextables.log.snapshot import Snapshot
from indextables.records import dataclass

if TYPE_CHECKING:
    from indextables.log.replay.rule import ReplayMetrics
    from indextables.ops.results import Coverage
    from indextables.predicate.prune.metrics import PruneMetrics
    from indextables.predicate.tree import Node
    from indextables.split.layout import SplitRef

COMPANION = "companion"
"""The container of a table whose splits hold an index and no rows."""
SOURCE_PROPERTY = "companion.source"
"""The property of such a table that names the one whose rows it has an index of."""


@dataclass(frozen=True, slots=True)
class ForeignSplits:
    """Files of somebody else as splits, and how they were chosen."""

    refs: tuple[SplitRef, ...]
    metrics: PruneMetrics
    replay: ReplayMetrics
    coverage: Coverage


class ForeignRows(Snapshot, ABC):
    """A version whose rows lie in files of somebody else, which a table of ours has an index of.

    `splits` gives these files as splits. The other methods of a snapshot answer for the rows, and `own` is
    the version of the table of ours.
    """

    own: Snapshot

    @abstractmethod
    def splits(self, where: Node | None = None) -> ForeignSplits:
        """The files in which a filter may be true for a row, as splits, in the same order every time."""

    @abstractmethod
    def on(self, own: Snapshot) -> ForeignRows:
        """The same rows, with the index that another version of the table of ours has."""


def container_of(snapshot: Snapshot) -> str | None:
    """What the splits of a table are: `parquet`, `companion`, or the word of another system."""
    options = (snapshot.metadata.format or {}).get("options") or {}
    return options.get("container") if isinstance(options, dict) else None


def is_companion(snapshot: Snapshot) -> bool:
    """Whether a version of a log is that of a companion index, whose rows are to be read elsewhere."""
    return not isinstance(snapshot, ForeignRows) and container_of(snapshot) == COMPANION
