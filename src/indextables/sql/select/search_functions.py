"""`search` and `isearch` in a SELECT without Spark.

DuckDB drops the names of a function's arguments: a call of `search(a, 'x', mode => 'word')` is spelled
`indextables_search('word', a, 'x')`. DuckDB hands the values over as Arrow arrays, and a filter of
IndexTables decides, the same that a scan uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.model.types import VARIANT
from indextables.predicate.evaluate.rows import answers
from indextables.predicate.search_function import search
from indextables.predicate.searchable import CALLS
from indextables.predicate.tree import Column, Literal, Value
from indextables.predicate.values import condition
from indextables.sql.select.mentions import DUCKDB, SqlToken, edited, words_of

_NAMED = re.compile(r"\bi?search\s*\(", re.IGNORECASE)
_STORED_VARIANT = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])


def spelled_for_duckdb(text: str) -> str:
    """The statement with calls that DuckDB knows in place of `search` and `isearch`.

    >>> spelled_for_duckdb("SELECT search(a, b, 'x', mode => 'word') FROM t")
    "SELECT indextables_search('word', a, b, 'x') FROM t"
    """
    if _NAMED.search(text) is None:
        return text
    words = words_of(text, DUCKDB)
    edits: list[tuple[int, int, str]] = []
    for at, word in enumerate(words[:-1]):
        name = word.raw.lower()
        if name in CALLS and words[at + 1].raw == "(" and not (at and words[at - 1].raw == "."):
            edits += _edits(words, at, CALLS[name])
    return edited(text, edits)


def _edits(words: Sequence[SqlToken], at: int, name: str) -> Iterator[tuple[int, int, str]]:
    """The changes to one call: its name, its mode in the first place, and no mode at the end."""
    mode, depth = "'substring'", 0
    for number in range(at + 1, len(words)):
        raw = words[number].raw
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(raw, 0)
        if depth == 0:
            break
        is_mode = depth == 1 and raw == "=>" and words[number - 1].upper == "MODE"
        if is_mode and words[number - 2].raw == "," and number + 1 < len(words):
            mode = words[number + 1].raw
            yield words[number - 2].start, words[number + 1].end, ""
    yield words[at].start, words[at + 1].end, f"{name}({mode}, "


def make_search_functions(connection: Any, text: str) -> None:
    """Make the functions known to a connection of DuckDB, if a statement calls them."""
    for name, call in CALLS.items():
        if call in text:
            connection.create_function(
                call, partial(_searched, name), None, "BOOLEAN", type="arrow", null_handling="special"
            )


def _searched(name: str, mode: Any, *columns_and_pattern: Any) -> pa.Array:
    """The answers for a block of rows: a mode and a pattern for each row, all alike."""
    arrays = [_plain(array) for array in columns_and_pattern]
    names = [f"value {number}" for number in range(1, len(arrays))]
    args: list[Value] = [
        Column((shown,), array.type) for shown, array in zip(names, arrays[:-1], strict=True)
    ]
    if names:
        args.append(_constant(name, arrays[-1]))
    schema = pa.schema([(shown, array.type) for shown, array in zip(names, arrays[:-1], strict=True)])
    node = condition(search(name, args, _constant(name, _plain(mode))))
    batch = pa.RecordBatch.from_arrays([*arrays[:-1], pa.nulls(len(mode))], [*schema.names, ""])
    return answers(node, batch, schema)


def _constant(name: str, array: pa.Array) -> Literal:
    distinct = array.unique().to_pylist()
    if len(distinct) > 1:
        raise PredicateError(f"{name}: the pattern, its last argument, is one constant text", part=name)
    return Literal(distinct[0] if distinct else None, pa.string())


def _plain(array: Any) -> pa.Array:
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if whole.type == _STORED_VARIANT:
        fields = [whole.field(0), whole.field(1)]
        return pa.StructArray.from_arrays(fields, fields=list(VARIANT), mask=whole.is_null())
    return whole
