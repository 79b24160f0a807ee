"""Planted bugs: each takes one rule of the protocol away, and the simulation has to notice.

A mutant names the rule it breaks and the number of histories within which it is
caught. It is planted by replacing functions of the production code while a block
runs; a function that is no longer there is an error, so that no mutant ages into
one that changes nothing.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from indextables.errors import CommitError


class Bench:
    """Where production code is taken apart, and put together again."""

    def __init__(self) -> None:
        self._kept: list[tuple[Any, str, Any]] = []

    def change(self, where: str, name: str, make: Callable[[Any], Any], *, only_here: bool = False) -> None:
        """Replace a function, or a member of a class (`Class.member`), wherever it has been imported."""
        owner: Any = import_module(f"indextables.{where}")
        *classes, name = name.split(".")
        for part in classes:
            owner = getattr(owner, part)
        original = owner.__dict__[name]
        made = make(original)
        for place in [owner] if classes or only_here else self._holders(name, original):
            self._kept.append((place, name, original))
            setattr(place, name, made)

    @staticmethod
    def _holders(name: str, original: Any) -> list[Any]:
        return [
            module
            for key, module in sorted(sys.modules.items())
            if key.startswith(("indextables", "simulation")) and module.__dict__.get(name) is original
        ]

    def put_back(self) -> None:
        """Make everything as it was."""
        for owner, name, original in reversed(self._kept):
            setattr(owner, name, original)


@dataclass(frozen=True)
class Mutant:
    """One planted bug."""

    name: str
    plant: Callable[[Bench], None]
    level: str = "log"
    within: int = 100
    """It is caught by one of so many histories, counted from seed 0."""

    @property
    def what(self) -> str:
        """The bug in words."""
        return " ".join((self.plant.__doc__ or "").split())


MUTANTS: dict[str, Mutant] = {}


def mutant(within: int, level: str = "log") -> Callable[[Callable[[Bench], None]], Callable[[Bench], None]]:
    """Register a planted bug under its function's name."""

    def register(plant: Callable[[Bench], None]) -> Callable[[Bench], None]:
        name = plant.__name__
        MUTANTS[name] = Mutant(name, plant, level, within)
        return plant

    return register


@contextlib.contextmanager
def planted(name: str | None) -> Iterator[None]:
    """Run a block with one bug in the production code, or with none."""
    bench = Bench()
    try:
        if name is not None:
            MUTANTS[name].plant(bench)
        yield
    finally:
        bench.put_back()


def always(value: Any) -> Callable[[Any], Any]:
    """A function that gives one answer, whatever it is asked."""
    return lambda _original: lambda *_args, **_more: value


# Creating a version


def _file(attempt: Any) -> Any:
    """A version file as a writer knows it that did not look."""
    from indextables.log.format.dialect import NATIVE, LogFile

    return LogFile(NATIVE.commit_name(attempt.version), attempt.version, "commit", len(attempt.data))


@mutant(100)
def no_condition(bench: Bench) -> None:
    """A version file is put whether or not there is one."""

    def make(_place: Any) -> Any:
        def place(attempt: Any) -> Any:
            attempt.source.store.put(attempt.path, attempt.data)
            return _file(attempt)

        return place

    bench.change("log.commit.placement", "place", make)


@mutant(100)
def lost_reply_is_failure(bench: Bench) -> None:
    """A put without an answer is reported as one that did not happen."""

    def make(is_ours: Any) -> Any:
        def changed(attempt: Any, failed: Any) -> Any:
            if failed is not None:
                raise CommitError("nothing was committed", outcome="absent") from failed
            return is_ours(attempt, failed)

        return changed

    bench.change("log.commit.placement", "_is_ours", make)


@mutant(100)
def late_put_is_failure(bench: Bench) -> None:
    """A put without an answer whose file is not there is reported as one that will never land."""

    def make(is_ours: Any) -> Any:
        def changed(attempt: Any, failed: Any) -> Any:
            if failed is not None:
                failed.fields["final"] = True
            return is_ours(attempt, failed)

        return changed

    bench.change("log.commit.placement", "_is_ours", make)


@mutant(100)
def lost_reply_is_conflict(bench: Bench) -> None:
    """A put without an answer counts as a version that another writer took, and is tried again."""

    def make(is_ours: Any) -> Any:
        return lambda attempt, failed: failed is None and is_ours(attempt, failed)

    bench.change("log.commit.placement", "_is_ours", make)


