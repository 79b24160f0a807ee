"""Casts of columns, for whole arrays.

Text is parsed by Arrow where its syntax and Spark's agree, and otherwise once for each
distinct text. A value that cannot be cast is recorded, not raised: whether it matters
depends on the rest of the predicate.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.lazy import pc
from indextables.model.types import type_to_sql
from indextables.predicate.evaluate.ordering import as_double
from indextables.predicate.literals import from_text
from indextables.predicate.zones import to_instant, zone_of


def cast_values(values: Any, kind: pa.DataType, zone: str) -> tuple[Any, Any]:
    """Return the array as another type, and the rows whose value cannot be cast (None: there are none)."""
    is_ = pa.types
    if is_.is_string(values.type):
        return _from_text(values, kind, zone)
    if is_.is_timestamp(values.type) and is_.is_timestamp(kind):
        return (instants_of(values, zone) if kind.tz else local_times_of(values, zone)), None
    if is_.is_float64(kind):
        return as_double(values), None
    raise PredicateError(
        f"a {type_to_sql(values.type)} column cannot be cast to {type_to_sql(kind)} row by row"
    )


def _from_text(values: Any, kind: pa.DataType, zone: str) -> tuple[Any, Any]:
    is_ = pa.types
    if is_.is_binary(kind):
        return values.cast(kind), None
    if is_.is_integer(kind) or is_.is_floating(kind):
        hexadecimal = pc.any(pc.match_substring(values, "x", ignore_case=True)).as_py()
        try:
            if not hexadecimal:
                return pc.cast(values, kind), None
        except pa.ArrowInvalid:
            pass
    distinct = values.dictionary_encode()
    read: list[Any] = []
    for text in distinct.dictionary.to_pylist():
        try:
            read.append(from_text(text, kind, zone))
        except (ValueError, PredicateError):
            read.append(None)
    cast = pa.array(read, kind).take(distinct.indices)
    return cast, pc.and_(pc.is_null(cast), pc.is_valid(values))


def instants_of(values: Any, zone: str) -> Any:
    """Convert local times to instants; a time skipped by a clock change is moved on by the gap."""
    place = zone_of(zone)
    kind = pa.timestamp("us", "UTC")
    if isinstance(place, int):
        return pc.subtract(values.cast(pa.int64()), place).cast(kind)
    named = pc.assume_timezone(values, place.key, ambiguous="earliest", nonexistent="latest")
    skipped = pc.not_equal(pc.local_timestamp(named), values)
    instants = named.cast(kind)
    if pc.any(skipped).as_py():
        moved = [to_instant(local, place) for local in values.filter(skipped).cast(pa.int64()).to_pylist()]
        instants = pc.replace_with_mask(instants, pc.fill_null(skipped, False), pa.array(moved, kind))
    return instants


def local_times_of(values: Any, zone: str) -> Any:
    """Instants to the local times of a zone."""
    place = zone_of(zone)
    if isinstance(place, int):
        return pc.add(values.cast(pa.int64()), place).cast(pa.timestamp("us"))
    return pc.local_timestamp(values.cast(pa.timestamp("us", place.key)))
