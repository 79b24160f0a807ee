"""Reads a checkpoint of the native log: its head, and its adds as lines, columns or whole actions.

The main file is a JSON document, a manifest that names parts, or the Parquet counterpart
of either. The main file is checked against the checksum in the hint, if there is one; a
part is always checked against its manifest. Anything missing, cut short or changed raises
CorruptLogError, so that the caller falls back to an older checkpoint. The result is never
a shorter list of files.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.errors import CorruptLogError, NotFoundError, SchemaError
from indextables.lazy import pc
from indextables.log.adds.columns import AddLeaf
from indextables.log.adds.decoder import decode_lines
from indextables.log.adds.lines import line_array, line_paths, lines_adds
from indextables.log.checkpoint import parquet
from indextables.log.checkpoint.head import CheckpointHead
from indextables.log.checkpoint.json_document import COMMIT_IDS, COUNT, Document, read_document, read_head
from indextables.log.format.binding import check_head, check_main, check_same_table
from indextables.log.format.checksum import check_document
from indextables.log.format.dialect import NATIVE, Checkpoint
from indextables.log.segment import HINT_NAME
from indextables.model.actions import (
    AddAction,
    MetadataAction,
    ProtocolAction,
    SkipAction,
    TxnAction,
    action_from_wire,
)
from indextables.model.fields import schema_from_json
from indextables.records import dataclass
from indextables.runtime import default_parallelism, in_threads
from indextables.storage.store import Store

logger = logging.getLogger(__name__)

T = TypeVar("T")

_HEAD_BYTES = 64 << 10
_READ_WHOLE = 256 << 10
_PARTS_AHEAD = 2

Rows = npt.NDArray[np.int64]


class Part(msgspec.Struct, rename="camel", frozen=True):
    """A part as the manifest names it."""

    path: str
    sha256: str
    actions: int
    size_in_bytes: int


# msgspec prepares a type when it is first used, and two threads must not do that at once.
msgspec.json.Decoder(Part)


@dataclass(frozen=True, slots=True)
class OpenCheckpoint:
    """A checkpoint whose main file has been read and checked."""

    store: Store
    name: str
    format: str
    head: Mapping[str, Any]
    content: Document | bytes
    """The content of the main file: a document, whose chunks can be read once, or a Parquet file's bytes."""
    size_bytes: int
    parts: tuple[Part, ...] | None
    """None where the main file itself holds the adds."""

    @property
    def num_files(self) -> int | None:
        """The number of adds, where it is known without reading them."""
        if self.parts is not None:
            return sum(part.actions for part in self.parts)
        if isinstance(self.content, bytes):
            return parquet.count_rows(self.content, self.name)
        return self.stated_count

    @property
    def stated_count(self) -> int | None:
        """The number of adds that the checkpoint's own head states; None if it states none."""
        if self.parts is not None:
            return self.num_files
        return _stated_count(self.head)

    def files(self, workers: int) -> Iterator[tuple[str, Document | bytes, int | None]]:
        """The files that hold adds, in order: name, content, and how many adds the file must hold."""
        if self.parts is None:
            yield self.name, self.content, _stated_count(self.head)
            return
        # Decoding columns is faster than reading and checking a file, so files are read ahead; lines are
        # slower.
        most = _PARTS_AHEAD if self.format == "parquet" else 1
        bodies = in_threads(partial(_read_part, self.store), self.parts, most)
        for part, data in zip(self.parts, bodies, strict=True):
            content = data if self.format == "parquet" else read_document(data, part.path, workers=workers)
            yield part.path, content, part.actions
            # Release this file before waiting for the next.
            del data, content

    def lines(self, rows: Rows | None = None) -> Iterator[pa.BinaryArray]:
        """The adds as arrays of JSON lines with their ends, chunk by chunk; all rows, or the given ones."""
        chunks = self._lines(default_parallelism())
        if rows is not None:
            return (lines for (lines,) in choose_rows(([lines] for lines in chunks), rows))
        return chunks

    def _lines(self, workers: int) -> Iterator[pa.BinaryArray]:
        for name, content, actions in self.files(workers):
            count = 0
            if isinstance(content, bytes):
                chunks = parquet.read_lines(content, name)
            else:
                chunks = (line_array(chunk, name) for chunk in content.chunks)
            for lines in chunks:
                count += len(lines)
                yield lines
            if actions is not None and count != actions:
                raise CorruptLogError(
                    f"{name} holds {count} adds, {actions} were written. It is damaged.",
                    file=name,
                )
            del content, chunks

    def leaves(self, leaves: tuple[AddLeaf, ...], rows: Rows | None = None) -> Iterator[list[pa.Array]]:
        """One array per leaf, chunk by chunk, for all rows or for the given ones (ascending)."""
        if self.format == "parquet":
            groups = (arrays for arrays, _ in self._groups(leaves, text=False))
            return groups if rows is None else choose_rows(groups, rows)
        return (decode_lines(lines, leaves, self.name) for lines in self.lines(rows))

    def lines_and_leaves(
        self, leaves: tuple[AddLeaf, ...]
    ) -> Iterator[tuple[pa.BinaryArray, list[pa.Array]]]:
        """JSON lines and leaves of the same adds, chunk by chunk."""
        if self.format == "parquet":
            for arrays, lines in self._groups(leaves, text=True):
                assert lines is not None
                yield lines, arrays
            return
        for lines in self.lines():
            yield lines, decode_lines(lines, leaves, self.name)

    def _groups(
        self, leaves: tuple[AddLeaf, ...], *, text: bool
    ) -> Iterator[tuple[list[pa.Array], pa.BinaryArray | None]]:
        for name, content, actions in self.files(1):
            assert isinstance(content, bytes)
            yield from parquet.read_leaves(content, name, leaves, actions, text=text)
            del content


