"""What a read obeys is one value, the same for both kinds of tables and in other processes."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest

import indextables as it
from indextables.log.delta.snapshot import open_snapshot
from indextables.ops.table_settings import query_of
from indextables.options import Options
from indextables.split.layout import SplitRef
from indextables.split.search.run import count_split
from indextables.split.search.selection import Selection
from support.zones import BY_LOCAL, NEW_YORK, TOKYO, delta_copy, made


def test_another_process_reads_by_the_same_settings(tmp_path):
    snapshot = it.TransactionLog.open(made(str(tmp_path / "t"), NEW_YORK)).snapshot()
    carried = pickle.loads(pickle.dumps(snapshot.reading))
    assert (carried.zone, carried.schema, carried.settings) == (
        NEW_YORK,
        snapshot.schema,
        snapshot.settings,
    )
    selection = Selection(query_of(snapshot, "word"), snapshot.filter_of(BY_LOCAL))
    (add,) = snapshot.adds()
    for reading in (snapshot.reading, carried):
        assert count_split(reading, SplitRef.of(add), selection) == 3


def test_a_delta_table_is_read_by_the_same_kind_of_value(tmp_path):
    uri = delta_copy(tmp_path, NEW_YORK)
    assert open_snapshot(uri, options=Options()).reading.zone == NEW_YORK
    carried = pickle.loads(pickle.dumps(open_snapshot(uri, options=Options.of({"timeZone": TOKYO})).reading))
    assert carried.zone == TOKYO
    assert carried.store.uri == uri


def test_nobody_changes_it_on_the_way(tmp_path):
    reading = it.TransactionLog.open(made(str(tmp_path / "t"), None)).snapshot().reading
    with pytest.raises(FrozenInstanceError):
        reading.settings = Options()
