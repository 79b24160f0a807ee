"""Keeps long minima and maxima out of the log, and derives valid bounds from truncated ones.

A statistic longer than the limit is dropped, or cut to the limit with a marker at its
end. A cut value is no longer the minimum or maximum; what remains true is that the real
one begins with the text before the marker. So its lower bound is that prefix, and its
upper bound is just above every text with that prefix.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa

from indextables.model.actions import AddAction
from indextables.model.fields import leaf_fields, normalise_schema
from indextables.options import Options, StatsOptions
from indextables.records import dataclass

MARKER = " [TRUNCATED]"
_LAST_BEFORE_SURROGATES, _FIRST_AFTER_SURROGATES = "\ud7ff", "\ue000"
LAST = "\U0010ffff"
"""The greatest character: a prefix with it is above nearly every text that begins with the prefix."""

_log = logging.getLogger(__name__)

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Truncated:
    """The effect of truncation: the columns it changed and the bytes of log it saved."""

    columns: tuple[str, ...] = ()
    bytes_saved: int = 0


def is_truncated(text: str) -> bool:
    """Whether a statistic ends with the marker; a full value that ends so still gives valid bounds."""
    return text.endswith(MARKER)


def prefix_of(text: str) -> str:
    """Return the text before the marker: the lower bound, and the base of the upper bound.

    A writer that counts UTF-16 units can cut a surrogate pair in two and leave half of it, or a replacement
    character, at the end. Neither is part of the value; it is removed, since a shorter prefix is always
    valid.
    """
    return text.removesuffix(MARKER).rstrip(CUT_MARKS)


REPLACEMENTS = "?\ufffd"
CUT_MARKS = REPLACEMENTS + "".join(map(chr, range(0xD800, 0xE000)))


def successor(prefix: str) -> str | None:
    """Return the least text above every text that begins with `prefix`; None when there is none."""
    stem = prefix.rstrip(LAST)
    if not stem:
        return None
    last = stem[-1]
    following = _FIRST_AFTER_SURROGATES if last == _LAST_BEFORE_SURROGATES else chr(ord(last) + 1)
    return stem[:-1] + following


def truncate_statistics(
    min_values: Values | None,
    max_values: Values | None,
    schema: pa.Schema | None = None,
    options: Options | StatsOptions | Mapping[str, Any] | None = None,
    partition_columns: Collection[str] = (),
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return minima and maxima without values over the limit, by the strategy of the options.

    The column is the unit: when its minimum or its maximum is too long, `drop`
    leaves out both and `truncate` cuts whichever is too long. Only the beginning
    of a text says something about the whole, so values of other types are always
    left out. Partition columns and nulls pass through. Lengths count code points.
    """
    settings = _settings(options)
    lower, upper = dict(min_values or {}), dict(max_values or {})
    long = _long_columns(lower, upper, schema, settings, partition_columns)
    if not long:
        return lower, upper
    lengths = [
        {name: len(str(value or "")) for name, value in _leaves(half) if name in long}
        for half in (lower, upper)
    ]
    for name in sorted(long):
        _log.info(
            "Truncating statistics of column %r (min length: %d, max length: %d, strategy: %s)",
            name, lengths[0].get(name, 0), lengths[1].get(name, 0), settings.strategy,
        )  # fmt: skip
    cut_to = settings.max_length if settings.strategy == "truncate" else 0
    texts = _texts_among(long, schema) if cut_to > len(MARKER) else frozenset()
    return _shortened(lower, long, texts, cut_to), _shortened(upper, long, texts, cut_to)


def _settings(options: Options | StatsOptions | Mapping[str, Any] | None) -> StatsOptions:
    return options if isinstance(options, StatsOptions) else Options.of(options).stats


def _long_columns(
    lower: Values,
    upper: Values,
    schema: pa.Schema | None,
    settings: StatsOptions,
    partition_columns: Collection[str],
) -> set[str]:
    """The dotted names of the columns with a value over the limit."""
    if not settings.truncation_enabled:
        return set()
    limit = settings.max_length
    long = {
        name
        for values in (lower, upper)
        for name, value in _leaves(values)
        if isinstance(value, str) and len(value) > limit
    }
    if not long:
        return long
    exempt = {name.lower() for name in partition_columns}
    exempt |= {leaf.name.lower() for leaf in _leaf_fields(schema) if _has_natural_limit(leaf.type)}
    return {name for name in long if name.lower() not in exempt}


