"""The seam to tantivy: building an index of one segment, and asking it.

Rows are added in order by one thread to one segment, so that a document's number
is its row; marks on some of the rows prove it after the commit. Whatever tantivy throws, panics
included, leaves this module as an IndexUnusableError.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

import pyarrow as pa

from indextables.errors import SplitError
from indextables.index.query.tree import Query
from indextables.index.settings import FAST, JSON, IndexField, IndexSpec
from indextables.index.tokens import analyzer
from indextables.split.documents import entries, is_plain
from indextables.split.terms import MARKS, Bounds, Compiler

HEAP_BYTES = 4_000_000_000
"""Above this tantivy would begin a second segment; memory is taken only as it is needed."""
_ROWS_PER_MARK = 4096
FEW_HITS = 10_000
"""From here on a look whether a query finds everything costs little beside gathering the rows."""


class IndexUnusableError(SplitError):
    """The index cannot be built, opened or asked; the rows are not affected."""


@contextmanager
def guarded(doing: str) -> Iterator[None]:
    """Turn whatever tantivy throws into an IndexUnusableError; its panics are not Exceptions."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, SplitError):
        raise
    except BaseException as failed:
        raise IndexUnusableError(f"{doing} failed: {type(failed).__name__}: {failed}") from failed


@contextmanager
def _uncollected() -> Iterator[None]:
    """Spare the garbage collector looking at a great many objects that are gone in a moment."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def field_names(spec: IndexSpec) -> dict[str, tuple[str, IndexField]]:
    """The name each column has inside the index; column names themselves may hold any character."""
    return {item.column: (f"c{at}", item) for at, item in enumerate(spec.fields)}


def _tokenizer_name(item: IndexField) -> str:
    if item.kind == JSON:
        return "indextables_whitespace"
    return f"indextables_{item.tokenizer}" if item.kind == "text" else "indextables_raw"


def _register(index: Any, spec: IndexSpec) -> None:
    names = {_tokenizer_name(item) for item in spec.fields if item.kind != FAST} | {"indextables_raw"}
    for name in names:
        index.register_tokenizer(name, analyzer(name.removeprefix("indextables_")))


def _schema(spec: IndexSpec, columns: pa.Schema) -> Any:
    import tantivy

    builder = tantivy.SchemaBuilder()
    for name, item in field_names(spec).values():
        if item.kind != FAST:
            builder.add_text_field(name, tokenizer_name=_tokenizer_name(item), index_option=item.record)
        elif pa.types.is_floating(columns.field(item.column).type):
            builder.add_float_field(name, indexed=False, fast=True)
        else:
            builder.add_integer_field(name, indexed=False, fast=True)
    builder.add_text_field(MARKS, tokenizer_name="indextables_raw", index_option="basic")
    return builder.build()


class IndexBuilder:
    """An index under construction in a local directory."""

    def __init__(self, directory: str, spec: IndexSpec, columns: pa.Schema) -> None:
        import tantivy

        self.directory = directory
        self.rows = 0
        self.text_bytes = 0
        self.unsure: set[str] = set()
        self._fields = list(field_names(spec).values())
        self._document = tantivy.Document
        with guarded(f"starting an index in {directory}"):
            self._index = tantivy.Index(_schema(spec, columns), path=directory)
            _register(self._index, spec)
            self._writer = self._index.writer(HEAP_BYTES, 1)

    def add(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Index the next rows."""
        arrays = []
        for _, item in self._fields:
            column = rows.column(item.column)
            array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            self.text_bytes += array.nbytes
            arrays.append(array)
        with guarded(f"indexing into {self.directory}"):
            if len(arrays) == 1 and is_plain(self._fields[0][1], arrays[0]):
                self._add_texts(self._fields[0][0], arrays[0].to_pylist())
            else:
                self._add_rows(arrays)
        self.rows += rows.num_rows

    def _add_texts(self, name: str, texts: list[str | None]) -> None:
        """One column of text, which is how most tables are indexed, by the shortest way."""
        new, add, null = self._document, self._writer.add_document, "n" + name
        for row, text in enumerate(texts, self.rows):
            document = new()
            if text is not None:
                document.add_text(name, text)
            else:
                document.add_text(MARKS, null)
            if row % _ROWS_PER_MARK == 0:
                document.add_text(MARKS, f"r{row}")
            add(document)

    def _add_rows(self, arrays: list[pa.Array]) -> None:
        columns = [
            entries(name, item, array, self.unsure)
            for (name, item), array in zip(self._fields, arrays, strict=True)
        ]
        new, add = self._document, self._writer.add_document
        for row, puts in enumerate(zip(*columns, strict=True), self.rows):
            document = new()
            for put in puts:
                put(document)
            if row % _ROWS_PER_MARK == 0:
                document.add_text(MARKS, f"r{row}")
            add(document)

    def finish(self) -> list[str]:
        """Commit and return the files of the index; the directory is the caller's to remove."""
        with guarded(f"finishing the index in {self.directory}"):
            self._writer.commit()
            self._writer.wait_merging_threads()
            self._index.reload()
            self._check(self._index.searcher())
        return sorted(str(path) for path in Path(self.directory).iterdir() if path.suffix != ".lock")

    def _check(self, searcher: Any) -> None:
        import tantivy

        whole = searcher.num_segments == 1 and searcher.num_docs == self.rows
        if not whole and self.rows:
            raise IndexUnusableError(
                f"the index in {self.directory} has {searcher.num_segments} segments with "
                f"{searcher.num_docs} rows, not one with {self.rows}"
            )
        for row in range(0, self.rows, _ROWS_PER_MARK):
            mark = tantivy.Query.term_query(self._index.schema, MARKS, f"r{row}", "basic")
            if [place.doc for _, place in searcher.search(mark, limit=2, count=False).hits] != [row]:
                raise IndexUnusableError(f"the index in {self.directory} does not number its rows in order")


