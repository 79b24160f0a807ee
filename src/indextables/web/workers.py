"""Work for a request: in a thread of its own, given up when the client has disconnected."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread
from starlette.requests import Request

from indextables.runtime import cancellable

T = TypeVar("T")

MOST_CONCURRENT = 8
"""Requests that are worked on at the same time; others wait."""

_END = object()


class RequestWorkers:
    """The threads in which requests are worked on; each ends its work when its client has gone."""

    def __init__(self) -> None:
        self._limiter: anyio.CapacityLimiter | None = None

    @property
    def limiter(self) -> anyio.CapacityLimiter:
        """Made on first use, because it belongs to the running loop."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(MOST_CONCURRENT)
        return self._limiter

    async def answer(self, request: Request, work: Callable[[], T]) -> T:
        """The result of some work, which ends early when the request is dropped."""
        stop = threading.Event()
        await request.body()

        async def watch() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            stop.set()

        watching = asyncio.create_task(watch())
        try:
            return await anyio.to_thread.run_sync(partial(_within, stop, work), limiter=self.limiter)
        finally:
            watching.cancel()

    async def run(self, work: Callable[[], T]) -> T:
        """The result of some work that ends early when its task is cancelled."""
        stop = threading.Event()
        try:
            return await anyio.to_thread.run_sync(
                partial(_within, stop, work), limiter=self.limiter, abandon_on_cancel=True
            )
        finally:
            stop.set()

    async def stream(self, make: Callable[[], Iterator[bytes]]) -> AsyncIterator[bytes]:
        """The pieces of a long answer, each made when the last was taken; closing it ends the work."""
        stop = threading.Event()
        source = make()
        try:
            while True:
                piece = await anyio.to_thread.run_sync(
                    partial(_within, stop, partial(next, source, _END)),
                    limiter=self.limiter,
                    abandon_on_cancel=True,
                )
                if piece is _END:
                    return
                yield piece
        finally:
            stop.set()


def _within(stop: threading.Event, work: Callable[[], T]) -> T:
    with cancellable(stop):
        return work()
