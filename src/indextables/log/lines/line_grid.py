"""Lines of JSON objects read by their layout: what differs from line to line is cut out of all lines at once.

Adds of one writer have the same fields in the same order, so their lines are the
same text with other values in it. One line is taken apart for its layout; of the
others it is checked, a whole column at a time, that the text between their
values is the layout's. Quotes are what positions are counted by: as many as the
layout has, with its text around each, leaves no room for another field. Lines
with arrays, other escapes than of quotes, or too many layouts are left to a parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.log.checkpoint.add_lines import Bytes, Positions, find_bytes, text_and_offsets
from indextables.log.lines.line_layout import (
    POOL,
    Layout,
    Mask,
    Value,
    reads,
    slices,
    take_apart,
)
from indextables.log.lines.line_marks import Marked, MarkPlan, plan_of

Fields = Mapping[str, list[str] | None]
"""What to cut out: fields of an object, with the wanted children of those that are maps."""

_QUOTE, _BACKSLASH = 34, 92
_LAYOUTS = 16
"""More layouts than this in one chunk are not worth the trouble."""


@dataclass(frozen=True, slots=True)
class _Lines:
    """Some lines of a text: where they begin and end, and their quotes, one row per line."""

    text: Bytes
    begins: Positions
    ends: Positions
    quotes: Positions

    def __len__(self) -> int:
        return len(self.begins)

    def cut(self, layout: Layout, value: Value) -> pa.StringArray:
        """The text of one value of every line."""
        return _cut(layout, value, self)

    def only(self, mask: Mask) -> _Lines:
        if mask.all():
            return self
        return _Lines(self.text, self.begins[mask], self.ends[mask], self.quotes[mask])


class LineGrid:
    """Cuts the values of some fields out of lines; remembers the layouts it has met."""

    def __init__(self, fields: Fields, numbers: frozenset[str], flags: frozenset[str]) -> None:
        self._fields = fields
        self._numbers = numbers
        self._flags = flags
        self._known: dict[int, list[Layout]] = {}
        self._plan: tuple[Layout, MarkPlan] | None = None
        self._planned = False

    def cut(self, lines: pa.BinaryArray) -> dict[str, pa.Array] | None:
        """One array per field, structs of text or numbers for maps; None when a parser has to do it."""
        text, offsets = text_and_offsets(lines)
        text, offsets = text[offsets[0] : offsets[-1]], offsets - offsets[0]
        if not len(lines):
            return None
        return self._cut_by_marks(text, offsets) or self._cut_by_quotes(text, offsets)

    def _cut_by_marks(self, text: Bytes, offsets: Positions) -> dict[str, pa.Array] | None:
        """The columns by the plan for the first line that was seen; None if some line goes against it."""
        if not self._planned:
            layout = take_apart(text[: offsets[1]].tobytes())
            plan = None if layout is None else plan_of(layout, self._fields)
            self._plan = None if layout is None or plan is None else (layout, plan)
            self._planned = True
        if self._plan is None:
            return None
        layout, plan = self._plan
        found = plan.find(text, offsets[:-1], offsets[1:])
        return None if found is None else self._columns(layout, found)

    def _cut_by_quotes(self, text: Bytes, offsets: Positions) -> dict[str, pa.Array] | None:
        quotes = find_bytes(text, _QUOTE)
        firsts = _first_quotes(quotes, offsets)
        counts = np.diff(firsts)
        pieces: list[dict[str, pa.Array]] = []
        order: list[Positions] = []
        kinds = [int(counts[0])] if (counts == counts[0]).all() else np.unique(counts).tolist()
        if len(kinds) > _LAYOUTS:
            return None
        for count in kinds:
            rows = np.flatnonzero(counts == count)
            found = _Lines(text, offsets[rows], offsets[rows + 1], _rows_of(quotes, firsts, rows, count))
            for layout, mask in self._sorted_out(found, count):
                piece = None if layout is None else self._columns(layout, found.only(mask))
                if piece is None:
                    return None
                pieces.append(piece)
                order.append(rows[mask])
        if len(pieces) == 1:
            return pieces[0]
        places = pa.array(np.argsort(np.concatenate(order), kind="stable"))
        return {
            name: pa.concat_arrays([piece[name] for piece in pieces]).take(places) for name in self._fields
        }

    def _sorted_out(self, lines: _Lines, count: int) -> list[tuple[Layout | None, Mask]]:
        """Which lines have which layout, None for those without one."""
        # Threads share what is known; the worst that can happen is that two take the same line apart.
        known = self._known.setdefault(count, [])
        found: list[tuple[Layout | None, Mask]] = []
        left: Mask = np.ones(len(lines), dtype=np.bool_)
        tried = 0
        while left.any():
            if tried == len(known):
                line = lines.text[slice(*(ends[left][0] for ends in (lines.begins, lines.ends)))].tobytes()
                layout = take_apart(line)
                if layout is None or layout.quotes != count or tried == _LAYOUTS:
                    return [(None, left)]
                known.append(layout)
            layout = known[tried]
            tried += 1
            mask = left & _matches(layout, lines)
            if mask.any():
                found.append((layout, mask))
                left &= ~mask
        return found

    def _columns(self, layout: Layout, lines: _Lines | Marked) -> dict[str, pa.Array] | None:
        columns: dict[str, pa.Array] = {}
        for name, children in self._fields.items():
            if children is None:
                array = self._column((name,), name, layout, lines)
            elif (name,) in layout.values:
                array = self._absent_map(name, children, layout, lines)
            else:
                arrays = [self._column((name, child), name, layout, lines) for child in children]
                if any(item is None for item in arrays):
                    return None
                kind = pa.struct([(child, self._type(name)) for child in children])
                array = _map_array(arrays, kind, len(lines), present=name in layout.maps)
            if array is None:
                return None
            columns[name] = array
        return columns

    def _type(self, name: str) -> pa.DataType:
        if name in self._numbers:
            return pa.int64()
        return pa.bool_() if name in self._flags else pa.string()

    def _absent_map(
        self, name: str, children: list[str], layout: Layout, lines: _Lines | Marked
    ) -> pa.Array | None:
        """A map that is null in every line."""
        texts = lines.cut(layout, layout.values[name,])
        if layout.values[name,].is_text or not _all_null(texts):
            return None
        return pa.nulls(len(texts), pa.struct([(child, self._type(name)) for child in children]))

    def _column(
        self, place: tuple[str, ...], name: str, layout: Layout, lines: _Lines | Marked
    ) -> pa.Array | None:
        """The values of one place; None if they are not of the field's type or hold escapes."""
        value, kind = layout.values.get(place), self._type(name)
        if value is None:
            return None if len(place) == 1 and name in layout.maps else pa.nulls(len(lines), kind)
        texts = lines.cut(layout, value)
        if not value.is_text and _all_null(texts):
            return pa.nulls(len(texts), kind)
        if value.is_text != pa.types.is_string(kind):
            return None
        if value.is_text:
            return _plain(texts, has_escapes=isinstance(lines, _Lines))
        try:
            return _literals(texts, kind)
        except pa.ArrowInvalid:
            return None


