"""Lines of a log that are JSON objects, as columns.

DuckDB takes them apart, since it says of each line whether it is JSON at all; Arrow's reader
refuses a block for one bad line, and a column whose values are of several types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.duck.database import connect
from indextables.lazy import pc
from indextables.model.names import quoted_text

_TYPES = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_()}
_IS_OBJECT = "CASE WHEN json_valid(line) THEN json_type(line) = 'OBJECT' END"
_WHOLE = r"'-?\d{1,18}'"


@dataclass(frozen=True, slots=True)
class JsonField:
    """A key of JSON objects, the column for its values, and their type."""

    key: str
    name: str
    kind: str

    @property
    def column(self) -> pa.Field:
        """The column; a time is read from text."""
        return pa.field(self.name, pa.timestamp("us", "UTC") if self.kind == "time" else _TYPES[self.kind])

    def to_wire(self) -> list[str]:
        """The field as JSON."""
        return [self.key, self.name, self.kind]

    @classmethod
    def from_wire(cls, wire: list[str]) -> JsonField:
        """The field that `to_wire` wrote."""
        return cls(*wire)


def kind_of(values: list[Any]) -> str:
    """The type that holds all values of a key, as `json.loads` gives them."""
    types = {type(value) for value in values if value is not None}
    if types == {bool}:
        return "boolean"
    if types == {int} and all(abs(value) < 10**18 for value in values if value is not None):
        return "bigint"
    return "double" if types and types <= {int, float} else "string"


def json_rows(lines: pa.Array, fields: tuple[JsonField, ...]) -> tuple[pa.Array, dict[str, pa.Array]]:
    """Which lines are objects of these keys and types, and the values of their columns.

    Objects and lists in a column of texts are JSON again.
    """
    pointers = ", ".join(quoted_text("/" + item.key.replace("~", "~0").replace("/", "~1")) for item in fields)
    keys = ", ".join(quoted_text(item.key) for item in fields)
    values = ", ".join(f"{_value(at, item)} AS c{at}" for at, item in enumerate(fields))
    fit = " AND ".join(
        f"(v[{at + 1}] IS NULL OR {_value(at, item)} IS NOT NULL)" for at, item in enumerate(fields)
    )
    rows = _of_lines(
        lines,
        f"SELECT coalesce(complete AND {fit}, false) AS fits, {values} FROM ("
        f"SELECT list_has_all([{keys}], json_keys(object)) AS complete, "
        f"json_extract_string(object, [{pointers}]) AS v FROM ("
        f"SELECT CASE WHEN {_IS_OBJECT} THEN line END AS object FROM source))",
    )
    columns = {item.name: rows.column(at + 1).combine_chunks() for at, item in enumerate(fields)}
    if "message" in columns:
        # Docker keeps the end of the line.
        columns["message"] = pc.utf8_rtrim(columns["message"], "\r\n")
    return rows.column(0).combine_chunks(), columns


def are_objects(lines: pa.Array) -> pa.Array:
    """Which lines are JSON objects."""
    rows = _of_lines(lines, f"SELECT coalesce({_IS_OBJECT}, false) FROM source")
    return rows.column(0).combine_chunks()


def _of_lines(lines: pa.Array, query: str) -> pa.Table:
    """What DuckDB answers about lines, in their order."""
    connection = connect()
    try:
        connection.register("source", pa.table({"line": lines}))
        rows: pa.Table = connection.sql(query).to_arrow_table()
    finally:
        connection.close()
    return rows


def _value(at: int, item: JsonField) -> str:
    text = f"v[{at + 1}]"
    if item.kind == "bigint":
        return f"CASE WHEN regexp_full_match({text}, {_WHOLE}) THEN CAST({text} AS BIGINT) END"
    if item.kind in {"double", "boolean"}:
        return f"TRY_CAST({text} AS {item.kind.upper()})"
    return text
