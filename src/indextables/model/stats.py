"""Statistics of a file's rows: their number, and for each column minimum, maximum and null count.

Minima and maxima are text in the log and are compared by the schema's type. Columns are
named by their dotted path: the fields of a struct have statistics (`address.city`); for
arrays, maps and binary only nulls are counted. A column with a NaN has no maximum, since
Spark sorts NaN above everything; its minimum is that of the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import msgspec
import pyarrow as pa

from indextables.errors import OptionError
from indextables.lazy import pc
from indextables.model.actions import LARGEST, AddAction
from indextables.model.fields import leaf_fields, struct_leaf
from indextables.model.names import no_column
from indextables.model.truncation import (
    MARKER,
    Truncated,
    is_truncated,
    prefix_of,
    successor,
    truncate_add,
    truncate_statistics,
)
from indextables.model.values import encode_stat, has_order, parse_stat
from indextables.options import Options, StatsOptions, canonical
from indextables.records import dataclass

__all__ = [
    "MARKER",
    "FileStats",
    "StatsCollector",
    "Truncated",
    "check_column_options",
    "collect",
    "indexed_columns",
    "is_truncated",
    "merge",
    "of_add",
    "prefix_of",
    "statistics_fields",
    "successor",
    "truncate_add",
    "truncate_statistics",
]


@dataclass(frozen=True, slots=True)
class FileStats:
    """The statistics of one file, as the log writes them; None and absent names are unknown."""

    num_records: int | None = None
    min_values: Mapping[str, str] = field(default_factory=dict)
    max_values: Mapping[str, str] = field(default_factory=dict)
    null_count: Mapping[str, int] = field(default_factory=dict)

    def stats_json(self) -> str | None:
        """Return the `stats` text of an add: what has no field of its own there, namely the null counts."""
        counted = {name: count for name, count in self.null_count.items() if count is not None}
        return msgspec.json.encode({"nullCount": counted}).decode() if counted else None


def statistics_fields(schema: pa.Schema, partition_columns: Collection[str] = ()) -> list[pa.Field]:
    """Return the columns that can have a minimum and a maximum, by dotted name, in schema order."""
    return [
        item for item in leaf_fields(schema) if has_order(item.type) and item.name not in partition_columns
    ]


def indexed_columns(
    schema: pa.Schema,
    options: Options | StatsOptions | Mapping[str, Any] | None = None,
    partition_columns: Collection[str] = (),
) -> list[pa.Field]:
    """Return the leaves that get statistics: those named by the option, else the first ones."""
    settings = options if isinstance(options, StatsOptions) else Options.of(options).stats
    leaves = [item for item in leaf_fields(schema) if item.name not in partition_columns]
    if settings.columns is not None:
        configured = {_plain_name(name) for name in settings.columns}
        return [item for item in leaves if _is_named(item.name.lower(), configured)]
    return leaves if settings.num_indexed_cols < 0 else leaves[: settings.num_indexed_cols]


def check_column_options(options: Mapping[str, Any], schema: pa.Schema) -> None:
    """Refuse options for the statistics of a single column that name a column which is not there."""
    settings = Options.of({key: value for key, value in options.items() if _is_column_option(key)}).stats
    leaves = [item.name for item in leaf_fields(schema)]
    for key, names in (("maxLength", settings.max_lengths), ("strategy", settings.strategies)):
        for name in names:
            if not any(_is_named(leaf.lower(), {_plain_name(name)}) for leaf in leaves):
                raise OptionError(
                    f"stats.truncation.{key} names a column that is not there: {no_column(leaves, name)}",
                    column=name,
                )


def _is_column_option(key: str) -> bool:
    return (canonical(key) or "").startswith(("stats.truncation.maxLength.", "stats.truncation.strategy."))


def _plain_name(text: str) -> str:
    """A column name from the option, without backticks around it or around its parts."""
    return text.strip().replace("``", "\0").replace("`", "").replace("\0", "`").lower()


def _is_named(name: str, names: set[str]) -> bool:
    """Whether a leaf, or a struct that contains it, is named."""
    steps = name.split(".")
    return any(".".join(steps[:length]) in names for length in range(1, len(steps) + 1))


class StatsCollector:
    """Collects statistics batch by batch while a file is written."""

    def __init__(
        self,
        schema: pa.Schema,
        options: Options | StatsOptions | Mapping[str, Any] | None = None,
        partition_columns: Collection[str] = (),
    ) -> None:
        self._columns = [
            _RunningStatistics(item, path) for item in indexed_columns(schema, options, partition_columns)
            for path in [_path(schema, item.name)]
        ]  # fmt: skip
        self._rows = 0

    def update(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Add the rows of one batch, which has the schema's column names and types."""
        self._rows += batch.num_rows
        for column in self._columns:
            column.update(struct_leaf(batch.column(column.path[0]), column.path[1:]))

    def finish(self) -> FileStats:
        """Return the statistics of all rows added so far; not yet truncated."""
        lower = {column.name: text for column in self._columns if (text := column.minimum()) is not None}
        upper = {column.name: text for column in self._columns if (text := column.maximum()) is not None}
        return FileStats(self._rows, lower, upper, {column.name: column.nulls for column in self._columns})