def open_checkpoint(store: Store, checkpoint: Checkpoint) -> OpenCheckpoint:
    """Read and check the main file of a checkpoint; CorruptLogError when it is damaged."""
    name = checkpoint.files[0].name
    data = store.get(NATIVE.path(name), etag=checkpoint.files[0].etag)
    if checkpoint.checksum is not None:
        _check_sum(data, checkpoint.checksum, name)
    check_document(data, name)
    content: Document | bytes
    if checkpoint.format == "parquet":
        content, head = data, parquet.read_head(data, name)
    else:
        content = _document(data, name)
        head = content.head
    check_same_table(head, checkpoint.table_id, name)
    check_main(head, name)
    opened = OpenCheckpoint(store, name, checkpoint.format, head, content, len(data), _parts(head, name))
    if isinstance(content, bytes):
        _check_rows(opened, content)
    if opened.stated_count is None and checkpoint.beside_parts:
        raise CorruptLogError(
            f"{name} states no count of its adds and lies beside parts of the same version: one of these may "
            "have taken its place.",
            file=name, version=checkpoint.version,
        )  # fmt: skip
    return opened


def _check_rows(opened: OpenCheckpoint, content: bytes) -> None:
    """Raise when a Parquet file holds another number of adds than it states; a manifest holds none."""
    stated = 0 if opened.parts is not None else opened.stated_count
    count = parquet.count_rows(content, opened.name)
    if stated is not None and count != stated:
        raise CorruptLogError(
            f"{opened.name} holds {count} adds, {stated} were written. It is damaged.", file=opened.name
        )


def choose_rows(pieces: Iterable[list[pa.Array]], rows: Rows) -> Iterator[list[pa.Array]]:
    """Pick some rows, given in ascending order, from columns that arrive in chunks."""
    begin = 0
    for arrays in pieces:
        end = begin + len(arrays[0])
        low, high = np.searchsorted(rows, (begin, end))
        if low < high:
            chosen = pa.array(rows[low:high] - begin)
            yield [array.take(chosen) for array in arrays]
        begin = end


class NativeCheckpointReader:
    """Reads native checkpoints, JSON and Parquet, in one file or in parts."""

    def head(self, store: Store, checkpoint: Checkpoint) -> CheckpointHead:
        """Protocol, metadata, skips and transactions, without reading the adds of a large document."""
        file = checkpoint.files[0]
        if checkpoint.format == "json" and file.size > _READ_WHOLE:
            begin = store.get_range(NATIVE.path(file.name), 0, _HEAD_BYTES, etag=file.etag)
            head = read_head(begin, file.name)
            if head is not None:
                check_main(head, file.name)
                counted = _agreed_count(_stated_count(head), checkpoint)
                return decode_head(head, checkpoint.version, file.name, counted)
        opened = open_checkpoint(store, checkpoint)
        counted = _agreed_count(opened.num_files, checkpoint)
        return decode_head(opened.head, checkpoint.version, file.name, counted)

    def adds(
        self, store: Store, checkpoint: Checkpoint, paths: AbstractSet[str] | None = None
    ) -> Iterator[AddAction]:
        """Adds as whole actions, unknown fields included; only those of `paths` when given."""
        chosen = None if paths is None else pa.array(sorted(paths), pa.string())
        name = checkpoint.files[0].name
        for lines in open_checkpoint(store, checkpoint).lines():
            if chosen is None:
                yield from lines_adds(lines, name)
            else:
                mask = pc.is_in(line_paths(lines, name), value_set=chosen)
                yield from lines_adds(lines.filter(mask), name)


