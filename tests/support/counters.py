"""A table of counters that everybody raises at once: what it ends with says whether a change was lost or made twice.

Every change is made until it went through; a `ConflictError` is the loser's, who tries again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import indextables as it
from indextables.errors import ConflictError

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("who", pa.string())])
SHARED, DOOMED, FIRST_KEY, FIRST_NEW = range(10), range(20, 40), 500, 1000
TRIES = 200


def create(uri: str) -> None:
    """Twenty counters at zero in four splits, twenty rows to delete, and others that nobody touches."""
    table = it.Table.create(uri, SCHEMA)
    for start in range(0, 60, 15):
        ids = list(range(start, start + 15))
        table.append(pa.table({"id": ids, "n": [0] * 15, "who": ["start"] * 15}, SCHEMA))


def until_done(change: Callable[[], Any]) -> int:
    """Make a change; how often somebody else was faster."""
    for lost in range(TRIES):
        try:
            change()
        except ConflictError:
            continue
        return lost
    raise AssertionError(f"lost {TRIES} times in a row")


def expected(writers: list[str], rounds: int) -> list[tuple[int, int, str]]:
    """The rows after every writer has made its rounds: counters raised by all, keys met by all, rows of each."""
    raised = rounds * len(writers)
    rows = {number: (raised if number in SHARED else 0, "start") for number in range(60)}
    for at, name in enumerate(writers):
        for turn in range(rounds):
            del rows[DOOMED[at * rounds + turn]]
            rows[FIRST_NEW + at * 100 + turn] = (turn, name)
    rows[FIRST_KEY] = (raised, "key")
    return sorted((number, n, who) for number, (n, who) in rows.items())


def change_by_python(uri: str, at: int, name: str, rounds: int) -> int:
    """One writer's rounds with `Table`; returns how often it lost."""
    lost = 0
    for turn in range(rounds):
        table = it.Table.open(uri)

        new = pa.table({"id": [FIRST_NEW + at * 100 + turn], "n": [turn], "who": [name]}, SCHEMA)
        lost += until_done(lambda: table.append(new))
        lost += until_done(lambda: table.update("id < 10", {"n": lambda rows: pc.add(rows["n"], 1)}))
        doomed = DOOMED[at * rounds + turn]
        lost += until_done(lambda: table.delete(f"id = {doomed}"))
        lost += until_done(lambda: _raise_key(table))
    return lost


def _raise_key(table: it.Table) -> None:
    """Count a key that may not be there yet: raised where it is, else inserted once."""
    if table.update(f"id = {FIRST_KEY}", {"n": lambda rows: pc.add(rows["n"], 1)}).rows_updated:
        return
    new = pa.table({"id": [FIRST_KEY], "n": [1], "who": ["key"]}, SCHEMA)
    if not table.merge(new, on="id", matched=None).rows_inserted:
        raise ConflictError("somebody inserted the key meanwhile")


def merge_splits(uri: str, runs: int) -> int:
    """Turn small splits into larger ones, again and again; how many merges came through."""
    done = 0
    for _ in range(runs):
        try:
            done += it.Table.open(uri).merge_splits(max_source_splits=3).status == "SUCCESS"
        except ConflictError:
            continue
    return done


def contents(uri: str) -> list[tuple[int, int, str]]:
    """The rows of the newest version."""
    rows = it.Table.open(uri).scan().read_all().to_pylist()
    return sorted((row["id"], row["n"], row["who"]) for row in rows)
