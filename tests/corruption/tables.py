"""Tables to damage, as files in memory, with what every version of them holds.

One table per form of log and checkpoint: compressed and plain, one document,
parts, Parquet. What a version holds is written down while the table is made,
by a model that shares nothing with the reader: a list of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

import indextables as it
from indextables.storage.store import open_store
from indextables.storage.stores.memory import forget_memory

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("day", pa.string())])
WORDS = ("alpha", "beta", "gamma", "delta")
MANY = 1200
"""Rows of which half are too many for a vector inside the log."""
COMMON = {"indexing.typemap.text": "text", "checkpoint.interval": "4"}
FORMS: Mapping[str, Mapping[str, str]] = {
    "json": {"checkpoint.format": "json"},
    "plain": {"checkpoint.format": "json", "transaction.compression.enabled": "false"},
    "parts": {"checkpoint.format": "json", "checkpoint.actionsPerPart": "2"},
    "parquet": {"checkpoint.format": "parquet"},
    "parquet parts": {"checkpoint.format": "parquet", "checkpoint.actionsPerPart": "2"},
    "vectors": {"checkpoint.format": "parquet", "deletionVectors.foldShare": "0.9"},
}

Row = tuple[int, str, str]
Rows = tuple[Row, ...]


@dataclass(frozen=True)
class Template:
    """A sound table: its files by path, and the rows of each of its versions."""

    form: str
    files: Mapping[str, bytes]
    truth: Mapping[int, Rows]
    options: Mapping[str, str]

    @property
    def newest(self) -> int:
        """The last version."""
        return max(self.truth)


@dataclass
class _Growing:
    """A table while it is made, beside the model of it."""

    table: it.Table
    rows: list[Row] = field(default_factory=list)
    truth: dict[int, Rows] = field(default_factory=dict)
    next_id: int = 0

    def note(self) -> None:
        """Write down what this version holds, and every version a checkpoint's own commit put before it."""
        for version in range(max(self.truth, default=-1) + 1, self.table.version):
            self.truth[version] = self.truth[version - 1]
        self.truth[self.table.version] = tuple(sorted(self.rows))

    def append(self, count: int, day: str) -> None:
        fresh = [
            (number, f"{WORDS[number % 4]} row{number:03d}", day)
            for number in range(self.next_id, self.next_id + count)
        ]
        self.next_id += count
        self.table.append(table_of(fresh))
        self.rows += fresh
        self.note()

    def delete(self, least: int, beyond: int) -> None:
        self.table.delete(f"id >= {least} AND id < {beyond}")
        self.rows = [row for row in self.rows if not least <= row[0] < beyond]
        self.note()

    def delete_every_other(self, least: int) -> None:
        self.table.delete(f"id >= {least} AND id % 2 = 1")
        self.rows = [row for row in self.rows if row[0] < least or row[0] % 2 == 0]
        self.note()

    def merge(self) -> None:
        self.table.merge_splits()
        self.note()


def table_of(rows: list[Row]) -> pa.Table:
    """Rows as a table takes them."""
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(SCHEMA.names)}, SCHEMA)


def make(form: str, first_id: int = 0) -> Template:
    """Grow a table of one form through the real write path, and take its files."""
    options = {**COMMON, **FORMS[form]}
    uri = f"memory://template-{form.replace(' ', '-')}-{first_id}"
    growing = _Growing(it.Table.create(uri, SCHEMA, ["day"], options=options), next_id=first_id)
    growing.note()
    for day in ("d1", "d2", "d1"):
        growing.append(3, day)
    growing.delete(first_id + 1, first_id + 3)
    growing.append(4, "d2")
    growing.merge()
    for day in ("d1", "d2", "d2"):
        growing.append(2, day)
    growing.delete(first_id + 10, first_id + 11)
    growing.append(3, "d1")
    if form == "vectors":
        least = growing.next_id
        growing.append(MANY, "d2")
        growing.delete_every_other(least)
        growing.append(2, "d1")
    store = open_store(uri)
    files = {meta.path: store.get(meta.path) for meta in store.list()}
    forget_memory(uri.removeprefix("memory://"))
    return Template(form, files, growing.truth, options)
