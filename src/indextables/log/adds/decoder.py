"""Decodes add actions from JSON into Arrow columns, building only the fields a query needs.

In comes JSON text: lines of a checkpoint, or adds of commits that have not been decoded
yet. Out comes one Arrow array per leaf. For each set of leaves a msgspec type with just
those fields is made; msgspec skips all other fields.

If an add does not fit that type (a number written as text, a negative count, an object
where text is expected), the whole chunk is read as full actions instead, whose reader
accepts the value or says what is wrong. A `stats` document that does not fit is read by
`of_add`; what that cannot read counts as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any, TypeAlias

import msgspec
import pyarrow as pa

from indextables.log.adds.columns import IN_STATS, IN_VECTOR, WIRE, AddLeaf, adds_columns, to_array
from indextables.log.adds.lines import LINE_END, line_chunk, lines_adds
from indextables.model.actions import FIRST_MS, LARGEST, LAST_MS, AddAction
from indextables.model.lines import source_of
from indextables.model.stats import of_add

_UNNAMEABLE = re.compile(r'["\\\x00-\x1f]')
"""Characters that msgspec does not accept in a field name."""
_COUNT = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
_MOMENT = Annotated[int, msgspec.Meta(ge=FIRST_MS, le=LAST_MS)]
_BOUND = str | Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)] | float | bool | None
"""The type of a minimum or maximum. Numbers and booleans are kept as the text they are written in."""
_PLAIN: dict[str, tuple[Any, Any]] = {
    "path": (str, msgspec.NODEFAULT),
    "size": (_COUNT, 0),
    "modification_time": (_MOMENT, 0),
    "num_records": (_COUNT | None, None),
    "data_change": (bool, True),
    "index_offset": (_COUNT | None, None),
    "index_length": (_COUNT | None, None),
    "tags": (dict[str, str | None] | None, None),
    "dv": (dict[str, Any] | None, None),
}
_CHILDREN: dict[str, Any] = {
    "partition_values": _BOUND, "min": _BOUND, "max": _BOUND, "null_count": _COUNT | None,
}  # fmt: skip
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_TEXTS = {str, type(None)}

Row: TypeAlias = Any
"""An add, or a `stats` document, decoded by a type made for the query."""


def decode_lines(lines: pa.BinaryArray, leaves: tuple[AddLeaf, ...], name: str) -> list[pa.Array]:
    """One array per leaf for lines of a checkpoint; `name` is the file to name in errors."""
    decoder = _decoder(leaves)
    rows = None if decoder is None else decoder.rows(lines)
    if decoder is None or rows is None:
        return adds_columns(list(lines_adds(lines, name)), leaves)
    return decoder.columns(rows)


def decode_adds(adds: Sequence[AddAction], leaves: tuple[AddLeaf, ...]) -> list[pa.Array]:
    """One array per leaf for adds of commits; adds that are still text are decoded straight into columns."""
    if [leaf.column for leaf in leaves] == ["path"]:
        return [pa.array([add.path for add in adds], pa.string())]
    decoder = _decoder(leaves)
    sources = [] if decoder is None else [source_of(add) for add in adds]
    if decoder is None or None in sources:
        return adds_columns(adds, leaves)
    decode = decoder.row.decode
    try:
        rows = [decode(source[0]) for source in sources if source is not None]
    except _UNREADABLE:
        return adds_columns(adds, leaves)
    return decoder.columns(rows)


def _source(leaf: AddLeaf) -> str:
    """The column of the decoded add from which a leaf is read."""
    return "dv" if leaf.column in IN_VECTOR else leaf.column


class _Decoder:
    """A msgspec type with the fields of some leaves, and where in it each leaf is found."""

    def __init__(self, leaves: tuple[AddLeaf, ...]) -> None:
        self._leaves = leaves
        self._names: dict[str, dict[str, str]] = {}
        """The attribute names of a struct column's fields, by column."""
        for leaf in leaves:
            if leaf.child is not None:
                self._name(leaf.column, leaf.child)
            if leaf.only_if_unbounded and leaf.child is not None:
                self._name("min", leaf.child)
                self._name("max", leaf.child)
        self._kinds = {column: _struct(column, names) for column, names in self._names.items()}
        plain = dict.fromkeys(_source(leaf) for leaf in leaves if leaf.child is None)
        self._in_add = [*plain, *(column for column in self._names if column in WIRE)]
        self._in_stats = [column for column in (*plain, *self._names) if column in IN_STATS]
        fields = [self._field(column, WIRE) for column in self._in_add]
        fields.append(("stats", str | None, msgspec.field(default=None)))
        kind = msgspec.defstruct("Add", fields, gc=False, kw_only=True)
        self.row: msgspec.json.Decoder[Row] = msgspec.json.Decoder(kind)
        self._rows: msgspec.json.Decoder[list[Row]] = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
        inner = [self._field(column, IN_STATS) for column in self._in_stats]
        self._document: Any = msgspec.defstruct("Statistics", inner, gc=False, kw_only=True)
        self._documents: msgspec.json.Decoder[Row] = msgspec.json.Decoder(self._document)

    def _name(self, column: str, child: str) -> None:
        names = self._names.setdefault(column, {})
        names.setdefault(child, f"c{len(names)}")

    def _field(self, column: str, wire: dict[str, str]) -> tuple[str, Any, Any]:
        kind, default = _PLAIN[column] if column in _PLAIN else (self._kinds[column] | None, None)
        return column, kind, msgspec.field(name=wire[column], default=default)

    def rows(self, lines: pa.BinaryArray) -> list[Row] | None:
        """The adds of some lines, decoded; None unless every line is one add that fits the type."""
        if not len(lines):
            return []
        try:
            rows = self._rows.decode(b"[" + line_chunk(lines)[: -len(LINE_END)] + b"]")
        except _UNREADABLE:
            return None
        return rows if len(rows) == len(lines) else None

    def columns(self, rows: Sequence[Row]) -> list[pa.Array]:
        """One array per leaf."""
        own = {column: list(map(attrgetter(column), rows)) for column in self._in_add}
        documents = self._read_documents(rows, own)
        for column in self._in_stats if documents else ():
            own[column] = _completed(own.get(column), column, documents)
        nothing = [None] * len(rows)
        return [to_array(leaf, self._values(leaf, own.get(_source(leaf), nothing))) for leaf in self._leaves]

    def _values(self, leaf: AddLeaf, own: list[Any]) -> list[Any]:
        return own if leaf.child is None else self._children(leaf.column, leaf.child, own)

    def _children(self, column: str, child: str, parents: list[Row | None]) -> list[Any]:
        get = attrgetter(self._names[column][child])
        if None in parents:
            values = [None if parent is None else get(parent) for parent in parents]
        else:
            values = list(map(get, parents))
        if column == "null_count" or set(map(type, values)) <= _TEXTS:
            return values
        return [
            value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()
            for value in values
        ]

    def _read_documents(self, rows: Sequence[Row], own: dict[str, list[Any]]) -> list[Row | None]:
        """The `stats` documents of adds that lack a wanted value of their own; empty when no add does."""
        if not self._in_stats:
            return []
        if any(leaf.column == "null_count" and not leaf.only_if_unbounded for leaf in self._leaves):
            return [self._read_document(row.stats) for row in rows]
        lacking: set[int] = set()
        for column in self._in_stats:
            if column in own and None in own[column]:
                lacking.update(at for at, value in enumerate(own[column]) if value is None)
        for leaf in self._leaves:
            if leaf.only_if_unbounded and leaf.child is not None:
                least, most = (self._children(column, leaf.child, own[column]) for column in ("min", "max"))
                if None in least and None in most:
                    pairs = zip(least, most, strict=True)
                    lacking.update(at for at, pair in enumerate(pairs) if pair == (None, None))
        if not lacking:
            return []
        return [self._read_document(row.stats) if at in lacking else None for at, row in enumerate(rows)]

    def _read_document(self, text: str | None) -> Row | None:
        if not text:
            return None
        try:
            return self._documents.decode(text)
        except _UNREADABLE:
            statistics = of_add(AddAction(path="", stats=text))
        fields: dict[str, Any] = {}
        for column in self._in_stats:
            if column == "num_records":
                fields[column] = statistics.num_records
                continue
            values = {
                "min": statistics.min_values,
                "max": statistics.max_values,
                "null_count": statistics.null_count,
            }[column]
            names = self._names[column]
            fields[column] = self._kinds[column](**{names[child]: values.get(child) for child in names})
        return self._document(**fields)


