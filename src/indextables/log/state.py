"""Loads the state of a version from a store, and brings it up to date later.

A state is small: the segment, the checkpoint's head and the reduced tail. The live files
stay in the checkpoint until an engine replays them. A refresh lists from the current
version on, reads only the new commits and keeps the checkpoint it has.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import Any, Self, TypeVar

from indextables.cache import TtlCache
from indextables.errors import (
    CorruptLogError,
    MissingVersionError,
    NotFoundError,
    VersionNotFoundError,
)
from indextables.log.checkpoint.head import CheckpointHead, CheckpointReader
from indextables.log.format.binding import check_one_table, check_tables, check_whole
from indextables.log.format.dialect import Checkpoint, Dialect, Hint, LogFile
from indextables.log.openable import openable
from indextables.log.replay.patient_reads import read_patiently
from indextables.log.replay.rule import Fold, ReplayEngine, Tail, reduce_tail
from indextables.log.segment import (
    HINT_NAME,
    Segment,
    fill_gaps,
    find_segment,
    gaps,
    list_log,
    offering,
    ranges,
    read_hint,
)
from indextables.model.actions import Action, CommitInfo, MetadataAction
from indextables.model.names import quoted_text
from indextables.options import Options
from indextables.records import dataclass
from indextables.runtime import Runtime
from indextables.storage.store import Store, is_local, requests_at_once, store_time_ms

logger = logging.getLogger(__name__)

T = TypeVar("T")
VersionCache = TtlCache[tuple[object, ...], tuple[Action, ...]]
_CACHED_ACTIONS = 1000
_MOST_RELOADS = 5
_LOOKS_FOR_LOST = 2
_TAIL_KEYS = 20_000
FOLD_KEYS = 200_000
"""A tail that grew beyond this many adds and removes is folded with the next commit of somebody else."""
_WITNESS_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LogSource:
    """The location of a log, and the options and runtime to read it with."""

    store: Store
    dialect: Dialect
    reader: CheckpointReader
    engines: Mapping[str, ReplayEngine]
    options: Options
    runtime: Runtime
    versions: VersionCache | None = None
    """Cache for the contents of commit files; None turns caching off."""

    def path(self, name: str) -> str:
        """The path in the store of a file in the log directory."""
        return self.dialect.path(name)

    def commit_file(self, version: int) -> LogFile:
        """The commit file of a version, from a request to the store; NotFoundError if there is none."""
        return self.dialect.commit_file(self.store, version)

    def time_ms(self) -> int | None:
        """The store's time now, from which ages are measured; None if it cannot be had."""
        return store_time_ms(self.store, self.dialect.log_dir)

    def refuse_retired(self, file: LogFile, actions: Sequence[Action]) -> None:
        """Refuse a version that was retired after the log was listed: it is gone, not empty."""
        if actions and isinstance(actions[-1], CommitInfo) and actions[-1].retired:
            raise NotFoundError(
                f"{self.store.uri}: version {file.version} has been removed from the history; "
                "only its number is kept.",
                uri=self.store.uri, path=self.path(file.name),
            )  # fmt: skip

    @property
    def reads_at_once(self) -> int:
        """How many log files are read at the same time."""
        return self.options.checkpoint.parallelism or (
            4 if is_local(self.store) else requests_at_once(self.store)
        )

    def read_commit(self, file: LogFile) -> tuple[Action, ...]:
        """The actions of one commit file."""
        if self.versions is not None:
            cached = self.versions.get(file.identity)
            if cached is not None:
                return cached
        data = self.store.get(self.path(file.name), etag=file.etag)
        try:
            actions = tuple(self.dialect.decode_commit(data, name=file.name, version=file.version))
        except CorruptLogError as bad:
            bad.fields.setdefault("version", file.version)
            raise
        self.refuse_retired(file, actions)
        if self.versions is not None and len(actions) <= _CACHED_ACTIONS:
            # A commit of a million lines is in the tail already; caching it as well would only cost memory.
            self.versions.put(file.identity, actions)
        return actions

    def read_commits(self, files: Sequence[LogFile]) -> list[tuple[int, tuple[Action, ...]]]:
        """The actions of many commit files, read concurrently; all of them or an error."""
        contents = self.read_each(files, lambda source, file: source.read_commit(file))
        return [(file.version, actions) for file, actions in zip(files, contents, strict=True)]

    def read_each(self, files: Sequence[LogFile], read: Callable[[Self, LogFile], T]) -> list[T]:
        """What `read` makes of every file, with the parallelism and the patience that the options ask for."""
        return read_patiently(
            self.store, self.dialect, files, lambda store, file: read(replace(self, store=store), file),
            threads=self.reads_at_once, timeout_s=self.options.checkpoint.read_timeout_s,
        )  # fmt: skip

    def obeying(self, metadata: MetadataAction | None) -> Self:
        """The same log, read as the table's properties ask where the caller left it open."""
        if metadata is None or not metadata.configuration:
            return self
        return replace(self, options=self.options.over(metadata.configuration, self.store.uri))

    def reduced(self, files: Sequence[LogFile], start: Tail) -> Tail:
        """Reduce the commits after a tail; a dialect may leave some of them to executors."""
        return reduce_tail(read_tail(self, files, self.read_commits), self.dialect, start)

    def folds(self, files: Sequence[LogFile], head: CheckpointHead | None = None) -> bool:
        """Whether the commits after a checkpoint are folded with it instead of being held as objects."""
        del files, head
        return False

    def fold(self, segment: Segment) -> Fold | None:
        """The segment's files as a private checkpoint; None if it cannot be made here."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class State:
    """One version without its live files: segment, checkpoint head and tail."""

    segment: Segment
    head: CheckpointHead | None
    tail: Tail
    memo: MutableMapping[str, Any] = field(default_factory=dict)
    """What replay engines keep while the checkpoint stays the same."""
    fold: Fold | None = None
    """Where a long tail was folded: the adds of `tail` and its removes are those of later commits."""

    @property
    def base(self) -> Checkpoint | None:
        """The checkpoint to which the adds and removes of the tail are to be applied."""
        return self.segment.checkpoint if self.fold is None else self.fold.checkpoint

    def base_store(self, store: Store) -> Store:
        """The store that holds it, where `store` is that of the table."""
        return store if self.fold is None else self.fold.store


def newest_segment(source: LogSource) -> Segment:
    """The files of the newest version, from a listing alone; whether they are sound is not looked at."""
    for _ in range(_LOOKS_FOR_LOST):
        try:
            return find_segment(source.store, source.dialect, hint=read_hint(source.store, source.dialect))
        except MissingVersionError:
            # A cleanup during the listing leaves a gap in it; a second listing has none.
            continue
    return find_segment(source.store, source.dialect, hint=read_hint(source.store, source.dialect))


def newest_first(source: LogSource, segment: Segment) -> Iterator[tuple[int, tuple[Action, ...]]]:
    """The commits after the checkpoint from the newest back: first it alone, then some at a time."""
    files = segment.commits[::-1]
    done = 0
    while done < len(files):
        some = files[done : done + (source.reads_at_once if done else 1)]
        yield from source.read_commits(some)
        done += len(some)


def load_state(
    source: LogSource, version: int | None = None, rejected: Collection[object] = (), *, fold: bool = True
) -> State:
    """Load the state of a version (by default the newest), from the newest checkpoint that is sound.

    A long tail is folded unless `fold` is False.
    """
    store, dialect = source.store, source.dialect
    hint = read_hint(store, dialect)
    damaged: dict[object, Exception | None] = dict.fromkeys(rejected)
    vanished = 0
    while True:
        try:
            segment = find_segment(store, dialect, version, hint=hint, rejected=damaged.keys())
        except MissingVersionError as lost:
            if vanished < _LOOKS_FOR_LOST:
                # A cleanup during the listing leaves a gap in it; a second listing has none.
                vanished += 1
                hint = read_hint(store, dialect)
                continue
            cause = next((cause for cause in damaged.values() if cause is not None), None)
            raise offering(lost, openable(source, rejected=damaged.keys())) from cause
        except VersionNotFoundError as absent:
            raise offering(absent, openable(source, rejected=damaged.keys())) from absent
        if version is None and not damaged:
            _compare(hint, segment, store.uri)
        try:
            head = None
            if segment.checkpoint is not None:
                head = source.reader.head(store, segment.checkpoint)
                table_id = None if head.metadata is None else head.metadata.id
                segment = replace(segment, checkpoint=replace(segment.checkpoint, table_id=table_id))
        except (CorruptLogError, NotFoundError) as bad:
            warn_of_damage(store.uri, str(bad))
            damaged[segment.checkpoint and segment.checkpoint.identity] = bad
            continue
        try:
            start = Tail(-1 if segment.checkpoint is None else segment.checkpoint.version)
            # What the properties say is known before the tail is read only where a checkpoint has them.
            reading = source.obeying(None if head is None else head.metadata)
            folded = reading.fold(segment) if fold and reading.folds(segment.commits, head) else None
            tail = reading.reduced(segment.commits, start) if folded is None else folded.tail
            strange = _strange(source, segment, head, tail)
        except NotFoundError:
            # Cleanup deleted a version between the listing and the read; a newer checkpoint covers it.
            vanished += 1
            if vanished >= _MOST_RELOADS:
                raise
            hint = read_hint(store, dialect)
            continue
        if strange is None:
            return State(segment, head, tail, fold=folded)
        if segment.checkpoint is None:
            raise strange
        # Either the checkpoint or the commits may be foreign: trying without the checkpoint shows which.
        warn_of_damage(store.uri, str(strange))
        damaged[segment.checkpoint.identity] = strange


@lru_cache(maxsize=1000)
def warn_of_damage(uri: str, damage: str) -> None:
    """Warn once that a checkpoint cannot be used: a statement opens the log several times."""
    prefix = "" if uri in damage else f"{uri}: "
    logger.warning("%s%s; falling back to older log files", prefix, damage)


def read_tail(source: LogSource, files: Sequence[LogFile], read: Callable[[Sequence[LogFile]], T]) -> T:
    """What is read of the commits after a checkpoint; an error names the versions that can be opened."""
    try:
        return read(files)
    except CorruptLogError as torn:
        # They are read in ascending order, so that the error names the first damaged one.
        version, uri = torn.fields.get("version"), source.store.uri
        available = openable(source, rejected=[file.identity for file in files if file.version == version])
        cut = "It is the newest version, perhaps of a writer that was cut off. "
        message = (
            f"{torn.message} {cut if version == files[-1].version else ''}"
            f"Versions that can be opened: {ranges(available) or 'none'}."
        )
        if source.dialect.name == "native" and version is not None and version - 1 in available:
            log = f"{uri}/{source.dialect.log_dir}"
            message += (
                f" Open the table with version={version - 1}, or save everything up to that version with "
                f"REPAIR INDEXFILES TRANSACTION LOG {quoted_text(log)} AT LOCATION "
                f"{quoted_text(log + '_repaired')} UP TO VERSION {version - 1}."
            )
        raise CorruptLogError(message, **{**torn.fields, "uri": uri, "available": available}) from torn


def _strange(
    source: LogSource, segment: Segment, head: CheckpointHead | None, tail: Tail
) -> CorruptLogError | None:
    """What is wrong when the files of a version belong to several tables; None if they belong to one."""
    if source.dialect.name != "native":
        return None
    try:
        metadata = None if head is None else head.metadata
        check_one_table(tail.table_ids, metadata, source.store.uri)
        check_whole(tail.bare, tail.metadata or metadata, source.store.uri)
        _confirm(source, segment, head, tail)
    except CorruptLogError as bad:
        return bad
    return None


def _confirm(source: LogSource, segment: Segment, head: CheckpointHead | None, tail: Tail) -> None:
    """Read one more commit when a single file makes the whole version, with nothing to check it against."""
    metadata = tail.metadata if head is None else head.metadata
    if metadata is None:
        return
    if segment.checkpoint is None:
        witness = segment.successor if segment.version == 0 else None
    elif segment.commits or segment.checkpoint.checksum is not None:
        witness = None
    else:
        witness = segment.head or segment.successor
    if witness is None or witness.size > _WITNESS_BYTES:
        return
    try:
        actions = source.read_commit(witness)
    except CorruptLogError:
        # This version does not need that commit, so its damage is not reported here.
        return
    check_tables([(witness.version, actions)], metadata.id, source.store.uri)


def _compare(hint: Hint | None, segment: Segment, uri: str) -> None:
    hinted = -1 if hint is None else hint.version
    if hinted != segment.newest_checkpoint:
        logger.warning(
            "%s: %s %s, but %s; using the listing",
            uri, HINT_NAME, "is missing or unreadable" if hint is None else f"names version {hinted}",
            "there is no checkpoint" if segment.newest_checkpoint < 0
            else f"the newest checkpoint is of version {segment.newest_checkpoint}",
        )  # fmt: skip


def refresh_state(source: LogSource, state: State) -> State:
    """Bring a state up to the newest version: the same object when nothing is new."""
    store, dialect = source.store, source.dialect
    old = state.segment
    listing = list_log(store, dialect, old.version)
    commits = listing.commits
    here = commits.get(old.version)
    if old.head is None or here is None or here.identity != old.head.identity:
        # Another file has our version's name: the table was deleted and created again.
        return load_state(source)
    newest, newest_bytes = max(
        (old.newest_checkpoint, old.newest_checkpoint_bytes),
        *((item.version, item.size_bytes) for item in dialect.checkpoints(listing.files)),
        (-1, 0),
    )
    latest = max(commits)
    if latest == old.version:
        if listing.purges == old.purges:
            return state
        return replace(state, segment=replace(old, purges=listing.purges))
    missing = gaps(commits, old.version + 1, latest)
    filled = fill_gaps(store, dialect, listing, missing)
    touched = sum(state.tail.size())
    checkpoint = -1 if old.checkpoint is None else old.checkpoint.version
    if filled is None or (touched > _TAIL_KEYS and newest > checkpoint):
        return load_state(source)
    fresh = [filled.commits[number] for number in range(old.version + 1, latest + 1)]
    if source.folds(fresh) or (touched > FOLD_KEYS and source.folds((*old.commits, *fresh), state.head)):
        return load_state(source)
    try:
        tail = source.obeying(metadata_of(state)).reduced(fresh, state.tail)
    except NotFoundError:
        return load_state(source)
    segment = Segment(
        latest,
        old.checkpoint,
        (*old.commits, *fresh),
        head=fresh[-1],
        newest_checkpoint=newest,
        newest_checkpoint_bytes=newest_bytes,
        purges=listing.purges,
    )
    if _strange(source, segment, state.head, tail) is not None:
        return load_state(source)
    return replace(state, segment=segment, tail=tail)


def metadata_of(state: State) -> MetadataAction | None:
    """The newest metadata of a state, from its tail or else its checkpoint."""
    return state.tail.metadata or (None if state.head is None else state.head.metadata)


def advance_state(state: State, dialect: Dialect, file: LogFile, actions: Sequence[Action]) -> State:
    """The state after our own commit, without reading the commit back."""
    old = state.segment
    segment = replace(old, version=file.version, commits=(*old.commits, file), head=file, successor=None)
    tail = reduce_tail([(file.version, actions)], dialect, state.tail)
    return replace(state, segment=segment, tail=tail)


def cleaned_away(source: LogSource, version: int) -> VersionNotFoundError | None:
    """The error for a version older than all that remain; None if the version is not that old."""
    left = openable(source)
    if not left or version >= left[0]:
        return None
    return VersionNotFoundError(
        f"{source.store.uri}: the log files of version {version} were removed by cleanup after it was "
        f"opened. Versions {ranges(left)} are left: open the table again, or keep log files longer "
        "(logRetention.duration).",
        version=version, available=left, uri=source.store.uri,
    )  # fmt: skip
