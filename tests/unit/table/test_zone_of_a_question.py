"""The zone of times without an offset: the option, else the table's property, else UTC, at every door."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

import indextables as it
from indextables.ops.read.follow import Follower
from support.zones import ANSWERS, NEW_YORK, ROWS, TOKYO, delta_copy, given, ids, made

WINNERS = [
    (None, None, "UTC"),
    (NEW_YORK, None, NEW_YORK),
    (None, TOKYO, TOKYO),
    (NEW_YORK, TOKYO, TOKYO),
    (NEW_YORK, "UTC", "UTC"),
]


def deleted(table, where):
    table.delete(where)
    return sorted({1, 2, 3, 4} - set(ids(table.scan())))


def updated(table, where):
    table.update(where, {"text": "changed"})
    return ids(table.search("changed"))


def replaced(table, where):
    """The rows for which the condition is true make room for none."""
    table.overwrite(ROWS.slice(0, 0), where)
    return sorted({1, 2, 3, 4} - set(ids(table.scan())))


def followed(table, where):
    follower = Follower(table.log, None, where, None)
    table.append(ROWS)
    return sorted(number for part in follower.poll() for number in part["id"].to_pylist())


DOORS = {
    "scan": lambda table, where: ids(table.scan(where)),
    "search": lambda table, where: ids(table.search("word", where)),
    "search with a limit": lambda table, where: ids(table.search("word", where, limit=10)),
    "search by score": lambda table, where: ids(table.search("word", where, score=True)),
    "search by score with a limit": lambda table, where: ids(
        table.search("word", where, score=True, limit=9)
    ),
    "search in order": lambda table, where: ids(table.search("word", where, sort="id")),
    "aggregate": lambda table, where: table.aggregate("id", {"n": "count(*)"}, where=where)["id"].to_pylist(),
    "aggregate of a search": lambda table, where: sorted(
        table.aggregate("id", {"n": "count(*)"}, query="word", where=where)["id"].to_pylist()
    ),
    "facets": lambda table, where: sorted(table.facets("id", where=where)["value"].to_pylist()),
    "delete": deleted,
    "update": updated,
    "overwrite": replaced,
    "follow": followed,
}
COUNTS = {
    "count": lambda table, where: table.count(where),
    "count of a search": lambda table, where: table.count(where, query="word"),
    "total of a search": lambda table, where: (
        table.search("word", where, limit=1, total=True).read_all() and table.last_scan.total
    ),
}


@pytest.mark.parametrize(("prop", "option", "winner"), WINNERS)
@pytest.mark.parametrize("door", [*DOORS, *COUNTS])
def test_every_door_reads_times_in_the_zone_that_wins(tmp_path, door, prop, option, winner):
    for number, (where, answers) in enumerate(ANSWERS.items()):
        table = it.Table.open(made(str(tmp_path / str(number)), prop), options=given(option))
        if door in COUNTS:
            assert COUNTS[door](table, where) == len(answers[winner]), where
        else:
            assert DOORS[door](table, where) == answers[winner], where


@pytest.mark.parametrize(("prop", "option", "winner"), WINNERS)
def test_days_of_a_histogram_begin_in_the_zone_that_wins(tmp_path, prop, option, winner):
    table = it.Table.open(made(str(tmp_path / "t"), prop), options=given(option))
    first = {"UTC": 0, NEW_YORK: 5, TOKYO: 15}[winner]
    begins = {at.hour for at in table.histogram("moment", "day")["bucket"].to_pylist()}
    assert begins == {first}


@pytest.mark.parametrize(("prop", "option", "winner"), WINNERS)
def test_a_delta_table_follows_the_same_rule(prop, option, winner, tmp_path):
    table = it.DeltaTable.open(delta_copy(tmp_path, prop), options=given(option))
    for where, answers in ANSWERS.items():
        assert ids(table.scan(where)) == answers[winner], where
        assert table.count(where) == len(answers[winner]), where
        assert ids(table.search("word", where)) == answers[winner], where
        assert table.count(where, query="word") == len(answers[winner]), where


@pytest.mark.parametrize(("prop", "option", "winner"), WINNERS)
@pytest.mark.parametrize("kind", ["ours", "delta"])
def test_a_version_as_of_a_local_time_is_found_in_the_zone_that_wins(kind, prop, option, winner, tmp_path):
    uri = made(str(tmp_path / "t"), prop) if kind == "ours" else delta_copy(tmp_path, prop)
    opened = it.Table if kind == "ours" else it.DeltaTable
    for row in opened.open(uri).history().to_pylist():
        local = row["timestamp"].astimezone(ZoneInfo(winner)).replace(tzinfo=None).isoformat(" ")
        assert opened.open(uri, as_of=local, options=given(option)).version == row["version"]


def test_words_of_a_delta_table_are_joined_as_its_property_says(tmp_path):
    uri = delta_copy(tmp_path, None, **{"spark.indextables.search.defaultOperator": "and"})
    assert ids(it.DeltaTable.open(uri).search("word two")) == [2]
    with_option = it.DeltaTable.open(uri, options={"search.defaultOperator": "or"})
    assert ids(with_option.search("word two")) == [1, 2, 3, 4]


def test_a_delta_table_is_searched_by_the_index_settings_of_its_properties(tmp_path):
    uri = delta_copy(tmp_path, None, **{"spark.indextables.indexing.tokenizer.text": "raw"})
    assert ids(it.DeltaTable.open(uri).search("word")) == []
    assert ids(it.DeltaTable.open(uri).search('"word two"')) == [2]
