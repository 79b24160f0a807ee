"""Random Delta tables with real rows: the log is written here, so what is in every file is known.

A world has columns of all types, perhaps nested, perhaps more than statistics
cover, that were added, dropped, renamed, swapped or widened on the way; none to
three partition columns; files with deletion vectors; statistics as Spark or
delta-rs would write them; checkpoints of any kind with text or typed statistics.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import random
import struct
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from indextables.model.calendar import format_date, format_timestamp
from support.deltarows import inline_vector
from support.deltatables import KINDS, DeltaLog, add, remove

DAY = 86_400_000_000
INDEXED = 32
START = 1_704_067_200_000_000  # 2024-01-01
WORDS = ["", "a", "ab", "abc", "b", "é", "zz", "x" * 40, "x" * 40 + "y", "\U0001f600", "%_"]
ARROW: dict[str, pa.DataType] = {
    "byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(), "long": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "boolean": pa.bool_(),
    "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"),
    "decimal(12,2)": pa.decimal128(12, 2), "decimal(25,5)": pa.decimal128(25, 5), "binary": pa.binary(),
}  # fmt: skip
WIDER = {"byte": "short", "short": "integer", "integer": "long", "float": "double"}
TYPED = frozenset({"byte", "short", "integer", "long", "string"})


@dataclass(frozen=True)
class Col:
    """A column: what users call it, what files call it, its type and the types it had."""

    name: str
    physical: str
    kind: str
    was: tuple[str, ...] = ()
    inside: bool = False
    """Whether it is the field `v` of a struct."""

    @property
    def sql(self) -> str:
        return f"{self.name}.v" if self.inside else self.name


@dataclass
class World:
    """A table, and the rows of each live file by logical name, in the internal form of predicates."""

    log: DeltaLog
    columns: list[Col]
    partitions: list[Col]
    mapped: bool
    engine: str
    files: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    keys: dict[str, dict[str, Any]] = field(default_factory=dict)
    number: int = 0

    def live(self) -> dict[str, list[dict[str, Any]]]:
        """Rows by path, under today's names."""
        found = {}
        for path, rows in self.files.items():
            parts = self.keys[path]
            shown = []
            for row in rows:
                values = {col.name: row.get(col.physical) for col in self.columns}
                values = {
                    col.name: ({"v": values[col.name]} if col.inside else values[col.name])
                    for col in self.columns
                }
                shown.append(values | {col.name: parts[col.physical] for col in self.partitions})
            found[path] = shown
        return found


def value_of(kind: str, rng: random.Random) -> Any:
    """A value in the internal form."""
    if kind in {"byte", "short", "integer", "long"}:
        return rng.choice([-5, 0, 1, 2, 3, 50, 60, 100])
    if kind in {"float", "double"}:
        value = rng.choice([-1.5, -0.0, 0.0, 2.5, 3.4, 1e10, math.inf, math.nan, 7.25])
        return struct.unpack("<f", struct.pack("<f", value))[0] if kind == "float" else value
    if kind == "string":
        return rng.choice(WORDS)
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "date":
        return 19_723 + rng.randint(-3, 3)
    if kind.startswith("timestamp"):
        return START + rng.randint(-30, 30) * DAY // 24 + rng.choice([0, 1, 999, 123_456])
    if kind == "decimal(12,2)":
        return Decimal(rng.randint(-300, 300)).scaleb(-2)
    if kind == "decimal(25,5)":
        return Decimal(
            rng.choice([1, 12345678901234567890, 12345678901234567891, -98765432109876543])
        ).scaleb(-5)
    return bytes([rng.randint(0, 3)])


def arrow_array(values: list[Any], kind: str) -> pa.Array:
    """Internal values as Arrow."""
    base = {"date": pa.int32(), "timestamp": pa.int64(), "timestamp_ntz": pa.int64()}.get(kind)
    return pa.array(values, ARROW[kind]) if base is None else pa.array(values, base).cast(ARROW[kind])


def _text(value: Any, kind: str, *, upper: bool) -> str:
    """A minimum or maximum as JSON."""
    if kind == "string":
        return json.dumps(
            value if len(value) <= INDEXED else value[:INDEXED] + ("\U0010ffff" if upper else "")
        )
    if kind == "date":
        return json.dumps(format_date(value))
    if kind.startswith("timestamp"):
        cut = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=value // 1000)
        return json.dumps(cut.isoformat(timespec="milliseconds") + ("Z" if kind == "timestamp" else ""))
    if isinstance(value, Decimal):
        return format(value, "f")
    if kind in {"float", "double"}:
        if math.isnan(value) or math.isinf(value):
            return json.dumps({True: "NaN"}.get(math.isnan(value), "Infinity" if value > 0 else "-Infinity"))
        return pa.scalar(value, ARROW[kind]).cast(pa.string()).as_py() if kind == "float" else repr(value)
    return str(value)


