"""A simulated world: one store, one time line, and actors that are stepped one store operation at a time.

Every store operation of an actor is an event at a moment of simulated time. The
actor is a greenlet: it asks for the operation, waits for its moment, has it
carried out and goes on computing in no time at all. How long an operation
takes, and whether it fails, comes from the actor's own stream of random numbers,
so that leaving out one actor changes the others only through what they would
have done to each other.

Nothing here reads a real clock, and nothing runs in another thread: the same
seed gives the same history, byte for byte.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import greenlet

from indextables.errors import NotFoundError, StorageError
from indextables.storage.objects import ObjectMeta, StoreSpec, range_end, replaced, short_read

START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
LOG_DIR = "_transaction_log"


class Crash(BaseException):
    """The process died here. Not an Exception, so nothing that handles errors catches it."""


@dataclass(frozen=True)
class Faults:
    """How often an operation goes wrong, by kind; each is a probability for one operation."""

    error: float = 0.0
    """It does not happen, and raises."""
    lost_reply: float = 0.0
    """It happens, and raises all the same."""
    late: float = 0.0
    """A write raises now and happens later."""
    echo: float = 0.0
    """The store repeats a put whose reply got lost, finds its own object and says that one was there."""
    crash: float = 0.0
    """The process dies before or after it."""
    pause: float = 0.0
    """It takes minutes or hours."""
    longest: float = 7.3
    """A pause takes up to ten to the power of this many milliseconds."""
    pause_in: tuple[str, ...] = ()
    """The operations that pause; none named is all."""

    after_put: float = 0.0
    """A listing right after a put-if-absent of the same process does not happen, and raises."""
    freeze: float = 0.0
    """The monotonic clock stands still between two looks at it, as while a machine sleeps."""

    on_puts: float = 6.0
    """A put-if-absent fails so many times more often than anything else: commits are the point."""


@dataclass(frozen=True)
class Effect:
    """Something that happened to the store."""

    at_ms: int
    kind: str
    path: str
    data: bytes | None
    intent: Any
    replaced: bool = False


@dataclass
class Stored:
    """One object."""

    data: bytes
    meta: ObjectMeta


class World:
    """Objects, time, what happened, and the actors that are waiting for their moment."""

    def __init__(self, seed: int | str, *, keep_trace: bool = False) -> None:
        self.seed = seed
        self.now_ms = START_MS
        self.objects: dict[str, Stored] = {}
        self.journal: list[Effect] = []
        self.trace: list[str] = []
        self.keep_trace = keep_trace
        self.operations = 0
        self.faults: dict[str, int] = {}
        self._digest = hashlib.sha256()
        self._queue: list[tuple[int, int, Any]] = []
        self._order = itertools.count()
        self._etags = itertools.count(1)
        self._hub = greenlet.getcurrent()
        self.pending_writes = 0

    @property
    def digest(self) -> str:
        """What two runs of one seed must have in common."""
        return self._digest.hexdigest()

    def note(self, who: str, what: str, data: bytes | None = None) -> None:
        """Write a line of the trace."""
        line = f"{self.now_ms - START_MS:>12} {who:<10} {what}"
        self._digest.update(line.encode())
        if data is not None:
            self._digest.update(data)
        if self.keep_trace:
            self.trace.append(line)

    def at(self, when_ms: int, what: Callable[[], None] | greenlet.greenlet) -> None:
        """Have something happen at a moment."""
        heapq.heappush(self._queue, (when_ms, next(self._order), what))

    def start(self, body: Callable[[], None], *, after_ms: int = 0) -> greenlet.greenlet:
        """Begin an actor."""
        made = greenlet.greenlet(body, self._hub)
        self.at(self.now_ms + after_ms, made)
        return made

    def wait(self, ms: float) -> None:
        """Let an actor's time pass while the others go on."""
        self.at(self.now_ms + max(0, round(ms)), greenlet.getcurrent())
        self._hub.switch()

    def run(self) -> None:
        """Let everything happen that is going to."""
        while self._queue:
            when_ms, _, what = heapq.heappop(self._queue)
            self.now_ms = max(self.now_ms, when_ms)
            if isinstance(what, greenlet.greenlet):
                what.switch()
            else:
                what()

    def settle(self) -> None:
        """Let every write that is still on its way arrive."""
        waiting, self._queue = sorted(self._queue, key=lambda item: item[:2]), []
        for when_ms, order, what in waiting:
            if isinstance(what, greenlet.greenlet):
                heapq.heappush(self._queue, (when_ms, order, what))
            else:
                what()

    # What happens to objects

    def apply(self, kind: str, path: str, data: bytes | None, intent: Any) -> bool:
        """Change the store; whether the change was made."""
        here = self.objects.get(path)
        if kind == "put_if_absent" and here is not None:
            return False
        if kind == "delete":
            if here is None:
                return True
            del self.objects[path]
        else:
            assert data is not None
            meta = ObjectMeta(path, len(data), self.now_ms, f"e{next(self._etags)}")
            self.objects[path] = Stored(data, meta)
        self.journal.append(Effect(self.now_ms, kind, path, data, intent, here is not None))
        return True

    def replace(self, path: str, data: bytes) -> None:
        """Put other bytes in the place of an object: damage, which is no part of what was written."""
        meta = ObjectMeta(path, len(data), self.now_ms, f"e{next(self._etags)}")
        self.objects[path] = Stored(data, meta)

    def listing(self, prefix: str) -> dict[str, ObjectMeta]:
        """Every object below a directory, by path."""
        below = f"{prefix}/" if prefix else ""
        return {path: entry.meta for path, entry in self.objects.items() if path.startswith(below)}


