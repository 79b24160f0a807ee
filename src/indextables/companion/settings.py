"""What a companion is made of: its source, and the columns it indexes.

Its own log knows columns by their names in the source's files, which a rename under column mapping does not
change; a query knows them by the names that the source has now. `Indexed` is the one seen from the other. A
column that has another type now is not answered for by what was indexed before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from indextables.companion.source import FORMATS, ParquetFiles, Source, SourceFile, in_partitions, open_source
from indextables.errors import OptionError, SchemaError, TableError
from indextables.index.settings import TEXT, IndexSpec, from_options, is_text
from indextables.log.history import Moment, moment_of
from indextables.log.snapshot import Snapshot
from indextables.model.fields import schema_from_json, schema_to_json
from indextables.model.names import require_name
from indextables.ops.foreign_rows import SOURCE_PROPERTY, is_companion
from indextables.ops.table_settings import settings_of
from indextables.options import Options
from indextables.runtime import Runtime

FORMAT_PROPERTY = "companion.format"
ID_PROPERTY = "companion.id"
"""The id of the source; for files without a log, one that was made up for them."""
SCHEMA_PROPERTY = "companion.schema"
"""The columns of files without a log, as the last refresh found them."""
WHERE_PROPERTY = "companion.where"
"""The condition on partition columns that files have to meet to be indexed; the others are only read."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """The indexed columns of a companion, on one version of its source."""

    spec: IndexSpec
    """By the names that the source has now; columns that it has no longer are left out."""
    logical_names: Mapping[str, str]
    """The names that the source has now, by those in its files."""
    types: Mapping[str, str]
    """The types of the indexed columns and how they are indexed, by their names in the files."""

    def answers(self, types: Mapping[str, str]) -> bool:
        """Whether an index of columns that were like this is one of what they are now."""
        return all(types.get(name) == kind for name, kind in self.types.items())


@dataclass(frozen=True, slots=True)
class CompanionSettings:
    """What the properties of a companion say."""

    source: str
    format: str
    source_id: str
    spec: IndexSpec
    """The indexed columns, by their names in the files of the source."""
    schema: pa.Schema | None = None
    """The columns of files without a log."""
    where: str | None = None
    """Which partitions are indexed; None for all of them."""

    @classmethod
    def of(cls, own: Snapshot) -> CompanionSettings:
        """Read the properties of a companion; TableError for any other table."""
        if not is_companion(own):
            raise TableError(
                f"{own.store.uri} is a table with rows of its own, not a companion index", uri=own.store.uri
            )
        properties = own.metadata.configuration
        source, kind = properties.get(SOURCE_PROPERTY), properties.get(FORMAT_PROPERTY)
        if not source or kind not in FORMATS:
            raise TableError(
                f"{own.store.uri} says that it is a companion, and not of what: its property "
                f"{SOURCE_PROPERTY if not source else FORMAT_PROPERTY} is missing. Set it, or make the "
                "companion anew.",
                uri=own.store.uri,
            )
        stored = properties.get(SCHEMA_PROPERTY)
        schema = schema_from_json(stored) if stored else None
        where = properties.get(WHERE_PROPERTY)
        return cls(source, kind, properties.get(ID_PROPERTY) or "", settings_of(own), schema, where)

    def properties(self) -> dict[str, str]:
        """The properties that say it."""
        stored = {} if self.schema is None else {SCHEMA_PROPERTY: schema_to_json(self.schema)}
        chosen = {} if self.where is None else {WHERE_PROPERTY: self.where}
        return {
            **chosen,
            SOURCE_PROPERTY: self.source,
            FORMAT_PROPERTY: self.format,
            ID_PROPERTY: self.source_id,
            **stored,
            **self.spec.to_properties(),
        }

    def open(self, own: Snapshot, version: int | None = None, as_of: Moment | None = None) -> Source:
        """The source, at its newest version, at a version, or as it was at a moment."""
        options = own.opened_with()
        moment = None if as_of is None else moment_of(as_of, lambda: options.zone_or(lambda: own.time_zone))
        return self.opened(options, own.runtime, version, moment)

    def opened(
        self, options: Options, runtime: Runtime, version: int | None = None, as_of_ms: int | None = None
    ) -> Source:
        """The same with the options of a call."""
        return open_source(
            self.source,
            self.format,
            options=options,
            runtime=runtime,
            version=version,
            as_of_ms=as_of_ms,
            source_id=self.source_id,
            schema=self.schema,
        )

    def files_of(self, source: Source) -> Sequence[SourceFile]:
        """The live files of the source that are to be indexed."""
        return source.files if self.where is None else in_partitions(source, self.where)

    def on(self, source: Source) -> Indexed:
        """The indexed columns as a version of the source has them."""
        columns = source.columns
        logical = {physical: name for name, physical in columns.physical_names.items()}
        names = {name: logical[name] for name in self.spec.columns if name in logical}
        fields = [
            replace(item, column=names[item.column]) for item in self.spec.fields if item.column in names
        ]
        types = {
            name: f"{columns.schema.field(names[name]).type}: {_described(self.spec, name)}" for name in names
        }
        return Indexed(IndexSpec(tuple(fields)), names, types)


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """The columns that a caller wants indexed, by the names that the source has now."""

    kinds: Mapping[str, str]
    """How columns are indexed; those that are chosen otherwise and not here are indexed as text."""
    include: tuple[str, ...] | None = None
    """These and no others."""
    exclude: tuple[str, ...] | None = None
    """Every column of text but these."""

    @classmethod
    def of(
        cls, columns: Mapping[str, str] | Sequence[str] | None, exclude: Sequence[str] | None = None
    ) -> ColumnChoice | None:
        """The choice by Python's arguments, `{"message": "text"}` or names; None if there are none."""
        if columns is None and exclude is None:
            return None
        excluded = None if exclude is None else _names(exclude)
        if columns is None or isinstance(columns, Mapping):
            return cls(columns or {}, None, excluded)
        return cls({}, _names(columns), excluded)

    def kinds_in(self, source: Source, among: Sequence[str] | None = None) -> Mapping[str, str]:
        """The chosen columns of a source and how each is indexed.

        `among` are the columns of a companion that is there: columns of text that the source has since then
        need not be excluded, and are not indexed.
        """
        if self.include is None and self.exclude is None:
            return self.kinds
        columns = source.columns
        names = columns.schema.names
        kinds = {require_name(names, name): kind for name, kind in self.kinds.items()}
        excluded = {require_name(names, name) for name in self.exclude or ()}
        if self.include is not None:
            chosen = [require_name(names, name) for name in self.include]
        else:
            texts = [item.name for item in columns.schema if is_text(item.type)]
            chosen = [*kinds, *(name for name in texts if name not in columns.partition_columns)]
            if among is not None:
                chosen = [name for name in chosen if name in among]
        left_out = sorted(kinds.keys() - {*chosen} | kinds.keys() & excluded)
        if left_out:
            raise OptionError(
                f"{', '.join(left_out)}: how to index it is said, and it is not among the columns to index",
                column=left_out[0],
            )
        return {name: kinds.get(name, TEXT) for name in chosen if name not in excluded}


