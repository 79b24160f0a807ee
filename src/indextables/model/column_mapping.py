"""Which stored name each column of a version has: what `metaData.columnMapping` says, and how it goes on.

    {"names": {"message": "msg", "level": "level-7"}, "lastId": 7}

A column that the table had before its first rename or drop is stored under the name that it had then.
One that is added later gets its name and the next number: no stored name is ever given to another column,
so a column that is dropped and added again has none of its old values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from indextables.errors import CorruptLogError
from indextables.model.actions import MetadataAction
from indextables.model.column_names import ColumnNames

_NUMBERED = re.compile(r"-(\d+)$")


def names_of(metadata: MetadataAction) -> ColumnNames | None:
    """The names in a version; None where every column is stored under its own name."""
    names = stored_names_of(metadata)
    if names is None or all(name == stored for name, stored in names.items()):
        return None
    return ColumnNames(tuple(names.items()))


def all_stored_names(metadata: MetadataAction) -> dict[str, str]:
    """The stored name of every column of a version, which is its own in a table that never renamed one."""
    return stored_names_of(metadata) or {name: name for name in column_names(metadata)}


def stored_names_of(metadata: MetadataAction) -> dict[str, str] | None:
    """The stored name of every column of a version; None of a table that never renamed or dropped one."""
    mapping = metadata.column_mapping
    if mapping is None:
        return None
    names = mapping.get("names")
    if (
        not isinstance(names, Mapping)
        or not all(isinstance(stored, str) for stored in names.values())
        or len(set(names.values())) != len(names)
        or set(names) != set(column_names(metadata))
    ):
        raise CorruptLogError(
            "the table's columnMapping does not give every column a stored name of its own: "
            f"{names!r} for the columns {', '.join(column_names(metadata))}"
        )
    return dict(names)


def column_names(metadata: MetadataAction) -> list[str]:
    """The names of the columns in a schema."""
    return [
        str(item["name"]) for item in msgspec.json.decode(metadata.schema_string or "{}").get("fields", ())
    ]


def own_names(columns: Sequence[str]) -> dict[str, Any]:
    """The mapping of a table whose columns are all stored under their own names."""
    numbers = [int(match[1]) for name in columns if (match := _NUMBERED.search(name))]
    return {"names": {name: name for name in columns}, "lastId": max([len(columns), *numbers])}


def mapping_for(columns: Sequence[str], mapping: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping for exactly these columns: those that it has keep their stored name, others get a new one.

    >>> mapping_for(["b", "a"], {"names": {"a": "x", "c": "c"}, "lastId": 3})
    {'names': {'b': 'b-4', 'a': 'x'}, 'lastId': 4}
    """
    last, names = int(mapping["lastId"]), {}
    for name in columns:
        stored = mapping["names"].get(name)
        if stored is None:
            last += 1
            stored = f"{name}-{last}"
        names[name] = stored
    return {"names": names, "lastId": last}


def completed(metadata: MetadataAction, before: MetadataAction) -> MetadataAction:
    """The metadata with a mapping for exactly its columns, if it or the version before it has one."""
    mapping = metadata.column_mapping or before.column_mapping
    if mapping is None:
        return metadata
    ids = [int(each["lastId"]) for each in (mapping, before.column_mapping) if each is not None]
    mapping = {"names": mapping["names"], "lastId": max(ids)}
    return replace(metadata, column_mapping=mapping_for(column_names(metadata), mapping))
