"""The public handle on a transaction log: create it, commit to it, read it, maintain it.

Opening one reads nothing. Reads are inherited from `LogHandle`; writes always look at the
newest version first, and write checkpoints and clean up afterwards when due.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from indextables.errors import CommitError, Error, OptionError, VersionNotFoundError
from indextables.lazy import later
from indextables.log.caches import NEWS
from indextables.log.commit import changes
from indextables.log.commit.attempt import CommitPlan, Committed, Rule, run_commit
from indextables.log.commit.report import report
from indextables.log.format.protocol import PARQUET_CHECKPOINT, READER_VERSION, WRITER_VERSION, check_writable
from indextables.log.native import write_native_checkpoint
from indextables.log.reader import LogHandle
from indextables.log.retention import (
    SLACK_MS,
    CleanupPlan,
    CleanupResult,
    find_cleanup,
    run_cleanup,
)
from indextables.log.segment import Segment
from indextables.log.skips import eligible, in_cooldown, next_skip
from indextables.log.snapshot import Snapshot
from indextables.log.state import load_state
from indextables.model.actions import Action, AddAction, SkipAction, TxnAction
from indextables.options import Options, RetentionOptions
from indextables.runtime import beside
from indextables.storage.store import Prefetching

if TYPE_CHECKING:
    from indextables.log.checkpoint import writer
    from indextables.log.commit import create
else:
    writer = later("indextables.log.checkpoint.writer")
    create = later("indextables.log.commit.create")

logger = logging.getLogger(__name__)

_LONGEST_COOLDOWN_H = 24 * 366 * 1000
MOST_SINCE_CHECKPOINT = 200
LONG_TAIL_KEYS = 1_000
"""Files that commits of this handle may have touched before it builds on a new checkpoint of its own."""
_CHECKPOINT_SHARE = 4
"""A checkpoint waits while the versions since the last one have less than one in so many of its bytes."""
_LOOK_HOLDS_S = 60.0
"""A split that is younger than this is never purged, so a writer need not look for marks again."""


class TransactionLog(LogHandle):
    """One table's log. Safe to use from several threads."""

    _last_commit: Committed | None = None
    _left: Snapshot | None = None

    @property
    def last_commit(self) -> Committed | None:
        """The outcome of the last commit through this handle: version, attempts, conflicts."""
        return self._last_commit

    # Writing

    def initialize(
        self,
        schema: Any,
        partition_columns: Sequence[str] = (),
        *,
        properties: Mapping[str, str] | None = None,
        table_id: str | None = None,
        description: str | None = None,
        container: str = "parquet",
    ) -> int:
        """Create the table; if it exists with the same schema and partitioning, nothing happens."""
        version = create.create_table(
            self._source,
            lambda: self._newest(0),
            schema,
            partition_columns,
            properties or {},
            table_id=table_id,
            description=description,
            container=container,
        )
        NEWS.announce(self.uri)
        return version

    def add_files(
        self, adds: Iterable[AddAction], *, txn: TxnAction | None = None, user_metadata: str | None = None
    ) -> int:
        """Commit added files as one version; without files nothing is written.

        Nobody looks into the files: their rows are not compared with the table's CHECK and NOT NULL
        constraints, and their statistics are believed.
        """
        actions = tuple(adds)
        plan = CommitPlan("WRITE", Rule.APPEND, lambda _: actions, txn=txn, user_metadata=user_metadata)
        return self.commit(plan).version

    def overwrite_files(
        self,
        adds: Iterable[AddAction],
        *,
        expected_version: int | None = None,
        txn: TxnAction | None = None,
        user_metadata: str | None = None,
    ) -> int:
        """Replace every live file in one commit."""
        actions = tuple(adds)

        def build(base: Snapshot) -> Sequence[Action]:
            return (*changes.removals(base, base.adds()), *actions)

        plan = CommitPlan(
            "OVERWRITE", Rule.OVERWRITE, build,
            read_version=expected_version, txn=txn, user_metadata=user_metadata,
        )  # fmt: skip
        return self.commit(plan).version

    def remove_files(self, paths: Iterable[str], *, user_metadata: str | None = None) -> int:
        """Remove live files in one commit; a path that is not live is an error."""
        sources = frozenset(paths)

        def build(base: Snapshot) -> Sequence[Action]:
            return changes.removals(base, base.adds(sources))

        plan = CommitPlan("REMOVE", Rule.DELETE, build, sources=sources, user_metadata=user_metadata)
        return self.commit(plan).version

    def update_properties(self, properties: Mapping[str, str | None]) -> int:
        """Set table properties, or remove those given as None."""
        plan = CommitPlan(
            "SET PROPERTIES", Rule.APPEND, lambda base: changes.properties(base, properties),
            parameters={"properties": sorted(properties)},
        )  # fmt: skip
        return self.commit(plan).version

    def upgrade_protocol(self, reader: int, writer: int, features: Collection[str] = ()) -> int:
        """Raise the protocol; versions and features the table already has are kept."""
        return self.commit(_upgrade(reader, writer, features)).version

    def look_beside(self) -> Callable[[], Snapshot]:
        """Begin to look for the newest version in another thread; the function returned waits for it.

        What it found counts for as long as a read would believe it, and for a minute at most; after that, it
        looks once more. Both clocks of the machine are asked: the monotonic one stands still while it sleeps.
        """
        clock = self.runtime.clock
        began_ms, began_s = clock.now_ms(), clock.monotonic_s()
        limit_s = min(self.options.transaction.max_staleness_s, _LOOK_HOLDS_S)
        pool = ThreadPoolExecutor(1, thread_name_prefix="indextables-look")
        looking = pool.submit(self._newest_to_follow)
        pool.shutdown(wait=False)

        def newest() -> Snapshot:
            newest_version = looking.result()
            if max(abs(clock.now_ms() - began_ms) / 1000, clock.monotonic_s() - began_s) > limit_s:
                return self._newest(0)
            return newest_version if self._caches is None else self._newest(None)

        return newest

    def commit(self, plan: CommitPlan, begin: Callable[[], Snapshot] | None = None) -> Committed:
        """Commit a plan, then write a checkpoint and clean up if that is due.

        `begin` returns the version to begin with, as `look_beside` finds it during the same call.
        """
        done, after = run_commit(plan, self._newest_to_follow, begin)
        self._last_commit = replace(done, actions=())
        if done.written:
            mark = NEWS.announce(self.uri)
            report(plan, done.actions, (self.options if after is None else after.settings).stats)
            if after is not None:
                self._adopt(after, mark)
                self._tidy(after)
            self._left = self._current if after is None or self._is_at(done.version) else after
            if self.runtime.committed is not None and plan.rule is not Rule.MERGE:
                self.runtime.committed(self.store.spark_uri("").rstrip("/"))
        return done

    def _newest_to_follow(self) -> Snapshot:
        """The newest version from a fresh listing, for a commit on top of it.

        A commit names the one before it. Where a request takes long, that one is read during the listing, for
        it is most likely still the newest.
        """
        current = self._current
        if current is None or current.segment.commits or not isinstance(self.store, Prefetching):
            return self._newest(0)

        def read_info() -> None:
            with contextlib.suppress(Error):
                _ = current.info

        return beside(lambda: self._newest(0), read_info)

    def _is_at(self, version: int) -> bool:
        return self._current is not None and self._current.version == version

    def left_by_commit(self) -> Snapshot | None:
        """The snapshot that the last commit through this handle left; None if it wrote nothing."""
        return self._left

    # Options of one call

    def with_options(self, more: Mapping[str, Any] | None) -> Self:
        """The same log with further options for one call; the handle itself if there are none.

        The new handle starts from what this one knows and uses the same store. `follow` brings this handle up
        to what was committed through the new one.
        """
        return self.with_only({**self.options.explicit, **more}) if more else self

    def with_only(self, options: Mapping[str, Any]) -> Self:
        """The same log with these options and no others, as `with_options` makes one."""
        other = type(self)(self.store, Options.of(options), self.runtime)
        current = self._current
        if current is not None:
            other._adopt(Snapshot(other.source, current.state))  # noqa: SLF001 - the same class
        return other

    def follow(self, other: Self) -> None:
        """Adopt the last commit of a handle made by `with_options`. Nothing is read."""
        if other is self or other._left is None:
            return
        self._last_commit = other._last_commit
        self._left = Snapshot(self.source, other._left.state)
        self._adopt(self._left)

    # Maintenance

    def checkpoint(self) -> int:
        """Write a checkpoint of the newest version and return that version."""
        snapshot = self._newest(0)
        check_writable(snapshot.protocol, self.uri)
        try:
            return self._write_checkpoint(snapshot)
        except VersionNotFoundError:
            newer = self._newest(0)
            if newer.version == snapshot.version:
                raise
            # Others committed and cleaned up meanwhile; the newest version is theirs now.
            return self._write_checkpoint(newer)

    def cleanup(self, retention: RetentionOptions | None = None) -> CleanupResult:
        """Delete expired log files."""
        snapshot = self._newest(0)
        rules = retention or snapshot.settings.retention
        if not rules.cleanup_enabled:
            return CleanupResult()
        check_writable(snapshot.protocol, self.uri)
        result = run_cleanup(self._source, self.expired(snapshot, rules), rules)
        if self._caches is not None:
            self._caches.version_list.invalidate()
        return result

    def expired(self, snapshot: Snapshot, retention: RetentionOptions, *, write: bool = True) -> CleanupPlan:
        """What a cleanup would do now; with `write`, a checkpoint that the cut needs is written first."""
        plan = find_cleanup(self._source, snapshot.version, retention)
        if plan.cover is None or not write:
            return plan
        write_native_checkpoint(self._at(plan.cover))
        return find_cleanup(self._source, snapshot.version, retention)

    # Skips

    def record_skipped_file(  # noqa: PLR0917 - the order is the public one
        self,
        path: str,
        reason: str,
        operation: str,
        partition_values: Mapping[str, str | None] | None = None,
        size: int | None = None,
        cooldown_hours: float | None = None,
    ) -> int:
        """Record that a file is to be left alone for a while; it stays live and readable."""
        hours = (
            self.snapshot().settings.stats.skip_cooldown_hours if cooldown_hours is None else cooldown_hours
        )
        if not 0 <= hours <= _LONGEST_COOLDOWN_H:
            raise OptionError(f"cooldown_hours={hours} is not a number of hours", value=str(hours))

        def build(base: Snapshot) -> Sequence[Action]:
            earlier, now_ms = base.skips.get(path), self.runtime.clock.now_ms()
            return (
                next_skip(
                    earlier, path, reason, operation, now_ms=now_ms, cooldown_hours=hours,
                    partition_values=partition_values, size=size,
                ),
            )  # fmt: skip

        return self.commit(CommitPlan("SKIP", Rule.APPEND, build)).version

    def skipped_files(self) -> list[SkipAction]:
        """The newest skip of every path that has one."""
        return sorted(self.snapshot().skips.values(), key=lambda skip: skip.path)

    def files_in_cooldown(self) -> dict[str, int]:
        """Paths to leave alone now, each with the time (ms) at which it becomes eligible again."""
        return in_cooldown(self.snapshot().skips, self.runtime.clock.now_ms())

    def is_in_cooldown(self, path: str) -> bool:
        """Whether a file is to be left alone now."""
        return path in self.files_in_cooldown()

    def filter_files_in_cooldown(self, adds: Iterable[AddAction]) -> list[AddAction]:
        """The adds that are not in cooldown."""
        return eligible(adds, self.snapshot().skips, self.runtime.clock.now_ms())

    def _write_checkpoint(self, snapshot: Snapshot) -> int:
        features = snapshot.protocol.reader_features or ()
        if PARQUET_CHECKPOINT not in features and writer.prefers_parquet(snapshot, snapshot.settings):
            snapshot = self._allow_parquet() or snapshot
        checkpoint = write_native_checkpoint(snapshot)
        self._adopt(self._rebased(snapshot) or snapshot.with_checkpoint(checkpoint))
        return snapshot.version

    def _rebased(self, snapshot: Snapshot) -> Snapshot | None:
        """The version built on its own checkpoint if its tail is long; None if it is not, or that failed.

        A handle that commits for days would else hold every add since it was opened, and encode all of them
        for each checkpoint.
        """
        if sum(snapshot.state.tail.size()) <= LONG_TAIL_KEYS:
            return None
        try:
            return Snapshot(self._source, load_state(self._source, snapshot.version))
        except Error as failed:
            logger.info("%s: the new checkpoint is not used yet: %s", self.uri, failed)
            return None

    def _allow_parquet(self) -> Snapshot | None:
        """Raise the protocol to allow Parquet checkpoints; None if that failed and they remain JSON."""
        plan = _upgrade(READER_VERSION, WRITER_VERSION, (PARQUET_CHECKPOINT,))
        try:
            done, after = run_commit(plan, lambda: self._newest(0))
        except CommitError as failed:
            logger.warning("%s: checkpoints stay JSON for now: %s", self.uri, failed)
            return None
        if done.written:
            NEWS.announce(self.uri)
        return after or self._newest(0)

    def _tidy(self, snapshot: Snapshot) -> None:
        """Write a checkpoint and clean up when due; failures are only logged: the commit itself succeeded."""
        for name, step in (
            ("checkpoint", lambda: self._write_checkpoint(snapshot)),
            ("cleanup", self.cleanup),
        ):
            try:
                if name == "checkpoint" and not self._is_due(snapshot):
                    return
                step()
            except Exception:  # whatever it is, it must not look like a failed commit
                logger.warning(
                    "%s: the %s after version %d failed; the commit itself is durable",
                    self.uri, name, snapshot.version, exc_info=True,
                )  # fmt: skip

    def _is_due(self, snapshot: Snapshot) -> bool:
        checkpoint, segment = snapshot.settings.checkpoint, snapshot.segment
        if not checkpoint.enabled:
            return False
        due = is_due(segment.version, segment.newest_checkpoint, checkpoint.usual_interval)
        if due and checkpoint.interval is None:
            due = not can_wait(segment, checkpoint.usual_interval)
        return due or is_overdue(segment)


