"""Thread helpers: work on the next items while the caller uses the current one, or on several at once.

The threads live as long as the process: starting them and warming their memory would
otherwise be paid by every search.
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
    """The thread pool of this process; a forked child makes its own."""
    with _lock:
        pool = _pools.get(os.getpid())
        if pool is None:
            _pools.clear()
            threads = DEPTH * default_parallelism()
            pool = _pools[os.getpid()] = ThreadPoolExecutor(threads, thread_name_prefix="indextables-ahead")
        return pool


class Ahead(Generic[A, T]):
    """Results of work on items, in order; starts on entering and stays at most `DEPTH` items ahead.

    A single item is left to the caller's thread. The work must not wait for other work in the same pool.
    """

    def __init__(self, work: Callable[[A], T], items: Sequence[A]) -> None:
        self._work = work
        self._items = deque(items)
        self._running: deque[tuple[A, Future[T]]] = deque()
        self._pool = _pool()

    def __enter__(self) -> Self:
        if len(self._items) > 1:
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
        if len(self._items) == 1 and not self._running:
            item = self._items.popleft()
            yield item, self._work(item)
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
    """Results of work on items, in order; the first is done in this thread, the others in the pool."""
    pool = _pool()
    others = [pool.submit(copy_context().run, work, item) for item in items[1:]]
    try:
        return [work(items[0]), *(other.result() for other in others)]
    finally:
        wait(others)
