"""The adds of a native checkpoint as a DataFrame, decoded on the executors.

Parts are compressed JSON behind magic bytes, which Spark's readers cannot open,
so each task inflates and types its own parts. A part that cannot be read fails
the task and with it the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from indextables.log.adds.columns import AddLeaf, build, leaves_of
from indextables.log.adds.decoder import decode_adds
from indextables.log.adds.file_table import files_schema
from indextables.log.checkpoint.reader import OpenCheckpoint, Part, open_checkpoint
from indextables.log.format.dialect import Checkpoint
from indextables.log.replay.rule import ReplayRequest
from indextables.model.actions import AddAction, RemoveAction
from indextables.spark.replay.form import in_micros, spark_schema
from indextables.spark.workers import frame_of_tasks
from indextables.storage.store import StoreSpec, open_store

_DERIVED = {"uri"}


@dataclass(frozen=True, slots=True)
class NativeAdds:
    """How executors lay adds of commits out: in the files() form."""

    leaves: tuple[AddLeaf, ...]

    def key(self, action: AddAction | RemoveAction) -> tuple[str, str | None]:
        """The path."""
        return action.path, None

    def columns(self, adds: Sequence[AddAction]) -> pa.StructArray:
        """The leaves, as columns of the form."""
        return in_micros(build(self.leaves, decode_adds(adds, self.leaves))).to_struct_array()


def native_adds(request: ReplayRequest, columns: Iterable[str]) -> NativeAdds:
    """The form of commits' adds with some columns."""
    stored = [name for name in columns if name not in _DERIVED]
    return NativeAdds(leaves_of(request.schema, request.partition_columns, stored))


def checkpoint_frame(
    spark: Any, request: ReplayRequest, checkpoint: Checkpoint, columns: Sequence[str], tasks: int
) -> DataFrame:
    """Every add of a checkpoint with some columns of the files() form."""
    opened = open_checkpoint(request.store, checkpoint)
    work: list[tuple[Part, ...] | None] = [None]
    if opened.parts is not None:
        width = max(1, min(tasks, len(opened.parts)))
        work = [opened.parts[at::width] for at in range(width)]
    stored = [name for name in columns if name not in _DERIVED]
    form = files_schema(request.schema, request.partition_columns, stored)
    leaves = leaves_of(request.schema, request.partition_columns, stored)
    run = _CheckpointDecoder(
        spec=request.store.spec(),
        checkpoint=checkpoint,
        size_bytes=opened.size_bytes,
        leaves=leaves,
    )
    return frame_of_tasks(spark, run, work, spark_schema(form))


@dataclass(frozen=True, slots=True)
class _CheckpointDecoder:
    """What a task runs: picklable, and opening everything itself."""

    spec: StoreSpec
    checkpoint: Checkpoint
    size_bytes: int
    leaves: tuple[AddLeaf, ...]

    def __call__(self, parts: tuple[Part, ...] | None) -> Iterator[pa.RecordBatch]:
        for group in [None] if parts is None else [(part,) for part in parts]:
            for arrays in self._open(group).leaves(self.leaves):
                yield in_micros(build(self.leaves, arrays))

    def _open(self, parts: tuple[Part, ...] | None) -> OpenCheckpoint:
        store = open_store(self.spec)
        if parts is None:
            return open_checkpoint(store, self.checkpoint)
        file, form = self.checkpoint.files[0].name, self.checkpoint.format
        return OpenCheckpoint(store, file, form, {}, b"", self.size_bytes, parts)
