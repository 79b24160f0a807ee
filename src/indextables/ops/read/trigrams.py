"""Splits that a LIKE or RLIKE can be true in, by the trigrams in their dictionaries; no row is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from indextables.errors import DamagedIndexError, StorageError
from indextables.index.query.tree import Query
from indextables.log.snapshot import Snapshot
from indextables.model.actions import AddAction
from indextables.ops.read.in_order import in_order
from indextables.ops.read.word_filters import splits_to_search
from indextables.ops.table_settings import settings_of
from indextables.predicate.tree import Node
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_index
from indextables.split.search.substring import fields_of, may_hold, needed_trigrams

MOST_SPLITS = 1000
"""Splits up to which their dictionaries are asked one by one; beyond it the filters beside the log decide."""
AT_ONCE = 16


def ruled_out(snapshot: Snapshot, node: Node | None, paths: Callable[[], Sequence[str]]) -> frozenset[str]:
    """Those of some splits that the trigrams of a filter rule out; `paths` is called only if it needs any."""
    spec = settings_of(snapshot)
    columns = fields_of(spec)
    needed = None if node is None or not columns else needed_trigrams(node, columns)
    if node is None or needed is None:
        return frozenset()
    adds = snapshot.adds(paths())
    left = splits_to_search(snapshot, Query(str(node), needed, spec), adds)
    if len(left) <= MOST_SPLITS:
        asked = in_order([partial(_asked, snapshot, add, node) for add in left], AT_ONCE)
        left = [add for add, possible in zip(left, asked, strict=True) if possible]
    return frozenset(add.path for add in adds) - {add.path for add in left}


def _asked(snapshot: Snapshot, add: AddAction, node: Node) -> Iterator[bool]:
    try:
        index = open_index(snapshot.reading, SplitRef.of(add), with_rows=False)
        yield index is None or may_hold(index, node)
    except (DamagedIndexError, StorageError):
        # Reading the rows says what is wrong with the file, if anything is.
        yield True
