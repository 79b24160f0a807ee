"""A checkpoint large enough for DuckDB gives what the plain rule gives, row for row."""

from __future__ import annotations

import pytest

from indextables.log.delta.snapshot import open_snapshot
from indextables.options import Options
from indextables.storage.store import open_store
from support.deltatables import DeltaLog, add, remove, schema_string, vector

OPTIONS = Options.of(None)
FILES = 51_000


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """51,000 files, some without statistics, values or with a deletion vector, and a tail that touches them."""
    root = tmp_path_factory.mktemp("large") / "it's [here]*"
    made = DeltaLog(
        open_store(root), schema_string(p="integer", id="long", bare="long", **{"a/b~c": "string"}), ("p",)
    )
    for number in range(FILES):
        stats = {
            "numRecords": 10,
            "minValues": {"id": number * 10, "a/b~c": f"n{number:05d}"},
            "maxValues": {"id": number * 10 + 9, "a/b~c": f"n{number:05d}"},
            "nullCount": {"id": 0},
        }
        if number % 1000 == 11:
            # All values are null: only the count shows that none can match.
            stats = {"numRecords": 10, "minValues": {}, "maxValues": {}, "nullCount": {"id": 10, "a/b~c": 10}}
        dv = vector(number) if number % 1000 == 3 else None
        body = add(
            f"p=x y/{number}",
            stats=None if number % 1000 == 7 else stats,
            dv=dv,
            partitionValues={"p": str(number % 5)},
        )["add"]
        made.live[f"p=x y/{number}", dv and f"u{number:020d}@1"] = body
    made.checkpoint("classic")
    made.commit(
        remove("p=x y/2003", dv=vector(2003)), add("p=x y/2003", stats={"numRecords": 1}), remove("p=x y/9")
    )
    made.commit(remove("p=x y/3003"), add("new", partitionValues={"p": "1"}))
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    [
        "id >= 20000 AND id < 20100",
        "id < 30 AND p = 1",
        "`a/b~c` = 'n40000'",
        "id IS NULL",
        "bare = 3 AND p < 2",
    ],
)
def test_a_large_checkpoint_is_pruned_as_the_rule_says(log, where):
    """K1: kept files with every column, statistics included, and the counts."""
    snapshot = open_snapshot(log.store.uri, options=OPTIONS)
    ours, plain = snapshot.plan(where, engine="columnar"), snapshot.plan(where, engine="reference")
    order = [("path", "ascending"), ("dv", "ascending")]
    assert ours.files.sort_by(order).to_pylist() == plain.files.sort_by(order).to_pylist()
    assert ours.files.schema == plain.files.schema
    assert ours.metrics == plain.metrics
    assert ours.metrics.considered == len(log.live)


@pytest.mark.slow
def test_statistics_of_every_column_are_there_for_the_files_that_are_kept(log):
    """A filter on one column, and the typed statistics of all of them."""
    snapshot = open_snapshot(log.store.uri, options=OPTIONS)
    columns = ["num_records", "min", "max", "null_count", "stats"]
    ours, plain = (
        snapshot.plan("id < 200", columns, engine).files.sort_by("path").to_pylist()
        for engine in ("columnar", "reference")
    )
    assert ours == plain
    assert {"path": "p=x y/5", "num_records": 10}.items() <= next(
        row.items() for row in ours if row["min"]["a/b~c"] == "n00005"
    )


@pytest.mark.slow
def test_a_second_question_is_answered_from_what_was_read(log):
    """F4: the same predicate again reads nothing of the checkpoint."""
    snapshot = open_snapshot(log.store.uri, version=log.version, options=OPTIONS)
    first = snapshot.plan("id = 5", columns=["size"])
    again = snapshot.plan("id = 5", columns=["size"])
    assert "read" in first.replay.seconds
    assert "read" not in again.replay.seconds
    assert again.files == first.files
