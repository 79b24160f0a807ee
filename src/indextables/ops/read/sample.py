"""A random sample of rows: their numbers are drawn first, then only those rows are read."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from indextables.errors import OptionError
from indextables.log.snapshot import Snapshot
from indextables.ops.read.in_order import in_order, splits_at_once
from indextables.ops.read.record import Record
from indextables.ops.read.scan import row_count
from indextables.ops.read.splits import splits_for
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_split
from indextables.split.read.rows import to_table_schema


def sample(snapshot: Snapshot, n: int, seed: int | None) -> tuple[pa.Table, Record]:
    """Rows of a version drawn without replacement, in (path, row) order; all of them if there are fewer."""
    if n < 0:
        raise OptionError(f"n is {n}; give a number of rows")
    record = Record(snapshot)
    refs = splits_for(snapshot, None, record)
    ends = np.cumsum([row_count(snapshot, ref) for ref in refs], dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    drawn = np.sort(np.array(random.Random(seed).sample(range(total), min(n, total)), np.int64))  # noqa: S311
    pieces = [
        partial(_picked, snapshot, refs[at], drawn[begin:end] - (ends[at - 1] if at else 0), record)
        for at, (begin, end) in enumerate(_bounds(drawn, ends))
        if begin < end
    ]
    record.not_needed(len(refs) - len(pieces))
    rows = list(in_order(pieces, splits_at_once(snapshot)))
    return pa.concat_tables([snapshot.reading.columns(snapshot.schema.names).empty_table(), *rows]), record


def _bounds(drawn: np.ndarray, ends: np.ndarray) -> Sequence[tuple[int, int]]:
    """For each split, which of the ascending row numbers lie in it."""
    stops = np.searchsorted(drawn, ends)
    return list(zip([0, *stops[:-1]], stops, strict=True)) if len(ends) else []


def _picked(snapshot: Snapshot, ref: SplitRef, rows: np.ndarray, record: Record) -> Iterator[pa.Table]:
    reader, names = open_split(snapshot.store, ref), snapshot.schema.names
    picked = rows if reader.hidden is None else reader.live()[rows]
    stored = reader.read_rows(picked, [name for name in names if name in reader.columns])
    table = to_table_schema(stored, snapshot.schema, names, ref.partition_values)
    record.read(table.num_rows)
    yield table.select(names)
