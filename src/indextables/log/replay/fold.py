"""A long tail as a private checkpoint: sorted on local disk, so that it never is one object per add.

A log that was never checkpointed, or not for long, has its adds in the order of its commits.
Folding sorts them by path outside of memory: the adds and removes of the commits are
collected into runs, each sorted and written to a scratch directory, and the runs are merged
with the checkpoint before them, the newest action of each path winning. The result has the
form of a checkpoint, so that engines, checkpoints and REPAIR read it like one, a few chunks
at a time.

A fold belongs to one process and is deleted with the last snapshot that reads it.
"""

from __future__ import annotations

import os
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from indextables.errors import CorruptLogError, NotFoundError
from indextables.lazy import pc
from indextables.log.adds.columns import check_increasing, disordered
from indextables.log.adds.lines import LINE_END, PathSequence, add_line, line_paths
from indextables.log.checkpoint.json_document import ORDER
from indextables.log.checkpoint.parts import JsonParts
from indextables.log.checkpoint.reader import Part, open_checkpoint
from indextables.log.format.binding import check_version
from indextables.log.format.checksum import unsealed_chunks
from indextables.log.format.dialect import NATIVE, Checkpoint, LogFile, decode_lines
from indextables.log.replay.rule import Fold, Tail, reduce_tail
from indextables.log.segment import Segment
from indextables.log.state import LogSource
from indextables.model.actions import Action, AddAction, RemoveAction
from indextables.model.lines import decode_many
from indextables.options import CompressionOptions
from indextables.storage.envelope import is_packed, unpack_blocks
from indextables.storage.scratch import discard, scratch
from indextables.storage.store import Store
from indextables.storage.stores.local import LocalStore

_RUN_BYTES = 16 << 20
"""Text of the adds that are sorted at a time."""
_RUN_ROWS = 1 << 15
_BATCH_ROWS = 1024
"""Rows of a run that are in memory while runs are merged."""
_TEXT_BYTES = 2 << 20
_READ_AHEAD_BYTES = 16 << 20
_ROWS_PER_PART = 1 << 16
_SCHEMA = pa.schema([("path", pa.string()), ("line", pa.binary())])
"""A row is an add with its JSON text, or a remove: its line is null."""
_COMPRESSION = CompressionOptions()


class _UnsoundCheckpointError(Exception):
    """The checkpoint of the segment cannot be read."""


def fold(source: LogSource, segment: Segment) -> Fold | None:
    """Reduce the commits of a segment: their adds go into a private checkpoint, the rest is the tail.

    None if the segment's own checkpoint is damaged. CorruptLogError as from reading the commits; OSError if
    there is no room on the local disk.
    """
    directory = scratch("fold")
    try:
        runs = _Runs(Path(directory))
        heads = [
            (file.version, tuple(_take(source, file, data, runs)))
            for file, data in _read_ahead(source, segment.commits)
        ]
        first = -1 if segment.checkpoint is None else segment.checkpoint.version
        tail = reduce_tail(heads, source.dialect, Tail(first))
        sorted_runs = runs.finish()
        if segment.checkpoint is not None:
            sorted_runs.insert(0, _checkpoint_rows(source.store, segment.checkpoint))
        checkpoint = _write(Path(directory), segment.version, _merged(sorted_runs))
        runs.discard()
        folded = Fold(tail, LocalStore(directory), checkpoint)
    except _UnsoundCheckpointError:
        discard(directory)
        return None
    except BaseException:
        discard(directory)
        raise
    weakref.finalize(folded, _discard_own, directory, os.getpid())
    return folded


def _discard_own(directory: str, owner: int) -> None:
    # A forked child has a copy of the fold, and not its directory.
    if os.getpid() == owner:
        discard(directory)


def _read_ahead(source: LogSource, files: Sequence[LogFile]) -> Iterator[tuple[LogFile, bytes]]:
    """Every commit file with its stored bytes; several small ones are requested at once."""
    done = 0
    while done < len(files):
        upto, size = done + 1, files[done].size
        while (
            upto < len(files)
            and upto - done < source.reads_at_once
            and size + files[upto].size <= _READ_AHEAD_BYTES
        ):
            size += files[upto].size
            upto += 1
        some = files[done:upto]
        bodies = source.read_each(some, lambda log, file: log.store.get(log.path(file.name), etag=file.etag))
        yield from zip(some, bodies, strict=True)
        done = upto


def _take(source: LogSource, file: LogFile, data: bytes, runs: _Runs) -> list[Action]:
    """Put the adds and removes of a commit into runs; its other actions are returned."""
    others: list[Action] = []
    sample: tuple[Action, ...] = ()
    try:
        for text in _texts(data, file):
            actions = decode_many(text, name=file.name, version=file.version)
            if actions is None:
                actions = decode_lines(text, name=file.name, version=file.version)
            for action in actions:
                if isinstance(action, AddAction):
                    sample = (action,)
                    runs.put(action.path, add_line(action))
                elif isinstance(action, RemoveAction):
                    sample = (action,)
                    runs.put(action.path, None)
                else:
                    others.append(action)
        check_version([*others, *sample], file.name, file.version)
    except CorruptLogError:
        # Read as a whole, the commit raises the error that counts its lines from the first.
        source.read_commit(file)
        raise
    if not others and not sample:
        return list(source.read_commit(file))
    source.refuse_retired(file, others)
    return others


