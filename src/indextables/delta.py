"""Delta Lake tables: replay their log, prune it, read their rows. Nothing here writes.

`DeltaTable` is a handle on one version, as `Table` is for our own tables; it
needs no Spark and no Java. Give it a session, or give one to `files`, and large
tables are replayed on the cluster. `replay`, `apply_skipping` and `read` leave
the result on the cluster as a DataFrame.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from indextables.connection import delta_frames, options_and_runtime
from indextables.errors import OptionError, PredicateError, TableError
from indextables.handle import Handle
from indextables.model.names import quoted_name

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.log.delta.snapshot import DeltaSnapshot
    from indextables.log.history import Moment
    from indextables.log.scans import Scan
    from indextables.ops.maintain.describe import Description
    from indextables.ops.read.record import Record
    from indextables.ops.read.rows import Rows

__all__ = ["DeltaTable", "apply_skipping", "files", "last_scans", "read", "replay"]

SCAN_KEY = b"indextables.scan"
"""Under this key the schema of a file list says, as JSON, how the list came about."""


class DeltaTable(Handle["DeltaSnapshot"]):
    """A handle on one version of a Delta table. It reads; nothing it does writes.

    Filters are SQL text or `col(...)` expressions; with a session a Spark Column
    will do as well.
    """

    def __init__(self, snapshot: DeltaSnapshot, spark: Any = None) -> None:
        super().__init__(snapshot)
        self._spark = spark

    @classmethod
    def open(
        cls,
        uri: Any,
        version: int | None = None,
        as_of: Moment | None = None,
        spark: Any = None,
        options: Mapping[str, str] | None = None,
    ) -> Self:
        """Open a table at its newest version, at a version, or as it was at a moment."""
        return cls(_snapshot(uri, version, as_of, spark, options), spark)

    def __reduce__(self) -> tuple[Any, ...]:
        # Stores and sessions stay where they are; the other process opens the same version again.
        explicit = dict(self._snapshot.opened_with().explicit)
        return _reopened, (type(self), self.uri, self.version, explicit)

    def history(self, limit: int | None = None) -> pa.Table:
        """One row per version whose commit is still there, newest first."""
        from indextables.ops.delta.describe import history_rows

        return history_rows(self._snapshot, limit)

    def describe(self) -> Description:
        """What the log says about the version this handle reads."""
        from indextables.ops.delta.describe import describe_delta

        return describe_delta(self._snapshot)

    def refresh(self) -> Self:
        """Move to the newest version."""
        from indextables.log.delta.snapshot import open_snapshot

        snapshot = self._snapshot
        self._snapshot = open_snapshot(self.uri, options=snapshot.opened_with(), runtime=snapshot.runtime)
        return self

    def files(
        self, where: Any = None, engine: str = "auto", columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The live files that can hold a matching row, in the order of the log.

        `columns` names the columns of the result, such as `["path", "size"]`: of the log only what they need
        is read. Beside the default ones there are uri, min, max, max_number, null_count, data_change, tags.
        """
        from indextables.ops.read.scan import files

        node = self._node(where)
        rows, self._record = files(self._snapshot, node, engine, columns)
        return _with_scan(rows, self._snapshot, self._record)

    def scan(self, where: Any = None, columns: Sequence[str] | None = None) -> Rows:
        """The live rows, or those for which the filter is true, as a stream of batches."""
        from indextables.ops.read.rows import Rows

        if _is_column(where):
            return Rows(self.to_df(where, columns).toArrow().to_reader())
        from indextables.ops.delta.scan import scan

        reader, self._record = scan(self._snapshot, where, columns)
        return Rows(reader, self._record)

    def count(self, where: Any = None, *, query: str | None = None, text: str | None = None) -> int:
        """How many live rows there are, match a filter, or are found by a full-text query.

        The log answers as far as it can; only the files it leaves open are read.
        """
        if query is not None or text is not None:
            return sum(batch.num_rows for batch in self.search(query, where, columns=(), text=text))
        if _is_column(where):
            return int(self.to_df(where).count())
        from indextables.ops.delta.scan import count

        total, self._record = count(self._snapshot, where)
        return total

    def search(
        self,
        query: str | None = None,
        where: Any = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        *,
        operator: str | None = None,
        text: str | None = None,
    ) -> Rows:
        """The rows a full-text query finds; a Delta table has no index, so every row is looked at.

        In place of a query, `text` takes any text: rows that hold all of its words are found.
        """
        from indextables.ops.delta.search import search
        from indextables.ops.read.arguments import require_question
        from indextables.ops.read.rows import Rows

        question = require_question(query, text)
        reader, self._record = search(self._snapshot, question, where, columns, limit, operator=operator)
        return Rows(reader, self._record)

    def to_df(self, where: Any = None, columns: Sequence[str] | None = None) -> Any:
        """The rows as a Spark DataFrame, for a table opened with `spark`."""
        if self._spark is None:
            raise TableError(
                "to_df needs a Spark session; open the table with DeltaTable.open(uri, spark=spark)"
            )
        from indextables.ops.read.arguments import column_names

        output_columns = None if columns is None else column_names(self._snapshot, columns)
        frame = delta_frames().read(self._spark, self._snapshot, where)
        return frame if output_columns is None else frame.select(*map(quoted_name, output_columns))

    def _node(self, where: Any) -> Any:
        """A filter for choosing files; of a Spark Column what can be told from its expression."""
        if not _is_column(where):
            return where
        if self._spark is None:
            raise PredicateError(
                "a Spark Column needs its session: open the table with DeltaTable.open(uri, spark=spark), "
                "or write the filter as text or with col(...)"
            )
        return delta_frames().node_of_column(self._spark, self._snapshot, where)


