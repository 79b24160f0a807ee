"""ALTER TABLE: changes of columns and properties that no file has to be rewritten for.

A column is added at the end, nullable; int becomes long and float double; NOT
NULL is dropped, or set where no row lacks a value; comments, defaults and
properties change. Splits are read by the names of their columns, so no column
is renamed, moved or dropped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from indextables.errors import SchemaError, TableError
from indextables.index.settings import JSON, TEXT, IndexSpec, from_options, tokenizers_of
from indextables.log.commit.changes import properties as property_changes
from indextables.log.commit.conflicts import CommitPlan, Rule
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import Action, MetadataAction
from indextables.model.fields import schema_from_json, schema_to_json
from indextables.model.names import no_column
from indextables.ops.constraints import Check
from indextables.ops.outcomes import SUCCESS, ConstraintResult
from indextables.ops.table_settings import indexing_of, settings_of
from indextables.ops.write.constraints import require_kept
from indextables.ops.write.definition import property_key
from indextables.options import PREFIX, IndexingOptions, Options
from indextables.predicate.names import resolve
from indextables.predicate.tree import IsNull

_WIDER = {("integer", "long"), ("float", "double")}
_NULLABILITY = "UpdateColumnNullability"
_CURRENT, _EXISTS = "CURRENT_DEFAULT", "EXISTS_DEFAULT"
_REFUSED = {
    "RenameColumn": "renamed",
    "DeleteColumn": "dropped",
    "UpdateColumnPosition": "moved",
}


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
    placed: bool = False
    defaulted: bool = False


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
    document = json.loads(base.metadata.schema_string)
    described: str | None = base.metadata.description
    properties: dict[str, str | None] = {}
    for change in changes:
        if change.kind not in {"SetProperty", "RemoveProperty"}:
            _change_columns(document["fields"], change, base)
        elif change.key == "comment":
            described = change.value
        elif change.key in {"location", "provider", "owner", "external"}:
            raise TableError(
                f"{base.store.uri}: {change.key} is not a property of the table. A table is moved by moving "
                "its directory, and named there again with CREATE TABLE ... LOCATION."
            )
        else:
            properties[property_key(str(change.key))] = change.value
    schema = schema_from_json(json.dumps(document))
    metadata = replace(base.metadata, description=described)
    for action in property_changes(base, with_versions(base, properties)):
        assert isinstance(action, MetadataAction)
        metadata = replace(metadata, configuration=action.configuration)
    if not schema.equals(base.schema, check_metadata=True):
        metadata = replace(metadata, schema_string=schema_to_json(schema))
    return metadata


def run_alter(log: TransactionLog, changes: Sequence[TableChange]) -> int:
    """Carry the changes out in one commit and return its version."""
    first = log.snapshot(max_staleness_s=0)

    looked_into: set[str] = set()

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
    return " ".join([change.kind, ".".join(change.column) or str(change.key)])


def _change_columns(fields: list[dict[str, Any]], change: TableChange, base: Snapshot) -> None:
    name = ".".join(change.column)
    if change.kind in _REFUSED or change.kind not in _COLUMN_CHANGES:
        refused_verb = _REFUSED.get(change.kind)
        what = f"column {name} cannot be {refused_verb}" if refused_verb else f"{change.kind} is not possible"
        raise SchemaError(
            f"{base.store.uri}: {what}: the files of a table are read by the names of its columns. "
            "CREATE OR REPLACE TABLE ... AS SELECT writes the table again with other columns."
        )
    if len(change.column) != 1:
        raise SchemaError(
            f"{base.store.uri}: {name} is a field inside a column; only whole columns can be changed"
        )
    if change.kind == "AddColumn":
        fields.append(_added(change, base))
        return
    column = next((item for item in fields if item["name"].lower() == name.lower()), None)
    if column is None:
        raise SchemaError(no_column(base.schema.names, name, base.store.uri), column=name)
    _COLUMN_CHANGES[change.kind](column, change, base)


def _added(change: TableChange, base: Snapshot) -> dict[str, Any]:
    name = change.column[0]
    reason = None
    if not change.nullable:
        reason = "NOT NULL, and the rows that are there have no value for it"
    elif change.placed:
        reason = "FIRST or AFTER another; it is added at the end"
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
    "AddColumn": None,
    "UpdateColumnType": _retyped,
    _NULLABILITY: _nullable,
    "UpdateColumnComment": _commented,
    "UpdateColumnDefaultValue": _defaulted,
}
