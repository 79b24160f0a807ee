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
    if hidden is None or not len(hidden) or not len(rows):
        return rows
    live: np.ndarray = rows[~is_hidden(rows, hidden)]
    return live


def is_hidden(rows: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """For each row number, whether it is among the ascending hidden ones."""
    at = np.minimum(np.searchsorted(hidden, rows), len(hidden) - 1)
    found: np.ndarray = hidden[at] == rows
    return found