def _leaf_fields(schema: Any) -> list[pa.Field]:
    if schema is None:
        return []
    return leaf_fields(schema if isinstance(schema, pa.Schema) else normalise_schema(schema))


def _has_natural_limit(kind: pa.DataType) -> bool:
    """Whether every value of a type is short as text: fixed-width numbers, dates and times."""
    types = pa.types
    return any(
        is_kind(kind)
        for is_kind in (types.is_integer, types.is_floating, types.is_boolean, types.is_temporal)
    )


def _leaves(values: Values, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values by dotted name; other writers nest the fields of a struct."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _texts_among(names: Collection[str], schema: pa.Schema | None) -> frozenset[str]:
    """The columns of text, where a prefix is a valid bound. Without a schema all count as text."""
    if schema is None:
        return frozenset(names)
    texts = {leaf.name.lower() for leaf in _leaf_fields(schema) if pa.types.is_string(leaf.type)}
    return frozenset(name for name in names if name.lower() in texts)


def _shortened(
    values: Values, long: Collection[str], texts: Collection[str], cut_to: int, prefix: str = ""
) -> dict[str, Any]:
    """The values without the long ones, or with those of text columns cut."""
    kept: dict[str, Any] = {}
    for name, value in values.items():
        path = prefix + name
        if isinstance(value, Mapping):
            kept[name] = _shortened(value, long, texts, cut_to, f"{path}.")
        elif path not in long:
            kept[name] = value
        elif path in texts:
            kept[name] = _cut(value, cut_to)
    return kept


def _cut(value: Any, max_length: int) -> Any:
    if not isinstance(value, str) or len(value) <= max_length:
        return value
    return value[: max_length - len(MARKER)] + MARKER


def truncate_add(
    add: AddAction,
    schema: pa.Schema | None,
    partition_columns: Collection[str],
    options: Options | StatsOptions | Mapping[str, Any] | None,
) -> tuple[AddAction, Truncated]:
    """Return the add with truncated statistics, in its fields and in `stats`; itself if none is long."""
    settings = _settings(options)
    if not settings.truncation_enabled:
        return add, Truncated()
    changes: dict[str, Any] = {}
    done = Truncated()
    before: Pair = (add.min_values, add.max_values)
    after = truncate_statistics(*before, schema, settings, partition_columns)
    if columns := _changed(before, after):
        changes["min_values"], changes["max_values"] = after
        done = Truncated(columns, _size(before) - _size(after))
    document = _document(add.stats, settings.max_length)
    if document is not None:
        before = (document.get("minValues"), document.get("maxValues"))
        after = truncate_statistics(*before, schema, settings, partition_columns)
        if columns := _changed(before, after):
            document["minValues"], document["maxValues"] = after
            changes["stats"] = msgspec.json.encode(document).decode()
            saved = done.bytes_saved + _size(before) - _size(after)
            done = Truncated(tuple(sorted({*done.columns, *columns})), saved)
    return (replace(add, **changes), done) if changes else (add, done)


Pair = tuple[Values | None, Values | None]


def _changed(before: Pair, after: Pair) -> tuple[str, ...]:
    names: set[str] = set()
    for old, new in zip(before, after, strict=True):
        left = dict(_leaves(new or {}))
        names |= {name for name, value in _leaves(old or {}) if left.get(name) != value}
    return tuple(sorted(names))


def _document(text: str | None, max_length: int) -> dict[str, Any] | None:
    """Return the `stats` document if it can hold a long value; None otherwise, and when it is not JSON."""
    if text is None or len(text) <= max_length:
        return None
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    halves = (document.get("minValues"), document.get("maxValues"))
    return document if all(isinstance(half, dict | None) for half in halves) else None


def _size(pair: Pair) -> int:
    return sum(len(msgspec.json.encode(values)) for values in pair if values)
