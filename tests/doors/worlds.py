"""Tables to ask: drawn columns, rows, splits and properties, and the versions they went through.

A world knows its rows as plain dictionaries by role (`id`, `n`, `msg`, ...); what a column is
called in the table is drawn, odd names among them.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

import indextables as it

WORDS = (
    "error",
    "timeout",
    "disk",
    "full",
    "peer",
    "reset",
    "user42",
    "näher",
    "ok",
    "retry",
    "x1",
    "not",
    "and",
)
LEVELS = ("ERROR", "INFO", "error", "WARN", "", None)
TEXTS = ("", "a", "A", "b'c", "é", "z%_", "\U0001f600", "long " * 10, "\\n", "null", "Ä", None)
DOUBLES = (0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"), float("-inf"), 1e-300, 3.0, None)
NUMBERS = (0, 1, -1, 7, 8, 2**31 - 1, -(2**31), 100, None)
ZONES = ("America/New_York", "Asia/Tokyo", "Europe/Berlin", "UTC")
# Around midnights, and around the hours that New York and Berlin have twice.
MOMENTS = tuple(
    dt.datetime.fromisoformat(text)
    for text in (
        "2024-01-01T04:30:00", "2024-01-01T05:00:00", "2024-01-01T15:00:00", "2023-12-31T23:59:59",
        "2024-11-03T05:30:00", "2024-11-03T06:30:00", "2024-10-27T00:30:00", "2024-10-27T01:30:00",
        "1969-12-31T23:00:00", "2024-07-01T00:00:00",
    )
)  # fmt: skip
WALL_TIMES = tuple(
    dt.datetime.fromisoformat(text)
    for text in (
        "2024-01-01T00:00:00",
        "2024-01-01T01:00:00",
        "2024-06-01T12:00:00",
        "2024-01-01T06:00:00",
        "2023-12-31T20:00:00",
        "2024-11-03T01:30:00",
        "2024-10-27T02:30:00",
    )
)
ODD_NAMES = {
    "n": ("n", "N", "count of", "größe"),
    "x": ("x", "price.eur", "X"),
    "s": ("s", "select", "a b", 'q"uote', "tick`ed"),
    "msg": ("msg", "Message", "message", "password"),
    "level": ("level", "Level", "token", "api_key"),
    "p": ("p", "Day", "part key"),
    "ts": ("ts", "TS", "when"),
    "tn": ("tn", "wall time"),
    "d": ("d", "date"),
    "dec": ("dec",),
    "b": ("b", "flag"),
    "k": ("k", "nested"),
}
TYPES = {
    "id": pa.int64(),
    "n": pa.int32(),
    "x": pa.float64(),
    "s": pa.string(),
    "msg": pa.string(),
    "level": pa.string(),
    "ts": pa.timestamp("us", "UTC"),
    "tn": pa.timestamp("us"),
    "d": pa.date32(),
    "dec": pa.decimal128(10, 2),
    "b": pa.bool_(),
    "k": pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]),
}


@dataclass
class World:
    """A table on disk, and what is in it."""

    path: Path
    names: dict[str, str]
    """What each role's column is called."""
    types: dict[str, pa.DataType]
    versions: list[tuple[int, list[dict[str, Any]]]]
    """Version numbers with the rows they have, ascending."""
    property_zone: str | None
    property_operator: str | None
    partitioned: bool
    searchable_from: int
    """The version from which columns are indexed."""
    remarks: list[str]
    """How it was made, for a report."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the newest version."""
        return self.versions[-1][1]

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return pa.schema([(name, self.types[role]) for role, name in self.names.items()])

    def rows_at(self, version: int | None) -> list[dict[str, Any]]:
        """The rows of a version."""
        if version is None:
            return self.rows
        return [rows for number, rows in self.versions if number <= version][-1]

    def usual(self, role: str) -> Any:
        """A value for a column that has none."""
        return _value(role, random.Random(1), self.types[role], none=False)

    def arrow(self, rows: Sequence[dict[str, Any]]) -> pa.Table:
        """Rows as the table's columns."""
        return pa.table(
            [pa.array([row[role] for row in rows], self.types[role]) for role in self.names],
            names=list(self.names.values()),
        )


def make(path: Path, seed: int) -> World:
    """A table drawn by a seed."""
    chance = random.Random(seed)
    names = {"id": "id"}
    for role in TYPES:
        if role != "id":
            names[role] = _distinct(chance.choice(ODD_NAMES[role]), names, role)
    types = dict(TYPES)
    partitioned = chance.random() < 0.5
    names["p"] = _distinct(chance.choice(ODD_NAMES["p"]), names, "p")
    types["p"] = chance.choice((pa.string(), pa.int32(), pa.date32())) if partitioned else pa.string()
    world = World(path, names, types, [], None, None, partitioned, 0, [])
    world.property_zone = chance.choice(ZONES) if chance.random() < 0.6 else None
    world.property_operator = "and" if chance.random() < 0.3 else None
    _fill(world, chance, random.Random(f"deleted:{seed}"))
    return world


