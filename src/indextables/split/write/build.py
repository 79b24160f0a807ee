"""Builds splits from a stream of Arrow batches: one open split per partition, closed at a size limit.

At most `write.maxOpenSplits` splits are open at once, and together they hold at most 512
MiB of indexed text; beyond either limit the largest is closed. Memory stays within 3.5
times that text plus 256 MiB. If anything fails, local files are removed; splits already
published belong to no version, and PURGE deletes them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from indextables.index.read.lookup import Index
from indextables.index.settings import IndexSpec
from indextables.lazy import pc
from indextables.model.actions import AddAction
from indextables.model.column_names import ColumnNames
from indextables.model.fields import encode_partition, partition_directory
from indextables.model.stats import Truncated, truncate_add
from indextables.options import Options
from indextables.runtime import LOCAL
from indextables.split.layout import split_tags
from indextables.split.write.writer import Finished, SplitWriter
from indextables.storage.store import Store

MOST_TEXT = 512 << 20
SUFFIX = ".split"
_FIRST_GUESS = 0.5
"""Assumed size of an index relative to its text, until the first finished split shows it."""
_SLICE_ROWS = 32_768

PartitionValues = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class BuiltSplit:
    """A published split that is not yet part of any table."""

    add: AddAction
    truncated: Truncated


def build_splits(  # noqa: PLR0917 - what, for which table, and where to
    batches: Iterable[pa.RecordBatch | pa.Table],
    schema: pa.Schema,
    partition_columns: Sequence[str],
    spec: IndexSpec,
    options: Options,
    store: Store,
    *,
    table_id: str = "",
    data_change: bool = True,
    now_ms: int | None = None,
    replaces: Sequence[str] = (),
    merged: Sequence[Index] = (),
    names: ColumnNames | None = None,
) -> Iterator[BuiltSplit]:
    """Write rows as splits, which no reader sees before they are committed.

    With `names`, everything that is given goes by the table's names, and the splits by the stored ones.

    `replaces` names the splits whose rows these are, if they are not new rows. `merged` are the indexes of
    those splits; it is given only if the batches are all their rows, in order, and become one split.
    """
    if names is not None:
        schema, partition_columns = names.stored_schema(schema), names.stored(partition_columns)
        spec = IndexSpec(tuple(replace(item, column=names.stored_names[item.column]) for item in spec.fields))
        options = replace(options, stats=options.stats.with_columns(names.stored_leaf))
        merged = [index.seen_through(None, names.stored_names) for index in merged]
    build = _Build(
        schema=schema,
        partition_columns=tuple(partition_columns),
        spec=spec,
        options=options,
        names=names,
        store=store,
        table_id=table_id,
        data_change=data_change,
        now_ms=now_ms,
        replaces=tuple(replaces),
        merged=merged,
        index_share=_FIRST_GUESS if spec.fields else 0.0,
    )
    try:
        for batch in batches:
            rows = batch if names is None else names.renamed(batch)
            table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
            for start in range(0, table.num_rows, _SLICE_ROWS):
                yield from build.add(table.slice(start, _SLICE_ROWS))
        yield from build.finish()
    finally:
        build.close()


@dataclass(slots=True, kw_only=True)
class _Build:
    schema: pa.Schema
    partition_columns: tuple[str, ...]
    spec: IndexSpec
    options: Options
    store: Store
    table_id: str
    data_change: bool
    now_ms: int | None
    replaces: tuple[str, ...]
    merged: Sequence[Index]
    names: ColumnNames | None
    index_share: float
    open: dict[PartitionValues, SplitWriter] = field(default_factory=dict)

    def add(self, rows: pa.Table) -> Iterator[BuiltSplit]:
        for values, part in partitions(rows, self.partition_columns):
            yield from self._write(values, part)
            while len(self.open) > self.options.write.max_open_splits or self._text() > MOST_TEXT:
                yield self._finish(max(self.open, key=lambda key: self._size(self.open[key])))

    def _write(self, values: PartitionValues, rows: pa.Table) -> Iterator[BuiltSplit]:
        most = self.options.write.max_rows_per_split
        while rows.num_rows:
            writer = self.open.get(values)
            if writer is None:
                writer = self.open[values] = self._start(values)
            part = rows.slice(0, most - writer.rows)
            rows = rows.slice(part.num_rows)
            writer.write(part)
            if writer.rows >= most or self._size(writer) >= self.options.write.target_split_bytes:
                yield self._finish(values)

    def _start(self, values: PartitionValues) -> SplitWriter:
        return SplitWriter(
            self.schema,
            self.spec,
            self.options,
            partition_columns=self.partition_columns,
            partition_values=dict(zip(self.partition_columns, values, strict=True)),
            table_id=self.table_id,
            replaces=self.replaces,
            merged=self.merged,
        )

    def _size(self, writer: SplitWriter) -> float:
        return writer.data_bytes + self.index_share * writer.text_bytes

    def _text(self) -> int:
        return sum(writer.text_bytes for writer in self.open.values())

    def _finish(self, values: PartitionValues) -> BuiltSplit:
        writer = self.open.pop(values)
        try:
            done = writer.finish()
            if writer.text_bytes:
                self.index_share = done.footer.manifest.length / writer.text_bytes
            split = publish(
                done, self.schema, self.spec, self.options, self.store,
                partition_values=writer.partition_values, data_change=self.data_change, now_ms=self.now_ms,
            )  # fmt: skip
            return split if self.names is None else replace(split, add=replace(split.add, names=self.names))
        finally:
            writer.close()

    def finish(self) -> Iterator[BuiltSplit]:
        for values in list(self.open):
            yield self._finish(values)

    def close(self) -> None:
        for writer in self.open.values():
            writer.close()
        self.open.clear()


def publish(
    done: Finished,
    schema: pa.Schema,
    spec: IndexSpec,
    options: Options,
    store: Store,
    *,
    partition_values: Mapping[str, str | None],
    data_change: bool,
    now_ms: int | None,
) -> BuiltSplit:
    """Put a finished split into the store under a new name, in the directory of its partition."""
    by = tuple(partition_values)
    directory = partition_directory(by, partition_values)
    path = f"{directory}/" if directory else ""
    path += f"part-{uuid.uuid4()}{SUFFIX}"
    manifest = done.footer.manifest
    add = AddAction(
        path=path,
        partition_values=dict(partition_values),
        size=done.size,
        modification_time=now_ms if now_ms is not None else LOCAL.clock.now_ms(),
        data_change=data_change,
        stats=done.stats.stats_json(),
        tags=split_tags(spec, manifest),
        min_values=done.stats.min_values,
        max_values=done.stats.max_values,
        num_records=done.stats.num_records,
        footer_start_offset=done.footer.start,
        footer_end_offset=done.footer.end,
        hotcache_start_offset=manifest.offset,
        hotcache_length=manifest.length,
        has_footer_offsets=True,
        footer_crc=done.footer.crc,
        uncompressed_size_bytes=done.uncompressed_bytes,
    )
    store.put_file(path, done.path)
    return BuiltSplit(*truncate_add(add, schema, by, options))


def partitions(rows: pa.Table, columns: Sequence[str]) -> Iterator[tuple[PartitionValues, pa.Table]]:
    """Rows grouped by partition, each group with the partition values as the log writes them."""
    if not columns:
        yield (), rows
        return
    keys = None
    for name in columns:
        column = rows[name].combine_chunks()
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        codes = pc.cast(encoded.indices, pa.int64())
        keys = codes if keys is None else pc.add(pc.multiply(keys, len(encoded.dictionary)), codes)
    order = pc.sort_indices(keys)
    runs = pc.run_end_encode(pc.take(keys, order))
    ordered = rows.take(order) if len(runs.run_ends) > 1 else rows
    parts_by_values: dict[PartitionValues, list[pa.Table]] = {}
    start = 0
    for end in runs.run_ends.to_pylist():
        part = ordered.slice(start, end - start)
        values = tuple(
            encode_partition(_internal(part[name][0]), rows.schema.field(name).type) for name in columns
        )
        # Two encodings of one value, such as the two zeros of a float, have the same text.
        parts_by_values.setdefault(values, []).append(part)
        start = end
    for values, parts in parts_by_values.items():
        yield values, parts[0] if len(parts) == 1 else pa.concat_tables(parts)


def _internal(scalar: pa.Scalar) -> Any:
    if not scalar.is_valid:
        return None
    kind = scalar.type
    # Dates and timestamps may lie outside the range of Python's own types.
    return scalar.value if pa.types.is_temporal(kind) else scalar.as_py()


__all__ = ["BuiltSplit", "build_splits", "partitions", "publish"]
