"""Lists in a table: how a client appends to them and reads them, through the public verbs of `Table`.

There are three forms of a list, since there are three ways to add to something that others add to:

- `rows`: an element is a row, an append of several rows is a transaction, and readers also follow;
- `replaced`: the same rows, but a transaction reads all lists and overwrites the table with the elements of all
  and one more, `expected_version` being the version that it read;
- `cells`: a list is the text of one row, and UPDATE adds an element to what it finds there.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from indextables.ops.read.follow import Follower
from indextables.table import Table
from lists.checker import Append, Read

SCHEMA = pa.schema([("id", pa.string()), ("k", pa.int64()), ("n", pa.int64()), ("body", pa.string())])
FORMS = ("rows", "replaced", "cells")
KEYS = ("key0", "key1", "key2")


def element_rows(elements: list[tuple[str, str]]) -> pa.Table:
    """Keys and elements as rows: the element is the id, and the key a word that can be searched."""
    return pa.table(
        {
            "id": [element for _, element in elements],
            "k": [int(element[-1]) % 2 for _, element in elements],
            "n": [int(key[-1]) for key, _ in elements],
            "body": [key for key, _ in elements],
        },
        SCHEMA,
    )


def first_cells() -> pa.Table:
    """The empty lists that a table of cells begins with."""
    numbers = [int(key[-1]) for key in KEYS]
    return pa.table(
        {"id": list(KEYS), "k": [n % 2 for n in numbers], "n": numbers, "body": [""] * len(KEYS)}, SCHEMA
    )


def draw_appends(chance: random.Random, new_element: Callable[[], str]) -> list[Append]:
    """Elements for one list or several."""
    keys = [chance.choice(KEYS) for _ in range(chance.choice((1, 1, 2, 3)))]
    return [Append(key, new_element()) for key in keys]


def read_lists(table: Table, form: str) -> list[Read]:
    """All lists, by a scan."""
    if form == "cells":
        rows = table.scan(columns=["id", "body"]).read_all().to_pylist()
        return [Read.of_list(row["id"], row["body"].split()) for row in rows]
    lists: dict[str, list[str]] = {key: [] for key in KEYS}
    for row in table.scan(columns=["id", "n"]).read_all().to_pylist():
        lists[f"key{row['n']}"].append(row["id"])
    return [Read.of_set(key, elements) for key, elements in lists.items()]


def read_some_lists(table: Table, form: str, chance: random.Random) -> list[Read]:
    """All lists, or one by a filter or a search."""
    way = chance.choice(("scan", "scan", "filter", "search"))
    key = chance.choice(KEYS)
    if form == "cells" or way == "scan":
        return read_lists(table, form)
    if way == "filter":
        rows = table.scan(where=f"n = {key[-1]}", columns=["id"])
    else:
        rows = table.search(f"body:{key}", columns=["id"])
    return [Read.of_set(key, rows.read_all()["id"].to_pylist())]


def append_rows(table: Table, appends: list[Append]) -> int | None:
    """One commit with a row for each element; the version it became."""
    return table.append(element_rows([(item.key, item.element) for item in appends])).version


def replace_rows(table: Table, reads: list[Read], appends: list[Append], version: int) -> int | None:
    """Write every element that was read and the new ones, if the table is still what was read."""
    elements = [(read.key, element) for read in reads for element in read.elements]
    elements += [(item.key, item.element) for item in appends]
    return table.overwrite(element_rows(elements), expected_version=version).version


def update_cells(table: Table, appends: list[Append], reads: dict[str, Read]) -> int | None:
    """Add elements to the text of their lists; `reads` gets what UPDATE finds there."""
    added: dict[str, list[str]] = defaultdict(list)
    for item in appends:
        added[item.key].append(item.element)

    def longer(rows: pa.Table) -> pa.Array:
        texts = []
        for key, text in zip(rows["id"].to_pylist(), rows["body"].to_pylist(), strict=True):
            reads[key] = Read.of_list(key, text.split())
            texts.append(" ".join([*text.split(), *added[key]]))
        return pa.array(texts, pa.string())

    names = ", ".join(f"'{key}'" for key in sorted(added))
    return table.update(f"id IN ({names})", {"body": longer}).version


class Stream:
    """A follower of a table of rows, and what it was given so far, commit by commit."""

    def __init__(self, log: Any) -> None:
        self.follower = Follower(log, columns=["id", "n"], after=0)
        self._given: list[tuple[int, list[tuple[str, str]]]] = []

    def reads(self) -> Iterator[Read]:
        """Take what is new; every list in the order of the commits."""
        for rows in self.follower.poll():
            version = self.follower.version + 1
            elements = [(f"key{row['n']}", row["id"]) for row in rows.to_pylist()]
            if self._given and self._given[-1][0] == version:
                self._given[-1][1].extend(elements)
            else:
                self._given.append((version, elements))
        for key in KEYS:
            blocks = (tuple(element for at, element in given if at == key) for _, given in self._given)
            yield Read(key, tuple(block for block in blocks if block))
