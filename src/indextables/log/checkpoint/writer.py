"""Writes a checkpoint: streams the live adds of a snapshot from the previous checkpoint into a new one.

The lines of the old checkpoint pass through in path order; lines the tail touched are
dropped, the tail's adds are inserted where they belong, and statistics over the limit are
cut. Only a few chunks of lines are in memory at a time: finished parts wait as temporary
files until their number is known.

Files are published in this order: the parts, then the main file (put-if-absent, so that
two writers cannot overwrite each other), then the hint, which never moves back. Before the
hint, the writer looks whether its parts are still there; if not, it writes all of it again.
"""

from __future__ import annotations

import hashlib
import logging
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from indextables.errors import CorruptLogError, NotFoundError
from indextables.log.adds.columns import AddLeaf, leaves_of
from indextables.log.adds.lines import line_paths
from indextables.log.checkpoint.head import KEPT_COMMIT_IDS
from indextables.log.checkpoint.json_document import COMMIT_IDS, ORDER
from indextables.log.checkpoint.live_adds import live_adds
from indextables.log.checkpoint.parts import JsonParts, ParquetParts, Parts
from indextables.log.checkpoint.reader import NativeCheckpointReader, Part, open_checkpoint
from indextables.log.format.dialect import NATIVE, Checkpoint, Hint, LogFile
from indextables.log.format.protocol import PARQUET_CHECKPOINT
from indextables.log.segment import HINT_NAME, list_log, read_hint
from indextables.log.snapshot import Snapshot
from indextables.model.actions import Action, SkipAction, action_to_wire
from indextables.options import Options
from indextables.records import dataclass
from indextables.runtime import Clock
from indextables.storage.scratch import scratch_directory
from indextables.storage.store import Store
from indextables.storage.stores.put_if_absent import create_or_read

HOUR_MS = 3_600_000

_log = logging.getLogger(__name__)


def write_checkpoint(snapshot: Snapshot, options: Options, clock: Clock) -> Checkpoint:
    """Write a checkpoint of the snapshot's version and point the hint to it.

    A sound checkpoint of that version is kept; a damaged one is replaced.
    """
    file_format = checkpoint_format(snapshot, options)
    store = snapshot.store
    written = _present(store, snapshot.version, file_format)
    while written is None:
        state = snapshot.state
        try:
            written = _create(snapshot, options, clock, file_format)
        except (CorruptLogError, NotFoundError) as bad:
            # The checkpoint the snapshot was built on is damaged, or another writer's cleanup deleted it.
            snapshot.fall_back(state, bad)
    write_hint(store, written, clock)
    return written.checkpoint


def checkpoint_format(snapshot: Snapshot, options: Options) -> str:
    """`parquet` only if the options ask for it and the table's protocol announces it to every reader."""
    features = snapshot.protocol.reader_features or ()
    if PARQUET_CHECKPOINT not in features:
        return "json"
    return "parquet" if prefers_parquet(snapshot, options) else "json"


def prefers_parquet(snapshot: Snapshot, options: Options) -> bool:
    """Whether the options ask for Parquet at this version; the table's protocol is not considered.

    The checkpoint's count and the size of the tail give bounds for the number of live files. The files are
    counted only when these bounds do not settle the question.
    """
    prefers = options.checkpoint.prefers_parquet
    most = snapshot.num_files_hint
    if most is None:
        return prefers(len(snapshot.live_paths()))
    adds, removes = snapshot.state.tail.size()
    least = max(most - 2 * adds - removes, 0) + adds
    return prefers(least) or (prefers(most) and prefers(len(snapshot.live_paths())))


@dataclass(frozen=True, slots=True)
class Written:
    """A published checkpoint, and what the hint says about it."""

    checkpoint: Checkpoint
    size: int
    """Number of actions."""
    parts: int | None


def _head(snapshot: Snapshot, options: Options, now_ms: int) -> dict[str, Any]:
    """Everything in a checkpoint but its adds; skips and transactions only as far as they still matter."""
    kept_ms = options.transaction.txn_retention_hours * HOUR_MS
    skips = _skips_that_matter(snapshot, now_ms)
    txns = [item for item in snapshot.txns.values() if now_ms - (item.last_updated or now_ms) <= kept_ms]
    return {
        "version": snapshot.version,
        "tableId": snapshot.table_id,
        "protocol": _wire(snapshot.protocol),
        "metaData": _wire(snapshot.metadata),
        "mergeskip": [_wire(skip) for skip in skips],
        "txn": [_wire(txn) for txn in txns],
        COMMIT_IDS: _last_commit_ids(snapshot),
        "order": ORDER,
    }


def _last_commit_ids(snapshot: Snapshot) -> list[str | None]:
    """The ids of the last commits up to the snapshot's, from the checkpoint before and its tail."""
    state = snapshot.state
    commit_ids = {**(state.head.commit_ids if state.head is not None else {}), **state.tail.commit_ids}
    first = max(min(commit_ids, default=snapshot.version + 1), snapshot.version + 1 - KEPT_COMMIT_IDS)
    return [commit_ids.get(version) for version in range(first, snapshot.version + 1)]


def _skips_that_matter(snapshot: Snapshot, now_ms: int) -> list[SkipAction]:
    """Skips whose cooldown lasts, and expired ones of live files, whose count of failures continues."""
    over = {item.path for item in snapshot.skips.values() if (item.retry_after or math.inf) <= now_ms}
    if over:
        over -= {add.path for add in snapshot.adds(over)}
    return [item for item in snapshot.skips.values() if item.path not in over]


def _wire(action: Action) -> dict[str, Any]:
    return action_to_wire(action)[1]


