"""The native log put together: its dialect, its checkpoint reader and the engines that replay it."""

from __future__ import annotations

from indextables.log.checkpoint.reader import NativeCheckpointReader
from indextables.log.checkpoint.writer import write_checkpoint
from indextables.log.format.dialect import NATIVE, Checkpoint
from indextables.log.replay.columnar import ColumnarEngine
from indextables.log.replay.reference import ReferenceEngine
from indextables.log.replay.rule import ReplayEngine
from indextables.log.snapshot import Snapshot
from indextables.log.state import LogSource, VersionCache
from indextables.options import Options
from indextables.runtime import Runtime
from indextables.storage.store import Store


def native_source(
    store: Store, options: Options, runtime: Runtime, versions: VersionCache | None = None
) -> LogSource:
    """How a native log in a store is read."""
    engines: dict[str, ReplayEngine] = {"reference": ReferenceEngine(), "columnar": ColumnarEngine()}
    return LogSource(store, NATIVE, NativeCheckpointReader(), engines, options, runtime, versions)


def write_native_checkpoint(snapshot: Snapshot) -> Checkpoint:
    """Write a checkpoint of a snapshot and point to it."""
    return write_checkpoint(snapshot, snapshot.settings, snapshot.runtime.clock)
