"""MERGE of rows: update, delete and insert by key, in one commit and in bounded memory.

The source is written to a scratch file that stays mapped, not read, so that it
may be larger than memory; only its keys are held. Splits within whose bounds no key lies are not
opened. Of the others the key columns are read; a few keys of an indexed column are
looked up in its index instead. With
`deletionVectors.enabled`, rows that change or leave are named in the log, and
those that change come back in a new split; without, and where many rows of a
split do, it is written anew. Source rows that matched nothing are inserted.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.display.plain import counted
from indextables.errors import OptionError, SchemaError, TableError
from indextables.lazy import pc
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.model.arrays import integers, replaced
from indextables.model.fields import cast_table, find_field
from indextables.model.names import no_column
from indextables.model.types import type_to_sql
from indextables.ops.outcomes import NO_ACTION, SUCCESS, UpsertResult
from indextables.ops.read.record import Record
from indextables.ops.read.splits import splits_for
from indextables.ops.rewrite.replace import change_metrics, commit_or_discard, replace_plan
from indextables.ops.rewrite.rows import (
    RewriteGroup,
    RewriteOutcome,
    RewriteSetting,
    discard,
    require_read,
    require_writable,
    rewrite,
    split_rows,
)
from indextables.ops.rewrite.values import rewrite_values, same_values
from indextables.ops.rewrite.vectors import (
    DeletedRows,
    VectorCommit,
    moved_rows,
    uses_vector,
    vector_metrics,
)
from indextables.ops.table_settings import settings_of
from indextables.ops.write.after_write import after_write
from indextables.ops.write.data import batches_of, to_arrow
from indextables.ops.write.rows import WritePlan, build, plan_write
from indextables.options import Options
from indextables.predicate.tree import Column, Compare, In, Literal, Node, all_of
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_split
from indextables.split.search.filtered import Filtered
from indextables.split.search.narrowing import index_for, needed_entries
from indextables.split.write.build import BuiltSplit

_BATCH_ROWS = 32_768
MOST_KEYS = 100
"""Up to this many keys are looked up in the index of the key, if it has one."""
_NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class MergeClauses:
    """What happens to rows of the table and of the source."""

    matched: str | None = "update"
    """update, delete, or nothing."""
    not_matched: str | None = "insert"
    """insert, or nothing."""
    not_matched_by_source: str | None = None
    """delete, or nothing."""

    def __post_init__(self) -> None:
        allowed = {
            "matched": ("update", "delete", None),
            "not_matched": ("insert", None),
            "not_matched_by_source": ("delete", None),
        }
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                shown = ", ".join(repr(value) for value in values)
                raise OptionError(f"{name} is {getattr(self, name)!r}; expected {shown}", key=name)


@dataclass(slots=True)
class MergeSource:
    """The rows to merge, on disk, and their keys in memory."""

    rows: pa.Table
    """Mapped from the scratch file."""
    keys: pa.Array
    """One value per row, null where a part of the key is."""
    on: tuple[str, ...]
    matched: np.ndarray = field(init=False)
    """Whether a row has matched one of the table."""

    def __post_init__(self) -> None:
        self.matched = np.zeros(len(self.keys), dtype=bool)

    def matches(self, rows: pa.Table) -> np.ndarray:
        """For each row of the table the number of the source row with its key; -1 for none."""
        positions = pc.index_in(key_values(rows, self.on), value_set=self.keys, skip_nulls=True)
        numbers: np.ndarray = pc.fill_null(positions, -1).to_numpy(zero_copy_only=False)
        return numbers

    def refuse_repeated(self, uri: str) -> None:
        """Refuse several rows of one key: it would not be clear which of them to take."""
        counts = pc.value_counts(self.keys.drop_null())
        repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        if len(repeated):
            at = pc.index(self.keys, repeated[0]).as_py()
            key = self.rows.select(list(self.on)).slice(at, 1).to_pylist()[0]
            raise TableError(
                f"{uri}: several rows of the source have the key {key}, so it is not clear which of them to "
                "take. Nothing was committed; make the keys unique."
            )


@dataclass(frozen=True, slots=True)
class MergeRows:
    """Changes the rows of a split: matched rows take the source's values, or are deleted."""

    source: MergeSource
    numbers: np.ndarray
    """For each live row of the split, the number of its source row; -1 for none."""
    clauses: MergeClauses
    columns: tuple[str, ...]
    places: np.ndarray
    """The numbers of these rows in the split."""

    def leaving(self) -> np.ndarray:
        """The rows, among the live ones, that change or are deleted."""
        matched = self.numbers >= 0
        leaves = np.zeros(len(matched), bool)
        if self.clauses.matched is not None:
            leaves |= matched
        if self.clauses.not_matched_by_source == "delete":
            leaves |= ~matched
        return np.flatnonzero(leaves)

    @property
    def looks_at(self) -> frozenset[str]:
        """No column: the keys were compared when `numbers` was made."""
        return frozenset()

    @property
    def reads(self) -> frozenset[str]:
        """No column: new values come from the source."""
        return frozenset()

    @property
    def sets(self) -> tuple[str, ...] | None:
        """The columns that the source has besides the key; None if rows are deleted."""
        stay = self.clauses.matched != "delete" and self.clauses.not_matched_by_source != "delete"
        return self.columns if stay else None

    def count(self, rows: pa.Table, at: int) -> int:
        """How many rows have a source row with their key."""
        return int((self.numbers[at : at + rows.num_rows] >= 0).sum())

    def apply(self, rows: pa.Table, at: int) -> pa.Table:
        """The rows as they will be."""
        numbers = self.numbers[at : at + rows.num_rows]
        matched = numbers >= 0
        if self.clauses.matched == "update" and matched.any():
            rows = self._updated(rows, pa.array(matched), integers(numbers[matched]))
        stays = np.ones(rows.num_rows, dtype=bool)
        if self.clauses.matched == "delete":
            stays &= ~matched
        if self.clauses.not_matched_by_source == "delete":
            stays &= matched
        return rows if stays.all() else rows.filter(pa.array(stays))

    def _updated(self, rows: pa.Table, matched: pa.Array, numbers: pa.Array) -> pa.Table:
        before = rows.filter(matched)
        source_rows = self.source.rows.select(list(self.columns)).take(numbers)
        for name in self.columns:
            new = source_rows.column(name)
            if same_values(before.column(name), new):
                continue
            column = replaced(rows.column(name), matched, new.combine_chunks())
            rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), column)
        return rows