def statistics(rows: list[dict[str, Any]], columns: list[Col], engine: str, *, tight: bool) -> str:
    """What a writer says of a file, for the columns it covers."""
    groups: dict[str, list[str]] = {"minValues": [], "maxValues": [], "nullCount": []}
    for col in columns[:INDEXED]:
        values = [row[col.physical] for row in rows if row[col.physical] is not None]
        name = json.dumps(col.physical)
        shape = f'{name}: {{"v": %s}}' if col.inside else f"{name}: %s"
        groups["nullCount"].append(shape % (len(rows) - len(values)))
        if col.kind in {"binary", "boolean"}:
            continue
        numbers = [value for value in values if not (isinstance(value, float) and math.isnan(value))]
        if not numbers:
            continue
        least, greatest = _ends(numbers)
        if len(numbers) < len(values) and engine == "spark":
            greatest = math.nan
        # delta-rs keeps decimals as doubles.
        if isinstance(least, Decimal) and engine == "rust":
            ends = [repr(float(least)), repr(float(greatest))]
        else:
            ends = [_text(least, col.kind, upper=False), _text(greatest, col.kind, upper=True)]
        groups["minValues"].append(shape % ends[0])
        groups["maxValues"].append(shape % ends[1])
    body = ", ".join(f'"{group}": {{{", ".join(items)}}}' for group, items in groups.items())
    return f'{{"numRecords": {len(rows)}, {body}, "tightBounds": {str(tight).lower()}}}'


def _ends(values: list[Any]) -> tuple[Any, Any]:
    if isinstance(values[0], str):
        return min(values, key=str.encode), max(values, key=str.encode)
    return min(values), max(values)


def _schema(world: World) -> str:
    fields = []
    for at, col in enumerate([*world.columns, *world.partitions]):
        metadata: dict[str, Any] = {}
        if world.mapped:
            metadata = {
                "delta.columnMapping.id": at + 1, "delta.columnMapping.physicalName": col.physical,
            }  # fmt: skip
        if col.was:
            steps = zip(col.was, (*col.was[1:], col.kind))
            metadata["delta.typeChanges"] = [{"fromType": old, "toType": new} for old, new in steps]
        kind: Any = col.kind
        if col.inside:
            leaf = {"name": "v", "type": col.kind, "nullable": True, "metadata": {}}
            if world.mapped:
                leaf["metadata"] = {
                    "delta.columnMapping.id": 100 + at, "delta.columnMapping.physicalName": "v",
                }  # fmt: skip
            kind = {"type": "struct", "fields": [leaf]}
        fields.append({"name": col.name, "type": kind, "nullable": True, "metadata": metadata})
    return json.dumps({"type": "struct", "fields": fields})


def _commit(world: World, *actions: dict[str, Any]) -> None:
    info = {"spark": "Apache-Spark/4.0.0 Delta-Lake/4.0.0", "rust": "delta-rs:py-1.0.0"}[world.engine]
    world.log.commit({"commitInfo": {"engineInfo": info, "timestamp": 1}}, *actions)


def _partition_text(value: Any, kind: str) -> str | None:
    if value is None:
        return None
    if kind == "date":
        return format_date(value)
    if kind.startswith("timestamp"):
        return format_timestamp(value) + ("Z" if kind == "timestamp" else "")
    return str(value).lower() if kind == "boolean" else str(value)


def write_file(world: World, rng: random.Random) -> None:
    """Write a data file of some rows and commit it."""
    world.number += 1
    path = f"part {world.number}.parquet"
    rows = []
    base = rng.random()
    for _ in range(rng.choice([1, 2, 3, 6])):
        row = {
            col.physical: None if rng.random() < 0.2 * (base < 0.5) else value_of(col.kind, rng)
            for col in world.columns
        }
        rows.append(row | {"id": world.number * 100 + len(rows)})
    parts = {
        col.physical: None if rng.random() < 0.2 else value_of(col.kind, rng) for col in world.partitions
    }
    parts = {name: None if value == "" else value for name, value in parts.items()}
    arrays = {}
    for col in world.columns:
        array = arrow_array([row[col.physical] for row in rows], col.kind)
        arrays[col.physical] = pa.StructArray.from_arrays([array], ["v"]) if col.inside else array
    target = f"{world.log.store.local_path('')}/{path}"
    pq.write_table(pa.table(arrays), target)
    with open(target, "rb") as written:  # noqa: PTH123 - its size
        size = len(written.read())
    kinds = {col.physical: col.kind for col in world.partitions}
    texts = {name: _partition_text(value, kinds[name]) for name, value in parts.items()}
    body = add(path, size=size, partitionValues=texts)
    if rng.random() < 0.9:
        body["add"]["stats"] = statistics(rows, world.columns, world.engine, tight=True)
    _commit(world, body)
    world.files[path], world.keys[path] = rows, parts
    if rng.random() < 0.2:
        delete_rows(world, path, rng)


