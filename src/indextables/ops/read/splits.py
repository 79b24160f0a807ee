"""Which splits a read opens: those that pruning, word filters and the index leave.

Every read of rows begins here. What comes out are `SplitRef`s in the order of paths, and whatever
reads or searches splits takes these: the log's own actions go no further.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from indextables.errors import DamagedIndexError, StorageError
from indextables.index.query.tree import Query
from indextables.lazy import later
from indextables.log.replay.rule import ReplayMetrics
from indextables.log.snapshot import Snapshot
from indextables.ops.foreign_rows import ForeignRows
from indextables.ops.read.in_order import in_order
from indextables.ops.read.record import Record
from indextables.ops.read.word_filters import splits_to_search
from indextables.ops.table_settings import require_parquet, settings_of
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.records import dataclass
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_index
from indextables.split.search.metrics import SearchMetrics
from indextables.storage.store import requests_at_once

if TYPE_CHECKING:
    from indextables.predicate.tree import Node
    from indextables.split.search import narrowing
else:
    narrowing = later("indextables.split.search.narrowing")

MOST_DICTIONARIES = 1000
"""Up to this many splits, each dictionary is searched; with more, the filters beside the log decide."""
_KEPT_FILES = 1000
"""Tables of up to this many files keep the splits that a filter leaves."""

_EVERY_FILE = ReplayMetrics("reference", why="every file is read, with its whole entry")


def live_splits(snapshot: Snapshot) -> tuple[SplitRef, ...]:
    """All splits of a version; they are kept with it."""
    if isinstance(snapshot, ForeignRows):
        return snapshot.splits().refs
    return snapshot.once("split refs", lambda: tuple(SplitRef.of(add) for add in snapshot.adds()))


def splits_at(snapshot: Snapshot, paths: Collection[str]) -> list[SplitRef]:
    """The splits with these paths."""
    if isinstance(snapshot, ForeignRows):
        chosen = frozenset(paths)
        return [ref for ref in snapshot.splits().refs if ref.path in chosen]
    return [SplitRef.of(add) for add in snapshot.adds(paths)] if paths else []


def splits_for(snapshot: Snapshot, where: Node | None, record: Record) -> Sequence[SplitRef]:
    """The splits in which a filter may be true for a row."""
    require_parquet(snapshot)
    if isinstance(snapshot, ForeignRows):
        chosen = snapshot.splits(where)
        record.planned(chosen.metrics, chosen.replay, where)
        return chosen.refs if where is None else with_entries(snapshot, where, chosen.refs, record)
    if where is None:
        refs = live_splits(snapshot)
        record.planned(PruneMetrics(considered=len(refs), kept=len(refs)), _EVERY_FILE)
        return refs
    planned = _planned(snapshot, where)
    snapshot.note_filter(where, planned.metrics)
    record.planned(planned.metrics, planned.replay)
    return with_entries(snapshot, where, planned.refs, record)


@dataclass(frozen=True, slots=True)
class _Planned:
    refs: tuple[SplitRef, ...]
    metrics: PruneMetrics
    replay: ReplayMetrics


def _planned(snapshot: Snapshot, where: Node) -> _Planned:
    """The splits that pruning leaves; of a small table they are kept with the version and the filter."""

    def plan() -> _Planned:
        chosen = snapshot.plan_adds(where)
        return _Planned(tuple(map(SplitRef.of, chosen.adds)), chosen.metrics, chosen.replay)

    hint = snapshot.num_files_hint
    if hint is None or hint > _KEPT_FILES:
        return plan()
    return snapshot.parsed(str(where), ("splits", where), plan)


def with_words(snapshot: Snapshot, query: Query, refs: Sequence[SplitRef], record: Record) -> list[SplitRef]:
    """The splits that word filters do not rule out for a query."""
    record.ruled_by(query.fields_named())
    left = splits_to_search(snapshot, query, refs)
    if len(left) < len(refs):
        record.searched(SearchMetrics(ruled_out=len(refs) - len(left)))
    return left


def with_entries(
    snapshot: Snapshot, where: Node, refs: Sequence[SplitRef], record: Record
) -> Sequence[SplitRef]:
    """The splits that word filters do not rule out for the values and trigrams that a filter needs."""
    entries = entries_of(snapshot, where)
    return refs if entries is None else with_words(snapshot, entries, refs, record)


def entries_of(snapshot: Snapshot, where: Node | None) -> Query | None:
    """The values and trigrams without which a filter is true for no row; None when it needs none."""
    if where is None:
        return None
    spec = settings_of(snapshot)
    entries = narrowing.needed_entries(where, spec)
    return None if entries is None else Query(str(where), entries, spec)


def ruled_out_by_index(
    snapshot: Snapshot, where: Node | None, paths: Callable[[], Sequence[str]]
) -> tuple[frozenset[str], list[str]]:
    """The paths of splits in which a filter cannot be true, by their dictionaries; no row is read.

    Also the fields of the index that were asked. `paths` gives the candidates, and is called only if the
    filter needs entries of the index.
    """
    entries = entries_of(snapshot, where)
    if where is None or entries is None:
        return frozenset(), []
    refs = splits_at(snapshot, paths())
    left = splits_to_search(snapshot, entries, refs)
    if len(left) <= MOST_DICTIONARIES:
        answers = in_order(
            [partial(_may_hold, snapshot, ref, where) for ref in left], requests_at_once(snapshot.store)
        )
        left = [ref for ref, possible in zip(left, answers, strict=True) if possible]
    excluded = frozenset(ref.path for ref in refs) - {ref.path for ref in left}
    return excluded, entries.fields_named()


def _may_hold(snapshot: Snapshot, ref: SplitRef, where: Node) -> Iterator[bool]:
    try:
        index = open_index(snapshot.reading, ref, with_rows=False)
        yield index is None or narrowing.may_hold(index, where)
    except (DamagedIndexError, StorageError):
        # Reading the rows says what is wrong with the file, if anything is.
        yield True
