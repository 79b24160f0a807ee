"""The files of a checkpoint while it is written: parts with a limited number of adds, on local disk.

How many parts there are shows at the end. Only then does each say that it is part i of n;
if one turns out to be enough, it becomes a checkpoint in a single file.
"""

from __future__ import annotations

import hashlib
import shutil
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa

from indextables.log.adds.columns import AddLeaf
from indextables.log.adds.lines import CHUNK_LINES, LINE_END, line_chunk
from indextables.log.checkpoint.json_document import (
    CLOSING,
    COUNT,
    ORDER,
    encode_head,
    encode_manifest,
)
from indextables.log.checkpoint.parquet import AddsWriter
from indextables.log.format.binding import PART, PARTS
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

    def __init__(self, directory: Path, limit: int, head: Mapping[str, Any]) -> None:
        self.files: list[PartFile] = []
        self.actions = 0
        self._head = head
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
            self.files = self._end()
        finally:
            self._release()

    @abstractmethod
    def single(self) -> bytes:
        """The checkpoint as one file, when there is only one part."""

    @abstractmethod
    def manifest(self, parts: Sequence[Any]) -> bytes:
        """The main file of a checkpoint with several parts."""

    def _place(self, part: int, parts: int) -> dict[str, Any]:
        """What a part says of itself."""
        return {PART: part, PARTS: parts, **{key: self._head[key] for key in ("version", "tableId")}}

    def _listed(self, parts: Sequence[Any]) -> dict[str, Any]:
        """The head of a manifest."""
        return {"manifest": 1, **self._head, COUNT: self.actions, "parts": parts}

    @abstractmethod
    def _add(self, batch: pa.RecordBatch) -> None:
        """Write one chunk. It never crosses the end of a part."""

    @abstractmethod
    def _end(self) -> list[PartFile]:
        """Finish every part; if there is none at all, make an empty one."""

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

    def __init__(
        self, directory: Path, limit: int, head: Mapping[str, Any], compression: CompressionOptions
    ) -> None:
        super().__init__(directory, limit, head)
        self._compression = compression
        self._threads = default_parallelism()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="indextables-pack")
        self._packing: deque[Future[bytes]] = deque()
        self._bodies: list[_LocalFile] = []
        """What comes after the opening of each part, which says how many there are."""
        self._open: _LocalFile | None = None
        self._pending: bytes | None = None

    def _end(self) -> list[PartFile]:
        if self._open is not None or not self._bodies:
            self._finish()
        if len(self._bodies) == 1:
            return [self._bodies[0].finish()]
        return [
            body.behind(self._stored(encode_head({**self._place(at, len(self._bodies)), "order": ORDER})))
            for at, body in enumerate(self._bodies, start=1)
        ]

    def _release(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        if self._open is not None:
            self._open.file.close()

    def single(self) -> bytes:
        """The checkpoint as one file: the part, behind the head of the checkpoint."""
        head, body = encode_head({**self._head, COUNT: self.actions}), self.files[0].path.read_bytes()
        return self._stored(head) + body if self._compression.enabled else sealed_document(head + body)

    def manifest(self, parts: Sequence[Any]) -> bytes:
        """The main file of a checkpoint with several parts."""
        text = encode_manifest(self._listed(parts))
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
            self._open = _LocalFile(self._directory / f"{len(self._bodies)}.json")
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
        part.file.close()
        self._bodies.append(part)
        self._open, self._pending = None, None


class ParquetParts(Parts):
    """Parts as Parquet files: the leaves as typed columns, and the JSON text of each add."""

    chunk_rows = GROUP_LINES

    def __init__(
        self, directory: Path, limit: int, head: Mapping[str, Any], leaves: tuple[AddLeaf, ...]
    ) -> None:
        super().__init__(directory, limit, head)
        self._leaves = leaves
        self._parts: list[tuple[_LocalFile, AddsWriter]] = []
        """Each lacks its footer, which says how many there are."""

    def _end(self) -> list[PartFile]:
        if not self._parts:
            self._next()
        total = len(self._parts)
        for at, (file, writer) in enumerate(self._parts, start=1):
            writer.close({COUNT: file.actions, **(self._place(at, total) if total > 1 else {})})
        return [file.finish() for file, _ in self._parts]

    def _release(self) -> None:
        for file, writer in self._parts:
            writer.abandon()
            file.file.close()

    def single(self) -> bytes:
        """The whole checkpoint as one file: every part carries the head."""
        return self.files[0].path.read_bytes()

    def manifest(self, parts: Sequence[Any]) -> bytes:
        """A Parquet file without rows that carries the manifest."""
        sink = BytesIO()
        AddsWriter(sink, self._leaves, self._listed(parts)).close({})
        return sink.getvalue()

    def _add(self, batch: pa.RecordBatch) -> None:
        self.actions += len(batch)
        if not self._parts or self._parts[-1][0].actions == self._limit:
            self._next()
        file, writer = self._parts[-1]
        file.actions += len(batch)
        lines, *columns = batch.columns
        writer.write(lines, columns)

    def _next(self) -> None:
        file = _LocalFile(self._directory / f"{len(self._parts)}.parquet")
        self._parts.append((file, AddsWriter(file.file, self._leaves, self._head)))


class _LocalFile:
    """A file on local disk with the number of adds written to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("wb")
        self.actions = 0

    def write(self, data: bytes) -> None:
        self.file.write(data)

    def behind(self, opening: bytes) -> PartFile:
        """The finished file with something before its content."""
        whole = _LocalFile(self.path.with_suffix(".part"))
        whole.actions = self.actions
        whole.write(opening)
        with self.path.open("rb") as body:
            shutil.copyfileobj(body, whole.file)
        self.path.unlink()
        return whole.finish()

    def finish(self) -> PartFile:
        if not self.file.closed:
            self.file.close()
        with self.path.open("rb") as stored:
            sha256 = hashlib.file_digest(stored, "sha256").hexdigest()
        return PartFile(self.path, sha256, self.actions, self.path.stat().st_size)