def _texts(data: bytes, file: LogFile) -> Iterator[bytes]:
    """The text of a commit in chunks of whole lines, its checksum verified at the end."""
    blocks = unpack_blocks(data, file.name) if is_packed(data) else _slices(data)
    return unsealed_chunks(_whole_lines(blocks), file.name, file.version)


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for block in blocks:
        whole, end, rest = block.rpartition(b"\n")
        if end and size + len(whole) >= _TEXT_BYTES:
            yield b"".join([*held, whole, end])
            held, size = [rest], len(rest)
        else:
            held.append(block)
            size += len(block)
    last = b"".join(held)
    if last:
        yield last


def _slices(text: bytes) -> Iterator[bytes]:
    for begin in range(0, len(text), _TEXT_BYTES):
        yield text[begin : begin + _TEXT_BYTES]


class _Runs:
    """Collects actions about files in the order of the log, and writes them in sorted runs."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: list[Path] = []
        self._paths: list[str] = []
        self._lines: list[bytes | None] = []
        self._size = 0

    def put(self, path: str, line: bytes | None) -> None:
        """One more action; None for the line is a remove."""
        self._paths.append(path)
        self._lines.append(None if line is None else line + LINE_END)
        self._size += 0 if line is None else len(line)
        if self._size >= _RUN_BYTES or len(self._paths) >= _RUN_ROWS:
            self._spill()

    def finish(self) -> list[Iterator[pa.RecordBatch]]:
        """The rows of every run, oldest run first."""
        if self._paths:
            self._spill()
        return [_run_rows(file) for file in self._files]

    def discard(self) -> None:
        """Delete the files of the runs."""
        for file in self._files:
            file.unlink()

    def _spill(self) -> None:
        rows = pa.record_batch(
            [pa.array(self._paths, pa.string()), pa.array(self._lines, pa.binary())], schema=_SCHEMA
        )
        self._paths, self._lines, self._size = [], [], 0
        file = self._directory / f"{len(self._files)}.run"
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, _SCHEMA) as writer:
            writer.write_table(pa.Table.from_batches([_newest(rows)]), max_chunksize=_BATCH_ROWS)
        self._files.append(file)


def _run_rows(file: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(file), "rb") as stored:
        reader = pa.ipc.open_file(stored)
        for at in range(reader.num_record_batches):
            yield reader.get_batch(at)


def _newest(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Sorted by path, with the last row of every path."""
    # The sort is stable: of rows with the same path the newest stays the last.
    rows = rows.take(pc.array_sort_indices(rows.column(0)))
    paths = rows.column(0)
    if len(rows) > 1:
        last = pc.not_equal(paths[:-1], paths[1:])
        rows = rows.filter(pa.concat_arrays([last, pa.array([True])]))
    return rows


def _checkpoint_rows(store: Store, checkpoint: Checkpoint) -> Iterator[pa.RecordBatch]:
    name, previous = checkpoint.files[0].name, None
    try:
        for lines in open_checkpoint(store, checkpoint).lines():
            if not len(lines):
                continue
            paths = line_paths(lines, name)
            if not check_increasing(paths, previous):
                raise disordered(name)
            previous = paths[-1].as_py()
            yield pa.record_batch([paths, lines], schema=_SCHEMA)
    except (CorruptLogError, NotFoundError) as bad:
        raise _UnsoundCheckpointError from bad


def _merged(runs: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The lines of the live adds, sorted by path; of each path the row of the last run that has it."""
    batches = [next(run, None) for run in runs]
    while any(batch is not None for batch in batches):
        # Whatever sorts up to the smallest last path is complete in the batches at hand.
        bound = min(batch.column(0)[-1].as_py().encode() for batch in batches if batch is not None)
        ready = []
        for at, batch in enumerate(batches):
            if batch is None:
                continue
            cut = bisect_right(PathSequence(batch.column(0)), bound)
            ready.append(batch[:cut])
            batches[at] = batch[cut:] if cut < len(batch) else next(runs[at], None)
        lines = _newest(pa.concat_batches(ready)).column(1).drop_null()
        if len(lines):
            yield pa.record_batch([lines], names=["0"])


def _write(directory: Path, version: int, batches: Iterator[pa.RecordBatch]) -> Checkpoint:
    head: dict[str, Any] = {"version": version, "tableId": None, "order": ORDER}
    parts = JsonParts(directory, _ROWS_PER_PART, head, _COMPRESSION)
    parts.write_all(batches)
    log = directory / NATIVE.log_dir
    log.mkdir()
    entries: list[Part] = []
    if len(parts.files) > 1:
        for at, file in enumerate(parts.files, start=1):
            name = NATIVE.part_name(version, "fold", at, len(parts.files))
            entries.append(Part(name, file.sha256, file.actions, file.size_bytes))
            file.path.rename(log / name)
        data = parts.manifest(msgspec.to_builtins(entries))
    else:
        data = parts.single()
    name = NATIVE.checkpoint_name(version)
    (log / name).write_bytes(data)
    main = LogFile(name, version, "checkpoint", len(data), format="json")
    return Checkpoint(version, "json", (main,), num_files=parts.actions)
