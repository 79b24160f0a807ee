"""A checkpoint as Parquet: one row per add, its statistics in typed columns, its JSON text in one more.

The columns are the leaves of `files()`, named `min.<column>` and so on, and `add`, the
complete JSON of the action. Planning reads only the typed columns it needs; the next
checkpoint copies the text. The head (protocol, metaData, skips, transactions, and the
list of parts in a manifest) is JSON in the file's key-value metadata. Beside it stands
what only the end of writing shows: how many adds the file holds and, for a part, that it
is part i of n.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import msgspec
import pyarrow as pa

from indextables.errors import CorruptLogError
from indextables.lazy import pc, pq
from indextables.log.adds.columns import AddLeaf, is_plausible
from indextables.log.adds.decoder import decode_lines
from indextables.log.adds.lines import LINE_END
from indextables.model.arrays import whole

_HEAD_KEY = b"indextables.checkpoint"
_SUM_KEY = b"indextables.checkpoint.crc32"
"""Checksum of the head: Parquet has checksums for its pages, but none for its footer."""
_PLACE_KEY = b"indextables.checkpoint.place"
"""What the file is: the count of its adds and, for a part, its number. Versions up to 0.2.0 write none."""
_TEXT = "add"
_BATCH_ROWS = 1 << 16


def read_head(data: bytes, name: str) -> Mapping[str, Any]:
    """The head of the checkpoint: everything but its adds."""
    stored = _open(data, name).metadata.metadata or {}
    head_text = stored.get(_HEAD_KEY)
    if head_text is not None and stored.get(_SUM_KEY, _sum(head_text)) != _sum(head_text):
        raise CorruptLogError(f"{name} has a damaged head: its checksum does not match", file=name)
    try:
        head = msgspec.json.decode(head_text) if head_text is not None else None
        place = msgspec.json.decode(stored.get(_PLACE_KEY, b"{}"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise CorruptLogError(f"{name} has a damaged head: {bad}", file=name) from bad
    if not isinstance(head, dict) or not isinstance(place, dict):
        raise CorruptLogError(f"{name} is not a checkpoint: it has no {_HEAD_KEY.decode()}", file=name)
    return {**head, **place}


def _sum(head: bytes) -> bytes:
    return b"%08x" % zlib.crc32(head)


def count_rows(data: bytes, name: str) -> int:
    """How many adds the file holds."""
    return int(_open(data, name).metadata.num_rows)


def read_leaves(
    data: bytes, name: str, leaves: tuple[AddLeaf, ...], actions: int | None, *, text: bool = False
) -> Iterator[tuple[list[pa.Array], pa.BinaryArray | None]]:
    """One array per leaf for each row group; null where the file lacks a column.

    With `text`, the lines of the adds come as well. A row group with an impossible count or time is decoded
    from its text instead, so that the error says what is wrong.
    """
    file = _open(data, name)
    if actions is not None and file.metadata.num_rows != actions:
        raise CorruptLogError(
            f"{name} holds {file.metadata.num_rows} adds, {actions} were written. It is damaged.",
            file=name,
        )
    unasked: dict[pa.DataType, pa.Array] = {}
    for group in range(file.metadata.num_row_groups):
        arrays = _group_leaves(file, group, leaves, name, unasked)
        lines = _group_lines(file, group, name) if text or arrays is None else None
        if arrays is None:
            assert lines is not None
            arrays = decode_lines(lines, leaves, name)
        yield arrays, lines


def _group_leaves(
    file: Any, group: int, leaves: tuple[AddLeaf, ...], name: str, unasked: dict[pa.DataType, pa.Array]
) -> list[pa.Array] | None:
    """The leaves of one row group; None when a value is impossible."""
    present = set(file.schema_arrow.names)
    first = [leaf_name(leaf) for leaf in leaves if not leaf.only_if_unbounded and leaf_name(leaf) in present]
    table = _group(file, group, first, name)
    rows = file.metadata.row_group(group).num_rows
    arrays = []
    for leaf in leaves:
        item = leaf_name(leaf)
        if leaf.only_if_unbounded and _is_bounded(table, leaf):
            # Null columns that are never looked at; all row groups share them.
            nothing = unasked.get(leaf.type)
            if nothing is None or len(nothing) < rows:
                nothing = unasked[leaf.type] = pa.nulls(rows, leaf.type)
            arrays.append(nothing[:rows])
        elif item not in present:
            arrays.append(pa.nulls(rows, leaf.type))
        else:
            column = table.column(item) if item in first else _group(file, group, [item], name).column(0)
            arrays.append(whole(column).cast(leaf.type))
            if not is_plausible(leaf, arrays[-1]):
                return None
    return arrays


def _is_bounded(table: pa.Table, leaf: AddLeaf) -> bool:
    """Whether every row has a minimum, or every row has a maximum, for the column of a null count."""
    bounds = (f"min.{leaf.child}", f"max.{leaf.child}")
    return any(item in table.column_names and not table.column(item).null_count for item in bounds)


def read_lines(data: bytes, name: str) -> Iterator[pa.BinaryArray]:
    """The text of the adds, as lines with their ends."""
    file = _open(data, name)
    for group in range(file.metadata.num_row_groups):
        yield _group_lines(file, group, name)


def _group_lines(file: Any, group: int, name: str) -> pa.BinaryArray:
    text = whole(_group(file, group, [_TEXT], name).column(_TEXT))
    return pc.binary_join_element_wise(text.cast(pa.binary()), b"", LINE_END)


def _encoding(kind: pa.DataType) -> str | None:
    """How numbers take least room: whole numbers by their differences, floats byte by byte."""
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        return "DELTA_BINARY_PACKED"
    return "BYTE_STREAM_SPLIT" if pa.types.is_floating(kind) else None


class AddsWriter:
    """Writes one Parquet file of adds, batch by batch."""

    def __init__(self, sink: IO[bytes], leaves: Sequence[AddLeaf], head: Mapping[str, Any]) -> None:
        text = msgspec.json.encode(head)
        metadata = {_HEAD_KEY: text, _SUM_KEY: _sum(text)}
        fields = [pa.field(leaf_name(leaf), leaf.type) for leaf in leaves]
        self._schema = pa.schema([*fields, pa.field(_TEXT, pa.string())], metadata=metadata)
        repeated = [item.name for item in fields if pa.types.is_string(item.type) and item.name != "path"]
        self._writer = pq.ParquetWriter(
            sink, self._schema, compression={**dict.fromkeys(self._schema.names, "lz4"), _TEXT: "zstd"},
            write_page_checksum=True, use_dictionary=repeated, write_statistics=["path"],
            column_encoding={item.name: way for item in fields if (way := _encoding(item.type)) is not None},
        )  # fmt: skip

    def write(self, lines: pa.BinaryArray, columns: Sequence[pa.Array]) -> None:
        """Add the rows of one batch: the lines, and an array per leaf."""
        text = pc.binary_slice(lines, 0, -len(LINE_END)).cast(pa.string())
        self._writer.write_batch(
            pa.record_batch([*columns, text], schema=self._schema), row_group_size=_BATCH_ROWS
        )

    def close(self, place: Mapping[str, Any]) -> None:
        """Write the footer; `place` says what the file is among those of its checkpoint."""
        self._writer.add_key_value_metadata({_PLACE_KEY: msgspec.json.encode(place)})
        self._writer.close()

    def abandon(self) -> None:
        """Let go of a file that is not going to be used; nothing happens to one that is closed."""
        self._writer.close()


def leaf_name(leaf: AddLeaf) -> str:
    """The name of a leaf's column in the file."""
    return leaf.column if leaf.child is None else f"{leaf.column}.{leaf.child}"


def _open(data: bytes, name: str) -> Any:
    with _damage(name):
        return pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)


def _group(file: Any, group: int, columns: list[str], name: str) -> pa.Table:
    with _damage(name):
        rows: pa.Table = file.read_row_group(group, columns)
        return rows


@contextmanager
def _damage(name: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError) as bad:
        raise CorruptLogError(f"{name} cannot be read as Parquet: {bad}. It is damaged.", file=name) from bad
