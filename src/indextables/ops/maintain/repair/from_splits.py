"""REPAIR ... FROM SPLITS: a log made anew from the footers of the splits, when none can be read any more.

Danger: only a log knows which splits were removed. Whatever commit files can
still be read are asked: a split they remove stays out, and so does one that
another split says it replaces. Other removed splits that PURGE has not deleted
yet come back, and so do rows that only a lost deletion vector hides. Footers
know the columns, the row counts, the index settings and the partition values;
statistics are those Parquet keeps, where they are bounds in our sense.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from indextables.errors import CorruptLogError, LogError, NotATableError, SchemaError, StorageError
from indextables.index.settings import IndexSpec
from indextables.log.commit.create import FORMAT
from indextables.log.format.dialect import Checkpoint
from indextables.log.format.protocol import CURRENT, DELETION_VECTORS, has_feature, with_feature
from indextables.log.native import native_source
from indextables.log.segment import list_log
from indextables.log.state import LogSource
from indextables.model.actions import (
    Action,
    AddAction,
    MetadataAction,
    ProtocolAction,
    RemoveAction,
    SkipAction,
    TxnAction,
)
from indextables.model.fields import normalise_schema, schema_from_json, schema_to_json
from indextables.ops.existence import portable, workers_for
from indextables.ops.maintain.purge import is_split, own_files
from indextables.ops.maintain.repair.contents import LogContents
from indextables.ops.maintain.repair.footers import Rebuilt, rebuild_add
from indextables.ops.maintain.repair.relocated_log import LogDirectory
from indextables.ops.progress import Progress, silent, watched
from indextables.options import Options
from indextables.runtime import LOCAL, Runtime

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Remnants:
    """What the readable files of a broken log say; later versions win."""

    version: int = -1
    protocol: ProtocolAction | None = None
    metadata: MetadataAction | None = None
    added: dict[str, AddAction] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    skips: dict[str, SkipAction] = field(default_factory=dict)
    txns: dict[str, TxnAction] = field(default_factory=dict)

    def note_all(self, read: Callable[[], Iterable[Action]], version: int) -> None:
        """Take in a log file, or pass over it when it is damaged."""
        try:
            for action in read():
                self.note(action)
        except (LogError, StorageError, SchemaError) as error:
            _log.warning("REPAIR ignores (the rest of) version %d: %s", version, error)

    def note(self, action: Action) -> None:
        """Take in one action."""
        match action:
            case ProtocolAction():
                self.protocol = action
            case MetadataAction():
                schema_from_json(action.schema_string)
                self.metadata = action
            case AddAction():
                self.added[action.path] = action
                self.removed.discard(action.path)
            case RemoveAction():
                self.added.pop(action.path, None)
                self.removed.add(action.path)
            case SkipAction():
                self.skips[action.path] = action
            case TxnAction():
                self.txns[action.app_id] = action
            case _:
                return


def salvage(
    source: LogDirectory, options: Options, runtime: Runtime = LOCAL, progress: Progress = silent
) -> LogContents:
    """Read what is left of the log, then the footers of the splits, and put both together."""
    left = remnants(native_source(source, options, runtime))
    paths = [
        file.path
        for file in own_files(source.around.list())
        if is_split(file.path) and file.path not in left.removed
    ]
    workers = workers_for(runtime, 10 * len(paths))
    work = partial(rebuild_add, portable(source.around, workers))
    rebuilt = workers.map(work, paths, parallelism=options.repair.parallelism)
    splits = []
    for path, outcome in zip(paths, watched(rebuilt, progress, "Reading footers", len(paths)), strict=True):
        if isinstance(outcome, Rebuilt):
            splits.append(outcome)
        else:
            _log.warning("REPAIR FROM SPLITS leaves out %s: %s", path, outcome)
    if not splits:
        raise NotATableError(
            f"{source.uri} holds no readable split, so there is nothing to rebuild a log from."
        )
    if left.protocol is None or has_feature(left.protocol, DELETION_VECTORS):
        _log.warning(
            "REPAIR FROM SPLITS: a split does not know which of its rows were deleted later. Those that "
            "readable versions of %s name stay deleted; rows that were deleted by others come back. Compare "
            "the numbers of rows, and delete them again.",
            source.log_uri,
        )
    return plan_salvage(left, splits)


def plan_salvage(left: Remnants, splits: Sequence[Rebuilt]) -> LogContents:
    """What the rebuilt log holds: an add as the old log had it where known, else as the footer says."""
    replaced = {path for split in splits for path in split.replaces}
    live = [split for split in splits if split.add.path not in replaced]
    if left.metadata is None and any(split.is_companion for split in live):
        raise CorruptLogError(
            "the splits are those of a companion index: they hold no rows, and do not know whose they index. "
            "Make the companion anew from its source, with it.companion."
        )
    metadata = left.metadata or _metadata(live)
    adds = []
    for split in live:
        logged = left.added.get(split.add.path)
        if logged is None and split.table_id != (metadata.split_table_id or metadata.id):
            _log.warning(
                "REPAIR FROM SPLITS leaves out %s: it belongs to the table %s", split.add.path, split.table_id
            )
        else:
            adds.append(logged or split.add)
    protocol = left.protocol or CURRENT
    if any(add.deletion_vector for add in adds):
        # The version that raised the protocol may be lost.
        protocol = with_feature(protocol, DELETION_VECTORS)
    return LogContents(
        version=left.version,
        protocol=protocol,
        metadata=metadata,
        adds=tuple(adds),
        num_adds=len(adds),
        skips=tuple(left.skips.values()),
        txns=tuple(left.txns.values()),
    )


def remnants(source: LogSource) -> Remnants:
    """Replay every checkpoint and commit that can still be read, oldest first; damage is passed over."""
    left = Remnants()
    listing = list_log(source.store, source.dialect)
    left.version = max((file.version for file in listing.files), default=-1)
    checkpoints = {item.version: item for item in source.dialect.checkpoints(listing.files)}
    for version in sorted({*listing.commits, *checkpoints}):
        if version in checkpoints:
            left.note_all(partial(_head_of, source, checkpoints[version]), version)
        if version in listing.commits:
            left.note_all(partial(source.read_commit, listing.commits[version]), version)
    return left


def _head_of(source: LogSource, checkpoint: Checkpoint) -> list[Action]:
    head = source.reader.head(source.store, checkpoint)
    return [
        action for action in (head.protocol, head.metadata, *head.skips, *head.txns) if action is not None
    ]


def _metadata(splits: Sequence[Rebuilt]) -> MetadataAction:
    """Metadata as the splits know it: the newest one's columns, then those that only older ones have."""
    newest_first = sorted(splits, key=lambda split: -split.add.modification_time)
    fields: dict[str, pa.Field] = {}
    for split in newest_first:
        for item in split.schema:
            fields.setdefault(item.name, item if split is newest_first[0] else item.with_nullable(True))
    partitions = tuple(newest_first[0].add.partition_values)
    strangers = sorted({split.table_id for split in splits} - {newest_first[0].table_id})
    if strangers:
        raise CorruptLogError(
            f"the splits belong to {1 + len(strangers)} tables ({newest_first[0].table_id}, "
            f"{', '.join(strangers[:3])}); move the foreign ones away first",
            tables=strangers,
        )
    return MetadataAction(
        id=newest_first[0].table_id,
        format=FORMAT,
        schema_string=schema_to_json(normalise_schema(pa.schema(list(fields.values())))),
        partition_columns=partitions,
        configuration=IndexSpec.from_wire(newest_first[0].index_fields).to_properties(),
        created_time=min(split.add.modification_time for split in splits),
    )
