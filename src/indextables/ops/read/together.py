"""One question about the rows of many splits, put to DuckDB in one query, or in a few over very many rows.

Only splits that DuckDB reads exactly as they are read here take part; the caller is told
which are left. Nothing is asked if a filter has trigrams, which leave fewer rows to look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from indextables.duck import database
from indextables.log.snapshot import Snapshot
from indextables.model.actions import AddAction
from indextables.model.stats import of_add
from indextables.ops.table_settings import settings_of
from indextables.records import dataclass
from indextables.runtime import check_cancelled
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_split
from indextables.split.read.rows import SplitReader
from indextables.split.source import Source

if TYPE_CHECKING:
    from indextables.predicate.tree import Node

WORTH_ASKING = 1 << 19
"""From so many values on, reading rows takes longer than DuckDB needs to plan a query."""
VALUES_AT_ONCE = 1 << 26
"""A query that runs cannot be given up; it reads no more values than this, unless one file has more."""
MOST_FILES = 1024
"""More files than this are opened by the threads that read them, not one after the other."""

Answer = tuple[pa.Table | None, list[AddAction]]
"""The results of queries over some splits, one below the other, if there are any, and the splits left out."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query about the rows that a filter keeps: what is selected, from which columns, and its end."""

    select: str
    columns: Sequence[str] = ()
    end: str = ""


def ask(snapshot: Snapshot, adds: list[AddAction], node: Node | None, asked: Asked) -> Answer:
    """Put a query about the rows of splits to DuckDB."""
    names = _names(node, asked.columns)
    if not names or not _is_worth_asking(adds, names) or _has_trigrams(snapshot, node):
        return None, adds
    from indextables.duck.conditions import condition
    from indextables.split.read.duck_scan import checked_table

    kept = "TRUE" if node is None else condition(node)
    if kept is None:
        return None, adds
    readers, left = _readers(snapshot, adds, node, names)
    found = []
    for some in _batches(readers, len(names)):
        check_cancelled()
        table = checked_table(some, names)
        if table is None:
            return None, adds
        try:
            found.append(database.run(f"SELECT {asked.select} FROM {table} WHERE {kept} {asked.end}"))
        except database.QueryError:
            return None, adds
    return (pa.concat_tables(found), left) if found else (None, adds)


def _batches(readers: Sequence[SplitReader], columns: int) -> list[list[SplitReader]]:
    """The splits of each query: as many as hold the values that may be read without looking up."""
    found: list[list[SplitReader]] = []
    size = 0
    for reader in readers:
        size += reader.rows * columns
        if not found or size > VALUES_AT_ONCE:
            found.append([])
            size = reader.rows * columns
        found[-1].append(reader)
    return found


def _names(node: Node | None, columns: Sequence[str]) -> list[str]:
    """The top-level columns that the answer needs."""
    if node is None:
        return list(columns)
    from indextables.predicate.tree import columns_of

    return list(dict.fromkeys([*columns, *sorted(column.path[0] for column in columns_of(node))]))


def _is_worth_asking(adds: Sequence[AddAction], names: Sequence[str]) -> bool:
    """Whether the log knows of enough values; no split is opened to find out."""
    if not 0 < len(adds) <= MOST_FILES:
        return False
    known = [of_add(add, null_counts=False).num_records or 0 for add in adds]
    return sum(known) * len(names) >= WORTH_ASKING


def _has_trigrams(snapshot: Snapshot, node: Node | None) -> bool:
    if node is None:
        return False
    from indextables.split.search.substring import fields_of, needed_trigrams

    return needed_trigrams(node, fields_of(settings_of(snapshot))) is not None


def _readers(
    snapshot: Snapshot, adds: Sequence[AddAction], node: Node | None, names: Sequence[str]
) -> tuple[list[SplitReader], list[AddAction]]:
    """The splits that can be asked, and those that cannot."""
    from indextables.split.read.duck_scan import can_ask

    readers, left = [], []
    for add in adds:
        # Splits elsewhere are not even opened here, one after the other.
        if Source.of(snapshot.store, add.path).local is not None:
            ref = SplitRef.of(add)
            reader = open_split(snapshot.store, ref)
            if can_ask(reader, ref, snapshot.schema, names, node):
                readers.append(reader)
                continue
        left.append(add)
    return readers, left