@mutant(100)
def present_is_ours(bench: Bench) -> None:
    """After a put without an answer, any file under that number is taken for one's own."""
    bench.change("log.commit.placement", "_commit_id", lambda _original: lambda attempt, _: attempt.commit_id)


@mutant(100)
def present_is_foreign(bench: Bench) -> None:
    """After a put without an answer, any file under that number is taken for another writer's."""

    def make(stored: Any) -> Any:
        return lambda attempt: None if stored(attempt) is None else b'{"commitInfo":{}}'

    bench.change("log.commit.placement", "_stored", make)


@mutant(300, "reuse")
def number_reuse_unnoticed(bench: Bench) -> None:
    """A fence is believed for ever: a put that succeeds is acknowledged, though its number had been used and
    freed before."""

    def make(_look: Any) -> Any:
        return lambda attempt, *, ours: _file(attempt) if ours else None

    bench.change("log.commit.placement", "_look", make)


@mutant(200, "frozen")
def always_in_time(bench: Bench) -> None:
    """A put that was confirmed is acknowledged when the look after it fails: the clock says it was in time."""
    from indextables.errors import StorageError

    def make(look: Any) -> Any:
        def changed(attempt: Any, *, ours: bool) -> Any:
            try:
                return look(attempt, ours=ours)
            except StorageError:
                if ours:
                    return _file(attempt)
                raise

        return changed

    bench.change("log.commit.placement", "_look", make)


@mutant(300, "reuse")
def follower_unasked(bench: Bench) -> None:
    """A writer whose number was retired takes its commit for history, whatever the log says."""
    bench.change("log.commit.placement", "_retired", lambda _original: lambda attempt, _: _file(attempt))


@mutant(1500)
def no_floor(bench: Bench) -> None:
    """Versions are deleted without a word about which numbers were used."""

    def make(run: Any) -> Any:
        return lambda source, plan, *more, **named: run(source, replace(plan, floor=None), *more, **named)

    bench.change("log.retention", "run_cleanup", make)


@mutant(300)
def raise_after_durable(bench: Bench) -> None:
    """A commit that is in place fails when what comes after it fails."""

    def make(after: Any) -> Any:
        def read_back(base: Any, *args: Any, **named: Any) -> Any:
            from indextables.log.format.dialect import NATIVE

            base.source.store.get(base.source.path(NATIVE.commit_name(base.version + 1)))
            return after(base, *args, **named)

        return read_back

    bench.change("log.commit.attempt", "_after", make)


@mutant(300)
def times_go_back(bench: Bench) -> None:
    """A commit has the time of its writer's clock, even when the one before is later."""
    bench.change("log.snapshot", "Snapshot.timestamp_ms", lambda _original: property(lambda _self: 0))


# What a commit relies on


@mutant(100)
def no_conflict_check(bench: Bench) -> None:
    """Nobody looks at what others committed meanwhile."""
    bench.change("log.commit.conflicts", "check_conflicts", always(None))


@mutant(300)
def sources_unchecked(bench: Bench) -> None:
    """Merge and delete do not look whether their sources are still live."""
    bench.change("log.commit.conflicts", "_check_sources", always(None))


def _restore_as_planned(bench: Bench) -> None:
    """Let a restore write what it had worked out before it began to commit."""
    from indextables.log.commit.conflicts import Rule

    def make(run: Any) -> Any:
        return lambda plan, *more, **named: run(
            _with_fixed_actions(plan) if plan.rule is Rule.EXCLUSIVE else plan, *more, **named
        )

    bench.change("log.commit.attempt", "run_commit", make)


def _with_fixed_actions(plan: Any) -> Any:
    worked_out: list[Any] = []

    def build(base: Any) -> Any:
        if not worked_out:
            worked_out.append(plan.build(base))
        return worked_out[0]

    return replace(plan, build=build)


@mutant(500)
def exclusive_for_nobody(bench: Bench) -> None:
    """Restore tolerates every change by others, and removes what was live when it began."""
    from indextables.log.commit.conflicts import Rule

    def make(check: Any) -> Any:
        def changed(plan: Any, first: Any, base: Any) -> None:
            if plan.rule is not Rule.EXCLUSIVE:
                check(plan, first, base)

        return changed

    bench.change("log.commit.conflicts", "check_conflicts", make)
    _restore_as_planned(bench)


@mutant(300, "restore")
def restore_with_fixed_removals(bench: Bench) -> None:
    """A merge is no conflict for restore, which removes what was live before the merge."""

    def make(reason: Any) -> Any:
        def changed(plan: Any, action: Any, base: Any) -> Any:
            return None if getattr(action, "data_change", True) is False else reason(plan, action, base)

        return changed

    bench.change("log.commit.conflicts", "_reason", make)
    _restore_as_planned(bench)