def decode_head(
    head: Mapping[str, Any], version: int, name: str, num_files: int | None = None
) -> CheckpointHead:
    """Decode the head; one without metaData is refused as damaged."""
    try:
        protocol = _action("protocol", head.get("protocol"), ProtocolAction)
        metadata = _action("metaData", head.get("metaData"), MetadataAction)
        if metadata is not None:
            # Damaged bytes may still be valid JSON while the schema inside is not.
            schema_from_json(metadata.schema_string)
        skips = tuple(_action("mergeskip", item, SkipAction) for item in head.get("mergeskip") or ())
        txns = tuple(_action("txn", item, TxnAction) for item in head.get("txn") or ())
        commit_ids = _commit_ids(head, version)
    except (CorruptLogError, SchemaError, TypeError) as bad:
        raise CorruptLogError(
            f"{name}: {bad}. The checkpoint is damaged.", file=name, version=version
        ) from bad
    if metadata is None:
        raise CorruptLogError(
            f"{name} has no metaData. The checkpoint is damaged.", file=name, version=version
        )
    check_head(head, metadata, name, version)
    parts = tuple(part.path for part in _parts(head, name) or ())
    return CheckpointHead(
        version, protocol, metadata,
        tuple(skip for skip in skips if skip), tuple(txn for txn in txns if txn),
        num_files, len(parts) or 1, parts, commit_ids,
    )  # fmt: skip


def _commit_ids(head: Mapping[str, Any], version: int) -> dict[int, str]:
    """The ids of the last commits by version: the list in the head ends with that of its own version."""
    try:
        ids = msgspec.convert(head.get(COMMIT_IDS) or [], list[str | None])
    except msgspec.ValidationError as bad:
        raise CorruptLogError(f"{COMMIT_IDS} cannot be read: {bad}") from bad
    first = version - len(ids) + 1
    return {number: commit_id for number, commit_id in enumerate(ids, start=first) if commit_id}


def _stated_count(head: Mapping[str, Any]) -> int | None:
    count = head.get(COUNT)
    return count if isinstance(count, int) else None


def _agreed_count(own: int | None, checkpoint: Checkpoint) -> int | None:
    """How many adds a checkpoint holds; its own count takes precedence over the hint's."""
    if own is not None and checkpoint.num_files not in (None, own):
        logger.warning(
            "%s has %d adds, but %s says %d; using the checkpoint",
            checkpoint.files[0].name, own, HINT_NAME, checkpoint.num_files,
        )  # fmt: skip
    return checkpoint.num_files if own is None else own


def _action(key: str, body: Any, kind: type[T]) -> T | None:
    action = None if body is None else action_from_wire(key, body)
    return action if isinstance(action, kind) else None


def _parts(head: Mapping[str, Any], name: str) -> tuple[Part, ...] | None:
    if head.get("manifest") is None:
        return None
    try:
        return tuple(msgspec.convert(head.get("parts"), list[Part]))
    except msgspec.ValidationError as bad:
        raise CorruptLogError(f"{name} is a manifest whose parts cannot be read: {bad}", file=name) from bad


def _read_part(store: Store, part: Part) -> bytes:
    try:
        data = store.get(NATIVE.path(part.path))
    except NotFoundError as lost:
        raise CorruptLogError(
            f"{part.path}, a part of a checkpoint, is missing. The checkpoint is incomplete.", file=part.path
        ) from lost
    _check_sum(data, part.sha256, part.path)
    return data


def _document(data: bytes, name: str) -> Document:
    return read_document(data, name, workers=default_parallelism())


def _check_sum(data: bytes, expected: str, name: str) -> None:
    actual = hashlib.sha256(data).hexdigest()
    if actual != expected.lower():
        raise CorruptLogError(
            f"{name} is damaged: its SHA-256 is {actual}, {expected} was written.", file=name, checksum=actual
        )
