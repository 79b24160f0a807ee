"""Which rows can match LIKE, RLIKE, contains, startswith, endswith or =, by the trigrams of the index.

A column indexed as `substring` has an entry for every three consecutive characters of a
value. A text of three or more characters can only be in a value that has all its
trigrams, so their lists rule out rows and whole splits. The remaining rows are checked
against the filter: the index never decides that a row matches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import reduce

import numpy as np

from indextables.errors import DamagedIndexError
from indextables.index.codec.numbers import Array
from indextables.index.query.tree import Boolean, Words
from indextables.index.query.tree import Node as Query
from indextables.index.read.lookup import Index
from indextables.index.read.words import WordPostings, read_lists
from indextables.index.settings import SUBSTRING, IndexSpec
from indextables.predicate.coerce import like_pieces
from indextables.predicate.regex import required_texts
from indextables.predicate.tree import And, Column, Compare, In, IsTrue, Like, Match, Node, Or, RLike
from indextables.reading import Reading
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_index, warn_once

SIZE = 3
DENSE = 8
"""If even the rarest trigram is in one of this many rows, reading all rows is faster."""
MANY = 16
"""If one of this many rows is left, all pages are decoded: a list that rules out less than this share of them
is not followed by others."""
ENOUGH = 8
"""Once this few rows are left, no more lists are read."""


def fields_of(spec: IndexSpec) -> frozenset[str]:
    """The columns with trigrams."""
    return frozenset(item.column for item in spec.fields if item.kind == SUBSTRING)


def needed_trigrams(node: Node, columns: Collection[str]) -> Query | None:
    """The trigrams a row must have for a filter to be true; None when there is no such requirement."""
    if isinstance(node, And):
        parts = [part for child in node.children if (part := needed_trigrams(child, columns)) is not None]
        return Boolean(must=tuple(parts)) if parts else None
    if isinstance(node, Or):
        either = [needed_trigrams(child, columns) for child in node.children]
        required = tuple(part for part in either if part is not None)
        return Boolean(should=required) if len(required) == len(either) else None
    if isinstance(node, IsTrue):
        return needed_trigrams(node.child, columns)
    if isinstance(node, (Match, Like, RLike, Compare, In)) and _has_trigrams(node.column, columns):
        return _of_texts(node)
    return None


def _has_trigrams(operand: object, columns: Collection[str]) -> bool:
    # char(n) values are compared as if padded, and other collations compare other texts.
    return isinstance(operand, Column) and operand.is_one_of(columns) and operand.order == "binary"


def _of_texts(node: Match | Like | RLike | Compare | In) -> Query | None:
    assert isinstance(node.column, Column)
    name = node.column.name
    if isinstance(node, Match):
        return _all_of(name, [node.text])
    if isinstance(node, Like):
        pieces = like_pieces(node.pattern, node.escape)
        return _all_of(name, [piece[1:] for piece in pieces if piece.startswith("=")])
    if isinstance(node, RLike):
        return _any_of(name, required_texts(node.pattern))
    if isinstance(node, Compare):
        return _all_of(name, [node.literal.value]) if node.op in {"=", "<=>"} else None
    return _any_of(name, [[literal.value] for literal in node.values]) if node.values else None


def _any_of(column: str, choices: Iterable[Iterable[str]]) -> Query | None:
    parts = [_all_of(column, texts) for texts in choices]
    required = tuple(part for part in parts if part is not None)
    if not parts or len(required) < len(parts):
        return None
    return required[0] if len(required) == 1 else Boolean(should=required)


def _all_of(column: str, texts: Iterable[str]) -> Query | None:
    threes = {text[at : at + SIZE] for text in texts for at in range(len(text) - SIZE + 1)}
    return Boolean(must=tuple(Words(column, (three,)) for three in sorted(threes))) if threes else None


def rows_left(index: Index, node: Node) -> Array | None:
    """The rows (ascending) that the trigrams do not rule out; None when reading all rows is faster."""
    needed = needed_trigrams(node, fields_of(index.spec))
    return None if needed is None else _rows(index, needed)


def may_hold(index: Index, node: Node) -> bool:
    """Whether the dictionary of an index has what a filter needs; no list is read."""
    needed = needed_trigrams(node, fields_of(index.spec))
    return needed is None or _may_match(index, needed)


def index_for(reading: Reading, ref: SplitRef, node: Node, spec: IndexSpec) -> Index | None:
    """The index of a split, if the table has trigrams that a filter needs and they can be read."""
    if needed_trigrams(node, fields_of(spec)) is None:
        return None
    try:
        return open_index(reading, ref, with_rows=True)
    except DamagedIndexError as damage:
        warn_once(f"{ref.path}: {damage}")
        return None


def _may_match(index: Index, needed: Query) -> bool:
    if isinstance(needed, Words):
        return index.entries([_key(index, needed)])[0] is not None
    assert isinstance(needed, Boolean)
    plain = [part for part in needed.must if isinstance(part, Words)]
    if None in index.entries([_key(index, part) for part in plain]):
        return False
    if not all(_may_match(index, part) for part in needed.must if not isinstance(part, Words)):
        return False
    return not needed.should or any(_may_match(index, part) for part in needed.should)


def _key(index: Index, words: Words) -> tuple[int, bytes]:
    return index.fields[words.column][0], words.words[0].encode("utf-8", "surrogatepass")


def _rows(index: Index, needed: Query) -> Array | None:
    assert isinstance(needed, Boolean)
    if needed.should:
        either = [_rows(index, part) for part in needed.should]
        narrowed = [rows for rows in either if rows is not None]
        return reduce(np.union1d, narrowed) if len(narrowed) == len(either) else None
    plain = [part for part in needed.must if isinstance(part, Words)]
    left = _in_all(index, plain) if plain else None
    for part in needed.must:
        if left is not None and len(left) <= ENOUGH:
            break
        rows = None if isinstance(part, Words) else _rows(index, part)
        if rows is not None:
            left = rows if left is None else np.intersect1d(left, rows, assume_unique=True)
    return left


def _in_all(index: Index, needed: list[Words]) -> Array | None:
    """The rows that have all of some trigrams, using only the rarest ones."""
    keys = [_key(index, part) for part in needed]
    words: list[WordPostings] = []
    for key, entry in zip(keys, index.entries(keys), strict=True):
        if entry is None:
            return np.zeros(0, np.uint32)
        words.append(index.word(*key, entry))
    words.sort(key=lambda word: word.count)
    if words[0].count * DENSE > index.rows:
        return None
    read_lists(index, [(words[0], None)])
    rows = words[0].array()
    for word in words[1:]:
        if len(rows) <= ENOUGH or word.count * DENSE > index.rows:
            break
        before = len(rows)
        rows = rows[word.test(rows)]
        if len(rows) * MANY > index.rows and (before - len(rows)) * MANY < before:
            break
    return rows
