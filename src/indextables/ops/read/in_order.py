"""Runs several generators concurrently and returns their results in order, in bounded memory.

Each generator puts its results into a short queue of its own; the caller reads queue
after queue. None runs further ahead than its queue, and all stop when the caller does.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import chain, islice
from typing import Any, TypeVar

from indextables.log.snapshot import Snapshot
from indextables.model.actions import AddAction
from indextables.runtime import check_cancelled, default_parallelism
from indextables.split.layout import SplitRef

S = TypeVar("S", AddAction, SplitRef)
T = TypeVar("T")

QUEUED = 2
REMOTE_AT_ONCE = 16
_AHEAD = 2
_POLL_S = 0.1
_END = object()

UNIT_BYTES = 1 << 20
UNIT_SPLITS = 32
"""At most so many consecutive splits, with so many bytes together, are one unit of work.

Handing each small split to a thread would cost more than searching it."""


class _StoppedError(Exception):
    """The caller wants no more results."""


def width_of(snapshot: Snapshot) -> int:
    """How many splits are searched at once; more on an object store, where a search mostly waits."""
    return default_parallelism() if _is_local(snapshot) else REMOTE_AT_ONCE


def _is_local(snapshot: Snapshot) -> bool:
    return snapshot.store.local_path("") is not None


def small_together(snapshot: Snapshot, splits: Iterable[S]) -> Iterator[list[S]]:
    """The splits as units of work, in order: large ones alone, small ones that follow each other together.

    On an object store each is alone: there the threads wait, and more of them wait for less time.
    """
    unit: list[S] = []
    size, most = 0, UNIT_SPLITS if _is_local(snapshot) else 1
    for split in splits:
        # A split of unknown size may be large.
        more = UNIT_BYTES if split.size is None else split.size
        if unit and (size + more > UNIT_BYTES or len(unit) == most):
            yield unit
            unit, size = [], 0
        unit.append(split)
        size += more
    if unit:
        yield unit


def in_order(pieces: Iterable[Callable[[], Iterator[T]]], width: int) -> Generator[T, None, None]:
    """The results of all generators, one generator after the other, with up to `width` running.

    Generators are taken as they are needed, so there may be any number of them.
    """
    source = iter(pieces)
    first = list(islice(source, 2))
    if len(first) <= 1 or width <= 1:
        for piece in chain(first, source):
            for item in piece():
                check_cancelled()
                yield item
        return
    stop = threading.Event()
    pool = ThreadPoolExecutor(width, thread_name_prefix="indextables")
    waiting: deque[tuple[queue.Queue[Any], Future[None]]] = deque()
    rest = chain(first, source)
    try:
        while True:
            for piece in islice(rest, _AHEAD * width - len(waiting)):
                results: queue.Queue[Any] = queue.Queue(QUEUED)
                waiting.append((results, pool.submit(copy_context().run, _run, piece, results, stop)))
            if not waiting:
                return
            yield from _drained(*waiting.popleft())
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
    while (item := _taken(results)) is not _END:
        yield item
    future.result()


def _taken(results: queue.Queue[Any]) -> Any:
    """The next result; waiting for it ends early when the caller is cancelled."""
    while True:
        check_cancelled()
        try:
            return results.get(timeout=_POLL_S)
        except queue.Empty:
            continue
