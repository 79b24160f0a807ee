"""Reading ahead: the next pieces of work run in threads while the caller uses the one before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Self, TypeVar

A = TypeVar("A")
T = TypeVar("T")

DEPTH = 2


class Ahead(Generic[A, T]):
    """Results of work on items, in order; work begins on entering and stays at most `DEPTH` ahead."""

    def __init__(self, work: Callable[[A], T], items: Sequence[A]) -> None:
        self._work = work
        self._items = deque(items)
        self._running: deque[tuple[A, Future[T]]] = deque()
        self._pool = ThreadPoolExecutor(DEPTH, thread_name_prefix="indextables-ahead")

    def __enter__(self) -> Self:
        for _ in range(DEPTH):
            self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

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
            self._running.append((item, self._pool.submit(self._work, item)))
