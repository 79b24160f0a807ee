"""Keeps long minima and maxima out of the log, and derives valid bounds from truncated ones.

A statistic longer than the limit is dropped, or cut to the limit with a marker at its
end. A cut value is no longer the minimum or maximum; what remains true is that the real
one begins with the text before the marker. So its lower bound is that prefix, and its
upper bound is just above every text with that prefix.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from indextables.lazy import later, pa
from indextables.model.actions import AddAction
from indextables.options import Options, StatsOptions
from indextables.records import dataclass

if TYPE_CHECKING:
    from indextables.model import fields
else:
    fields = later("indextables.model.fields")

MARKER = " [TRUNCATED]"
_LAST_BEFORE_SURROGATES, _FIRST_AFTER_SURROGATES = "\ud7ff", "\ue000"
LAST = "\U0010ffff"
"""The greatest character: a prefix with it is above nearly every text that begins with the prefix."""

_log = logging.getLogger(__name__)

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TruncatedColumn:
    """A column whose statistics were too long: its longest minimum and maximum, and what was done."""

    name: str
    min_length: int
    max_length: int
    strategy: str

    def plus(self, other: TruncatedColumn) -> TruncatedColumn:
        """The same column of another file too."""
        lengths = max(self.min_length, other.min_length), max(self.max_length, other.max_length)
        return TruncatedColumn(self.name, *lengths, self.strategy)


@dataclass(frozen=True, slots=True)
class Truncated:
    """The effect of truncation: the columns it changed and the bytes of log it saved."""

    columns: tuple[TruncatedColumn, ...] = ()
    bytes_saved: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The dotted names of the columns, sorted."""
        return tuple(column.name for column in self.columns)

    @classmethod
    def total(cls, parts: Iterable[Truncated]) -> Truncated:
        """The effect on several files; a column counts once."""
        columns: dict[str, TruncatedColumn] = {}
        saved = 0
        for part in parts:
            saved += part.bytes_saved
            for column in part.columns:
                earlier = columns.get(column.name)
                columns[column.name] = column if earlier is None else earlier.plus(column)
        return cls(tuple(columns[name] for name in sorted(columns)), saved)

    def metrics(self) -> dict[str, int]:
        """What the commit and the history say of it; nothing where nothing was truncated."""
        if not self.columns:
            return {}
        return {"numTruncatedColumns": len(self.columns), "statsBytesSaved": self.bytes_saved}

    def report(self) -> None:
        """Log one line for each column and their sum."""
        for column in self.columns:
            _log.info(
                "Truncating statistics for column %r (min length: %d, max length: %d, strategy: %s)",
                column.name, column.min_length, column.max_length, column.strategy,
            )  # fmt: skip
        if self.columns:
            _log.info(
                "Statistics truncated: %d columns, estimated size reduction: %d bytes",
                len(self.columns), self.bytes_saved,
            )  # fmt: skip


NOTHING_TRUNCATED = Truncated()


def warn_of_strategies(settings: StatsOptions) -> None:
    """Log a warning for every truncation strategy in force that does not exist; each is taken for `drop`."""
    if settings.truncation_enabled:
        for strategy in settings.unknown_strategies():
            _log.warning("Unknown truncation strategy %r, using 'drop'", strategy)


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
    warn_of_strategies(settings)
    lower, upper, done = _truncated(min_values, max_values, schema, settings, partition_columns)
    done.report()
    return lower, upper


def _truncated(
    min_values: Values | None,
    max_values: Values | None,
    schema: pa.Schema | None,
    settings: StatsOptions,
    partition_columns: Collection[str],
) -> tuple[dict[str, Any], dict[str, Any], Truncated]:
    lower, upper = dict(min_values or {}), dict(max_values or {})
    long = _long_columns(lower, upper, schema, settings, partition_columns)
    if not long:
        return lower, upper, NOTHING_TRUNCATED
    texts = _texts_among(long, schema)
    cut_to = {name: limit for name in texts if (limit := settings.cut_to(name)) > len(MARKER)}
    short = _shortened(lower, long, cut_to), _shortened(upper, long, cut_to)
    lengths = [
        {name: len(str(value or "")) for name, value in _leaves(half) if name in long}
        for half in (lower, upper)
    ]
    columns = tuple(
        TruncatedColumn(
            name, lengths[0].get(name, 0), lengths[1].get(name, 0),
            "truncate" if name in cut_to else "drop",
        )
        for name in sorted(long)
    )  # fmt: skip
    return *short, Truncated(columns, _size((lower, upper)) - _size(short))


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
    long = {
        name
        for values in (lower, upper)
        for name, value in _leaves(values)
        if isinstance(value, str) and len(value) > settings.limit_of(name)
    }
    if not long:
        return long
    exempt = {name.lower() for name in partition_columns}
    exempt |= {leaf.name.lower() for leaf in _leaf_fields(schema) if _has_natural_limit(leaf.type)}
    return {name for name in long if name.lower() not in exempt}


