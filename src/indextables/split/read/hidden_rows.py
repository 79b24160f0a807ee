"""Which rows of a split its deletion vector hides, kept for the next read.

Every reader of a split takes them from here: a vector that is missing, damaged or does not fit its
split is an error, so that no reader takes a deleted row for a live one.
"""

from __future__ import annotations

import numpy as np

from indextables.index.read.cache import BlockCache
from indextables.model.arrays import as_numpy
from indextables.split.layout import SplitRef
from indextables.storage.deletion_vectors import deleted_rows
from indextables.storage.store import Store

MEMORY = BlockCache(64 << 20)
"""The cache of this process."""


def hidden_rows(store: Store, ref: SplitRef, rows: int) -> np.ndarray | None:
    """The numbers of the hidden rows of a split that has `rows` rows, ascending; None without a vector."""
    vector = ref.vector
    if vector is None:
        return None
    key = vector.unique_id.encode(), (store.uri, ref.path, vector.cardinality, rows)
    hidden: np.ndarray | None = MEMORY.get(key)
    if hidden is None:
        hidden = as_numpy(deleted_rows(store, vector, ref.path, rows)).astype(np.int64)
        MEMORY.put(key, hidden, hidden.nbytes)
    return hidden


def without(rows: np.ndarray, hidden: np.ndarray | None) -> np.ndarray:
    """Ascending row numbers, without the hidden ones."""
    if hidden is None:
        return rows
    live: np.ndarray = rows[live_mask(len(rows), hidden_among(rows, hidden))]
    return live


def hidden_among(rows: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """At which places of some ascending row numbers there are hidden ones, which ascend too."""
    if not len(rows) or not len(hidden):
        return np.zeros(0, np.int64)
    low, high = np.searchsorted(hidden, [int(rows[0]), int(rows[-1]) + 1])
    near = hidden[low:high]
    if len(near) > len(rows):
        return np.flatnonzero(is_hidden(rows, near))
    # A scan asks about all rows of a row group: the few that are hidden are looked for among them.
    at = np.searchsorted(rows, near)
    places: np.ndarray = at[rows[at] == near]
    return places


def live_mask(rows: int, places: np.ndarray) -> np.ndarray:
    """True for each of so many rows, but for those at some places."""
    live = np.ones(rows, np.bool_)
    live[places] = False
    return live


def is_hidden(rows: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """For each row number, in any order, whether it is among the ascending hidden ones."""
    at = np.minimum(np.searchsorted(hidden, rows), len(hidden) - 1)
    found: np.ndarray = hidden[at] == rows
    return found
