"""Writing rows: append, and overwrite of everything. Splits are built first, then one commit names them.

The schema and the index settings are checked before the first row is read.
Settings a write brings for columns that have none become table properties in
the same commit; settings that contradict the table's are an error. If building
fails, what was published is deleted again; if the commit's fate is unknown the
splits stay, and PURGE decides about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from indextables.errors import ConflictError, OptionError, SchemaError
from indextables.index.settings import FAST, IndexField, IndexSpec, from_options
from indextables.index.tokens import tokenizer_of
from indextables.log.commit.conflicts import fits
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import MetadataAction
from indextables.model.column_mapping import completed, names_of, stored_names_of
from indextables.model.column_names import ColumnNames
from indextables.model.fields import cast_table, check_partition_columns, normalise_schema, schema_to_json
from indextables.model.stats import check_column_options
from indextables.ops.constraints import Check, check_rows, checks_of
from indextables.ops.rewrite.rows import discard, require_writable
from indextables.ops.table_settings import indexing_of, settings_of
from indextables.ops.write.evolution import check_data, evolved
from indextables.options import IndexingOptions, Options
from indextables.split.write.build import BuiltSplit, build_splits


@dataclass(frozen=True, slots=True)
class WritePlan:
    """What a write will do to the table's description, decided before any row is read; picklable."""

    schema: pa.Schema
    partition_columns: tuple[str, ...]
    spec: IndexSpec
    table_id: str
    data_schema: pa.Schema
    merge_schema: bool = False
    new_properties: tuple[tuple[str, str], ...] = ()
    planned_on: MetadataAction | None = None
    """What the table was when this was planned; None where it is about to be created."""
    overwrite_schema: bool = False
    """Whether schema, partitioning and index settings are put in the place of the table's."""
    checks: tuple[Check, ...] = ()
    """The constraints that every written row has to keep."""
    names: ColumnNames | None = None
    """The names under which the columns are stored, where they differ."""

    def metadata_on(self, base: Snapshot) -> MetadataAction | None:
        """The metadata this write needs on top of a version; None when it is there already."""
        if self.overwrite_schema:
            properties = base.metadata.configuration
            unrelated = {
                key: value for key, value in properties.items() if key not in indexing_of(properties)
            }
            return self._named(
                base,
                replace(
                    base.metadata,
                    schema_string=schema_to_json(self.schema),
                    partition_columns=self.partition_columns,
                    configuration={**unrelated, **self.spec.to_properties()},
                ),
            )
        schema = self._grown(base) if self.merge_schema else base.schema
        missing = {key: value for key, value in self.new_properties if key not in base.metadata.configuration}
        if schema.equals(base.schema) and not missing:
            return None
        text = base.metadata.schema_string if schema.equals(base.schema) else schema_to_json(schema)
        return self._named(
            base,
            replace(
                base.metadata,
                schema_string=text,
                configuration={**base.metadata.configuration, **missing},
            ),
        )

    def _named(self, base: Snapshot, metadata: MetadataAction) -> MetadataAction:
        """The metadata, provided its columns have the stored names that the splits were written with."""
        metadata = completed(metadata, base.metadata)
        names, own = stored_names_of(metadata) or {}, {} if self.names is None else self.names.stored_names
        if any(names.get(name, name) != own.get(name, name) for name in self.schema.names):
            raise ConflictError(
                f"{base.store.uri}: another writer added columns, in version {base.version} or before, that "
                "this write adds as well. Nothing was committed; read the table again and repeat the "
                "operation.",
                version=base.version, uri=base.store.uri,
            )  # fmt: skip
        return metadata

    def _grown(self, base: Snapshot) -> pa.Schema:
        """The schema of a version grown by the new columns, provided the splits written for them fit it."""
        schema = evolved(base.schema, self.data_schema, base.partition_columns)
        if not fits(self.schema, schema):
            raise ConflictError(
                f"{base.store.uri}: version {base.version} has columns that another writer added in the "
                "meantime, with other types than the same columns of this write. Nothing was committed; "
                "read the table again and repeat the operation.",
                version=base.version, uri=base.store.uri,
            )  # fmt: skip
        return schema


