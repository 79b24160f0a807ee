"""One law for Delta tables of every make: no engine drops a file that holds a matching row.

The rows of each file are known to the test, and what a predicate means for one
of them is said by an oracle in plain Python, so nothing here is compared with
itself alone.
"""

from __future__ import annotations

import pytest

import indextables as it
from indextables.log.delta.snapshot import open_snapshot
from indextables.options import Options
from indextables.storage.store import open_store
from support.deltaworlds import build
from support.questions import ZONES, matching, questions
from support.sampled import first_of

TABLES, PREDICATES = 130, 28


@pytest.mark.slow
@pytest.mark.parametrize("group", first_of(2, range(10)))
def test_no_file_with_a_matching_row_is_dropped(tmp_path, group):
    """K1, K3: columnar == reference, and both keep every file the rows demand; rows come out exactly."""
    predicates = dropped = 0
    for seed in range(group * TABLES // 10, (group + 1) * TABLES // 10):
        world = build(open_store(tmp_path / str(seed)), seed)
        uri, zone = world.log.store.uri, ZONES[seed % 3]
        options = {"timeZone": zone}
        snapshot = open_snapshot(uri, options=Options.of(options))
        assert set(snapshot.plan().files.column("path").to_pylist()) == set(world.files), seed
        table = it.DeltaTable.open(uri, options=options)
        for number, (text, node) in enumerate(questions(world, seed, PREDICATES, zone)):
            expected = matching(world, node)
            columnar, reference = (snapshot.plan(text, engine=name) for name in ("columnar", "reference"))
            kept = set(columnar.files.column("path").to_pylist())
            assert expected.keys() <= kept, (seed, text, expected.keys() - kept)
            assert kept == set(reference.files.column("path").to_pylist()), (seed, text)
            if number % 4 == 0:
                rows = table.scan(text, columns=["id"]).read_all().column("id").to_pylist()
                assert sorted(rows) == sorted(sum(expected.values(), [])), (seed, text)
            dropped += len(world.files) - len(kept)
            predicates += 1
    assert predicates == TABLES // 10 * PREDICATES
    assert dropped > predicates / 2
