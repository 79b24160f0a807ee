"""Lines found by their braces: the quickest way to a few values.

A line of an add has a dozen braces and a hundred quotes. Where every line has
the braces of one layout, each with the layout's text around it, its objects are
those of the layout. A wanted value then lies between two texts that are looked
for from the brace before them, first at the distances met before. Names occur
once in an object, so a name that is found is the one that was meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from indextables.log.checkpoint.add_lines import Bytes, Positions, find_bytes
from indextables.log.lines.line_layout import Layout, Value, reads, slices

_OPEN, _CLOSE = 123, 125
_DISTANCES = 32
"""With more distances than these between two texts, counting quotes is quicker."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text that every line has, with brace number `mark` at `offset` in it, or none (None)."""

    begin: int
    text: bytes
    mark: int | None
    offset: int
    distances: list[int] = field(default_factory=list)


class Marked:
    """Lines in which the pieces of a plan were found.

    A text with a quote in it is not one value, or has escapes: then the lines are to be read another way.
    """

    def __init__(self, text: Bytes, plan: MarkPlan, begins: list[Positions]) -> None:
        self._text = text
        self._plan = plan
        self._begins = begins

    def __len__(self) -> int:
        return len(self._begins[0])

    def cut(self, layout: Layout, value: Value) -> pa.StringArray:
        """The text of one value of every line."""
        del layout
        at = self._plan.before[value.run]
        begins = self._begins[at] + len(self._plan.pieces[at].text)
        return slices(self._text, begins, self._begins[at + 1])


@dataclass(frozen=True, slots=True)
class MarkPlan:
    """What to look for in a line."""

    marks: int
    pieces: tuple[_Piece, ...]
    before: Mapping[int, int]
    """The piece before a wanted value, by the number of the run before it."""

    def find(self, text: Bytes, begins: Positions, ends: Positions) -> Marked | None:
        """Where the pieces stand; None if some line has not all of them."""
        found = find_bytes(text, _OPEN, _CLOSE)
        if len(found) != self.marks * len(begins):
            return None
        marks = found.reshape(len(begins), self.marks)
        places: list[Positions] = []
        after = begins
        for piece in self.pieces:
            here = self._place(piece, text, marks, after, ends)
            if here is None or (here < after).any():
                return None
            places.append(here)
            after = here + len(piece.text)
        is_whole = (places[0] == begins).all() and (after == ends).all()
        return Marked(text, self, places) if is_whole else None

    def _place(
        self, piece: _Piece, text: Bytes, marks: Positions, after: Positions, ends: Positions
    ) -> Positions | None:
        if piece.mark is None:
            return _look_for(piece, text, after, ends)
        here = marks[:, piece.mark] - piece.offset
        return here if reads(text, here, piece.text).all() else None


def _look_for(piece: _Piece, text: Bytes, after: Positions, ends: Positions) -> Positions | None:
    """Find a piece by its distance from what is before it; a line is searched for each new distance."""
    here: Positions = after + (piece.distances[0] if piece.distances else 0)
    same = reads(text, here, piece.text)
    if same.all():
        return here
    left = np.flatnonzero(~same)
    tried = min(len(piece.distances), 1)
    while len(left):
        if tried == len(piece.distances):
            row = left[0]
            distance = text[after[row] : ends[row]].tobytes().find(piece.text)
            if distance < 0 or tried == _DISTANCES:
                return None
            piece.distances.append(distance)
        guess = after[left] + piece.distances[tried]
        same = reads(text, guess, piece.text)
        here[left[same]] = guess[same]
        left = left[~same]
        tried += 1
    return here


def plan_of(layout: Layout, fields: Mapping[str, list[str] | None]) -> MarkPlan | None:
    """How to find some fields in lines of a layout; None if one of them is missing or has escapes."""
    wanted: list[Value] = []
    for name, children in fields.items():
        if children is not None and name not in layout.maps:
            if (name,) in layout.values:
                return None
            continue
        for place in [(name,)] if children is None else [(name, child) for child in children]:
            if place not in layout.values:
                return None
            wanted.append(layout.values[place])
    begins = _run_begins(layout)
    spans = _exact_spans(layout, begins, wanted)
    if spans is None:
        return None
    line = layout.line
    marks = [at for at, byte in enumerate(line) if byte in {_OPEN, _CLOSE}]
    pieces = []
    for begin, end in spans:
        mark = next((number for number, at in enumerate(marks) if begin <= at < end), None)
        offset = 0 if mark is None else marks[mark] - begin
        pieces.append(_Piece(begin, line[begin:end], mark, offset))
    ends = {piece.begin + len(piece.text): number for number, piece in enumerate(pieces)}
    before = {value.run: ends[begins[value.run] + len(layout.runs[value.run].text)] for value in wanted}
    return MarkPlan(len(marks), tuple(pieces), before)


def _run_begins(layout: Layout) -> list[int]:
    """Where the runs stand in the layout's line, and where its end does."""
    quotes = [at for at, byte in enumerate(layout.line) if byte == 34]  # noqa: PLR2004 - quote
    begins = [quotes[run.first] - run.lead for run in layout.runs]
    return [*begins, len(layout.line) - len(layout.end)]


def _exact_spans(layout: Layout, begins: list[int], wanted: list[Value]) -> list[tuple[int, int]] | None:
    """The parts of the line that have to be in every line: all braces are in one of them."""
    line = layout.line
    ends = [begin + len(run.text) for begin, run in zip(begins, layout.runs, strict=False)] + [len(line)]
    spans: list[tuple[int, int]] = [(begins[-1], ends[-1])]
    for number, run in enumerate(layout.runs):
        if number == 0 or b"{" in run.text or b"}" in run.text:
            spans.append((begins[number], ends[number]))
        value = line[ends[number] : begins[number + 1]]
        if b"{" in value or b"}" in value:
            # Text that looks like an object: its braces must open at its beginning and close at its end.
            opened, closed = value.rfind(b"{"), value.find(b"}")
            if closed < opened:
                return None
            spans.append((begins[number], ends[number] + opened + 1))
            spans.append((ends[number] + (closed if closed >= 0 else len(value)), ends[number + 1]))
    for value_wanted in wanted:
        text = line[ends[value_wanted.run] : begins[value_wanted.run + 1]]
        if any(byte in text for byte in (b"\\", b"{", b"}")):
            return None
        spans += [(begins[at], ends[at]) for at in (value_wanted.run, value_wanted.run + 1)]
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined
