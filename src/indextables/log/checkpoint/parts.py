"""The files of a checkpoint while it is written: parts with a limited number of adds, on local disk.

If one part turns out to be enough, it is published as a single file, with the head of the
checkpoint in place of the opening of a part.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa

from indextables.log.adds.columns import Leaf
from indextables.log.adds.lines import CHUNK_LINES, LINE_END, line_chunk
from indextables.log.checkpoint.json_document import CLOSING, PART_OPENING, encode_head, encode_manifest
from indextables.log.checkpoint.parquet import AddsWriter
from indextables.log.format.checksum import sealed_document
from indextables.options import CompressionOptions
from indextables.records import dataclass
from indextables.runtime import default_parallelism
from indextables.storage.envelope import pack

GROUP_LINES = 16 * CHUNK_LINES
"""Rows in one Parquet row group."""
LINE = 0
"""The column of a batch that holds the JSON lines; all other columns are leaves."""


@dataclass(frozen=True, slots=True)
class PartFile:
    """A finished part on local disk."""

    path: Path
    sha256: str
    actions: int
    size_bytes: int


class Parts(ABC):
    """Takes batches of lines in order and writes them into parts of at most `limit` adds."""

    chunk_rows = CHUNK_LINES
    """How many adds are written at a time."""

    def __init__(self, directory: Path, limit: int) -> None:
        self.files: list[PartFile] = []
        self.actions = 0
        self._directory = directory
        self._limit = limit
        self._cutter = _Cutter(limit, self.chunk_rows)

    def write_all(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Write all batches; afterwards there is at least one part."""
        try:
            for batch in batches:
                for chunk in self._cutter.take(batch):
                    self._add(chunk)
            for chunk in self._cutter.rest():
                self._add(chunk)
            self._end()
        finally:
            self._release()

    @abstractmethod
    def single(self, head: Mapping[str, Any]) -> bytes:
        """The checkpoint as one file, when there is only one part."""

    @abstractmethod
    def manifest(self, head: Mapping[str, Any]) -> bytes:
        """The main file of a checkpoint with several parts."""

    @abstractmethod
    def _add(self, batch: pa.RecordBatch) -> None:
        """Write one chunk. It never crosses the end of a part."""

    @abstractmethod
    def _end(self) -> None:
        """Finish the open part; if there is no part at all, make an empty one."""

    @abstractmethod
    def _release(self) -> None:
        """Release the resources held while writing."""


