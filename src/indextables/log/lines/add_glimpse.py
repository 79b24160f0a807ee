"""A glimpse at adds nobody has looked into yet: the few fields a question needs, straight from their text.

Reading an add whole builds some thirty objects. A question about sizes or about
one column's bounds decodes just those fields, by a type made for the question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any

import msgspec

from indextables.log.replay.add_columns import IN_STATS, WIRE, Leaf
from indextables.model.actions import FIRST_MS, LARGEST, LAST_MS, AddAction
from indextables.model.lines import source_of

_UNNAMEABLE = re.compile(r'["\\\x00-\x1f]')
"""What the decoder does not take in the name of a field."""
# What is outside these bounds is left to the careful reader, which says what is wrong with it.
_COUNT = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
_MOMENT = Annotated[int, msgspec.Meta(ge=FIRST_MS, le=LAST_MS)]
_PLAIN: dict[str, tuple[Any, Any]] = {
    "path": (str, msgspec.NODEFAULT),
    "size": (_COUNT, 0),
    "modification_time": (_MOMENT, 0),
    "num_records": (_COUNT | None, None),
    "data_change": (bool, True),
    "index_offset": (_COUNT | None, None),
    "index_length": (_COUNT | None, None),
}


def glimpse(adds: Sequence[AddAction], leaves: tuple[Leaf, ...]) -> list[list[Any]] | None:
    """One list of log values per leaf; None when an add was read already or is not of the plain form."""
    lens = _lens(leaves)
    if lens is None:
        return None
    if lens.only_paths:
        return [[add.path for add in adds]]
    sources = [source_of(add) for add in adds]
    if None in sources:
        return None
    decode = lens.decoder.decode
    try:
        lines = [decode(source[0]) for source in sources if source is not None]
        return lens.look(lines) if lens.suffices(lines) else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class _Lens:
    """A type with just the fields of some leaves, and how each leaf is taken from it."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        shapes: dict[str, dict[str, str]] = {}
        fields: dict[str, Any] = {"stats": ("stats", str | None, None)}
        for leaf in leaves:
            if leaf.child is not None:
                shape = shapes.setdefault(leaf.column, {})
                shape[leaf.child] = f"c{len(shape)}"
            else:
                kind, default = _PLAIN[leaf.column]
                wire = msgspec.field(name=WIRE[leaf.column], default=default)
                fields[leaf.column] = (leaf.column, kind, wire)
        for column, shape in shapes.items():
            if column != "null_count":
                struct = _struct(shape, str | None)
                fields[column] = (column, struct | None, msgspec.field(name=WIRE[column], default=None))
        ordered = sorted(fields.values(), key=lambda item: item[0] != "path")
        self.decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
            msgspec.defstruct("AddGlimpse", ordered, gc=False)
        )
        self._in_stats = [column for column in ("num_records", "min", "max") if column in fields]
        counts = _struct(shapes.get("null_count", {}), int | None)
        inner = (IN_STATS["null_count"], counts | None, None)
        self._stats: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
            msgspec.defstruct("StatsGlimpse", [inner])
        )
        self.only_paths = [leaf.column for leaf in leaves] == ["path"]
        self._leaves = leaves
        self._shapes = shapes

    def suffices(self, lines: Sequence[Any]) -> bool:
        """Whether nothing asked for has to be looked up in the statistics documents."""
        absent = any(None in map(attrgetter(column), lines) for column in self._in_stats)
        return not absent or all(line.stats is None for line in lines)

    def look(self, lines: Sequence[Any]) -> list[list[Any]]:
        """One list of values per leaf."""
        found: dict[tuple[str, str | None], list[Any]] = {}
        for leaf in self._leaves:
            if leaf.column != "null_count":
                found[leaf.column, leaf.child] = self._values(leaf, list(map(attrgetter(leaf.column), lines)))
        for leaf in self._leaves:
            if leaf.column == "null_count":
                bounds = [found[name, leaf.child] for name in ("min", "max")] if leaf.spare else []
                if bounds and any(None not in values for values in bounds):
                    # Every add has a bound, so nobody asks for this.
                    found["null_count", leaf.child] = [None] * len(lines)
                else:
                    found["null_count", leaf.child] = self._values(
                        leaf, [self._counts(line) for line in lines]
                    )
        return [found[leaf.column, leaf.child] for leaf in self._leaves]

    def _values(self, leaf: Leaf, parents: list[Any]) -> list[Any]:
        if leaf.child is None:
            return parents
        child = attrgetter(self._shapes[leaf.column][leaf.child])
        if None in parents:
            return [None if parent is None else child(parent) for parent in parents]
        return list(map(child, parents))

    def _counts(self, line: Any) -> Any:
        return None if not line.stats else getattr(self._stats.decode(line.stats), IN_STATS["null_count"])


def _struct(shape: dict[str, str], kind: Any) -> Any:
    fields = [(name, kind, msgspec.field(name=child, default=None)) for child, name in shape.items()]
    return msgspec.defstruct("Children", fields, gc=False)


@lru_cache(maxsize=16)
def _lens(leaves: tuple[Leaf, ...]) -> _Lens | None:
    if any(leaf.child is None and leaf.column not in _PLAIN for leaf in leaves):
        return None
    if any(leaf.child is not None and _UNNAMEABLE.search(leaf.child) for leaf in leaves):
        return None
    return _Lens(leaves)
