"""Word filters over many splits: which of them may hold a word, checked before any index is opened.

With `indexFilters.enabled`, splits that no filter covers yet get one after a merge, and
whenever a write made a checkpoint. A filter file lies in `_transaction_log/filters`,
covers a group of splits and never changes; small groups are combined from time to time.
Filters are derived data: if one is missing, damaged or made with other index settings,
the indexes themselves are searched.
"""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from indextables.errors import DamagedIndexError, SplitError, StorageError
from indextables.index.filters import FilterGroup, filter_of, group_bytes
from indextables.index.query.tree import Query
from indextables.index.settings import IndexSpec
from indextables.log.format.dialect import NATIVE
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.ops.table_settings import settings_of
from indextables.reading import Reading
from indextables.records import dataclass
from indextables.split.layout import SplitRef, index_tags
from indextables.split.open_splits import SplitRanges, open_index
from indextables.split.source import Source
from indextables.storage.store import Store

S = TypeVar("S", AddAction, SplitRef)

SUFFIX = ".filter"
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


def splits_to_search(snapshot: Snapshot, query: Query, splits: Sequence[S]) -> list[S]:
    """The splits that may hold a match; splits without a filter are always included."""
    if len(splits) <= 1 or not snapshot.settings.search.filters_enabled:
        return list(splits)
    settings = settings_tag(query.spec)
    ruled_out: set[str] = set()
    for file in snapshot.once("filters", lambda: read_filters(snapshot.store)):
        if file.group.settings != settings:
            continue
        try:
            possible = file.group.may_match(query)
        except (DamagedIndexError, SplitError, StorageError) as bad:
            _log.warning(
                "%s/%s cannot be used, so its splits are opened instead: %s",
                snapshot.store.uri,
                file.path,
                bad,
            )
            continue
        names = file.group.names
        ruled_out.update(names[at] for at in np.flatnonzero(~possible))
    return [split for split in splits if split.path not in ruled_out]


def settings_tag(spec: IndexSpec) -> str:
    """What tells indexes made with one set of settings from others."""
    return index_tags(spec).get("indexSettings") or ""


def read_filters(store: Store) -> list[FilterFile]:
    """The readable filters of a table; only the members of each are read."""
    found = []
    for meta in store.list_level(_directory()):
        if not meta.path.endswith(SUFFIX):
            continue
        try:
            group = FilterGroup.open(SplitRanges(Source(store, meta.path), 0), meta.size)
        except (DamagedIndexError, SplitError, StorageError) as bad:
            _log.warning("%s/%s cannot be used: %s", store.uri, meta.path, bad)
        else:
            found.append(FilterFile(meta.path, meta.modified_ms, group))
    return found


def keep_filters(log: TransactionLog, *, at_checkpoints: bool = False) -> None:
    """Bring the filters up to date if the table uses them; errors are logged as warnings.

    With `at_checkpoints` only if the newest version has a checkpoint.
    """
    try:
        snapshot = log.snapshot()
        due = not at_checkpoints or snapshot.segment.newest_checkpoint == snapshot.version
        if due and snapshot.settings.search.filters_enabled:
            covered = update_filters(log)
            _log.info("%s: filters now cover %d more splits", log.uri, covered)
    except Exception:  # noqa: BLE001 - it follows a commit, and must not look like a failed one
        _log.warning("%s: the filters could not be brought up to date", log.uri, exc_info=True)


def update_filters(log: TransactionLog) -> int:
    """Make filters for live splits that have none, and delete unused ones; returns how many were added."""
    snapshot = log.snapshot(max_staleness_s=0)
    spec = settings_of(snapshot)
    if not spec.fields:
        return 0
    settings, tags = settings_tag(spec), index_tags(spec)
    live = {add.path: add for add in snapshot.adds()}
    files = read_filters(log.store)
    current = [file for file in files if file.group.settings == settings]
    covered = {name for file in current for name in file.group.names}
    waiting = [
        add
        for path, add in live.items()
        if path not in covered and (add.tags or {}).get("indexSettings") == tags.get("indexSettings")
    ]
    small = _to_join(current)
    made: dict[int, list[tuple[str, np.ndarray]]] = defaultdict(list)
    for name, built in (*_of_splits(snapshot.reading, waiting), *_of_groups(small, live)):
        made[len(built)].append((name, built))
    for members in made.values():
        names, filters = zip(*members, strict=True)
        log.store.put(f"{_directory()}/{uuid.uuid4().hex}{SUFFIX}", group_bytes(names, filters, settings))
    # A reader that has just listed the files may still ask the ones that go: it then asks the indexes.
    needless = [file for file in files if file in small or not live.keys() & set(file.group.names)]
    for file in needless:
        log.store.delete(file.path)
    return len(waiting)


def _directory() -> str:
    return NATIVE.path("filters")


def _of_splits(reading: Reading, adds: Sequence[AddAction]) -> Iterator[tuple[str, np.ndarray]]:
    for add in adds:
        try:
            index = open_index(reading, SplitRef.of(add), with_rows=False)
            if index is not None:
                yield add.path, filter_of(index)
        except (SplitError, StorageError) as bad:
            # Searches ask the split itself, and say what is wrong with it.
            _log.warning("%s gets no filter: %s", add.path, bad)


def _to_join(files: Sequence[FilterFile]) -> list[FilterFile]:
    """Small groups, once there are several with the same number of blocks."""
    by_size: dict[int, list[FilterFile]] = defaultdict(list)
    for file in files:
        if len(file.group.names) < FEW_MEMBERS:
            by_size[file.group.blocks].append(file)
    return [file for some in by_size.values() if len(some) >= MOST_SMALL_GROUPS for file in some]


def _of_groups(files: Sequence[FilterFile], live: dict[str, AddAction]) -> Iterator[tuple[str, np.ndarray]]:
    for file in files:
        for name, built in zip(file.group.names, file.group.every_filter(), strict=True):
            if name in live:
                yield name, built
