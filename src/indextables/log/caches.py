"""What a log handle caches, and how a handle learns that another one in this process changed the log.

Log files never change, so their contents are cached under the identity of the file and
expire by time. What depends on the newest version is cached under that version's
identity, so a newer version simply does not find it.
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
    """The five caches of one log handle, with counters of hits and misses."""

    protocol: TtlCache[Any, Any]
    metadata: TtlCache[Any, Any]
    versions: VersionCache
    files: TtlCache[Any, Any]
    version_list: TtlCache[Any, Any]

    @classmethod
    def of(cls, options: TransactionOptions, now: Callable[[], float]) -> LogCaches | None:
        """The caches the options ask for; None when caching is off."""
        if not options.cache_enabled:
            return None
        ttl = options.cache_expiration_s
        return cls(
            protocol=TtlCache(ttl, _ONE_TABLE, now),
            metadata=TtlCache(ttl, _ONE_TABLE, now),
            versions=TtlCache(ttl, 256, now),
            files=TtlCache(ttl, 1, now),
            # Which versions can be opened may change without a new version: truncating the history removes
            # some.
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
    """The cached value of a key; it is made and stored when it is missing."""
    if cache is None:
        return make()
    value: T | None = cache.get(key)
    if value is None:
        value = make()
        cache.put(key, value)
    return value


@dataclass(slots=True)
class News:
    """Counts how often this process changed each log.

    A handle may assume that nothing is newer only while the count of its log stays the same.
    """

    _counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _everywhere: int = 0

    def mark(self, uri: str) -> int:
        """The current count."""
        with self._lock:
            return self._counts[uri] + self._everywhere

    def announce(self, uri: str) -> int:
        """Record that a log changed; returns the new count."""
        with self._lock:
            self._counts[uri] += 1
            return self._counts[uri] + self._everywhere

    def announce_all(self) -> None:
        """Record that any log may have changed."""
        with self._lock:
            self._everywhere += 1


NEWS = News()
