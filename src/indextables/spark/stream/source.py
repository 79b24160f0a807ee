"""A table as a stream: the rows of its files, version after version.

A stream begins with the whole table as it is, then follows its commits; `startingVersion`
and `startingTimestamp` begin with a commit instead. Commits that only rearrange rows
(`dataChange` false, as a merge writes) are passed over. A commit that removes rows cannot be
told to a stream and is an error, unless `ignoreDeletes` or `skipChangeCommits` says to pass
over it. With `readChangeFeed` a stream has the changes of commits in the place of new rows: the table
as it is comes as inserts, and a commit is never divided. A repaired log, or that of a table made
anew at the same place, counts its versions from 0 again: a stream that meets one stops.

`StreamSource.java` asks how far the next batch goes and which files it has; tables of ours
and of Delta differ only in how a commit is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from indextables.errors import NotFoundError, OptionError, TableError, VersionNotFoundError
from indextables.log.delta.history import delta_timeline
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.log.history import Timeline, first_since, moment_of
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import Action, AddAction, MetadataAction, RemoveAction
from indextables.model.column_mapping import all_stored_names, stored_names_of
from indextables.ops.foreign_rows import ForeignRows
from indextables.ops.read.changes import ChangeReader, plan_versions
from indextables.ops.table_settings import require_parquet
from indextables.spark.open_logs import open_log
from indextables.spark.options import STREAM_READ_KEYS, CallSettings, settings_for, split
from indextables.spark.read.changes import frame_of_commits, require_own
from indextables.spark.read.version import snapshot_of
from indextables.spark.stream.offset import StreamOffset

_LATEST = -1


@dataclass(frozen=True)
class TableStream:
    """One question about a stream: the table as it is now, and what the options of the stream say."""

    spark: Any
    path: str
    settings: CallSettings

    @classmethod
    def of(
        cls, spark: Any, path: str, options: Mapping[str, str], table: Mapping[str, str] | None = None
    ) -> TableStream:
        """The stream that a `load` describes; an option that makes no sense is an error.

        `table` are the options of the table as they were when the query started, if it has.
        """
        if table is None:
            settings = settings_for(spark, options, STREAM_READ_KEYS, path)
        else:
            settings = CallSettings(split(options, STREAM_READ_KEYS)[0], table)
        stream = cls(spark, path, settings)
        _ = stream._starting_version, stream._starting_ms, stream._limits
        passed_over = [key for key in ("skipChangeCommits", "ignoreDeletes") if stream.settings.flag(key)]
        if stream.has_changes and passed_over:
            raise OptionError(
                f"options {passed_over[0]!r} and 'readChangeFeed' cannot be used together: changes have the "
                "rows that commits removed",
                key=passed_over[0],
            )
        return stream

    @cached_property
    def has_changes(self) -> bool:
        """Whether the rows of the stream are changes."""
        return self.settings.flag("readChangeFeed")

    @cached_property
    def newest(self) -> Snapshot:
        """The table as it is now."""
        snapshot = snapshot_of(self.spark, self.path, CallSettings({}, self.settings.table))
        if isinstance(snapshot, ForeignRows):
            # Whoever wants a stream of the rows has it from the source.
            require_parquet(snapshot.own)
        if self.has_changes:
            require_own(snapshot)
        return snapshot

    def next_end(
        self, start: StreamOffset | None, until: int | None, *, limited: bool, columns: Columns
    ) -> StreamOffset:
        """The end of the next batch, which begins at `start`; None begins the stream.

        `until` is the last version to read, if there is one; `limited` applies the limits of the options.
        """
        begin = self._first() if start is None else start.place()
        self._require_same(begin)
        newest = self.newest.version if until is None else min(until, self.newest.version)
        end = self._advanced(begin, newest, self._limits if limited else _Limits(), columns)
        return end if start is not None else replace(end, start=begin)

    def batch(self, start: StreamOffset | None, end: StreamOffset, columns: Columns) -> Snapshot:
        """The files between two offsets, as a version of the table that has no others."""
        begin = self._beginning(end) if start is None else start.place()
        self._require_same(begin)
        if begin.whole:
            version = self._at(begin.version)
            last = end.index if end.whole else None
            if begin.index == 0 and last is None:
                return version.with_columns_of(columns.metadata)
            adds = self._whole_files(begin)[begin.index : last]
        else:
            adds = list(self._between(begin, end, columns))
        return self.newest.with_columns_of(columns.metadata).with_files(adds)

    def changes(self, start: StreamOffset | None, end: StreamOffset, columns: Columns) -> Any:
        """The changes between two offsets, as a DataFrame."""
        begin = self._beginning(end) if start is None else start.place()
        self._require_same(begin)
        snapshot = self.newest.with_columns_of(columns.metadata)
        if begin.whole:
            reader = self._reader(begin.version, begin.version)
            files = self._whole_files(begin)[begin.index : end.index if end.whole else None]
            commits = [replace(reader.files(begin.version), operation=None, before=(), after=tuple(files))]
        else:
            reader = self._reader(begin.version, end.version - 1)
            commits = [reader.files(version) for version in range(begin.version, end.version)]
        return frame_of_commits(
            self.spark, snapshot, self.settings.table,
            plan_versions(snapshot, begin.version, max(begin.version, end.version - 1)), commits,
        )  # fmt: skip

    def _reader(self, first: int, last: int) -> ChangeReader:
        return ChangeReader(self._log, plan_versions(self.newest, first, last))

    @property
    def _log(self) -> TransactionLog:
        return open_log(self.spark, self.path, self.settings.table)

    def _first(self) -> StreamOffset:
        """Where a new query begins."""
        now, version, moment = self.newest, self._starting_version, self._starting_ms
        if moment is not None:
            version = first_since(self._timeline(), moment, now.store.uri)
        if version is None:
            return StreamOffset(now.table_id, now.version, whole=True)
        if version > now.version + 1:
            raise VersionNotFoundError(
                f"option 'startingVersion' is {version}, and the newest version of {now.store.uri} is "
                f"{now.version}: a stream can begin with the commit after it, as with latest, at most.",
                version=version, uri=now.store.uri,
            )  # fmt: skip
        return StreamOffset(now.table_id, now.version + 1 if version == _LATEST else version)

    def _beginning(self, end: StreamOffset) -> StreamOffset:
        """Where the first batch began; offsets of IndexTables 0.2 do not say it."""
        if end.start is not None:
            return end.start
        if end.whole:
            return replace(end, index=0)
        version = self._starting_version
        if version is None:
            return StreamOffset(end.table_id, end.version - 1, whole=True)
        return end if version == _LATEST else StreamOffset(end.table_id, version)

    @property
    def _starting_version(self) -> int | None:
        """The commit to begin with; None is the whole table first, -1 only what comes after now."""
        text = self.settings.call.get("startingVersion")
        if text is None or text.lower() == "latest":
            return None if text is None else _LATEST
        if not text.isdigit():
            raise OptionError(
                f"option 'startingVersion' is {text!r}; expected a version or 'latest'",
                key="startingVersion", value=text,
            )  # fmt: skip
        return int(text)

    @property
    def _starting_ms(self) -> int | None:
        """The time of the first commit to begin with."""
        text = self.settings.call.get("startingTimestamp")
        if text is None:
            return None
        if "startingVersion" in self.settings.call:
            raise OptionError(
                "options 'startingVersion' and 'startingTimestamp' cannot be used together",
                key="startingTimestamp",
            )
        return moment_of(text, lambda: self.settings.options().search.time_zone, "startingTimestamp")

    def _timeline(self) -> Timeline:
        snapshot = self.newest
        if isinstance(snapshot, DeltaSnapshot):
            return delta_timeline(snapshot.source, snapshot.metadata.configuration)
        return self._log.timeline()

    @property
    def _limits(self) -> _Limits:
        limits = _Limits(self.settings.number("maxFilesPerTrigger"), self.settings.size("maxBytesPerTrigger"))
        for key, limit in (("maxFilesPerTrigger", limits.files), ("maxBytesPerTrigger", limits.bytes)):
            if limit == 0:
                raise OptionError(f"option {key!r} is 0, so no batch could hold a file", key=key, value="0")
        return limits

    def _advanced(self, begin: StreamOffset, newest: int, limits: _Limits, columns: Columns) -> StreamOffset:
        """How far a batch from `begin` goes: to the newest version, or to where a limit ends it.

        The whole table is a batch by itself, and no batch has the same file twice.
        """
        room = _Room(limits)
        if begin.whole:
            if not limits:
                return begin.following()
            files: Sequence[AddAction] = self._whole_files(begin)
            taken = room.take(self._keyed(files[begin.index :]))
            end = replace(begin, index=begin.index + taken)
            return begin.following() if end.index == len(files) else end
        offset = begin
        if self.has_changes:
            return self._advanced_by_commits(begin, newest, room, columns)
        while offset.version <= newest:
            files = self._added(offset.version, columns)
            taken = room.take(self._keyed(files[offset.index :]))
            if offset.index + taken < len(files):
                return replace(offset, index=offset.index + taken)
            offset = offset.following()
        return offset

    def _advanced_by_commits(
        self, begin: StreamOffset, newest: int, room: _Room, columns: Columns
    ) -> StreamOffset:
        """The same for changes. A commit is never divided: one beyond the limits is a batch by itself."""
        reader, offset = self._reader(begin.version, newest), begin
        while offset.version <= newest:
            version = offset.version
            columns.require_unchanged(self._actions(version), version, self.newest.store.uri)
            commit = reader.files(version)
            files = [*commit.before, *commit.after]
            taken = room.take(((version, at), file.size or 0) for at, file in enumerate(files))
            if taken < len(files) and offset != begin:
                return offset
            offset = offset.following()
        return offset

    def _keyed(self, files: Sequence[AddAction]) -> Iterator[tuple[Any, int]]:
        return ((self.newest.dialect.key(file), file.size) for file in files)

    def _between(self, begin: StreamOffset, end: StreamOffset, columns: Columns) -> Iterator[AddAction]:
        offset = begin
        while offset.version < end.version:
            yield from self._added(offset.version, columns)[offset.index :]
            offset = offset.following()
        if offset.version == end.version and end.index:
            yield from self._added(offset.version, columns)[offset.index : end.index]

    def _whole_files(self, offset: StreamOffset) -> list[AddAction]:
        """The files of the table as it was at a version, in the order in which offsets count them."""
        version = self._at(offset.version)
        return version.once("stream files", version.adds)

    def _at(self, version: int) -> Snapshot:
        if version == self.newest.version:
            return self.newest
        call = {"versionAsOf": str(version)}
        snapshot = snapshot_of(self.spark, self.path, CallSettings(call, self.settings.table))
        if snapshot.table_id != self.newest.table_id:
            raise _other_log(snapshot, self.newest.table_id, version)
        return snapshot

    def _require_same(self, offset: StreamOffset) -> None:
        """Raise if the log is not the one the offset belongs to."""
        if self.newest.table_id != offset.table_id:
            raise _other_log(self.newest, offset.table_id, offset.version)

    def _added(self, version: int, columns: Columns) -> list[AddAction]:
        """The files whose rows a commit adds."""
        actions = self._actions(version)
        adds = [action for action in actions if isinstance(action, AddAction) and action.data_change]
        removed = [a.path for a in actions if isinstance(a, RemoveAction) and a.data_change]
        if removed:
            if self.settings.flag("skipChangeCommits"):
                return []
            if adds or not self.settings.flag("ignoreDeletes"):
                raise self._removing(version, removed, only_removes=not adds)
        columns.require_unchanged(actions, version, self.newest.store.uri)
        return sorted(adds, key=lambda add: add.path)

    def _actions(self, version: int) -> Sequence[Action]:
        snapshot = self.newest
        if not isinstance(snapshot, DeltaSnapshot):
            return self._log.read_version(version)
        try:
            return snapshot.source.read_commit(snapshot.source.commit_file(version))
        except NotFoundError as gone:
            raise VersionNotFoundError(
                f"{snapshot.store.uri} has no file for version {version} any more: its log was cleaned up "
                "before this query read it. Start a new query with another checkpointLocation.",
                version=version, uri=snapshot.store.uri,
            ) from gone  # fmt: skip

    def _removing(self, version: int, removed: Sequence[str], *, only_removes: bool) -> TableError:
        advice = "ignoreDeletes=true to pass over commits that only remove rows, or " if only_removes else ""
        return TableError(
            f"{self.newest.store.uri}: version {version} removes {len(removed)} files with their rows, for "
            f"example {removed[0]}, which a stream cannot take back. Set {advice}skipChangeCommits=true to "
            f"pass over every commit that removes rows, or start a new query with "
            f"startingVersion={version + 1}.",
            version=version,
        )


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that a query was started with; it cannot have others while it runs."""

    metadata: MetadataAction
    """The schema of the table, its partition columns, and the names under which columns are stored."""
    version: int
    """The version it was read at."""

    def require_unchanged(self, actions: Sequence[Action], version: int, uri: str) -> None:
        """Raise if a later commit gives the table columns that the query does not have."""
        if version <= self.version:
            return
        before = json.loads(self.metadata.schema_string)["fields"]
        types = {field["name"].lower(): field["type"] for field in before}
        for action in actions:
            if isinstance(action, MetadataAction):
                stored = stored_names_of(action) or {}
                own = all_stored_names(self.metadata)
                moved = [name for name in own if stored and stored.get(name) != own[name]]
                if moved:
                    raise TableError(
                        f"{uri}: version {version} renames or drops the columns {', '.join(moved)}. Start "
                        "the query again from its checkpoint to read the table as it is now.",
                        version=version,
                    )
                fields = json.loads(action.schema_string)["fields"]
                new = [field["name"] for field in fields if types.get(field["name"].lower()) != field["type"]]
                if new:
                    raise TableError(
                        f"{uri}: version {version} adds or changes the columns {', '.join(new)}. Start the "
                        "query again from its checkpoint to read them.",
                        version=version,
                    )


