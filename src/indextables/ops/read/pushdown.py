"""Runs a query over the rows of many local splits in DuckDB, in place of reading the rows here.

DuckDB decodes, filters and groups in one pass, keeps no rows, and takes several files in one query.
It is given the splits that it reads exactly as they are read here, and a filter of which it says the
same (`duck.conditions`); the caller reads the other splits. The bytes that it reads are checked
before: the pages of the columns, and the footer, by whose statistics it skips row groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from indextables.duck import database
from indextables.duck.conditions import condition_of
from indextables.errors import DamagedIndexError
from indextables.lazy import later
from indextables.log.snapshot import Snapshot
from indextables.ops.table_settings import settings_of
from indextables.predicate.tree import columns_of
from indextables.records import dataclass
from indextables.runtime import check_cancelled
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_split
from indextables.split.read.read_ahead import at_once
from indextables.split.read.rows import SplitReader
from indextables.split.read.sparse import can_decode
from indextables.split.source import SplitFile

if TYPE_CHECKING:
    from indextables.predicate.tree import Node
    from indextables.split.search import narrowing
else:
    narrowing = later("indextables.split.search.narrowing")

WORTH_A_QUERY = 1 << 19
"""From this many values on, reading rows takes longer than DuckDB needs to plan a query."""
VALUES_AT_ONCE = 1 << 26
"""A query that runs cannot be given up; it reads no more values than this, unless one file has more."""
MOST_SPLITS = 1024
"""More splits than this are opened by the threads that read them, not one after the other."""
WORTH_STATISTICS = 1 << 21
"""Columns of less weight than this are checked faster than the statistics of their row groups are."""


@dataclass(frozen=True, slots=True)
class DuckQuery:
    """A query over the rows that a filter keeps: what it selects, from which columns, and its GROUP BY."""

    select: str
    columns: Sequence[str] = ()
    group_by: str = ""


def run_in_duckdb(
    snapshot: Snapshot, refs: Sequence[SplitRef], where: Node | None, query: DuckQuery
) -> tuple[pa.Table | None, Sequence[SplitRef]]:
    """The results of a query, one below the other, and the splits that are not part of them.

    There are several results over very many rows. None with all splits where DuckDB is no help:
    few values, or a filter that it may decide otherwise. Splits in which the index leaves few rows to read
    are not part of the results either.
    """
    columns = _columns(where, query.columns)
    values = sum(ref.num_records or 0 for ref in refs) * len(columns)
    if not 0 < len(refs) <= MOST_SPLITS or values < WORTH_A_QUERY or not columns:
        return None, refs
    condition = "TRUE" if where is None else condition_of(where)
    if condition is None:
        return None, refs
    readers, left = _readers(snapshot, refs, where, columns)
    results = []
    for some in _batches(readers, len(columns)):
        check_cancelled()
        if not all(reader.has_intact_footer() for reader in some):
            # Rows can be read without their footer.
            return None, refs
        at_once(lambda reader: reader.check(columns), some)
        rows = database.scan(*(path for reader in some if (path := reader.source.local) is not None))
        try:
            results.append(
                database.run(f"SELECT {query.select} FROM {rows} WHERE {condition} {query.group_by}")
            )
        except database.DuckError:
            return None, refs
    return (pa.concat_tables(results), left) if results else (None, refs)


def _columns(where: Node | None, columns: Sequence[str]) -> list[str]:
    """The top-level columns that the filter and the query need."""
    if where is None:
        return list(columns)
    return list(dict.fromkeys([*columns, *sorted(column.path[0] for column in columns_of(where))]))


def _readers(
    snapshot: Snapshot, refs: Sequence[SplitRef], where: Node | None, columns: Sequence[str]
) -> tuple[list[SplitReader], list[SplitRef]]:
    """The splits that DuckDB can read, opened, and those that it cannot."""
    readers, left = [], []
    for ref in refs:
        # Splits on other machines are not even opened here, one after the other. DuckDB knows no vectors.
        is_plain = ref.vector is None and ref.elsewhere is None
        if is_plain and SplitFile.of(snapshot.store, ref.path).local is not None:
            reader = open_split(snapshot.store, ref)
            if (
                _can_read(reader, ref, snapshot.schema, columns)
                and _reads_all(reader, ref, columns, where)
                and not _leaves_few(snapshot, ref, where)
            ):
                readers.append(reader)
                continue
        left.append(ref)
    return readers, left


def _can_read(reader: SplitReader, ref: SplitRef, schema: pa.Schema, columns: Sequence[str]) -> bool:
    """Whether the file has the columns as the table has them, in types that DuckDB reads as pyarrow does."""
    path, stored = reader.source.local, reader.stored_schema
    if path is None or stored is None:
        return False
    same = all(
        name not in ref.partition_values
        and name in stored.names
        and stored.field(name).type == schema.field(name).type
        for name in columns
    )
    return same and can_decode(path, stored, columns)


def _reads_all(reader: SplitReader, ref: SplitRef, columns: Sequence[str], where: Node | None) -> bool:
    """Whether no row group is ruled out; else reading those that are left is less work than checking all."""
    if where is None or reader.weight(dict.fromkeys(reader.groups), columns) < WORTH_STATISTICS:
        return True
    return all(reader.groups_left(where, ref.partition_values))


def _leaves_few(snapshot: Snapshot, ref: SplitRef, where: Node | None) -> bool:
    """Whether the index of a split leaves so few rows that they are read one by one."""
    if where is None:
        return False
    index = narrowing.index_for(snapshot.reading, ref, where, settings_of(snapshot))
    try:
        return index is not None and narrowing.rows_left(index, where) is not None
    except DamagedIndexError:
        # Whoever reads the rows says so.
        return False


def _batches(readers: Sequence[SplitReader], columns: int) -> list[list[SplitReader]]:
    """The splits of each query: as many as have the values that one query may read."""
    batches: list[list[SplitReader]] = []
    values = 0
    for reader in readers:
        values += reader.rows * columns
        if not batches or values > VALUES_AT_ONCE:
            batches.append([])
            values = reader.rows * columns
        batches[-1].append(reader)
    return batches
