"""Scrolls: answers that are fetched page by page, all of one version of the table.

A page has the number of the next one in its id. Asking again with the same id gives
the same page again, so that a client that lost an answer loses no rows.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from indextables.errors import NotFoundError
from indextables.web.elastic.shapes import refused, text_at

MOST_OPEN = 500
"""Scrolls that are open at the same time, as in Elasticsearch."""
_LONGEST_S = 86_400.0
_TIME = re.compile(r"(\d{1,9})(ms|s|m|h|d)\Z", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}

Page = dict[str, Any]


class MissingScrollError(NotFoundError):
    """A scroll that was closed, has expired, or never was."""


@dataclass(slots=True)
class _Open:
    pages: Iterator[Page]
    until: float
    number: int = 0
    last: Page = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Scrolls:
    """The open scrolls of a server; each is let go when its time is over."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[str, _Open] = {}
        self._lock = threading.Lock()

    def begin(self, pages: Iterator[Page], keep: Any) -> Page:
        """Open a scroll over pages that are made on request, and return the first."""
        name = secrets.token_hex(16)
        scroll = _Open(pages, self._clock() + seconds_of(keep))
        with self._lock:
            self._forget_expired()
            if len(self._open) >= MOST_OPEN:
                raise refused(f"{MOST_OPEN} scrolls are open already; close some of them")
            self._open[name] = scroll
        return self._advance(name, scroll)

    def following(self, scroll_id: Any, keep: Any) -> Page:
        """The page that an id stands for."""
        name, number = _read(scroll_id)
        with self._lock:
            self._forget_expired()
            scroll = self._open.get(name)
        if scroll is None:
            raise _missing(scroll_id)
        with scroll.lock:
            if keep is not None:
                scroll.until = self._clock() + seconds_of(keep)
            if number == scroll.number - 1:
                return scroll.last
            if number != scroll.number:
                raise _missing(scroll_id)
            return self._advance(name, scroll)

    def close(self, ids: list[str]) -> int:
        """Let some scrolls go; how many of them were open."""
        with self._lock:
            names = {_read(one)[0] for one in ids} if ids != ["_all"] else set(self._open)
            return sum(self._open.pop(name, None) is not None for name in names)

    def _advance(self, name: str, scroll: _Open) -> Page:
        with ExitStack() as failed:
            # After a failure the pages cannot go on: better no scroll than one that ends early.
            failed.callback(self._open.pop, name, None)
            page = next(scroll.pages)
            failed.pop_all()
        scroll.number += 1
        scroll.last = {"_scroll_id": f"{name}.{scroll.number}", **page}
        return scroll.last

    def _forget_expired(self) -> None:
        now = self._clock()
        self._open = {name: scroll for name, scroll in self._open.items() if scroll.until > now}


def seconds_of(value: Any) -> float:
    """Read a time such as `5m`."""
    match = _TIME.match(text_at(value, "scroll"))
    seconds = int(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 0 < seconds <= _LONGEST_S:
        raise refused(f"[scroll] is a time such as 5m, up to a day, not {value!r:.60}")
    return seconds


def _read(scroll_id: Any) -> tuple[str, int]:
    name, dot, number = text_at(scroll_id, "scroll_id").rpartition(".")
    if not dot or not number.isascii() or not number.isdigit() or len(number) > 9:  # noqa: PLR2004
        raise refused(f"[scroll_id] {scroll_id!r:.60} is not one that was given out here")
    return name, int(number)


def _missing(scroll_id: Any) -> MissingScrollError:
    return MissingScrollError(
        f"there is no open scroll {scroll_id!r:.80}; it was closed, or nobody asked in time. Search again."
    )
