"""The live adds of a snapshot, sorted by path: the checkpoint's adds merged with those of the tail.

They come as batches that hold the JSON line of each add and, when a Parquet checkpoint is
to be written, its leaf columns too: copied if the old checkpoint is Parquet, otherwise
decoded from the lines.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from indextables.log.adds.columns import AddLeaf, check_increasing, disordered
from indextables.log.adds.decoder import decode_lines
from indextables.log.adds.lines import (
    CHUNK_LINES,
    add_line,
    encode_add,
    join_lines,
    line_array,
    line_bounds,
    line_paths,
    lines_adds,
    search_paths,
)
from indextables.log.checkpoint.reader import open_checkpoint
from indextables.log.snapshot import Snapshot
from indextables.model.actions import AddAction
from indextables.model.stats import indexed_columns, truncate_add
from indextables.model.truncation import Truncated, keep_statistics, may_change
from indextables.options import Options
from indextables.records import dataclass

_TAIL = "the log's tail"


@dataclass(frozen=True, slots=True)
class _SortedTail:
    """The adds of the tail sorted by path, and every path the tail touched."""

    adds: list[AddAction]
    paths: list[bytes]
    touched: list[bytes]
    """Sorted by path, too."""
    leaves: tuple[AddLeaf, ...]

    def batch(self, begin: int, end: int) -> pa.RecordBatch:
        """Some of the adds with their lines and columns, which a long tail never has all at once."""
        lines = line_array(join_lines([add_line(add) for add in self.adds[begin:end]]), _TAIL)
        return _batch(lines, decode_lines(lines, self.leaves, _TAIL))


def live_adds(
    snapshot: Snapshot, options: Options, leaves: tuple[AddLeaf, ...] = ()
) -> Iterator[pa.RecordBatch]:
    """Batches of lines, with the requested leaves; paths ascend, and each occurs once."""
    state = snapshot.state
    tail = _tail(snapshot, leaves)
    done = 0
    if state.base is not None:
        name = state.base.files[0].name
        previous: str | None = None
        opened = open_checkpoint(state.base_store(snapshot.store), state.base)
        chunks = opened.lines_and_leaves(leaves) if leaves else ((lines, []) for lines in opened.lines())
        for lines, columns in chunks:
            if not len(lines):
                continue
            # The path is the first of all leaves.
            paths = columns[0] if columns else line_paths(lines, name)
            if not check_increasing(paths, previous):
                raise disordered(name)
            previous = paths[-1].as_py()
            upto = bisect_left(tail.paths, previous.encode(), lo=done)
            merged = _merge(_batch(lines, columns), paths, tail, done, upto)
            yield _shortened(merged, snapshot, options, leaves)
            done = upto
    for begin in range(done, len(tail.paths), CHUNK_LINES):
        rest = tail.batch(begin, min(begin + CHUNK_LINES, len(tail.paths)))
        yield _shortened(rest, snapshot, options, leaves)


def _batch(lines: pa.BinaryArray, columns: list[pa.Array]) -> pa.RecordBatch:
    arrays = [lines, *columns]
    return pa.RecordBatch.from_arrays(arrays, names=[str(at) for at in range(len(arrays))])


def _tail(snapshot: Snapshot, leaves: tuple[AddLeaf, ...]) -> _SortedTail:
    tail = snapshot.state.tail
    adds = sorted(tail.adds.values(), key=lambda add: add.path.encode())
    paths = [add.path.encode() for add in adds]
    touched = sorted([*paths, *(str(key).encode() for key in tail.removed)])
    return _SortedTail(adds, paths, touched, leaves)


def _merge(
    batch: pa.RecordBatch, paths: pa.StringArray, tail: _SortedTail, begin: int, end: int
) -> pa.RecordBatch:
    """Drop from a batch the adds the tail touched, and insert the tail's adds `begin` to `end` in order."""
    low = bisect_left(tail.touched, paths[0].as_py().encode())
    high = bisect_right(tail.touched, paths[-1].as_py().encode(), lo=low)
    rows, present = search_paths(paths, tail.touched[low:high])
    if begin == end and not present.any():
        return batch
    untouched = np.delete(np.arange(len(batch)), rows[present])
    if begin == end:
        return batch.take(pa.array(untouched))
    positions, _ = search_paths(paths, tail.paths[begin:end])
    order = np.insert(untouched, np.searchsorted(untouched, positions), len(batch) + np.arange(end - begin))
    return pa.concat_batches([batch, tail.batch(begin, end)]).take(pa.array(order))


def _shortened(
    batch: pa.RecordBatch, snapshot: Snapshot, options: Options, leaves: tuple[AddLeaf, ...]
) -> pa.RecordBatch:
    """Cut statistics over the limit, and those of columns that a suggestion leaves out.

    Of every line only the statistics are decoded; of those that have such a value, the whole add.
    """
    names = snapshot.names
    stats = options.stats if names is None else options.stats.with_columns(names.stored_leaf)
    adapted = stats.adapted()
    if not stats.truncation_enabled and adapted is stats:
        return batch
    lines = batch.column(0)
    schema, partitions = snapshot.stored_schema, snapshot.stored_partition_columns
    columns = (
        None if adapted is stats else {leaf.name for leaf in indexed_columns(schema, adapted, partitions)}
    )
    chosen_names = None if columns is None else {name.lower() for name in columns}
    every = line_bounds(lines)
    suspects = np.flatnonzero(
        np.ones(len(lines), bool)
        if every is None
        else [may_change(one, stats, chosen_names) for one in every]
    )
    order = np.arange(len(lines))
    changed: list[bytes] = []
    cut: list[Truncated] = []
    name = snapshot.store.uri
    for at, add in zip(suspects, lines_adds(lines.take(pa.array(suspects)), name), strict=True):
        chosen = add if columns is None else keep_statistics(add, columns)
        short, done = truncate_add(chosen, schema, partitions, stats)
        if short is not add:
            order[at] = len(lines) + len(changed)
            changed.append(encode_add(short))
            cut.append(done)
    if not changed:
        return batch
    Truncated.total(cut).report()
    short_lines = line_array(join_lines(changed), name)
    shortened = _batch(short_lines, decode_lines(short_lines, leaves, name))
    return pa.concat_batches([batch, shortened]).take(pa.array(order))
