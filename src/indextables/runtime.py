"""What the code below Spark needs from the place it runs in, as one value.

A `Runtime` holds a clock, a way to run work in parallel, the replay engines
that exist beyond the local ones, a way to hand a table to the caller, the
names that stand for tables, and whom to tell about commits. On one machine that is `LOCAL`; a Spark session
provides another. Everything below `spark/` takes a Runtime and never names Spark.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import field
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, runtime_checkable

from indextables.errors import CancelledError
from indextables.records import dataclass

T = TypeVar("T")
R = TypeVar("R")

_given_up: ContextVar[threading.Event | None] = ContextVar("given_up", default=None)


@runtime_checkable
class Clock(Protocol):
    """Time, as a parameter."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""
        ...

    def monotonic_s(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def sleep_s(self, seconds: float) -> None:
        """Let the given time pass."""
        ...


@runtime_checkable
class Workers(Protocol):
    """Somewhere to run many independent pieces of work."""

    name: str

    def map(
        self, function: Callable[[T], R], items: Iterable[T], *, parallelism: int | None = None
    ) -> Iterator[R]:
        """Apply a picklable function to every item; results come back in order."""
        ...


@runtime_checkable
class Frames(Protocol):
    """What an Arrow table becomes before the caller sees it."""

    def from_arrow(self, table: Any) -> Any:
        """The caller's kind of table with the same rows."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Seconds on a clock that never goes back."""
        return time.monotonic()

    def sleep_s(self, seconds: float) -> None:
        """Let the given time pass."""
        time.sleep(seconds)


class ThreadWorkers:
    """Threads of this process; the work itself releases the interpreter lock."""

    name = "threads"

    def map(
        self, function: Callable[[T], R], items: Iterable[T], *, parallelism: int | None = None
    ) -> Iterator[R]:
        """Apply a function to every item; the first failure ends the rest that has not begun."""
        work, width = list(items), parallelism or default_parallelism()
        return in_threads(function, work, width, ahead=len(work) if width > 1 else 0)


def in_threads(
    function: Callable[[T], R], items: Iterable[T], threads: int, *, ahead: int | None = None
) -> Iterator[R]:
    """Apply a function to every item in threads; results come back in order.

    Before a result is taken, at most `ahead` of those after it have been begun, by default one per
    thread: that bounds the memory. When the caller stops, or at the first failure, nothing more begins.
    One item, or one thread without anything ahead, is worked on right here. Threads work in the context
    of the caller, so that giving up reaches them.
    """
    source = iter(items)
    most = threads if ahead is None else ahead
    first = list(islice(source, 2))
    if len(first) < 2 or most < 1:  # noqa: PLR2004 - nothing to do at the same time
        yield from map(function, chain(first, source))
        return
    pool = ThreadPoolExecutor(max(1, min(threads, most + 1)), thread_name_prefix="indextables")
    try:
        waiting = deque(pool.submit(copy_context().run, function, item) for item in first)
        while waiting:
            waiting.extend(
                pool.submit(copy_context().run, function, item)
                for item in islice(source, most + 1 - len(waiting))
            )
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def beside(work: Callable[[], R], other: Callable[[], object]) -> R:
    """What `work` returns, while `other` is done at the same time."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="indextables")
    try:
        done = pool.submit(copy_context().run, other)
        result = work()
        done.result()
        return result
    finally:
        pool.shutdown(wait=True)


class ArrowFrames:
    """Arrow tables stay Arrow tables."""

    def from_arrow(self, table: Any) -> Any:
        """Return the table itself."""
        return table


def default_parallelism() -> int:
    """Threads worth starting here: one per core the process may use, at least two for waiting on I/O."""
    return max(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2)


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the code below a table handle is given: clock, workers, engines and names."""

    clock: Clock = field(default_factory=SystemClock)
    workers: Workers = field(default_factory=ThreadWorkers)
    engines: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    frames: Frames = field(default_factory=ArrowFrames)
    address_of: Callable[[tuple[str, ...]], str | None] | None = None
    """The path of the table that a name stands for, if it does; None where there are no names at all."""
    committed: Callable[[str], None] | None = None
    """Told the address of a table, as Hadoop spells it, after its rows changed; must not raise."""


LOCAL = Runtime()


@contextmanager
def cancellable(stop: threading.Event) -> Iterator[None]:
    """Let the reading inside end with CancelledError soon after the event is set by another thread."""
    before = _given_up.set(stop)
    try:
        yield
    finally:
        _given_up.reset(before)


def check_cancelled() -> None:
    """Raise CancelledError when whoever asked has given up."""
    stop = _given_up.get()
    if stop is not None and stop.is_set():
        raise CancelledError("nobody waits for the answer any more")
