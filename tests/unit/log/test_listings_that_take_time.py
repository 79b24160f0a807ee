"""A listing takes time, and so does what follows it: what changes meanwhile is neither missed nor believed."""

from __future__ import annotations

import pytest

from indextables.errors import NotATableError
from support.builder import HINT, LogBuilder, checkpoint_path, commit_path, paths_of
from support.clock import HOUR_MS
from support.faults import CountingStore


class PassingOver(CountingStore):
    """Listings that pass over some names, as they may while those files are being made; and slow puts."""

    def __init__(self, inner):
        super().__init__(inner)
        self.passed_over = []
        self.times = 1
        self.slow = None

    def list_level(self, prefix="", start_after=None):
        found = super().list_level(prefix, start_after)
        if self.times and self.passed_over:
            self.times -= 1
            return [meta for meta in found if meta.path not in self.passed_over]
        return found

    def put(self, path, data):
        super().put(path, data)
        if self.slow is not None and path == HINT:
            self.slow.advance(hours=1)


def test_a_table_whose_every_file_was_replaced_during_a_listing_is_still_a_table():
    builder = LogBuilder().create().append("a").append("b").checkpoint()
    store = PassingOver(builder.store)
    store.passed_over = [meta.path for meta in builder.store.list_level("_transaction_log")]
    store.times = 2
    assert paths_of(LogBuilder(store, clock=builder.clock).log()) == ["a", "b"]


def test_a_table_that_had_no_checkpoint_to_point_at_is_still_a_table_when_all_its_files_are_replaced():
    builder = LogBuilder().create().append("a").append("b").checkpoint().hint(None)
    store = PassingOver(builder.store)
    store.passed_over = [meta.path for meta in builder.store.list_level("_transaction_log")]
    assert paths_of(LogBuilder(store, clock=builder.clock).log()) == ["a", "b"]


def test_a_log_that_holds_a_floor_and_no_version_is_called_that():
    store = LogBuilder().store
    store.put_if_absent("_transaction_log/00000000000000000002.floor", b"")
    with pytest.raises(NotATableError, match="holds no version"):
        LogBuilder(store).log().snapshot()


def test_a_hole_that_a_cleanup_leaves_in_a_slow_listing_is_no_lost_version():
    builder = LogBuilder().create().appends(4).checkpoint().append("z")
    store = PassingOver(builder.store)
    store.passed_over, store.times = [commit_path(1), checkpoint_path(4), HINT], 2
    builder.hint(None).lose(commit_path(0), commit_path(1))
    assert "z" in paths_of(LogBuilder(store, clock=builder.clock).log())


def test_versions_are_offered_when_a_listing_shows_a_floor_and_not_its_checkpoint():
    builder = LogBuilder().create().append("a").append("b").checkpoint()
    builder.store.put_if_absent("_transaction_log/00000000000000000002.floor", b"")
    store = PassingOver(builder.store)
    log = LogBuilder(store, clock=builder.clock).log()
    assert log.snapshot().version == 2
    store.passed_over = [checkpoint_path(2)]
    assert log.versions() == [2]


def test_versions_are_offered_when_a_checkpoint_goes_while_it_is_looked_at():
    builder = LogBuilder().create().append("a").checkpoint().lose(commit_path(0), commit_path(1))

    class Truncated(CountingStore):
        is_next = False

        def list_level(self, prefix="", start_after=None):
            names = super().list_level(prefix, start_after)
            if self.is_next:
                self.is_next = False
                builder.append("b").checkpoint().lose(checkpoint_path(1), commit_path(2))
            return names

    store = Truncated(builder.store)
    log = LogBuilder(store, clock=builder.clock).log()
    assert log.snapshot().version == 1
    store.is_next = True
    assert log.versions() == [2]


def test_commit_times_grow_when_a_listing_shows_a_checkpoint_and_not_its_commit():
    builder = LogBuilder().create().append("a").wait(hours=1).append("b").checkpoint()
    store = PassingOver(builder.store)
    store.passed_over, store.times = [commit_path(2)], 99
    builder.clock.advance(ms=-HOUR_MS)
    writer = LogBuilder(store, clock=builder.clock).log()
    assert writer.snapshot(max_staleness_s=0).segment.head is None
    writer.update_properties({"note": "x"})
    times = builder.log().history()["timestamp"].to_pylist()
    assert times == sorted(times, reverse=True)
    assert times[0] > times[1]


def test_what_a_slow_checkpoint_looked_at_long_ago_is_not_believed_to_be_the_newest():
    builder = LogBuilder().create().append("a")
    store = PassingOver(builder.store)
    slow = LogBuilder(store, {"checkpoint.enabled": "false"}, builder.clock)
    store.slow = builder.clock
    store.inner = _Elsewhere(builder.store)
    log = slow.log()
    log.checkpoint()
    builder.append("b")
    builder.clock.advance(s=1)
    assert [add.path for add in log.list_files()] == ["a", "b"]


class _Elsewhere:
    """The same objects under another address, as another process has them."""

    def __init__(self, inner):
        self.inner = inner
        self.uri = inner.uri + "#elsewhere"

    def __getattr__(self, name):
        return getattr(self.inner, name)
