"""The rows that commits inserted, deleted and updated, read from the log: no commit writes anything for it.

What a commit did to a file is in its adds, removes and deletion vectors: rows of a removed split
left, rows of an added split came, and where a file got another vector the difference of the two says
which rows. Actions with `dataChange=false`, those of a merge or a fold, change no row. Where a
commit both takes rows out and brings some in, equal ones of both sides cancel out, so that what
remains is the difference of the two versions: rows that were only moved do not show.

In an UPDATE all rows that remain are images of changed rows, those that left from before it. In a
MERGE by key they are where the same key left and came, since a merge never changes a key.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.errors import (
    MissingSplitError,
    NotFoundError,
    OptionError,
    SchemaError,
    VersionNotFoundError,
)
from indextables.log.format.binding import check_tables
from indextables.log.history import Moment, Timeline, first_since, moment_of
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import Action, AddAction, CommitInfo, RemoveAction
from indextables.model.column_names import ColumnNames
from indextables.model.names import require_name
from indextables.ops.existence import existing_sizes
from indextables.ops.foreign_rows import ForeignRows
from indextables.ops.read.in_order import in_order
from indextables.ops.read.record import Record
from indextables.ops.read.row_difference import RowDifference
from indextables.ops.table_settings import require_parquet
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.evaluate.rows import mask, require_exact
from indextables.predicate.tree import Node, columns_of
from indextables.reading import Reading
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_split
from indextables.split.read.rows import to_table_schema
from indextables.split.search.filtered import Filtered
from indextables.storage.deletion_vectors import descriptor
from indextables.storage.store import scans_at_once

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"
INSERT, DELETE, PREIMAGE, POSTIMAGE = "insert", "delete", "update_preimage", "update_postimage"
_ADDED = (
    pa.field(CHANGE_TYPE, pa.string(), nullable=False),
    pa.field(COMMIT_VERSION, pa.int64(), nullable=False),
    pa.field(COMMIT_TIMESTAMP, pa.timestamp("us", "UTC"), nullable=False),
)


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """Which commits, and what of their changed rows."""

    from_version: int | None = None
    to_version: int | None = None
    from_time: Moment | None = None
    where: Any = None
    columns: Sequence[str] | None = None
    to_time: Moment | None = None


@dataclass(frozen=True, slots=True)
class SplitRows:
    """Rows of one split that came or left together: all that are live in it, or some of these."""

    ref: SplitRef
    rows: np.ndarray | None = None

    def tables(self, reading: Reading, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows, in the columns and types of the newest schema."""
        if self.rows is not None:
            yield from (table for _, table in Filtered(reading, self.ref, None).tables(self.rows, columns))
            return
        reader = open_split(reading.store, self.ref)
        for _, stored in reader.scan([name for name in columns if name in reader.columns]):
            yield to_table_schema(stored, reading.schema, columns, self.ref.partition_values)

    @property
    def bytes(self) -> int:
        """About how much of its file these rows are."""
        size = self.ref.size or 0
        if self.rows is None or not self.ref.num_records:
            return size
        return size * len(self.rows) // self.ref.num_records


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """The files whose rows one commit changed: as they were, and as they are."""

    version: int
    time_ms: int
    operation: str | None
    keys: tuple[str, ...]
    """The columns by which a MERGE matched rows."""
    before: tuple[RemoveAction | AddAction, ...]
    after: tuple[AddAction, ...]

    @property
    def bytes(self) -> int:
        """How large the files are."""
        return sum(file.size or 0 for file in (*self.before, *self.after))

    def parts(self) -> list[CommitFiles]:
        """The same in parts that can be read apart, because no row of one can be equal to one of another.

        Rows are compared only where some left and some came; a DELETE that names its rows brings none.
        """
        places = {file.path: at for at, file in enumerate(self.before)}
        by_vectors = self.operation == "DELETE" and all(file.path in places for file in self.after)
        if self.before and self.after and not by_vectors:
            return [self]
        after = {file.path: (file,) for file in self.after}
        return [
            *(replace(self, before=(file,), after=after.pop(file.path, ())) for file in self.before),
            *(replace(self, before=(), after=pair) for pair in after.values()),
        ]


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """Which changes are read, and into what; an executor gets it as it is."""

    reading: Reading
    table_id: str
    schema: pa.Schema
    """The columns of changes."""
    shown: pa.Schema
    node: Node | None
    first: int
    last: int