def run_upsert(
    log: TransactionLog, data: Any, on: str | Sequence[str], clauses: MergeClauses
) -> UpsertResult:
    """Merge rows; nothing is committed unless everything could be read."""
    snapshot = log.snapshot(max_staleness_s=0)
    require_writable(snapshot)
    rows, settings = to_arrow(data), snapshot.settings
    plan = plan_write(snapshot, rows.schema, settings)
    keys = _key_columns([on] if isinstance(on, str) else on, snapshot, rows.schema)
    with tempfile.TemporaryDirectory(prefix="indextables-") as scratch:
        source = _spilled(batches_of(rows), plan, keys, settings, Path(scratch, "source.arrow"))
        if clauses.matched == "update" or clauses.not_matched == "insert":
            source.refuse_repeated(log.uri)
        return _merged(log, snapshot, source, plan, clauses, settings)


def _merged(  # noqa: PLR0917 - one value, passed on in one place
    log: TransactionLog,
    snapshot: Snapshot,
    source: MergeSource,
    plan: WritePlan,
    clauses: MergeClauses,
    options: Options,
) -> UpsertResult:
    data_columns = {name.lower() for name in plan.data_schema.names}
    columns = tuple(n for n in snapshot.schema.names if n.lower() in data_columns and n not in source.on)
    scope = None if clauses.not_matched_by_source else _bounds(source, snapshot)
    merge = _Merge(log, snapshot, source, clauses, columns)
    if merge.keys is None and scope is not None:
        paths = _splits_with_keys(source, snapshot, scope)
    else:
        paths = [ref.path for ref in splits_for(snapshot, merge.keys, Record(snapshot))]
    try:
        built = build(log, plan, merge.new_rows(snapshot.adds(paths)), options)
    except BaseException:
        discard(log.store, [add for item in merge.rewritten for add in item.adds])
        raise
    return _committed(merge, built, scope)