def _is_column(where: Any) -> bool:
    return type(where).__module__.startswith("pyspark.")


def _with_scan(files: pa.Table, snapshot: DeltaSnapshot, record: Record) -> pa.Table:
    from indextables.log.scans import scan_of

    facts = scan_of(snapshot.store.uri, snapshot.version, record.metrics.files, record.metrics.replay)
    metadata = {**(files.schema.metadata or {}), SCAN_KEY: json.dumps(facts.as_dict()).encode()}
    return files.replace_schema_metadata(metadata)


def _reopened(kind: type[DeltaTable], uri: str, version: int, options: Mapping[str, str]) -> DeltaTable:
    return kind.open(uri, version, options=options)


def files(  # noqa: PLR0917 - the names are the interface
    uri: Any,
    where: Any = None,
    version: int | None = None,
    as_of: Moment | None = None,
    spark: Any = None,
    engine: str = "auto",
    options: Mapping[str, str] | None = None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Return the live files of a Delta table as Arrow, in the order of its log.

    `where` leaves out the files that cannot hold a matching row. Columns: path
    (decoded), dv (unique id of the deletion vector), size, modification_time,
    num_records (deleted rows included), partition_values (typed), stats (as
    written), deletion_vector; with `columns` those it names, and only what they
    need is read of the log. How the list came about is in its schema's metadata,
    and in `last_scans`.
    """
    return DeltaTable.open(uri, version, as_of, spark, options).files(where, engine, columns)


def replay(  # noqa: PLR0917 - the names are the interface
    spark: Any,
    uri: Any,
    version: int | None = None,
    as_of: Moment | None = None,
    num_partitions: int | None = None,
    options: Mapping[str, str] | None = None,
) -> Any:
    """Return the live files as a DataFrame that stays on the cluster; `apply_skipping` prunes it there.

    With `num_partitions` the files are spread over so many partitions.
    """
    if num_partitions is not None and num_partitions < 1:
        raise OptionError(f"num_partitions is {num_partitions}; give a number from 1, or leave it out")
    return delta_frames().replay(spark, _snapshot(uri, version, as_of, spark, options), num_partitions)


def apply_skipping(
    frame: Any, schema: Any, where: Any = None, *, partition_filters: Any = None, data_filters: Any = None
) -> Any:
    """Leave out of a replayed DataFrame the files that cannot hold a row matching `where`.

    `schema` is the table's: a pyarrow.Schema, a Spark StructType or its JSON text. A filter is SQL text, a
    `col(...)` expression or a Spark Column, or a list of them, which all have to hold. `partition_filters`
    are decided by partition values alone, and `data_filters` by statistics alone. A file without statistics
    is always kept.
    """
    return delta_frames().apply_skipping(frame, schema, where, partition_filters, data_filters)


def read(  # noqa: PLR0917 - the names are the interface
    spark: Any,
    uri: Any,
    where: Any = None,
    version: int | None = None,
    as_of: Moment | None = None,
    options: Mapping[str, str] | None = None,
) -> Any:
    """Return the live rows of a Delta table as a DataFrame, deletion vectors applied.

    `where` filters the rows exactly, and files that cannot match are not read.
    """
    return delta_frames().read(spark, _snapshot(uri, version, as_of, spark, options), where)


def last_scans(uri: Any = None, limit: int = 10) -> list[Scan]:
    """How the newest scans of this process came about, newest first; of one table, or of all."""
    from indextables.log import scans
    from indextables.storage.store import open_store

    return scans.last_scans(None if uri is None else open_store(uri).uri, limit)


def _snapshot(
    uri: Any, version: int | None, as_of: Moment | None, spark: Any, options: Mapping[str, str] | None
) -> DeltaSnapshot:
    from indextables.log.delta.snapshot import open_snapshot
    from indextables.log.history import moment_of

    if version is not None and as_of is not None:
        raise OptionError("give a version or a time to read as of, not both", version=version)
    resolved, runtime = options_and_runtime(spark, options, uri)

    def zone() -> str:
        return resolved.zone_or(lambda: open_snapshot(uri, options=resolved, runtime=runtime).time_zone)

    moment = None if as_of is None else moment_of(as_of, zone)
    return open_snapshot(uri, version=version, as_of_ms=moment, options=resolved, runtime=runtime)