def change_schema(snapshot: Snapshot) -> pa.Schema:
    """The columns of changes: those of a version, then what happened, in which version and when."""
    taken = [field.name for field in _ADDED if field.name.lower() in map(str.lower, snapshot.schema.names)]
    if taken:
        raise SchemaError(
            f"{snapshot.store.uri} has a column {taken[0]!r}, which changes have as well; they can only be "
            "read after that column is renamed",
            column=taken[0],
        )
    return pa.schema([*snapshot.schema, *_ADDED])


def changes(
    log: TransactionLog, snapshot: Snapshot, request: ChangeRequest
) -> tuple[pa.RecordBatchReader, Record]:
    """The changes of some commits in their order, up to the given version; of each, what left comes first."""
    timeline = log.timeline()
    plan = plan_changes(log, snapshot, request, timeline)
    record = Record(snapshot)

    def batches() -> Iterator[pa.RecordBatch]:
        reader = ChangeReader(log, plan, timeline, lambda rows: record.read(rows, files=0))
        for version in range(plan.first, plan.last + 1):
            yield from reader.batches(version)

    return pa.RecordBatchReader.from_batches(plan.shown, batches()), record


def plan_changes(
    log: TransactionLog, snapshot: Snapshot, request: ChangeRequest, timeline: Timeline
) -> ChangePlan:
    """Which commits are read, after checking that the log has them; no file is looked at."""
    if isinstance(snapshot, ForeignRows):
        raise OptionError(
            f"{snapshot.store.uri} is a companion, whose rows belong to another table; ask that table for "
            "its changes"
        )
    require_parquet(snapshot)
    first, last = _range(log, snapshot, request, timeline)
    plan = plan_versions(snapshot, first, last)
    node = as_node(request.where, plan.schema, snapshot.time_zone)
    if node is not None:
        require_exact(node)
    return replace(plan, shown=_columns(plan.schema, request.columns), node=node)


def plan_versions(snapshot: Snapshot, first: int, last: int) -> ChangePlan:
    """All changes of some versions, in the columns of a snapshot."""
    schema = change_schema(snapshot)
    return ChangePlan(snapshot.reading, snapshot.table_id, schema, schema, None, first, last)


