"""What every checkpoint offers, whatever its dialect and file format: a head, and adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Protocol

from indextables.log.format.dialect import Checkpoint
from indextables.model.actions import AddAction, MetadataAction, ProtocolAction, SkipAction, TxnAction
from indextables.records import dataclass
from indextables.storage.store import Store

KEPT_COMMIT_IDS = 256
"""Number of commits whose ids a checkpoint holds, for writers whose own version was retired."""


@dataclass(frozen=True, slots=True)
class CheckpointHead:
    """Everything in a checkpoint but its adds, read without decoding them."""

    version: int
    protocol: ProtocolAction | None
    metadata: MetadataAction | None
    skips: tuple[SkipAction, ...] = ()
    txns: tuple[TxnAction, ...] = ()
    num_files: int | None = None
    """Number of live files; None where that is not known before the adds are read."""
    num_parts: int = 1
    parts: tuple[str, ...] = ()
    """Names of the part files a manifest refers to, relative to the log directory."""
    commit_ids: Mapping[int, str] = field(default_factory=dict)
    """The ids of the last commits, by version: what is left of them when their files are gone."""


class CheckpointReader(Protocol):
    """Reads the checkpoints of one dialect; raises CorruptLogError for a damaged or incomplete one."""

    def head(self, store: Store, checkpoint: Checkpoint) -> CheckpointHead:
        """Protocol, metadata, skips and transactions."""
        ...

    def adds(
        self, store: Store, checkpoint: Checkpoint, paths: AbstractSet[str] | None = None
    ) -> Iterator[AddAction]:
        """Adds as whole actions, unknown fields included, streamed; only those of `paths` when given.

        The checkpoint is read and checked to its end, even if `paths` are few.
        """
        ...
