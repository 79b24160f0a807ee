"""Results of several pieces of work at once, in order and in bounded memory.

Each piece yields its results into a short queue of its own; the caller takes
them queue by queue. No piece runs further ahead than its queue, and all of them
stop when the caller does.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

QUEUED = 2
_POLL_S = 0.1
_END = object()


class _StoppedError(Exception):
    """The caller wants no more results."""


def in_order(pieces: Sequence[Callable[[], Iterator[T]]], width: int) -> Generator[T, None, None]:
    """The results of all pieces, piece by piece, with up to `width` of them running."""
    if len(pieces) <= 1 or width <= 1:
        for piece in pieces:
            yield from piece()
        return
    stop = threading.Event()
    queues: list[queue.Queue[Any]] = [queue.Queue(QUEUED) for _ in pieces]
    pool = ThreadPoolExecutor(min(width, len(pieces)), thread_name_prefix="indextables")
    try:
        running = [
            pool.submit(_run, piece, results, stop) for piece, results in zip(pieces, queues, strict=True)
        ]
        for future, results in zip(running, queues, strict=True):
            yield from _drained(results, future)
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _run(piece: Callable[[], Iterator[Any]], results: queue.Queue[Any], stop: threading.Event) -> None:
    try:
        for item in piece():
            _put(results, item, stop)
    except _StoppedError:
        return
    finally:
        with contextlib.suppress(_StoppedError):
            _put(results, _END, stop)


def _put(results: queue.Queue[Any], item: Any, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            results.put(item, timeout=_POLL_S)
        except queue.Full:
            continue
        return
    raise _StoppedError


def _drained(results: queue.Queue[Any], future: Future[None]) -> Iterator[Any]:
    while (item := results.get()) is not _END:
        yield item
    future.result()
