"""The rows of one data file of a Delta table, as the table has them.

A file knows columns by their physical names or ids, may lack some, may hold
narrower types than the table has now, and may hold rows that a deletion vector
hides. What comes out has the table's names and types, partition columns take
the log's value, and hidden rows are gone. Row groups whose statistics exclude
a filter are not read, and of the others only the wanted columns are.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from indextables.errors import (
    CorruptLogError,
    DamagedSplitError,
    MissingSplitError,
    NotFoundError,
    StorageError,
    TableError,
)
from indextables.lazy import pq
from indextables.log.delta.columns import DeltaColumns
from indextables.model.arrays import integers
from indextables.ops.delta.conform import conform, find
from indextables.ops.delta.row_groups import groups_to_read
from indextables.predicate.evaluate.rows import mask
from indextables.predicate.tree import Node, columns_of
from indextables.storage.deletion_vectors import DeletionVector, deleted_rows
from indextables.storage.ranged_file import RangedFile
from indextables.storage.store import Store, resolve

if TYPE_CHECKING:
    from types import TracebackType

logger = logging.getLogger(__name__)

BATCH_ROWS = 65_536
NAMES = ("path", "size", "num_records", "partition_values", "deletion_vector")
"""The columns of `files()` from which a `DataFile` is made."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One live file, as described by the log."""

    path: str
    size: int
    partition_values: Mapping[str, Any] | None
    """Typed, by logical name; None if a value in the log is not of its column's type."""
    vector: DeletionVector | None = None
    num_records: int | None = None


def data_files(files: pa.Table) -> Iterator[DataFile]:
    """The files of a plan, one at a time."""
    for batch in files.select(NAMES).to_batches(1024):
        for row in batch.to_pylist():
            vector = row["deletion_vector"]
            yield DataFile(
                row["path"], row["size"] or 0, row["partition_values"],
                None if vector is None else DeletionVector(**vector), row["num_records"],
            )  # fmt: skip


