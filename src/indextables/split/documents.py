"""Rows as documents: what each row puts into the index, column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import methodcaller
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.index.query.values import typed_numbers
from indextables.index.settings import FAST, IP, JSON, STRING, TEXT, IndexField
from indextables.index.tokens import address, json_text, without_ids, words_of
from indextables.split.match import texts_of
from indextables.split.terms import LONGEST_TERM, MARKS

Put = Callable[[Any], Any]
"""Puts what one row holds in one column into a tantivy document."""

_SHORT = LONGEST_TERM // 4
"""Characters that surely fit the longest term, whatever they are."""


def entries(name: str, item: IndexField, column: pa.Array, unsure: set[str]) -> Iterable[Put]:
    """One Put per row; `unsure` gathers columns with words that the index cannot hold."""
    mark = methodcaller("add_text", MARKS, "n" + name)
    if item.kind == FAST:
        return _numbers(name, column, column.is_null().to_pylist(), mark)
    nulls = column.is_null().to_pylist()
    return _texts(name, item, _prepared(item, column), nulls, mark=mark, unsure=unsure)


def is_plain(item: IndexField, column: pa.Array) -> bool:
    """Whether every text goes into the index as it is, and no word of it can be too long."""
    if (
        item.kind not in (TEXT, STRING)
        or item.tokenizer == "compact_ids"
        or not pa.types.is_string(column.type)
    ):
        return False
    longest = pc.max(pc.binary_length(column)).as_py()
    return longest is None or longest <= LONGEST_TERM


def _numbers(name: str, column: pa.Array, nulls: Sequence[bool], mark: Put) -> Iterator[Put]:
    method = "add_float" if pa.types.is_floating(column.type) else "add_integer"
    for value, null in zip(typed_numbers(column).to_pylist(), nulls, strict=True):
        if null:
            yield mark
        else:
            yield _nothing if value is None else methodcaller(method, name, value)


def _prepared(item: IndexField, column: pa.Array) -> Sequence[Sequence[str]]:
    """The texts that the index's own tokenizer turns into the column's words."""
    if item.kind == JSON:
        tokenize = words_of(item.tokenizer)
        return [() if row is None else (json_text(row, tokenize),) for row in column.to_pylist()]
    texts = texts_of(column)
    if item.kind == IP:
        return [[found for text in row if (found := address(text)) is not None] for row in texts]
    if item.tokenizer == "compact_ids":
        return [[without_ids(text) for text in row] for row in texts]
    return texts


def _texts(
    name: str,
    item: IndexField,
    rows: Sequence[Sequence[str]],
    nulls: Sequence[bool],
    *,
    mark: Put,
    unsure: set[str],
) -> Iterator[Put]:
    for texts, null in zip(rows, nulls, strict=True):
        if null:
            yield mark
        elif any(len(text) > _SHORT for text in texts) and _too_long(item, texts):
            unsure.add(item.column)
            yield partial(_put_unsure, name=name, texts=texts)
        elif len(texts) == 1:
            yield methodcaller("add_text", name, texts[0])
        else:
            yield partial(_put_all, name=name, texts=texts)


def _nothing(_: Any) -> None:
    return None


def _put_all(document: Any, *, name: str, texts: Sequence[str]) -> None:
    for text in texts:
        document.add_text(name, text)


def _put_unsure(document: Any, *, name: str, texts: Sequence[str]) -> None:
    document.add_text(MARKS, "v" + name)
    _put_all(document, name=name, texts=texts)


def _too_long(item: IndexField, texts: Sequence[str]) -> bool:
    tokenizer = "whitespace" if item.kind == JSON else item.tokenizer if item.kind == TEXT else "raw"
    tokenize = words_of(tokenizer)
    return any(len(word.encode()) > LONGEST_TERM for text in texts for word in tokenize(text))
