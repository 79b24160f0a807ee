"""Which versions of a table can be opened.

The names in the log directory say which versions may be there (`segment.reconstructible`).
Whether their files are whole shows only when they are read, so every commit file is read,
and a checkpoint where a version rests on it. Whatever is offered to a user comes from here:
the list of versions, and the versions an error message names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from indextables.errors import Error, NotFoundError, StorageError
from indextables.log.checkpoint.head import CheckpointReader
from indextables.log.format.dialect import Checkpoint, Dialect, LogFile
from indextables.log.segment import Listing, list_log, reconstructible
from indextables.model.actions import Action
from indextables.runtime import in_threads
from indextables.storage.store import Store

_MOST_LOOKS = 5


class Source(Protocol):
    """The part of `log.state.LogSource` that is used here."""

    @property
    def store(self) -> Store:
        """Where the log lies."""

    @property
    def dialect(self) -> Dialect:
        """How its files are named."""

    @property
    def reader(self) -> CheckpointReader:
        """How its checkpoints are read."""

    @property
    def reads_at_once(self) -> int:
        """How many log files are read at the same time."""

    def read_commit(self, file: LogFile) -> Sequence[Action]:
        """The actions of one commit file."""


def openable(source: Source, rejected: Collection[object] = ()) -> list[int]:
    """The versions that can be opened, ascending.

    `rejected` holds the `identity` of commits and checkpoints that are known to be damaged. A file that goes
    while it is looked at was cleaned up by others, who left newer ones: the log is listed again. So it is if
    the listing has a floor without its checkpoint, which was put while the names after it were being listed.
    """
    listing = list_log(source.store, source.dialect)
    for _ in range(_MOST_LOOKS):
        versions, is_current = _whole_versions(source, listing, rejected)
        before, listing = listing, listing if is_current else list_log(source.store, source.dialect)
        if listing.files == before.files:
            break
    return versions


def _whole_versions(source: Source, listing: Listing, rejected: Collection[object]) -> tuple[list[int], bool]:
    """The versions of a listing that can be opened, and whether the listing shows one moment of the log."""
    gone: list[object] = []

    def is_lost(item: LogFile | Checkpoint, damage: Error | None) -> bool:
        if isinstance(damage, NotFoundError):
            gone.append(item.identity)
        elif isinstance(damage, StorageError):
            raise damage  # whether the file is whole is not known
        return damage is not None

    commits = [file for file in listing.commits.values() if file.identity not in rejected]
    damages = in_threads(lambda file: damage_of_commit(source, file), commits, source.reads_at_once)
    damaged = {
        file.identity for file, damage in zip(commits, damages, strict=True) if is_lost(file, damage)
    }.union(rejected)

    def is_whole(item: LogFile | Checkpoint) -> bool:
        if isinstance(item, Checkpoint) and item.identity not in damaged:
            return not is_lost(item, damage_of_checkpoint(source, item))
        return item.identity not in damaged

    versions = reconstructible(listing, source.dialect, is_whole)
    starts = {item.version for item in source.dialect.checkpoints(listing.files)}
    return versions, not gone and (listing.floor == 0 or listing.floor in starts)


def damage_of_commit(source: Source, file: LogFile) -> Error | None:
    """Why a commit file cannot be read; None when it can."""
    try:
        for action in source.read_commit(file):
            _ = action.extra  # the line of an add is read when it is first looked at
    except Error as bad:
        return bad
    return None


def damage_of_checkpoint(source: Source, checkpoint: Checkpoint) -> Error | None:
    """Why a checkpoint cannot be read; every byte is read and checked, though no add is returned."""
    try:
        source.reader.head(source.store, checkpoint)
        for _ in source.reader.adds(source.store, checkpoint, frozenset()):
            pass
    except Error as bad:
        return bad
    return None
