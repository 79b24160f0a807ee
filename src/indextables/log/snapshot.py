"""A snapshot is one version of a table: schema, protocol, properties, and the live files.

Opening one reads the checkpoint's head and the commits after it. A replay engine is asked
for the live files per query, with the columns and the predicate of that query; nothing
holds one object per file unless the caller asks for whole adds.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from indextables.cache import TtlCache
from indextables.errors import (
    ADVICE_ON_DAMAGE,
    CorruptLogError,
    NotFoundError,
    SchemaError,
    VersionNotFoundError,
)
from indextables.lazy import later, pa
from indextables.log.format.dialect import Checkpoint, Dialect
from indextables.log.format.protocol import DELETION_VECTORS, LEGACY, check_readable, has_feature
from indextables.log.replay.long_tail import LongTail
from indextables.log.replay.rule import (
    LiveFiles,
    ReplayEngine,
    ReplayMetrics,
    ReplayRequest,
    SummingEngine,
    Sums,
    Tail,
    choose,
    explain_choice,
)
from indextables.log.scans import FILTERS, SKIPPING_TOTALS
from indextables.log.state import LogSource, State, cleaned_away, load_state, metadata_of, warn_of_damage
from indextables.model.actions import (
    AddAction,
    CommitInfo,
    MetadataAction,
    ProtocolAction,
    SkipAction,
    TxnAction,
)
from indextables.model.column_mapping import names_of
from indextables.model.column_names import ColumnNames
from indextables.model.names import no_column
from indextables.options import Options
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.predicate.prune.missing import log_missing, shows_missing
from indextables.reading import Reading
from indextables.records import dataclass
from indextables.runtime import Runtime
from indextables.storage.deletion_vectors import number_deleted, vector_file
from indextables.storage.store import Store

if TYPE_CHECKING:
    from indextables.log.adds import file_table
    from indextables.log.replay import sums
    from indextables.log.segment import Segment
    from indextables.model import fields, stats
    from indextables.model.stats import FileStats
    from indextables.predicate import tree
    from indextables.predicate.build import from_sql
    from indextables.predicate.prune import rule
    from indextables.predicate.tree import Node
else:
    sums = later("indextables.log.replay.sums")
    fields = later("indextables.model.fields")
    file_table = later("indextables.log.adds.file_table")
    stats = later("indextables.model.stats")
    rule = later("indextables.predicate.prune.rule")
    from_sql = later("indextables.predicate.build.from_sql")
    tree = later("indextables.predicate.tree")

logger = logging.getLogger(__name__)

T = TypeVar("T")

_ABSENT = object()
_BASE = "adds"
_CACHED_ADDS = 100_000
_FEW_ADDS = 1_000
_LOOPED = 100
"""Up to this many files are pruned one by one: Arrow calls dozens of functions for any number of them."""
_PARSED = 64
_CACHED_TEXT = 2_000
"""Longer texts are parsed each time: lists of identifiers, which hardly come again."""


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The files a query needs, and how they were chosen."""

    files: pa.Table
    metrics: PruneMetrics
    replay: ReplayMetrics