@dataclass
class ActorClock:
    """The clock of one machine: it may be wrong by a fixed amount, and sleeping lets others go on."""

    world: World
    skew_ms: int = 0
    freeze: float = 0.0
    chance: random.Random | None = None
    _seen_ms: int = START_MS
    _asleep_ms: int = 0

    def now_ms(self) -> int:
        return self.world.now_ms + self.skew_ms

    def monotonic_s(self) -> float:
        now_ms = self.world.now_ms
        if self.chance is not None and self.chance.random() < self.freeze:
            self._asleep_ms += now_ms - self._seen_ms
        self._seen_ms = now_ms
        return (now_ms - self._asleep_ms - START_MS) / 1000

    def sleep_s(self, seconds: float) -> None:
        self.world.wait(seconds * 1000)


@dataclass
class SimStore:
    """The store as one process sees it: each operation waits for its moment and may go wrong.

    After a crash every further operation is a crash as well: a dead process does nothing. Each process
    has an address of its own for the same objects, so that news inside this process stays where it
    would stay.
    """

    world: World
    who: str
    chance: random.Random
    faults: Faults
    slowest: float = 2.5
    """Operations take up to ten to the power of this many milliseconds."""
    dead: bool = False
    intent: Any = None
    quiet: bool = False
    """No waiting and no faults: for looking at the end of a history."""
    machine: str | None = None
    """Who has the same machine hears of changes at once; None is a machine of its own."""
    just_put: bool = False
    """Whether the last operation was a put-if-absent."""

    @property
    def uri(self) -> str:
        return f"memory://{self.machine or self.who}/table"

    # Reads

    def get(self, path: str, *, etag: str | None = None) -> bytes:
        return self._do("get", path, lambda: self._entry(path, etag).data)

    def get_range(self, path: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        def cut() -> bytes:
            end = range_end(path, start, length, uri=self.uri)
            data = self._entry(path, etag).data
            if end > len(data):
                raise short_read(path, start, length, max(0, len(data) - start), uri=self.uri)
            return data[start:end]

        return self._do("get_range", path, cut)

    def head(self, path: str) -> ObjectMeta:
        return self._do("head", path, lambda: self._entry(path).meta)

    def list(self, prefix: str = "", start_after: str | None = None) -> Iterator[ObjectMeta]:
        return iter(self._listed("list", prefix, start_after))

    def list_level(self, prefix: str = "", start_after: str | None = None) -> Any:
        cut = len(prefix) + 1 if prefix else 0
        return [
            meta for meta in self._listed("list_level", prefix, start_after) if "/" not in meta.path[cut:]
        ]

    # Writes

    def put(self, path: str, data: bytes) -> None:
        self._write("put", path, bytes(data))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._write("put_if_absent", path, bytes(data))

    def put_file(self, path: str, local_path: str) -> None:
        self._write("put", path, Path(local_path).read_bytes())

    def delete(self, path: str) -> None:
        self._write("delete", path, None)

    # Elsewhere

    def local_path(self, path: str) -> str | None:
        return None

    def spark_uri(self, path: str) -> str:
        return f"{self.uri}/{path}" if path else self.uri

    def spec(self) -> StoreSpec:
        return StoreSpec(self.uri)

    # How an operation goes

    def _entry(self, path: str, etag: str | None = None) -> Stored:
        entry = self.world.objects.get(path)
        if entry is None:
            raise NotFoundError(f"There is no {self.uri}/{path}.", uri=self.uri, path=path)
        if etag not in (None, entry.meta.etag):
            raise replaced(path, uri=self.uri)
        return entry

    def _listed(self, operation: str, prefix: str, start_after: str | None) -> Any:
        """A listing takes time: what is made or removed meanwhile may be in it or not."""
        before = self.world.listing(prefix)

        def merge() -> Any:
            after = self.world.listing(prefix)
            found = {}
            for path in sorted({*before, *after}):
                both = path in before and path in after
                if both or self.chance.random() < 0.5:
                    found[path] = after.get(path) or before[path]
            return [meta for path, meta in found.items() if start_after is None or path > start_after]

        return self._do(operation, prefix, merge)

    def _do(self, operation: str, path: str, call: Callable[[], Any]) -> Any:
        fault = self._step(operation, path)
        if fault == "error":
            raise self._failure(operation, path)
        if fault == "lost_reply":
            call()
            raise self._failure(operation, path)
        return call()

    def _write(self, operation: str, path: str, data: bytes | None) -> bool:
        world, intent = self.world, self.intent
        fault = self._step(operation, path, data)
        if fault == "error":
            raise self._failure(operation, path)
        if fault == "late":
            self._later(operation, path, data)
            raise self._failure(operation, path)
        done = world.apply(operation, path, data, intent)
        if fault == "lost_reply":
            raise self._failure(operation, path)
        if fault == "crash_after":
            self._die(operation, path)
        return done and fault != "echo"

    def _later(self, operation: str, path: str, data: bytes | None) -> None:
        world, intent = self.world, self.intent
        delay_ms = round(10 ** self.chance.uniform(0, 5))
        world.pending_writes += 1

        def arrive() -> None:
            world.pending_writes -= 1
            done = world.apply(operation, path, data, intent)
            world.note(self.who, f"late {operation} {path} {'landed' if done else 'found another'}")

        world.at(world.now_ms + delay_ms, arrive)

    def _step(self, operation: str, path: str, data: bytes | None = None) -> str | None:
        if self.dead:
            raise Crash(f"{operation} {path} after the crash")
        if self.quiet:
            return None
        rates, chance = self.faults, self.chance
        takes_ms = 10 ** chance.uniform(0, self.slowest)
        if chance.random() < rates.pause and (not rates.pause_in or operation in rates.pause_in):
            takes_ms = 10 ** chance.uniform(4.5, rates.longest)
            self._count("pause")
            if self.intent is not None:
                self.intent.met("pause", operation, path)
        fault = self._fault(operation)
        if self.just_put and operation == "list_level" and chance.random() < rates.after_put:
            fault = fault or "error"
        self.just_put = bool(rates.after_put) and operation == "put_if_absent"
        self.world.wait(takes_ms)
        self.world.operations += 1
        self.world.note(self.who, f"{operation} {path}{f' [{fault}]' if fault else ''}", data)
        if fault is not None:
            self._count(fault)
            if self.intent is not None:
                self.intent.met(fault, operation, path)
        if fault == "crash":
            self._die(operation, path)
        return fault

    def _fault(self, operation: str) -> str | None:
        rates = self.faults
        factor = rates.on_puts if operation == "put_if_absent" else 1.0
        number = self.chance.random()
        for kind, rate in (
            ("error", rates.error),
            ("lost_reply", rates.lost_reply),
            ("late", rates.late),
            ("echo", rates.echo),
            ("crash", rates.crash),
            ("crash_after", rates.crash),
        ):
            number -= rate * factor
            if number < 0:
                return kind if self._applies(kind, operation) else None
        return None

    @staticmethod
    def _applies(kind: str, operation: str) -> bool:
        if kind == "echo":
            return operation == "put_if_absent"
        if kind in {"late", "crash_after"}:
            return operation in {"put", "put_if_absent", "delete"}
        return True

    def _count(self, kind: str) -> None:
        self.world.faults[kind] = self.world.faults.get(kind, 0) + 1

    def _die(self, operation: str, path: str) -> None:
        self.dead = True
        raise Crash(f"{operation} {path}")

    def _failure(self, operation: str, path: str) -> StorageError:
        return StorageError(f"simulated: no answer to {operation} {path}", uri=self.uri, path=path)
