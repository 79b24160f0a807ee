"""The zone of times without an offset on Spark: the option, else the session's; a table property never wins."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

import indextables as it
from support.alike import session_zone
from support.zones import ANSWERS, BY_MOMENT, NEW_YORK, TOKYO, delta_copy, given, ids, made

WINNERS = [
    (NEW_YORK, None, "UTC", "UTC"),
    (None, None, TOKYO, TOKYO),
    (NEW_YORK, TOKYO, "UTC", TOKYO),
    (TOKYO, "UTC", NEW_YORK, "UTC"),
]


def collected(frame):
    return sorted(row["id"] for row in frame.select("id").collect())


@pytest.mark.parametrize(("prop", "option", "session", "winner"), WINNERS)
def test_a_table_opened_with_a_session_reads_times_in_the_zone_that_wins(
    spark, tmp_path, prop, option, session, winner
):
    uri = made(str(tmp_path / "t"), prop)
    with session_zone(spark, session):
        table = it.Table.open(uri, spark=spark, options=given(option))
        for where, answers in ANSWERS.items():
            rows = answers[winner]
            assert ids(table.scan(where)) == rows, where
            assert table.count(where) == len(rows), where
            assert ids(table.search("word", where)) == rows, where
            assert ids(table.search("word", where, score=True)) == rows, where
            assert ids(table.search("word", where, sort="id")) == rows, where
            assert table.count(where, query="word") == len(rows), where
        rows = ANSWERS[BY_MOMENT][winner]
        assert collected(table.to_df(BY_MOMENT)) == rows
        assert collected(table.search_df("word", BY_MOMENT)) == rows
        assert collected(table.search_df("word", BY_MOMENT, score=True)) == rows
        assert (
            collected(
                it.DeltaTable.open(delta_copy(tmp_path, prop), spark=spark, options=given(option)).to_df(
                    BY_MOMENT
                )
            )
            == rows
        )


@pytest.mark.parametrize(("prop", "option", "session", "winner"), WINNERS)
def test_a_version_is_read_as_of_a_local_time_in_the_zone_that_wins(
    spark, tmp_path, prop, option, session, winner
):
    uri = made(str(tmp_path / "t"), prop)
    with session_zone(spark, session):
        (first,) = (row for row in it.Table.open(uri).history().to_pylist() if row["version"] == 0)
        local = first["timestamp"].astimezone(ZoneInfo(winner)).replace(tzinfo=None).isoformat(" ")
        reader = spark.read.format("indextables").option("timestampAsOf", local).options(**given(option))
        assert reader.load(uri).count() == 0
        assert it.Table.open(uri, as_of=local, spark=spark, options=given(option)).version == 0


@pytest.mark.parametrize(("prop", "option", "session", "winner"), WINNERS)
def test_statements_and_conditions_of_spark_are_in_the_zone_of_its_session(
    spark, tmp_path, prop, option, session, winner
):
    """Spark parses them, whatever the option says: it knows no other zone."""
    uri = made(str(tmp_path / "t"), prop)
    with session_zone(spark, session):
        frame = spark.read.format("indextables").options(**given(option)).load(uri)
        frame.createOrReplaceTempView("zoned")
        for where, answers in ANSWERS.items():
            rows = answers[session]
            assert collected(frame.filter(where)) == rows, where
            assert collected(spark.sql(f"SELECT id FROM zoned WHERE {where}")) == rows, where
            found = spark.sql(f"SELECT id FROM zoned WHERE text indexquery 'word' AND {where}")
            assert collected(found) == rows, where
