"""Word filters over many splits: which of them may hold a word, checked before any index is opened.

A table of 64 splits or more has them, and one with `indexFilters.enabled` whatever its size.
Splits that no filter covers yet get one after a merge, by CHECKPOINT, and whenever a write
made a checkpoint. A filter file lies in `_transaction_log/filters`, covers a group of splits
and never changes; small groups are combined from time to time. Filters are derived data: if
one is missing, damaged or made with other index settings, the indexes themselves are searched.
"""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, chain

import numpy as np

from indextables.errors import DamagedIndexError, SplitError, StorageError
from indextables.index.filters import FilterGroup, filter_of, group_bytes
from indextables.index.query.tree import Query
from indextables.index.settings import IndexSpec
from indextables.log.format.dialect import NATIVE
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.ops.read.condition_of_query import implied_condition
from indextables.ops.table_settings import settings_of
from indextables.reading import Reading
from indextables.records import dataclass
from indextables.runtime import in_threads
from indextables.split.layout import SplitRef, index_tags
from indextables.split.open_splits import SplitRanges, open_index
from indextables.split.source import SplitFile
from indextables.storage.objects import ObjectMeta
from indextables.storage.store import Store, is_local, requests_at_once

SUFFIX = ".filter"
FROM_SPLITS, UP_TO_SPLITS = 64, 65_536
"""How many splits a table has that gets filters without `indexFilters.enabled`.

Fewer are searched as fast one by one (decision 135); with more, looking for new ones would slow writes."""
BYTES_AFTER_WRITE = 64 << 20
"""Indexes up to this size are read for filters after a write, and the others after later ones."""
FEW_MEMBERS = 256
"""Groups with fewer members are combined when there are several of them."""
MOST_SMALL_GROUPS = 4

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FilterFile:
    """A filter file and the group in it."""

    path: str
    modified_ms: int
    group: FilterGroup


def splits_to_search(snapshot: Snapshot, query: Query, refs: Sequence[SplitRef]) -> list[SplitRef]:
    """The splits that may hold a match, by the log and by filters; splits without one are always included."""
    condition = implied_condition(query, snapshot.schema)
    if condition is not None and refs:
        possible = frozenset(snapshot.plan(condition, columns={"path"}).files.column("path").to_pylist())
        refs = [ref for ref in refs if ref.path in possible]
    if len(refs) <= 1 or not _has_filters(snapshot, len(refs)):
        return list(refs)
    settings = settings_tag(query.spec)

    def without_match(file: FilterFile) -> list[str]:
        """The members of a group that a query rules out."""
        try:
            possible = file.group.may_match(query)
        except (DamagedIndexError, SplitError, StorageError) as bad:
            _log.warning(
                "%s/%s cannot be used, so its splits are opened instead: %s",
                snapshot.store.uri,
                file.path,
                bad,
            )
            return []
        return [file.group.names[at] for at in np.flatnonzero(~possible)]

    files = snapshot.once("filters", lambda: read_filters(snapshot.store))
    groups = [file for file in files if file.group.settings == settings]
    # Where the store is near, threads cost more than the reads they make.
    threads = 1 if is_local(snapshot.store) else requests_at_once(snapshot.store)
    ruled_out = set(chain.from_iterable(in_threads(without_match, groups, threads, ahead=threads - 1)))
    return [ref for ref in refs if ref.path not in ruled_out]


def _has_filters(snapshot: Snapshot, splits: int | None) -> bool:
    """Whether filters are kept for a version, and worth asking about this many splits of it."""
    if snapshot.names is not None:
        # They are made of stored names.
        return False
    enabled = snapshot.settings.search.filters_enabled
    if enabled is None:
        return splits is not None and FROM_SPLITS <= splits <= UP_TO_SPLITS
    return enabled


def settings_tag(spec: IndexSpec) -> str:
    """What tells indexes made with one set of settings from others."""
    return index_tags(spec).get("indexSettings") or ""


def read_filters(store: Store) -> list[FilterFile]:
    """The readable filters of a table; only the members of each are read."""

    def opened(meta: ObjectMeta) -> FilterFile | None:
        try:
            group = FilterGroup.open(SplitRanges(SplitFile(store, meta.path), 0), meta.size)
        except (DamagedIndexError, SplitError, StorageError) as bad:
            _log.warning("%s/%s cannot be used: %s", store.uri, meta.path, bad)
            return None
        return FilterFile(meta.path, meta.modified_ms, group)

    metas = [meta for meta in store.list_level(_directory()) if meta.path.endswith(SUFFIX)]
    return [file for file in in_threads(opened, metas, requests_at_once(store)) if file is not None]


