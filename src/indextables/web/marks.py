"""The words of a query in the rows of a page: each text as pieces, of which some are marked."""

from __future__ import annotations

import pyarrow as pa

from indextables.index.highlight import Highlighter
from indextables.ops.read.highlighting import text_columns
from indextables.ops.table_settings import query_of
from indextables.table import Table
from indextables.web.tables import snapshot_of

Pieces = list[tuple[str, bool]]


def marks(table: Table, query: str, page: pa.Table) -> list[dict[str, Pieces]]:
    """For each row, the columns in which something matches, cut into pieces."""
    found: list[dict[str, Pieces]] = [{} for _ in range(page.num_rows)]
    parsed = query_of(snapshot_of(table), query)
    for name in text_columns(parsed):
        if name not in page.column_names or not pa.types.is_string(page.schema.field(name).type):
            continue
        texts = page.column(name).to_pylist()
        for row, text, spans in zip(found, texts, Highlighter(parsed, name).spans(texts), strict=True):
            if text is not None and spans:
                row[name] = _pieces(text, spans)
    return found


def _pieces(text: str, spans: list[tuple[int, int]]) -> Pieces:
    pieces, at = [], 0
    for start, end in spans:
        pieces += [(text[at:start], False), (text[start:end], True)]
        at = end
    return [piece for piece in [*pieces, (text[at:], False)] if piece[0]]
