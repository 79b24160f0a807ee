"""Decodes rows scattered thinly over whole row groups with DuckDB, which skips the values in between.

pyarrow decodes every value of a page before the wanted ones can be picked. If nearly
every page has wanted rows, but only few, most of that work is wasted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as is_a

from indextables.duck import database
from indextables.model.arrays import integers

WHOLE_FILE = 1 << 23
"""Up to this many rows of a file, its bitmap has a bit for every row: DuckDB finds it without computing."""


class UndecodedError(Exception):
    """DuckDB did not return the rows; this does not mean that the file is damaged."""


def can_decode(path: str, schema: pa.Schema, columns: Sequence[str]) -> bool:
    """Whether DuckDB reads these columns of a file with this schema exactly as pyarrow does."""
    names = [name.casefold() for name in schema.names]
    distinct = len(set(names)) == len(names) and database.ROW_NUMBER not in names
    return (
        distinct and database.can_name(path) and all(_is_plain(schema.field(name).type) for name in columns)
    )


def _is_plain(kind: pa.DataType) -> bool:
    return bool(
        is_a.is_boolean(kind)
        or is_a.is_signed_integer(kind)
        or is_a.is_float32(kind)
        or is_a.is_float64(kind)
        or is_a.is_string(kind)
        or is_a.is_binary(kind)
        or is_a.is_date32(kind)
        or is_a.is_decimal128(kind)
        or (is_a.is_timestamp(kind) and kind.unit == "us")
    )


def decode_rows(
    path: str, schema: pa.Schema, columns: Sequence[str], rows: np.ndarray, total: int
) -> pa.Table:
    """Some rows (ascending) of a file of `total` rows, with these columns in the types of the schema."""
    bits, place = _bits(rows, total)
    query = (
        f"SELECT {', '.join(map(database.quoted, [*columns, database.ROW_NUMBER]))} "
        f"FROM {database.scan(path)} "
        f"WHERE {database.ROW_NUMBER} BETWEEN {rows[0]} AND {rows[-1]} "
        f"AND get_bit(CAST($1 AS BIT), CAST({place} AS INTEGER)) = 1"
    )
    try:
        decoded = database.run(query, bits)
        numbers = pa.concat_arrays(decoded.column(len(columns)).chunks)
        if not numbers.equals(integers(rows)):
            raise UndecodedError(f"{len(numbers)} rows of {path} were read where {len(rows)} were asked for")
        return decoded.select(columns).cast(pa.schema([schema.field(name) for name in columns]))
    except (database.DuckError, pa.ArrowException) as failed:
        raise UndecodedError(str(failed)) from failed


def _bits(rows: np.ndarray, total: int) -> tuple[bytes, str]:
    """A bitmap with a bit for each wanted row, and the SQL for the bit of a row.

    Every row of the file has a bit, in whatever order DuckDB evaluates the conditions: the one of its
    number, or in a large file the one of its number modulo a power of two that covers first to last row.
    DuckDB counts the bits of a byte from the highest down.
    """
    if total <= WHOLE_FILE:
        size, place = total, database.ROW_NUMBER
    else:
        size = 1 << max(3, int(rows[-1] - rows[0]).bit_length())
        rows, place = rows & (size - 1), f"{database.ROW_NUMBER} & {size - 1}"
    is_set = np.zeros(size, np.bool_)
    is_set[rows] = True
    return np.packbits(is_set, bitorder="big").tobytes(), place
