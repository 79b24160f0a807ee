"""The definition of a table: columns, partitions, index settings, properties and a comment.

`CREATE TABLE` writes one as version 0, `REPLACE TABLE` puts one in the place of
another in a single commit, rows included. Settings may be spelled with or
without their prefix; a property with another name is stored unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from indextables.errors import SchemaError
from indextables.index.settings import IndexSpec, from_options
from indextables.log.commit.changes import refuse_constraints, removals
from indextables.log.commit.conflicts import CommitPlan, Rule
from indextables.log.commit.redaction import refuse_secrets
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import Action
from indextables.model.constraints import PROPERTY
from indextables.model.fields import check_partition_columns, normalise_schema, schema_to_json
from indextables.model.stats import check_column_options
from indextables.model.truncation import Truncated
from indextables.ops.constraints import named_check
from indextables.ops.table_settings import indexing_of, properties_of_new_table
from indextables.ops.write.evolution import schema_difference
from indextables.ops.write.rows import WritePlan, names_of_new, settings_for_write
from indextables.options import PREFIX, Options, canonical, check_properties
from indextables.split.write.build import BuiltSplit


def property_key(key: str) -> str:
    """A property's name in the log: an option with the prefix, any other name unchanged."""
    option = canonical(key)
    return key if option is None else f"{PREFIX}{option}"


@dataclass(frozen=True, slots=True)
class Definition:
    """What a table is, apart from its rows."""

    schema: pa.Schema
    partition_columns: tuple[str, ...]
    spec: IndexSpec
    properties: Mapping[str, str] = field(default_factory=dict)
    """All that the log keeps as properties, the index settings included."""
    comment: str | None = None
    requested: Mapping[str, str] = field(default_factory=dict)
    """The index settings as they were given, perhaps without the versions of tokenizers."""

    @classmethod
    def of(
        cls,
        schema: Any,
        partition_by: Sequence[str] = (),
        *,
        properties: Mapping[str, str] | None = None,
        options: Options | None = None,
        comment: str | None = None,
        checks: Mapping[str, str] | None = None,
    ) -> Definition:
        """A definition whose index settings come from properties, or from the options of the first write.

        `checks` are the conditions of CHECK constraints by name.
        """
        columns = normalise_schema(schema)
        if not columns.names:
            raise SchemaError("a table needs at least one column; name its columns, or select some")
        stored = {property_key(key): value for key, value in (properties or {}).items()}
        refuse_secrets(stored)
        refuse_constraints(stored, "the new table")
        check_properties(stored)
        check_column_options({**stored, **({} if options is None else options.explicit)}, columns)
        explicit = indexing_of({} if options is None else options.explicit)
        requested = {**indexing_of(stored), **explicit}
        spec = from_options(Options.of(requested), columns)
        plain = {key: value for key, value in stored.items() if key not in indexing_of(stored)}
        partitions = tuple(check_partition_columns(columns, partition_by))
        complete = {**plain, **spec.to_properties()}
        for key, value in properties_of_new_table(options or Options()).items():
            complete.setdefault(key, value)
        for name, condition in (checks or {}).items():
            check = named_check(name, condition, columns)
            complete[f"{PROPERTY}{check.name}"] = check.condition
        return cls(columns, partitions, spec, complete, comment, requested)

    def create(self, log: TransactionLog, *, table_id: str | None = None) -> Snapshot:
        """Write version 0; a table that is there has to be as defined."""
        try:
            log.initialize(
                self.schema,
                self.partition_columns,
                properties=self.properties,
                table_id=table_id,
                description=self.comment,
            )
        except SchemaError as other:
            lines = schema_difference(log.snapshot().schema, self.schema, "the table", "the given schema")
            if not lines:
                raise
            raise SchemaError(
                f"{log.uri} is a table with another schema:\n  " + "\n  ".join(lines) + "\n"
                "Open it as it is, or choose another path.",
                differences=tuple(lines), uri=log.uri,
            ) from other  # fmt: skip
        created = log.snapshot(max_staleness_s=0)
        settings_for_write(created, created.schema, Options.of(self.requested))
        return created

    def first_plan(self, table_id: str, replaced: Snapshot | None = None) -> WritePlan:
        """The plan of rows for a table that is about to be made, perhaps in the place of another."""
        names = None if replaced is None else names_of_new(replaced, self.schema)
        return WritePlan(self.schema, self.partition_columns, self.spec, table_id, self.schema, names=names)

    def replacing(self, base: Snapshot, built: Sequence[BuiltSplit], operation: str) -> CommitPlan:
        """The commit that makes a table this one; any foreign change since `base` is an error."""
        adds = [split.add for split in built]

        def actions(newest: Snapshot) -> Sequence[Action]:
            metadata = replace(
                newest.metadata,
                description=self.comment,
                schema_string=schema_to_json(self.schema),
                partition_columns=self.partition_columns,
                configuration=dict(self.properties),
            )
            return [metadata, *removals(newest, newest.adds()), *adds]

        return CommitPlan(
            operation,
            Rule.EXCLUSIVE,
            actions,
            read_version=base.version,
            written_for=base.metadata,
            metrics={"numOutputRows": sum(add.num_records or 0 for add in adds)},
            truncated=Truncated.total(split.truncated for split in built),
        )
