"""The rows of one batch of a stream, as a DataFrame over its files."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.log.snapshot import Snapshot
from indextables.spark.delta.load import load_delta
from indextables.spark.options import CallSettings
from indextables.spark.read.frame import BATCH, reading_way, relation_of, version_frame


def batch_frame(spark: Any, snapshot: Snapshot, settings: CallSettings) -> Any:
    """A DataFrame over a snapshot that has the files of a batch; equal to that of no other batch."""
    table = replace(settings, call={})
    if isinstance(snapshot, DeltaSnapshot):
        return load_delta(spark, snapshot, table, unique=f"{BATCH}{uuid.uuid4()}")
    way = reading_way(spark, snapshot)
    if way != "native":
        return version_frame(spark, snapshot, table, way, None)
    return relation_of(spark, snapshot, table)
