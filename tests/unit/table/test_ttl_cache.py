"""Caches that expire from the write and count what they are asked."""

from __future__ import annotations

from indextables.cache import TtlCache


class Time:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_an_entry_expires_from_its_write_not_from_its_last_use():
    """F1."""
    time = Time()
    cache = TtlCache(300, now=time)
    cache.put("a", 1)
    time.now = 299
    assert cache.get("a") == 1
    time.now = 300
    assert cache.get("a") is None


def test_hits_and_misses_are_counted_and_no_requests_is_a_rate_of_zero():
    """F2."""
    cache = TtlCache(300)
    assert cache.stats.hit_rate == 0.0
    cache.get("a")
    cache.put("a", 1)
    cache.get("a")
    cache.get("a")
    assert (cache.stats.hits, cache.stats.misses, cache.stats.requests) == (2, 1, 3)


def test_the_least_recently_used_entry_leaves_first():
    cache = TtlCache(300, max_entries=2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_one_entry_or_all_can_be_forgotten():
    cache = TtlCache(300)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.invalidate("a")
    assert (cache.get("a"), cache.get("b")) == (None, 2)
    cache.invalidate()
    assert len(cache) == 0