def _completed(own: list[Any] | None, column: str, documents: list[Row | None]) -> list[Any]:
    """The values of a column: the add's own value where it has one, else that of its `stats` document."""
    if own is None:
        return [None if document is None else getattr(document, column) for document in documents]
    if None not in own:
        return own
    return [
        getattr(document, column) if value is None and document is not None else value
        for value, document in zip(own, documents, strict=True)
    ]


def _struct(column: str, names: dict[str, str]) -> Any:
    """The type of a JSON map of which only some keys are wanted.

    A nested column may be written as a map of its own (`{"a": {"b": 1}}` for `a.b`). Those places are part of
    the type too, but accept no value, so that such an add fails here and is read as a full action.
    """
    kind = _CHILDREN[column]
    fields = [(name, kind, msgspec.field(name=child, default=None)) for child, name in names.items()]
    around = {child[:at] for child in names for at, letter in enumerate(child) if letter == "."} - set(names)
    fields += [
        (f"a{at}", None, msgspec.field(name=outer, default=None)) for at, outer in enumerate(sorted(around))
    ]
    return msgspec.defstruct("Children", fields, gc=False)


@lru_cache(maxsize=16)
def _decoder(leaves: tuple[AddLeaf, ...]) -> _Decoder | None:
    """The decoder for some leaves; None when msgspec does not accept one of the column names."""
    if any(leaf.child is not None and _UNNAMEABLE.search(leaf.child) for leaf in leaves):
        return None
    return _Decoder(leaves)
