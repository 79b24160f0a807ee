"""ALTER TABLE: changes of columns and properties that no file has to be rewritten for.

A column is added, nullable; int becomes long and float double; NOT NULL is dropped, or set where no row
lacks a value; comments, defaults and properties change; columns are moved. A column is renamed or dropped
in the log alone: files keep the name that they were written with, and from then on
`metaData.columnMapping` says which column it stands for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from indextables.errors import SchemaError, TableError
from indextables.index.settings import JSON, TEXT, IndexSpec, from_options, tokenizers_of
from indextables.log.commit.changes import properties as property_changes
from indextables.log.commit.conflicts import CommitPlan, Rule
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import Action, MetadataAction
from indextables.model.column_mapping import completed, own_names
from indextables.model.constraints import constraints_of
from indextables.model.fields import leaf_fields, schema_from_json, schema_to_json
from indextables.model.names import find_name, no_column, unquoted_name
from indextables.model.types import field_to_json, is_variant, spark_field
from indextables.ops.constraints import Check, read_check
from indextables.ops.outcomes import SUCCESS, ConstraintResult
from indextables.ops.table_settings import indexing_of, settings_of
from indextables.ops.write.constraints import LookedInto, require_kept
from indextables.ops.write.definition import property_key
from indextables.options import PREFIX, IndexingOptions, Options, canonical
from indextables.predicate.names import resolve
from indextables.predicate.tree import IsNull

_WIDER = {("integer", "long"), ("float", "double")}
_NULLABILITY = "UpdateColumnNullability"
_CURRENT, _EXISTS = "CURRENT_DEFAULT", "EXISTS_DEFAULT"
FIRST = ""
"""The position before all columns, where a position otherwise names the column before it."""
_LISTS = ("dataSkippingStatsColumns", "stats.suggestedColumns")
_OF_COLUMN = ("stats.truncation.maxLength.", "stats.truncation.strategy.")


@dataclass(frozen=True, slots=True)
class TableChange:
    """One change, named as Spark names it; what it does not say is None."""

    kind: str
    column: tuple[str, ...] = ()
    key: str | None = None
    value: str | None = None
    type: Any = None
    nullable: bool | None = None
    comment: str | None = None
    position: str | None = None
    """The column behind which it is put, or FIRST."""
    name: str | None = None
    """What a column is renamed to."""
    if_exists: bool = False
    defaulted: bool = False


def added_column(name: str, kind: Any, position: str | None, comment: str | None) -> TableChange:
    """A column that is added, of an Arrow type."""
    document = field_to_json(spark_field(pa.field(name, kind)))
    return TableChange(
        "AddColumn", (name,), type=document["type"], nullable=True, comment=comment, position=position
    )


def run_update_properties(log: TransactionLog, properties: Mapping[str, str | None]) -> int:
    """Set properties, or remove those given as None; returns the version that has them.

    A value that no later write or search could use is refused before the commit.
    """
    return log.update_properties(with_versions(log.snapshot(max_staleness_s=0), properties))


def with_versions(base: Snapshot, properties: Mapping[str, str | None]) -> dict[str, str | None]:
    """Changes of properties with the version of every tokenizer that they name, or that a new field has.

    So `indexing.tokenizer.message = default` moves a column to the newest rules, and nothing else does.
    """
    if not indexing_of(properties):
        return dict(properties)
    stored, ours = base.metadata.configuration, indexing_of(properties)
    changes = {property_key(key) if key in ours else key: value for key, value in properties.items()}
    set_values = {key: value for key, value in changes.items() if value is not None}
    indexing = Options.of(indexing_of(set_values)).indexing
    named = tokenizers_of(indexing, base.schema)
    kinds = from_options(IndexingOptions(typemap=indexing.typemap), base.schema)
    wordless = frozenset(kinds.columns) - kinds.of_kind(TEXT, JSON)
    # A setting in another spelling, or of a column that a list of columns names now, holds no longer, and
    # neither does the tokenizer of a column that has another kind of index now.
    tokenizers = {f"{PREFIX}indexing.tokenizer.{column}" for column in (*named, *wordless)}
    replaced: dict[str, str | None] = {
        key: None
        for key in indexing_of(stored)
        if key not in changes and (property_key(key) in changes or key in tokenizers)
    }
    after = {**stored, **replaced, **changes}
    resulting = indexing_of({key: value for key, value in after.items() if value is not None})
    current = IndexSpec(tuple(item for item in settings_of(base).fields if item.column not in named))
    spec = from_options(Options().over(resulting, base.store.uri), base.schema, current=current)
    versions = {key: value for key, value in spec.to_properties().items() if "@" in value}
    return {**replaced, **changes, **versions}


def altered(base: Snapshot, changes: Sequence[TableChange]) -> MetadataAction:
    """The metadata after the changes; raises if one of them is not possible. Pure."""
    described: str | None = base.metadata.description
    properties: dict[str, str | None] = {}
    for change in changes:
        if change.kind not in {"SetProperty", "RemoveProperty"}:
            base = base.with_metadata(completed(_with_column_change(base, change), base.metadata))
        elif change.key == "comment":
            described = change.value
        elif change.key in {"location", "provider", "owner", "external"}:
            raise TableError(
                f"{base.store.uri}: {change.key} is not a property of the table. A table is moved by moving "
                "its directory, and named there again with CREATE TABLE ... LOCATION."
            )
        else:
            properties[property_key(str(change.key))] = change.value
    metadata = replace(base.metadata, description=described)
    for action in property_changes(base, with_versions(base, properties)):
        assert isinstance(action, MetadataAction)
        metadata = replace(metadata, configuration=action.configuration)
    return metadata


def run_alter(log: TransactionLog, changes: Sequence[TableChange]) -> int:
    """Carry the changes out in one commit and return its version."""
    first = log.snapshot(max_staleness_s=0)

    looked_into: set[LookedInto] = set()

    def build(base: Snapshot) -> Sequence[Action]:
        metadata = altered(base, changes)
        for check in _filled(base, changes):
            require_kept(log, base, check, looked_into)
        return [] if metadata == base.metadata else [metadata]

    columns = any(change.column for change in changes)
    plan = CommitPlan(
        "ALTER TABLE",
        Rule.EXCLUSIVE if columns else Rule.APPEND,
        build,
        read_version=first.version if columns else None,
        parameters={"changes": [_shown(change) for change in changes]},
    )
    return log.commit(plan).version


def run_set_not_null(log: TransactionLog, column: str) -> ConstraintResult:
    """Make a column NOT NULL if every row has a value of it; else an error shows a row that has none."""
    change = TableChange(_NULLABILITY, (column,), nullable=False)
    version = run_alter(log, [change])
    return ConstraintResult(log.uri, SUCCESS, version, f"column {column} is NOT NULL in version {version}")


def _filled(base: Snapshot, changes: Sequence[TableChange]) -> list[Check]:
    """That no row lacks a value of the columns which become NOT NULL."""
    names = [
        change.column[0].lower() for change in changes if change.kind == _NULLABILITY and not change.nullable
    ]
    columns = [
        resolve((item.name,), base.schema)
        for item in base.schema
        if item.nullable and item.name.lower() in names
    ]
    return [Check("NOT NULL", f"{column} IS NOT NULL", IsNull(column)) for column in columns]


def _shown(change: TableChange) -> str:
    named = [] if change.name is None else ["TO", change.name]
    return " ".join([change.kind, ".".join(change.column) or str(change.key), *named])


def _with_column_change(base: Snapshot, change: TableChange) -> MetadataAction:
    """The metadata after one change of a column."""
    name = ".".join(change.column)
    if change.kind not in _COLUMN_CHANGES:
        raise SchemaError(
            f"{base.store.uri}: {change.kind} is not possible. CREATE OR REPLACE TABLE ... AS SELECT writes "
            "the table again with other columns."
        )
    if len(change.column) != 1:
        raise SchemaError(
            f"{base.store.uri}: {name} is a field inside a column; only whole columns can be changed"
        )
    fields = json.loads(base.metadata.schema_string)["fields"]
    metadata = base.metadata
    if change.kind == "AddColumn":
        fields.insert(_place(fields, change.position, base), _added(change, base))
    else:
        column = next((item for item in fields if item["name"].lower() == name.lower()), None)
        if column is None and change.if_exists:
            return metadata
        if column is None:
            raise SchemaError(no_column(base.schema.names, name, base.store.uri), column=name)
        if change.kind == "UpdateColumnPosition":
            fields.remove(column)
            fields.insert(_place(fields, change.position, base), column)
        elif change.kind in {"RenameColumn", "DeleteColumn"}:
            metadata = _renamed(base, column["name"], change.name)
            if change.name is None:
                fields.remove(column)
            else:
                column["name"] = change.name
        else:
            _COLUMN_CHANGES[change.kind](column, change, base)
    # Spark's names with dots are one name here: two leaves of one dotted name would share their statistics.
    schema = schema_from_json(json.dumps({"type": "struct", "fields": fields}))
    _refuse_same_leaves(schema, base)
    if schema.equals(base.schema, check_metadata=True):
        return metadata
    return replace(metadata, schema_string=schema_to_json(schema))


def _place(fields: Sequence[Mapping[str, Any]], position: str | None, base: Snapshot) -> int:
    """Where a column goes among others: at the end, first, or after the named one."""
    if position is None:
        return len(fields)
    if position == FIRST:
        return 0
    names = [item["name"] for item in fields]
    before = find_name(names, position)
    if before is None:
        raise SchemaError(no_column(names, position, base.store.uri), column=position)
    return names.index(before) + 1


def _refuse_same_leaves(schema: pa.Schema, base: Snapshot) -> None:
    if any("." in name for name in schema.names) and len(leaf_fields(schema)) < _count_leaves(schema):
        raise SchemaError(
            f"{base.store.uri}: a column and a field inside another would both be called by the same dotted "
            "name; choose a name without dots"
        )


def _count_leaves(columns: Any) -> int:
    return sum(
        _count_leaves(item.type) if pa.types.is_struct(item.type) and not is_variant(item.type) else 1
        for item in columns
    )


def _renamed(base: Snapshot, old: str, new: str | None) -> MetadataAction:
    """The metadata in which a column has another name, or is gone, everywhere but in the schema itself."""
    uri, schema = base.store.uri, base.schema
    verb = "dropped" if new is None else "renamed"
    for name, condition in constraints_of(base.metadata.configuration).items():
        if old in read_check(name, condition, schema).columns:
            raise SchemaError(
                f"{uri}: column {old} cannot be {verb}, since the constraint {name} CHECK ({condition}) is "
                "about it. Drop the constraint first, and add it again if it is still to hold.",
                column=old,
            )
    if new is None and old in base.partition_columns:
        raise SchemaError(
            f"{uri}: column {old} cannot be dropped, since the table is partitioned by it. CREATE OR REPLACE "
            "TABLE ... AS SELECT writes the table again with other partitions.",
            column=old,
        )
    if new is None and len(schema.names) == 1:
        raise SchemaError(f"{uri}: column {old} cannot be dropped, since it is the only one", column=old)
    taken = None if new is None else find_name([name for name in schema.names if name != old], new)
    if taken is not None or new == "":
        reason = f"there is a column {taken}" if taken else "a name is not empty"
        raise SchemaError(f"{uri}: column {old} cannot be renamed to {new!r}, since {reason}", column=old)
    if new == old:
        return base.metadata
    mapping = base.metadata.column_mapping or own_names(schema.names)
    names = {
        (new if name == old else name): stored
        for name, stored in mapping["names"].items()
        if new is not None or name != old
    }
    return replace(
        base.metadata,
        partition_columns=tuple(str(new) if name == old else name for name in base.partition_columns),
        configuration=_with_renamed_settings(base, old, new),
        column_mapping={**mapping, "names": names},
    )


def _with_renamed_settings(base: Snapshot, old: str, new: str | None) -> dict[str, str | None]:
    """The properties in which the settings of a column follow its name, or are gone with it."""
    stored = base.metadata.configuration
    fields = settings_of(base).fields
    spec = IndexSpec(
        tuple(
            item if item.column != old else replace(item, column=str(new))
            for item in fields
            if new is not None or item.column != old
        )
    )
    indexing = indexing_of(stored)
    result: dict[str, str | None] = {key: value for key, value in stored.items() if key not in indexing}
    result.update(indexing if spec.fields == fields else spec.to_properties())
    for key, value in list(result.items()):
        option = canonical(key) or ""
        if option in _LISTS and value is not None:
            listed = [_renamed_leaf(unquoted_name(item), old, new) for item in value.split(",")]
            kept = [item for item in listed if item is not None]
            if kept:
                result[key] = ",".join(kept)
            else:
                del result[key]
        for prefix in _OF_COLUMN:
            if option.lower().startswith(prefix.lower()):
                before = option[len(prefix) :]
                leaf = _renamed_leaf(before, old, new)
                if leaf != before:
                    del result[key]
                    if leaf is not None:
                        result[key[: -len(before)] + leaf] = value
    return result


def without_column(options: Mapping[str, str], column: str) -> dict[str, str]:
    """Options of a handle without what they say of a column: the table's properties have it."""
    left = {}
    for key, value in options.items():
        option, lowered = canonical(key) or "", column.lower()
        if option in _LISTS or option.startswith(("indexing.", *_OF_COLUMN)):
            named = [item for item in value.split(",") if unquoted_name(item).lower() != lowered]
            if not named or key.lower().endswith(f".{lowered}"):
                continue
            left[key] = ",".join(named)
        else:
            left[key] = value
    return left


