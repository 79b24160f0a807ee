"""What the live rows of a split contribute to the ranking statistics of words.

An index counts every row it was built from. Where a deletion vector hides some, the hidden rows are taken out
of each count: those in the lists of the words, and their tokens. So a search ranks as it will after the
deleted rows have left the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from indextables.index.codec.lengths import LENGTHS
from indextables.index.read.lookup import Index, Term
from indextables.index.read.ranking import Statistics, statistics_of_terms
from indextables.index.settings import IndexField
from indextables.index.tokenise import tokens_of

_FIRST_COARSE = int(np.flatnonzero(np.diff(LENGTHS) > 1)[0])
"""Rows of a lower length class have exactly its number of tokens."""

ColumnOf: TypeAlias = Callable[[str, np.ndarray], pa.Array]
"""Reads a column of some ascending rows of the split."""


def live_statistics(
    index: Index, terms: Sequence[Term], hidden: np.ndarray, column_of: ColumnOf
) -> Statistics:
    """The statistics of one index for some words, without the hidden rows."""
    every = statistics_of_terms(index, terms)
    rows = hidden.astype(np.uint32)
    return Statistics(
        every.rows - len(rows),
        {name: count - tokens_in(index, name, rows, column_of) for name, count in every.tokens.items()},
        {
            term: count - (_hits(index, term, rows) if count else 0)
            for term, count in every.frequencies.items()
        },
    )


def _hits(index: Index, term: Term, rows: np.ndarray) -> int:
    """In how many of some ascending rows a word is."""
    column, text = term
    field = index.spec.numbers[column, None]
    (entry,) = index.entries([(field, text)])
    if entry is None:
        return 0
    word = index.word(field, text, entry)
    hits = int(np.count_nonzero(word.test(rows)))
    index.cache_word(field, text, word)
    return hits


def tokens_in(index: Index, column: str, rows: np.ndarray, column_of: ColumnOf) -> int:
    """How many tokens some rows have in a column; the rows themselves are read only where they are long."""
    key = index.identity, ("tokens", column, hashlib.sha256(rows.tobytes()).digest())
    counted: int | None = index.cache.get(key)
    if counted is None:
        field, item = _ranked_field(index, column)
        classes = index.classes(field, rows)
        is_long = classes >= _FIRST_COARSE
        counted = int(LENGTHS[classes[~is_long]].sum())
        if is_long.any():
            counted += count_tokens(item, column_of(column, rows[is_long].astype(np.int64)))
        index.cache.put(key, counted, 64)
    return counted


def _ranked_field(index: Index, column: str) -> tuple[int, IndexField]:
    return next(
        (number, item)
        for number, (item, root) in enumerate(zip(index.spec.fields, index.root.fields, strict=True))
        if item.column == column and root.norms
    )


def count_tokens(item: IndexField, values: pa.Array) -> int:
    """How many tokens a field has in some rows."""
    return int(tokens_of(item, values).lengths.sum(dtype=np.int64))