def _leaf_fields(schema: Any) -> list[pa.Field]:
    if schema is None:
        return []
    return fields.leaf_fields(schema if isinstance(schema, pa.Schema) else fields.normalise_schema(schema))


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
    values: Values, long: Collection[str], cut_to: Mapping[str, int], prefix: str = ""
) -> dict[str, Any]:
    """The values without the long ones, or with those that have a length cut to it."""
    short: dict[str, Any] = {}
    for name, value in values.items():
        path = prefix + name
        if isinstance(value, Mapping):
            short[name] = _shortened(value, long, cut_to, f"{path}.")
        elif path not in long:
            short[name] = value
        elif path in cut_to:
            short[name] = _cut(value, cut_to[path])
    return short


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
        return add, NOTHING_TRUNCATED
    changes: dict[str, Any] = {}
    lower, upper, in_fields = _truncated(add.min_values, add.max_values, schema, settings, partition_columns)
    if in_fields.columns:
        changes["min_values"], changes["max_values"] = lower, upper
    in_text = NOTHING_TRUNCATED
    document = _document(add.stats, settings.shortest_limit())
    if document is not None:
        lower, upper, in_text = _truncated(
            document.get("minValues"), document.get("maxValues"), schema, settings, partition_columns
        )
        if in_text.columns:
            document["minValues"], document["maxValues"] = lower, upper
            changes["stats"] = msgspec.json.encode(document).decode()
    return (replace(add, **changes) if changes else add), Truncated.total((in_fields, in_text))


def keep_statistics(add: AddAction, columns: Collection[str]) -> AddAction:
    """Return the add with the minima and maxima of these columns only; itself if it has no others."""
    names = {name.lower() for name in columns}
    changes: dict[str, Any] = {}
    for field in ("min_values", "max_values"):
        values = getattr(add, field) or {}
        others = {name for name, _ in _leaves(values) if name.lower() not in names}
        if others:
            changes[field] = _shortened(values, others, {})
    document = _document(add.stats, 0)
    halves = [] if document is None else [half for half in ("minValues", "maxValues") if document.get(half)]
    for half in halves:
        assert document is not None
        others = {name for name, _ in _leaves(document[half]) if name.lower() not in names}
        if others:
            document[half] = _shortened(document[half], others, {})
            changes["stats"] = msgspec.json.encode(document).decode()
    return replace(add, **changes) if changes else add


class Bounds(msgspec.Struct, gc=False):
    """The statistics of an add by their names in the log; nothing else of it is decoded."""

    minValues: dict[str, Any] | None = None  # noqa: N815 - wire name
    maxValues: dict[str, Any] | None = None  # noqa: N815 - wire name
    stats: str | None = None


def may_change(bounds: Bounds, settings: StatsOptions, columns: Collection[str] | None) -> bool:
    """Whether `truncate_add`, or `keep_statistics` with these columns, can change an add; a cheap look.

    `columns` are lower-case names; None where every column keeps its statistics.
    """
    limit = settings.shortest_limit() if settings.truncation_enabled else None
    for values in (bounds.minValues, bounds.maxValues):
        if values and limit is not None and _has_longer(values, limit):
            return True
        if values and columns is not None and any(name.lower() not in columns for name, _ in _leaves(values)):
            return True
    text = bounds.stats
    if text is None or (columns is None and (limit is None or len(text) <= limit)):
        return False
    return "minValues" in text or "maxValues" in text


def _has_longer(values: Values, limit: int) -> bool:
    return any(
        len(value) > limit if type(value) is str else isinstance(value, dict) and _has_longer(value, limit)
        for value in values.values()
    )


Pair = tuple[Values | None, Values | None]


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
