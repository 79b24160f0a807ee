"""What a handle remembers of a log: five caches with counters, and the news of this process.

Contents of log files never change, so they are kept under the identity of the
file they came from and expire by time. What depends on the newest version is
kept under that version's identity and is simply not found once it moves on.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import field
from typing import Any, TypeVar

from indextables.cache import CacheStats, TtlCache
from indextables.log.state import VersionCache
from indextables.options import TransactionOptions
from indextables.records import dataclass

T = TypeVar("T")

_ONE_TABLE = 8


@dataclass(frozen=True, slots=True)
class LogCaches:
    """The five caches of one handle."""

    protocol: TtlCache[Any, Any]
    metadata: TtlCache[Any, Any]
    versions: VersionCache
    files: TtlCache[Any, Any]
    version_list: TtlCache[Any, Any]

    @classmethod
    def of(cls, options: TransactionOptions, now: Callable[[], float]) -> LogCaches | None:
        """Caches as the options want them; None when they want none."""
        if not options.cache_enabled:
            return None
        ttl = options.cache_expiration_s
        return cls(
            protocol=TtlCache(ttl, _ONE_TABLE, now),
            metadata=TtlCache(ttl, _ONE_TABLE, now),
            versions=TtlCache(ttl, 256, now),
            files=TtlCache(ttl, 1, now),
            # Which versions can be opened changes without a new version: a truncation leaves none behind.
            version_list=TtlCache(min(ttl, options.max_staleness_s), 1, now),
        )

    def stats(self) -> dict[str, CacheStats]:
        """Hits and misses by cache."""
        return {
            "protocol": self.protocol.stats,
            "metadata": self.metadata.stats,
            "versions": self.versions.stats,
            "files": self.files.stats,
            "version_list": self.version_list.stats,
        }

    def invalidate(self) -> None:
        """Forget everything; the counters stay."""
        for cache in (self.protocol, self.metadata, self.versions, self.files, self.version_list):
            cache.invalidate()


def remembered(cache: TtlCache[Any, Any] | None, key: object, make: Callable[[], T]) -> T:
    """A value from a cache, made and stored when it is not there."""
    if cache is None:
        return make()
    found: T | None = cache.get(key)
    if found is None:
        found = make()
        cache.put(key, found)
    return found


@dataclass(slots=True)
class News:
    """How often this process changed each log; a handle believes 'nothing newer' only while that stays."""

    _counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _everywhere: int = 0

    def mark(self, uri: str) -> int:
        """The current count."""
        with self._lock:
            return self._counts[uri] + self._everywhere

    def announce(self, uri: str) -> int:
        """Say that a log changed; returns the new count."""
        with self._lock:
            self._counts[uri] += 1
            return self._counts[uri] + self._everywhere

    def announce_all(self) -> None:
        """Say that any log may have changed."""
        with self._lock:
            self._everywhere += 1


NEWS = News()
