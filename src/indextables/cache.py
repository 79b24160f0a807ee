"""Bounded caches whose entries expire a fixed time after they were written.

An entry's age counts from its write, never from its last use, so a value can
be believed for at most `ttl_s`. Hits and misses are counted; the counters are
what `TransactionLog.cache_stats()` reports.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from indextables.records import dataclass

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class CacheStats:
    """How often a cache was asked and how often it knew the answer."""

    hits: int
    misses: int

    @property
    def requests(self) -> int:
        """Every question asked so far."""
        return self.hits + self.misses

    @property
    def hit_rate(self) -> float:
        """The share of questions answered; 0.0 when none was asked."""
        return self.hits / self.requests if self.requests else 0.0


class TtlCache(Generic[K, V]):
    """A thread-safe map of at most `max_entries`, the least recently used leaving first."""

    def __init__(
        self, ttl_s: float, max_entries: int = 1000, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._ttl_s = ttl_s
        self._max_entries = max_entries
        self._now = now
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._lock = threading.Lock()
        self._hits = 0
        self._misses = 0

    def get(self, key: K) -> V | None:
        """The value, or None when it is absent or has expired."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or self._now() - entry[0] >= self._ttl_s:
                self._entries.pop(key, None)
                self._misses += 1
                return None
            self._entries.move_to_end(key)
            self._hits += 1
            return entry[1]

    def put(self, key: K, value: V) -> None:
        """Store a value; its age starts now."""
        with self._lock:
            self._entries[key] = (self._now(), value)
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def invalidate(self, key: K | None = None) -> None:
        """Forget one entry, or every entry."""
        with self._lock:
            if key is None:
                self._entries.clear()
            else:
                self._entries.pop(key, None)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def stats(self) -> CacheStats:
        """Requests answered and not answered since the cache was made."""
        with self._lock:
            return CacheStats(self._hits, self._misses)
