"""A table: the handle most people use. Each method is one call into the verb of that name.

A verb's code is loaded by the first call of it, so that a program that only
reads does not wait for what writes and keeps.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from indextables.connection import open_log
from indextables.errors import NotATableError, OptionError, SchemaError, TableError
from indextables.handle import Handle
from indextables.ops.progress import in_notebook
from indextables.options import Options, parse_size

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.log.history import Moment
    from indextables.log.snapshot import Snapshot
    from indextables.log.transaction_log import TransactionLog
    from indextables.model.actions import SkipAction, TxnAction
    from indextables.ops import outcomes
    from indextables.ops.maintain.describe import Description
    from indextables.ops.read.rows import Rows
    from indextables.ops.results import WriteResult
    from indextables.ops.write.commit import Order
    from indextables.ops.write.writer import Writer

T = TypeVar("T")


class Table(Handle["Snapshot"]):
    """A handle on one version of a table.

    A verb that commits moves the handle to the version it wrote, and `refresh`
    to the newest one. A handle opened at an older version only reads.
    """

    def __init__(self, log: TransactionLog, snapshot: Snapshot, *, pinned: bool = False) -> None:
        super().__init__(snapshot)
        self._log = log
        self._pinned = pinned

    @classmethod
    def create(
        cls,
        uri: str | os.PathLike[str],
        schema: Any = None,
        partition_by: str | Sequence[str] = (),
        options: Mapping[str, Any] | Options | None = None,
        spark: Any = None,
        *,
        data: Any = None,
        text: str | Sequence[str] = (),
    ) -> Self:
        """Create a table, or open the one that is there if its schema and partitioning agree.

        `schema` is a pyarrow Schema, a Spark StructType or its JSON text. `text` names the columns that can
        be searched by words; options such as `indexing.typemap.code = string` say more about indexing.

        With `data`, anything that `append` takes, the rows are version 1 of the new table and `schema` may be
        left out. There must be no table yet, or one that has never been written to. If the rows cannot be
        written there is no table afterwards; if the process ends on the way, the same call finishes it.
        """
        from indextables.ops.write.definition import Definition
        from indextables.ops.write.save import column_list, save, with_text

        settings, partition_columns = with_text(options, text), column_list(partition_by)
        log = open_log(uri, settings, spark)
        if data is not None:
            save(log, data, "error", settings, partition_columns, schema)
            return cls(log, log.snapshot())
        if schema is None:
            raise SchemaError("a table is created from a schema, or from data that has one; give one of them")
        return cls(log, Definition.of(schema, partition_columns, options=settings).create(log))

    @classmethod
    def open(
        cls,
        uri: str | os.PathLike[str],
        version: int | None = None,
        as_of: Moment | None = None,
        options: Mapping[str, Any] | Options | None = None,
        spark: Any = None,
        *,
        companion: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Open a table at its newest version, at a version, or as it was at a moment.

        A companion index gives the rows of its source, and versions are those of the source. A Delta table or
        a directory of Parquet files is opened by its own path with `companion`, the place of its index.
        """
        from indextables.companion.opening import open_version, require_companion_of
        from indextables.ops.foreign_rows import ForeignRows

        log = open_log(uri if companion is None else companion, options, spark)
        if companion is not None:
            require_companion_of(log, str(uri))
        snapshot = open_version(log, version, as_of)
        fixed = version is not None or as_of is not None
        is_newest = not fixed or (not isinstance(snapshot, ForeignRows) and log.is_newest(snapshot))
        return cls(log, snapshot, pinned=not is_newest)

    @classmethod
    def exists(cls, uri: str | os.PathLike[str], options: Mapping[str, Any] | Options | None = None) -> bool:
        """Whether a path holds a table."""
        try:
            open_log(uri, options).snapshot()
        except NotATableError:
            return False
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        # Stores and sessions stay where they are; the other process opens the same version again.
        return _reopened, (type(self), self.uri, self.version, self._pinned, dict(self._log.options.explicit))

    # What it is

    @property
    def log(self) -> TransactionLog:
        """The transaction log."""
        return self._log

    def history(self, limit: int | None = None) -> pa.Table:
        """One row per version, newest first."""
        return self._log.history(limit)

    def skipped_files(self) -> list[SkipAction]:
        """Files that an operation could not handle, with the time until which they are left alone."""
        return self._log.skipped_files()

    def refresh(self) -> Self:
        """Move to the newest version."""
        from indextables.companion.opening import open_version

        self._snapshot = open_version(self._log, max_staleness_s=0)
        self._pinned = False
        return self

    # Reading

    def files(
        self, where: Any = None, engine: str = "auto", columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The live files that can hold a matching row, one row each, sorted by path.

        `columns` names the columns of the result, such as `["path", "size"]`: of the log only what they need
        is read.
        """
        from indextables.ops.read import scan

        files, self._record = scan.files(self._snapshot, where, engine, columns)
        return files

    def scan(
        self,
        where: Any = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        *,
        sort: str | Sequence[str] | None = None,
    ) -> Rows:
        """The rows, or those for which the filter is true, as a stream of batches in (path, row) order.

        With `sort`, such as `"ts DESC, id"`, they come in that order: Spark's, in which nulls are first
        when ascending, NaN is above every number, and texts are compared by their bytes. With a limit, only
        the splits are read whose statistics allow a row among the first.
        """
        from indextables.ops.read import scan
        from indextables.ops.read.rows import Rows

        reader, self._record = scan.scan(self._snapshot, where, columns, limit, sort=sort)
        return Rows(reader, self._record)

    def changes(
        self,
        from_version: int | None = None,
        to_version: int | None = None,
        *,
        from_time: Moment | None = None,
        where: Any = None,
        columns: Sequence[str] | None = None,
    ) -> Rows:
        """The rows that commits inserted, deleted and updated, those of both versions included.

        Besides the columns of the table there are `_change_type` (insert, delete, update_preimage,
        update_postimage), `_commit_version` and `_commit_timestamp`, in the filter and in `columns` too.
        Without `to_version` they go up to the version of this handle; `from_time` begins with the first
        commit at or after a time. Columns are those of this version, null where a row has none.
        """
        from indextables.ops.read.changes import ChangeRequest, changes
        from indextables.ops.read.rows import Rows

        request = ChangeRequest(from_version, to_version, from_time, where, columns)
        reader, self._record = changes(self._log, self._snapshot, request)
        return Rows(reader, self._record)

    def count(
        self, where: Any = None, *, query: str | None = None, operator: str | None = None,
        text: str | None = None,
    ) -> int:  # fmt: skip
        """How many rows there are, match a filter, are found by a full-text query, or hold a text's words."""
        from indextables.ops.read.arguments import question_of
        from indextables.ops.read.count import count

        total, self._record = count(self._snapshot, where, question_of(query, text), operator)
        return total

    def search(
        self,
        query: str | None = None,
        where: Any = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        score: bool = False,
        *,
        operator: str | None = None,
        highlight: bool | tuple[str, str] = False,
        snippets: int | None = None,
        sort: str | Sequence[str] | None = None,
        total: bool = False,
        text: str | None = None,
    ) -> Rows:
        """The rows a full-text query finds, in (path, row) order.

        In place of a query, `text` takes any text, such as a line of a log: rows that hold all of its
        words are found, in any order, and with `score` those that hold them side by side come first.

        Words side by side are joined by the operator, `or` or `and`; `last_scan.notes` tells what
        the author of the query should know.

        With `score` there is a `_score` column and the rows come best first; scores are BM25
        over the whole version, whatever its splits and the filter are. With `sort`, such as
        `"ts DESC, id"`, they come in that order. With `total`, `last_scan.total` says how many rows
        there are in all, whatever the limit.

        `highlight` adds `_highlight`, the texts that were searched with every match between `<em>` and
        `</em>` or two marks of your own; `snippets` adds `_snippets`, the pieces with most matches.
        """
        from indextables.ops.read.arguments import require_question
        from indextables.ops.read.highlighting import Highlights
        from indextables.ops.read.rows import Rows
        from indextables.ops.read.search import search

        reader, self._record = search(
            self._snapshot,
            require_question(query, text),
            where,
            columns,
            limit,
            score=score,
            operator=operator,
            sort=sort,
            total=total,
            highlights=Highlights.of(highlight, snippets),
        )
        return Rows(reader, self._record)

    def aggregate(
        self,
        group_by: str | Sequence[str] | None,
        aggregates: Mapping[str, str] | Sequence[str] | str,
        query: str | None = None,
        where: Any = None,
    ) -> pa.Table:
        """Groups of rows and what is computed of each: `aggregate("level", {"n": "count(*)"})`.

        Aggregates are count(*), count, count(distinct ...), sum, avg, min and max of a column, and mean
        what they mean in Spark. The rows are those of the table, of the filter, or of a full-text query.
        """
        from indextables.ops.counting import run

        groups, self._record = run.aggregate(self._snapshot, group_by, aggregates, query=query, where=where)
        return groups

    def facets(
        self, column: str, query: str | None = None, where: Any = None, top: int | None = 10
    ) -> pa.Table:
        """The most frequent values of a column, as `value` and `count`; `top=None` gives all."""
        from indextables.ops.counting import run

        values, self._record = run.facets(self._snapshot, column, query=query, where=where, top=top)
        return values

    def histogram(
        self, column: str, interval: Any, query: str | None = None, where: Any = None, *,
        offset: Any = None, time_zone: str | None = None,
    ) -> pa.Table:  # fmt: skip
        """How many rows lie in each interval of a column, as `bucket` (where it begins) and `count`.

        The interval is a number, or for dates and timestamps a text such as `15m`, `1h`, `day`, `week` or
        `3 months`, cut at the local times of `time_zone` (the option timeZone where it is left out).
        """
        from indextables.ops.counting import run

        buckets, self._record = run.histogram(
            self._snapshot, column, interval, query=query, where=where, offset=offset, time_zone=time_zone
        )
        return buckets

    def explain_score(
        self, query: str, path: str, row: int, *, operator: str | None = None
    ) -> pa.Table | None:
        """Why a row of a split has its score: one line for every part of the query that counts there.

        The scores of the lines add up to `_score`; None when the row does not match.
        """
        from indextables.ops.read.ranking import explain_score

        return explain_score(self._snapshot, query, path, row, operator=operator)

    def to_df(self, where: Any = None, columns: Sequence[str] | None = None) -> Any:
        """The rows as a Spark DataFrame, for a table opened with `spark`."""
        return self._frames("to_df").scan(self._snapshot, where=where, columns=columns)

    def search_df(
        self, query: str | None = None, where: Any = None, columns: Sequence[str] | None = None,
        limit: int | None = None, score: bool = False, *, operator: str | None = None,
        text: str | None = None,
    ) -> Any:  # fmt: skip
        """The rows a query or a text finds as a Spark DataFrame, for a table opened with `spark`."""
        from indextables.ops.read.arguments import require_question

        question = require_question(query, text)
        more = {"where": where, "columns": columns, "limit": limit, "score": score, "operator": operator}
        return self._frames("search_df").search(self._snapshot, question, **more)

    def sample(self, n: int, seed: int | None = None) -> pa.Table:
        """Rows drawn at random, each with the same chance, in the order of the table; at most all of them.

        The same version and seed give the same rows.
        """
        from indextables.ops.read.sample import sample

        rows, self._record = sample(self._snapshot, n, seed)
        return rows

    # Writing

    def append(
        self, data: Any, *, merge_schema: bool = False, txn: TxnAction | None = None,
        user_metadata: str | None = None, options: Mapping[str, Any] | None = None,
    ) -> WriteResult:  # fmt: skip
        """Add rows.

        `data` is a pandas or Polars DataFrame, a dict of columns, a list of dicts, a DuckDB relation, Arrow
        data, or an iterable of batches. Columns are matched by name.

        `merge_schema` lets the schema grow by new columns and wider types. A batch that may be sent
        again carries a `txn`, the name of the sender and its number of the batch: what the table has
        already is not written twice. `user_metadata` is a text for the history.
        """
        from indextables.ops.write.commit import Order

        order = Order(merge_schema=merge_schema, txn=txn, user_metadata=user_metadata)
        return self._write(data, order, options)

    def writer(
        self,
        *,
        flush_rows: int = 50_000,
        flush_bytes: int | str = "32M",
        flush_seconds: float = 5.0,
        max_pending_bytes: int | str = "128M",
    ) -> Writer:
        """A writer for small batches from any number of threads, which commits many of them as one version.

        `write(data)` returns a ticket at once, and `ticket.wait()` the version once the rows are committed.
        What is pending is committed when it has `flush_rows` rows or `flush_bytes` bytes, or has waited for
        `flush_seconds`; `write` waits while more than `max_pending_bytes` are pending. Use it in a `with` or
        `async with` statement, whose end commits the rest. This handle stays at its version; `refresh` moves
        it.
        """
        from indextables.ops.write.writer import Limits, Writer

        sizes = (parse_size(str(flush_bytes)), parse_size(str(max_pending_bytes)))
        limits = Limits(flush_rows, sizes[0], flush_seconds, sizes[1])
        return Writer(self._writable(), self._snapshot, limits)

    def overwrite(
        self,
        data: Any,
        where: Any = None,
        *,
        partitions: str = "static",
        expected_version: int | None = None,
        merge_schema: bool = False,
        overwrite_schema: bool = False,
        partition_by: Sequence[str] | None = None,
        txn: TxnAction | None = None,
        user_metadata: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> WriteResult:  # fmt: skip
        """Replace all rows, or those for which the filter is true.

        With `partitions="dynamic"` only the partitions that the new rows belong to are replaced.
        With `overwrite_schema` the new rows also bring their columns, `partition_by` and index settings.
        With `expected_version` any change of data by others since then is an error. `txn` and
        `user_metadata` are as for `append`.
        """
        from indextables.ops.write.commit import Order

        if partitions not in {"static", "dynamic"}:
            raise OptionError(f"partitions is {partitions!r}; expected static or dynamic")
        order = Order(
            overwrite=True,
            where=where,
            dynamic=partitions == "dynamic",
            overwrite_schema=overwrite_schema,
            partition_by=None if partition_by is None else tuple(partition_by),
            merge_schema=merge_schema,
            expected_version=expected_version,
            txn=txn,
            user_metadata=user_metadata,
        )
        return self._write(data, order, options)

    # Keeping

    def delete(
        self, where: Any = None, *, query: str | None = None, operator: str | None = None
    ) -> outcomes.DeleteResult:
        """Remove the rows for which the filter is true and which the full-text query finds."""
        from indextables.ops.write.delete import run_delete

        searches = () if query is None else ((None, query),)
        log, progress = self._writable(), in_notebook()
        return self._moved(run_delete(log, where, progress, searches=searches, operator=operator))

    def update(self, where: Any, values: Mapping[str, Any]) -> outcomes.UpdateResult:
        """Give columns other values in the rows for which the filter is true.

        A value is a constant, another column as `col("name")`, or a function that is given the matching
        rows as a pyarrow Table and returns an Array with one value for each.
        """
        from indextables.ops.write.update import run_update

        return self._moved(run_update(self._writable(), where, values, in_notebook()))

    def merge(
        self, source: Any, on: str | Sequence[str], *, matched: str | None = "update",
        not_matched: str | None = "insert", not_matched_by_source: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> outcomes.UpsertResult:  # fmt: skip
        """Update, delete and insert rows by key, in one commit.

        `matched` is "update", "delete" or None, `not_matched` "insert" or None, and
        `not_matched_by_source` "delete" or None. The source may be larger than memory.
        """
        from indextables.ops.write.upsert import MergeClauses, run_upsert

        log, clauses = self._writable(options), MergeClauses(matched, not_matched, not_matched_by_source)
        return self._moved(run_upsert(log, source, on, clauses), log)

    def restore(self, version: int) -> outcomes.RestoreResult:
        """Make an older version the newest again, by a commit on top."""
        from indextables.ops.rewrite.restore import run_restore

        return self._moved(run_restore(self._writable(), version, in_notebook()))

    def merge_splits(
        self, where: Any = None, *, target_size: int | str | None = None,
        max_dest_splits: int | None = None, max_source_splits: int | None = None, dry_run: bool = False,
    ) -> outcomes.MergeResult:  # fmt: skip
        """Turn small splits into larger ones; `where` chooses partitions, a size is bytes or text as 100M."""
        from indextables.companion.merge import merge_splits
        from indextables.ops.rewrite.merge import MergeRequest

        target_bytes = parse_size(target_size) if isinstance(target_size, str) else target_size
        request = MergeRequest(where, target_bytes, max_dest_splits, max_source_splits, dry_run)
        return self._moved(merge_splits(self._writable(), request, in_notebook()))

    def purge_rows(self, where: Any = None, *, dry_run: bool = False) -> outcomes.PurgeRowsResult:
        """Write the files that have deleted rows anew without them; `where` chooses partitions."""
        from indextables.ops.rewrite.purge_rows import PurgeRowsRequest, run_purge_rows

        return self._moved(run_purge_rows(self._writable(), PurgeRowsRequest(where, dry_run), in_notebook()))

    def purge(
        self, *, older_than_hours: float | None = None, log_retention_hours: float | None = None,
        dry_run: bool = False, inventory: Any = None, lite: bool = False,
    ) -> outcomes.PurgeResult:  # fmt: skip
        """Delete split files that no version needs any more.

        The table is listed, unless there is an `inventory` of its files: rows, or the path of a Parquet
        file, with path, size and modification_time. With `lite` only files that the log names are looked at.
        """
        from indextables.ops.maintain.purge import PurgeRequest, run_purge
        from indextables.ops.write.data import to_arrow

        if not isinstance(inventory, str | os.PathLike | None):
            inventory = to_arrow(inventory)
        request = PurgeRequest(older_than_hours, log_retention_hours, dry_run, inventory=inventory, lite=lite)
        return run_purge(self._writable(), request, in_notebook())

    def checkpoint(self) -> outcomes.CheckpointResult:
        """Write a checkpoint of the newest version."""
        from indextables.ops.maintain.checkpoint import run_checkpoint

        return run_checkpoint(self._writable())

    def suggest_statistics(
        self, columns: Sequence[str] | None = None, *, filters: Sequence[Any] | None = None,
        store: bool = False,
    ) -> outcomes.StatisticsSuggestion:  # fmt: skip
        """Suggest for which columns statistics pay, judged by `filters` or those this process has run.

        `columns` names them outright. Nothing is written unless `store` is true: then the suggestion becomes
        a property of the table, which MERGE SPLITS and CHECKPOINT obey where `stats.adaptive` is true.
        """
        from indextables.ops.maintain.suggest_statistics import SuggestionRequest, run_suggest_statistics

        request = SuggestionRequest(columns, filters, store)
        if not store:
            return run_suggest_statistics(self._log, request)
        return self._moved(run_suggest_statistics(self._writable(), request))

    def drop_partitions(self, where: Any) -> outcomes.DropPartitionsResult:
        """Remove whole partitions, chosen by a filter on partition columns."""
        from indextables.ops.rewrite.drop_partitions import run_drop_partitions

        return self._moved(run_drop_partitions(self._writable(), where))

    def truncate_history(self, *, dry_run: bool = False) -> outcomes.TruncateHistoryResult:
        """Keep the newest version and delete the log files that only older ones need."""
        from indextables.ops.maintain.truncate_history import run_truncate

        return run_truncate(self._writable(), dry_run=dry_run)

    def update_properties(self, properties: Mapping[str, str | None]) -> int:
        """Set properties of the table, or remove those given as None; returns the version that has them.

        Options of writing, indexing and keeping may stand there, and names of your own. After a change
        of index settings `merge_splits` indexes the rows again.
        """
        from indextables.ops.write.alter import run_update_properties

        return self._moved(run_update_properties(self._writable(), properties))

    @property
    def constraints(self) -> dict[str, str]:
        """The conditions of the table's CHECK constraints, by name."""
        from indextables.model.constraints import constraints_of

        return constraints_of(self._snapshot.metadata.configuration)

    def add_constraint(self, name: str, condition: str) -> outcomes.ConstraintResult:
        """Refuse rows for which a condition is false from now on, whoever writes them.

        A row of the table for which it is false is an error that shows the row, and nothing is committed.
        """
        from indextables.ops.write.constraints import run_add_constraint

        return self._moved(run_add_constraint(self._writable(), name, condition))

    def drop_constraint(self, name: str, *, if_exists: bool = False) -> outcomes.ConstraintResult:
        """Drop a CHECK constraint."""
        from indextables.ops.write.constraints import run_drop_constraint

        return self._moved(run_drop_constraint(self._writable(), name, if_exists=if_exists))

    def add_column(
        self,
        name: str,
        kind: Any,
        *,
        first: bool = False,
        after: str | None = None,
        comment: str | None = None,
    ) -> int:
        """Add a column of an Arrow type, null in the rows that are there; returns the version that has it.

        It is put at the end, before all others, or `after` another.
        """
        from indextables.ops.write.alter import added_column, run_alter

        place = _position(first=first, after=after)
        return self._moved(run_alter(self._writable(), [added_column(name, kind, place, comment)]))

    def rename_column(self, old: str, new: str) -> int:
        """Give a column another name, with its settings; no file is written, and older versions keep theirs.

        From then on the table needs a reader that knows `columnMapping`: IndexTables 0.2.0 refuses it.
        """
        from indextables.ops.write.alter import TableChange

        return self._without_column(TableChange("RenameColumn", (old,), name=new))

    def drop_column(self, name: str, *, if_exists: bool = False) -> int:
        """Drop a column and its settings; its values stay in the files, and in older versions.

        A column that is added under the same name later is another one. From then on the table needs a
        reader that knows `columnMapping`: IndexTables 0.2.0 refuses it.
        """
        from indextables.ops.write.alter import TableChange

        return self._without_column(TableChange("DeleteColumn", (name,), if_exists=if_exists))

    def move_column(self, name: str, *, first: bool = False, after: str | None = None) -> int:
        """Put a column before all others, or `after` another one."""
        from indextables.ops.write.alter import TableChange, run_alter

        place = _position(first=first, after=after)
        if place is None:
            raise SchemaError("say where the column goes: first=True, or after another one")
        change = TableChange("UpdateColumnPosition", (name,), position=place)
        return self._moved(run_alter(self._writable(), [change]))

    def describe(self) -> Description:
        """What the log says about the version this handle reads."""
        from indextables.ops.maintain.describe import describe_state

        return describe_state(self._log, self._snapshot)

    def _without_column(self, change: Any) -> int:
        """Carry out a change after which a name means nothing, in the options of this handle too."""
        from indextables.ops.write.alter import run_alter, without_column

        version = run_alter(self._writable(), [change])
        options = without_column(self._log.options.explicit, change.column[0])
        if options != self._log.options.explicit:
            log = self._log.with_only(options)
            log.follow(self._log)
            self._log = log
        return self._moved(version)

    def _write(self, data: Any, order: Order, more: Mapping[str, Any] | None) -> WriteResult:
        from indextables.ops.write.commit import write

        log = self._writable(more)
        return self._moved(write(log, data, order), log)

    def _writable(self, more: Mapping[str, Any] | None = None) -> TransactionLog:
        """The log to commit to, under the further options of one call."""
        if self._pinned:
            raise TableError(
                f"{self.uri} is open at the older version {self.version}, which can only be read. "
                "Call refresh() to move to the newest version, or restore() that version from it.",
                version=self.version,
                uri=self.uri,
            )
        return self._log.with_options(more)

    def _moved(self, result: T, log: TransactionLog | None = None) -> T:
        """Go to the version the verb wrote; one that wrote nothing stays where it is.

        Nothing is read: the commit is durable, and no failure of the store may hide its result.
        """
        if log is not None:
            self._log.follow(log)
        from indextables.ops.foreign_rows import ForeignRows

        after_commit = self._log.left_by_commit()
        if isinstance(self._snapshot, ForeignRows):
            self._snapshot = self._snapshot if after_commit is None else self._snapshot.on(after_commit)
        elif after_commit is not None and after_commit.version > self.version:
            self._snapshot = after_commit
        return result

    def _frames(self, method: str) -> Any:
        frames = self._log.runtime.frames
        if not hasattr(frames, "scan"):
            raise TableError(
                f"{method} needs a Spark session; open the table with Table.open(uri, spark=spark)"
            )
        return frames


def _position(*, first: bool, after: str | None) -> str | None:
    if first and after is not None:
        raise SchemaError("a column is put first or after another one, not both")
    return "" if first else after


def _reopened(kind: type[Table], uri: str, version: int, pinned: bool, options: Mapping[str, str]) -> Table:
    """A table that was pickled: a handle on the version it had, without Spark."""
    from indextables.companion.opening import open_version

    log = open_log(uri, options)
    return kind(log, open_version(log, version), pinned=pinned)