def _map_array(arrays: list[pa.Array], kind: pa.StructType, rows: int, *, present: bool) -> pa.Array:
    if not present:
        return pa.nulls(rows, kind)
    if not arrays:
        return pa.array([{}] * rows, kind)
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _first_quotes(quotes: Positions, offsets: Positions) -> Positions:
    """Number of the first quote of every line, and of all of them."""
    lines = len(offsets) - 1
    each = len(quotes) // lines
    if each and each * lines == len(quotes):
        grid = quotes.reshape(lines, each)
        if (grid[:, 0] >= offsets[:-1]).all() and (grid[:, -1] < offsets[1:]).all():
            return np.arange(0, len(quotes) + 1, each)
    return np.searchsorted(quotes, offsets)


def _rows_of(quotes: Positions, firsts: Positions, rows: Positions, count: int) -> Positions:
    if len(rows) == len(firsts) - 1:
        return quotes.reshape(len(rows), count)
    found: Positions = quotes[firsts[rows][:, None] + np.arange(count)]
    return found


def _matches(layout: Layout, lines: _Lines) -> Mask:
    """Whether the text around the values of each line is that of the layout."""
    good: Mask = np.ones(len(lines.begins), dtype=np.bool_)
    before: Positions = lines.begins
    follows_text = True
    values = sorted(layout.values.values(), key=lambda value: value.run)
    for run, value in zip(layout.runs, values, strict=True):
        begins = lines.quotes[:, run.first] - run.lead
        if run.first == 0:
            good &= begins == before
        elif not follows_text:
            good &= begins > before
        good &= reads(lines.text, begins, run.text)
        before, follows_text = begins + len(run.text), value.is_text
    begins = lines.ends - len(layout.end)
    good &= (begins >= before) & reads(lines.text, begins, layout.end)
    if len(layout.closing):
        good &= (lines.text[lines.quotes[:, layout.closing] - 1] != _BACKSLASH).all(axis=1)
    if len(layout.escaped):
        inside = lines.quotes[:, layout.escaped]
        good &= (lines.text[inside - 1] == _BACKSLASH).all(axis=1)
        good &= (lines.text[inside - 2] != _BACKSLASH).all(axis=1)
    return good


def _cut(layout: Layout, value: Value, lines: _Lines) -> pa.StringArray:
    """The text of one value of every line."""
    run = layout.runs[value.run]
    begins = lines.quotes[:, run.first] - run.lead + len(run.text)
    if value.run + 1 < len(layout.runs):
        after = layout.runs[value.run + 1]
        ends = lines.quotes[:, after.first] - after.lead
    else:
        ends = lines.ends - len(layout.end)
    return slices(lines.text, begins, ends)


def _plain(texts: pa.StringArray, *, has_escapes: bool) -> pa.StringArray | None:
    """The texts without their escapes; None if there are any, or others than those of quotes."""
    if _holds(texts, _BACKSLASH):
        texts = pc.replace_substring(texts, '\\"', '"')
        if not has_escapes or _holds(texts, _BACKSLASH):
            return None
    elif not has_escapes and _holds(texts, _QUOTE):
        return None
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return texts


def _holds(texts: pa.StringArray, byte: int) -> bool:
    data = texts.buffers()[2]
    return data is not None and bool((np.frombuffer(data, dtype=np.uint8) == byte).any())


def _all_null(texts: pa.StringArray) -> bool:
    return texts[0].as_py() == "null" and bool(pc.all(pc.equal(texts, "null")).as_py())


def _literals(texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    """Numbers, or true and false; null where it says so."""
    if (
        pa.types.is_boolean(kind)
        and not pc.all(pc.is_in(texts, value_set=pa.array(["true", "false", "null"]))).as_py()
    ):
        raise pa.ArrowInvalid("neither true nor false")
    try:
        return pc.cast(texts, kind, memory_pool=POOL)
    except pa.ArrowInvalid:
        return pc.cast(pc.if_else(pc.equal(texts, "null"), _NO_TEXT, texts), kind)


_NO_TEXT = pa.nulls(1, pa.string())[0]
