"""Shows why a row was found: its matches highlighted, and the snippets with most matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from indextables.errors import CommandError, OptionError, SchemaError
from indextables.index.documents import texts_inside
from indextables.index.highlight import Highlighter, marked, snippets
from indextables.index.query.tree import Query
from indextables.index.settings import STRING, TEXT, is_list_of_text
from indextables.log.snapshot import Snapshot
from indextables.ops.table_settings import query_of
from indextables.records import dataclass

HIGHLIGHT, SNIPPETS = "_highlight", "_snippets"
MARKS = ("<em>", "</em>")


@dataclass(frozen=True, slots=True)
class Highlights:
    """What a search shows of its matches: whole texts, snippets, or both."""

    marks: tuple[str, str] = MARKS
    whole: bool = True
    """Whether `_highlight` has the whole texts."""
    snippets: int | None = None
    """How many pieces of text `_snippets` has at most; None for no such column."""

    @classmethod
    def of(cls, highlight: bool | tuple[str, str], snippets: int | None) -> Highlights | None:
        """What the arguments of a search mean; None when they show nothing."""
        if not highlight and snippets is None:
            return None
        if snippets is not None and snippets < 1:
            raise OptionError(f"snippets is {snippets}; give the number of pieces, 1 or more")
        if isinstance(highlight, bool):
            return cls(MARKS, highlight, snippets)
        if len(highlight) != 2 or not all(isinstance(mark, str) for mark in highlight):  # noqa: PLR2004 - a pair
            raise OptionError(f"highlight is {highlight!r}; give True, or the two marks around a match")
        return cls((highlight[0], highlight[1]), snippets=snippets)


def text_columns(query: Query) -> list[str]:
    """The columns of a query in which a match can be shown."""
    kinds = {item.column: item.kind for item in query.spec.searchable().fields}
    return [name for name in query.columns if kinds.get(name) in (TEXT, STRING)]


class RowMarker:
    """Adds the columns of highlights to the rows of a search."""

    def __init__(
        self, query: Query, columns: Sequence[str], schema: pa.Schema, highlights: Highlights
    ) -> None:
        """Take the columns that the search returns, and the table's schema."""
        if clash := [name for name in (HIGHLIGHT, SNIPPETS) if name in columns]:
            raise SchemaError(f"the table has a column {clash[0]!r} of its own; leave it out of columns")
        texts = text_columns(query)
        if not texts:
            raise OptionError(
                f"the query {query.text!r} searches no text column, so there is nothing to mark"
            )
        self._hidden = frozenset(texts) - set(columns)
        self.columns_read = (*columns, *(name for name in texts if name in self._hidden))
        """The columns that the search has to read: those it returns, and the texts to mark."""
        self._highlighters = {name: Highlighter(query, name) for name in texts}
        self._is_list = {name: not pa.types.is_string(schema.field(name).type) for name in texts}
        self._highlights = highlights
        text, pieces = pa.string(), pa.list_(pa.string())
        self._type = pa.struct([(name, pieces if self._is_list[name] else text) for name in texts])
        self._fields: list[pa.Field] = []
        if highlights.whole:
            self._fields.append(pa.field(HIGHLIGHT, self._type))
        if highlights.snippets is not None:
            self._fields.append(pa.field(SNIPPETS, pieces))

    def marked(self, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The rows without the columns that were only read for their texts, and with those of highlights."""
        names = [name for name in reader.schema.names if name not in self._hidden]
        schema = pa.schema([reader.schema.field(name) for name in names] + self._fields)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                arrays = [batch.column(name) for name in names] + self._columns(batch)
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def _columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The highlights of a batch: whole texts, snippets, or both."""
        most = self._highlights.snippets
        whole: dict[str, list[Any]] = {}
        pieces: list[list[str]] = [[] for _ in range(batch.num_rows)]
        for name, highlighter in self._highlighters.items():
            rows = self._texts(batch.column(name))
            spans_of_texts = highlighter.spans([text for texts in rows for text in texts])
            whole[name] = []
            start = 0
            for number, texts in enumerate(rows):
                spans = spans_of_texts[start : start + len(texts)]
                start += len(texts)
                whole[name].append(self._marked(texts, spans, name))
                for text, matches in zip(texts, spans, strict=True):
                    if text is not None and most is not None:
                        pieces[number] += snippets(text, matches, most, *self._highlights.marks)
        arrays = []
        if self._highlights.whole:
            marked_rows = [dict(zip(whole, row, strict=True)) for row in zip(*whole.values(), strict=True)]
            arrays.append(pa.array(marked_rows, self._type))
        if most is not None:
            arrays.append(pa.array([some[:most] for some in pieces], pa.list_(pa.string())))
        return arrays

    @staticmethod
    def _texts(column: pa.Array) -> list[list[str | None]]:
        """The texts of each row: one, or those inside a nested value."""
        if not pa.types.is_nested(column.type):
            return [[value] for value in column.to_pylist()]
        inside = column if is_list_of_text(column.type) else texts_inside(column)
        return [[] if row is None else row for row in inside.to_pylist()]

    def _marked(self, texts: list[str | None], spans: list[list[tuple[int, int]]], name: str) -> Any:
        """The texts of one row with matches highlighted; None when nothing in them matches."""
        if not any(spans):
            return None
        marked_texts = [
            None if text is None else marked(text, matches, *self._highlights.marks)
            for text, matches in zip(texts, spans, strict=True)
        ]
        return marked_texts if self._is_list[name] else marked_texts[0]


def highlighter_of(snapshot: Snapshot, column: str, text: str) -> Highlighter:
    """What marks the matches of a query in a column."""
    query = query_of(snapshot, text, (column,))
    if not pa.types.is_string(snapshot.schema.field(column).type):
        raise CommandError(f"highlight marks text, and column {column!r} does not hold text")
    try:
        return Highlighter(query, column)
    except ValueError as bad:
        raise CommandError(f"highlight: {bad}") from bad


def marker(highlighter: Highlighter) -> Callable[[pa.Array], pa.Array]:
    """A function of texts that marks the matches in them."""

    def mark(texts: pa.Array) -> pa.Array:
        values = texts.to_pylist()
        spans = highlighter.spans(values)
        marked_texts = [
            None if text is None else marked(text, matches)
            for text, matches in zip(values, spans, strict=True)
        ]
        return pa.array(marked_texts, pa.string())

    return mark
