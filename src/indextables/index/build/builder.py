"""Builds an index from rows, in order, in bounded memory.

Rows are collected until they hold a few megabytes of text and then become a sorted run,
which takes less memory than its text. At the end the runs of every field are merged into
the index, a range of words at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.index.build.runs import Run, make_run, merge_postings
from indextables.index.build.writer import BuiltIndex, IndexWriter
from indextables.index.codec.numbers import Array, narrow
from indextables.index.codec.root import FieldRoot
from indextables.index.query.values import typed_numbers
from indextables.index.settings import FAST, SUBSTRING, IndexField, IndexSpec
from indextables.index.tokenise import tokens_of
from indextables.lazy import pc

LEAST_RUN_BYTES, MOST_RUN_BYTES = 1 << 20, 8 << 20
RUNS = 16
"""A run holds a sixteenth of the text so far, within these bounds: making it takes ten times its memory."""


@dataclass(slots=True)
class _FieldBuild:
    item: IndexField
    ranked: bool
    """Whether queries search it; ranking needs the row lengths of no other field of the column."""
    runs: list[Run] = field(default_factory=list)
    lengths: list[Array] = field(default_factory=list)
    nulls: int = 0
    least: Any = None
    most: Any = None

    def add(self, column: pa.Array, first_row: int) -> None:
        self.nulls += column.null_count
        if self.item.kind == FAST:
            self._bounds(typed_numbers(column))
        tokens = tokens_of(self.item, column)
        counted = self.item.record != "basic"
        run = make_run(tokens, first_row, counted=counted, positions=self.item.record == "position")
        self.runs.append(run)
        if self.ranked and self.item.kind not in (FAST, SUBSTRING):
            self.lengths.append(narrow(tokens.lengths))

    def _bounds(self, numbers: pa.Array) -> None:
        bounds = pc.min_max(numbers).as_py()
        if bounds["min"] is not None:
            self.least = bounds["min"] if self.least is None else min(self.least, bounds["min"])
            self.most = bounds["max"] if self.most is None else max(self.most, bounds["max"])


class IndexBuilder:
    """An index under construction.

    >>> import pyarrow as pa
    >>> from indextables.index.settings import IndexField, IndexSpec
    >>> spec = IndexSpec((IndexField("m", "text", "default", "position"),))
    >>> builder = IndexBuilder(spec, pa.schema([("m", pa.string())]))
    >>> builder.add(pa.table({"m": ["one word", "another word"]}))
    >>> builder.finish().rows
    2
    """

    def __init__(self, spec: IndexSpec, schema: pa.Schema) -> None:
        self.spec = spec
        self.rows = 0
        self.text_bytes = 0
        self._several = {name: pa.types.is_nested(schema.field(name).type) for name in spec.columns}
        self._fields = [_FieldBuild(item, spec.get(item.column) is item) for item in spec.fields]
        self._waiting: list[list[pa.Array]] = [[] for _ in spec.fields]
        self._waiting_bytes = self._waiting_rows = 0

    def add(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Index the next rows."""
        size = sum(rows.column(name).nbytes for name in self.spec.columns)
        if size > self._run_bytes and rows.num_rows > 1:
            half = rows.num_rows // 2
            self.add(rows.slice(0, half))
            self.add(rows.slice(half))
            return
        for waiting, item in zip(self._waiting, self.spec.fields, strict=True):
            column = rows.column(item.column)
            waiting.extend(column.chunks if isinstance(column, pa.ChunkedArray) else [column])
        self.rows += rows.num_rows
        self.text_bytes += size
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += size
        if self._waiting_bytes >= self._run_bytes:
            self._make_runs()

    @property
    def _run_bytes(self) -> int:
        return max(LEAST_RUN_BYTES, min(MOST_RUN_BYTES, self.text_bytes // RUNS))

    def _make_runs(self) -> None:
        first = self.rows - self._waiting_rows
        for build, waiting in zip(self._fields, self._waiting, strict=True):
            if waiting:
                build.add(pa.concat_arrays(waiting) if len(waiting) > 1 else waiting[0], first)
            waiting.clear()
        self._waiting_bytes = self._waiting_rows = 0

    def token_counts(self, ends: Sequence[int]) -> dict[str, list[int]]:
        """The tokens of consecutive parts of the rows so far, by column; `ends` are where the parts end."""
        self._make_runs()
        counts = {}
        for build in self._fields:
            if build.lengths:
                totals = np.cumsum(np.concatenate(build.lengths), dtype=np.int64)
                before = np.concatenate([[0], totals])[[0, *ends]]
                counts[build.item.column] = np.diff(before).tolist()
        return counts

    def finish(self) -> BuiltIndex:
        """The index of all rows."""
        writer = IndexWriter(self.spec, self.rows)
        for item in self.spec.fields:
            self.write_field(writer, item)
        return writer.finish()

    def write_field(self, writer: IndexWriter, item: IndexField) -> None:
        """Write one of the fields, once; no rows can be added after that."""
        self._make_runs()
        build = next(one for one in self._fields if one.item is item)
        lengths = np.concatenate(build.lengths) if build.lengths else np.zeros(0, np.uint8)
        root = FieldRoot(
            blocks=0,
            tokens=int(lengths.sum(dtype=np.int64)),
            nulls=build.nulls,
            least=build.least,
            most=build.most,
            gaps=self._several[item.column] or item.kind == "json",
        )
        runs, build.runs = build.runs, []
        writer.write_field(item, merge_postings(runs), root, lengths)
