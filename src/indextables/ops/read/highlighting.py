"""Shows why a row was found: its matches highlighted, and the snippets with most matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from indextables.errors import CommandError, OptionError, SchemaError
from indextables.index.highlight import Highlighter, marked, snippets
from indextables.index.query.tree import Query
from indextables.index.settings import STRING, TEXT
from indextables.log.snapshot import Snapshot
from indextables.ops.read import scan
from indextables.ops.read.record import Record
from indextables.ops.read.scan import known_columns
from indextables.ops.table_settings import query_of
from indextables.records import dataclass

HIGHLIGHT, SNIPPETS = "_highlight", "_snippets"
MARKS = ("<em>", "</em>")


@dataclass(frozen=True, slots=True)
class Shown:
    """Which of highlights and snippets are wanted."""

    marks: tuple[str, str] = MARKS
    whole: bool = True
    """Whether the whole texts are wanted, in `_highlight`."""
    snippets: int | None = None
    """How many snippets are wanted, in `_snippets`."""

    @classmethod
    def of(cls, highlight: bool | tuple[str, str], snippets: int | None) -> Shown | None:
        """What the arguments of a search ask for; None when they ask for nothing."""
        if not highlight and snippets is None:
            return None
        if snippets is not None and snippets < 1:
            raise OptionError(f"snippets is {snippets}; give how many pieces of text are wanted, from 1 on")
        if isinstance(highlight, bool):
            return cls(MARKS, highlight, snippets)
        if len(highlight) != 2 or not all(isinstance(mark, str) for mark in highlight):  # noqa: PLR2004 - a pair
            raise OptionError(f"highlight is {highlight!r}; give True, or the two marks around a match")
        return cls((highlight[0], highlight[1]), snippets=snippets)


def search(
    snapshot: Snapshot,
    query: str,
    where: Any,
    columns: Sequence[str] | None,
    limit: int | None,
    *,
    shown: Shown | None,
    **asked: Any,
) -> tuple[pa.RecordBatchReader, Record]:
    """The rows that `scan.search` finds, with the matches of every row where they are wanted."""
    if shown is None:
        return scan.search(snapshot, query, where, columns, limit, **asked)
    parsed = query_of(snapshot, query, operator=asked.get("operator"))
    wanted = known_columns(snapshot, columns)
    if taken := [name for name in (HIGHLIGHT, SNIPPETS) if name in wanted]:
        raise SchemaError(f"the table has a column {taken[0]!r} of its own; leave it out of columns")
    looked_at = text_columns(parsed)
    if not looked_at:
        raise OptionError(f"the query {query!r} looks into no column of text, so there is nothing to mark")
    more = [name for name in looked_at if name not in wanted]
    reader, record = scan.search(snapshot, query, where, [*wanted, *more], limit, **asked)
    marker = _RowMarker(parsed, looked_at, reader.schema, shown)
    kept = [name for name in reader.schema.names if name not in more]
    fields = [reader.schema.field(name) for name in kept] + marker.fields

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            arrays = [batch.column(name) for name in kept] + marker.columns(batch)
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    return pa.RecordBatchReader.from_batches(pa.schema(fields), batches()), record


def text_columns(query: Query) -> list[str]:
    """The columns of a query in which a match can be shown."""
    kinds = {item.column: item.kind for item in query.spec.fields}
    return [name for name in query.columns if kinds[name] in (TEXT, STRING)]


class _RowMarker:
    """Makes the highlight and snippet columns for batches of rows."""

    def __init__(self, query: Query, columns: Sequence[str], schema: pa.Schema, shown: Shown) -> None:
        self._highlighters = {name: Highlighter(query, name) for name in columns}
        self._several = {name: not pa.types.is_string(schema.field(name).type) for name in columns}
        self._shown = shown
        text, pieces = pa.string(), pa.list_(pa.string())
        self._kind = pa.struct([(name, pieces if self._several[name] else text) for name in columns])
        self.fields: list[pa.Field] = []
        if shown.whole:
            self.fields.append(pa.field(HIGHLIGHT, self._kind))
        if shown.snippets is not None:
            self.fields.append(pa.field(SNIPPETS, pieces))

    def columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The highlights of a batch: whole texts, snippets, or both."""
        whole: dict[str, list[Any]] = {}
        pieces: list[list[str]] = [[] for _ in range(batch.num_rows)]
        for name, highlighter in self._highlighters.items():
            values = batch.column(name).to_pylist()
            rows = [self._texts(value, name) for value in values]
            flat = highlighter.spans([text for texts in rows for text in texts])
            found, at = [], 0
            for number, texts in enumerate(rows):
                spans = flat[at : at + len(texts)]
                at += len(texts)
                found.append(self._marked(texts, spans, name))
                for text, places in zip(texts, spans, strict=True):
                    if text is not None and self._shown.snippets is not None:
                        pieces[number] += snippets(text, places, self._shown.snippets, *self._shown.marks)
            whole[name] = found
        out = []
        if self._shown.whole:
            rows_of_marks = [dict(zip(whole, row, strict=True)) for row in zip(*whole.values(), strict=True)]
            out.append(pa.array(rows_of_marks, self._kind))
        if self._shown.snippets is not None:
            out.append(pa.array([some[: self._shown.snippets] for some in pieces], pa.list_(pa.string())))
        return out

    def _texts(self, value: Any, name: str) -> list[str | None]:
        if self._several[name]:
            return [] if value is None else list(value)
        return [value]

    def _marked(self, texts: list[str | None], spans: list[list[tuple[int, int]]], name: str) -> Any:
        """The texts of one row with matches highlighted; None when nothing in them matches."""
        if not any(spans):
            return None
        done = [
            None if text is None else marked(text, places, *self._shown.marks)
            for text, places in zip(texts, spans, strict=True)
        ]
        return done if self._several[name] else done[0]


def highlighter_of(snapshot: Snapshot, column: str, text: str) -> Highlighter:
    """What marks the matches of a query in a column."""
    query = query_of(snapshot, text, (column,))
    if not pa.types.is_string(snapshot.schema.field(column).type):
        raise CommandError(f"highlight marks text, and column {column!r} is none")
    try:
        return Highlighter(query, column)
    except ValueError as bad:
        raise CommandError(f"highlight: {bad}") from bad


def marker(highlighter: Highlighter) -> Callable[[pa.Array], pa.Array]:
    """A function of texts that marks the matches in them."""

    def mark(texts: pa.Array) -> pa.Array:
        values = texts.to_pylist()
        spans = highlighter.spans(values)
        found = [
            None if text is None else marked(text, places) for text, places in zip(values, spans, strict=True)
        ]
        return pa.array(found, pa.string())

    return mark
