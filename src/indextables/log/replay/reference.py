"""The reference engine: one map from key to add, filled in log order. Plain and obviously right."""

from __future__ import annotations

import pyarrow as pa

from indextables.log.adds.columns import tabulate
from indextables.log.adds.file_table import COLUMNS
from indextables.log.format.dialect import FileKey
from indextables.log.replay.rule import LiveFiles, ReplayMetrics, ReplayRequest
from indextables.model.actions import AddAction
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.predicate.prune.rule import prune_table


class ReferenceEngine:
    """Builds every add as an object; the other engines must agree with it."""

    name = "reference"

    def replay(self, request: ReplayRequest) -> LiveFiles:
        """Return the live files of the request."""
        live: dict[FileKey, AddAction] = {}
        checkpoint = request.checkpoint
        if checkpoint is not None:
            for add in request.reader.adds(request.checkpoint_store, checkpoint):
                live[request.dialect.key(add)] = add
        checkpoint_files = len(live)
        for key in request.tail.removed:
            live.pop(key, None)
        live.update(request.tail.adds)
        adds = sorted(live.values(), key=lambda add: add.path)
        table = tabulate(adds, request.schema, request.partition_columns, request.store)
        table, metrics = prune(table, request)
        counts = ReplayMetrics(self.name, checkpoint_files, len(request.tail.adds), len(request.tail.removed))
        return LiveFiles(table, metrics, counts)


def prune(table: pa.Table, request: ReplayRequest) -> tuple[pa.Table, PruneMetrics]:
    """Drop the rows the request's predicate excludes and the columns it did not ask for."""
    metrics = PruneMetrics(
        considered=len(table), pruned_by_partition=0, skipped_by_statistics=0, kept=len(table)
    )
    if request.where is not None:
        pruned = prune_table(
            request.where, table, request.schema, request.partition_columns, explain=request.explain
        )
        table, metrics = table.filter(pruned.mask), pruned.metrics
    if request.columns is not None:
        shown = {"path", *request.columns}
        table = table.select([name for name in COLUMNS if name in shown])
    return table, metrics
