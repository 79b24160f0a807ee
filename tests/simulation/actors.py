"""Actors: processes that use a table through its public verbs, step by step, and note what they are told.

Here at the level of the log: splits are small files with the names of their
rows, so that a history costs milliseconds. What commits, checkpoints, cleans,
truncates, restores, purges, repairs and reads is the production code.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.errors import Error
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction, CommitInfo, RemoveAction, TxnAction
from indextables.ops.maintain.purge import PurgeRequest, run_purge
from indextables.ops.maintain.truncate_history import run_truncate
from indextables.ops.rewrite.merge import commit_merge
from indextables.ops.rewrite.purge_rows import OPERATION as PURGE_ROWS
from indextables.ops.rewrite.purge_rows import plan_purge_rows
from indextables.ops.rewrite.replace import commit_or_discard, replace_plan
from indextables.ops.rewrite.restore import run_restore
from indextables.ops.rewrite.rows import RewriteOutcome
from indextables.ops.rewrite.vectors import DeletedRows, VectorCommit
from indextables.runtime import Runtime
from simulation.intents import (
    ACKNOWLEDGED,
    CRASHED,
    FAILED,
    NOTHING,
    UNKNOWN,
    Followed,
    Found,
    Intent,
    Observation,
    Violation,
)
from simulation.oracle import hidden_by
from simulation.world import LOG_DIR, ActorClock, Crash, Effect, Faults, SimStore, World

VECTORS = 0.5
"""The share of histories whose deletes and upserts write vectors."""
SCHEMA = pa.schema([("id", pa.string()), ("k", pa.int64())])


@dataclass(frozen=True)
class Step:
    """One call of a verb: after a pause, with one number that decides everything it has to choose."""

    verb: str
    pause_ms: int
    pick: float


@dataclass
class Stage:
    """What the actors of one history share."""

    world: World
    options: dict[str, str]
    intents: list[Intent] = field(default_factory=list)
    partition_by: tuple[str, ...] = ()
    seen: list[Observation] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    followed: list[Followed] = field(default_factory=list)
    form: str = ""
    """How a list lies in the table, where the history is about lists."""
    transactions: list[Any] = field(default_factory=list)
    """What became of lists; see `lists.checker`."""
    busy: int = 0
    """Verbs under way; the operator who swaps a log in waits until there is none."""
    stopped: bool = False
    """Nobody begins anything while a log is being swapped in."""
    swaps: int = 0
    exchanged: set[str] = field(default_factory=set)
    """Files of checkpoints that hold something else than was written there."""
    used: set[str] = field(default_factory=set)


class Actor:
    """One process with a handle on the log; after a crash it begins anew with a fresh one."""

    def __init__(
        self,
        stage: Stage,
        name: str,
        steps: Sequence[Step],
        faults: Faults,
        *,
        skew_ms: int = 0,
        machine: str | None = None,
    ) -> None:
        self.stage = stage
        self.name = name
        self.steps = steps
        self.faults = faults
        self.skew_ms = skew_ms
        self.machine = machine
        self.lives = 0
        self.made = 0
        self.chance = random.Random(f"{stage.world.seed}:{name}")
        self.hides = random.Random(f"vectors:{stage.world.seed}").random() < VECTORS
        self.held: list[tuple[int, Any]] = []
        self.followed: int | None = None
        self.delivered: list[tuple[int, tuple[str, ...]]] = []
        self._open()

    @staticmethod
    def found_table(log: TransactionLog, stage: Stage) -> None:
        """Make the table of a history."""
        log.initialize(SCHEMA, stage.partition_by)

    @staticmethod
    def check_end(_stage: Stage) -> list[Violation]:
        """What else was broken, told from what the actors noted."""
        return []

    # Running

    def run(self) -> None:
        """Take every step; what a step raises is its outcome."""
        for step in self.steps:
            self.stage.world.wait(step.pause_ms)
            self._step(step)

    def _step(self, step: Step) -> None:
        if step.verb == "txn":
            self._txn_until_done(step)
        elif step.verb == "create":
            self._create_until_done()
        else:
            self.attempt(step.verb, getattr(self, f"do_{step.verb}"), step.pick)

    def attempt(self, verb: str, work: Callable[[Intent, float], None], pick: float) -> Intent:
        """Carry out one call and note what became of it."""
        stage, world = self.stage, self.stage.world
        while stage.stopped:
            world.wait(1000)
        intent = Intent(len(stage.intents), self.name, verb, world.now_ms, after_swap=stage.swaps > 0)
        stage.intents.append(intent)
        self.store.intent = intent
        world.note(self.name, f"-- {verb} #{intent.number}")
        stage.busy += 1
        try:
            work(intent, pick)
        except Crash:
            intent.outcome = CRASHED
            self._open()
        except Exception as error:
            intent.error = error
            fields = error.fields if isinstance(error, Error) else {}
            intent.outcome = UNKNOWN if fields.get("outcome") == "unknown" else FAILED
        finally:
            stage.busy -= 1
            intent.ended_ms = world.now_ms
        world.note(self.name, f"== {intent}")
        return intent

    def _open(self) -> None:
        self.lives += 1
        world = self.stage.world
        name = f"{self.name}-{self.lives}"
        self.store = SimStore(world, name, self.chance, self.faults, machine=self.machine)
        sleeps = random.Random(f"{world.seed}:{name}:sleeps")
        self.runtime = Runtime(clock=ActorClock(world, self.skew_ms, self.faults.freeze, sleeps))
        self.held.clear()
        self.log = TransactionLog.open(
            self.store.uri, self.stage.options, store=self.store, runtime=self.runtime
        )

    def _create_until_done(self) -> None:
        """Create the table, or find that another has done so."""

        def create(intent: Intent, _pick: float) -> None:
            self.found_table(self.log, self.stage)
            intent.outcome = ACKNOWLEDGED

        for _ in range(100):
            if self.attempt("create", create, 0.0).outcome == ACKNOWLEDGED:
                return
            self.stage.world.wait(1000)

    # Files

    def new_split(
        self, intent: Intent, rows: Sequence[str] | None = None, *, data_change: bool = True
    ) -> AddAction:
        """Write a split with some rows, or with rows of its own: several where deletes write vectors."""
        self.made += 1
        path = f"{self.name}-{self.made:03d}.split"
        if rows is None:
            name = f"{self.name}{self.made}"
            rows = [f"{name}.{number}" for number in range(3)] if self.hides else [name]
            intent.rows = (*intent.rows, *rows)
        content = json.dumps(list(rows)).encode()
        self.store.put(path, content)
        return AddAction(
            path=path,
            size=len(content),
            modification_time=self.runtime.clock.now_ms(),
            num_records=len(rows),
            data_change=data_change,
        )

    def rows_of(self, add: AddAction) -> list[str]:
        """The live rows of a split."""
        hidden = hidden_rows(add)
        return [row for number, row in enumerate(self.stored(add)) if number not in hidden]

    def stored(self, add: AddAction) -> list[str]:
        return json.loads(self.store.get(add.path))

    def done(self, intent: Intent, version: int | None = None) -> None:
        """The verb returned: what did it say?"""
        last = self.log.last_commit
        assert last is not None
        if last.written:
            intent.outcome, intent.returned = ACKNOWLEDGED, last.version if version is None else version
        else:
            intent.outcome = NOTHING

    def some(self, items: Sequence[Any], pick: float, most: int = 3) -> list[Any]:
        """A few of them, decided by one number."""
        chance = random.Random(pick)
        count = min(len(items), 1 + int(chance.random() * most))
        return chance.sample(list(items), count)

    # Verbs that write

    def do_append(self, intent: Intent, pick: float) -> None:
        intent.operation = "WRITE"
        adds = [self.new_split(intent) for _ in range(1 + int(pick * 2))]
        self.done(intent, self.log.add_files(adds))

    def _txn_until_done(self, step: Step) -> None:
        """An application that repeats its batch until it is told that it is in."""
        number = self.made
        for _ in range(4):
            intent = self.attempt("txn", lambda intent, _pick: self._write_batch(intent, number), step.pick)
            if intent.outcome in {ACKNOWLEDGED, NOTHING}:
                return
            self.stage.world.wait(1000)

    def _write_batch(self, intent: Intent, number: int) -> None:
        intent.operation = "WRITE"
        intent.txn = (self.name, number)
        adds = [self.new_split(intent)]
        self.done(intent, self.log.add_files(adds, txn=TxnAction(app_id=self.name, version=number)))

    def do_overwrite(self, intent: Intent, pick: float) -> None:
        intent.operation = "OVERWRITE"
        expected = self.log.snapshot(max_staleness_s=0).version if pick < 0.5 else None
        intent.version = expected
        adds = [self.new_split(intent)]
        self.done(intent, self.log.overwrite_files(adds, expected_version=expected))

    def do_remove(self, intent: Intent, pick: float) -> None:
        intent.operation = "REMOVE"
        live = [add.path for add in self.log.list_files(max_staleness_s=0)]
        intent.sources = tuple(self.some(live, pick, 2)) if live else ()
        self.done(intent, self.log.remove_files(intent.sources))

    def do_merge(self, intent: Intent, pick: float) -> None:
        """Put splits together, or write those with deleted rows anew."""
        planned_on = self.log.snapshot(max_staleness_s=0)
        if self.hides and int(pick * 1000) % 3 == 0:
            self._rewrite(intent, planned_on, [[add] for add in plan_purge_rows(planned_on)], PURGE_ROWS)
            return
        live = list(planned_on.adds())
        groups = [self.some(live, pick, 3)] if len(live) >= 2 else []
        self._rewrite(intent, planned_on, groups, "MERGE SPLITS")

    def _rewrite(
        self, intent: Intent, planned_on: Snapshot, groups: Sequence[Sequence[AddAction]], operation: str
    ) -> None:
        intent.operation = operation
        if not groups:
            intent.outcome = NOTHING
            return
        pieces = []
        for sources in groups:
            rows = [row for add in sources for row in self.rows_of(add)]
            written = self.new_split(intent, rows, data_change=False)
            pieces.append(RewriteOutcome(tuple(sources), (written,), len(rows), len(rows)))
        intent.sources = tuple(add.path for sources in groups for add in sources)
        self.done(intent, commit_merge(self.log, pieces, planned_on, operation))

    def do_delete(self, intent: Intent, pick: float) -> None:
        """Every other row, by the digit its name ends in, taken out of the files that hold them.

        In half of the histories a file that keeps some of its rows gets a deletion vector.
        """
        intent.operation = "DELETE"
        half = int(pick * 2)
        intent.matches = lambda row: int(row[-1]) % 2 == half
        removed, adds, marked = [], [], []
        planned_on = self.log.snapshot(max_staleness_s=0)
        for add in planned_on.adds():
            rows = self.rows_of(add)
            kept = [row for row in rows if not intent.matches(row)]
            if len(kept) == len(rows):
                continue
            if kept and self.hides:
                marked.append(self.deleted_from(add, intent.matches))
                continue
            removed.append(add)
            if kept:
                adds.append(self.new_split(intent, kept))
        if removed or marked:
            self._replace(intent, planned_on, removed, adds, marked)
        else:
            intent.outcome = NOTHING

    def deleted_from(self, add: AddAction, matches: Callable[[str], bool]) -> DeletedRows:
        """The rows of a split that match, by their numbers."""
        hidden = hidden_rows(add)
        live = [(number, row) for number, row in enumerate(self.stored(add)) if number not in hidden]
        gone = [number for number, row in live if matches(row)]
        return DeletedRows(add, np.array(gone, np.int64), len(live))

    def _replace(
        self,
        intent: Intent,
        planned_on: Snapshot,
        removed: Sequence[AddAction],
        adds: Sequence[AddAction],
        marked: Sequence[DeletedRows],
    ) -> None:
        """Commit as DELETE, UPDATE and MERGE do: files leave, files come, and rows leave others by vectors."""
        assert intent.operation is not None
        intent.marked = {item.source.path: frozenset(item.rows.tolist()) for item in marked}
        vectors = NamedRows(self, intent.operation, marked) if marked else None
        inserts = intent.operation == "MERGE"
        plan = replace_plan(planned_on, intent.operation, removed, adds, inserts=inserts, vectors=vectors)
        self.done(intent, commit_or_discard(self.log, plan, adds, vectors).version)

    def do_upsert(self, intent: Intent, pick: float) -> None:
        """The row of one of two keys: replaced where it is found, inserted where it is not."""
        intent.operation = "MERGE"
        key = f"key{int(pick * 2)}."
        intent.matches = lambda row: row.startswith(key)
        planned_on = self.log.snapshot(max_staleness_s=0)
        removed, rows, marked = [], [], []
        for add in planned_on.adds():
            found = self.rows_of(add)
            left = [row for row in found if not intent.matches(row)]
            if left and len(left) < len(found) and self.hides:
                marked.append(self.deleted_from(add, intent.matches))
            elif len(left) < len(found):
                removed.append(add)
                rows += left
        intent.rows = (f"{key}{self.name}.{self.made}",)
        adds = [self.new_split(intent, [*rows, *intent.rows])]
        self._replace(intent, planned_on, removed, adds, marked)

    def do_restore(self, intent: Intent, pick: float) -> None:
        intent.operation = "RESTORE"
        versions = self.log.versions()
        intent.version = versions[int(pick * len(versions))]
        result = run_restore(self.log, intent.version)
        if result.status == "SUCCESS":
            self.done(intent)
        else:
            intent.outcome = NOTHING

    def do_properties(self, intent: Intent, pick: float) -> None:
        intent.operation = "SET PROPERTIES"
        intent.properties = self.some_properties(pick)
        self.done(intent, self.log.update_properties(intent.properties))

    def some_properties(self, pick: float) -> dict[str, str | None]:
        """A value for one of three names, or none."""
        return {f"note.{int(pick * 3)}": None if int(pick * 1000) % 5 == 0 else f"{self.name} {pick}"}

    def do_skip(self, intent: Intent, pick: float) -> None:
        intent.operation = "SKIP"
        self.done(intent, self.log.record_skipped_file(f"odd-{int(pick * 3)}", "odd", "merge"))

    # Upkeep

    def do_checkpoint(self, intent: Intent, pick: float) -> None:
        self.log.checkpoint()
        intent.outcome = ACKNOWLEDGED

    def do_cleanup(self, intent: Intent, pick: float) -> None:
        self.log.cleanup()
        intent.outcome = ACKNOWLEDGED

    def do_truncate(self, intent: Intent, pick: float) -> None:
        run_truncate(self.log)
        intent.outcome = ACKNOWLEDGED

    def do_purge(self, intent: Intent, pick: float) -> None:
        hours = (None, 0.0, 1.0)[int(pick * 3)]
        run_purge(self.log, PurgeRequest(older_than_hours=24, log_retention_hours=hours))
        intent.outcome = ACKNOWLEDGED

    def do_repair(self, intent: Intent, pick: float) -> None:
        """Write a repaired log beside the old one, and put it in its place while nobody is at work."""
        from simulation.repairing import repair

        stage, world = self.stage, self.stage.world
        stage.stopped = True
        try:
            while stage.busy > 1 or world.pending_writes:
                world.wait(1000)
            stage.swaps += 1
            target = f"_repaired_{stage.swaps}"
            if repair(self, target):
                swap(world, target, intent)
                intent.outcome = ACKNOWLEDGED
            else:
                intent.outcome = NOTHING
        finally:
            stage.stopped = False

    def do_swap(self, intent: Intent, pick: float) -> None:
        """REPAIR ... SWAP beside everybody else; an error that says what to run is followed some times."""
        from simulation.repairing import swap_in_place

        for left in range(3, -1, -1):
            try:
                done = swap_in_place(self.store, self.stage.options, self.runtime)
            except Error as error:
                if not left or "command" not in error.fields:
                    raise
                self.stage.world.wait(1000)
            else:
                intent.outcome = ACKNOWLEDGED if done else NOTHING
                return

    def do_exchange(self, intent: Intent, pick: float) -> None:
        """Something outside puts a file of a checkpoint in the place of another: a main file, or a part."""
        world = self.stage.world
        paths = sorted(path for path in world.objects if ".checkpoint." in path)
        intent.outcome = NOTHING
        if len(paths) >= 2:
            source, target = random.Random(pick).sample(paths, 2)
            world.replace(target, world.objects[source].data)
            self.stage.exchanged.add(target)
            world.note(self.name, f"puts {source} in the place of {target}")

    # Readers

    def _saw(self, intent: Intent, snapshot: Any, *, newest: bool, staleness_ms: int = 0) -> None:
        adds = snapshot.adds()
        intent.outcome, intent.ended_ms = ACKNOWLEDGED, self.stage.world.now_ms
        self.stage.seen.append(
            Observation(
                intent, snapshot.version, paths_of(adds), newest, staleness_ms, hidden=hidden_in(adds)
            )
        )

    def do_read(self, intent: Intent, pick: float) -> None:
        self._saw(intent, self.log.snapshot(max_staleness_s=0), newest=True)

    def do_look(self, intent: Intent, pick: float) -> None:
        """Believe for five seconds that nothing is newer."""
        adds = self.log.list_files()
        intent.outcome, intent.ended_ms = ACKNOWLEDGED, self.stage.world.now_ms
        self.stage.seen.append(
            Observation(intent, None, paths_of(adds), newest=True, staleness_ms=5000, hidden=hidden_in(adds))
        )

    def do_hold(self, intent: Intent, pick: float) -> None:
        """Open a version to read it now and later."""
        self.held.append((intent.number, self.log.snapshot()))
        intent.outcome = ACKNOWLEDGED

    def do_reread(self, intent: Intent, pick: float) -> None:
        """Use a snapshot that was opened long ago: its answers never change."""
        if self.held:
            _, snapshot = self.held[int(pick * len(self.held))]
            intent.version = snapshot.version
            self._saw(intent, snapshot, newest=False, staleness_ms=1 << 60)
        else:
            intent.outcome = NOTHING

    def do_travel(self, intent: Intent, pick: float) -> None:
        versions = self.log.versions()
        intent.version = versions[int(pick * len(versions))]
        self._saw(intent, self.log.snapshot(intent.version), newest=False)

    def do_follow(self, intent: Intent, pick: float) -> None:
        """A stream: the files that each version adds, in order, each once."""
        latest = self.log.snapshot(max_staleness_s=0).version
        if self.followed is None:
            self.followed = latest + 1
        while self.followed <= latest:
            actions = self.log.read_version(self.followed)
            assert any(isinstance(action, CommitInfo) for action in actions) or self.followed == 0
            changes = any(isinstance(action, RemoveAction) and action.data_change for action in actions)
            files = tuple(
                action.path for action in actions if isinstance(action, AddAction) and action.data_change
            )
            self.delivered.append((self.followed, () if changes else files))
            self.followed += 1
        intent.outcome = ACKNOWLEDGED


class NamedRows(VectorCommit):
    """The production's commit of vectors, over splits that hold no more than the names of their rows."""

    def __init__(self, actor: Actor, operation: str, deleted: Sequence[DeletedRows]) -> None:
        super().__init__(actor.log, operation, deleted)
        self._actor = actor

    def _stored(self, add: AddAction) -> int:
        return len(self._actor.stored(add))

    def _deleted_before(self, add: AddAction) -> np.ndarray | None:
        return np.array(sorted(hidden_rows(add)), np.int64) if add.deletion_vector else None


def paths_of(adds: Iterable[AddAction]) -> frozenset[str]:
    """The files that a reader was given."""
    return frozenset(add.path for add in adds)


def hidden_rows(add: AddAction) -> frozenset[int]:
    """The numbers of the rows that are deleted in a file."""
    return hidden_by({"deletionVector": add.deletion_vector})


def hidden_in(adds: Iterable[AddAction]) -> dict[str, frozenset[int]]:
    """The numbers of the deleted rows that a reader was given, by file."""
    return {add.path: rows for add in adds if (rows := hidden_rows(add))}


def swap(world: World, target: str, intent: Intent) -> None:
    """What the operator does: the repaired log takes the place of the old one, at once."""
    for path in [path for path in world.objects if path.startswith(f"{LOG_DIR}/")]:
        del world.objects[path]
    for path in [path for path in world.objects if path.startswith(f"{target}/")]:
        name = LOG_DIR + path[len(target) :]
        moved = world.objects.pop(path)
        world.objects[name] = replace(moved, meta=replace(moved.meta, path=name))
    world.journal.append(Effect(world.now_ms, "swap", target, None, intent))
    world.note("operator", f"swaps {target} in")
