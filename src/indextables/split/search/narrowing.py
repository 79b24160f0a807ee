"""Which rows a filter can be true for, by the fields of the index that hold values and parts of them.

A column indexed as `string` has an entry for every value: `=` and IN need one of theirs. A column
indexed as `substring` has an entry for every three consecutive characters of a value: a text of three or
more characters, in LIKE, RLIKE, contains, instr, startswith, endswith or =, can only be in a value that
has all its trigrams. Where both could serve, the value does: it is one entry, in no more rows than any
of its trigrams. The lists rule out rows and whole splits. The remaining rows are checked against the
filter: the index never decides that a row matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from indextables.errors import DamagedIndexError
from indextables.index.codec.blocks import Entry
from indextables.index.codec.numbers import Array
from indextables.index.query.tree import Boolean, Words
from indextables.index.query.tree import Node as Query
from indextables.index.read.lookup import Index
from indextables.index.read.words import WordPostings, read_lists
from indextables.index.settings import STRING, SUBSTRING, IndexSpec
from indextables.predicate.coerce import like_pieces
from indextables.predicate.regex import required_texts
from indextables.predicate.tree import And, Column, Compare, In, IsTrue, Like, Match, Node, Or, RLike
from indextables.reading import Reading
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_index, warn_once

SIZE = 3
DENSE = 8
"""If even the rarest entry is in one of this many rows, reading all rows is faster."""
MANY = 16
"""If one of this many rows is left, all pages are decoded: a list that rules out less than this share of them
is not followed by others."""
ENOUGH = 8
"""Once this few rows are left, no more lists are read."""
Key: TypeAlias = tuple[int, bytes]
"""A field number, and an entry of that field."""


def needed_entries(node: Node, spec: IndexSpec) -> Query | None:
    """The entries a row must have for a filter to be true; None when there is no such requirement.

    >>> import pyarrow as pa
    >>> from indextables.index.settings import IndexField
    >>> from indextables.predicate.build.from_sql import as_node
    >>> spec = IndexSpec((IndexField("m", "string"), IndexField("m", "substring")))
    >>> schema = pa.schema([("m", pa.string())])
    >>> [needed_entries(as_node(where, schema), spec).kind for where in ("m = 'disk'", "m LIKE '%dis%'")]
    ['string', 'substring']
    """
    if isinstance(node, And):
        parts = [part for child in node.children if (part := needed_entries(child, spec)) is not None]
        return _joined(parts) if parts else None
    if isinstance(node, Or):
        return _either([needed_entries(child, spec) for child in node.children])
    if isinstance(node, IsTrue):
        return needed_entries(node.child, spec)
    if isinstance(node, (Compare, In)) and _is_indexed(node.column, spec, STRING):
        values = _equal_values(node)
        assert isinstance(node.column, Column)
        name = node.column.name
        return None if values is None else _either([Words(name, (one,), kind=STRING) for one in values])
    if isinstance(node, (Match, Like, RLike, Compare, In)) and _is_indexed(node.column, spec, SUBSTRING):
        return _trigrams(node)
    return None


def _is_indexed(operand: object, spec: IndexSpec, kind: str) -> bool:
    # char(n) values are compared as if padded, and other collations compare other texts.
    return (
        isinstance(operand, Column)
        and len(operand.path) == 1
        and (operand.name, kind) in spec.numbers
        and operand.order == "binary"
        and pa.types.is_string(operand.type)
    )


def _equal_values(node: Compare | In) -> list[str] | None:
    """The values one of which a row must have; None when the filter asks for others too."""
    if isinstance(node, Compare):
        return [node.literal.value] if node.op in {"=", "<=>"} else None
    return [literal.value for literal in node.values] or None


def _trigrams(node: Match | Like | RLike | Compare | In) -> Query | None:
    assert isinstance(node.column, Column)
    name = node.column.name
    if isinstance(node, Match):
        return _all_of(name, [node.text])
    if isinstance(node, Like):
        pieces = like_pieces(node.pattern, node.escape)
        return _all_of(name, [piece[1:] for piece in pieces if piece.startswith("=")])
    if isinstance(node, RLike):
        return _either([_all_of(name, texts) for texts in required_texts(node.pattern)])
    values = _equal_values(node)
    return None if values is None else _either([_all_of(name, [value]) for value in values])


def _all_of(column: str, texts: Iterable[str]) -> Query | None:
    threes = {text[at : at + SIZE] for text in texts for at in range(len(text) - SIZE + 1)}
    return _joined([Words(column, (three,), kind=SUBSTRING) for three in sorted(threes)]) if threes else None


def _joined(parts: list[Query]) -> Query:
    return parts[0] if len(parts) == 1 else Boolean(must=tuple(parts))


def _either(parts: list[Query | None] | list[Words]) -> Query | None:
    """Any of some requirements; None when there is none, or one of them requires nothing."""
    required = tuple(part for part in parts if part is not None)
    if not parts or len(required) < len(parts):
        return None
    return required[0] if len(required) == 1 else Boolean(should=required)


def _words_in(needed: Query) -> Iterator[Words]:
    if isinstance(needed, Words):
        yield needed
    elif isinstance(needed, Boolean):
        for part in (*needed.must, *needed.should):
            yield from _words_in(part)


def rows_left(index: Index, node: Node) -> Array | None:
    """The rows (ascending) that the index does not rule out; None when reading all rows is faster."""
    needed = needed_entries(node, index.spec)
    rows = None if needed is None else _Lookup(index, needed).rows(needed)
    return rows if rows is None or index.live is None else index.live.numbers(rows)


def may_hold(index: Index, node: Node) -> bool:
    """Whether the dictionary of an index has what a filter needs; no list is read."""
    needed = needed_entries(node, index.spec)
    return needed is None or _Lookup(index, needed).may_match(needed)


def index_for(reading: Reading, ref: SplitRef, node: Node, spec: IndexSpec) -> Index | None:
    """The index of a split, if the table has fields that a filter needs entries of, and it can be read."""
    if needed_entries(node, spec) is None:
        return None
    try:
        return open_index(reading, ref, with_rows=True)
    except DamagedIndexError as damage:
        warn_once(f"{ref.path}: {damage}")
        return None


class _Lookup:
    """The entries that a filter needs, looked up in one index at once."""

    def __init__(self, index: Index, needed: Query) -> None:
        self._index = index
        keys = list(dict.fromkeys(map(self._key, _words_in(needed))))
        self._entries: Mapping[Key, Entry | None] = dict(zip(keys, index.entries(keys), strict=True))

    def _key(self, words: Words) -> Key:
        number = self._index.spec.numbers[words.column, words.kind]
        return number, words.words[0].encode("utf-8", "surrogatepass")

    def may_match(self, needed: Query) -> bool:
        """Whether the dictionary has what is needed."""
        if isinstance(needed, Words):
            return self._entries[self._key(needed)] is not None
        assert isinstance(needed, Boolean)
        if not all(map(self.may_match, needed.must)):
            return False
        return not needed.should or any(map(self.may_match, needed.should))

    def rows(self, needed: Query) -> Array | None:
        """The rows that have what is needed; None when they are too many to be worth picking."""
        if isinstance(needed, Words):
            return self._in_all([needed])
        assert isinstance(needed, Boolean)
        single = [part for part in (*needed.must, *needed.should) if isinstance(part, Words)]
        nested = [part for part in (*needed.must, *needed.should) if not isinstance(part, Words)]
        if needed.should:
            either = [self._in_any(single), *map(self.rows, nested)]
            narrowed = [rows for rows in either if rows is not None]
            return reduce(np.union1d, narrowed) if len(narrowed) == len(either) else None
        left = self._in_all(single) if single else None
        for part in nested:
            if left is not None and len(left) <= ENOUGH:
                break
            rows = self.rows(part)
            if rows is not None:
                left = rows if left is None else np.intersect1d(left, rows, assume_unique=True)
        return left

    def _in_any(self, needed: list[Words]) -> Array | None:
        """The rows that have one of some entries."""
        keys = dict.fromkeys(map(self._key, needed))
        entries = {key: entry for key in keys if (entry := self._entries[key]) is not None}
        words = [self._index.word(*key, entry) for key, entry in entries.items()]
        if sum(word.count for word in words) * DENSE > self._index.rows:
            return None
        read_lists(self._index, [(word, None) for word in words])
        return np.unique(np.concatenate([np.zeros(0, np.uint32), *(word.array() for word in words)]))

    def _in_all(self, needed: list[Words]) -> Array | None:
        """The rows that have all of some entries, using only the rarest ones."""
        index = self._index
        words: list[WordPostings] = []
        for key in map(self._key, needed):
            entry = self._entries[key]
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