def _renamed_leaf(leaf: str, old: str, new: str | None) -> str | None:
    """A column, or a field inside one, after a rename; None if it is dropped."""
    lowered = leaf.lower()
    if lowered != old.lower() and not lowered.startswith(f"{old.lower()}."):
        return leaf
    return None if new is None else new + leaf[len(old) :]


def _added(change: TableChange, base: Snapshot) -> dict[str, Any]:
    name = change.column[0]
    reason = None
    if not change.nullable:
        reason = "NOT NULL, and the rows that are there have no value for it"
    elif change.defaulted:
        reason = "with a DEFAULT, which rows that are there would need; add it, then ALTER COLUMN SET DEFAULT"
    if reason is not None:
        raise SchemaError(f"{base.store.uri}: column {name} cannot be added {reason}")
    metadata = {} if change.comment is None else {"comment": change.comment}
    return {"name": name, "type": change.type, "nullable": True, "metadata": metadata}


def _retyped(column: dict[str, Any], change: TableChange, base: Snapshot) -> None:
    if column["type"] == change.type:
        return
    partition = column["name"] in base.partition_columns
    if partition or (column["type"], change.type) not in _WIDER:
        raise SchemaError(
            f"{base.store.uri}: column {column['name']} is {column['type']} and cannot become {change.type}; "
            "int can be widened to bigint and float to double, unless it is a partition column"
        )
    column["type"] = change.type


def _nullable(column: dict[str, Any], change: TableChange, _: Snapshot) -> None:
    column["nullable"] = bool(change.nullable)


def _commented(column: dict[str, Any], change: TableChange, _: Snapshot) -> None:
    column["metadata"] = {**column.get("metadata", {}), "comment": change.comment or ""}


def _defaulted(column: dict[str, Any], change: TableChange, _: Snapshot) -> None:
    """Set or drop a default; rows that were written before it keep what they have."""
    metadata = {key: value for key, value in column.get("metadata", {}).items() if key != _CURRENT}
    if change.value:
        metadata = {_EXISTS: "NULL", **metadata, _CURRENT: change.value}
    column["metadata"] = metadata


_COLUMN_CHANGES: Mapping[str, Any] = {
    **dict.fromkeys(("AddColumn", "RenameColumn", "DeleteColumn", "UpdateColumnPosition")),
    "UpdateColumnType": _retyped,
    _NULLABILITY: _nullable,
    "UpdateColumnComment": _commented,
    "UpdateColumnDefaultValue": _defaulted,
}