def _columns(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    if columns is None:
        return schema
    if isinstance(columns, str):
        raise SchemaError(f"columns is the text {columns!r}; give a list of names")
    return pa.schema([schema.field(require_name(schema.names, name)) for name in dict.fromkeys(columns)])


def _range(
    log: TransactionLog, snapshot: Snapshot, request: ChangeRequest, timeline: Timeline
) -> tuple[int, int]:
    """The first and the last version, after checking that the log has the commits of all of them."""
    first = request.from_version
    if (first is None) == (request.from_time is None):
        raise OptionError("changes begin with a version or at a time; give one of from_version and from_time")
    if request.from_time is not None:
        moment_ms = moment_of(request.from_time, lambda: snapshot.time_zone, "from_time")
        first = first_since(timeline, moment_ms, log.uri)
    last = request.to_version
    if request.to_time is not None:
        if last is not None:
            raise OptionError("changes end with a version or at a time; give one of to_version and to_time")
        moment_ms = moment_of(request.to_time, lambda: snapshot.time_zone, "to_time")
        at = timeline.at(moment_ms)
        # What was committed after this version is not asked for.
        last = -1 if at is None else min(timeline.files[at].version, snapshot.version)
    is_open = last is None
    last = snapshot.version if last is None else last
    assert first is not None
    for name, value in [("from_version", first), ("to_version", last)]:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise OptionError(f"{name}={value!r} is not the number of a version", value=repr(value))
    if last > snapshot.version:
        raise VersionNotFoundError(
            f"{log.uri} is open at version {snapshot.version}, so there are no changes up to version {last}; "
            "refresh() moves to the newest version",
            version=last, uri=log.uri,
        )  # fmt: skip
    if first > last and not (is_open and first == last + 1):
        raise OptionError(f"changes from version {first} to {last}: the first comes after the last")
    oldest = _oldest(timeline, last)
    if first <= last and (oldest is None or first < oldest):
        raise _gone(log, first, last, oldest, "the log no longer has its commit")
    return first, last


def _oldest(timeline: Timeline, last: int) -> int | None:
    """The oldest version from which on the log has every commit up to the last one."""
    versions = {file.version for file in timeline.files}
    oldest = None
    for version in range(last, -1, -1):
        if version not in versions:
            break
        oldest = version
    return oldest


def _gone(log: TransactionLog, first: int, last: int, oldest: int | None, why: str) -> VersionNotFoundError:
    offer = (
        f"the oldest version from which they can be given is {oldest}"
        if oldest is not None and oldest <= last
        else f"no changes up to version {last} can be given; read the table as a whole and go on after it"
    )
    return VersionNotFoundError(
        f"{log.uri}: the changes of version {first} cannot be given, because {why}; {offer}.",
        version=first, oldest=oldest, uri=log.uri,
    )  # fmt: skip


def plan_commit(
    reading: Reading, before: Sequence[RemoveAction | AddAction], after: Sequence[AddAction]
) -> tuple[list[SplitRows], list[SplitRows]]:
    """The rows that left and those that came, from the files as they were and as they are."""
    deleted, inserted = [], []
    # Files are read by the names of the version that is read, whatever columns were called when they came.
    adds = {add.path: replace(add, names=reading.names) for add in after}
    for gone in before:
        add = adds.pop(gone.path, None)
        was = _ref(gone, reading.names)
        if add is None:
            deleted.append(SplitRows(was))
            continue
        new = SplitRef.of(add)
        old = replace(new, vector=was.vector)
        if old.vector == new.vector:
            continue
        was_hidden, is_hidden = (_hidden(reading, ref) for ref in (old, new))
        left = np.setdiff1d(is_hidden, was_hidden, assume_unique=True)
        back = np.setdiff1d(was_hidden, is_hidden, assume_unique=True)
        deleted += [SplitRows(old, left)] if len(left) else []
        inserted += [SplitRows(new, back)] if len(back) else []
    return deleted, [*inserted, *(SplitRows(SplitRef.of(add)) for add in adds.values())]


def _ref(action: RemoveAction | AddAction, names: ColumnNames | None) -> SplitRef:
    if isinstance(action, AddAction):
        return SplitRef.of(replace(action, names=names))
    values = action.partition_values or {}
    return SplitRef(
        action.path,
        action.size or None,
        partition_values=values if names is None else names.of_values(values),
        vector=descriptor(action.deletion_vector),
        names=names,
    )


def _hidden(reading: Reading, ref: SplitRef) -> np.ndarray:
    hidden = open_split(reading.store, ref).hidden
    return np.zeros(0, np.int64) if hidden is None else hidden


class ChangeReader:
    """Reads the changes of one commit after the other."""

    def __init__(
        self,
        log: TransactionLog,
        plan: ChangePlan,
        timeline: Timeline | None = None,
        note: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._log = log
        self._plan = plan
        self._reading = plan.reading
        self._listed = timeline
        self._note = note
        node, names = plan.node, plan.reading.schema.names
        needed = {*plan.shown.names, *(column.path[0] for column in (columns_of(node) if node else ()))}
        # A count of rows needs a column too.
        self._needed = [name for name in names if name in needed] or names[:1]

    @cached_property
    def _timeline(self) -> Timeline:
        return self._listed or self._log.timeline()

    @cached_property
    def _places(self) -> dict[int, int]:
        """Where the file of each version is in the timeline."""
        return {file.version: at for at, file in enumerate(self._timeline.files)}

    def batches(self, version: int) -> Iterator[pa.RecordBatch]:
        """The changes of one version, as far as they were asked for."""
        yield from self.rows(self.files(version))

    def files(self, version: int) -> CommitFiles:
        """The files whose rows a version changed, by its commit."""
        try:
            return self._files(version)
        except NotFoundError as gone:
            # Cleaned up since the log was listed.
            oldest = _oldest(self._log.timeline(), self._plan.last)
            raise _gone(
                self._log, version, self._plan.last, oldest, "the log no longer has its commit"
            ) from gone

    def rows(self, commit: CommitFiles) -> Iterator[pa.RecordBatch]:
        """The changed rows of a commit."""
        try:
            for kind, rows in self._changes(commit):
                yield from self._finished(rows, kind, commit)
        except MissingSplitError as gone:
            last = self._plan.last
            oldest = self._oldest_with_files(commit.version)
            raise _gone(
                self._log, commit.version, last, oldest, f"a file it needs is gone ({gone})"
            ) from gone

    def _files(self, version: int) -> CommitFiles:
        at = self._places.get(version)
        if at is None:
            raise NotFoundError(f"{self._log.uri} has no file for version {version}", uri=self._log.uri)
        actions = self._actions(at)
        info = next((one for one in reversed(actions) if isinstance(one, CommitInfo)), CommitInfo())
        before, after = _files(actions)
        if info.operation == "RESTORE":
            before += self._still_live(version, before, after)
        # A key may have been renamed since.
        has_keys = info.operation == "MERGE" and self._reading.names is None
        keys = info.operation_parameters.get("on") if has_keys else None
        return CommitFiles(
            version, self._timeline.time_ms(at), info.operation,
            tuple(name for name in keys or () if name in self._reading.schema.names),
            tuple(before), tuple(after),
        )  # fmt: skip

    def _actions(self, at: int) -> Sequence[Action]:
        file = self._timeline.files[at]
        actions = self._log.source.read_commit(file)
        check_tables([(file.version, actions)], self._plan.table_id, self._log.uri)
        return actions

    def _still_live(
        self, version: int, removed: Sequence[RemoveAction | AddAction], added: Sequence[AddAction]
    ) -> list[AddAction]:
        """Files that were live, and are named again by a RESTORE since their entries differed otherwise."""
        paths = {add.path for add in added} - {one.path for one in removed}
        return self._log.snapshot(version - 1).adds(paths) if paths else []

    def _changes(self, commit: CommitFiles) -> Iterator[tuple[str, pa.Table]]:
        deleted, inserted = plan_commit(self._reading, commit.before, commit.after)
        if not deleted or not inserted:
            kind = DELETE if deleted else INSERT
            before = PREIMAGE if deleted and commit.operation == "UPDATE" else kind
            for rows in self._read(deleted or inserted, self._needed):
                yield before, rows
            return
        names = self._reading.schema.names
        parts = [self._read(side, names) for side in (deleted, inserted)]
        size = sum(part.bytes for part in (*deleted, *inserted))
        with RowDifference(self._reading.schema, commit.keys, size) as difference:
            for left, came in difference.of(*parts):
                yield from self._named(commit, left, came, difference)

    def _named(
        self, commit: CommitFiles, left: pa.Table, came: pa.Table, difference: RowDifference
    ) -> Iterator[tuple[str, pa.Table]]:
        if commit.operation == "UPDATE":
            yield PREIMAGE, left
            yield POSTIMAGE, came
            return
        images = difference.same_key(left, came) if commit.keys else (None, None)
        for rows, image, kind, other in [
            (left, images[0], PREIMAGE, DELETE),
            (came, images[1], POSTIMAGE, INSERT),
        ]:
            if image is None:
                yield other, rows
                continue
            yield kind, rows.filter(pa.array(image))
            yield other, rows.filter(pa.array(~image))

    def _read(self, parts: Sequence[SplitRows], columns: Sequence[str]) -> Iterator[pa.Table]:
        pieces = [partial(part.tables, self._reading, columns) for part in parts]
        for rows in in_order(pieces, scans_at_once(self._reading.store)):
            self._note(rows.num_rows)
            yield rows

    def _finished(self, rows: pa.Table, kind: str, commit: CommitFiles) -> Iterator[pa.RecordBatch]:
        """The rows with what happened to them, those for which the filter is true."""
        if not rows.num_rows:
            return
        values = [kind, commit.version, commit.time_ms * 1000]
        added = [
            pa.repeat(pa.scalar(value, field.type), rows.num_rows)
            for value, field in zip(values, _ADDED, strict=True)
        ]
        whole = pa.Table.from_arrays([*rows.columns, *added], schema=pa.schema([*rows.schema, *_ADDED]))
        if self._plan.node is not None:
            whole = whole.filter(mask(self._plan.node, whole, self._plan.schema, self._reading.zone))
        shown = self._plan.shown
        for batch in whole.to_batches():
            columns = batch.select(shown.names)
            yield columns.cast(shown) if shown.names else columns

    def _oldest_with_files(self, version: int) -> int | None:
        """The version from which on all files are there that its changes and those after it need."""
        needed: dict[int, set[str]] = {}
        for number in range(version, self._plan.last + 1):
            with contextlib.suppress(NotFoundError):
                before, after = _files(self._actions(self._places[number]))
                needed[number] = {one.path for one in (*before, *after)}
        paths = sorted(set().union(*needed.values()))
        sizes = existing_sizes(self._log.store, paths, self._log.runtime, parallelism=4)
        broken = [number for number, some in needed.items() if some - sizes.keys()]
        return max(broken, default=version) + 1


def _files(actions: Sequence[Action]) -> tuple[list[RemoveAction | AddAction], list[AddAction]]:
    """The files whose rows a commit changed: as they were, and as they are."""
    before: dict[str, RemoveAction | AddAction] = {}
    after: dict[str, AddAction] = {}
    for action in actions:
        if isinstance(action, RemoveAction) and action.data_change:
            before.setdefault(action.path, action)
            after.pop(action.path, None)
        elif isinstance(action, AddAction) and action.data_change:
            after[action.path] = action
    return list(before.values()), list(after.values())
