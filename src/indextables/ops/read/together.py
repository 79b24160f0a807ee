"""One question about the rows of many splits, put to DuckDB in one query.

Only splits that DuckDB reads exactly as they are read here take part; the caller is told
which are left. Nothing is asked if a filter has trigrams, which leave fewer rows to look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from indextables.log.snapshot import Snapshot
from indextables.model.actions import AddAction
from indextables.ops.table_settings import settings_of
from indextables.records import dataclass
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_split
from indextables.split.read.rows import SplitReader
from indextables.split.source import Source
from indextables.storage import duck

if TYPE_CHECKING:
    from indextables.predicate.tree import Node

MOST_FILES = 1024
"""More files than this are small ones or too many rows to wait for without a sign of progress."""

Answer = tuple[pa.Table | None, list[AddAction]]
"""The result for some splits, if there is one, and the splits it does not cover."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query about the rows that a filter keeps: what is selected, from which columns, and its end."""

    select: str
    columns: Sequence[str] = ()
    end: str = ""


def ask(snapshot: Snapshot, adds: list[AddAction], node: Node | None, asked: Asked) -> Answer:
    """Put a query about the rows of splits to DuckDB."""
    names = _names(node, asked.columns)
    if not adds or not names or len(adds) > MOST_FILES or _has_trigrams(snapshot, node):
        return None, adds
    from indextables.split.read.duck_scan import checked_table, is_worth_asking
    from indextables.split.read.sql_condition import condition

    kept = "TRUE" if node is None else condition(node)
    if kept is None:
        return None, adds
    readers, left = _readers(snapshot, adds, node, names)
    if not readers or not is_worth_asking(readers, names):
        return None, adds
    table = checked_table(readers, names)
    if table is None:
        return None, adds
    try:
        return duck.run(f"SELECT {asked.select} FROM {table} WHERE {kept} {asked.end}"), left
    except duck.QueryError:
        return None, adds


def _names(node: Node | None, columns: Sequence[str]) -> list[str]:
    """The top-level columns that the answer needs."""
    if node is None:
        return list(columns)
    from indextables.predicate.tree import columns_of

    return list(dict.fromkeys([*columns, *sorted(column.path[0] for column in columns_of(node))]))


def _has_trigrams(snapshot: Snapshot, node: Node | None) -> bool:
    if node is None:
        return False
    from indextables.split.substring import fields_of, needed_trigrams

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
