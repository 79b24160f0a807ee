"""Distinct values of a column and their row counts, from the dictionary of a split's index.

Only a column indexed as `string` keeps whole values. If the dictionary is large compared
with the rows, damaged, or made with other settings, the caller reads the rows instead.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from indextables.errors import DamagedIndexError
from indextables.index.read.lookup import Index
from indextables.index.settings import STRING
from indextables.index.tokens import BEYOND
from indextables.reading import Reading
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_index, warn_once
from indextables.split.search.metrics import Note, SearchMetrics

ROWS_PER_BLOCK = 8192
"""Reading a dictionary block takes about as long as reading this many rows."""


def value_counts(
    reading: Reading, ref: SplitRef, column: str, note: Note
) -> tuple[pa.Array, pa.Array] | None:
    """The distinct values, null included, and their row counts; None when the index cannot tell."""
    if ref.vector is not None:
        # The dictionary counts deleted rows too.
        return None
    try:
        index = open_index(reading, ref, with_rows=False)
        counts = None if index is None else _of_index(index, column)
    except DamagedIndexError as damage:
        warn_once(f"{ref.path}: {damage}")
        note(SearchMetrics(damaged=1))
        return None
    return counts


def _of_index(index: Index, column: str) -> tuple[pa.Array, pa.Array] | None:
    entry = index.fields.get((column, STRING))
    if entry is None or index.live is not None:
        return None
    first, root = index.root.first_block, entry[2]
    at = entry[0]
    numbers = range(int(first[at]), int(first[at]) + root.blocks)
    if len(numbers) > 1 + index.rows // ROWS_PER_BLOCK:
        return None
    values: list[bytes | None] = []
    counts: list[np.ndarray] = []
    for block in index.blocks(numbers).values():
        words = block.words()
        whole_values = [word for word in words if not word.startswith(BEYOND)]
        # Entries that are not values sort after all values.
        values += whole_values
        counts.append(block.columns.frequencies[: len(whole_values)].astype(np.int64))
    if root.nulls:
        values.append(None)
        counts.append(np.array([root.nulls], np.int64))
    total = np.concatenate(counts) if counts else np.zeros(0, np.int64)
    if int(total.sum()) != index.rows:
        # A row may have several values or none, so the rows have to be read.
        return None
    return pa.array(values, pa.binary()).cast(pa.string()), pa.array(total)
