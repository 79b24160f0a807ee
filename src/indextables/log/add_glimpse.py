"""A glimpse at adds nobody has looked into yet: the few fields a question needs, straight from their text.

Reading an add whole builds some thirty objects. A question about sizes or about
one column's bounds decodes just those fields, by a type made for the question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec

from indextables.log.add_columns import IN_STATS, WIRE, Leaf
from indextables.model.actions import AddAction
from indextables.model.lines import source_of

_PLAIN: dict[str, tuple[Any, Any]] = {
    "path": (str, msgspec.NODEFAULT),
    "size": (int, 0),
    "modification_time": (int, 0),
    "num_records": (int | None, None),
    "data_change": (bool, True),
    "index_offset": (int | None, None),
    "index_length": (int | None, None),
}


def glimpse(adds: Sequence[AddAction], leaves: tuple[Leaf, ...]) -> list[list[Any]] | None:
    """One list of log values per leaf; None when an add was read already or is not of the plain form."""
    lens = _lens(leaves)
    if lens is None:
        return None
    if lens.only_paths:
        return [[add.path for add in adds]]
    decode = lens.decoder.decode
    try:
        lines = [decode(source[0]) for add in adds if (source := source_of(add)) is not None]
        if len(lines) != len(adds) or any(not lens.suffices(line) for line in lines):
            return None
        return [look(lines) for look in lens.looks]
    except (msgspec.DecodeError, UnicodeDecodeError):
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
        self.looks = [self._look(leaf, shapes) for leaf in leaves]

    def suffices(self, line: Any) -> bool:
        """Whether nothing asked for has to be looked up in the statistics document."""
        return line.stats is None or all(getattr(line, column) is not None for column in self._in_stats)

    def _look(self, leaf: Leaf, shapes: dict[str, dict[str, str]]) -> Callable[[list[Any]], list[Any]]:
        if leaf.child is None:
            plain = attrgetter(leaf.column)
            return lambda lines: [plain(line) for line in lines]
        child = attrgetter(shapes[leaf.column][leaf.child])
        if leaf.column == "null_count" and leaf.spare:
            bounds = [attrgetter(name) for name in ("min", "max")], attrgetter(shapes["min"][leaf.child])
            return lambda lines: [_of(child, self._spare(line, *bounds)) for line in lines]
        if leaf.column == "null_count":
            return lambda lines: [_of(child, self._counts(line)) for line in lines]
        parent = attrgetter(leaf.column)
        return lambda lines: [_of(child, parent(line)) for line in lines]

    def _spare(self, line: Any, parents: Sequence[attrgetter[Any]], child: attrgetter[Any]) -> Any:
        """The null counts of an add without bounds; of any other nobody asks."""
        bounded = any(_of(child, parent(line)) is not None for parent in parents)
        return None if bounded else self._counts(line)

    def _counts(self, line: Any) -> Any:
        return None if not line.stats else getattr(self._stats.decode(line.stats), IN_STATS["null_count"])


def _of(child: attrgetter[Any], struct: Any) -> Any:
    return None if struct is None else child(struct)


def _struct(shape: dict[str, str], kind: Any) -> Any:
    fields = [(name, kind, msgspec.field(name=child, default=None)) for child, name in shape.items()]
    return msgspec.defstruct("Children", fields, gc=False)


@lru_cache(maxsize=16)
def _lens(leaves: tuple[Leaf, ...]) -> _Lens | None:
    if any(leaf.child is None and leaf.column not in _PLAIN for leaf in leaves):
        return None
    return _Lens(leaves)
