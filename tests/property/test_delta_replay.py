"""Any Delta history replays to what the protocol says, by every local engine, with and without a predicate."""

from __future__ import annotations

import random
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.log.delta.dialect import DELTA
from indextables.log.delta.snapshot import open_snapshot
from indextables.log.segment import list_log, reconstructible
from indextables.options import Options
from indextables.storage.store import open_store
from support.deltahistories import PREDICATES, keys_of, live_of, random_log

OPTIONS = Options.of(None)


@pytest.mark.slow
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), commits=st.integers(1, 25), predicate=st.sampled_from(PREDICATES))
def test_engines_agree_with_the_protocol_on_any_history(seed, commits, predicate):
    """K1, K2: newest action per key, checkpoints of every kind cut anywhere, commits below them gone."""
    log = random_log(open_store(f"memory://{uuid.uuid4()}"), random.Random(seed), commits)
    snapshot = open_snapshot(log.store.uri, options=OPTIONS)
    assert keys_of(snapshot.plan(engine="columnar").files) == live_of(log)
    assert keys_of(snapshot.plan(engine="reference").files) == live_of(log)
    columnar, reference = (snapshot.plan(predicate, engine=name) for name in ("columnar", "reference"))
    assert keys_of(columnar.files) == keys_of(reference.files)
    assert columnar.metrics == reference.metrics


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_every_version_that_can_be_rebuilt_is_what_it_was(seed):
    """A13: time travel over random histories."""
    log = random_log(open_store(f"memory://{uuid.uuid4()}"), random.Random(seed), 12)
    listing = list_log(log.store, DELTA)
    for version in reconstructible(listing, DELTA):
        files = open_snapshot(log.store.uri, version=version, options=OPTIONS).plan().files
        assert keys_of(files) == live_of(log, version)