class OpenIndex:
    """An index in a local directory, ready to be asked."""

    def __init__(self, directory: str, spec: IndexSpec, unsure: frozenset[str], rows: int) -> None:
        import tantivy

        self.spec = spec
        self.rows = rows
        with guarded(f"opening the index in {directory}"):
            index = tantivy.Index.open(directory)
            _register(index, spec)
            # The files never change: no thread needs to watch them.
            index.config_reader(reload_policy="manual")
            self._index = index
            self._searcher = index.searcher()
            if self._searcher.num_docs != rows or self._searcher.num_segments > 1:
                raise IndexUnusableError(f"the index in {directory} is not the one of {rows} rows")
            self.compiler = Compiler(index.schema, field_names(spec), unsure, self._begins)

    def without(self, columns: frozenset[str]) -> OpenIndex:
        """The same index, not knowing of some columns."""
        if not columns:
            return self
        known = copy(self)
        known.spec = IndexSpec(tuple(item for item in self.spec.fields if item.column not in columns))
        known.compiler = self.compiler.without(columns)
        return known

    def bounds(self, query: Query) -> Bounds:
        """The query as this index can answer it."""
        compiler = self.compiler.with_several(query.several) if query.several else self.compiler
        with guarded(f"preparing the query {query.text!r}"):
            return compiler.compile(query.node)

    def _begins(self, name: str, start: str, limit: int) -> list[str]:
        if not self.rows:
            return []
        return [term for term, _ in self._searcher.terms_with_prefix(name, start, limit=limit)]

    def count(self, query: Any) -> int:
        """How many rows a prepared query finds."""
        if not self.rows:
            return 0
        import tantivy

        with guarded("counting"):
            plain = tantivy.Query.const_score_query(query, 1.0)
            found: int = self._searcher.search(plain, limit=1, count=True).count
        return found

    def hits(self, query: Any, limit: int) -> Sequence[int]:
        """The first rows that a prepared query finds, in row order."""
        if not self.rows or limit < 1:
            return []
        import tantivy

        with guarded("searching"):
            plain = tantivy.Query.const_score_query(query, 1.0)
            if limit > FEW_HITS and self._searcher.search(plain, limit=1, count=True).count == self.rows:
                return range(min(limit, self.rows))
            # Equal scores come in document order, and here all scores are equal.
            found = self._searcher.search(plain, limit=limit, count=False)
            with _uncollected():
                return [place.doc for _, place in found.hits]

    def best(self, query: Any, limit: int) -> list[tuple[float, int]]:
        """The rows with the highest BM25 scores, best first, equal ones in row order."""
        if not self.rows or limit < 1:
            return []
        with guarded("searching"):
            found = self._searcher.search(query, limit=limit, count=False)
            return [(score, place.doc) for score, place in found.hits]
