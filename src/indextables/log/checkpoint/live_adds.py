"""The live adds of a snapshot as lines in path order: the checkpoint's lines merged with the tail's adds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.log.checkpoint.add_lines import (
    CHUNK_LINES,
    encode_add,
    join_lines,
    line_array,
    line_paths,
    lines_adds,
    search_paths,
)
from indextables.log.checkpoint.reader import open_checkpoint
from indextables.log.replay.add_columns import check_increasing, disordered
from indextables.log.snapshot import Snapshot
from indextables.model.actions import AddAction
from indextables.model.lines import source_of
from indextables.model.stats import truncate_add
from indextables.options import Options


@dataclass(frozen=True, slots=True)
class _Recent:
    """The tail: lines of its adds in path order, and every path it touched."""

    paths: list[bytes]
    lines: pa.BinaryArray
    touched: list[bytes]
    """In path order, too."""


def live_lines(snapshot: Snapshot, options: Options) -> Iterator[pa.BinaryArray]:
    """Chunks of lines, each path once, ascending."""
    state = snapshot.state
    recent = _recent(snapshot)
    done = 0
    if state.segment.checkpoint is not None:
        name = state.segment.checkpoint.files[0].name
        previous: str | None = None
        for lines in open_checkpoint(snapshot.store, state.segment.checkpoint).lines():
            if not len(lines):
                continue
            paths = line_paths(lines, name)
            if not check_increasing(paths, previous):
                raise disordered(name)
            previous = paths[-1].as_py()
            upto = bisect_left(recent.paths, previous.encode(), lo=done)
            yield _shortened(_merge(lines, paths, recent, done, upto), snapshot, options, name)
            done = upto
    for begin in range(done, len(recent.paths), CHUNK_LINES):
        lines = recent.lines[begin : min(begin + CHUNK_LINES, len(recent.paths))]
        yield _shortened(lines, snapshot, options, "the log's tail")


def _recent(snapshot: Snapshot) -> _Recent:
    tail = snapshot.state.tail
    adds = sorted(tail.adds.values(), key=lambda add: add.path.encode())
    touched = sorted([*(add.path.encode() for add in adds), *(str(key).encode() for key in tail.removed)])
    chunk = join_lines([_line(add) for add in adds])
    lines = line_array(chunk, "the log's tail") if adds else pa.array([], pa.binary())
    return _Recent([add.path.encode() for add in adds], lines, touched)


def _line(add: AddAction) -> bytes:
    """The text of an add as its commit has it, where nobody has looked into it yet."""
    source = source_of(add)
    return encode_add(add) if source is None else bytes(source[0])


def _merge(
    lines: pa.BinaryArray, paths: pa.StringArray, recent: _Recent, begin: int, end: int
) -> pa.BinaryArray:
    """A chunk without the lines the tail touched, with the tail's lines `begin` to `end` in their places."""
    low = bisect_left(recent.touched, paths[0].as_py().encode())
    high = bisect_right(recent.touched, paths[-1].as_py().encode(), lo=low)
    rows, present = search_paths(paths, recent.touched[low:high])
    if begin == end and not present.any():
        return lines
    kept = np.delete(np.arange(len(lines)), rows[present])
    if begin == end:
        return lines.take(pa.array(kept))
    places, _ = search_paths(paths, recent.paths[begin:end])
    order = np.insert(kept, np.searchsorted(kept, places), len(lines) + np.arange(end - begin))
    return pa.concat_arrays([lines, recent.lines[begin:end]]).take(pa.array(order))


def _shortened(lines: pa.BinaryArray, snapshot: Snapshot, options: Options, name: str) -> pa.BinaryArray:
    """The lines with statistics over the limit cut; only lines long enough to hold one are decoded."""
    if not options.stats.truncation_enabled:
        return lines
    suspects = np.flatnonzero(
        pc.greater(pc.binary_length(lines), options.stats.max_length).to_numpy(zero_copy_only=False)
    )
    places = np.arange(len(lines))
    changed: list[bytes] = []
    for at, add in zip(suspects, lines_adds(lines.take(pa.array(suspects)), name), strict=True):
        short, done = truncate_add(add, snapshot.schema, snapshot.partition_columns, options.stats)
        if done.columns:
            places[at] = len(lines) + len(changed)
            changed.append(encode_add(short))
    if not changed:
        return lines
    return pa.concat_arrays([lines, line_array(join_lines(changed), name)]).take(pa.array(places))
