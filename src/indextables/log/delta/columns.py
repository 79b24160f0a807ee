"""The columns of a Delta table: their types, and the names the data files use for them.

Under column mapping a column has a logical name, which users see, and a physical name,
which data files, statistics and partition values use. The dialect and everything below it
use physical names; everything above it uses logical ones. This module holds both and
translates between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pyarrow as pa

from indextables.errors import CorruptLogError, SchemaError
from indextables.model.actions import MetadataAction, ProtocolAction
from indextables.model.fields import schema_from_json

MODE_PROPERTY = "delta.columnMapping.mode"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
FIELD_ID = "delta.columnMapping.id"
_COLLATIONS = "__COLLATIONS"
_TYPE_CHANGES = "delta.typeChanges"
_VARIANT: Mapping[str, Any] = {
    "type": "struct",
    "fields": [
        {"name": "metadata", "type": "binary", "nullable": False, "metadata": {}},
        {"name": "value", "type": "binary", "nullable": False, "metadata": {}},
    ],
}

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaLeaf:
    """One column that can carry statistics: a leaf of the schema reached through structs only."""

    logical: Path
    physical: Path
    type: pa.DataType
    comparable: bool
    was_float: bool = False
    """Whether the column was widened from float to double, in which case some bounds are written as floats.
    """
    no_nan: bool = False
    """Whether the reader takes the column to hold no NaN, so that every written maximum is one."""


@dataclass(frozen=True, slots=True)
class DeltaColumns:
    """The schema of one table version."""

    schema: pa.Schema
    schema_string: str
    mode: str
    partition_columns: tuple[str, ...]
    physical_names: Mapping[str, str]
    leaves: Mapping[Path, SchemaLeaf]

    def physical_partitions(self) -> dict[str, str]:
        """Physical name of each partition column, by logical name."""
        return {name: self.physical_names[name] for name in self.partition_columns}

    def by_physical_names(self) -> DeltaColumns:
        """The same columns, with physical names in place of the logical ones; nested types are unchanged."""
        names = [self.physical_names[name] for name in self.schema.names]
        return DeltaColumns(
            schema=pa.schema([field.with_name(name) for name, field in zip(names, self.schema, strict=True)]),
            schema_string=self.schema_string,
            mode=self.mode,
            partition_columns=tuple(self.physical_partitions().values()),
            physical_names={name: name for name in names},
            leaves={leaf.physical: replace(leaf, logical=leaf.physical) for leaf in self.leaves.values()},
        )

    def select_leaves(self, columns: Iterable[str] | None) -> list[SchemaLeaf]:
        """Leaves of the named top-level columns (or dotted paths), of every column when None."""
        if columns is None:
            return [leaf for leaf in self.leaves.values() if leaf.logical[0] not in self.partition_columns]
        names = set(columns)
        return [
            leaf
            for leaf in self.leaves.values()
            if leaf.logical[0] in names or ".".join(leaf.logical) in names
        ]


def columns_of(protocol: ProtocolAction, metadata: MetadataAction, *, no_nan: bool = False) -> DeltaColumns:
    """Read the columns of a table from its protocol and metadata; `no_nan` is what the option says.

    A table without a schema, which some writers make before its first data,
    has its partition columns only: the file list does not depend on more.
    """
    try:
        fields = (
            msgspec.json.decode(metadata.schema_string)["fields"]
            if metadata.schema_string
            else [
                {"name": name, "type": "string", "nullable": True, "metadata": {PHYSICAL_NAME: name}}
                for name in metadata.partition_columns
            ]
        )
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise CorruptLogError(f"the schema of the table is not a Delta schema: {error}") from error
    # The property decides: writers of reader version 3 are known to leave the feature out of the list.
    mode = metadata.configuration.get(MODE_PROPERTY) or "none"
    if protocol.min_reader_version == 1:
        mode = "none"
    if mode not in {"none", "name", "id"}:
        raise SchemaError(f"column mapping mode {mode!r} is not known (none, name or id)", mode=mode)
    with_type = [field for field in fields if field["type"] != "void"]
    readable = msgspec.json.encode(
        {"type": "struct", "fields": [_opaque(field) for field in with_type]}
    ).decode()
    schema = schema_from_json(readable)
    missing = [name for name in metadata.partition_columns if name not in schema.names]
    if missing:
        raise CorruptLogError(
            f"partition column {missing[0]!r} is not among the columns {', '.join(schema.names)}",
            column=missing[0],
        )
    leaves = {leaf.logical: leaf for leaf in _leaves(with_type, schema, (), (), mode)}
    if no_nan:
        leaves = {path: replace(leaf, no_nan=True) for path, leaf in leaves.items()}
    return DeltaColumns(
        schema=schema,
        schema_string=metadata.schema_string,
        mode=mode,
        partition_columns=tuple(metadata.partition_columns),
        physical_names={str(field["name"]): physical_name(field, mode) for field in with_type},
        leaves=leaves,
    )


def physical_name(field: Mapping[str, Any], mode: str) -> str:
    """Name under which the files carry a field of the schema document."""
    if mode == "none":
        return str(field["name"])
    name = (field.get("metadata") or {}).get(PHYSICAL_NAME)
    if name is None:
        raise CorruptLogError(
            f"column {field['name']!r} has no {PHYSICAL_NAME} although the table maps columns by {mode}",
            column=field["name"],
        )
    return str(name)


def _opaque(field: Mapping[str, Any]) -> dict[str, Any]:
    return {**field, "type": _opaque_type(field["type"])}


def _opaque_type(kind: Any) -> Any:
    """The same type, with variants replaced by the struct of two binary fields that stores them."""
    if kind == "variant":
        return _VARIANT
    if not isinstance(kind, dict):
        return kind
    if kind["type"] == "struct":
        return {**kind, "fields": [_opaque(field) for field in kind["fields"]]}
    if kind["type"] == "array":
        return {**kind, "elementType": _opaque_type(kind["elementType"])}
    if kind["type"] == "map":
        return {
            **kind,
            "keyType": _opaque_type(kind["keyType"]),
            "valueType": _opaque_type(kind["valueType"]),
        }
    return kind


def _leaves(
    fields: Iterable[Mapping[str, Any]], parent: Any, logical: Path, physical: Path, mode: str
) -> Iterator[SchemaLeaf]:
    for field in fields:
        arrow = parent.field(field["name"])
        here = (*logical, str(field["name"]))
        there = (*physical, physical_name(field, mode))
        kind = field["type"]
        if isinstance(kind, dict):
            if kind["type"] == "struct":
                yield from _leaves(kind["fields"], arrow.type, here, there, mode)
            continue
        if kind == "variant":
            continue
        metadata = field.get("metadata") or {}
        collated = _COLLATIONS in metadata or kind.startswith("string collate")
        comparable = not collated and not pa.types.is_binary(arrow.type)
        changes = metadata.get(_TYPE_CHANGES) or ()
        was_float = any(change.get("fromType") == "float" for change in changes)
        yield SchemaLeaf(here, there, arrow.type, comparable, was_float)
