"""The bucket functions of a SELECT without Spark: indextables_histogram, _date_histogram and _range.

DuckDB hands the columns of a call over as Arrow arrays, and `ops.counting.buckets`
cuts them; names of ranges are a CASE that Spark's functions share. As in Spark,
numbers are cut as doubles, and a date or a time without a zone is one of the
zone of the call.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from indextables.lazy import pc
from indextables.ops.counting.buckets import bucket_of
from indextables.predicate.evaluate.casts import instants_of

_NAMED = re.compile(r"\bindextables_(?:date_)?(?:histogram|range)\s*\(", re.IGNORECASE)
_INSTANT = pa.timestamp("us", "UTC")

RANGES = range(1, 33)
RANGE_NAMES = " ".join(
    f"WHEN name{at} IS NOT NULL AND (from{at} IS NULL OR value >= from{at}) "
    f"AND (to{at} IS NULL OR value < to{at}) THEN name{at}"
    for at in RANGES
)
"""The cases of indextables_range: the name of the first range that holds the value."""

# Micros with a flag, since a cast to an instant would take the zone of the machine.
_MOMENT = "epoch_us(moment), typeof(moment) = 'TIMESTAMP WITH TIME ZONE'"
_CALENDAR = f"_indextables_calendar({_MOMENT}, cut, coalesce(shift, ''))"
_NAMES = ", ".join(
    f"name{at}{' := NULL' if at > 1 else ''}, from{at} := NULL, to{at} := NULL" for at in RANGES
)
_MACROS = (
    "indextables_histogram(value, width, shift := 0) AS _indextables_width(value, width, shift)",
    f"indextables_date_histogram(moment, cut, shift := NULL) AS {_CALENDAR}",
    f"indextables_range(value, {_NAMES}) AS CASE WHEN value IS NULL THEN NULL {RANGE_NAMES} END",
)


def names_bucket_function(text: str) -> bool:
    """Whether a statement calls one of the functions, so that they are worth making."""
    return _NAMED.search(text) is not None


def make_functions(connection: Any, zone: str) -> None:
    """Make the functions known to a connection of DuckDB; timestamps are cut at local times of the zone."""
    numbers = ["DOUBLE", "DOUBLE", "DOUBLE"]
    connection.create_function("_indextables_width", _widths, numbers, "DOUBLE", type="arrow")
    moments = ["BIGINT", "BOOLEAN", "VARCHAR", "VARCHAR"]
    calendar = partial(_calendars, zone)
    connection.create_function("_indextables_calendar", calendar, moments, "TIMESTAMPTZ", type="arrow")
    for macro in _MACROS:
        connection.execute(f"CREATE TEMP MACRO {macro}")


def _widths(values: pa.ChunkedArray, widths: pa.ChunkedArray, shifts: pa.ChunkedArray) -> pa.Array:
    numbers = values.combine_chunks()
    return _cut_by(
        lambda width, shift: bucket_of(numbers.type, width, offset=shift).of(numbers),
        widths,
        shifts,
        pa.float64(),
    )


def _calendars(
    zone: str, micros: pa.ChunkedArray, zoned: pa.ChunkedArray, cuts: pa.ChunkedArray, shifts: pa.ChunkedArray
) -> pa.Array:
    moments = micros.combine_chunks().cast(_INSTANT)
    # The type of the argument says whether it has a zone, so all rows of a call agree.
    if len(zoned) and not zoned[0].as_py():
        moments = instants_of(moments.cast(pa.timestamp("us")), zone).cast(_INSTANT)
    return _cut_by(
        lambda cut, shift: bucket_of(_INSTANT, cut, offset=shift or None, zone=zone).of(moments),
        cuts,
        shifts,
        _INSTANT,
    )


def _cut_by(
    cut: Callable[[Any, Any], pa.Array], sizes: pa.ChunkedArray, shifts: pa.ChunkedArray, kind: pa.DataType
) -> pa.Array:
    """Each row cut by its own size and shift: once in all where they are constants, as nearly always."""
    both = pa.table({"size": sizes, "shift": shifts})
    # DuckDB leaves out rows whose value is null, and calls the function even if none is left.
    buckets = pa.nulls(len(sizes), kind)
    for number, one in enumerate(both.group_by(["size", "shift"]).aggregate([]).to_pylist()):
        part = cut(one["size"], one["shift"])
        if number:
            here = pc.and_(pc.equal(sizes, one["size"]), pc.equal(shifts, one["shift"])).combine_chunks()
            part = pc.if_else(here, part, buckets)
        buckets = part
    return buckets