@dataclass(frozen=True, slots=True)
class _Limits:
    """How much a batch may have; None is as much as there is."""

    files: int | None = None
    bytes: int | None = None

    def __bool__(self) -> bool:
        return self.files is not None or self.bytes is not None


class _Room:
    """What is left of the limits while a batch is filled."""

    def __init__(self, limits: _Limits) -> None:
        self._limits = limits
        self._files: set[Any] = set()
        self._bytes = 0

    def take(self, files: Iterator[tuple[Any, int]]) -> int:
        """How many of these files, given by key and size, are in the batch; its first file always is."""
        taken = 0
        for key, size in files:
            limits, count = self._limits, len(self._files)
            if key in self._files or (limits.files is not None and count >= limits.files):
                break
            if limits.bytes is not None and count and self._bytes + size > limits.bytes:
                break
            self._files.add(key)
            self._bytes += size
            taken += 1
        return taken


def _other_log(snapshot: Snapshot, expected: str, version: int) -> TableError:
    return TableError(
        f"{snapshot.store.uri}: the log is not the one this query has read so far (its id is "
        f"{snapshot.table_id} and was {expected}): it was repaired, or the table was created again, and its "
        f"versions count from 0 again. The query has read up to version {version} of the old log and stops, "
        "because going on would miss rows. Start a new query with another checkpointLocation: without "
        "startingVersion it reads the whole table, and after a repair startingVersion=2 begins with what was "
        "committed since.",
        uri=snapshot.store.uri, found=snapshot.table_id, expected=expected,
    )  # fmt: skip