def _names(columns: Sequence[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)


def settings_for(
    source: Source,
    choice: ColumnChoice | None,
    options: Options,
    *,
    where: str | None = None,
    among: Sequence[str] | None = None,
) -> CompanionSettings:
    """The settings of a companion that indexes some columns, of all partitions or some; see `kinds_in`."""
    kinds: Mapping[str, Any] = {} if choice is None else choice.kinds_in(source, among)
    if where is not None:
        in_partitions(source, where)
    indexing = replace(options.indexing, typemap={**options.indexing.typemap, **kinds})
    spec = from_options(replace(Options(), indexing=indexing), source.columns.schema)
    if not spec.fields:
        raise OptionError(
            'a companion indexes at least one column; name it, for example columns={"message": "text"}'
        )
    for item in spec.fields:
        if item.column in source.columns.partition_columns:
            raise SchemaError(
                f"{item.column!r} is a partition column: filters on it choose files by the log of the "
                "source, and it needs no index",
                column=item.column,
            )
    schema = source.columns.schema if isinstance(source, ParquetFiles) else None
    return CompanionSettings(source.uri, source.format, source.id, physical_spec(spec, source), schema, where)


def _described(spec: IndexSpec, column: str) -> str:
    """How a column is indexed, as one text."""
    fields = [item for item in spec.fields if item.column == column]
    return " ".join(f"{item.kind}/{item.tokenizer}/{item.record}/{item.fast}" for item in fields)


def physical_spec(spec: IndexSpec, source: Source) -> IndexSpec:
    """Settings by the names that the files of the source use."""
    names = source.columns.physical_names
    return IndexSpec(tuple(replace(item, column=names[item.column]) for item in spec.fields))


def own_schema(spec: IndexSpec, source: Source) -> pa.Schema:
    """The columns that the log of a companion has: the indexed ones, by their names in the files."""
    names = source.columns.physical_names
    indexed = [field for field in source.columns.schema if names[field.name] in spec.columns]
    return pa.schema([pa.field(names[field.name], field.type, nullable=True) for field in indexed])