class _Merge:
    """One merge while its rows are written."""

    def __init__(
        self,
        log: TransactionLog,
        snapshot: Snapshot,
        source: MergeSource,
        clauses: MergeClauses,
        columns: tuple[str, ...],
    ) -> None:
        self.keys = None if clauses.not_matched_by_source else _keys(source, snapshot)
        """The keys as a condition, where an index finds their rows."""
        self.log = log
        self.snapshot = snapshot
        self.source = source
        self.clauses = clauses
        self.columns = columns
        self.rewritten: list[RewriteOutcome] = []
        """The splits that were written anew."""
        self.marked: list[DeletedRows] = []
        """The splits that get a deletion vector."""
        self.matched = self.deleted = self.inserted = 0

    def new_rows(self, adds: Iterable[AddAction]) -> Iterator[pa.RecordBatch]:
        """The rows of new splits: changed ones that leave theirs by a vector, then those to be inserted."""
        for add in adds:
            change = self._change(add)
            if change is not None:
                self.matched += int((change.numbers >= 0).sum())
                yield from self._changed(add, change)
        if self.clauses.not_matched == "insert":
            for batch in _unmatched_rows(self.source):
                self.inserted += batch.num_rows
                yield batch

    def _change(self, add: AddAction) -> MergeRows | None:
        """How a split changes; None when it stays as it is."""
        live, places, numbers = self._matching(add)
        self.source.matched[numbers[numbers >= 0]] = True
        matching = int((numbers >= 0).sum())
        changes = self.clauses.matched is not None and matching > 0
        loses = self.clauses.not_matched_by_source == "delete" and matching < len(live)
        if not changes and not loses:
            return None
        if len(numbers) < len(live):
            of_live = np.full(len(live), -1, np.int64)
            of_live[np.searchsorted(live, places)] = numbers
            numbers = of_live
        return MergeRows(self.source, numbers, self.clauses, self.columns, live)

    def _matching(self, add: AddAction) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The live rows of a split, those that may match, and the number of the source row of each; or -1."""
        reading, on = self.snapshot.reading, self.source.on
        if self.keys is None:
            parts = list(split_rows(reading, add, set(on)))
        else:
            ref = SplitRef.of(add)
            index = index_for(reading, ref, self.keys, settings_of(self.snapshot))
            parts = list(Filtered(reading, ref, self.keys, index).tables(None, on))
        places = np.concatenate([_NO_ROWS, *(some for some, _ in parts)])
        numbers = np.concatenate([_NO_ROWS, *(self.source.matches(rows) for _, rows in parts)])
        live = places if self.keys is None else open_split(reading.store, SplitRef.of(add)).live()
        return live, places, numbers

    def _changed(self, add: AddAction, change: MergeRows) -> Iterator[pa.RecordBatch]:
        setting = RewriteSetting.of(self.log, self.snapshot, change=change)
        leaving = change.leaving()
        deleted = DeletedRows(add, change.places[leaving], len(change.places))
        if not deleted.is_whole and uses_vector(setting, deleted):
            # Only the rows that leave are read, so these are the ones that the change is about.
            of_these = replace(change, numbers=change.numbers[leaving], places=deleted.rows)
            moved = moved_rows(replace(setting, change=of_these), deleted).rows
            self.marked.append(deleted)
            self.deleted += len(leaving) - moved.num_rows
            yield from moved.to_batches()
            return
        piece = RewriteGroup(setting, (add,))
        outcome = require_read(rewrite_values(piece) or rewrite(piece), "MERGE")
        self.rewritten.append(outcome)
        self.deleted += outcome.rows_read - outcome.rows_written


def _committed(merge: _Merge, built: Sequence[BuiltSplit], scope: Node | None) -> UpsertResult:
    log, snapshot, clauses = merge.log, merge.snapshot, merge.clauses
    removed = [add for item in merge.rewritten for add in item.sources]
    adds = [*(add for item in merge.rewritten for add in item.adds), *(split.add for split in built)]
    deleted, new = merge.deleted, merge.inserted
    updated = 0 if clauses.matched != "update" else merge.matched
    if not removed and not adds and not merge.marked:
        message = "no row of the source matches, and none is inserted"
        return UpsertResult(log.uri, NO_ACTION, snapshot.version, 0, 0, 0, 0, 0, 0, 0, message)
    vectors = VectorCommit(log, "MERGE", merge.marked) if merge.marked else None
    plan = replace_plan(
        snapshot, "MERGE", removed, adds, node=scope, inserts=clauses.not_matched == "insert",
        parameters={"on": list(merge.source.on)},
        metrics={
            **change_metrics(updated=updated, deleted=deleted, inserted=new),
            **vector_metrics(merge.marked),
        },
        truncated=[*(item.truncated for item in merge.rewritten), *(split.truncated for split in built)],
        vectors=vectors,
    )  # fmt: skip
    committed = commit_or_discard(log, plan, adds, vectors)
    after_write(log)
    rows = counted(new, "row")
    message = f"updated {updated}, deleted {deleted}, inserted {rows} in version {committed.version}"
    return UpsertResult(
        log.uri, SUCCESS, committed.version, updated, deleted, new, len(removed), len(adds),
        committed.attempts, committed.conflicts, message,
    )  # fmt: skip


def _key_columns(on: Sequence[str], snapshot: Snapshot, data: pa.Schema) -> tuple[str, ...]:
    if not on:
        raise SchemaError("a merge needs at least one key column, such as on='id'")
    keys = []
    for name in on:
        table_field = find_field(snapshot.schema, name)
        if table_field is None or find_field(data, name) is None:
            lacks, where = (snapshot.schema, "the table") if table_field is None else (data, "the source")
            message = no_column(lacks.names, name, where)
            raise SchemaError(f"{message}. Merge on columns that both have", column=name)
        if pa.types.is_nested(table_field.type):
            raise SchemaError(
                f"rows cannot be merged on {table_field.name!r}, a column of type "
                f"{type_to_sql(table_field.type)}: name columns that hold single values"
            )
        keys.append(table_field.name)
    return tuple(keys)


def _spilled(
    batches: Iterator[pa.RecordBatch],
    plan: WritePlan,
    on: tuple[str, ...],
    options: Options,
    scratch_file: Path,
) -> MergeSource:
    """Write the source to disk in the table's types, and keep its keys in memory."""
    key_batches: list[pa.Array] = []
    schema = pa.schema([item.with_nullable(True) for item in plan.schema])
    with pa.OSFile(str(scratch_file), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            if not batch.num_rows:
                continue
            rows = cast_table(batch, plan.schema, timestamps=options.write.timestamps)
            table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
            key_batches.append(key_values(table, on))
            writer.write_table(pa.Table.from_arrays(table.columns, schema=schema))
    kind = key_batches[0].type if key_batches else pa.string()
    keys = pa.concat_arrays(key_batches) if key_batches else pa.array([], kind)
    mapped = pa.ipc.open_file(pa.memory_map(str(scratch_file))).read_all()
    return MergeSource(mapped, keys, on)


def key_values(rows: pa.Table, on: Sequence[str]) -> pa.Array:
    """The key of each row as one value: the column itself, or the bytes of all of them in one."""
    columns = [
        # The two zeros are equal, as they are in SQL, but not their bytes.
        pc.add(column, pa.scalar(0, column.type)) if pa.types.is_floating(column.type) else column
        for column in map(rows.column, on)
    ]
    if len(columns) == 1:
        keys = columns[0]
    else:
        # Bytes that are no text cannot be cast to text; everything else can.
        as_bytes = [
            column if pa.types.is_binary(column.type) else column.cast(pa.string()).cast(pa.binary())
            for column in columns
        ]
        # Lengths keep ("a", "bc") and ("ab", "c") apart.
        lengths = [pc.binary_length(part).cast(pa.string()).cast(pa.binary()) for part in as_bytes]
        parts = [part for pair in zip(lengths, as_bytes, strict=True) for part in pair]
        keys = pc.binary_join_element_wise(*parts, b":")
    return keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys


def _keys(source: MergeSource, snapshot: Snapshot) -> Node | None:
    """The keys as a condition that an index answers; None where they are many, or no index has them."""
    if len(source.keys) > MOST_KEYS:
        return None
    tests: list[Node] = []
    for name in source.on:
        kind = snapshot.schema.field(name).type
        if pa.types.is_string(kind):
            values = pc.unique(source.rows.column(name)).drop_null().to_pylist()
            tests.append(In(Column((name,), kind), tuple(Literal(value, kind) for value in values)))
    node = all_of(tests) if tests else None
    return None if node is None or needed_entries(node, settings_of(snapshot)) is None else node


def _splits_with_keys(source: MergeSource, snapshot: Snapshot, scope: Node) -> list[str]:
    """The splits within whose bounds a key of the source lies, not only between its least and greatest."""
    files = snapshot.plan(scope, columns={"path", "min", "max"}).files
    holds = np.ones(files.num_rows, bool)
    for name in source.on:
        kind = snapshot.schema.field(name).type
        known = {field.name for field in files.schema.field("min").type}
        if name not in known or not _is_ordered(kind):
            continue
        keys = sorted(pc.unique(source.rows.column(name)).drop_null().to_pylist())
        bounds = [pc.struct_field(files.column(side), name).to_pylist() for side in ("min", "max")]
        for at, (least, most) in enumerate(zip(*bounds, strict=True)):
            if least is not None and most is not None:
                holds[at] &= bisect_left(keys, least) < bisect_right(keys, most)
    paths: list[str] = files.column("path").filter(pa.array(holds)).to_pylist()
    return paths


def _is_ordered(kind: pa.DataType) -> bool:
    """Whether keys of this type are compared with the bounds of splits."""
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date(kind))


def _bounds(source: MergeSource, snapshot: Snapshot) -> Node | None:
    """Minimum and maximum key for each column as a condition; None where that bounds nothing."""
    tests: list[Node] = []
    for name in source.on:
        kind = snapshot.schema.field(name).type
        if not _is_ordered(kind):
            continue
        ends = pc.min_max(source.rows.column(name))
        least, greatest = ends["min"].as_py(), ends["max"].as_py()
        if least is None:
            continue
        column = Column((name,), kind)
        tests += [
            Compare(">=", column, Literal(least, kind)),
            Compare("<=", column, Literal(greatest, kind)),
        ]
    return all_of(tests) if tests else None


def _unmatched_rows(source: MergeSource) -> Iterator[pa.RecordBatch]:
    """The source rows that matched nothing, in batches."""
    unmatched = ~source.matched
    for start in range(0, len(unmatched), _BATCH_ROWS):
        row_numbers = start + np.flatnonzero(unmatched[start : start + _BATCH_ROWS])
        if len(row_numbers):
            yield from source.rows.take(pa.array(row_numbers)).combine_chunks().to_batches()
