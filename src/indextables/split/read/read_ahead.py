"""Working in threads: the next pieces while the caller uses the one before, or several pieces at once.

The threads stay for the life of the process: starting them, and memory that only
they have touched, would be paid for by every search.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from types import TracebackType
from typing import Generic, Self, TypeVar

from indextables.runtime import default_parallelism

A = TypeVar("A")
T = TypeVar("T")

DEPTH = 2

_pools: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()


def _pool() -> ThreadPoolExecutor:
    """The threads of this process; a forked child has none of its parent's."""
    with _lock:
        found = _pools.get(os.getpid())
        if found is None:
            _pools.clear()
            threads = DEPTH * default_parallelism()
            found = _pools[os.getpid()] = ThreadPoolExecutor(threads, thread_name_prefix="indextables-ahead")
        return found


class Ahead(Generic[A, T]):
    """Results of work on items, in order; work begins on entering and stays at most `DEPTH` ahead.

    The work must not wait for other work of this kind.
    """

    def __init__(self, work: Callable[[A], T], items: Sequence[A]) -> None:
        self._work = work
        self._items = deque(items)
        self._running: deque[tuple[A, Future[T]]] = deque()
        self._pool = _pool()

    def __enter__(self) -> Self:
        for _ in range(DEPTH):
            self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._items.clear()
        wait([future for _, future in self._running if not future.cancel()])

    def __iter__(self) -> Iterator[tuple[A, T]]:
        """Each item with its result."""
        while self._running:
            item, future = self._running.popleft()
            result = future.result()
            self._start()
            yield item, result

    def _start(self) -> None:
        if self._items:
            item = self._items.popleft()
            self._running.append((item, self._pool.submit(copy_context().run, self._work, item)))


def at_once(work: Callable[[A], T], items: Sequence[A]) -> list[T]:
    """Results of work on items, in order; the first is worked on here, the others in threads."""
    pool = _pool()
    others = [pool.submit(copy_context().run, work, item) for item in items[1:]]
    try:
        return [work(items[0]), *(other.result() for other in others)]
    finally:
        wait(others)
