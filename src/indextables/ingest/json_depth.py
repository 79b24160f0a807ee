"""JSON that is refused before its nesting reaches a recursive parser.

Arrow parses JSON by recursion: 100,000 levels end the process, 3,000 take forever. A
table cannot hold more than `MOST_LEVELS` anyway. The check looks at quotes, brackets
and line ends only, which takes less time than parsing.
"""

from __future__ import annotations

from indextables.errors import OptionError

MOST_LEVELS = 100
"""Parquet readers stop there too."""
_OTHER = bytes(set(range(256)) - set(b'"[]{}\n'))
_NOT_OPENING = bytes(set(range(256)) - set(b"[{\n"))
_ALIKE = bytes.maketrans(b"[]", b"{}")


class NestingCheck:
    """Looks at the blocks of one file, in their order."""

    def __init__(self, path: str) -> None:
        """Begin at the first line."""
        self._path = path
        self._line = 1
        self._depth = 0
        """Brackets that are open at the beginning of that line, and its number."""

    def look_at(self, block: bytes) -> None:
        """Refuse a block with more than `MOST_LEVELS` brackets around some of its text."""
        whole, end, rest = block.rpartition(b"\n")
        self._check(whole + end, rest)

    def _check(self, lines: bytes, begun: bytes) -> None:
        if not self._depth and _is_flat(lines, begun):
            self._line += lines.count(b"\n")
            return
        marks = _brackets(lines)
        left, levels = _peeled(marks.replace(b"\n", b""))
        last, last_levels = _peeled(_brackets(begun))
        depth = self._depth
        if depth + left.count(b"{") + levels + last.count(b"{") + last_levels > MOST_LEVELS:
            self._look_closely(marks + _brackets(begun))
        self._depth = max(0, depth - left.count(b"}")) + left.count(b"{")
        self._line += marks.count(b"\n")

    def _look_closely(self, marks: bytes) -> None:
        depth, line = self._depth, self._line
        for mark in marks:
            if mark == ord("\n"):
                line += 1
            else:
                depth = depth + 1 if mark == ord("{") else max(0, depth - 1)
            if depth > MOST_LEVELS:
                raise OptionError(
                    f"{self._path}, line {line}: JSON nested more than {MOST_LEVELS} levels deep cannot be "
                    "loaded. Flatten it, or store its inner part as text."
                )


def _is_flat(lines: bytes, begun: bytes) -> bool:
    """Whether each line is visibly an object of its own with few brackets, as nearly all are.

    After a line that ends with a bracket, one that begins with another is where a parser stops, unless the
    first was complete.
    """
    text, ends = lines + begun, lines.count(b"\n")
    return (
        text[:1] in {b"", b"{"}
        and text.count(b"\n{") == ends - (not begun)
        and lines.count(b"}\n") == ends
        and b"{" * (MOST_LEVELS + 1) not in text.translate(_ALIKE, _NOT_OPENING)
    )


def _brackets(text: bytes) -> bytes:
    """The brackets outside of strings, all of one kind, and the line ends."""
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Every second piece between quotes is a string. A line with an odd quote is where a parser stops: strings
    # cannot contain a line end.
    return b"".join(plain.translate(_ALIKE, _OTHER).split(b'"')[::2])


def _peeled(brackets: bytes) -> tuple[bytes, int]:
    """The brackets without partner, those that close first, and how deep the others are nested."""
    levels = 0
    while b"{}" in brackets and levels <= MOST_LEVELS:
        brackets = brackets.replace(b"{}", b"")
        levels += 1
    return brackets, levels
