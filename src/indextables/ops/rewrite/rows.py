"""Rewrites the rows of some splits as new splits, in their order and possibly without some rows.

One unit of work belongs to one partition and runs wherever the runtime has workers. A
source that cannot be read is left out and reported; the others are still rewritten. What
a failed attempt published is deleted again, since no commit can name it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from indextables.errors import (
    CorruptLogError,
    DamagedIndexError,
    DamagedSplitError,
    Error,
    SplitError,
    StorageError,
)
from indextables.index.query.tree import Query
from indextables.index.read.lookup import Index
from indextables.index.settings import IndexSpec
from indextables.lazy import pc
from indextables.log.format.protocol import check_writable
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.model.arrays import integers
from indextables.model.truncation import NOTHING_TRUNCATED, Truncated
from indextables.ops.constraints import Check, check_rows, checks_of
from indextables.ops.table_settings import require_parquet, settings_of
from indextables.options import Options
from indextables.predicate.evaluate.rows import mask
from indextables.predicate.tree import Node, columns_of
from indextables.reading import Reading
from indextables.split.layout import SplitRef
from indextables.split.open_splits import at_hand, open_index, open_split
from indextables.split.read.rows import to_table_schema
from indextables.split.search.run import hits_split
from indextables.split.search.selection import Selection
from indextables.split.write.build import BuiltSplit, build_splits
from indextables.storage.store import Store

_NO_LIMIT = 1 << 60
REINDEX_BELOW_BYTES = 1 << 20
"""Sources whose rows have fewer bytes on average are indexed anew; of larger ones the indexes are merged."""


class RowChange(Protocol):
    """A change applied to rows during a rewrite; picklable where the workers are other processes."""

    @property
    def looks_at(self) -> frozenset[str]:
        """The columns that tell which rows change."""
        ...

    @property
    def reads(self) -> frozenset[str]:
        """The columns that `apply` needs besides those it sets."""
        ...

    @property
    def sets(self) -> tuple[str, ...] | None:
        """The columns that may get other values; None if rows may leave."""
        ...

    def count(self, rows: pa.Table, at: int) -> int:
        """How many of the rows change; they have the columns `looks_at`."""
        ...

    def apply(self, rows: pa.Table, at: int) -> pa.Table:
        """The changed rows; `at` is the place of the first one among the live rows of its split."""
        ...


@dataclass(frozen=True, slots=True)
class RewriteSetting:
    """What all units of work of one rewrite have in common; picklable."""

    reading: Reading
    """How the rows are read; the new splits are written by the same settings, into the same store."""
    partition_columns: tuple[str, ...]
    spec: IndexSpec
    table_id: str
    now_ms: int
    data_change: bool
    drop: Node | None = None
    """Rows for which this is true are left out."""
    searches: tuple[Query, ...] = ()
    """Of these rows, only those that all of these queries find are left out."""
    change: RowChange | None = None
    """The change applied to the remaining rows."""
    checks: tuple[Check, ...] = ()
    """The constraints that changed rows have to keep."""

    @classmethod
    def of(
        cls,
        log: TransactionLog,
        snapshot: Snapshot,
        *,
        drop: Node | None = None,
        searches: Sequence[Query] = (),
        options: Options | None = None,
        change: RowChange | None = None,
    ) -> RewriteSetting:
        """The setting of a rewrite of this version; it changes data if rows are dropped or changed."""
        return cls(
            reading=replace(snapshot.reading, settings=options or snapshot.settings),
            partition_columns=snapshot.partition_columns,
            spec=settings_of(snapshot),
            table_id=snapshot.split_table_id,
            now_ms=log.runtime.clock.now_ms(),
            data_change=drop is not None or change is not None,
            drop=drop,
            searches=tuple(searches),
            change=change,
            checks=() if change is None else checks_of(snapshot.metadata.configuration, snapshot.schema),
        )


@dataclass(frozen=True, slots=True)
class RewriteGroup:
    """The splits of one partition that are rewritten together."""

    setting: RewriteSetting
    sources: tuple[AddAction, ...]


@dataclass(frozen=True, slots=True)
class RewriteOutcome:
    """The outcome of one unit of work."""

    sources: tuple[AddAction, ...]
    """The splits whose rows were read."""
    adds: tuple[AddAction, ...]
    rows_read: int
    rows_written: int
    unreadable: tuple[tuple[AddAction, str], ...] = ()
    rows_changed: int | None = None
    """How many rows have other values; None where they were not counted."""
    truncated: Truncated = NOTHING_TRUNCATED


@dataclass(frozen=True, slots=True)
class UniformSplit:
    """A split in which all rows match, or none does; found by reading it."""

    source: AddAction
    rows: int
    all: bool


class _UnreadableError(Exception):
    def __init__(self, add: AddAction, cause: Error) -> None:
        super().__init__(str(cause))
        self.add = add
        self.cause = cause


def require_writable(snapshot: Snapshot) -> None:
    """Raise, before any split is built, if the commit would be refused."""
    check_writable(snapshot.protocol, snapshot.store.uri)
    require_parquet(snapshot)


def rewrite(piece: RewriteGroup, *, least: int = 1) -> RewriteOutcome:
    """Rewrite the rows of the sources, unless fewer than `least` of them can be read."""
    setting = piece.setting
    store = setting.reading.store
    unreadable: list[tuple[AddAction, str]] = []
    sources = list(piece.sources)
    indexes = indexes_to_merge(setting, sources)
    while len(sources) >= least and sources:
        counted = _RowCounts()
        adds: list[AddAction] = []
        truncated: list[Truncated] = []
        try:
            for split in _build(setting, sources, counted, indexes):
                adds.append(split.add)
                truncated.append(split.truncated)
        except DamagedIndexError:
            # One of the indexes is damaged beyond its root, so the rows are indexed again.
            discard(store, adds)
            indexes = []
            continue
        except _UnreadableError as damaged:
            discard(store, adds)
            unreadable.append((damaged.add, damaged.cause.message))
            sources = [add for add in sources if add.path != damaged.add.path]
            indexes = indexes_to_merge(setting, sources)
            continue
        except BaseException:
            discard(store, adds)
            raise
        return RewriteOutcome(
            tuple(sources), tuple(adds), counted.read, counted.written, tuple(unreadable),
            truncated=Truncated.total(truncated),
        )  # fmt: skip
    return RewriteOutcome((), (), 0, 0, tuple(unreadable))


def delete_from(piece: RewriteGroup) -> UniformSplit | RewriteOutcome:
    """Remove the matching rows from one split; it is not rewritten if none match, or all do."""
    (source,) = piece.sources
    matching, total = rows_matching(piece)
    if matching in (0, total):
        return UniformSplit(source, matching, all=matching == total)
    return rewrite(piece)


def require_read(outcome: RewriteOutcome, verb: str) -> RewriteOutcome:
    """Raise if a source could not be read: its rows may match, and none may be lost."""
    if outcome.unreadable:
        add, reason = outcome.unreadable[0]
        raise DamagedSplitError(
            f"{verb} cannot read {add.path}: {reason} Nothing was committed.", path=add.path
        )
    return outcome


def indexes_to_merge(setting: RewriteSetting, sources: Collection[AddAction]) -> list[Index]:
    """The indexes of the sources if they can be merged without indexing rows again, else an empty list.

    They can if every row stays and every source is indexed with the table's settings. Of small sources it is
    not worth it: opening an index costs more than reading its text.
    """
    if sum(add.uncompressed_size_bytes or 0 for add in sources) < REINDEX_BELOW_BYTES * len(sources):
        return []
    if any(add.deletion_vector for add in sources):
        return []
    if setting.drop is not None or setting.change is not None or not setting.spec.fields:
        return []
    indexes: list[Index] = []
    for ref in at_hand(setting.reading.store, [SplitRef.of(add) for add in sources]):
        try:
            index = open_index(setting.reading, ref, with_rows=True)
        except (SplitError, StorageError):
            # Reading its rows will show whether the split itself is damaged.
            return []
        if index is None or index.spec != setting.spec:
            return []
        indexes.append(index)
    return indexes


def rows_matching(piece: RewriteGroup) -> tuple[int, int]:
    """How many rows of the sources are to be dropped, and how many there are; reads as little as possible."""
    setting = piece.setting
    assert setting.drop is not None
    names = {column.path[0] for column in columns_of(setting.drop)} or set(setting.reading.schema.names)
    matching = total = 0
    for add in piece.sources:
        hits = hits_of(setting, add)
        if hits is not None and not len(hits):
            total += 1  # Their number does not matter: no row of this split is dropped.
            continue
        for numbers, rows in split_rows(setting.reading, add, names):
            total += rows.num_rows
            matching += pc.sum(_dropped(setting, rows, numbers, hits), min_count=0).as_py()
    return matching, total


def hits_of(setting: RewriteSetting, add: AddAction) -> pa.Int64Array | None:
    """The rows of a split that all searches find, ascending; None when there is no search."""
    matching = None
    for query in setting.searches:
        hits = hits_split(setting.reading, SplitRef.of(add), Selection(query))
        matching = hits if matching is None else hits.filter(pc.is_in(hits, value_set=matching))
    return matching


def _dropped(
    setting: RewriteSetting, rows: pa.Table, numbers: np.ndarray, hits: pa.Int64Array | None
) -> pa.BooleanArray:
    """Which rows are left out; `numbers` are their numbers in the split."""
    assert setting.drop is not None
    condition_holds = mask(setting.drop, rows, setting.reading.schema, setting.reading.zone)
    if hits is None:
        return condition_holds
    return pc.and_(condition_holds, pc.is_in(integers(numbers), value_set=hits))


def discard(store: Store, adds: Collection[AddAction]) -> None:
    """Delete splits that no commit names."""
    for add in adds:
        try:
            store.delete(add.path)
        except StorageError:
            # It stays an orphan, which PURGE finds.
            continue


@dataclass(slots=True)
class _RowCounts:
    read: int = 0
    written: int = 0


def _build(
    setting: RewriteSetting,
    sources: list[AddAction],
    counted: _RowCounts,
    merged: Sequence[Index],
) -> Iterator[BuiltSplit]:
    reading, options = setting.reading, setting.reading.settings
    unbounded = replace(options.write, target_split_bytes=_NO_LIMIT, max_rows_per_split=_NO_LIMIT)
    built = build_splits(
        _rows(setting, sources, counted),
        reading.schema,
        setting.partition_columns,
        setting.spec,
        replace(options, write=unbounded),
        reading.store,
        table_id=setting.table_id,
        data_change=setting.data_change,
        now_ms=setting.now_ms,
        replaces=[add.path for add in sources],
        merged=merged,
        names=reading.names,
    )
    merges = 1 + max(add.num_merge_ops or 0 for add in sources)
    for split in built:
        yield split if setting.data_change else replace(split, add=replace(split.add, num_merge_ops=merges))


def _rows(setting: RewriteSetting, sources: list[AddAction], counted: _RowCounts) -> Iterator[pa.Table]:
    """The rows of all sources, in order, without those to be dropped."""
    refs = at_hand(setting.reading.store, [SplitRef.of(add) for add in sources])
    for add, _ in zip(sources, refs, strict=True):
        try:
            hits, start = hits_of(setting, add), 0
            for numbers, part in split_rows(setting.reading, add):
                rows = part
                if setting.change is not None:
                    rows = check_rows(
                        setting.checks, setting.change.apply(rows, start), setting.reading.schema
                    )
                counted.read += part.num_rows
                if setting.drop is not None:
                    rows = rows.filter(pc.invert(_dropped(setting, rows, numbers, hits)))
                start += part.num_rows
                counted.written += rows.num_rows
                if rows.num_rows:
                    yield rows
        except (CorruptLogError, SplitError, StorageError) as error:
            raise _UnreadableError(add, error) from error


def split_rows(
    reading: Reading, add: AddAction, columns: Collection[str] | None = None
) -> Iterator[tuple[np.ndarray, pa.Table]]:
    """Every live row of a split in the table's columns and types, or in some columns, with its number.

    All bytes are checked.
    """
    names = [name for name in reading.schema.names if columns is None or name in columns]
    reader = open_split(reading.store, SplitRef.of(add))
    stored = [name for name in names if name in reader.columns]
    for numbers, rows in reader.scan(stored):
        yield numbers, to_table_schema(rows, reading.schema, names, add.values)