@dataclass(frozen=True, slots=True)
class AddPlan:
    """The same files as whole actions, sorted by path."""

    adds: tuple[AddAction, ...]
    metrics: PruneMetrics
    replay: ReplayMetrics


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all live files."""

    num_files: int
    size_bytes: int
    num_records: int | None
    """Rows that are not deleted; None when their number is unknown for any file."""
    index_bytes: int = 0
    """The part of the size that search indexes take."""


class Snapshot:
    """One version of a table. It is immutable: the same call always returns the same result."""

    _summed: ClassVar[tuple[str, ...]] = ("size", "num_records", "index_length", "num_deleted")
    """The columns of `files()` from which the sums are computed."""
    _vectors: ClassVar[str] = "num_deleted"
    """The column of `files()` that only files with a deletion vector have."""

    def __init__(self, source: LogSource, state: State) -> None:
        self.source = source
        self._state = state
        self._lock = threading.RLock()
        self._derived: dict[str, Any] = {}
        self._parsed: TtlCache[Any, Any] = TtlCache(math.inf, _PARSED)
        self._rejected: list[object] = []
        self._last_adds: tuple[frozenset[str], tuple[AddAction, ...]] | None = None
        self._require_readable()

    def __repr__(self) -> str:
        return f"Snapshot({self.store.uri!r}, version={self.version})"

    @property
    def state(self) -> State:
        """The segment, the checkpoint's head and the reduced tail."""
        return self._state

    @property
    def segment(self) -> Segment:
        """The log files that make this version."""
        return self._state.segment

    @property
    def version(self) -> int:
        """The version's number."""
        return self._state.segment.version

    @property
    def store(self) -> Store:
        """The store that holds the table."""
        return self.source.store

    @property
    def dialect(self) -> Dialect:
        """The dialect of its log."""
        return self.source.dialect

    def opened_with(self) -> Options:
        """What the caller gave, to open the table once more. What a read obeys is `reading`."""
        return self.source.options

    @property
    def settings(self) -> Options:
        """The caller's options, with the table's properties replacing defaults, for reads and writes."""
        options = self.opened_with()
        return self.once("settings", lambda: options.over(self.metadata.configuration, self.store.uri))

    @property
    def reading(self) -> Reading:
        """What every read of this version obeys."""
        return self.once("reading", lambda: Reading(self.store, self.schema, self.settings, self.names))

    @property
    def time_zone(self) -> str:
        """The time zone for times without an offset, in conditions and queries."""
        return self.settings.search.time_zone

    @property
    def runtime(self) -> Runtime:
        """The runtime it was opened with."""
        return self.source.runtime

    @property
    def protocol(self) -> ProtocolAction:
        """Which readers and writers the table asks for; 1/1 when it does not say."""
        head = self._state.head
        return self._state.tail.protocol or (None if head is None else head.protocol) or LEGACY

    @property
    def metadata(self) -> MetadataAction:
        """Schema, partitioning and properties."""
        head = self._state.head
        metadata = self._state.tail.metadata or (None if head is None else head.metadata)
        if metadata is None:
            raise CorruptLogError(
                f"{self.store.uri}: version {self.version} has no metaData action, so its schema is unknown. "
                f"{ADVICE_ON_DAMAGE}",
                version=self.version, uri=self.store.uri,
            )  # fmt: skip
        return metadata

    @property
    def table_id(self) -> str:
        """The id of the table's log: set when the table was created, and new after each repair."""
        return self.metadata.id

    @property
    def split_table_id(self) -> str:
        """The table id in the footers of the splits; a repair does not change it."""
        return self.metadata.split_table_id or self.metadata.id

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return self.once("schema", self._read_schema)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns, in order."""
        return self.metadata.partition_columns

    @property
    def names(self) -> ColumnNames | None:
        """The names under which columns are stored, in the log and in splits, where they are others."""
        return self.once("names", lambda: names_of(self.metadata))

    @property
    def stored_schema(self) -> pa.Schema:
        """The table's columns under their stored names."""
        return self.schema if self.names is None else self.names.stored_schema(self.schema)

    @property
    def stored_partition_columns(self) -> tuple[str, ...]:
        """The stored names of the partition columns."""
        columns = self.partition_columns
        return columns if self.names is None else tuple(self.names.stored(columns))

    @property
    def skips(self) -> dict[str, SkipAction]:
        """The newest skip per path, expired ones included while the log has them."""
        head = self._state.head
        carried = {skip.path: skip for skip in head.skips} if head else {}
        return {**carried, **self._state.tail.skips}

    @property
    def txns(self) -> dict[str, TxnAction]:
        """The newest transaction per application, the one that was committed last at the end."""
        head = self._state.head
        carried = {txn.app_id: txn for txn in head.txns} if head else {}
        newer = self._state.tail.txns
        return {**{app: txn for app, txn in carried.items() if app not in newer}, **newer}

    @property
    def info(self) -> CommitInfo | None:
        """The commitInfo of this version; None where its file is gone or holds none."""
        return self.once("info", self._read_info)

    @property
    def timestamp_ms(self) -> int:
        """When the version was committed: the time in its commitInfo, else its file's time."""
        info, file = self.info, self.segment.head
        if info is not None and info.timestamp is not None:
            return info.timestamp
        if file is not None:
            return file.modified_ms
        return self.metadata.created_time or 0

    @property
    def num_files(self) -> int:
        """How many files are live."""
        return self.totals.num_files

    @property
    def size_bytes(self) -> int:
        """Their size together."""
        return self.totals.size_bytes

    @property
    def num_records(self) -> int | None:
        """Their rows together; None when it is unknown for any file."""
        return self.totals.num_records

    @property
    def totals(self) -> Totals:
        """Number, size and rows of the live files."""
        return self.once("totals", self._sum)

    @property
    def num_files_hint(self) -> int | None:
        """About how many files are live, without reading them; None when unknown."""
        checkpoint, head = self._state.base, self._state.head
        added, removed = self._state.tail.size()
        if self._state.fold is not None:
            head = None
        if checkpoint is None:
            # For an undecoded tail this counts lines, and one file may have several.
            return max(0, added - removed) if isinstance(self._state.tail, LongTail) else added
        counted = head.num_files if head and head.num_files is not None else checkpoint.num_files
        return None if counted is None else counted + added

    def filter_of(self, where: Any) -> Node | None:
        """A filter as a tree over the columns of this version; that of a text is kept."""
        if where is None:
            return None

        def parse() -> Node | None:
            return from_sql.as_node(where, self.schema, self.time_zone)

        return self.parsed(where, "filter", parse) if isinstance(where, str) else parse()

    def files_schema(self, columns: Sequence[str] | None = None) -> pa.Schema:
        """The columns of `files()`, or those that are named, in the order they are named in."""
        names = self._require_file_columns(columns, file_table.COLUMNS)
        schema = file_table.files_schema(self.schema, self.partition_columns, names)
        return schema if names is None else pa.schema([schema.field(name) for name in names])

    @staticmethod
    def _require_file_columns(
        columns: Sequence[str] | None, there_are: Sequence[str]
    ) -> tuple[str, ...] | None:
        """The names of columns of `files()`, each once; SchemaError if there is no such column."""
        if columns is None:
            return None
        if isinstance(columns, str) or not columns:
            raise SchemaError(f"columns is {columns!r}; give a list of names among {', '.join(there_are)}")
        for name in columns:
            if name not in there_are:
                raise SchemaError(no_column(there_are, name, "files()"), column=name)
        return tuple(dict.fromkeys(columns))

    def plan(
        self,
        where: Any = None,
        columns: Collection[str] | None = None,
        engine: str = "auto",
        *,
        explain: bool = False,
        noted: bool = True,
    ) -> FilePlan:
        """Choose the files a predicate cannot exclude; `columns` are columns of the files() form."""
        node = self.filter_of(where)
        plan = self._plan(node, columns, engine, explain=explain)
        if noted:
            self.note_filter(node, plan.metrics)
        return plan

    def note_filter(self, node: Node | None, metrics: PruneMetrics) -> None:
        """Add a query with this filter to what the process sums up about filters."""
        if node is not None:
            SKIPPING_TOTALS.note(self.store.uri, metrics)
            FILTERS.note(self.store.uri, node)

    def plan_adds(self, node: Node) -> AddPlan:
        """Choose the files a predicate cannot exclude, as whole actions; no query is noted."""
        few = self.few_adds(node)
        if few is None:
            plan = self._plan(node, {"path"})
            paths = plan.files.column("path").to_pylist()
            return AddPlan(tuple(self.adds(paths)) if paths else (), plan.metrics, plan.replay)
        started = time.perf_counter()
        files = [(statistics, add.values) for add, statistics in few]
        stay, metrics = rule.prune_each(node, files, self.partition_columns)
        adds = tuple(add for (add, _), stays in zip(few, stay, strict=True) if stays)
        why = explain_choice(self.settings, len(few), "auto")
        seconds = {"replay": time.perf_counter() - started}
        return AddPlan(adds, metrics, ReplayMetrics("reference", why=why, seconds=seconds))

    def few_adds(self, node: Node) -> Sequence[tuple[AddAction, FileStats]] | None:
        """All live files with their statistics, if they are few and replayed in this process."""
        hint = self.num_files_hint
        if hint is None or hint > _LOOPED or shows_missing(node) or self._engine("auto").name == "spark":
            return None
        return self.once("few adds", lambda: tuple((add, stats.of_add(add)) for add in self.adds()))

    def _plan(
        self,
        node: Node | None,
        columns: Collection[str] | None,
        engine: str = "auto",
        *,
        explain: bool = False,
    ) -> FilePlan:
        chosen = self._engine(engine)
        shown = None if columns is None else frozenset(columns)
        read = shown | {"min", "max"} if shown is not None and shows_missing(node) else shown

        def replay(state: State) -> LiveFiles:
            return chosen.replay(self._request(state, node, read, explain=explain))

        started = time.perf_counter()
        live = self._sound(replay)
        seconds = live.replay.seconds or {"replay": time.perf_counter() - started}
        files = live.files if self.names is None else self._named(live.files)
        if node is not None and shows_missing(node):
            log_missing(node, files, self.partition_columns)
            files = files.select([name for name in files.column_names if shown is None or name in shown])
        why = explain_choice(self.settings, self.num_files_hint, engine)
        return FilePlan(files, live.metrics, replace(live.replay, why=why, seconds=seconds))

    def _named(self, files: pa.Table) -> pa.Table:
        """The files() form under the table's names; the fields of its structs are in the order of columns."""
        shown = file_table.files_schema(self.schema, self.partition_columns, files.column_names)
        arrays = []
        for name, column in zip(files.column_names, files.columns, strict=True):
            kind = shown.field(name).type
            if name in file_table.BY_COLUMN:
                chunks = [_with_fields(chunk, kind) for chunk in column.chunks]
                arrays.append(pa.chunked_array(chunks, kind))
            else:
                arrays.append(column)
        return pa.Table.from_arrays(arrays, schema=shown)

    def sums(self, columns: Collection[str], engine: str = "auto") -> Sums:
        """Sums of columns of the files() form; where a cluster replays the log, only they leave it."""
        chosen, summed = self._engine(engine), frozenset(columns)
        if isinstance(chosen, SummingEngine):
            result = self._sound(lambda state: chosen.sums(self._request(state, None, summed, explain=False)))
            assert result.replay is not None
            why = explain_choice(self.settings, self.num_files_hint, engine)
            return replace(result, replay=replace(result.replay, why=why))
        plan = self.plan(columns=summed, engine=engine)
        return sums.sums_of(plan.files, columns, plan.replay)

    def _engine(self, engine: str) -> ReplayEngine:
        engines = {**self.source.engines, **self.runtime.engines}
        selected: ReplayEngine = engines[choose(self.settings, self.num_files_hint, engines.keys(), engine)]
        return selected

    def files(self, where: Any = None, engine: str = "auto") -> pa.Table:
        """The live files, one row each, sorted by path."""
        return self.plan(where, engine=engine).files

    def live_paths(self) -> pa.StringArray:
        """The paths of the live files, sorted."""
        column = self.plan(columns=()).files.column("path")
        return pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)

    @property
    def has_vectors(self) -> bool:
        """Whether rows of a live file are deleted by a vector."""
        if not has_feature(self.protocol, DELETION_VECTORS):
            return False
        name = self._vectors
        return self.once("has vectors", lambda: self.sums((name,)).counts[name] > 0)

    def vector_files(self) -> frozenset[str]:
        """The paths of the files that hold deletion vectors of the live files."""
        if not self.has_vectors:
            return frozenset()
        ids = self.plan(columns={"dv"}).files.column("dv").unique().to_pylist()
        return frozenset(file for one in ids if one is not None and (file := vector_file(one)) is not None)

    def adds(self, paths: Collection[str] | None = None) -> list[AddAction]:
        """Whole add actions, unknown fields included, sorted by path; of all live files or of some."""
        chosen = None if paths is None else frozenset(paths)
        if chosen is not None and self._last_adds is not None and self._last_adds[0] == chosen:
            return list(self._last_adds[1])
        adds = self._sound(lambda state: list(self._stream(state, chosen)))
        if self.names is not None:
            adds = [replace(add, names=self.names) for add in adds]
        adds.sort(key=lambda add: add.path)
        if chosen is not None:
            # A commit first checks its sources and then builds from them; both use this one read of the
            # checkpoint.
            self._last_adds = chosen, tuple(adds)
        return adds

    def recent_adds(self) -> Collection[AddAction] | None:
        """The live files as actions, if they are few and there is no checkpoint; else None.

        The actions are in memory then, and a short program need not load the module that sums up columns.
        """
        tail = self._state.tail
        if self._state.base is not None or isinstance(tail, LongTail) or len(tail.adds) > _FEW_ADDS:
            return None
        return tail.adds.values()

    def _require_readable(self) -> None:
        """Raise when the table needs a newer reader; a dialect may have its own rules."""
        # The caller's own options: no property of a table can tell readers that they need not understand it.
        check_readable(self.protocol, self.opened_with(), self.store.uri)

    def _request(
        self, state: State, where: Node | None, columns: frozenset[str] | None, *, explain: bool
    ) -> ReplayRequest:
        """The request to a replay engine; a dialect may extend it."""
        if where is not None and self.names is not None:
            where = tree.with_columns(where, self.names.stored_names)
        return ReplayRequest(
            self.store, self.dialect, self.source.reader, state.segment, state.tail, self.stored_schema,
            self.stored_partition_columns, self.settings, where, columns, explain, state.memo, state.fold,
        )  # fmt: skip

    def with_checkpoint(self, checkpoint: Checkpoint) -> Snapshot:
        """The same version, aware of a checkpoint that was just written."""
        old = self.segment
        newest, newest_bytes = max(
            (old.newest_checkpoint, old.newest_checkpoint_bytes), (checkpoint.version, checkpoint.size_bytes)
        )
        segment = replace(old, newest_checkpoint=newest, newest_checkpoint_bytes=newest_bytes)
        return Snapshot(self.source, replace(self._state, segment=segment))

    def with_columns_of(self, other: MetadataAction) -> Self:
        """The same version with the columns of another one; a file without such a column has nulls there."""
        return self.with_metadata(
            replace(
                self.metadata,
                schema_string=other.schema_string,
                partition_columns=other.partition_columns,
                column_mapping=other.column_mapping,
            )
        )

    def with_metadata(self, metadata: MetadataAction) -> Self:
        """The same files with another description."""
        if metadata == self.metadata:
            return self
        tail = replace(self._state.tail, metadata=metadata)
        return type(self)(self.source, replace(self._state, tail=tail, memo={}))

    def with_files(self, adds: Iterable[AddAction]) -> Self:
        """The same version with other files: those that some commits added."""
        files = {self.dialect.key(add): add for add in adds}
        tail = Tail(self.version, files, protocol=self.protocol, metadata=self.metadata)
        return type(self)(self.source, State(replace(self.segment, checkpoint=None, commits=()), None, tail))

    def _stream(self, state: State, paths: frozenset[str] | None) -> Iterator[AddAction]:
        tail, checkpoint = state.tail, state.base
        yield from [add for add in tail.adds.values() if paths is None or add.path in paths]
        left = paths
        if paths is not None and self.dialect.name == "native":
            # The path is the key of a native log: paths that the tail touched need no look at the checkpoint.
            left = frozenset(path for path in paths if path not in tail.adds and path not in tail.removed)
        if checkpoint is None or (left is not None and not left):
            return
        for add in self._base_adds(state, checkpoint, left):
            key = self.dialect.key(add)
            if key not in tail.adds and key not in tail.removed:
                yield add

    def _base_adds(
        self, state: State, checkpoint: Checkpoint, paths: frozenset[str] | None
    ) -> Iterable[AddAction]:
        """The adds of the checkpoint; those of a small one are cached once all were read."""
        cached: tuple[AddAction, ...] | None = state.memo.get(_BASE)
        if cached is not None:
            return cached if paths is None else (add for add in cached if add.path in paths)
        adds = self.source.reader.adds(state.base_store(self.store), checkpoint, paths)
        if paths is not None or (self.num_files_hint or _CACHED_ADDS) >= _CACHED_ADDS:
            return adds
        cached = state.memo[_BASE] = tuple(adds)
        return cached

    def fall_back(self, state: State, bad: Exception) -> None:
        """Rebuild this version from other files than those of `state`, whose checkpoint is damaged or gone.

        Raises when there are none.
        """
        with self._lock:
            if self._state is not state:
                return
            if state.fold is not None:
                # A damaged line is reported by the commit that holds it, which is read again for that.
                self._state = load_state(self.source, self.version, self._rejected, fold=False)
                return
            if state.segment.checkpoint is None:
                raise bad
            warn_of_damage(self.store.uri, str(bad))
            self._rejected.append(state.segment.checkpoint.identity)
            try:
                sound = load_state(self.source, self.version, self._rejected)
            except (CorruptLogError, VersionNotFoundError) as lost:
                raise (cleaned_away(self.source, self.version) or lost) from bad
            if _table_id(sound) != _table_id(state):
                raise VersionNotFoundError(
                    f"{self.store.uri}: version {self.version} is gone: the table was created again; "
                    "open it again.",
                    version=self.version, uri=self.store.uri,
                ) from bad  # fmt: skip
            self._state = sound
            self._derived.clear()
            self._parsed.invalidate()

    def _sound(self, question: Callable[[State], T]) -> T:
        """Run a query on the files; if the checkpoint turns out damaged, repeat it on an older one."""
        while True:
            state = self._state
            try:
                return question(state)
            except (CorruptLogError, NotFoundError) as bad:
                self.fall_back(state, bad)

    def _read_schema(self) -> pa.Schema:
        return fields.schema_from_json(self.metadata.schema_string)

    def _sum(self) -> Totals:
        adds = self.recent_adds()
        counts = [add.num_records for add in adds or () if add.num_records is not None]
        if adds is not None and len(counts) == len(adds):
            size, index = sum(add.size for add in adds), sum(add.hotcache_length or 0 for add in adds)
            deleted = sum(number_deleted(add.deletion_vector) for add in adds if add.deletion_vector)
            return Totals(len(adds), size, sum(counts) - deleted, index)
        # All columns in one query: for a JSON checkpoint even one column means a pass over all the text.
        sums = self.sums(self._summed)
        counted = sums.counts["num_records"] == sums.num_files
        records = sums.sums["num_records"] - sums.sums.get("num_deleted", 0) if counted else None
        return Totals(sums.num_files, sums.sums["size"], records, sums.sums.get("index_length", 0))

    def _read_info(self) -> CommitInfo | None:
        if self.segment.commits:
            return self._state.tail.info
        try:
            # A listing may include the version's checkpoint and yet miss a commit made meanwhile.
            file = self.segment.head or self.source.commit_file(self.version)
            actions = self.source.read_commit(file)
        except NotFoundError:
            return None
        return next((action for action in actions if isinstance(action, CommitInfo)), None)

    def parsed(self, text: str, use: Hashable, parse: Callable[[], T]) -> T:
        """What a text means on this version, parsed once: the newest texts of each use are kept."""
        key = use, text
        cached: T | None = self._parsed.get(key) if len(text) <= _CACHED_TEXT else None
        if cached is not None:
            return cached
        meaning = parse()
        if len(text) <= _CACHED_TEXT:
            self._parsed.put(key, meaning)
        return meaning

    def once(self, name: str, make: Callable[[], T]) -> T:
        """A value derived from this version: computed on first use and cached."""
        value: Any = self._derived.get(name, _ABSENT)
        if value is _ABSENT:
            # Computed outside the lock: a call that needs the schema must not wait for a sum over all
            # files.
            value = make()
            with self._lock:
                self._derived[name] = value
        typed: T = value
        return typed


def _with_fields(array: pa.StructArray, kind: pa.DataType) -> pa.StructArray:
    """The same fields of a struct under other names."""
    if not kind.num_fields:
        return array
    fields = [array.field(at) for at in range(kind.num_fields)]
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=array.is_null())


def _table_id(state: State) -> str | None:
    metadata = metadata_of(state)
    return None if metadata is None else metadata.id
