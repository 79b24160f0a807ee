"""The part of the tour that runs in Spark: SQL with a search inside, and a maintenance command."""

from __future__ import annotations

from typing import Any

from indextables.cli.tour import Tour


def tour_spark(tour: Tour) -> None:
    """Open a local session and ask the same table there."""
    from indextables.spark.session import start_local

    tour.title("The same table in Spark")
    spark, seconds = tour.timed(lambda: start_local("indextables demo"))
    tour.say(f"A local session took {seconds:.0f} s to start.")
    try:
        _ask(tour, spark)
    finally:
        spark.stop()


def _ask(tour: Tour, spark: Any) -> None:
    spark.read.format("indextables").load(tour.uri).createOrReplaceTempView("events")
    text = "SELECT service, count(*) AS n FROM events WHERE message indexquery 'timeout' GROUP BY service"
    rows, seconds = tour.timed(lambda: sorted(spark.sql(text).collect()))
    tour.say(text)
    tour.say(f"{', '.join(f'{row.service} {row.n:,}' for row in rows)} in {seconds:.1f} s.")
    statement = f"DESCRIBE INDEXTABLES HISTORY '{tour.uri}'"
    history = spark.sql(statement).collect()
    tour.say(statement)
    tour.say(f"{len(history)} versions, the newest by {history[0].operation}.")
