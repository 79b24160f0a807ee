"""Random questions to a table, each with what plain Python makes of the rows it is true for.

A question is a name, a call of the production code and a function of the version
that the oracle replayed. The first gives the answer, the second what it has to be.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from indextables.table import Table
    from simulation.oracle import Version

WORDS = ("red", "green", "blue", "amber", "violet", "teal")


class Row(NamedTuple):
    """One row of a simulated table; `x` is the column that the schema grows by."""

    id: str
    n: int
    body: str
    x: int | str | None = None

    @property
    def k(self) -> int:
        """The partition column: whether the last digit of the id is odd."""
        return int(self.id[-1]) % 2


@dataclass(frozen=True)
class Question:
    """A call, and what it has to answer for a version."""

    name: str
    ask: Callable[[Table], Any]
    truth: Callable[[Version], Any]


Condition = tuple[str, Callable[[Row], bool]]


def draw_condition(chance: random.Random) -> Condition:
    """A filter as SQL and as Python."""
    number, word, half = chance.randint(0, 9), chance.choice(WORDS), chance.randint(0, 1)
    kinds: list[Condition] = [
        (f"k = {half}", lambda row: row.k == half),
        (f"n >= {number}", lambda row: row.n >= number),
        (f"n IN ({number}, {number + 2})", lambda row: row.n in {number, number + 2}),
        (f"n <> {number} AND k = {half}", lambda row: row.n != number and row.k == half),
        (f"body LIKE '%{word[1:]}%'", lambda row: word[1:] in row.body),
        (f"body LIKE '{word}%'", lambda row: row.body.startswith(word)),
        (f"id LIKE '%{number}' OR n < {number}", lambda row: row.id[-1] == str(number) or row.n < number),
        (f"NOT (n BETWEEN {number} AND {number + 3})", lambda row: not number <= row.n <= number + 3),
    ]
    return chance.choice(kinds)


def draw_query(chance: random.Random) -> Condition:
    """A full-text query as text and as Python."""
    one, two = chance.sample(WORDS, 2)
    kinds: list[Condition] = [
        (one, lambda row: one in row.body.split()),
        (f"{one} AND {two}", lambda row: {one, two} <= set(row.body.split())),
        (f"{one} OR {two}", lambda row: bool({one, two} & set(row.body.split()))),
        (f'"{one} {two}"', lambda row: f" {one} {two} " in f" {row.body} "),
        (f"{one} AND NOT {two}", lambda row: one in row.body.split() and two not in row.body.split()),
    ]
    return chance.choice(kinds)


def draw_question(chance: random.Random) -> Question:
    """One of all kinds of questions."""
    return chance.choice(KINDS)(chance)


def draw_search(chance: random.Random) -> Question:
    """A question that the index answers."""
    return chance.choice((_search, _ranked, _facets))(chance)


def rows_of(version: Version, matches: Callable[[Row], bool] = lambda _: True) -> list[Row]:
    """The rows of a version that match."""
    return [row for row in version.rows.elements() if matches(row)]


def _all_of(reader: Any) -> Counter[Any]:
    """What a scan gave, in the terms of the oracle and with the partition column beside it."""
    rows = reader.read_all().to_pylist()
    return Counter((Row(row["id"], row["n"], row["body"], row.get("x")), row["k"]) for row in rows)


def _ids(reader: Any) -> list[str]:
    ids: list[str] = reader.read_all()["id"].to_pylist()
    return ids


def _scan(chance: random.Random) -> Question:
    def truth(version: Version) -> Any:
        return Counter((row, row.k) for row in version.rows.elements())

    return Question("scan", lambda table: _all_of(table.scan()), truth)


def _where(chance: random.Random) -> Question:
    text, matches = draw_condition(chance)
    return Question(
        f"scan where {text}",
        lambda table: sorted(_ids(table.scan(where=text))),
        lambda version: sorted(row.id for row in rows_of(version, matches)),
    )


def _count(chance: random.Random) -> Question:
    text, matches = draw_condition(chance) if chance.random() < 0.7 else (None, lambda _: True)
    return Question(
        f"count where {text}",
        lambda table: table.count(text),
        lambda version: len(rows_of(version, matches)),
    )


def _sorted(chance: random.Random) -> Question:
    limit = chance.randint(1, 5)

    def truth(version: Version) -> list[str]:
        return [row.id for row in sorted(rows_of(version), key=lambda row: (-row.n, row.id))][:limit]

    return Question(
        f"scan in order, limit {limit}",
        lambda table: _ids(table.scan(sort="n DESC, id", limit=limit)),
        truth,
    )


def _search(chance: random.Random) -> Question:
    query, matches = draw_query(chance)
    if chance.random() < 0.3:
        return Question(
            f"count of {query}",
            lambda table: table.count(query=query),
            lambda version: len(rows_of(version, matches)),
        )
    return Question(
        f"search {query}",
        lambda table: sorted(_ids(table.search(query))),
        lambda version: sorted(row.id for row in rows_of(version, matches)),
    )


def _ranked(chance: random.Random) -> Question:
    """All that match, best first; with a limit, the first of them by score."""
    query, matches = draw_query(chance)
    limit = chance.randint(1, 4)

    def ask(table: Table) -> Any:
        everything = table.search(query, score=True).read_all()
        few = table.search(query, score=True, limit=limit).read_all()
        scores = everything["_score"].to_pylist()
        in_order = scores == sorted(scores, reverse=True) and few["_score"].to_pylist() == scores[:limit]
        return sorted(everything["id"].to_pylist()), in_order

    return Question(
        f"rank {query}",
        ask,
        lambda version: (sorted(row.id for row in rows_of(version, matches)), True),
    )


def _aggregate(chance: random.Random) -> Question:
    text, matches = draw_condition(chance)
    measures = {"c": "count(*)", "s": "sum(n)", "low": "min(n)", "high": "max(n)"}

    def ask(table: Table) -> Any:
        found = table.aggregate("k", measures, where=text).to_pylist()
        return sorted((row["k"], row["c"], row["s"], row["low"], row["high"]) for row in found)

    def truth(version: Version) -> Any:
        groups: dict[int, list[int]] = {}
        for row in rows_of(version, matches):
            groups.setdefault(row.k, []).append(row.n)
        return sorted((k, len(n), sum(n), min(n), max(n)) for k, n in groups.items())

    return Question(f"aggregate where {text}", ask, truth)


def _facets(chance: random.Random) -> Question:
    query, matches = draw_query(chance)

    def ask(table: Table) -> Any:
        found = table.facets("n", query=query, top=None).to_pylist()
        return {row["value"]: row["count"] for row in found}

    return Question(
        f"facets of {query}", ask, lambda version: dict(Counter(row.n for row in rows_of(version, matches)))
    )


def _histogram(chance: random.Random) -> Question:
    width = chance.randint(2, 4)

    def ask(table: Table) -> Any:
        found = table.histogram("n", width).to_pylist()
        return {row["bucket"]: row["count"] for row in found if row["count"]}

    return Question(
        f"histogram by {width}",
        ask,
        lambda version: dict(Counter(row.n // width * width for row in rows_of(version))),
    )


def _definition(chance: random.Random) -> Question:
    """Properties, columns and partitioning, from the handle and from its description."""

    def ask(table: Table) -> Any:
        told = table.describe()
        return (
            dict(table.metadata.configuration),
            table.spark_schema,
            list(table.partition_columns),
            told.num_rows,
            table.schema.names == [column.name for column in told.columns],
        )

    def truth(version: Version) -> Any:
        metadata = version.metadata
        named = metadata["configuration"], metadata["schemaString"], metadata["partitionColumns"]
        return *named, version.rows.total(), True

    return Question("definition", ask, truth)


KINDS: Sequence[Callable[[random.Random], Question]] = (
    _scan, _scan, _where, _where, _count, _sorted, _search, _search, _ranked, _aggregate, _facets,
    _histogram, _definition,
)  # fmt: skip
