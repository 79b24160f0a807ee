"""The commits of a far tail on the executors: decoded in pieces, reduced to the newest action per file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from indextables.log.delta.commits import key_of
from indextables.log.delta.files.file_table import COUNTS_NAN, RAW, raw_table
from indextables.log.delta.long_tail import CommitPiece, FarTail
from indextables.model.actions import Action, AddAction, RemoveAction
from indextables.spark.replay.delta_adds import ADD, ADD_FIELDS
from indextables.spark.workers import frame_of_tasks, shared_out
from indextables.storage.store import Store, StoreSpec, open_store

KEY, VECTOR = "touched_path", "touched_dv"
_BATCH_ROWS = 4096
_BY_NAME = {field.name: field for field in (*ADD_FIELDS, T.StructField(COUNTS_NAN, T.BooleanType()))}
_ROW = T.StructType(
    [
        T.StructField(KEY, T.StringType()),
        T.StructField(VECTOR, T.StringType()),
        T.StructField("version", T.LongType()),
        T.StructField("number", T.LongType()),
        T.StructField(ADD, T.StructType([_BY_NAME[name] for name in RAW.names])),
    ]
)


def newest_actions(spark: Any, store: Store, tail: FarTail, width: int) -> DataFrame:
    """One row per file the commits speak of: its key, and the add that counts, null where it was removed."""
    tasks = shared_out(tail.pieces, width, lambda piece: piece.length)
    actions = frame_of_tasks(spark, _Decoder(store.spec()), tasks, _ROW)
    place = F.struct("version", "number")
    found: DataFrame = (
        actions.repartition(width, KEY).groupBy(KEY, VECTOR).agg(F.max_by(ADD, place).alias(ADD))
    )
    return found


@dataclass(frozen=True, slots=True)
class _Decoder:
    """What a task runs."""

    spec: StoreSpec

    def __call__(self, pieces: Sequence[CommitPiece]) -> Iterator[pa.RecordBatch]:
        store = open_store(self.spec)
        for piece in pieces:
            rows = [row for row in piece.actions(store) if isinstance(row[1], AddAction | RemoveAction)]
            for start in range(0, len(rows), _BATCH_ROWS):
                yield _batch(piece.version, rows[start : start + _BATCH_ROWS])


def _batch(version: int, rows: Sequence[tuple[int, Action]]) -> pa.RecordBatch:
    numbers = [number for number, _ in rows]
    files = [action for _, action in rows if isinstance(action, AddAction | RemoveAction)]
    keys = [key_of(action) for action in files]
    adds = [action for action in files if isinstance(action, AddAction)]
    raw = raw_table(adds)
    structs = pa.StructArray.from_arrays([whole.combine_chunks() for whole in raw.columns], fields=list(RAW))
    places = iter(range(len(adds)))
    taken = [next(places) if isinstance(action, AddAction) else None for action in files]
    return pa.record_batch(
        [
            pa.array([path for path, _ in keys], pa.string()),
            pa.array([vector or "" for _, vector in keys], pa.string()),
            pa.array([version] * len(files), pa.int64()),
            pa.array(numbers, pa.int64()),
            structs.take(pa.array(taken, pa.int64())),
        ],
        names=_ROW.names,
    )
