"""The columns of adds, read from their lines without building them.

Lines are read for the leaves that are asked for and nothing else: by their
layout where they have one, else by a parser. Whatever these stumble over (a
number where text belongs, statistics in an unusual place) is read again action
by action.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from indextables.log.checkpoint.add_lines import LINE_END, line_array
from indextables.log.lines.leaf_parsing import (
    NUMBERS,
    Wire,
    child_of,
    join_texts,
    needs_stats,
    parse_fields,
    parse_with_arrow,
    parse_with_duckdb,
    require_objects,
    wanted_fields,
    wire_type,
)
from indextables.log.lines.line_grid import LineGrid
from indextables.log.replay.add_columns import WIRE, Leaf, Unusual, plausible
from indextables.model.fields import decode_partition_array, decode_stat_array
from indextables.runtime import default_parallelism

_ABSENT = {"size": 0, "modification_time": 0}
_TAGS = pa.map_(pa.string(), pa.string())
_NUMBERS = frozenset({*NUMBERS, "nullCount"})
_FLAGS = frozenset({"dataChange"})

Arrays: TypeAlias = list[pa.Array]


def read_leaves(batches: Iterable[pa.BinaryArray], leaves: Sequence[Leaf], *, many: bool) -> Iterator[Arrays]:
    """One array per leaf for each piece of the lines, in order; `Unusual` when that cannot be trusted.

    Pieces are read on all cores. From the first on that has no layout a parser reads.
    """
    lines = iter(batches)
    layouts = _Layouts(leaves)
    unread: Iterable[pa.BinaryArray] = ()
    for piece, found, rest in _ahead(lines, layouts):
        if found is None:
            unread = chain([piece], rest, lines)
            break
        yield found
    parsed = parse_with_duckdb(unread, leaves) if many and unread else parse_with_arrow(unread, leaves)
    try:
        for wire in parsed:
            yield [_typed(leaf, wire) for leaf in leaves]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as bad:
        raise Unusual(str(bad)) from bad


def _ahead(
    lines: Iterator[pa.BinaryArray], layouts: _Layouts
) -> Iterator[tuple[pa.BinaryArray, Arrays | None, list[pa.BinaryArray]]]:
    """Pieces with what was found in them, in order, and the pieces after them that were taken already."""
    first = list(islice(lines, 2))
    if len(first) == 1:
        yield first[0], layouts.read(first[0]), []
        return
    waiting: deque[tuple[pa.BinaryArray, Future[Arrays | None]]] = deque()
    workers = default_parallelism()
    with ThreadPoolExecutor(workers, thread_name_prefix="indextables-leaves") as pool:
        for piece in chain(first, lines):
            waiting.append((piece, pool.submit(layouts.read, piece)))
            if len(waiting) > workers:
                done, found = waiting.popleft()
                yield done, found.result(), [item for item, _ in waiting]
        while waiting:
            done, found = waiting.popleft()
            yield done, found.result(), [item for item, _ in waiting]


class _Layouts:
    """Reads leaves out of lines by their layout."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._leaves = leaves
        fields, self._stats = wanted_fields(leaves)
        self._tags = fields.pop("tags", ()) is None
        # Few adds need their statistics document, so it is looked for only where one does.
        self._needs_all = any(leaf.column == "null_count" and not leaf.spare for leaf in leaves)
        if not self._needs_all:
            fields.pop("stats", None)
        if self._tags:
            # Nothing to cut out, but a layout that has them is to be left to a parser.
            fields["tags"] = []
        self._grid = _grid(fields)
        self._documents = _grid({"stats": None})
        self._inner = _grid(self._stats)

    def read(self, lines: pa.BinaryArray) -> Arrays | None:
        """One array per leaf; None if the lines have no layout."""
        found = self._grid.cut(lines)
        if found is None:
            return None
        wire: dict[str, pa.Array] = found
        if self._tags:
            if wire["tags"].null_count < len(lines):
                return None
            wire["tags"] = pa.nulls(len(lines), pa.string())
        try:
            if self._stats and not self._add_stats(lines, wire):
                return None
            return [_typed(leaf, wire) for leaf in self._leaves]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as bad:
            raise Unusual(str(bad)) from bad

    def _add_stats(self, lines: pa.BinaryArray, wire: dict[str, pa.Array]) -> bool:
        """Put what the statistics documents say beside the fields of the adds; False if a parser has to."""
        needed = needs_stats(wire, self._leaves)
        inner: dict[str, pa.Array] | None
        if self._needs_all or (isinstance(needed, pa.Array) and pc.any(needed).as_py()):
            documents = wire if self._needs_all else self._documents.cut(lines)
            if documents is None:
                return False
            texts = pc.fill_null(pc.if_else(needed, documents["stats"], "{}"), "{}")
            inner = self._read_documents(texts)
        else:
            inner = {
                name: pa.nulls(len(lines), wire_type(name, children))
                for name, children in self._stats.items()
            }
        wire |= {f"stats.{name}": array for name, array in inner.items()}
        return True

    def _read_documents(self, texts: pa.Array) -> dict[str, pa.Array]:
        chunk = bytes(join_texts(texts, LINE_END.decode())) + LINE_END
        if chunk.count(b"\n") == len(texts):
            found = self._inner.cut(line_array(chunk, "stats"))
            if found is not None:
                return found
        require_objects(texts)
        return parse_fields(join_texts(texts, "\n"), len(texts), self._stats)


def _grid(fields: dict[str, list[str] | None]) -> LineGrid:
    return LineGrid(fields, _NUMBERS, _FLAGS)


def _typed(leaf: Leaf, wire: Wire) -> pa.Array:
    if leaf.column == "path":
        if wire["path"].null_count:
            raise Unusual("an add without a path")
        return wire["path"]
    if leaf.column == "tags":
        return _tags(wire["tags"])
    if leaf.column == "partition_values":
        return decode_partition_array(child_of(wire["partitionValues"], leaf.child), leaf.type)
    if leaf.column == "data_change":
        return pc.fill_null(pc.cast(wire["dataChange"], pa.bool_()), True)
    if leaf.column == "null_count":
        return _number(child_of(wire["stats.nullCount"], leaf.child))
    if leaf.column in {"min", "max"}:
        name = WIRE[leaf.column]
        text = child_of(wire[name], leaf.child)
        if wire[name].null_count:
            text = pc.if_else(pc.is_null(wire[name]), child_of(wire[f"stats.{name}"], leaf.child), text)
        return decode_stat_array(text, leaf.type)
    found = _number(wire[WIRE[leaf.column]])
    if leaf.column == "num_records" and found.null_count:
        found = pc.coalesce(found, _number(wire["stats.numRecords"]))
    default = _ABSENT.get(leaf.column) if found.null_count else None
    return plausible(leaf, pc.cast(found if default is None else pc.fill_null(found, default), leaf.type))


def _number(array: pa.Array) -> pa.Array:
    return pc.cast(array, pa.int64())


def _tags(texts: pa.Array) -> pa.Array:
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), _TAGS)
    distinct = texts.dictionary_encode()
    maps = []
    for text in distinct.dictionary.to_pylist():
        found = msgspec.json.decode(text)
        if not isinstance(found, dict) or not all(isinstance(value, str | None) for value in found.values()):
            raise Unusual("tags that are not text")
        maps.append(list(found.items()))
    return pa.array(maps, _TAGS).take(distinct.indices)