@mutant(200)
def expected_version_ignored(bench: Bench) -> None:
    """An overwrite that names the version it was made from replaces later data as well."""
    from indextables.log.commit.conflicts import Rule

    def make(run: Any) -> Any:
        def changed(plan: Any, *more: Any, **named: Any) -> Any:
            if plan.rule is Rule.OVERWRITE:
                plan = replace(plan, read_version=None)
            return run(plan, *more, **named)

        return changed

    bench.change("log.commit.attempt", "run_commit", make)


@mutant(200)
def retry_without_recheck(bench: Bench) -> None:
    """What a commit relies on is checked at its first attempt only."""

    def make(check: Any) -> Any:
        def changed(plan: Any, first: Any, base: Any) -> None:
            if base is first:
                check(plan, first, base)

        return changed

    bench.change("log.commit.conflicts", "check_conflicts", make)


@mutant(200)
def retry_with_first_actions(bench: Bench) -> None:
    """A second attempt writes what the first one had worked out, whatever came in between."""

    def make(run: Any) -> Any:
        return lambda plan, *more, **named: run(_with_fixed_actions(plan), *more, **named)

    bench.change("log.commit.attempt", "run_commit", make)


@mutant(200)
def txn_unchecked(bench: Bench) -> None:
    """A batch that is in the table already is written once more."""
    bench.change("log.commit.attempt", "_already_done", always(False))


@mutant(400)
def txn_forgotten_by_checkpoints(bench: Bench) -> None:
    """A checkpoint drops the batches that applications have written."""
    bench.change(
        "log.checkpoint.writer", "_head",
        lambda head: lambda *args, **named: {**head(*args, **named), "txn": []},
    )  # fmt: skip


# Reading


@mutant(100)
def cache_trusted_at_commit(bench: Bench) -> None:
    """A commit begins from what the handle remembers instead of looking."""

    def make(newest: Any) -> Any:
        return lambda self, max_staleness_s=None: newest(
            self, None if max_staleness_s == 0 else max_staleness_s
        )

    bench.change("log.reader", "LogHandle._newest", make)


@mutant(100)
def new_commits_unread(bench: Bench) -> None:
    """A refresh takes the newest number and keeps the old files."""

    def make(refresh: Any) -> Any:
        def changed(source: Any, state: Any) -> Any:
            fresh = refresh(source, state)
            return fresh if fresh is state else replace(state, segment=fresh.segment)

        return changed

    bench.change("log.state", "refresh_state", make)


@mutant(100)
def hint_without_listing(bench: Bench) -> None:
    """The version that the hint names is taken for the newest one."""

    def make(find: Any) -> Any:
        def changed(store: Any, dialect: Any, version: Any = None, *, hint: Any = None, **more: Any) -> Any:
            newest = hint.version if version is None and hint is not None else version
            return find(store, dialect, newest, hint=hint, **more)

        return changed

    bench.change("log.segment", "find_segment", make)


@mutant(500)
def files_known_by_name(bench: Bench) -> None:
    """A file under a known name is taken for the file that was read, though the log was replaced."""
    bench.change(
        "log.format.dialect",
        "LogFile.identity",
        lambda _original: property(lambda self: (self.name, self.version)),
    )


# Checkpoints


@mutant(100)
def checkpoint_before_commit(bench: Bench) -> None:
    """The checkpoint of a version is written before the version itself."""

    def make(place: Any) -> Any:
        def changed(attempt: Any) -> Any:
            from indextables.log.format.dialect import NATIVE, LogFile
            from indextables.log.native import write_native_checkpoint
            from indextables.log.snapshot import Snapshot
            from indextables.log.state import advance_state, load_state

            source, version, data = attempt.source, attempt.version, attempt.data
            state = load_state(source)
            name = NATIVE.commit_name(version)
            actions = NATIVE.decode_commit(data, name=name, version=version)
            file = LogFile(name, version, "commit", len(data))
            write_native_checkpoint(Snapshot(source, advance_state(state, source.dialect, file, actions)))
            return place(attempt)

        return changed

    bench.change("log.commit.placement", "place", make)


@mutant(100)
def checkpoint_keeps_removed_files(bench: Bench) -> None:
    """A checkpoint carries on files of the one before that were removed since."""

    def make(tail: Any) -> Any:
        def changed(*asked: Any) -> Any:
            found = tail(*asked)
            return replace(found, touched=found.paths)

        return changed

    bench.change("log.checkpoint.live_adds", "_tail", make)


