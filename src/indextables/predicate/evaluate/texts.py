"""Finds the texts that contain a text or match LIKE or RLIKE: vectorised, and fast if most do not.

A text that every match must contain is searched in the bytes of all values at once. Only
values that contain it are then given to a regular expression, or none if containing it is
the whole question. UTF-8 makes this exact: the bytes of a character never occur inside
those of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.lazy import pc
from indextables.model.arrays import NEITHER, booleans, integers, truths
from indextables.predicate.coerce import like_pieces
from indextables.predicate.regex import required_texts, translated
from indextables.predicate.tree import Like, Match, RLike

FEW_BYTES = 4096
"""Less text than this is given to the regular expression directly."""
FREQUENT = 16
"""If one byte in this many looks like the needle, a regular expression is faster."""
BLOCK = 1 << 20
"""Number of bytes compared at once, so that the results stay in the processor's cache."""


def text_matches(node: Match | Like | RLike, values: Any) -> Any:
    """For each text whether the node is true of it; null for null."""
    if isinstance(node, Match):
        if node.kind == "startswith":
            return pc.starts_with(values, node.text)
        if node.kind == "endswith":
            return pc.ends_with(values, node.text)
        return contain_text(values, node.text)
    if isinstance(node, RLike):
        return rlike_texts(values, node.pattern)
    return like_texts(values, node.pattern, node.escape)


def contain_text(values: Any, text: str) -> Any:
    """For each text whether it contains another; null for null."""
    return _searched(values, text, None)


def like_texts(values: Any, pattern: str, escape: str) -> Any:
    """For each text whether it matches a pattern of LIKE; null for null."""
    pieces = like_pieces(pattern, escape)
    texts = [piece[1:] for piece in pieces if piece.startswith("=")]
    return _searched(values, max(texts, key=len, default=""), _like_regex(pieces))


def rlike_texts(values: Any, pattern: str) -> Any:
    """For each text whether a regular expression is found in it; null for null."""
    return _searched(values, _needed(required_texts(pattern)), translated(pattern))


def _needed(choices: Sequence[Sequence[str]]) -> str:
    """The longest text that every match contains; empty when there is none, or several alternatives."""
    return max(choices[0], key=len, default="") if len(choices) == 1 else ""


def _like_regex(pieces: Sequence[str]) -> str:
    """A LIKE pattern for RE2; an open end is left open, which RE2 matches faster than `.*`."""
    wildcards = {"%": ".*", "_": "."}
    spelled = [wildcards.get(piece) or _quoted(piece[1:]) for piece in pieces]
    first = next((at for at, piece in enumerate(pieces) if piece != "%"), len(pieces))
    last = next((at for at in range(len(pieces), first, -1) if pieces[at - 1] != "%"), first)
    start = r"\A" if first == 0 else ""
    end = r"\z" if last == len(pieces) else ""
    return rf"(?s){start}{''.join(spelled[first:last])}{end}"


def _quoted(text: str) -> str:
    return "".join(char if char.isalnum() or char > "\x7f" else f"\\x{{{ord(char):x}}}" for char in text)


def _searched(values: Any, needle: str, regex: str | None) -> Any:
    """Texts that contain the needle and, if there is one, match the regular expression."""
    held = _holding(values, needle.encode("utf-8", "surrogatepass")) if needle else None
    if held is None:
        pattern = f"(?s){_quoted(needle)}" if regex is None else regex
        return pc.match_substring_regex(values, pattern)
    if regex is not None:
        rows = np.flatnonzero(held)
        held[rows] = truths(pc.match_substring_regex(values.take(integers(rows)), regex))
    matches = booleans(held)
    return pc.if_else(values.is_valid(), matches, NEITHER) if values.null_count else matches


def _holding(values: Any, needle: bytes) -> np.ndarray | None:
    """Which texts contain some bytes; None where a regular expression is faster."""
    if not isinstance(values, pa.StringArray) or not len(values):
        return None
    ends = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    if ends[-1] - ends[0] < FEW_BYTES:
        return None
    data = np.frombuffer(values.buffers()[2], np.uint8)[ends[0] : ends[-1]]
    starts = _occurrences(data, needle)
    if starts is None:
        return None
    starts += ends[0]
    rows = np.searchsorted(ends, starts, side="right") - 1
    # Values are stored without separators: an occurrence that crosses into the next one does not count.
    inside = starts + len(needle) <= ends[rows + 1]
    matches = np.zeros(len(values), np.bool_)
    matches[rows[inside]] = True
    return matches


def _occurrences(data: np.ndarray, needle: bytes) -> np.ndarray | None:
    """The offsets of the needle; None if its rarest part occurs too often."""
    width = min(2, len(needle))
    at = _rarest(data, needle, width)
    part = np.frombuffer(needle[at : at + width], f"<u{width}")[0]
    offsets: list[np.ndarray] = []
    for start in range(0, len(data), BLOCK):
        block = data[start : start + BLOCK + width - 1]
        alike = 0
        # The bytes as integers of this width, once for every alignment.
        for shift in range(min(width, len(block))):
            whole = (len(block) - shift) // width * width
            numbers = block[shift : shift + whole].view(f"<u{width}")
            candidates = np.flatnonzero(numbers == part) * width + (start + shift - at)
            alike += len(candidates)
            candidates = candidates[(candidates >= 0) & (candidates <= len(data) - len(needle))]
            for offset, byte in enumerate(needle):
                if not at <= offset < at + width and len(candidates):
                    candidates = candidates[data[candidates + offset] == byte]
            offsets.append(candidates)
        if alike * FREQUENT > len(block):
            return None
    return np.concatenate(offsets)


def _rarest(data: np.ndarray, needle: bytes, width: int) -> int:
    """The offset of the needle's rarest part, by the bytes of a sample."""
    sample = np.bincount(data[:: max(1, len(data) // FEW_BYTES)], minlength=256) + 1
    weights = np.log(sample[np.frombuffer(needle, np.uint8)])
    return int(np.argmin(np.convolve(weights, np.ones(width), "valid")))