def keep_filters(log: TransactionLog, *, after_write: bool = False) -> None:
    """Bring the filters up to date if the table has them; errors are logged as warnings.

    With `after_write` only if the newest version has a checkpoint, and of a bounded number of splits.
    """
    try:
        snapshot = log.snapshot()
        due = not after_write or snapshot.segment.newest_checkpoint == snapshot.version
        if due and _has_filters(snapshot, snapshot.num_files_hint):
            added = update_filters(log, BYTES_AFTER_WRITE if after_write else None)
            _log.info("%s: filters now cover %d more splits", log.uri, added)
    except Exception:  # noqa: BLE001 - it follows a commit, and must not look like a failed one
        _log.warning("%s: the filters could not be brought up to date", log.uri, exc_info=True)


def update_filters(log: TransactionLog, most_bytes: int | None = None) -> int:
    """Make filters for live splits that have none, and delete unused ones; returns how many were added.

    Indexes of about `most_bytes` together are read, and at least one.
    """
    snapshot = log.snapshot(max_staleness_s=0)
    spec = settings_of(snapshot)
    if not spec.fields:
        return 0
    settings = settings_tag(spec)
    live = frozenset(snapshot.plan(columns={"path"}).files.column("path").to_pylist())
    files = read_filters(log.store)
    current = [file for file in files if file.group.settings == settings]
    covered = {name for file in current for name in file.group.names}
    uncovered = [
        SplitRef.of(add)
        for add in snapshot.adds(sorted(live - covered))
        if (add.tags or {}).get("indexSettings", "") == settings
    ]
    refs = uncovered if most_bytes is None else _within(uncovered, most_bytes)
    small = _to_join(current)
    by_blocks: dict[int, list[tuple[str, np.ndarray]]] = defaultdict(list)
    for name, word_filter in (*_of_splits(snapshot.reading, refs), *_of_groups(small, live)):
        by_blocks[len(word_filter)].append((name, word_filter))
    for members in by_blocks.values():
        names, filters = zip(*members, strict=True)
        log.store.put(f"{_directory()}/{uuid.uuid4().hex}{SUFFIX}", group_bytes(names, filters, settings))
    # A reader that has just listed the files may still ask the ones that go: it then asks the indexes.
    for file in files:
        if file in small or live.isdisjoint(file.group.names):
            log.store.delete(file.path)
    return len(refs)


def _directory() -> str:
    return NATIVE.path("filters")


def _within(refs: list[SplitRef], most_bytes: int) -> list[SplitRef]:
    """The first splits whose indexes have no more bytes together; at least one."""
    sizes = accumulate(ref.index_length or 0 for ref in refs)
    return refs[: max(1, sum(size <= most_bytes for size in sizes))]


def _of_splits(reading: Reading, refs: Sequence[SplitRef]) -> Iterator[tuple[str, np.ndarray]]:
    """The filters of splits, from the words of their indexes."""

    def words_of(ref: SplitRef) -> np.ndarray | None:
        try:
            index = open_index(reading, ref, with_rows=False)
            return None if index is None else filter_of(index)
        except (SplitError, StorageError) as bad:
            # Searches ask the split itself, and say what is wrong with it.
            _log.warning("%s gets no filter: %s", ref.path, bad)
            return None

    threads = requests_at_once(reading.store)
    for ref, word_filter in zip(refs, in_threads(words_of, refs, threads), strict=True):
        if word_filter is not None:
            yield ref.path, word_filter


def _to_join(files: Sequence[FilterFile]) -> list[FilterFile]:
    """Small groups, once there are several with the same number of blocks."""
    by_size: dict[int, list[FilterFile]] = defaultdict(list)
    for file in files:
        if len(file.group.names) < FEW_MEMBERS:
            by_size[file.group.blocks].append(file)
    return [file for some in by_size.values() if len(some) >= MOST_SMALL_GROUPS for file in some]


def _of_groups(files: Sequence[FilterFile], live: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
    for file in files:
        for name, word_filter in zip(file.group.names, file.group.every_filter(), strict=True):
            if name in live:
                yield name, word_filter
