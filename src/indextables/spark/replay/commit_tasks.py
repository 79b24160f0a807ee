"""Decodes a tail too large for the driver on executors, and reduces it to the newest action per file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from indextables.log.replay.long_tail import CommitPiece, LongTail
from indextables.model.actions import Action, AddAction, RemoveAction
from indextables.spark.workers import frame_of_tasks, shared_out
from indextables.storage.store import Store, StoreSpec, open_store

KEY, VECTOR, ADD = "touched_path", "touched_dv", "add"
_BATCH_ROWS = 4096


class AddForm(Protocol):
    """How the adds of a dialect become columns; sent to the executors."""

    def key(self, action: AddAction | RemoveAction) -> tuple[str, str | None]:
        """Path and deletion vector, in comparable form."""
        ...

    def columns(self, adds: Sequence[AddAction]) -> pa.StructArray:
        """The fields of adds, in order."""
        ...


def newest_actions(
    spark: Any, store: Store, tail: LongTail, width: int, *, form: AddForm, kind: T.StructType
) -> DataFrame:
    """One row per file in the commits: its key, and its newest add, null where it was removed.

    `kind` is the Spark type of the columns that `form` makes of an add.
    """
    row = T.StructType(
        [
            T.StructField(KEY, T.StringType()),
            T.StructField(VECTOR, T.StringType()),
            T.StructField("version", T.LongType()),
            T.StructField("number", T.LongType()),
            T.StructField(ADD, kind),
        ]
    )
    tasks = shared_out(tail.pieces, width, lambda piece: piece.length)
    actions = frame_of_tasks(spark, _Decoder(store.spec(), form), tasks, row)
    place = F.struct("version", "number")
    found: DataFrame = (
        actions.repartition(width, KEY).groupBy(KEY, VECTOR).agg(F.max_by(ADD, place).alias(ADD))
    )
    return found


@dataclass(frozen=True, slots=True)
class _Decoder:
    """What a task runs."""

    spec: StoreSpec
    form: AddForm

    def __call__(self, pieces: Sequence[CommitPiece]) -> Iterator[pa.RecordBatch]:
        store = open_store(self.spec)
        for piece in pieces:
            rows = [row for row in piece.actions(store) if isinstance(row[1], AddAction | RemoveAction)]
            for start in range(0, len(rows), _BATCH_ROWS):
                yield self._batch(piece.version, rows[start : start + _BATCH_ROWS])

    def _batch(self, version: int, rows: Sequence[tuple[int, Action]]) -> pa.RecordBatch:
        numbers = [number for number, _ in rows]
        files = [action for _, action in rows if isinstance(action, AddAction | RemoveAction)]
        keys = [self.form.key(action) for action in files]
        adds = [action for action in files if isinstance(action, AddAction)]
        places = iter(range(len(adds)))
        taken = [next(places) if isinstance(action, AddAction) else None for action in files]
        return pa.record_batch(
            [
                pa.array([path for path, _ in keys], pa.string()),
                pa.array([vector or "" for _, vector in keys], pa.string()),
                pa.array([version] * len(files), pa.int64()),
                pa.array(numbers, pa.int64()),
                self.form.columns(adds).take(pa.array(taken, pa.int64())),
            ],
            names=[KEY, VECTOR, "version", "number", ADD],
        )