@dataclass(slots=True)
class StoredFile:
    """A Parquet file in a store: mapped into memory where it is local, read by ranges where it is not.

    Used as a context manager; leaving the block closes the file.
    """

    store: Store
    path: str
    size: int
    """As the log says; 0 where it does not."""
    _source: Any = None

    @classmethod
    def of(cls, root: Store, path: str, size: int) -> Self:
        """The file that a log names: relative to the table, or an absolute address."""
        owner, inside = resolve(root, path)
        return cls(owner, inside, size)

    @property
    def name(self) -> str:
        """The file's address, for messages."""
        return f"{self.store.uri}/{self.path}"

    def parquet(self) -> Any:
        """The file for pyarrow."""
        local = self.store.local_path(self.path)
        if local is not None:
            self._source = pa.memory_map(local)
            return pq.ParquetFile(self._source, coerce_int96_timestamp_unit="us")
        size = self.size or self.store.head(self.path).size
        try:
            return self._ranged(size)
        except (pa.ArrowInvalid, StorageError):
            # The log may be wrong about the size; the store is not.
            stored_size = self.store.head(self.path).size
            if stored_size == size:
                raise
            return self._ranged(stored_size)

    def _ranged(self, size: int) -> Any:
        self._source = pa.PythonFile(RangedFile(partial(self.store.get_range, self.path), size), mode="r")
        return pq.ParquetFile(self._source, coerce_int96_timestamp_unit="us", pre_buffer=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._source is not None:
            self._source.close()


@dataclass(frozen=True)
class RowReader:
    """How the files of one version are read; made once, and picklable for executors."""

    columns: DeltaColumns
    output_columns: tuple[str, ...]
    """Columns to return, in order."""
    where: Node | None = None
    """Only rows for which it is true are returned; row groups it excludes are not read."""
    zone: str = "UTC"
    threads: bool = False
    """Whether one file may be decoded by several threads."""

    @cached_property
    def schema(self) -> pa.Schema:
        """What is returned."""
        return pa.schema(
            [self.columns.schema.field(name).with_nullable(True) for name in self.output_columns]
        )

    @cached_property
    def _fields(self) -> dict[str, Mapping[str, Any]]:
        """Fields of the schema document to read, by name: the wanted ones and those of the filter."""
        names = set(self.output_columns)
        if self.where is not None:
            names |= {column.path[0] for column in columns_of(self.where)}
        document = json.loads(self.columns.schema_string)["fields"]
        return {field["name"]: field for field in document if field["name"] in names}

    def rows(self, store: Store, file: DataFile) -> Iterator[pa.Table]:
        """The rows of a file in batches, without deleted rows and those that do not match."""
        self._require_partitions(file)
        for batch, live in self._batches(store, file):
            table = _with_length(self._table(batch, file), batch.num_rows)
            if live is not None:
                table = table.filter(live)
            if self.where is not None:
                table = table.filter(mask(self.where, table, self.columns.schema, self.zone))
            if table.num_rows:
                yield _selected(table, self.schema)

    def picked(
        self, store: Store, file: DataFile, rows_by_group: Mapping[int, np.ndarray | None]
    ) -> Iterator[pa.Table]:
        """Some rows of some row groups, in order, by their ascending numbers in the group; None for all.

        Neither a deletion vector nor a filter leaves any out.
        """
        self._require_partitions(file)
        with StoredFile.of(store, file.path, file.size) as stored, file_errors(stored.name):
            opened = stored.parquet()
            stored_columns = self.stored_columns(opened.schema_arrow)
            for group, rows in rows_by_group.items():
                if stored_columns:
                    stored_rows = opened.read_row_group(group, stored_columns, use_threads=self.threads)
                else:
                    stored_rows = pa.table({"": pa.nulls(opened.metadata.row_group(group).num_rows)})
                start = 0
                for batch in stored_rows.to_batches():
                    end = start + batch.num_rows
                    picked = (
                        None
                        if rows is None
                        else rows[np.searchsorted(rows, start) : np.searchsorted(rows, end)]
                    )
                    if picked is None or len(picked):
                        # In the types of the table: a file may hold some that Arrow takes no rows from.
                        table = _with_length(self._table(batch, file), batch.num_rows)
                        chosen = table if picked is None else table.take(integers(picked - start))
                        yield _selected(chosen, self.schema)
                    start = end

    def _table(self, batch: pa.RecordBatch, file: DataFile) -> pa.Table:
        """Stored rows in the names and types of the table."""
        return pa.Table.from_arrays(
            [self._column(batch, field, file) for field in self._fields.values()], names=list(self._fields)
        )

    def shown(self, rows: pa.Table, file: DataFile) -> Iterator[pa.Table]:
        """Stored columns of some rows of a file as the table has them."""
        for batch in rows.to_batches():
            yield _selected(_with_length(self._table(batch, file), batch.num_rows), self.schema)

    def stored_columns(self, stored: pa.Schema) -> list[str]:
        """The columns of a file that are read."""
        return [
            stored_field.name
            for name, field in self._fields.items()
            if name not in self.columns.partition_columns
            and (stored_field := find(stored, field, self.columns.mode)) is not None
        ]

    def _require_partitions(self, file: DataFile) -> None:
        if file.partition_values is None and self._fields.keys() & set(self.columns.partition_columns):
            raise CorruptLogError(
                f"the log gives {file.path} a partition value that is not of its column's type, so its rows "
                "cannot be read; leave the partition columns out, or have the writer correct the entry",
                path=file.path,
            )

    def _batches(self, store: Store, file: DataFile) -> Iterator[tuple[pa.RecordBatch, pa.Array | None]]:
        """Batches, with whether each row is live; None where no row of the file is deleted."""
        with StoredFile.of(store, file.path, file.size) as stored, file_errors(stored.name):
            opened = stored.parquet()
            footer = opened.metadata
            deleted = hidden_rows(store, file, footer.num_rows)
            groups: Sequence[int] = range(footer.num_row_groups)
            if self.where is not None:
                groups = groups_to_read(opened, self.where, self.columns, file.partition_values)
            stored_columns = self.stored_columns(opened.schema_arrow)
            sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
            starts = list(accumulate(sizes, initial=0))
            for group in groups:
                start = starts[group]
                if not stored_columns:
                    # Partition columns alone: only the number of rows matters.
                    counted = pa.RecordBatch.from_arrays([pa.nulls(sizes[group])], [""])
                    yield counted, _live(deleted, start, sizes[group])
                    continue
                for batch in opened.iter_batches(
                    BATCH_ROWS, row_groups=[group], columns=stored_columns, use_threads=self.threads
                ):
                    yield batch, _live(deleted, start, batch.num_rows)
                    start += batch.num_rows

    def _column(self, batch: pa.RecordBatch, field: Mapping[str, Any], file: DataFile) -> pa.Array:
        name = field["name"]
        kind = self.columns.schema.field(name).type
        if name in self.columns.partition_columns:
            assert file.partition_values is not None
            value = pa.array([file.partition_values[name]], kind)[0]
            return pa.repeat(value, batch.num_rows)
        stored_field = find(batch.schema, field, self.columns.mode)
        if stored_field is None:
            return pa.nulls(batch.num_rows, kind)
        return conform(batch.column(stored_field.name), field["type"], kind, self.columns.mode)


def hidden_rows(store: Store, file: DataFile, num_rows: int | None = None) -> pa.Array | None:
    """The deleted rows of a file, checked against its number of rows; None without a deletion vector."""
    if file.vector is None:
        return None
    rows = stored_rows(store, file) if num_rows is None else num_rows
    return deleted_rows(store, file.vector, file.path, rows)


def live_rows(store: Store, file: DataFile) -> int:
    """How many live rows a file has; its deletion vector is read, since the log may be wrong about it.

    One that is missing, or lies where this caller may not read, contradicts nothing; then the log answers.
    """
    rows = stored_rows(store, file)
    try:
        hidden_rows(store, file, rows)
    except (MissingSplitError, TableError) as error:
        logger.warning("rows are counted by the log alone: %s", error)
    return rows - (0 if file.vector is None else file.vector.cardinality)


def group_rows(store: Store, file: DataFile) -> tuple[int, ...]:
    """The rows of each row group of a file, from its footer."""
    with StoredFile.of(store, file.path, file.size) as opened, file_errors(opened.name):
        footer = opened.parquet().metadata
        return tuple(footer.row_group(group).num_rows for group in range(footer.num_row_groups))


def stored_rows(store: Store, file: DataFile) -> int:
    """How many rows a file has, deleted ones included: from the log, or else from its footer."""
    if file.num_records is not None:
        return file.num_records
    with StoredFile.of(store, file.path, file.size) as opened, file_errors(opened.name):
        return int(opened.parquet().metadata.num_rows)


class file_errors:  # noqa: N801 - used as a statement
    """Turn errors of Arrow and the store about a file into our own."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, (NotFoundError, FileNotFoundError)):
            raise MissingSplitError(
                f"{self._name} is part of the table but does not exist. It was removed by something other "
                "than a commit, or by VACUUM: bring it back, or read a version that does not need it.",
                path=self._name,
            ) from error
        if isinstance(error, (pa.ArrowInvalid, pa.ArrowSerializationError, OSError)) and not isinstance(
            error, StorageError
        ):
            if "crypt" in str(error):
                raise TableError(
                    f"{self._name} is encrypted ({error}), and encrypted Parquet files are not read here. "
                    "Write its rows to a table without encryption.",
                    path=self._name,
                ) from error
            raise DamagedSplitError(
                f"{self._name} cannot be read as Parquet ({error}). Bring back an intact copy, or read a "
                "version that does not need it.",
                path=self._name,
            ) from error


def _live(deleted: pa.Array | None, start: int, rows: int) -> pa.Array | None:
    """For the rows of a batch, whether each is absent from the (ascending) deleted ones."""
    if deleted is None:
        return None
    numbers = deleted.to_numpy(zero_copy_only=False)
    first, last = np.searchsorted(numbers, [start, start + rows])
    keep = np.ones(rows, dtype=bool)
    keep[numbers[first:last].astype(np.int64) - start] = False
    return pa.array(keep)


def _with_length(table: pa.Table, rows: int) -> pa.Table:
    """A table with the given number of rows, even if it has no columns."""
    return table if table.num_columns else pa.table({"": pa.nulls(rows)})


def _selected(table: pa.Table, schema: pa.Schema) -> pa.Table:
    if not schema.names:
        return table.select([])
    return pa.Table.from_arrays([table.column(name) for name in schema.names], schema=schema)
