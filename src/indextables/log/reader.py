"""Reads a log through a handle with caches: snapshots, versions, files and history.

For a few seconds (`maxStalenessSeconds`) reads assume that nothing is newer. After that,
one listing from the current version on shows whether there are new commits, and only
those are read. All caches can be cleared.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from indextables.cache import CacheStats, TtlCache
from indextables.errors import (
    CorruptLogError,
    NotATableError,
    NotFoundError,
    OptionError,
    ProtocolError,
    VersionNotFoundError,
)
from indextables.log.caches import NEWS, LogCaches, remembered
from indextables.log.format.binding import check_tables
from indextables.log.format.dialect import NATIVE, LogFile
from indextables.log.format.protocol import check_readable
from indextables.log.history import Moment, Timeline, find_commit, from_listings, history_table, version_as_of
from indextables.log.native import native_source
from indextables.log.openable import openable
from indextables.log.segment import Listing, Segment, list_log, ranges, reconstructible
from indextables.log.snapshot import Snapshot
from indextables.log.state import (
    LogSource,
    State,
    load_state,
    metadata_of,
    newest_first,
    newest_segment,
    refresh_state,
)
from indextables.model.actions import Action, AddAction, CommitInfo, MetadataAction, ProtocolAction
from indextables.options import Options
from indextables.runtime import LOCAL, Runtime
from indextables.storage.store import Store, open_store

if TYPE_CHECKING:
    import pyarrow as pa

A = TypeVar("A", ProtocolAction, MetadataAction)

_PAST_SNAPSHOTS = 8


class LogHandle:
    """One table's log, for reading. Safe to use from several threads."""

    def __init__(self, store: Store, options: Options, runtime: Runtime = LOCAL) -> None:
        self.store = store
        self.options = options
        self.runtime = runtime
        clock = runtime.clock
        self._caches = LogCaches.of(options.transaction, clock.monotonic_s)
        self._past: TtlCache[int, Snapshot] = TtlCache(
            options.transaction.cache_expiration_s, _PAST_SNAPSHOTS, clock.monotonic_s
        )
        versions = None if self._caches is None else self._caches.versions
        self._source = native_source(store, options, runtime, versions)
        self._lock = threading.RLock()
        self._current: Snapshot | None = None
        self._segment: tuple[Segment, float, int] | None = None
        """The files of the newest version where nobody asked for more, when, and after which news."""
        self._checked_s = 0.0
        self._mark = -1

    @classmethod
    def open(
        cls,
        uri: str | os.PathLike[str],
        options: Mapping[str, Any] | Options | None = None,
        *,
        store: Store | None = None,
        runtime: Runtime = LOCAL,
    ) -> Self:
        """Make a handle; nothing is read, so whether there is a table shows at the first use."""
        resolved = Options.of(options)
        return cls(open_store(uri, resolved.storage) if store is None else store, resolved, runtime)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # The store, locks and caches are not pickled; the other process opens the log itself.
        return _reopened, (type(self), self.uri, dict(self.options.explicit))

    @property
    def uri(self) -> str:
        """The table's root."""
        return self.store.uri

    @property
    def source(self) -> LogSource:
        """The location of the log, and the options and runtime to read it with."""
        return self._source

    def snapshot(
        self, version: int | None = None, as_of: Moment | None = None, max_staleness_s: float | None = None
    ) -> Snapshot:
        """The table at a version, at a time, or now."""
        if version is not None and as_of is not None:
            raise OptionError("give a version or as_of, not both")
        if as_of is not None:
            moment = as_of
            version = from_listings(lambda: version_as_of(self.timeline(), moment, self._zone, self.uri))
        if isinstance(version, bool) or not isinstance(version, (int, type(None))):
            raise OptionError(f"version={version!r} is not the number of a version", value=repr(version))
        return self._newest(max_staleness_s) if version is None else self._at(version)

    def newest_seen(self) -> Snapshot | None:
        """The newest version this handle has seen, without asking the store whether there is a newer one."""
        return self._current

    def exists(self) -> bool:
        """Whether the path holds a table."""
        try:
            self.latest_version()
        except NotATableError:
            return False
        return True

    def list_files(self, max_staleness_s: float | None = None) -> list[AddAction]:
        """The live files as whole actions, sorted by path."""
        try:
            return self._live(self._newest(max_staleness_s))
        except VersionNotFoundError:
            # Another process removed the version that was newest a moment ago; the current newest one
            # answers.
            return self._live(self._newest(0))

    def _live(self, snapshot: Snapshot) -> list[AddAction]:
        cache = None if self._caches is None else self._caches.files
        return list(remembered(cache, _identity(snapshot), lambda: tuple(snapshot.adds())))

    def read_version(self, version: int) -> list[Action]:
        """The actions one version file holds."""
        snapshot = self.snapshot()
        commits = {file.version: file for file in snapshot.segment.commits}
        try:
            actions = self._source.read_commit(commits.get(version) or self._listed(version))
        except NotFoundError as gone:
            available = self._offered()
            raise VersionNotFoundError(
                f"{self.uri} has no file for version {version}; there are {ranges(available) or 'none'}.",
                version=version, available=available, uri=self.uri,
            ) from gone  # fmt: skip
        check_tables([(version, actions)], snapshot.table_id, self.uri)
        return list(actions)

    def _listed(self, version: int) -> LogFile:
        """The file of a version as a listing shows it: one below the floor is no version, whoever put it."""
        file = list_log(self.store, NATIVE, version).commits.get(version)
        if file is None:
            path = NATIVE.path(NATIVE.commit_name(version))
            raise NotFoundError(f"There is no {self.uri}/{path}.", uri=self.uri, path=path)
        return file

    def versions(self) -> list[int]:
        """The versions that can be opened, ascending."""
        try:
            snapshot = self._newest(None)
        except NotATableError:
            return []
        except CorruptLogError:
            return self._offered()
        cache = None if self._caches is None else self._caches.version_list
        return list(remembered(cache, _identity(snapshot), lambda: tuple(self._offered())))

    def find_commit(self, commit_id: str) -> int | None:
        """The version that a commit became; None when the log knows no such commit.

        A `CommitError` whose outcome is unknown carries the id as `commit_id`, and as `version` the number it
        tried to use. None is final once the log has a version of that number: another commit took it. While
        the newest version is lower, the put may still arrive. Of versions that were erased, the commits of
        the last 256 before the oldest one are known, and nothing of those before them.
        """
        return find_commit(self._source, self._listing, commit_id)

    def is_newest(self, snapshot: Snapshot) -> bool:
        """Whether there is no later version; a damaged one is later too."""
        try:
            return snapshot.version >= self.latest_version()
        except CorruptLogError:
            return False

    def latest_version(self) -> int:
        """The newest version's number, from a listing: no version is read."""
        return self._newest_segment().version

    def protocol(self) -> ProtocolAction:
        """Which readers and writers the table asks for."""
        return self._lookup(ProtocolAction, lambda snapshot: snapshot.protocol)

    def metadata(self) -> MetadataAction:
        """Schema, partitioning and properties."""
        return self._lookup(MetadataAction, lambda snapshot: snapshot.metadata)

    def _lookup(self, kind: type[A], of: Callable[[Snapshot], A]) -> A:
        """The newest action of a kind, read backwards from the newest commit until one holds it.

        Whatever does not add up on the way is left to a full read, which falls back to older files or says
        what is damaged. So is a protocol that needs a newer reader, which refuses the table.
        """
        segment, current, caches = self._newest_segment(), self._fresh(None), self._caches
        cache = None if caches is None else caches.protocol if kind is ProtocolAction else caches.metadata

        def look() -> A | None:
            return self._newest_action(segment, kind) if current is None else of(current)

        answer: A | None = None
        if segment.head is not None:
            with contextlib.suppress(CorruptLogError, NotFoundError, ProtocolError):
                answer = remembered(cache, segment.head.identity, look)
        return of(self.snapshot()) if answer is None else answer

    def _newest_action(self, segment: Segment, kind: type[A]) -> A | None:
        read: list[tuple[int, tuple[Action, ...]]] = []
        table_id: str | None = None
        newest: Action | None = None
        for version, actions in newest_first(self._source, segment):
            read.append((version, actions))
            for action in reversed(actions):
                if isinstance(action, ProtocolAction):
                    check_readable(action, self.options, self.uri)
                if isinstance(action, kind) and newest is None:
                    newest = action
                if isinstance(action, CommitInfo) and table_id is None:
                    table_id = action.table_id
            if newest is not None:
                break
        if newest is None and segment.checkpoint is not None:
            head = self._source.reader.head(self.store, segment.checkpoint)
            if head.protocol is not None:
                check_readable(head.protocol, self.options, self.uri)
            newest = head.protocol if kind is ProtocolAction else head.metadata
            table_id = None if head.metadata is None else head.metadata.id
        if isinstance(newest, MetadataAction):
            table_id = newest.id
        if table_id is not None:
            check_tables(read, table_id, self.uri)
        return newest if isinstance(newest, kind) else None

    def timeline(self, *, unreadable: bool = False) -> Timeline:
        """The versions that can be read; with `unreadable`, all that have a file from the oldest of them."""
        listing = self._listing()
        readable = set(reconstructible(listing, NATIVE))
        first = min(readable, default=0)
        files = [
            file
            for number, file in listing.commits.items()
            if number in readable or (unreadable and readable and number > first)
        ]
        if not files:
            self._newest(0)
            raise NotATableError(f"{self.uri} is not a table: its log holds no version.", uri=self.uri)
        return Timeline(self._source, files)

    def history(self, limit: int | None = None) -> pa.Table:
        """One row per version, newest first."""
        return from_listings(lambda: history_table(self.timeline(unreadable=True), limit))

    def cache_stats(self) -> dict[str, CacheStats] | None:
        """Hits and misses by cache; None when caching is off."""
        return None if self._caches is None else self._caches.stats()

    def invalidate_cache(self) -> None:
        """Clear all caches."""
        with self._lock:
            self._current = self._segment = None
            self._past.invalidate()
            if self._caches is not None:
                self._caches.invalidate()

    def _newest(self, max_staleness_s: float | None) -> Snapshot:
        with self._lock:
            fresh = self._fresh(max_staleness_s)
            if fresh is not None:
                return fresh
            checked_s, mark = self.runtime.clock.monotonic_s(), NEWS.mark(self.uri)
            snapshot = self._look(self._current)
            if self._caches is not None:
                self._current, self._checked_s, self._mark = snapshot, checked_s, mark
            return snapshot

    def _newest_segment(self) -> Segment:
        """The files of the newest version; a listing counts for as long as a snapshot does."""
        with self._lock:
            current = self._fresh(None)
            if current is not None:
                return current.segment
            now_s, mark = self.runtime.clock.monotonic_s(), NEWS.mark(self.uri)
            if self._segment is not None:
                segment, listed_s, listed_mark = self._segment
                if mark == listed_mark and now_s - listed_s < self.options.transaction.max_staleness_s:
                    return segment
            segment = newest_segment(self._source)
            if self._caches is not None:
                self._segment = segment, now_s, mark
            return segment

    def _fresh(self, max_staleness_s: float | None) -> Snapshot | None:
        """The newest version this handle has seen, if that was so lately that it counts as the newest."""
        limit = self.options.transaction.max_staleness_s if max_staleness_s is None else max_staleness_s
        with self._lock:
            current = self._current
            if current is None or self._caches is None or NEWS.mark(self.uri) != self._mark:
                return None
            return current if self.runtime.clock.monotonic_s() - self._checked_s < limit else None

    def _look(self, current: Snapshot | None) -> Snapshot:
        """The newest version from a fresh listing, building on the version this handle has."""
        try:
            state: State = (
                load_state(self._source) if current is None else refresh_state(self._source, current.state)
            )
        except NotATableError:
            self.invalidate_cache()
            raise
        if current is not None and state is current.state:
            return current
        snapshot = Snapshot(self._source, state)
        if current is not None and snapshot.table_id != current.table_id:
            self.invalidate_cache()
        return snapshot

    def _adopt(self, snapshot: Snapshot, mark: int | None = None) -> None:
        """Continue from a version this handle wrote; `mark` is the change count after our own change."""
        with self._lock:
            if self._caches is None or (
                self._current is not None and snapshot.version < self._current.version
            ):
                return
            # Nothing was newer when the commit or checkpoint looked, but that may have been long ago.
            self._current = snapshot
            if mark is not None:
                # A larger count means that another handle changed the log too; the next read must list it.
                self._mark = mark if mark == self._mark + 1 else -1

    def _at(self, version: int) -> Snapshot:
        current = self._current
        past = current if current is not None and current.version == version else self._past.get(version)
        if past is not None and self._is_still(past):
            return past
        snapshot = Snapshot(self._source, load_state(self._source, version))
        if self._caches is not None:
            self._past.put(version, snapshot)
        return snapshot

    def _is_still(self, snapshot: Snapshot) -> bool:
        """Whether the version file is still the one the snapshot was made from, and of the same table."""
        file = snapshot.segment.head
        if file is None:
            return False
        try:
            return self._source.commit_file(file.version).identity == file.identity
        except NotFoundError:
            return False

    def _listing(self) -> Listing:
        return list_log(self.store, NATIVE)

    def _zone(self) -> str:
        """The zone of a time without an offset that names a version."""
        return self.options.zone_or(lambda: self._newest(None).time_zone)

    def _offered(self) -> list[int]:
        current = self._current
        source = self._source if current is None else self._source.obeying(metadata_of(current.state))
        return openable(source)


def _reopened(kind: type[LogHandle], uri: str, options: Mapping[str, str]) -> LogHandle:
    return kind.open(uri, options)


def _identity(snapshot: Snapshot) -> object:
    head = snapshot.segment.head
    return snapshot.table_id, snapshot.version, None if head is None else head.identity