def is_due(version: int, newest_checkpoint: int, interval: int) -> bool:
    """Whether a version gets a checkpoint: at multiples of the interval, or that far after the last one."""
    if version <= 0 or version == newest_checkpoint:
        return False
    return version % interval == 0 or version - max(newest_checkpoint, 0) >= interval


def can_wait(segment: Segment, interval: int) -> bool:
    """Whether a checkpoint that is due can wait: it would cost more than the versions since the last one.

    Written at every tenth of many small commits, checkpoints of everything are quadratic in bytes. The first
    two never wait, and none waits for more than `MOST_SINCE_CHECKPOINT` versions.
    """
    since = segment.version - segment.newest_checkpoint
    if segment.newest_checkpoint < 0 or segment.version <= 2 * interval or since >= MOST_SINCE_CHECKPOINT:
        return False
    tail_bytes = sum(file.size for file in segment.commits[-since:])
    return tail_bytes * _CHECKPOINT_SHARE < segment.newest_checkpoint_bytes


def is_overdue(segment: Segment) -> bool:
    """Whether the newest version is half a day younger than the newest checkpoint, or than the table.

    Both are times of the store. Cleanup follows a checkpoint, so this keeps cleanup going on a table that is
    rarely written.
    """
    newest, base, head = segment.newest_checkpoint, segment.checkpoint, segment.head
    if segment.version <= max(newest, 0) or head is None:
        return False
    if base is not None and base.version >= newest:
        since_ms = base.files[0].modified_ms
    else:
        at = max(newest, 0) - segment.commits[0].version
        since_ms = segment.commits[at].modified_ms
    return head.modified_ms - since_ms >= SLACK_MS


def _upgrade(reader: int, writer: int, features: Collection[str]) -> CommitPlan:
    return CommitPlan(
        "UPGRADE PROTOCOL",
        Rule.APPEND,
        lambda base: changes.upgrade(base, reader, writer, features),
        parameters={"minReaderVersion": reader, "minWriterVersion": writer, "features": sorted(features)},
    )
