"""Following a table: after an error the rows go on where they ended, none lost and none given twice."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import Error
from indextables.ops.read.follow import Follower
from indextables.split.open_splits import forget_splits

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "text": [f"disk {n}" for n in ids]}, SCHEMA)


@pytest.fixture
def table(tmp_path):
    return it.Table.create(tmp_path / "t", SCHEMA, options={"indexing.typemap.text": "text"})


@contextmanager
def unreadable(table: it.Table, path: str):
    """A split that cannot be read for a while, and of which nothing was read ahead."""
    forget_splits()
    place = Path(table.uri.removeprefix("file://")) / path
    away = place.with_suffix(".away")
    place.rename(away)
    try:
        yield
    finally:
        away.rename(place)


def added_by(table: it.Table, version: int) -> list[str]:
    return [action.path for action in table.log.read_version(version) if isinstance(action, it.AddAction)]


def taken(follower: Follower, into: list[int]) -> None:
    for found in follower.poll():
        into += found["id"].to_pylist()


@pytest.mark.parametrize("query", [None, "disk"])
@pytest.mark.parametrize("broken", [1, 2, 3])
def test_a_split_that_fails_costs_no_row_of_any_commit(table, query, broken):
    follower = Follower(table.log, query)
    for number in range(3):
        table.append(rows(2 * number, 2 * number + 1))
    ids: list[int] = []
    with unreadable(table, added_by(table, broken)[0]), pytest.raises(Error):
        taken(follower, ids)
    assert ids == list(range(2 * (broken - 1)))
    assert follower.version == broken - 1
    taken(follower, ids)
    assert ids == list(range(6))
    assert follower.version == table.version


@pytest.mark.parametrize("query", [None, "disk"])
def test_a_version_that_fails_midway_goes_on_behind_its_last_row(tmp_path, query):
    options = {"indexing.typemap.text": "text", "write.maxRowsPerSplit": 2}
    table = it.Table.create(tmp_path / "t", SCHEMA, options=options)
    follower = Follower(table.log, query)
    table.append(rows(*range(8)))
    paths = added_by(table, 1)
    assert len(paths) == 4
    ids: list[int] = []
    for path in paths[1:]:
        with unreadable(table, path), pytest.raises(Error):
            taken(follower, ids)
        assert follower.version == 0
    assert len(ids) == 6
    taken(follower, ids)
    assert sorted(ids) == list(range(8))
    assert len(ids) == 8
    assert follower.version == 1


def test_rows_that_were_not_taken_are_given_again(table):
    follower = Follower(table.log)
    table.append(rows(1))
    table.append(rows(2))
    for _ in range(2):
        assert next(follower.poll())["id"].to_pylist() == [1]
    ids: list[int] = []
    taken(follower, ids)
    assert ids == [1, 2]


def test_a_commit_that_changes_rows_is_counted_once_however_often_the_look_fails(table):
    follower = Follower(table.log)
    table.append(rows(1, 2))
    table.delete("id = 1")
    table.append(rows(3))
    ids: list[int] = []
    for _ in range(2):
        with unreadable(table, added_by(table, 3)[0]), pytest.raises(Error):
            taken(follower, ids)
    taken(follower, ids)
    assert (ids, follower.skipped_commits) == ([1, 2, 3], 1)