def delete_rows(world: World, path: str, rng: random.Random) -> None:
    """Hide some rows of a file behind a deletion vector; its statistics become wide."""
    rows = world.files[path]
    gone = sorted(rng.sample(range(len(rows)), rng.randint(1, len(rows))))
    old = world.log.live[path, None]
    changed = {**old, "deletionVector": inline_vector(gone)}
    if "stats" in changed:
        changed["stats"] = changed["stats"].replace('"tightBounds": true', '"tightBounds": false')
    _commit(world, remove(path), {"add": changed})
    world.files[path] = [row for at, row in enumerate(rows) if at not in gone]


def evolve(world: World, rng: random.Random) -> None:
    """Change the columns: add one, and widen one or, where names are mapped, rename, swap or drop."""
    columns = world.columns
    choice = rng.randrange(4)
    at = rng.randrange(1, len(columns))
    if choice == 0:
        name = f"late{world.number}"
        columns.append(Col(name, f"col-{name}" if world.mapped else name, rng.choice(list(ARROW))))
    elif not world.mapped:
        wider = WIDER.get(columns[at].kind)
        if wider is not None:
            columns[at] = replace(columns[at], kind=wider, was=(*columns[at].was, columns[at].kind))
    elif choice == 1:
        columns[at] = replace(columns[at], name=f"renamed{world.number}")
    elif choice == 2 and len(columns) > 3:
        del columns[at]
    else:
        other = rng.randrange(1, len(columns))
        one, two = columns[at], columns[other]
        columns[at], columns[other] = replace(one, name=two.name), replace(two, name=one.name)
        if at == other:
            columns[at] = one
    world.log.metadata = {**world.log.metadata, "schemaString": _schema(world)}
    _commit(world, {"metaData": world.log.metadata})


def checkpoint(world: World, rng: random.Random) -> None:
    """A checkpoint of any kind, with text or typed statistics, perhaps without the commits below it."""
    typed = [col for col in world.columns[:INDEXED] if col.kind in TYPED and not col.inside]
    parsed = None
    if typed and rng.random() < 0.6:
        bounds = pa.struct([(col.physical, ARROW[col.kind]) for col in typed])
        counts = pa.struct([(col.physical, pa.int64()) for col in typed])
        parsed = pa.struct(
            [("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds), ("nullCount", counts),
             ("tightBounds", pa.bool_())]
        )  # fmt: skip
    world.log.checkpoint(
        rng.choice(KINDS), parsed=parsed, text=parsed is None or rng.random() < 0.5, hint=rng.random() < 0.7
    )
    if rng.random() < 0.4:
        world.log.drop_commits(world.log.version)


def compact(world: World) -> None:
    """A log compaction file over all commits but the newest."""
    log = world.log
    lines = [{"protocol": log.protocol}, {"metaData": log.metadata}]
    live = [{"add": body} for body in log.history[log.version - 1].values()]
    gone = [{"remove": body} for body in log.tombstones]
    kept = {json.dumps([line["add"]["path"], line["add"].get("deletionVector")]) for line in live}
    gone = [
        line for line in gone
        if json.dumps([line["remove"]["path"], line["remove"].get("deletionVector")]) not in kept
    ]  # fmt: skip
    body = "".join(json.dumps(line) + "\n" for line in [*lines, *live, *gone])
    log.store.put(f"_delta_log/{0:020d}.{log.version - 1:020d}.compacted.json", body.encode())


def build(store: Any, seed: int) -> World:
    """A table from a seed."""
    rng = random.Random(seed)
    mapped = rng.random() < 0.5
    kinds = [rng.choice(list(ARROW)) for _ in range(rng.choice([3, 6, 6, 40]))]
    names = [f"c{at}" for at in range(len(kinds))]
    columns = [Col("id", "id", "long")]
    columns += [
        Col(name, f"col-{name}" if mapped and rng.random() < 0.5 else name, kind, inside=rng.random() < 0.2)
        for name, kind in zip(names, kinds)
    ]
    simple = [kind for kind in ARROW if kind not in {"binary", "float", "double"}]
    partitions = [Col(f"p{at}", f"p{at}", rng.choice(simple)) for at in range(rng.choice([0, 0, 1, 3]))]
    world = World(None, columns, partitions, mapped, rng.choice(["spark", "rust"]))  # type: ignore[arg-type]
    world.log = DeltaLog(
        store, _schema(world), tuple(col.name for col in partitions),
        features=("deletionVectors", "v2Checkpoint", "columnMapping", "timestampNtz", "typeWidening"),
        configuration={"delta.columnMapping.mode": "name"} if mapped else {},
    )  # fmt: skip
    for _ in range(rng.randint(2, 7)):
        write_file(world, rng)
        if rng.random() < 0.35:
            evolve(world, rng)
        if len(world.files) > 2 and rng.random() < 0.2:
            path = rng.choice(list(world.files))
            (key,) = [key for key in world.log.live if key[0] == path]
            body = remove(path, dv=world.log.live[key].get("deletionVector"))
            _commit(world, body)
            del world.files[path]
        if rng.random() < 0.25:
            checkpoint(world, rng)
    if (
        rng.random() < 0.15
        and world.log.version > 8
        and not world.log.store.list_level("_delta_log/_sidecars")
    ):
        compact(world)
    return world