def _fill(world: World, chance: random.Random, deleting: random.Random) -> None:
    """Write the rows of a world; half of the worlds then lose some of them by deletion vectors."""
    indexed = {
        f"indexing.typemap.{world.names['msg']}": "text",
        f"indexing.typemap.{world.names['level']}": "string",
    }
    late_index = chance.random() < 0.25
    options: dict[str, str] = {} if late_index else dict(indexed)
    options["write.maxRowsPerSplit"] = chance.choice(("3", "8", "1000"))
    if chance.random() < 0.2:
        options["dataSkippingNumIndexedCols"] = chance.choice(("0", "3"))
    if chance.random() < 0.2:
        options["stats.truncation.maxLength"] = "20"
        options["stats.truncation.strategy"] = chance.choice(("drop", "truncate"))
    deletes = deleting.random() < 0.5
    if deletes:
        options["deletionVectors.foldShare"] = "1.0"
    world.remarks.append(f"{'late index, ' if late_index else ''}{options}")
    partition_by = [world.names["p"]] if world.partitioned else []
    table = it.Table.create(str(world.path), world.schema, partition_by=partition_by, options=options)
    given = {"timeZone": world.property_zone, "search.defaultOperator": world.property_operator}
    properties = {key: value for key, value in given.items() if value is not None}
    if properties:
        table.update_properties(properties)
    rows: list[dict[str, Any]] = []
    world.versions.append((table.version, []))
    commits, ids = chance.choice((1, 2, 4)), count()
    for number in range(commits):
        if late_index and number == commits - 1:
            table.update_properties(indexed)
            world.searchable_from = table.version
        made = [_row(world, chance, next(ids)) for _ in range(chance.choice((1, 5, 12)))]
        table.append(
            world.arrow(made),
            options=options
            if not late_index
            else {"write.maxRowsPerSplit": options["write.maxRowsPerSplit"]},
        )
        rows = rows + made
        world.versions.append((table.version, rows))
        if deletes and len(rows) > 1:
            gone = {row["id"] for row in deleting.sample(rows, (len(rows) + 1) // 3)}
            table.delete(f"id IN ({', '.join(map(str, gone))})")
            rows = [row for row in rows if row["id"] not in gone]
            world.versions.append((table.version, rows))
            world.remarks.append(f"deleted {len(gone)}")
    if chance.random() < 0.2:
        table.checkpoint()
        world.remarks.append("checkpoint")
    if chance.random() < 0.15:
        table.merge_splits()
        world.versions.append((table.version, rows))
        world.remarks.append("merged")
    if chance.random() < 0.2:
        _damage(world, table, chance)


def _damage(world: World, table: Any, chance: random.Random) -> None:
    """Overwrite the index of one split: searches have to notice and scan its rows."""
    files = [row for row in table.files().to_pylist() if row["index_length"]]
    if not files:
        return
    chosen = chance.choice(files)
    path = world.path / chosen["path"]
    content = bytearray(path.read_bytes())
    first = chosen["index_offset"]
    content[first : first + chosen["index_length"]] = bytes(chosen["index_length"])
    path.write_bytes(content)
    world.remarks.append("damaged index")


def _row(world: World, chance: random.Random, number: int) -> dict[str, Any]:
    row = {role: _value(role, chance, world.types[role]) for role in world.names if role != "id"}
    return {"id": number, **row}


def _value(role: str, chance: random.Random, kind: pa.DataType, *, none: bool = True) -> Any:
    if none and role != "p" and chance.random() < 0.12:
        return None
    if role == "msg":
        glue = chance.choice((" ", ", ", "-", " / "))
        return glue.join(chance.choice(WORDS) for _ in range(chance.randrange(6))).capitalize()
    if role == "p":
        drawn = chance.choice((1, 2, 10, None))
        if drawn is None:
            return None
        return (
            dt.date(2024, 1, drawn)
            if pa.types.is_date(kind)
            else str(drawn)
            if pa.types.is_string(kind)
            else drawn
        )
    if role == "k":
        return {"a": chance.choice((1, None)), "b": chance.choice((["x", None], [], None))}
    if role == "ts":
        return chance.choice(MOMENTS).replace(tzinfo=dt.UTC)
    pools: dict[str, Any] = {
        "n": NUMBERS, "x": DOUBLES, "s": TEXTS, "level": LEVELS, "tn": WALL_TIMES, "b": (True, False),
        "d": (dt.date(2024, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29)),
        "dec": (Decimal("1.50"), Decimal("-0.01"), Decimal("99999999.99"), Decimal("0.00")),
        "id": (0, 5),
    }  # fmt: skip
    drawn = chance.choice(pools[role])
    return (
        chance.choice([item for item in pools[role] if item is not None])
        if drawn is None and not none
        else drawn
    )


def _distinct(name: str, taken: dict[str, str], role: str) -> str:
    lowered = {held.lower() for held in taken.values()}
    return name if name.lower() not in lowered else f"{role}_{len(taken)}"