# Cleaning up


@mutant(300)
def floor_unread(bench: Bench) -> None:
    """Readers look at what lies below the floor: versions half deleted, fences, puts that came too late."""

    def make(listing_of: Any) -> Any:
        def changed(files: Any, start: Any = None) -> Any:
            found = list(files)
            listing = listing_of(found, start)
            kept = tuple(file for file in found if file.kind != "floor")
            return replace(listing, files=kept, floor=0, retired=())

        return changed

    bench.change("log.segment", "listing_of", make)


@mutant(300)
def cleanup_ignores_age(bench: Bench) -> None:
    """Cleanup deletes versions that are younger than the log retention."""

    def make(plan: Any) -> Any:
        def changed(*args: Any, retention: Any, **named: Any) -> Any:
            return plan(*args, retention=replace(retention, log_ms=-(1 << 60)), **named)

        return changed

    bench.change("log.retention", "plan_cleanup", make)


@mutant(300)
def cleanup_takes_newest_checkpoint(bench: Bench) -> None:
    """Cleanup deletes the checkpoint that everything after it rests on."""

    def make(old: Any) -> Any:
        def changed(listing: Any, sound: Any, *args: Any, **named: Any) -> Any:
            found = old(listing, sound, *args, **named)
            newest = max(item.version for item in sound)
            return (*found, *(f for f in listing.files if f.kind == "checkpoint" and f.version == newest))

        return changed

    bench.change("log.retention", "_old_checkpoints", make)


@mutant(300)
def cleanup_beyond_checkpoints(bench: Bench) -> None:
    """Cleanup lets versions go that those it keeps cannot be rebuilt without."""

    def make(plan: Any) -> Any:
        def changed(listing: Any, *args: Any, current: int, **named: Any) -> Any:
            found = plan(listing, *args, current=current, **named)
            return found if found.floor is None else replace(found, floor=current - 1)

        return changed

    bench.change("log.retention", "plan_cleanup", make)


@mutant(300)
def cleanup_takes_parts(bench: Bench) -> None:
    """Cleanup deletes the parts of checkpoints that it keeps."""

    def make(old: Any) -> Any:
        def changed(listing: Any, *args: Any, **named: Any) -> Any:
            found = old(listing, *args, **named)
            return (*found, *(file for file in listing.files if file.kind == "part"))

        return changed

    bench.change("log.retention", "_old_checkpoints", make)


@mutant(600)
def checkpoint_met_itself(bench: Bench) -> None:
    """A checkpoint's put that was sent twice is taken for another writer's, and its own parts are deleted."""
    bench.change("log.checkpoint.writer", "_is_of", always(False))


@mutant(200)
def truncate_without_checkpoint(bench: Bench) -> None:
    """TRUNCATE deletes older versions before the newest one stands alone."""

    from indextables.log.format.dialect import NATIVE
    from indextables.log.segment import list_log

    def make(_checkpointed: Any) -> Any:
        return lambda log: (log.latest_version(), list_log(log.store, NATIVE))

    bench.change("ops.maintain.truncate_history", "_checkpointed", make)


@mutant(300, "purge")
def purge_keeps_the_newest_version_only(bench: Bench) -> None:
    """PURGE deletes splits that older versions need, though these can still be opened."""

    def make(needed: Any) -> Any:
        def changed(log: Any, *args: Any, **named: Any) -> Any:
            found = needed(log, *args, **named)
            live = log.snapshot(max_staleness_s=0).live_paths().to_pylist()
            return replace(found, paths=frozenset(live))

        return changed

    bench.change("ops.maintain.purge", "needed_paths", make)


@mutant(300, "purge")
def purge_ignores_commits(bench: Bench) -> None:
    """PURGE takes for needed only what checkpoints name."""
    bench.change("ops.maintain.purge", "_added", always(()))


@mutant(300)
def purge_ignores_age(bench: Bench) -> None:
    """PURGE deletes splits that a writer is about to commit."""
    bench.change(
        "ops.maintain.purge", "plan_purge",
        lambda plan: lambda files, needed, now_ms, hours: plan(files, needed, now_ms, -1e6),
    )  # fmt: skip


@mutant(150, "clocks")
def ages_by_own_clock(bench: Bench) -> None:
    """PURGE, cleanup and TRUNCATE measure ages by the clock of their own process."""
    bench.change("log.state", "LogSource.time_ms", lambda _: lambda source: source.runtime.clock.now_ms())