def _path(schema: pa.Schema, name: str) -> tuple[str, ...]:
    """Return the field names that lead to a leaf; a column whose own name has dots is tried first."""
    if schema.get_field_index(name) >= 0:
        return (name,)
    steps: list[str] = []
    fields: Any = schema
    while name:
        step = max(
            (item.name for item in fields if name == item.name or name.startswith(item.name + ".")), key=len
        )
        steps.append(step)
        fields = next(item for item in fields if item.name == step).type
        name = name[len(step) + 1 :]
    return tuple(steps)


class _RunningStatistics:
    """The running minimum, maximum and null count of one column."""

    def __init__(self, item: pa.Field, path: tuple[str, ...]) -> None:
        self.name, self.kind, self.path = item.name, item.type, path
        self.nulls = 0
        self._least: Any = None
        self._greatest: Any = None
        self._ordered = has_order(item.type)
        self._has_nan = False

    def update(self, values: Any) -> None:
        self.nulls += values.null_count
        if not self._ordered or values.null_count == len(values):
            return
        if pa.types.is_floating(self.kind) and pc.any(pc.is_nan(values)).as_py():
            self._has_nan = True
            values = values.filter(pc.invert(pc.is_nan(values)))
        bounds = pc.min_max(values)
        try:
            self._widen(_internal(bounds["min"]), _internal(bounds["max"]))
        except UnicodeDecodeError:
            self._ordered = False  # bytes that are not UTF-8 have no text to stand in the log

    def _widen(self, least: Any, greatest: Any) -> None:
        if least is None:
            return
        if self._least is None or least < self._least:
            self._least = least
        if self._greatest is None or greatest > self._greatest:
            self._greatest = greatest

    def minimum(self) -> str | None:
        if not self._ordered or self._least is None:
            return None
        # Zero may be written as 0.0 or -0.0, and a reader may order the two: the bounds include both.
        return encode_stat(-0.0 if _is_zero(self._least) else self._least, self.kind)

    def maximum(self) -> str | None:
        if not self._ordered or self._greatest is None or self._has_nan:
            return None
        return encode_stat(0.0 if _is_zero(self._greatest) else self._greatest, self.kind)


def _internal(scalar: pa.Scalar) -> Any:
    """Return a scalar in Spark's internal form: numbers for dates and timestamps, also beyond `datetime`."""
    if pa.types.is_timestamp(scalar.type):
        return scalar.value
    if pa.types.is_date(scalar.type):
        return scalar.value
    return scalar.as_py()


def _is_zero(value: Any) -> bool:
    return isinstance(value, float) and value == 0


def collect(
    batches: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch],
    schema: pa.Schema,
    options: Options | StatsOptions | Mapping[str, Any] | None = None,
    partition_columns: Collection[str] = (),
) -> FileStats:
    """Return the statistics of some rows, not yet truncated."""
    collector = StatsCollector(schema, options, partition_columns)
    for batch in [batches] if isinstance(batches, (pa.Table, pa.RecordBatch)) else batches:
        collector.update(batch)
    return collector.finish()


