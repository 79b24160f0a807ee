"""All rows of local splits as one table of DuckDB, for counts and groups of many rows.

DuckDB decodes, filters and groups in one pass and keeps no rows, and several files take one query. The
bytes it reads are checked first: the pages of the columns, and the footer, by whose statistics
DuckDB skips row groups. Whoever asks falls back to reading rows where DuckDB cannot be asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from indextables.duck import database
from indextables.split.read.read_ahead import at_once
from indextables.split.read.rows import SplitReader
from indextables.split.read.sparse import can_decode

if TYPE_CHECKING:
    from indextables.predicate.tree import Node
    from indextables.split.layout import SplitRef

WORTH_A_LOOK = 1 << 21
"""Columns of less weight than this are checked faster than the statistics of their row groups are."""


def can_ask(
    reader: SplitReader, ref: SplitRef, schema: pa.Schema, columns: Sequence[str], where: Node | None
) -> bool:
    """Whether DuckDB gives all rows of a split as the table has them, and all have to be looked at.

    If statistics rule out row groups of large columns, reading the others is less work than checking all.
    """
    path, stored = reader.source.local, reader.stored_schema
    if path is None or stored is None or not columns:
        return False
    elsewhere = ref.partition_values
    for name in columns:
        if (
            name in elsewhere
            or name not in stored.names
            or stored.field(name).type != schema.field(name).type
        ):
            return False
    if not can_decode(path, stored, columns):
        return False
    if where is None or reader.weight(dict.fromkeys(reader.groups), columns) < WORTH_A_LOOK:
        return True
    return all(reader.groups_left(where, elsewhere))


def checked_table(readers: Sequence[SplitReader], columns: Sequence[str]) -> str | None:
    """The rows of splits as a table of a query; None if a footer is damaged, without which rows can be read.

    A page that is not what was written is an error here already.
    """
    if not all(reader.has_intact_footer() for reader in readers):
        return None
    at_once(lambda reader: reader.check(columns), readers)
    return database.scan(*(path for reader in readers if (path := reader.source.local) is not None))
