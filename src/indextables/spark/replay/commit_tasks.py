"""Decodes a tail too large for the driver on executors, and reduces it to the newest action per file.

The pieces of a tail are numbered, oldest first. A task decodes its pieces in that order,
keeps the newest action per file of some thousand actions at a time, and makes columns of
the adds among them: only what the query needs leaves the task. Files that several tasks
speak of are settled by a shuffle, in which the highest number wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from indextables.log.replay.long_tail import CommitPiece, LongTail
from indextables.model.actions import AddAction, RemoveAction
from indextables.spark.replay.form import spark_schema
from indextables.spark.workers import frame_of_tasks, shared_out
from indextables.storage.store import Store, StoreSpec, open_store

KEY, VECTOR = "touched_path", "touched_dv"
_HASH, _NUMBER, _ADD, _NEWEST = "__hash", "__place", "__add", "__newest"
_KEYS = (T.StructField(KEY, T.StringType()), T.StructField(VECTOR, T.StringType()))
# A task reduces this many files at a time, and emits them in batches of this many rows.
_REDUCED_FILES = 16_384
_BATCH_ROWS = 8_192

ActionKey = tuple[str, str | None]
NumberedPiece = tuple[int, CommitPiece]
"""A piece of a tail and its number."""
Newest = dict[ActionKey, AddAction | RemoveAction]


class AddForm(Protocol):
    """How the adds of a dialect become columns; sent to the executors."""

    def key(self, action: AddAction | RemoveAction) -> ActionKey:
        """Path and deletion vector, in comparable form."""
        ...

    def columns(self, adds: Sequence[AddAction]) -> pa.StructArray:
        """The fields of the form, one row per add and in their order."""
        ...


def newest_adds(spark: Any, store: Store, tail: LongTail, width: int, form: AddForm) -> DataFrame:
    """The adds of all files whose newest action in the commits is an add, as columns of the form."""
    kind = spark_schema(pa.schema(list(form.columns(()).type)))
    row = T.StructType([*_KEYS, T.StructField(_NUMBER, T.LongType()), T.StructField(_ADD, kind)])
    actions = frame_of_tasks(spark, _Adds(store.spec(), form), _tasks(tail, width), row)
    # Rows are sorted by the hash, a number, and compared by their long paths only where it is the same.
    hashed = actions.withColumn(_HASH, F.xxhash64(KEY, VECTOR)).repartition(width, _HASH)
    newest = F.max(_NUMBER).over(Window.partitionBy(_HASH, KEY, VECTOR))
    ranked: DataFrame = hashed.withColumn(_NEWEST, newest)
    return ranked.where(F.col(_NUMBER) == F.col(_NEWEST)).where(F.col(_ADD).isNotNull()).select(f"{_ADD}.*")


def touched_keys(spark: Any, store: Store, tail: LongTail, width: int, form: AddForm) -> DataFrame:
    """The keys of all files that the commits add or remove; one key may come more than once."""
    run = _Keys(store.spec(), form)
    keys: DataFrame = frame_of_tasks(spark, run, _tasks(tail, width), T.StructType(list(_KEYS)))
    return keys


def _tasks(tail: LongTail, width: int) -> list[tuple[NumberedPiece, ...]]:
    return shared_out(list(enumerate(tail.pieces)), width, lambda piece: piece[1].length)


@dataclass(frozen=True, slots=True)
class _Adds:
    """What a task runs to decode and reduce its pieces."""

    spec: StoreSpec
    form: AddForm

    def __call__(self, pieces: Sequence[NumberedPiece]) -> Iterator[pa.RecordBatch]:
        for number, newest in _reduced(self.spec, self.form, pieces):
            actions = list(newest.items())
            for start in range(0, len(actions), _BATCH_ROWS):
                yield self._batch(number, actions[start : start + _BATCH_ROWS])

    def _batch(
        self, number: int, actions: Sequence[tuple[ActionKey, AddAction | RemoveAction]]
    ) -> pa.RecordBatch:
        adds = [action for _, action in actions if isinstance(action, AddAction)]
        columns = self.form.columns(adds)
        if len(adds) < len(actions):
            rows = iter(range(len(adds)))
            taken = [next(rows) if isinstance(action, AddAction) else None for _, action in actions]
            columns = columns.take(pa.array(taken, pa.int64()))
        numbers = pa.repeat(pa.scalar(number, pa.int64()), len(actions))
        arrays = [*_key_columns([key for key, _ in actions]), numbers, columns]
        return pa.record_batch(arrays, names=[KEY, VECTOR, _NUMBER, _ADD])


@dataclass(frozen=True, slots=True)
class _Keys:
    """What a task runs to list the keys alone."""

    spec: StoreSpec
    form: AddForm

    def __call__(self, pieces: Sequence[NumberedPiece]) -> Iterator[pa.RecordBatch]:
        for _, newest in _reduced(self.spec, self.form, pieces):
            yield pa.record_batch(_key_columns(list(newest)), names=[KEY, VECTOR])


def _reduced(spec: StoreSpec, form: AddForm, pieces: Sequence[NumberedPiece]) -> Iterator[tuple[int, Newest]]:
    """The newest action per file of some thousand actions at a time, with the number of their last piece."""
    store = open_store(spec)
    newest: Newest = {}
    for number, piece in pieces:
        for action in piece.actions(store):
            if isinstance(action, AddAction | RemoveAction):
                newest[form.key(action)] = action
        if len(newest) >= _REDUCED_FILES:
            yield number, newest
            newest = {}
    if newest:
        yield pieces[-1][0], newest


def _key_columns(keys: Sequence[ActionKey]) -> list[pa.Array]:
    return [
        pa.array([path for path, _ in keys], pa.string()),
        pa.array([vector or "" for _, vector in keys], pa.string()),
    ]