class _Cutter:
    """Cuts batches of any size into equal chunks; a chunk ends wherever a part ends."""

    def __init__(self, limit: int, chunk_rows: int) -> None:
        self._limit = limit
        self._chunk_rows = chunk_rows
        self._held: list[pa.RecordBatch] = []
        self._count = 0
        self._room = limit

    def take(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """The chunks that are complete once this batch is added."""
        self._held.append(batch)
        self._count += len(batch)
        ready = []
        while self._count >= min(self._chunk_rows, self._room):
            ready.append(self._cut(min(self._chunk_rows, self._room)))
        return ready

    def rest(self) -> list[pa.RecordBatch]:
        """The incomplete chunk that is left at the end."""
        return [self._cut(self._count)] if self._count else []

    def _cut(self, size: int) -> pa.RecordBatch:
        whole = self._held[0] if len(self._held) == 1 else pa.concat_batches(self._held)
        self._held = [whole[size:]]
        self._count -= size
        self._room = self._room - size or self._limit
        return whole[:size]


class JsonParts(Parts):
    """Parts as JSON documents, a gzip member for each chunk, compressed by several threads."""

    def __init__(self, directory: Path, limit: int, compression: CompressionOptions) -> None:
        super().__init__(directory, limit)
        self._compression = compression
        self._threads = default_parallelism()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="indextables-pack")
        self._packing: deque[Future[bytes]] = deque()
        self._open: _LocalFile | None = None
        self._pending: bytes | None = None

    def _end(self) -> None:
        if self._open is not None or not self.files:
            self._finish()

    def _release(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        if self._open is not None:
            self._open.file.close()

    def single(self, head: Mapping[str, Any]) -> bytes:
        """The checkpoint as one file: the part, with the head in place of the part's opening."""
        body = self.files[0].path.read_bytes()[len(self._stored(PART_OPENING)) :]
        if self._compression.enabled:
            return self._stored(encode_head(head)) + body
        return sealed_document(encode_head(head) + body)

    def manifest(self, head: Mapping[str, Any]) -> bytes:
        """The main file of a checkpoint with several parts."""
        text = encode_manifest(head)
        return self._stored(text) if self._compression.enabled else sealed_document(text)

    def _stored(self, text: bytes) -> bytes:
        return pack(text, self._compression)

    def _member(self, text: bytes) -> bytes:
        return pack(text, self._compression, first=False)

    def _add(self, batch: pa.RecordBatch) -> None:
        lines = batch.column(LINE)
        self.actions += len(lines)
        part = self._part()
        part.actions += len(lines)
        if self._pending is not None:
            self._submit(self._pending)
        self._pending = line_chunk(lines)
        if part.actions == self._limit:
            self._finish()

    def _part(self) -> _LocalFile:
        if self._open is None:
            self._open = _LocalFile(self._directory / f"{len(self.files)}.json")
            self._open.write(self._stored(PART_OPENING))
        return self._open

    def _submit(self, text: bytes) -> None:
        self._packing.append(self._pool.submit(self._member, text))
        while len(self._packing) > self._threads:
            self._part().write(self._packing.popleft().result())

    def _finish(self) -> None:
        part = self._part()
        if self._pending is not None:
            # The last add of a JSON list has no comma after it.
            self._submit(self._pending.removesuffix(LINE_END) + b"\n")
        while self._packing:
            part.write(self._packing.popleft().result())
        part.write(self._member(CLOSING))
        self.files.append(part.finish())
        self._open, self._pending = None, None


class ParquetParts(Parts):
    """Parts as Parquet files: the leaves as typed columns, and the JSON text of each add."""

    chunk_rows = GROUP_LINES

    def __init__(
        self, directory: Path, limit: int, head: Mapping[str, Any], leaves: tuple[Leaf, ...]
    ) -> None:
        super().__init__(directory, limit)
        self._head = head
        self._leaves = leaves
        self._open: tuple[_LocalFile, AddsWriter] | None = None

    def _end(self) -> None:
        if self._open is not None or not self.files:
            self._finish()

    def _release(self) -> None:
        if self._open is not None:
            self._open[0].file.close()

    def single(self, head: Mapping[str, Any]) -> bytes:
        """The whole checkpoint as one file: every part carries the head."""
        del head
        return self.files[0].path.read_bytes()

    def manifest(self, head: Mapping[str, Any]) -> bytes:
        """A Parquet file without rows that carries the manifest."""
        sink = BytesIO()
        AddsWriter(sink, self._leaves, head).close()
        return sink.getvalue()

    def _add(self, batch: pa.RecordBatch) -> None:
        self.actions += len(batch)
        file, writer = self._part()
        file.actions += len(batch)
        lines, *columns = batch.columns
        writer.write(lines, columns)
        if file.actions == self._limit:
            self._finish()

    def _part(self) -> tuple[_LocalFile, AddsWriter]:
        if self._open is None:
            file = _LocalFile(self._directory / f"{len(self.files)}.parquet")
            self._open = file, AddsWriter(file.file, self._leaves, self._head)
        return self._open

    def _finish(self) -> None:
        file, writer = self._part()
        writer.close()
        self.files.append(file.finish())
        self._open = None


class _LocalFile:
    """A file on local disk with the number of adds written to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("wb")
        self.actions = 0

    def write(self, data: bytes) -> None:
        self.file.write(data)

    def finish(self) -> PartFile:
        if not self.file.closed:
            self.file.close()
        with self.path.open("rb") as stored:
            sha256 = hashlib.file_digest(stored, "sha256").hexdigest()
        return PartFile(self.path, sha256, self.actions, self.path.stat().st_size)
