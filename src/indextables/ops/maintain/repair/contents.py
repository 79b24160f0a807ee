"""The contents of a log as REPAIR carries them from one place to another."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from indextables.errors import CorruptLogError, NotFoundError
from indextables.log.snapshot import Snapshot
from indextables.log.state import State
from indextables.model.actions import AddAction, MetadataAction, ProtocolAction, SkipAction, TxnAction


@dataclass(frozen=True, slots=True)
class LogContents:
    """What a log says about its newest version, or what is left of it."""

    version: int
    protocol: ProtocolAction
    metadata: MetadataAction
    adds: Iterable[AddAction]
    """Can be iterated more than once, always in the same order; not necessarily held in memory."""
    num_adds: int
    skips: tuple[SkipAction, ...] = ()
    txns: tuple[TxnAction, ...] = ()


def read_contents(snapshot: Snapshot) -> LogContents:
    """The contents of one version, its adds sorted by path. Every line of it has been read once."""
    adds: Iterable[AddAction] = _StreamedAdds(snapshot)
    num_adds = _count_in_order(snapshot)
    if num_adds is None:
        adds = tuple(snapshot.adds())
        num_adds = len(adds)
    return LogContents(
        snapshot.version,
        snapshot.protocol,
        snapshot.metadata,
        adds,
        num_adds,
        tuple(snapshot.skips.values()),
        tuple(snapshot.txns.values()),
    )


def _count_in_order(snapshot: Snapshot) -> int | None:
    """How many adds a snapshot streams; None if its checkpoint is not sorted by path."""
    while True:
        state = snapshot.state
        try:
            count, previous = 0, ""
            for add in _merged(snapshot, state):
                if count and add.path <= previous:
                    return None
                count, previous = count + 1, add.path
        except (CorruptLogError, NotFoundError) as bad:
            snapshot.fall_back(state, bad)
        else:
            return count


class _StreamedAdds:
    """The adds of a snapshot whose checkpoint is sorted by path, decoded anew by every iteration."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __iter__(self) -> Iterator[AddAction]:
        previous: str | None = None
        while True:
            state = self._snapshot.state
            try:
                for add in _merged(self._snapshot, state):
                    if previous is None or add.path > previous:
                        previous = add.path
                        yield add
            except (CorruptLogError, NotFoundError) as bad:
                # A cleanup deleted the checkpoint meanwhile. Other files of the same version have the same
                # adds, so those after the last path are still to come.
                self._snapshot.fall_back(state, bad)
            else:
                return


def _merged(snapshot: Snapshot, state: State) -> Iterator[AddAction]:
    """The adds of the checkpoint that the tail does not touch, merged with those of the tail by path."""
    tail = state.tail
    newest = sorted(tail.adds.values(), key=lambda add: add.path)
    if state.base is None:
        return iter(newest)
    stored = snapshot.source.reader.adds(state.base_store(snapshot.store), state.base)
    untouched = (add for add in stored if add.path not in tail.adds and add.path not in tail.removed)
    return heapq.merge(untouched, newest, key=lambda add: add.path) if newest else untouched
