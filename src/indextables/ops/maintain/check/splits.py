"""Checks whether splits are what the log says, by size, footer, deletion vector and index checksums.

Rows are not read. A split with a damaged footer or another size than the log has is
damaged, and so is one whose deletion vector is missing, damaged or names rows that it does
not have: its live rows cannot be told from deleted ones. If only its index is damaged, the
split is still usable: searches scan its rows, and MERGE SPLITS indexes it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from indextables.errors import CorruptLogError, DamagedIndexError, SplitError, StorageError
from indextables.index.read.lookup import Index
from indextables.model.actions import LARGEST, AddAction
from indextables.model.stats import of_add
from indextables.ops.existence import as_store, portable, workers_for
from indextables.ops.progress import Progress, silent, watched
from indextables.runtime import LOCAL, Runtime
from indextables.split.layout import SplitManifest, SplitRef, read_footer
from indextables.split.open_splits import SplitRanges
from indextables.split.source import SplitFile
from indextables.storage.checksum import crc32
from indextables.storage.deletion_vectors import deleted_rows, descriptor
from indextables.storage.store import Store, StoreSpec

_REMOTE_BUDGET = 1 << 30


@dataclass(frozen=True, slots=True)
class SplitFinding:
    """What is wrong with one split."""

    path: str
    rows: str | None = None
    """Why the rows cannot be read as the log says; None when they can."""
    index: str | None = None
    """What is wrong with the index; None when nothing is."""


def inspect_splits(
    store: Store,
    adds: Sequence[AddAction],
    sizes: Mapping[str, int],
    runtime: Runtime = LOCAL,
    *,
    deep: bool = False,
    parallelism: int | None = None,
    progress: Progress = silent,
) -> list[SplitFinding]:
    """What is wrong with the splits of a table, by the listing and, if `deep`, by their content.

    `sizes` has the files that exist. The result leaves out splits with which nothing is wrong.
    """
    wrong = [
        SplitFinding(add.path, rows=damage)
        for add in adds
        if (damage := size_damage(add, sizes) or vector_damage(store, add)) is not None
    ]
    if not deep:
        return wrong
    damaged_paths = {finding.path for finding in wrong}
    intact_sizes = [add for add in adds if add.path not in damaged_paths]
    workers = workers_for(runtime, len(intact_sizes) * 10)
    work = partial(inspect_split, portable(store, workers), sizes)
    findings = workers.map(work, intact_sizes, parallelism=parallelism)
    checked = watched(findings, progress, "Checking splits", len(intact_sizes))
    return wrong + [finding for finding in checked if finding.rows is not None or finding.index is not None]


def size_damage(add: AddAction, sizes: Mapping[str, int]) -> str | None:
    """What the listing shows to be wrong with a split: it is gone, or its size differs from the log's."""
    size = sizes.get(add.path)
    if size is None:
        return "the file is not there"
    if size == 0:
        return "it is empty"
    if add.size and size != add.size:
        return f"it has {size} bytes and the log says {add.size}"
    return None


def vector_damage(store: Store, add: AddAction, rows: int | None = None) -> str | None:
    """What is wrong with the deletion vector of a split; None when nothing is.

    The split has `rows` rows, by default as many as the log says.
    """
    if add.deletion_vector is None:
        return None
    rows = of_add(add, null_counts=False).num_records if rows is None else rows
    try:
        vector = descriptor(add.deletion_vector)
        if vector is not None:
            deleted_rows(store, vector, add.path, LARGEST if rows is None else rows)
    except (CorruptLogError, SplitError, StorageError) as error:
        return error.message
    return None


def damaged_indexes(store: Store, adds: Sequence[AddAction], runtime: Runtime = LOCAL) -> set[str]:
    """The paths of splits whose footers are sound and whose index is not.

    Every byte of an index has to be read. On remote storage the total is limited, smallest indexes first.
    """
    inspected: list[AddAction] = []
    bytes_left = _REMOTE_BUDGET
    for add in sorted(adds, key=lambda add: add.hotcache_length or 0):
        bytes_left -= add.hotcache_length or 0
        if store.local_path(add.path) is None and bytes_left < 0:
            break
        inspected.append(add)
    workers = runtime.workers if len(inspected) > 1 else LOCAL.workers
    findings = workers.map(partial(inspect_split, portable(store, workers), {}), inspected)
    return {finding.path for finding in findings if finding.rows is None and finding.index is not None}


def inspect_split(store: Store | StoreSpec, sizes: Mapping[str, int], add: AddAction) -> SplitFinding:
    """Check one split against its add action and its own checksums."""
    root = as_store(store)
    size = sizes.get(add.path)
    source = SplitFile.of(root, add.path)
    try:
        manifest = read_footer(source, SplitRef(add.path, size, footer_crc=add.footer_crc)).manifest
        if add.num_records is not None and manifest.rows != add.num_records:
            return SplitFinding(
                add.path, rows=f"it has {manifest.rows} rows and the log says {add.num_records}"
            )
        if add.num_records is None and (wrong := vector_damage(root, add, manifest.rows)) is not None:
            return SplitFinding(add.path, rows=wrong)
        return SplitFinding(add.path, index=index_damage(source, manifest))
    except (SplitError, StorageError) as error:
        return SplitFinding(add.path, rows=error.message)


def index_damage(source: SplitFile, manifest: SplitManifest) -> str | None:
    """What is wrong with the index of a split or its row map; None when every byte is what was written."""
    length = manifest.length - manifest.row_map.length
    body = source.read_one(manifest.offset + length, manifest.row_map.length)
    if crc32(body) != manifest.row_map.crc32:
        return "the checksum of its row map does not match"
    if manifest.root is None:
        return None
    try:
        Index.open(
            SplitRanges(source, manifest.offset), length, manifest.root.length, name=source.name
        ).verify()
    except DamagedIndexError as damage:
        return damage.message
    return None
