"""Full-text search of a Delta table: it has no index, so its rows are tokenised and matched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from indextables.index.query.syntax import parse_query
from indextables.index.query.tree import Query
from indextables.index.settings import IndexSpec, from_options
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.ops.delta.data_file import NAMES
from indextables.ops.delta.scan import ReadTask, pieces_of, require_schema, row_reader
from indextables.ops.read.arguments import check_limit, column_names, row_filter
from indextables.ops.read.hints import missing_notes
from indextables.ops.read.in_order import batches_in_order
from indextables.ops.read.record import Record
from indextables.ops.read.scan import files
from indextables.ops.table_settings import rules_of
from indextables.split.search.match import match_batch
from indextables.storage.store import scans_at_once


def search(
    snapshot: DeltaSnapshot,
    query: str | Query,
    where: Any = None,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    *,
    operator: str | None = None,
) -> tuple[pa.RecordBatchReader, Record]:
    """The rows a full-text query finds, by reading every row that the filter keeps.

    There is no index, so every text column can be searched; options such as `indexing.tokenizer.<column>` set
    how its text is tokenised.
    """
    check_limit(limit)
    require_schema(snapshot)
    parsed = query_of(snapshot, query, operator)
    node = row_filter(snapshot, where)
    output_columns = column_names(snapshot, columns)
    columns_to_read = (*output_columns, *(name for name in parsed.columns if name not in output_columns))
    matching_files, record = files(snapshot, node, columns=NAMES)
    record.noted(parsed.notes)
    reader = row_reader(snapshot, columns_to_read, node, matching_files.num_rows)
    schema = pa.schema([reader.schema.field(name) for name in output_columns])
    pieces = (
        partial(_matching_rows, piece, parsed, output_columns)
        for piece in pieces_of(snapshot, reader, matching_files, record)
    )

    def finds(piece: Query) -> bool:
        rows = search(snapshot, piece, where, output_columns[:1], 1)[0]
        return any(batch.num_rows for batch in rows)

    def when_empty() -> None:
        record.noted(missing_notes(parsed, finds))

    return batches_in_order(
        schema, pieces if limit != 0 else (), scans_at_once(snapshot.store), limit, when_empty
    ), record


def query_of(snapshot: DeltaSnapshot, query: str | Query, operator: str | None = None) -> Query:
    """A query checked against the columns of a table, before any file is opened."""
    if isinstance(query, Query):
        return query
    spec = search_settings(snapshot)
    rules = rules_of(operator, snapshot.settings)
    return parse_query(query, spec, snapshot.schema, None, snapshot.time_zone, rules=rules)


def search_settings(snapshot: DeltaSnapshot) -> IndexSpec:
    """How the columns are searched: text as text, unless the options say otherwise."""
    indexing = snapshot.settings.indexing
    configured = {name.lower() for name in indexing.typemap}
    texts = {
        field.name: "text"
        for field in snapshot.schema
        if pa.types.is_string(field.type) and field.name.lower() not in configured
    }
    return from_options(replace(indexing, typemap={**indexing.typemap, **texts}), snapshot.schema)


def _matching_rows(piece: ReadTask, query: Query, output_columns: Sequence[str]) -> Iterator[pa.Table]:
    for table in piece():
        yield table.filter(match_batch(query, table)).select(list(output_columns))