@mutant(300)
def discard_when_unknown(bench: Bench) -> None:
    """After a commit whose outcome is unknown, its new splits are deleted."""
    bench.change(
        "ops.rewrite.replace", "NEVER_COMMITTED", lambda certain: (*certain, CommitError), only_here=True
    )


# What tables promise beyond their files


@mutant(100, "table")
def upsert_ignores_foreign_inserts(bench: Bench) -> None:
    """MERGE does not look whether others have inserted what it inserts."""
    from indextables.log.commit.conflicts import Rule

    def make(reason: Any) -> Any:
        return lambda plan, action, base: None if plan.rule is Rule.UPSERT else reason(plan, action, base)

    bench.change("log.commit.conflicts", "_reason", make)


@mutant(100, "table")
def every_commit_is_an_append(bench: Bench) -> None:
    """MERGE takes every commit of others for an append, which has read nothing."""
    bench.change("log.commit.conflicts", "_is_append", always(True))


@mutant(200, "table")
def schema_of_added_files_unchecked(bench: Bench) -> None:
    """Files are added whatever schema others gave the table after they were written."""
    bench.change("log.commit.conflicts", "fits", always(True))
    bench.change("log.commit.conflicts", "check_schema", always(None))


@mutant(50)
def properties_from_the_first_version(bench: Bench) -> None:
    """Properties are set on what the handle saw first, so that those which others set are lost."""

    def make(properties: Any) -> Any:
        first: dict[int, Any] = {}

        def changed(base: Any, changes: Any) -> Any:
            seen = first.setdefault(id(base.source), base)
            return properties(seen, changes)

        return changed

    bench.change("log.commit.changes", "properties", make)


@mutant(100, "table")
def no_commit_is_found(bench: Bench) -> None:
    """find_commit knows no commit."""
    bench.change("log.history", "find_commit", always(None))


@mutant(400, "table")
def follower_repeats_rows(bench: Bench) -> None:
    """A follower does not move on after the last version, and gives its rows again."""

    def make(poll: Any) -> Any:
        def changed(self: Any) -> Any:
            began = self.version
            yield from poll(self)
            self.version = max(began, self.version - 1)

        return changed

    bench.change("ops.read.follow", "Follower.poll", make)


@mutant(100, "table")
def filter_rules_out_a_match(bench: Bench) -> None:
    """A word filter rules out its first split, whatever that holds."""

    def make(may_match: Any) -> Any:
        def changed(self: Any, query: Any) -> Any:
            possible = may_match(self, query).copy()
            possible[:1] = False
            return possible

        return changed

    bench.change("index.filters", "FilterGroup.may_match", make)


@mutant(100, "table")
def as_of_before(bench: Bench) -> None:
    """A version is not yet there at its own moment."""

    def make(at: Any) -> Any:
        return lambda self, moment_ms: at(self, moment_ms - 1)

    bench.change("log.history", "Timeline.at", make)


@mutant(100, "table")
def as_of_after(bench: Bench) -> None:
    """A version is there a millisecond before its moment."""

    def make(at: Any) -> Any:
        return lambda self, moment_ms: at(self, moment_ms + 1)

    bench.change("log.history", "Timeline.at", make)


@mutant(50)
def properties_forgotten_by_checkpoints(bench: Bench) -> None:
    """A checkpoint drops the properties of the table."""

    def make(head: Any) -> Any:
        def changed(*args: Any, **named: Any) -> Any:
            written = head(*args, **named)
            return {**written, "metaData": {**written["metaData"], "configuration": {}}}

        return changed

    bench.change("log.checkpoint.writer", "_head", make)


@mutant(200, "table")
def update_discards_when_unknown(bench: Bench) -> None:
    """After an UPDATE or MERGE whose outcome is unknown, its new splits are deleted."""

    def make(commit: Any) -> Any:
        def changed(log: Any, plan: Any, adds: Any, *vectors: Any) -> Any:
            from indextables.ops.rewrite.rows import discard

            try:
                return commit(log, plan, adds, *vectors)
            except CommitError:
                if plan.operation in {"UPDATE", "MERGE"}:
                    discard(log.store, adds)
                raise

        return changed

    bench.change("ops.rewrite.replace", "commit_or_discard", make)


@mutant(50, "table")
def update_without_sources(bench: Bench) -> None:
    """UPDATE and MERGE do not say which files they rely on."""

    def make(plan: Any) -> Any:
        return lambda *args, **named: replace(plan(*args, **named), sources=frozenset())

    bench.change("ops.rewrite.replace", "replace_plan", make)


