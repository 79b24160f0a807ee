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

import pyarrow as pa

from indextables.log.snapshot import Snapshot
from indextables.runtime import check_cancelled
from indextables.split.layout import SplitRef
from indextables.storage.store import is_local, requests_at_once

T = TypeVar("T")

QUEUED = 2
_AHEAD = 2
_POLL_S = 0.1
_END = object()

UNIT_BYTES = 1 << 20
UNIT_SPLITS = 32
"""A unit of work is at most 32 consecutive splits with at most 1 MB together.

Handing each small split to a thread would cost more than searching it."""


class _StoppedError(Exception):
    """The caller wants no more results."""


def splits_at_once(snapshot: Snapshot) -> int:
    """How many splits are searched at once; more on an object store, where a search mostly waits."""
    return requests_at_once(snapshot.store)


def work_units(snapshot: Snapshot, refs: Iterable[SplitRef]) -> Iterator[list[SplitRef]]:
    """Group splits into units of work, in order: a large one alone, small neighbours as one unit.

    On an object store each is alone: there the threads wait, and more of them wait for less time.
    """
    unit: list[SplitRef] = []
    unit_size, most = 0, UNIT_SPLITS if is_local(snapshot.store) else 1
    for ref in refs:
        # A split of unknown size may be large.
        size = UNIT_BYTES if ref.size is None else ref.size
        if unit and (unit_size + size > UNIT_BYTES or len(unit) == most):
            yield unit
            unit, unit_size = [], 0
        unit.append(ref)
        unit_size += size
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


def batches_in_order(
    schema: pa.Schema,
    pieces: Iterable[Callable[[], Iterator[pa.Table]]],
    width: int,
    limit: int | None = None,
    when_empty: Callable[[], None] = lambda: None,
) -> pa.RecordBatchReader:
    """The rows of all units of work in order, as a stream; up to `width` run, at most `limit` rows come."""

    def batches() -> Iterator[pa.RecordBatch]:
        left, is_empty = limit, True
        tables = in_order(pieces, width)
        try:
            for table in tables:
                for whole in table.to_batches():
                    # A batch without columns takes the length of a slice for its own.
                    batch = whole if left is None or whole.num_rows <= left else whole.slice(0, left)
                    left = None if left is None else left - batch.num_rows
                    if batch.num_rows:
                        is_empty = False
                        yield batch
                    if left == 0:
                        return
            if is_empty:
                when_empty()
        finally:
            tables.close()

    return pa.RecordBatchReader.from_batches(schema, batches())


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