def plan_write(
    snapshot: Snapshot,
    data_schema: pa.Schema,
    options: Options,
    *,
    merge_schema: bool = False,
    overwrite_schema: bool = False,
    partition_by: Sequence[str] | None = None,
) -> WritePlan:
    """Check data and settings against the table; nothing is read or written.

    `partition_by` is how the writer says the table is partitioned; None where it does not say.
    """
    require_writable(snapshot)
    if overwrite_schema:
        columns = normalise_schema(data_schema)
        check_column_options(options.explicit, columns)
        partitions = check_partition_columns(
            columns, snapshot.partition_columns if partition_by is None else partition_by
        )
        spec = from_options(Options.of(options.explicit), columns)
        checks = checks_of(snapshot.metadata.configuration, columns)
        return WritePlan(
            columns, tuple(partitions), spec, snapshot.split_table_id, columns, overwrite_schema=True,
            checks=checks, names=names_of_new(snapshot, columns),
        )  # fmt: skip
    if partition_by is not None and tuple(partition_by) != snapshot.partition_columns:
        raise SchemaError(
            f"{snapshot.store.uri} is partitioned by {', '.join(snapshot.partition_columns) or 'nothing'}, "
            f"not by {', '.join(partition_by) or 'nothing'}. Do not name partition columns, or overwrite "
            "the schema too.",
            uri=snapshot.store.uri,
        )
    schema = snapshot.schema
    if merge_schema:
        schema = evolved(schema, data_schema, snapshot.partition_columns)
    check_data(schema, data_schema, snapshot.store.uri)
    check_column_options(options.explicit, schema)
    current_spec = settings_of(snapshot)
    spec = settings_for_write(snapshot, schema, options)
    current_properties = current_spec.to_properties()
    new = tuple(
        (key, value) for key, value in spec.to_properties().items() if current_properties.get(key) != value
    )
    return WritePlan(
        schema,
        snapshot.partition_columns,
        spec,
        snapshot.split_table_id,
        data_schema,
        merge_schema,
        new,
        snapshot.metadata,
        checks=checks_of(snapshot.metadata.configuration, schema),
        names=names_of_new(snapshot, schema),
    )


def names_of_new(snapshot: Snapshot, schema: pa.Schema) -> ColumnNames | None:
    """The stored names of the columns that a version has after a commit on top of it."""
    metadata = snapshot.metadata
    if metadata.column_mapping is None or schema.names == snapshot.schema.names:
        return snapshot.names
    return names_of(completed(replace(metadata, schema_string=schema_to_json(schema)), metadata))


def effective(snapshot: Snapshot, options: Options | None) -> Options:
    """The options of one write: its own, with the table's properties in the place of defaults."""
    if options is None:
        return snapshot.settings
    return options.over(snapshot.metadata.configuration, snapshot.store.uri)


def settings_for_write(snapshot: Snapshot, schema: pa.Schema, options: Options) -> IndexSpec:
    """The table's settings with those a write brings for further columns."""
    current = settings_of(snapshot)
    table = current.to_properties()
    explicit = Options.of(indexing_of(options.explicit))
    # Another kind is found first: what the table says of a text's words would not fit it.
    kinds = from_options(IndexingOptions(typemap=explicit.indexing.typemap), schema)
    for item in kinds.fields:
        if current.get(item.column) is not None and current.get(item.column, item.kind) is None:
            raise _contradiction(current, kinds, item.column, snapshot.store.uri)
    # A write may name only some of the fields that a column has.
    typemap = {
        column: ",".join(spec.kinds(column))
        for spec in (kinds, current)
        for column in spec.columns
        if FAST not in spec.kinds(column)
    }
    named = explicit.over(table, snapshot.store.uri).indexing
    requested = from_options(replace(named, typemap=typemap), schema, current=current)
    for item in current.fields:
        requested_field = requested.get(item.column, item.kind)
        if (
            requested_field is not None
            and replace(requested_field, fast=requested_field.fast or item.fast) != item
        ):
            raise _contradiction(current, requested, item.column, snapshot.store.uri)
    new = [item for item in requested.fields if current.get(item.column) is None]
    names = {name: at for at, name in enumerate(schema.names)}
    return IndexSpec(tuple(sorted((*current.fields, *new), key=lambda item: names[item.column])))


def _contradiction(current: IndexSpec, requested: IndexSpec, column: str, uri: str) -> OptionError:
    shown, asked = (
        " and ".join(_shown(item) for item in spec.fields if item.column == column)
        for spec in (current, requested)
    )
    return OptionError(
        f"column {column!r} of {uri} is indexed as {shown}, and this write asks for "
        f"{asked}. Leave the setting out, or change it with update_properties and MERGE SPLITS, "
        "which indexes the existing splits again.",
        column=column,
    )


def _shown(item: IndexField) -> str:
    tokenizer = tokenizer_of(item.tokenizer).shown
    return f"{item.kind} (tokenizer {tokenizer}, {item.record})" + (" fast" if item.fast else "")


def build(
    log: TransactionLog, plan: WritePlan, batches: Iterable[pa.RecordBatch], options: Options
) -> list[BuiltSplit]:
    """Write the rows as splits that no version names yet; after a failure none is left."""
    timestamps = options.write.timestamps
    rows = (
        check_rows(plan.checks, cast_table(batch, plan.schema, timestamps=timestamps), plan.schema)
        for batch in batches
        if batch.num_rows
    )
    built: list[BuiltSplit] = []
    try:
        built.extend(
            build_splits(
                rows,
                plan.schema,
                plan.partition_columns,
                plan.spec,
                options,
                log.store,
                table_id=plan.table_id,
                now_ms=log.runtime.clock.now_ms(),
                names=plan.names,
            )
        )
    except BaseException:
        discard(log.store, [split.add for split in built])
        raise
    return built
