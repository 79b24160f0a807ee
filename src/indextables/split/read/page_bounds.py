"""Which pages of a column can hold a matching row, by Parquet's own page statistics (its column index).

The row map says where the column index of every chunk lies and what its checksum is, so
damage rules nothing out. The bounds of pages are arranged like those of files, one row per
page, and given to the same pruner, one column of the filter at a time: the pages of two
columns need not hold the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_a

from indextables.model.arrays import from_values, integers
from indextables.predicate.prune.rule import prune_table
from indextables.predicate.tree import Column, Node
from indextables.records import dataclass
from indextables.split.parquet.fields import IndexFields
from indextables.split.parquet.page_map import PageMap, Span
from indextables.split.parquet.thrift import Struct, ThriftError, decode
from indextables.split.source import Source
from indextables.storage.checksum import crc32

Place = tuple[int, int, int]
"""Offset, length and checksum of a column index; the length is 0 where a chunk has none."""


@dataclass(frozen=True, slots=True)
class PageBounds:
    """The pages of one column chunk: first rows, and minimum, maximum and null count of each."""

    spans: Sequence[Span]
    lower: pa.Array
    upper: pa.Array
    nulls: pa.Array


class PageStatistics:
    """The page statistics of one split; those of a column chunk are read once."""

    def __init__(self, source: Source, pages: PageMap, places: Sequence[Place]) -> None:
        """Take the pages, and the places of the column indexes by row group and leaf."""
        self._source = source
        self._pages = pages
        self._places = places
        self._known: dict[tuple[int, int], PageBounds | None] = {}

    def spans_left(
        self, where: Node, column: Column, leaf: int, groups: Sequence[int]
    ) -> Mapping[int, list[Span]]:
        """The ranges of rows that can match, for each row group that has pages ruled out by this column."""
        if not _has_bounds(column.type):
            return {}
        self._load(column.type, leaf, [group for group in groups if (group, leaf) not in self._known])
        found = {group: known for group in groups if (known := self._known[group, leaf]) is not None}
        if not found:
            return {}
        lower, upper, nulls = (
            pa.StructArray.from_arrays([pa.concat_arrays(arrays)], [column.name])
            for arrays in zip(*((one.lower, one.upper, one.nulls) for one in found.values()), strict=True)
        )
        rows = integers([end - first for one in found.values() for first, end in one.spans])
        table = pa.table({"num_records": rows, "min": lower, "max": upper, "null_count": nulls})
        kept = iter(prune_table(where, table, pa.schema([]), ()).mask.to_pylist())
        left = {group: [span for span in one.spans if next(kept)] for group, one in found.items()}
        return {group: spans for group, spans in left.items() if len(spans) < len(found[group].spans)}

    def _load(self, kind: pa.DataType, leaf: int, groups: Iterable[int]) -> None:
        wanted = {group: self._places[group * self._pages.leaves + leaf] for group in groups}
        bodies = self._source.read((offset, length) for offset, length, _ in wanted.values() if length)
        for group, (offset, length, crc) in wanted.items():
            body = bodies.get((offset, length))
            self._known[group, leaf] = None
            if body is not None and crc32(body) == crc:
                self._known[group, leaf] = self._bounds(group, leaf, kind, body)

    def _bounds(self, group: int, leaf: int, kind: pa.DataType, body: memoryview) -> PageBounds | None:
        chunk = self._pages.chunk(group, leaf)
        ends = [*chunk.first_rows[1:], chunk.rows]
        spans = list(zip(chunk.first_rows, ends, strict=True))
        try:
            index, _ = decode(body)
            empty = [bool(flag) for flag in _list(index, IndexFields.NULL_PAGES)]
            lower, upper = (
                _values(_list(index, field), empty, kind) for field in (IndexFields.LOWER, IndexFields.UPPER)
            )
            nulls = _list(index, IndexFields.NULL_COUNTS) or [None] * len(spans)
        except (ThriftError, ValueError, KeyError, pa.ArrowException):
            return None
        if not len(lower) == len(upper) == len(nulls) == len(spans):
            return None
        return PageBounds(spans, lower, upper, from_values(nulls, pa.int64()))


def _has_bounds(kind: pa.DataType) -> bool:
    """Whether bounds of a type are bytes that can be read here, and right in every writer."""
    plain = is_a.is_signed_integer(kind) or is_a.is_date32(kind) or is_a.is_string(kind)
    return bool(plain or (is_a.is_timestamp(kind) and kind.unit == "us"))


def _list(index: Struct, number: int) -> list[Any]:
    found: list[Any] = index[number][1][1] if number in index else []
    return found


def _values(stored: Sequence[bytes], empty: Sequence[bool], kind: pa.DataType) -> pa.Array:
    """Bounds from their bytes; null for pages of nulls."""
    if is_a.is_string(kind):
        texts = [None if skip else value.decode() for value, skip in zip(stored, empty, strict=True)]
        return from_values(texts, kind)
    wide = kind.bit_width == 64 or is_a.is_timestamp(kind)  # noqa: PLR2004 - the widths that Parquet stores
    code = "<i8" if wide else "<i4"
    filled = b"".join(
        bytes(8 if wide else 4) if skip else value for value, skip in zip(stored, empty, strict=True)
    )
    numbers = np.frombuffer(filled, code).astype(np.int64).tolist()
    known = [None if skip else number for number, skip in zip(numbers, empty, strict=True)]
    whole = from_values(known, pa.int64())
    return (whole.cast(pa.int32()) if is_a.is_date32(kind) else whole).cast(kind)
