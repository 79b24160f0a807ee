"""Native commits too large for this process: passed over for their heads, decoded by executors."""

from __future__ import annotations

import random

import pytest

from indextables.errors import CorruptLogError, NotFoundError
from indextables.log.format.dialect import NATIVE
from indextables.log.native import native_source
from indextables.log.replay.long_tail import LongTail
from indextables.log.replay.rule import Tail, reduce_tail
from indextables.log.segment import list_log
from indextables.log.state import LogSource
from indextables.model.actions import AddAction, RemoveAction, TxnAction
from indextables.options import Options
from indextables.runtime import Runtime
from support.builder import LogBuilder, add, commit_path


class Cluster:
    """An engine that is there; nobody asks it."""

    name = "spark"


def source_of(builder):
    """The log as a process reads it that has a cluster and little memory."""
    options = Options.of({**builder.options, "distributedLogReplay.localMemory": "64"})
    return native_source(builder.store, options, Runtime(clock=builder.clock, engines={"spark": Cluster()}))


def history(seed, **options):
    """Appends, removes, re-adds, a skip, a property and a transaction."""
    dice = random.Random(seed)
    builder = LogBuilder(options={"checkpoint.enabled": "false", **options}).create()
    log, live = builder.log(), set()
    for number in range(12):
        names = [f"f{dice.randrange(12)}" for _ in range(dice.randint(1, 5))]
        log.add_files(
            [add(name, size=number) for name in dict.fromkeys(names)],
            txn=TxnAction(app_id="a", version=number),
        )
        live.update(names)
        if live and dice.random() < 0.6:
            gone = dice.sample(sorted(live), min(len(live), 2))
            log.remove_files(gone)
            live.difference_update(gone)
    log.update_properties({"owner": "me"})
    log.record_skipped_file("f1", "broken", "merge")
    return builder


@pytest.mark.parametrize("compression", ["true", "false"])
@pytest.mark.parametrize("seed", range(3))
def test_the_pieces_of_commits_reduce_to_what_the_commits_reduce_to(seed, compression):
    """K1: heads, counts and the newest action of every file; an engine here still gets the adds."""
    builder = history(seed, **{"transaction.compression.enabled": compression})
    source, files = source_of(builder), builder.log().snapshot().segment.commits
    near = LogSource.reduced(source, files, Tail(-1))
    tail = source.reduced(files, Tail(-1))
    assert isinstance(tail, LongTail)
    for name in ("version", "protocol", "metadata", "skips", "txns", "info", "table_ids", "bare"):
        assert getattr(tail, name) == getattr(near, name), name
    newest = {}
    for piece in tail.pieces:
        files = [item for item in piece.actions(builder.store) if isinstance(item, AddAction | RemoveAction)]
        newest |= {action.path: action for action in files}
    assert {path: action for path, action in newest.items() if isinstance(action, AddAction)} == near.adds
    with pytest.raises(AttributeError):
        object.__getattribute__(tail, "adds")  # not read so far
    assert (tail.adds, tail.removed) == (near.adds, near.removed)
    # A refresh passes over what is new and keeps the rest.
    builder.append("late")
    newer = builder.log().snapshot().segment.commits
    after = source.reduced(newer[len(files) :], tail)
    assert isinstance(after, LongTail)
    assert after.adds == reduce_tail(source.read_commits(newer), NATIVE).adds


def test_damage_is_not_passed_over():
    """K5: a torn file, a copy of another version and a retired number are what they are for any reader."""
    builder = history(1, **{"transaction.compression.enabled": "false"})
    source = source_of(builder)
    whole = builder.store.get(commit_path(3))

    def read():
        listed = list_log(builder.store, NATIVE).commits
        source.reduced(list(listed.values()), Tail(-1))

    for bad in (whole.replace(b'"size":', b'"size" :', 1), builder.store.get(commit_path(4)), b"", b"\n"):
        builder.store.put(commit_path(3), bad)
        with pytest.raises(CorruptLogError, match=f"{3:020d}"):
            read()
    builder.store.put(commit_path(3), b'{"commitInfo":{"retired":true}}\n')
    with pytest.raises(NotFoundError, match="removed from the history"):
        read()
