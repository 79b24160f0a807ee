"""Matches rows against a query without an index, by the text of each row.

`match_rows` defines what a query means; the index must agree with it. It looks at one row after
the other and is used for rows that an index can only propose. `match_batch` gives the same answer
for the many rows of a scan or a stream: their words are found and sorted a column at a time, as for
an index, and the query is asked of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.index.build.builder import IndexBuilder
from indextables.index.documents import documents_of, texts_inside
from indextables.index.query.evaluate import IndexSearch
from indextables.index.query.tree import (
    Between,
    Boolean,
    Boosted,
    Everything,
    Exists,
    Matching,
    Node,
    Query,
    Words,
    restrict_to_columns,
)
from indextables.index.query.values import typed_between, value_mask
from indextables.index.read.cache import BlockCache
from indextables.index.read.lookup import BytesRanges, Index
from indextables.index.settings import FAST, IP, JSON, STRING, IndexField, IndexSpec, is_list_of_text
from indextables.index.tokens import address, is_id, json_leaves, leaf_words, words_of
from indextables.lazy import pc
from indextables.model.arrays import booleans, integers, truths

FEW_ROWS = 16
"""Up to this many rows, looking at each is faster than an index of them."""
Texts = list[list[str]]
"""The words of every value of one row."""
Leaves = list[tuple[str, Any, list[str]]]
"""The JSON leaves of one row: path, value and words."""


def match_rows(query: Query, rows: pa.Table | pa.RecordBatch) -> pa.BooleanArray:
    """For each row, whether the query finds it. Columns that the rows lack count as empty."""
    return _Matcher(query, rows).node(query.node)


class _Matcher:
    def __init__(self, query: Query, rows: pa.Table | pa.RecordBatch) -> None:
        self.query = query
        self.rows = rows
        self._words: dict[str, list[Texts]] = {}
        self._leaves: dict[str, list[Leaves]] = {}

    def node(self, node: Node) -> pa.BooleanArray:
        if isinstance(node, Boolean):
            return self.boolean(node)
        if isinstance(node, Boosted):
            return self.node(node.node)
        if isinstance(node, Everything):
            return self.constant(True)
        if node.column not in self.rows.schema.names:
            return self.constant(False)
        item = self.query.field(node.column)
        assert item is not None
        if item.kind != JSON and self.query.compared.get(node.column) is not None:
            return value_mask(node, self.column(node.column))
        if isinstance(node, Exists):
            return self.exists(node)
        if isinstance(node, Matching):
            return self.matching(node, item)
        if item.kind == JSON:
            return self.json(node, item)
        if isinstance(node, Words):
            test = _phrase_test(node, item)
            return booleans(any(map(test, texts)) for texts in self.words(item))
        return self.between(node, item)

    def constant(self, value: bool) -> pa.BooleanArray:
        return pa.repeat(pa.scalar(value), self.rows.num_rows)

    def boolean(self, node: Boolean) -> pa.BooleanArray:
        if not (node.must or node.should or node.must_not):
            return self.constant(False)
        matches = self.constant(True)
        for part in node.must:
            matches = pc.and_(matches, self.node(part))
        if node.should and not node.must:
            either = self.constant(False)
            for part in node.should:
                either = pc.or_(either, self.node(part))
            matches = pc.and_(matches, either)
        for part in node.must_not:
            matches = pc.and_(matches, pc.invert(self.node(part)))
        return matches

    def column(self, name: str) -> pa.Array:
        array = self.rows.column(name)
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array

    def words(self, item: IndexField) -> list[Texts]:
        words = self._words.get(item.column)
        if words is None:
            tokenize = words_of(item.tokenizer)
            words = self._words[item.column] = [
                [tokenize(text) for text in texts] for texts in texts_of(self.column(item.column))
            ]
        return words

    def exists(self, node: Exists) -> pa.BooleanArray:
        if not node.path:
            return pc.is_valid(self.column(node.column))
        inside = node.path + "."
        return booleans(
            any(path == node.path or path.startswith(inside) for path, _, _ in leaves)
            for leaves in self.leaves(node.column)
        )

    def leaves(self, column: str) -> list[Leaves]:
        leaves = self._leaves.get(column)
        if leaves is None:
            item = self.query.field(column)
            assert item is not None
            tokenize = words_of(item.tokenizer)
            values = self.column(column)
            is_text = not pa.types.is_nested(values.type)
            leaves = self._leaves[column] = [
                []
                if value is None
                else [
                    (path, leaf, leaf_words(leaf, tokenize))
                    for path, leaf in json_leaves(value, is_text=is_text)
                ]
                for value in documents_of(values, item.tokenizer)
            ]
        return leaves

    def matching(self, node: Matching, item: IndexField) -> pa.BooleanArray:
        """Rows that have a fitting word; every distinct word is tested once."""
        if item.kind == JSON:
            rows: list[Texts] = [
                [words for path, _, words in leaves if not node.path or path == node.path]
                for leaves in self.leaves(node.column)
            ]
        else:
            rows = self.words(item)
        ids = item.compact_ids
        every = (word for texts in rows for words in texts for word in words)
        distinct = pa.array(sorted({word for word in every if not (ids and is_id(word))}), pa.string())
        fits = frozenset(distinct.filter(booleans(node.pattern.matches(distinct).tolist())).to_pylist())
        return booleans(any(not fits.isdisjoint(words) for words in texts) for texts in rows)

    def json(self, node: Words | Between, item: IndexField) -> pa.BooleanArray:
        test = _leaf_test(node) if isinstance(node, Between) else _leaf_phrase(_phrase_test(node, item))
        return booleans(
            any(test(leaf, words) for path, leaf, words in leaves if not node.path or path == node.path)
            for leaves in self.leaves(node.column)
        )

    def between(self, node: Between, item: IndexField) -> pa.BooleanArray:
        if item.kind == FAST:
            return typed_between(node, self.column(node.column))
        inside = _range_test(node)
        if item.kind in (STRING, IP):
            read: Callable[[str], str | None] = address if item.kind == IP else str
            return booleans(
                any((value := read(text)) is not None and inside(value) for text in texts)
                for texts in texts_of(self.column(node.column))
            )
        ids = item.compact_ids
        return booleans(
            any(inside(word) and not (ids and is_id(word)) for words in texts for word in words)
            for texts in self.words(item)
        )


def texts_of(column: pa.Array) -> list[Sequence[str]]:
    """The texts of every row: none for null, several for an array and other nested values."""
    if pa.types.is_nested(column.type):
        column = column if is_list_of_text(column.type) else texts_inside(column)
        return [
            [] if row is None else [text for text in row if text is not None] for row in column.to_pylist()
        ]
    return [() if text is None else (text,) for text in column.to_pylist()]


def _range_test(node: Between) -> Callable[[Any], bool]:
    lower, upper = node.lower, node.upper
    at_lower, at_upper = node.include_lower, node.include_upper

    def inside(value: Any) -> bool:
        if lower is not None and (value < lower or (value == lower and not at_lower)):
            return False
        return not (upper is not None and (value > upper or (value == upper and not at_upper)))

    return inside


def _leaf_test(node: Between) -> Callable[[Any, list[str]], bool]:
    inside = _range_test(node)
    numbers = not isinstance(node.lower if node.lower is not None else node.upper, str)

    def test(leaf: Any, words: Iterable[str]) -> bool:
        if numbers:
            return isinstance(leaf, (int, float)) and not isinstance(leaf, bool) and inside(leaf)
        return isinstance(leaf, str) and any(map(inside, words))

    return test


def _leaf_phrase(phrase: Callable[[list[str]], bool]) -> Callable[[Any, list[str]], bool]:
    return lambda _, words: phrase(words)


def _phrase_test(node: Words, item: IndexField) -> Callable[[list[str]], bool]:
    words, count = list(node.words), len(node.words)
    if node.prefix is not None:
        last = _prefix_test(node, item)
        if not count:
            return lambda text: any(map(last, text))
        return lambda text: any(
            text[at : at + count] == words and last(text[at + count]) for at in range(len(text) - count)
        )
    if count == 1:
        word = words[0]
        return lambda text: word in text
    if node.slop:
        return lambda text: any(_within(text, at, words, node.slop) for at in range(len(text)))
    first = words[0]
    return lambda text: any(
        text[at] == first and text[at : at + count] == words for at in range(len(text) - count + 1)
    )


def _prefix_test(node: Words, item: IndexField) -> Callable[[str], bool]:
    prefix, whole = node.prefix or "", node.whole
    if item.compact_ids:
        return lambda word: word.startswith(prefix) and not is_id(word)
    return lambda word: word.startswith(prefix) or word == whole


def _within(text: list[str], start: int, words: list[str], slop: int) -> bool:
    """Whether the words follow each other from `start` on with at most `slop` other words between them."""
    if text[start] != words[0]:
        return False
    at = start
    for word in words[1:]:
        try:
            # The earliest position leaves the most room for the words that follow.
            at = text.index(word, at + 1, start + len(words) + slop)
        except ValueError:
            return False
    return True


def match_batch(query: Query, rows: pa.Table | pa.RecordBatch) -> pa.BooleanArray:
    """For each row, whether the query finds it. Columns that the rows lack count as empty.

    >>> import pyarrow as pa
    >>> from indextables.index.query.syntax import parse_query
    >>> from indextables.index.settings import IndexField, IndexSpec
    >>> rows = pa.table({"m": ["disk error", "all quiet", None]})
    >>> spec = IndexSpec((IndexField("m", "text", "default", "position"),))
    >>> query = parse_query("error", spec, rows.schema)
    >>> match_batch(query, rows).to_pylist()
    [True, False, False]
    """
    columns = [name for name in query.columns if name in rows.schema.names]
    indexed = [name for name in columns if query.compared.get(name) is None]
    if not indexed or rows.num_rows <= FEW_ROWS:
        return match_rows(query, rows)
    search = IndexSearch(
        _index_of(query, rows.select(indexed)),
        replace(query, node=restrict_to_columns(query.node, frozenset(columns))),
        values=lambda name: _whole(rows.column(name)),
    )
    matches = np.zeros(rows.num_rows, bool)
    certain = search.certain()
    matches[certain] = True
    doubtful = np.setdiff1d(search.candidates(), certain, assume_unique=True)
    if len(doubtful):
        matches[doubtful] = truths(match_rows(query, rows.take(integers(doubtful))))
    return pa.array(matches)


def _index_of(query: Query, rows: pa.Table | pa.RecordBatch) -> Index:
    names = rows.schema.names
    spec = IndexSpec(tuple(item for item in query.spec.searchable().fields if item.column in names))
    builder = IndexBuilder(spec, rows.schema)
    builder.add(rows)
    built = builder.finish()
    data = built.to_bytes()
    # Nobody asks it again, so nothing of it is kept.
    return Index.open(BytesRanges(data), len(data), built.root_length, cache=BlockCache(0))


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