@mutant(200, "vectors")
def vector_forgets_others(bench: Bench) -> None:
    """A second attempt names the rows it deletes and forgets those that others have deleted in the same file."""

    def make(hidden: Any) -> Any:
        def changed(self: Any, base: Any, add: Any) -> Any:
            hidden(self, base, add)
            return self._deleted[add.path].rows

        return changed

    bench.change("ops.rewrite.vectors", "VectorCommit._hidden", make)


@mutant(200, "vectors")
def same_row_deleted_twice(bench: Bench) -> None:
    """Who changes a row by a vector does not notice that another has changed it meanwhile."""

    def make(hidden: Any) -> Any:
        def changed(self: Any, base: Any, add: Any) -> Any:
            import numpy as np

            before, rows = self._deleted_before(add), self._deleted[add.path].rows
            return rows if before is None else np.union1d(before, rows)

        return changed

    bench.change("ops.rewrite.vectors", "VectorCommit._hidden", make)


# Where clocks and answers lie: what was once wrong in the rule of commits, of readers and of PURGE


@mutant(100, "strangers")
def stranger_believed(bench: Bench) -> None:
    """After a put without an answer, another writer's file under that number is proof enough that nothing
    was committed, though the number may have been used and freed."""

    def make(look: Any) -> Any:
        return lambda attempt, *, ours: look(attempt, ours=ours) if ours else None

    bench.change("log.commit.placement", "_look", make)


@mutant(300, "reuse")
def own_file_came_too_late(bench: Bench) -> None:
    """A writer whose number was retired and whose file is still there takes it for one that came too late."""

    def make(retired: Any) -> Any:
        def changed(attempt: Any, listing: Any) -> Any:
            from indextables.log.commit.placement import _stored

            return None if _stored(attempt) == attempt.data else retired(attempt, listing)

        return changed

    bench.change("log.commit.placement", "_retired", make)


@mutant(300, "freed_number")
def another_file_than_listed(bench: Bench) -> None:
    """A reader takes whatever lies under a name for the file that it listed there."""

    def make(read: Any) -> Any:
        return lambda self, file: read(self, replace(file, etag=None))

    bench.change("log.state", "LogSource.read_commit", make)


@mutant(2400, "slow")
def purge_unnoticed(bench: Bench) -> None:
    """A writer that took longer than PURGE waits commits its splits without looking whether they are there."""
    bench.change("log.purge_mark", "check_splits", always(None))


@mutant(200, "table")
def follower_moves_on_first(bench: Bench) -> None:
    """A follower moves on before it has read: rows of a version that could not be read are never given."""

    def make(poll: Any) -> Any:
        def changed(self: Any) -> Any:
            newest = self._log.snapshot(max_staleness_s=0).version
            try:
                yield from poll(self)
            finally:
                self.version = max(self.version, newest)

        return changed

    bench.change("ops.read.follow", "Follower.poll", make)


@mutant(100, "swap")
def swap_trusts_its_first_read(bench: Bench) -> None:
    """SWAP writes the log that it read before it closed the old one, whatever was committed in between."""

    def make(survey_closed: Any) -> Any:
        def changed(survey: Any, job: Any, closing: Any) -> Any:
            return survey_closed(survey, job, closing) if survey is None else survey

        return changed

    bench.change("ops.maintain.repair.swap", "_survey_closed", make)


@mutant(100, "swap")
def closed_log_is_written(bench: Bench) -> None:
    """A writer does not know that a log is closed, and commits behind the version that closed it."""
    from indextables.log.format.protocol import reopened

    def make(check: Any) -> Any:
        return lambda protocol, uri: check(reopened(protocol), uri)

    bench.change("log.format.protocol", "check_writable", make)


@mutant(200, "exchanged")
def part_is_a_checkpoint(bench: Bench) -> None:
    """A part that lies in the place of its checkpoint is believed, and so is a file with too few rows."""
    bench.change("log.format.binding", "check_main", always(None))
    bench.change("log.checkpoint.reader", "_check_rows", always(None))
    bench.change("log.checkpoint.reader", "_check_sum", always(None))


@mutant(100)
def fold_forgets_removes(bench: Bench) -> None:
    """A long tail is folded without its removes."""

    def make(put: Any) -> Any:
        return lambda runs, path, line: None if line is None else put(runs, path, line)

    bench.change("log.replay.fold", "_Runs.put", make)