def merge(parts: Sequence[FileStats], schema: pa.Schema) -> FileStats:
    """Return statistics that hold for the rows of all parts together."""
    if not parts:
        return FileStats(0)
    counts = [part.num_records for part in parts]
    rows = sum(count for count in counts if count is not None) if None not in counts else None
    lower: dict[str, str] = {}
    upper: dict[str, str] = {}
    nulls: dict[str, int] = {}
    for item in leaf_fields(schema):
        name = item.name
        null_counts = [part.null_count[name] for part in parts if part.null_count.get(name) is not None]
        if len(null_counts) == len(parts):
            nulls[name] = sum(null_counts)
        with_values = [part for part in parts if not _is_all_null(part, name)]
        least = _extreme([part.min_values.get(name) for part in with_values], item.type, greatest=False)
        most = _extreme([part.max_values.get(name) for part in with_values], item.type, greatest=True)
        if least is not None:
            lower[name] = least
        if most is not None:
            upper[name] = most
    return FileStats(rows, lower, upper, nulls)


def _is_all_null(part: FileStats, name: str) -> bool:
    return (
        part.num_records is not None
        and part.null_count.get(name) == part.num_records
        and name not in part.min_values
        and name not in part.max_values
    )


def _extreme(texts: list[str | None], kind: pa.DataType, *, greatest: bool) -> str | None:
    """Return the text of the outermost bound; None when any of them is unknown."""
    ranked = []
    for text in texts:
        bound = None if text is None else _bound(text, kind, greatest=greatest)
        if bound is None:
            return None
        ranked.append((bound, text))
    if not ranked:
        return None
    pick = max if greatest else min
    return pick(ranked, key=lambda pair: pair[0])[1]


def _bound(text: str, kind: pa.DataType, *, greatest: bool) -> Any:
    if pa.types.is_string(kind) and is_truncated(text):
        return successor(prefix_of(text)) if greatest else prefix_of(text)
    try:
        value = parse_stat(text, kind)
    except ValueError:
        return None
    return None if isinstance(value, float) and math.isnan(value) else value


def of_add(add: AddAction, *, null_counts: bool = True) -> FileStats:
    """Read the statistics of an add: from its own fields, and from its `stats` where a field is missing.

    Null counts are in `stats` only. If they are not needed, an add with all other fields needs no decoding.
    """
    lacks = add.num_records is None or add.min_values is None or add.max_values is None
    document = _document(add.stats) if null_counts or lacks else {}
    rows = add.num_records if add.num_records is not None else _whole(document.get("numRecords"))
    lower = add.min_values if add.min_values is not None else flatten_values(document.get("minValues"))
    upper = add.max_values if add.max_values is not None else flatten_values(document.get("maxValues"))
    nulls = {
        name: count
        for name, value in _flat(document.get("nullCount"))
        if (count := _whole(value)) is not None
    }
    if add.names is not None:
        lower, upper = add.names.of_values(lower), add.names.of_values(upper)
        nulls = add.names.of_values(nulls)
    return FileStats(
        rows,
        {name: text for name, text in lower.items() if text is not None},
        {name: text for name, text in upper.items() if text is not None},
        nulls,
    )


def _document(text: str | None) -> dict[str, Any]:
    """The `stats` document of an add; one that cannot be read counts as absent."""
    try:
        document = msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, RecursionError):
        document = None
    return document if isinstance(document, dict) else {}


def flatten_values(values: Any) -> dict[str, str]:
    """Return the minima or maxima of a `stats` document by dotted name, as text."""
    return {name: _text(value) for name, value in _flat(values) if value is not None}


def _flat(values: Any, prefix: str = "") -> Iterable[tuple[str, Any]]:
    if isinstance(values, Mapping):
        for name, value in values.items():
            if isinstance(value, Mapping):
                yield from _flat(value, f"{prefix}{name}.")
            else:
                yield prefix + name, value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _whole(value: Any) -> int | None:
    try:
        number = None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
    whole = int(value) if number is not None and number.is_integer() else None
    # No file can have a count beyond 64 bits.
    return whole if whole is not None and abs(whole) <= LARGEST else None
