"""Rows that leave their split by a deletion vector: the split stays, and the log names them as gone.

DELETE leaves it at that. UPDATE and MERGE write the changed rows into new splits. `uses_vector` decides
for all of them whether a split gets a vector or is written anew.

A plan says which rows of which splits leave. The vectors are made anew at every attempt to commit, from
the version the attempt is built on: where others have deleted other rows of the same split meanwhile, both
sets are joined. A row that others have deleted too is a conflict.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from indextables.errors import ConflictError, StorageError
from indextables.log.commit.changes import removals
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import Action, AddAction
from indextables.model.arrays import as_numpy
from indextables.ops.rewrite.rows import RewriteGroup, RewriteSetting, hits_of
from indextables.options.groups import VectorOptions
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_split
from indextables.split.search.filtered import Filtered
from indextables.split.search.narrowing import index_for
from indextables.split.search.run import fetch_rows
from indextables.storage.deletion_vectors import number_deleted, unique_id, write_vectors

WEAVE_SHARE = 0.01
"""If more of the rows of a split change, and no indexed column does, the split is written anew with the new
values woven in: what does not change is copied."""
_SHOWN = 3
_NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Rows of one split that leave the table."""

    source: AddAction
    rows: np.ndarray
    """Their numbers in the split, ascending; none of them is deleted already."""
    of_rows: int
    """How many rows of the split were live."""

    @property
    def is_whole(self) -> bool:
        """Whether no row is left."""
        return len(self.rows) == self.of_rows


@dataclass(frozen=True, slots=True)
class MovedRows:
    """Rows of one split that change: they leave it, and come back in a new one."""

    deleted: DeletedRows
    rows: pa.Table
    """As they are afterwards; fewer where some are deleted."""


def most_deleted(options: VectorOptions, hidden: int, rows: int) -> int:
    """How many more rows of a split with so many hidden ones may leave by a vector."""
    return max(0, int(options.fold_share * rows) - hidden) if options.enabled else 0


def uses_vector(setting: RewriteSetting, deleted: DeletedRows) -> bool:
    """Whether rows leave a split by a vector; else it is written anew.

    It is written anew if too many of its rows have left by then, or if its values can be woven and
    enough of them change for that to be less work.
    """
    hidden = number_deleted(deleted.source.deletion_vector)
    count, rows = len(deleted.rows), hidden + deleted.of_rows
    if count > most_deleted(setting.reading.settings.vectors, hidden, rows):
        return False
    sets = None if setting.change is None else setting.change.sets
    can_weave = (
        sets is not None and not hidden and not {*sets} & {*setting.spec.columns, *setting.partition_columns}
    )
    return not can_weave or count <= WEAVE_SHARE * rows


def moved_rows(setting: RewriteSetting, deleted: DeletedRows) -> MovedRows:
    """The rows with their new values."""
    assert setting.change is not None
    reading = setting.reading
    ref = SplitRef.of(deleted.source)
    return MovedRows(
        deleted, setting.change.apply(fetch_rows(reading, ref, reading.schema.names, deleted.rows), 0)
    )


def rows_to_delete(piece: RewriteGroup) -> DeletedRows:
    """The rows of one split that a condition and all searches find; reads as little as possible."""
    setting, (source,) = piece.setting, piece.sources
    assert setting.drop is not None
    reading, ref = setting.reading, SplitRef.of(source)
    hits = hits_of(setting, source)
    if hits is not None and not len(hits):
        return DeletedRows(source, _NO_ROWS, 1)
    filtered = Filtered(reading, ref, setting.drop, index_for(reading, ref, setting.drop, setting.spec))
    rows = filtered.every() if hits is None else filtered.rows(as_numpy(hits))
    return DeletedRows(source, rows.astype(np.int64), open_split(reading.store, ref).live_rows)


def vector_metrics(deleted: Sequence[DeletedRows]) -> dict[str, int]:
    """What the history says of the splits that got a vector."""
    return {"numDeletionVectors": len(deleted)} if deleted else {}


class VectorCommit:
    """The actions that delete rows of splits; what it wrote for an attempt that failed is deleted again."""

    def __init__(self, log: TransactionLog, operation: str, deleted: Sequence[DeletedRows]) -> None:
        self._log = log
        self._operation = operation
        self._deleted = {item.source.path: item for item in deleted}
        self._file: str | None = None

    @property
    def paths(self) -> frozenset[str]:
        """The splits that lose rows."""
        return frozenset(self._deleted)

    def actions(self, base: Snapshot) -> list[Action]:
        """Every split with its new vector, in the place of the one it has in a version."""
        self.discard()
        live = base.adds(self.paths)
        hidden = [self._hidden(base, add) for add in live]
        emptied = [len(rows) == self._stored(add) for add, rows in zip(live, hidden, strict=True)]
        left = [add for add, is_empty in zip(live, emptied, strict=True) if not is_empty]
        vectors, self._file = write_vectors(
            base.store, [rows for rows, is_empty in zip(hidden, emptied, strict=True) if not is_empty]
        )
        adds = [
            replace(add, deletion_vector=vector.wire(), data_change=True)
            for add, vector in zip(left, vectors, strict=True)
        ]
        return [*removals(base, live), *adds]

    def _stored(self, add: AddAction) -> int:
        return open_split(self._log.store, SplitRef.of(add)).rows

    def _deleted_before(self, add: AddAction) -> np.ndarray | None:
        return open_split(self._log.store, SplitRef.of(add)).hidden

    def _hidden(self, base: Snapshot, add: AddAction) -> np.ndarray:
        """All rows of a split that are deleted after this commit."""
        planned = self._deleted[add.path]
        before = self._deleted_before(add)
        if before is None:
            return planned.rows
        if unique_id(add.deletion_vector) != unique_id(planned.source.deletion_vector):
            both = np.intersect1d(before, planned.rows, assume_unique=True)
            if len(both):
                rows = ", ".join(str(row) for row in both[:_SHOWN].tolist())
                more = f" and {len(both) - _SHOWN} more" if len(both) > _SHOWN else ""
                raise ConflictError(
                    f"{base.store.uri}: {self._operation} was to delete rows of {add.path} that another "
                    f"writer has deleted or changed meanwhile (row {rows}{more}, counted from 0); nothing "
                    "was committed. Read the table again and repeat the operation.",
                    paths=[add.path], version=base.version, operation=self._operation, uri=base.store.uri,
                )  # fmt: skip
        return np.union1d(before, planned.rows)

    def discard(self) -> None:
        """Delete the file of vectors that no commit names."""
        if self._file is None:
            return
        # If that fails it stays an orphan, which PURGE finds.
        with contextlib.suppress(StorageError):
            self._log.store.delete(self._file)
        self._file = None
