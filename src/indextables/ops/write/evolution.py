"""How data may differ from a table's schema, and how a schema may grow to take it.

Columns are matched by name. A schema grows by nullable columns at its end, by
widening int to long and float to double, and by dropping NOT NULL; columns are
never renamed, reordered or dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from indextables.errors import SchemaError
from indextables.model.casting import cast_column
from indextables.model.fields import find_field
from indextables.model.names import find_name
from indextables.model.types import refuse_twins, spark_field, type_to_sql

_WIDER = {pa.int32(): pa.int64(), pa.float32(): pa.float64()}


def differences(table: pa.Schema, data: pa.Schema) -> list[str]:
    """What keeps data of one schema out of a table of the other, one line each; empty when nothing does."""
    refuse_twins(data.names)
    lines = []
    for item in data:
        table_field = find_field(table, item.name)
        if table_field is None:
            lines.append(f"+ {item.name} {_shown(item)}: the table has no such column")
            continue
        try:
            cast_column(pa.array([], item.type), table_field.with_nullable(True))
        except SchemaError as bad:
            expected = type_to_sql(table_field.type)
            lines.append(f"~ {item.name}: {expected} in the table, {item.type} in the data ({bad})")
    lines.extend(
        f"- {item.name} {_shown(item)}: NOT NULL in the table, absent from the data"
        for item in table
        if not item.nullable and find_name(data.names, item.name) is None
    )
    return lines


def schema_difference(one: pa.Schema, other: pa.Schema, name_of_one: str, name_of_other: str) -> list[str]:
    """How two schemas differ, one line for each column; columns are matched by name."""
    lines = []
    for item in one:
        match = find_field(other, item.name)
        if match is None:
            lines.append(f"- {item.name} {_shown(item)}: only in {name_of_one}")
        elif _shown(match) != _shown(item):
            both = f"{_shown(item)} in {name_of_one}, {_shown(match)} in {name_of_other}"
            lines.append(f"~ {item.name}: {both}")
    lines.extend(
        f"+ {item.name} {_shown(item)}: only in {name_of_other}"
        for item in other
        if find_field(one, item.name) is None
    )
    if not lines and one.names != other.names:
        lines.append(
            f"the columns of {name_of_one} are {', '.join(one.names)}, those of {name_of_other} "
            f"{', '.join(other.names)}"
        )
    return lines


def check_data(table: pa.Schema, data: pa.Schema, uri: str) -> None:
    """Refuse data that does not fit the table, showing every difference."""
    lines = differences(table, data)
    if lines:
        raise SchemaError(
            f"the data does not fit the table {uri}:\n  " + "\n  ".join(lines) + "\n"
            "Rename or cast the columns, or let the schema grow where it may: with merge_schema=True in "
            "Python, with the option mergeSchema in Spark.",
            differences=tuple(lines),
        )


def evolved(table: pa.Schema, data: pa.Schema, partition_columns: Sequence[str] = ()) -> pa.Schema:
    """The table's schema grown to take the data; SchemaError where it may not grow that way."""
    refuse_twins(data.names)
    columns = [_grown(item, find_field(data, item.name), partition_columns) for item in table]
    new = [spark_field(item).with_nullable(True) for item in data if find_field(table, item.name) is None]
    return pa.schema([*columns, *new])


def _grown(table_field: pa.Field, data_field: pa.Field | None, partition_columns: Sequence[str]) -> pa.Field:
    if data_field is None:
        return table_field.with_nullable(True)
    nullable = table_field.nullable or data_field.nullable
    wider = _WIDER.get(table_field.type)
    if wider is not None and table_field.name not in partition_columns and _needs(data_field.type, wider):
        return table_field.with_type(wider).with_nullable(nullable)
    return table_field.with_nullable(nullable)


def _needs(data_type: pa.DataType, wider: pa.DataType) -> bool:
    if pa.types.is_integer(wider):
        return bool(pa.types.is_int64(data_type) or pa.types.is_uint32(data_type))
    return bool(pa.types.is_float64(data_type))


def _shown(item: pa.Field) -> str:
    return str(item.type) + ("" if item.nullable else " NOT NULL")