def _create(snapshot: Snapshot, options: Options, clock: Clock, file_format: str) -> Written | None:
    head = _head(snapshot, options, clock.now_ms())
    with scratch_directory("checkpoint") as directory:
        leaves: tuple[AddLeaf, ...] = ()
        limit = options.checkpoint.actions_per_part
        parts: Parts
        if file_format == "parquet":
            leaves = leaves_of(snapshot.stored_schema, snapshot.stored_partition_columns)
            parts = ParquetParts(directory, limit, head, leaves)
        else:
            parts = JsonParts(directory, limit, head, options.compression)
        parts.write_all(live_adds(snapshot, options, leaves))
        return _publish(snapshot, file_format, head, parts)


def _publish(snapshot: Snapshot, file_format: str, head: Mapping[str, Any], parts: Parts) -> Written | None:
    """Put the parts and the main file; None if a cleanup took any of them meanwhile."""
    store, version = snapshot.store, snapshot.version
    entries: list[Part] = []
    if len(parts.files) > 1:
        name = uuid.uuid4().hex
        total = len(parts.files)
        for at, file in enumerate(parts.files, start=1):
            path = NATIVE.part_name(version, name, at, total, file_format)
            entries.append(Part(path, file.sha256, file.actions, file.size_bytes))
            store.put_file(NATIVE.path(path), str(file.path))
        data = parts.manifest(msgspec.to_builtins(entries))
    else:
        data = parts.single()
    name = NATIVE.checkpoint_name(version, file_format)
    if not create_or_read(store, NATIVE.path(name), data):
        # Another writer was first: that checkpoint is as good as ours, unless it is damaged. Or our own put
        # was repeated and found its own file, which then names our parts.
        present = _present(store, version, file_format)
        if present is not None:
            for entry in () if _is_of(data, present) else entries:
                store.delete(NATIVE.path(entry.path))
            return present
        if _content(store, name) in (None, data):
            # A cleanup deleted it. If it was ours, our parts are going too: they are not named again.
            return None
        store.put(NATIVE.path(name), data)
    if not _has_all(store, version, entries):
        _log.warning("%s: %s lost parts to a cleanup and is written again", store.uri, name)
        return None
    others = 2 + len(head["mergeskip"]) + len(head["txn"])
    size_bytes = len(data) + sum(entry.size_in_bytes for entry in entries)
    checkpoint = _reference(name, version, file_format, data)
    _log.info("Created checkpoint at version %d with %d active files", version, parts.actions)
    checkpoint = replace(checkpoint, num_files=parts.actions, size_bytes=size_bytes)
    return Written(checkpoint, parts.actions + others, len(entries) or None)


def _content(store: Store, name: str) -> bytes | None:
    try:
        return store.get(NATIVE.path(name))
    except NotFoundError:
        return None


def _has_all(store: Store, version: int, entries: Sequence[Part]) -> bool:
    """Whether every part is in the log; a release before this rule deletes those without a main file."""
    if not entries:
        return True
    listing = list_log(store, NATIVE, version)
    return {entry.path for entry in entries} <= {file.name for file in (*listing.files, *listing.retired)}


def _is_of(data: bytes, written: Written) -> bool:
    """Whether the checkpoint that is in place consists of these bytes."""
    return written.checkpoint.checksum == hashlib.sha256(data).hexdigest()


def _reference(name: str, version: int, file_format: str, data: bytes) -> Checkpoint:
    file = LogFile(name, version, "checkpoint", len(data), format=file_format)
    return Checkpoint(version, file_format, (file,), hashlib.sha256(data).hexdigest())


def _present(store: Store, version: int, file_format: str) -> Written | None:
    """The checkpoint of a version if it exists and is sound, else None."""
    name = NATIVE.checkpoint_name(version, file_format)
    data = _content(store, name)
    if data is None:
        return None
    reference = _reference(name, version, file_format, data)
    try:
        head = NativeCheckpointReader().head(store, reference)
        opened = open_checkpoint(store, reference)
        if opened.stated_count is None:
            # 0.2.0 wrote it. It cannot be told from one of its parts by itself, so it is written anew.
            return None
        count = sum(len(line_paths(lines, name)) for lines in opened.lines())
    except (CorruptLogError, NotFoundError):
        return None
    size = count + 1 + (head.protocol is not None) + len(head.skips) + len(head.txns)
    size_bytes = len(data) + sum(part.size_in_bytes for part in opened.parts or ())
    parts = None if opened.parts is None else len(opened.parts)
    return Written(replace(reference, num_files=count, size_bytes=size_bytes), size, parts)


def write_hint(store: Store, written: Written, clock: Clock) -> None:
    """Point `_last_checkpoint` to a checkpoint, unless it points to a later one that exists."""
    checkpoint = written.checkpoint
    old = read_hint(store, NATIVE)
    if old is not None and (old.version > checkpoint.version and _exists(store, old)):
        return
    if old is not None and old.version == checkpoint.version and old.checksum == checkpoint.checksum:
        return
    hint = {
        "version": checkpoint.version,
        "size": written.size,
        "sizeInBytes": checkpoint.size_bytes,
        "numFiles": checkpoint.num_files,
        "createdTime": clock.now_ms(),
        "checksum": checkpoint.checksum,
        "format": checkpoint.format,
    }
    if written.parts is not None:
        hint["parts"] = written.parts
    store.put(NATIVE.path(HINT_NAME), msgspec.json.encode(hint))


def _exists(store: Store, hint: Hint) -> bool:
    try:
        store.head(NATIVE.path(NATIVE.checkpoint_name(hint.version, hint.format or "json")))
    except NotFoundError:
        return False
    return True
