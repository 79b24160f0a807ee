"""The doors that need a Spark session: SQL, filters of DataFrames, and our methods that return them.

The session's zone is the zone of every question here; the table's property may say another.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import indextables as it
from doors import questions, worlds
from doors.doors import Asking, NotOffered, _selected, expected, plain
from doors.questions import Question
from doors.run import Tally, ask
from support.spark_versions import reason_to_skip

Doors = Mapping[str, Callable[[Any], Any]]
CAST = {"d": "DATE", "tn": "TIMESTAMP_NTZ"}
OTHER_ZONE = "Asia/Tokyo"
STREAMED = 12
"""One question of so many also goes through a stream, which takes seconds to start."""


class SparkAsking(Asking):
    """A question asked through a session."""

    def __init__(self, world: Any, question: Question, spark: Any) -> None:
        super().__init__(world, question)
        self.spark = spark

    @property
    def zone(self) -> str:
        """The session's."""
        return self.question.zone or OTHER_ZONE

    @property
    def operator(self) -> str:
        """The property's: an option of one call has no place in a statement."""
        return self.world.property_operator or "or"

    def text(self) -> str:
        """The question as a SELECT of Spark."""
        question, writer = self.question, self.writer()
        parts = [] if question.where is None else [writer.condition(question.where)]
        if question.query is not None:
            parts.append(f"_indexall indexquery {writer.text(self.query() or '')}")
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        version = "" if question.version is None else f" VERSION AS OF {question.version}"
        source = f"indextables.`{self.world.path}`{version}"
        return f"SELECT {self._selection()} FROM {source}{where}{self._ending()}"

    def _selection(self) -> str:
        question, writer = self.question, self.writer()
        if question.kind in ("rows", "order", "score"):
            return "id"
        number, name = writer.name("n"), self.writer().name(question.by or "")
        if question.kind == "histogram":
            name = f"indextables_date_histogram({name}, '{'1h' if question.interval == 'hour' else 'day'}')"
            name = f"CAST({name} AS {CAST[question.by]})" if question.by in CAST else name
        if question.kind != "groups":
            return f"{name} AS value, count(*) AS c"
        return f"{name} AS value, count(*) AS c, min({number}) AS low, max({number}) AS high, sum({number}) AS total"

    def _ending(self) -> str:
        question, writer = self.question, self.writer()
        if question.kind == "order":
            keys = ", ".join(f"{writer.name(role)}{' DESC' if down else ''}" for role, down in question.keys)
            return f" ORDER BY {keys}" + ("" if question.limit is None else f" LIMIT {question.limit}")
        if question.kind in ("rows", "score"):
            return ""
        return " GROUP BY 1"


@contextmanager
def session_zone(spark: Any, zone: str) -> Iterator[None]:
    """Let the session have a zone for a while."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def ask_tables(spark: Any, numbers: Iterable[int], asked: int, directory: Path, doors: Doors) -> Tally:
    """Draw tables and questions, and ask the session."""
    tally = Tally()
    for number in numbers:
        world = worlds.make(directory / f"table{number}", number)
        for at in range(asked):
            asking = SparkAsking(world, questions.draw(world, random.Random(f"{number}/{at}")), spark)
            with session_zone(spark, asking.zone):
                ask(asking, f"table {number}, question {at}:", tally, doors)
    return tally


def sql(asking: SparkAsking) -> Any:
    """spark.sql."""
    if asking.question.kind == "histogram" and reason_to_skip("functions written in SQL"):
        raise NotOffered
    return _selected(_rows(asking.spark.sql(asking.text())), asking.question)


def frame_filter(asking: SparkAsking) -> Any:
    """`load`, then the condition as a filter of the DataFrame."""
    question = asking.question
    if question.kind != "rows":
        raise NotOffered
    reader = asking.spark.read.format("indextables")
    if question.version is not None:
        reader = reader.option("versionAsOf", question.version)
    frame = reader.load(str(asking.world.path))
    if question.where is not None:
        frame = frame.filter(asking.where())
    if question.query is not None:
        frame = frame.filter(f"_indexall indexquery {asking.writer().text(asking.query() or '')}")
    return sorted(row["id"] for row in frame.select("id").collect())


def opened_with_session(asking: SparkAsking) -> Any:
    """Table.open(spark=): its Python verbs and its DataFrames."""
    question = asking.question
    if question.kind not in ("rows", "histogram"):
        raise NotOffered
    table = it.Table.open(str(asking.world.path), version=question.version, spark=asking.spark)
    if question.kind == "histogram":
        interval = "1h" if question.interval == "hour" else "day"
        name = asking.world.names[question.by or ""]
        rows = table.histogram(name, interval, query=asking.query(), where=asking.where())
        return {plain(row["bucket"]): row["count"] for row in rows.to_pylist()}
    number = table.count(asking.where(), query=asking.query())
    right = expected(asking)
    if number != len(right):
        return f"count {number}"
    if question.query is None:
        frame = table.to_df(asking.where(), ["id"])
    else:
        frame = table.search_df(asking.query(), asking.where(), ["id"])
    return sorted(row["id"] for row in frame.collect())


def stream(asking: SparkAsking) -> Any:
    """readStream, with the question as its filter."""
    question = asking.question
    if question.kind != "rows" or question.version is not None or question.seed % STREAMED:
        raise NotOffered
    reader = asking.spark.readStream.format("indextables")
    if not any(remark.startswith("deleted") for remark in asking.world.remarks):
        # A stream over every commit cannot take deleted rows back; one that starts now has the rows of now.
        reader = reader.option("startingVersion", "0")
    frame = reader.load(str(asking.world.path))
    if question.where is not None:
        frame = frame.filter(asking.where())
    if question.query is not None:
        frame = frame.filter(f"_indexall indexquery {asking.writer().text(asking.query() or '')}")
    ids: list[int] = []
    query = (
        frame.select("id")
        .writeStream.foreachBatch(lambda batch, _number: ids.extend(row["id"] for row in batch.collect()))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination(300)
        assert query.exception() is None, query.exception()
    finally:
        query.stop()
    return sorted(ids)


def _rows(frame: Any) -> list[dict[str, Any]]:
    """As Arrow: a collected timestamp would be one of the machine's zone."""
    return list(frame.toArrow().to_pylist())


SPARK_DOORS: dict[str, Callable[[SparkAsking], Any]] = {
    "spark.sql": sql,
    "DataFrame filter": frame_filter,
    "Table with a session": opened_with_session,
    "readStream": stream,
}
CONNECT_DOORS = {name: SPARK_DOORS[name] for name in ("spark.sql", "DataFrame filter")}
