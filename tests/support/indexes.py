"""Indexes made from rows, and asked without a split around them."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from indextables.index.build.builder import IndexBuilder
from indextables.index.query.evaluate import IndexSearch
from indextables.index.query.syntax import parse_query
from indextables.index.read.cache import BlockCache
from indextables.index.read.lookup import BytesRanges, Index
from indextables.index.settings import from_options
from indextables.options import Options
from indextables.split.search.match import match_rows


@dataclass
class CountingRanges:
    """Bytes in memory that count what is read of them."""

    data: bytes
    trips: int = 0
    read: list[tuple[int, int]] = field(default_factory=list)

    def many(self, ranges):
        self.trips += 1
        self.read += ranges
        return BytesRanges(self.data).many(ranges)

    @property
    def bytes(self):
        return sum(length for _, length in self.read)

    def reset(self):
        self.trips, self.read = 0, []


def build(table, spec, batch_rows=None):
    builder = IndexBuilder(spec, table.schema)
    step = batch_rows or max(1, table.num_rows)
    for start in range(0, table.num_rows, step):
        builder.add(table.slice(start, step))
    return builder.finish()


def opened(built, cache=None):
    data = built.to_bytes()
    return Index.open(
        BytesRanges(data), len(data), built.root_length, cache=BlockCache() if cache is None else cache
    )


@dataclass
class Indexed:
    """A table and the index of its rows."""

    table: pa.Table
    settings: dict[str, str]
    index: Index | None = None

    def __post_init__(self):
        self.spec = from_options(Options.of(self.settings), self.table.schema)
        if self.index is None:
            self.index = opened(build(self.table, self.spec))

    def query(self, text):
        return parse_query(text, self.spec, self.table.schema)

    def search(self, text):
        return IndexSearch(
            self.index, self.query(text), values=lambda name: self.table[name].combine_chunks()
        )

    def hits(self, text):
        """The rows a query finds: from the index, and where it only proposes rows, checked against their text."""
        search = self.search(text)
        if search.exact:
            rows = search.rows().tolist()
            assert self.search(text).count() == len(rows)
            return rows
        candidates, certain = search.candidates().tolist(), search.certain().tolist()
        matched = match_rows(self.query(text), self.table.take(pa.array(candidates, pa.int64()))).to_pylist()
        rows = [row for row, inside in zip(candidates, matched) if inside]
        assert set(certain) <= set(rows)
        return rows
