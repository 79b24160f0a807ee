"""A store that fails or dies at every single moment of commit, checkpoint and cleanup.

Whatever the moment: every acknowledged commit is there once, none is there half, the table can be
read and the next commit works (docs/behaviour.md, C8, C9, E5, E6).
"""

from __future__ import annotations

import itertools

import pytest

from indextables.errors import Error
from indextables.storage.stores.memory import MemoryStore
from support.builder import LogBuilder, add, paths_of
from support.clock import FixedClock
from support.faults import Crash, FaultyStore

OPTIONS = {
    "checkpoint.interval": 2,
    "logRetention.duration": 0,
    "checkpointRetention.duration": 0,
    "checkpoint.read.timeoutSeconds": 30,
}
FORMS = {
    "document": {},
    "plain": {"transaction.compression.enabled": "false"},
    "parts": {"checkpoint.actionsPerPart": 2, "checkpoint.format": "json"},
    "auto": {"checkpoint.actionsPerPart": 2},
    "parquet": {"checkpoint.format": "parquet"},
}


def copy_of(store, clock):
    """The same objects in another store, so that every moment starts from the same state."""
    copied = MemoryStore(now_ms=clock.now_ms)
    for meta in store.list():
        copied.put(meta.path, store.get(meta.path))
    return copied


def steps(log, acknowledged):
    """An append, a remove and an overwrite; with an interval of 2 they checkpoint and clean up."""
    for number, act in enumerate(
        [
            lambda: log.add_files([add("new1"), add("new2")]),
            lambda: log.remove_files(["new1"]),
            lambda: log.add_files([add("new3")]),
            lambda: log.overwrite_files([add("last")]),
        ]
    ):
        act()
        acknowledged.append(number)


AFTER = [
    {"f0", "f1", "f2"},
    {"f0", "f1", "f2", "new1", "new2"},
    {"f0", "f1", "f2", "new2"},
    {"f0", "f1", "f2", "new2", "new3"},
    {"last"},
]


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=[] if form == "document" else pytest.mark.slow) for form in FORMS]
)
@pytest.mark.parametrize("mode", ["error", "lost_reply", "crash", "crash_after"])
def test_every_acknowledged_commit_is_there_once_and_none_half(mode, form):
    """C8, C9, E5."""
    options = {**OPTIONS, **FORMS[form]}
    clock = FixedClock()
    start = LogBuilder(MemoryStore(now_ms=clock.now_ms), options, clock).create()
    start.append("f0").append("f1").append("f2").wait(hours=1)
    for moment in itertools.count(1):
        now = FixedClock(clock.now_ms())
        inner = copy_of(start.store, now)
        now.advance(hours=1)
        store = FaultyStore(inner, moment, mode)
        acknowledged: list[int] = []
        try:
            steps(LogBuilder(store, options, now).log(), acknowledged)
        except (Error, Crash):
            pass
        check(inner, options, now, len(acknowledged), store)
        if not store.fired:
            assert len(acknowledged) == 4
            break
    assert moment > 20


def check(inner, options, clock, acknowledged, store):
    log = LogBuilder(inner, options, clock).log()
    where = store.operations[-3:]
    live = paths_of(log)
    assert len(live) == len(set(live)), where
    # One more than acknowledged may have landed: the reply, not the commit, was lost.
    assert set(live) in AFTER[acknowledged : acknowledged + 2], where
    engines = {
        engine: log.snapshot().files(engine=engine).column("path").to_pylist()
        for engine in ("reference", "columnar")
    }
    assert engines["reference"] == engines["columnar"] == live, where
    versions = log.versions()
    assert versions == list(range(versions[0], versions[-1] + 1)), where
    LogBuilder(inner, options, clock).append("next")
    assert set(paths_of(LogBuilder(inner, options, clock).log())) == {*live, "next"}, where


@pytest.mark.parametrize("mode", ["error", "lost_reply", "crash", "crash_after"])
def test_a_table_is_created_whole_or_not_at_all(mode):
    """A3: after any crash a later create works."""
    for moment in itertools.count(1):
        inner = MemoryStore()
        store = FaultyStore(inner, moment, mode)
        try:
            LogBuilder(store).create()
        except (Error, Crash):
            pass
        assert LogBuilder(inner).create().log().versions() == [0]
        if not store.fired:
            break
