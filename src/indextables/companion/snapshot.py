"""A version of a source as its companion shows it: every live row, found by the index or by reading it.

The files of the source become splits. Those that one companion split covers are one: its index answers,
seen through a mask that leaves out files that are gone and rows that deletion vectors hide. Every other
file is a split without an index, whose rows are read. So a row that is not indexed yet is still found, and
one that is gone never is; and whatever reads, counts, searches or ranks splits does so here too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.companion.pages import FilePages
from indextables.companion.reader import LiveFile, SourceReader, live_files
from indextables.companion.settings import CompanionSettings
from indextables.companion.source import ChosenFiles, Source, SourceFile, SourceFiles
from indextables.companion.source_map import (
    SourceMap,
    covered_keys,
    indexed_types,
    read_page_map,
    read_source_map,
)
from indextables.errors import DamagedIndexError, DamagedSplitError, MissingSplitError, SplitError
from indextables.index.read.live_rows import LiveRows
from indextables.index.read.lookup import Index
from indextables.log.adds import file_table
from indextables.log.snapshot import FilePlan, Snapshot, Totals
from indextables.model.actions import AddAction, MetadataAction
from indextables.model.arrays import whole
from indextables.ops.foreign_rows import ForeignRows, ForeignSplits
from indextables.ops.results import Coverage
from indextables.predicate.tree import Node
from indextables.reading import Reading
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_index
from indextables.split.search.live_statistics import tokens_in
from indextables.split.source import SplitFile


@dataclass(frozen=True, slots=True)
class SourceRows:
    """What the splits of one version share; on an executor they do not know which files a filter leaves."""

    reading: Reading
    """How the companion's own splits are read."""
    files: SourceFiles
    logical_names: Mapping[str, str]
    """The names that the source has now, by those in its files."""
    chosen: Callable[[Node], frozenset[str]] | None = None
    """The paths in which a filter may be true; None if the log is not at hand."""

    def __reduce__(self) -> tuple[Any, ...]:
        return SourceRows, (self.reading, self.files, dict(self.logical_names))


class SourceSplit:
    """Some files of a source, read and searched as one split; see `open_splits.RowsElsewhere`."""

    def __init__(
        self, shared: SourceRows, ref: SplitRef, own: SplitRef | None, items: Sequence[SourceFile]
    ) -> None:
        """Take live files; `own` is the companion split that covers them, None if there is none."""
        self._shared = shared
        self._ref = ref
        self._own = own
        self.items = items
        self._lock = threading.RLock()
        self._map: SourceMap | None = None
        self._reader: SourceReader | None = None
        self._files: list[LiveFile] | None = None
        self._index: Index | None = None
        self._pages: dict[bytes, FilePages | None] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return SourceSplit, (self._shared, self._ref, self._own, self.items)

    @property
    def paths(self) -> Sequence[str]:
        """The paths of the files."""
        return [item.file.path for item in self.items]

    def places(self, rows: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Where ascending rows of the split are stored: the path of a file, and the numbers of its rows."""
        first = 0
        for file in self._opened():
            live = np.delete(np.arange(file.rows), file.hidden)
            begin, end = np.searchsorted(rows, [first, first + len(live)])
            if begin < end:
                yield file.item.file.path, live[rows[begin:end] - first]
            first += len(live)

    def reader(self) -> SourceReader:
        """The live rows of the files."""
        with self._lock:
            if self._reader is None:
                self._reader = self._reader_of(self._opened())
            return self._reader

    def _reader_of(self, files: Sequence[LiveFile]) -> SourceReader:
        shared = self._shared
        place = SplitFile(shared.reading.store, self._ref.path)
        return SourceReader(place, self._ref, shared.files, files, shared.chosen, pages_of=self._pages_of)

    def _pages_of(self, item: SourceFile) -> FilePages | None:
        """Where the pages of a file lie; None if that is not known."""
        if self._map is None or self._own is None:
            return None
        if item.key not in self._pages:
            covered = next(file for file in self._map.files if file.key == item.key)
            row_map = read_page_map(self._shared.reading, self._own, covered)
            self._pages[item.key] = None if row_map is None else FilePages(row_map)
        return self._pages[item.key]

    def index(self, reading: Reading) -> Index | None:
        """The index of the live rows; None for files that no companion split covers."""
        if self._own is None:
            return None
        with self._lock:
            if self._index is None:
                index, source_map = self._stored_index(reading, self._own)
                live = self._live_rows(index, source_map)
                self._index = index.seen_through(live, self._shared.logical_names)
            return self._index

    def _stored_index(self, reading: Reading, own: SplitRef) -> tuple[Index, SourceMap]:
        try:
            index, source_map = open_index(reading, own, with_rows=True), self._source_map()
        except (MissingSplitError, DamagedSplitError) as bad:
            # The rows are in the source, and are read there.
            raise DamagedIndexError(
                f"the companion split {own.path} cannot be read: {bad}", path=own.path
            ) from bad
        if index is None or index.rows != source_map.rows:
            raise DamagedIndexError(
                f"the index inside {own.path} is not one of the rows of its source map", path=own.path
            )
        return index, source_map

    def open_index(self) -> Index | None:
        """The index if it is already open."""
        return self._index

    def _opened(self) -> list[LiveFile]:
        if self._files is None:
            items = list(self.items)
            counted: dict[bytes, tuple[int, ...]] = {}
            if self._own is not None:
                try:
                    counted = {file.key: file.group_rows for file in self._source_map().files}
                except (DamagedIndexError, SplitError):
                    # The files say themselves how many rows they have, and the search that they are scanned.
                    counted = {}
            self._files = live_files(self._shared.files, items, counted)
        return self._files

    def _source_map(self) -> SourceMap:
        if self._map is None:
            assert self._own is not None
            reading = self._shared.reading
            name = f"{reading.store.uri}/{self._own.path}"
            source_map = read_source_map(reading, self._own)
            covered = {file.key: file for file in source_map.files}
            for item in self.items:
                file = covered.get(item.key)
                if file is None or (file.path, file.size) != (item.file.path, item.file.size):
                    raise DamagedIndexError(
                        f"the source map inside {name} does not list {item.file.path}, which the log says it "
                        "covers",
                        path=name,
                    )
            self._map = source_map
        return self._map

    def _live_rows(self, index: Index, source_map: SourceMap) -> LiveRows | None:
        """The mask over the index; None when every row is live."""
        files = {file.item.key: file for file in self._opened()}
        stretches = []
        for first, covered in zip(source_map.first_rows, source_map.files, strict=True):
            file = files.get(covered.key)
            if file is not None:
                stretches.append(_stretches(first, covered.rows, file.hidden))
        pairs = np.concatenate([np.zeros((0, 2), np.int64), *stretches])
        if int((pairs[:, 1] - pairs[:, 0]).sum()) == index.rows:
            return None
        return LiveRows(pairs, partial(self._live_tokens, index, source_map))

    def _live_tokens(self, index: Index, source_map: SourceMap) -> Mapping[str, int]:
        """The tokens of the live rows, by the logical name of each column."""
        files = {file.item.key: file for file in self._opened()}
        names = self._shared.logical_names
        totals = dict.fromkeys((names[column] for column in index.tokens if column in names), 0)
        for first, covered in zip(source_map.first_rows, source_map.files, strict=True):
            file = files.get(covered.key)
            if file is None:
                continue
            for column, tokens in covered.tokens.items():
                if column in names:
                    hidden = self._hidden_tokens(index, column, first, file)
                    totals[names[column]] += tokens - hidden
        return totals

    def _hidden_tokens(self, index: Index, column: str, first: int, file: LiveFile) -> int:
        """The tokens of the rows of a file that a deletion vector hides."""
        if not len(file.hidden):
            return 0
        reader = self._reader_of([replace(file, hidden=np.zeros(0, np.int64))])

        def column_of(name: str, rows: np.ndarray) -> pa.Array:
            logical = self._shared.logical_names[name]
            return whole(reader.read_rows(rows - first, [logical]).column(logical))

        return tokens_in(index, column, (file.hidden + first).astype(np.uint32), column_of)


class CompanionSnapshot(ForeignRows):
    """One version of a source, with the index that its companion has of it."""

    def __init__(self, own: Snapshot, source: Source) -> None:
        self.own = own
        self.rows_of = source
        self.indexed = CompanionSettings.of(own).on(source)
        super().__init__(own.source, own.state)
        self._derived["index settings"] = self.indexed.spec
        self._derived["schema"] = source.columns.schema

    def on(self, own: Snapshot) -> CompanionSnapshot:
        """The same rows, with the index that another version of the companion has."""
        return CompanionSnapshot(own, self.rows_of)

    @property
    def version(self) -> int:
        """The version of the source; that of the companion where the source has none."""
        return self.own.version if self.rows_of.version is None else self.rows_of.version

    @property
    def metadata(self) -> MetadataAction:
        """The source's columns, with the companion's properties."""
        columns = self.rows_of.columns
        own = self.own.metadata
        others = {key: value for key, value in own.configuration.items() if "indexing." not in key.lower()}
        return replace(
            own,
            schema_string=columns.schema_string,
            partition_columns=columns.partition_columns,
            configuration={**others, **self.indexed.spec.to_properties()},
        )

    @property
    def num_files_hint(self) -> int | None:
        """How many splits there are."""
        return len(self.splits().refs)

    @property
    def totals(self) -> Totals:
        """Number, size and rows of the source's files."""
        return self.once("totals", self._sum)

    def _sum(self) -> Totals:
        files = self.rows_of.files
        counts = [item.num_records for item in files if item.num_records is not None]
        rows = self.rows_of.count()
        if rows is None and len(counts) == len(files):
            rows = sum(counts)
        return Totals(len(files), sum(item.file.size for item in files), rows, self.own.size_bytes)

    def splits(self, where: Node | None = None) -> ForeignSplits:
        """The files in which a filter may be true for a row, as splits."""
        every = self.once("source splits", self._splits)
        chosen = self.chosen(where)
        refs, indexed, scanned = [], 0, 0
        for ref in every:
            split: SourceSplit = ref.elsewhere
            left = sum(item.file.path in chosen.paths for item in split.items)
            if left:
                refs.append(ref)
                indexed, scanned = (
                    (indexed, scanned + left) if ref.root is None else (indexed + left, scanned)
                )
        masked = self.once("masked files", self._masked)
        return ForeignSplits(tuple(refs), chosen.metrics, chosen.replay, Coverage(indexed, scanned, masked))

    def chosen(self, where: Node | None) -> ChosenFiles:
        """The files of the source in which a filter may be true, as its log says."""
        if where is None:
            return self.once("all source files", lambda: self.rows_of.chosen(None))
        return self.parsed(str(where), ("source files", where), lambda: self.rows_of.chosen(where))

    def _covering(self) -> list[tuple[AddAction, list[SourceFile]]]:
        """The companion splits that cover live files, with these, in the order of their rows."""
        left = {item.key: item for item in self.rows_of.files}
        covering = []
        for add in self.own.adds():
            if not self.indexed.answers(indexed_types(add)):
                continue
            items = [left.pop(key) for key in covered_keys(add) if key in left]
            if items:
                covering.append((add, items))
        return covering

    def _splits(self) -> tuple[SplitRef, ...]:
        covering = self.once("covering splits", self._covering)
        covered = {item.key for _, items in covering for item in items}
        refs = [self._ref(SplitRef.of(add), add, items) for add, items in covering]
        others = [item for item in self.rows_of.files if item.key not in covered]
        refs += [self._ref(SplitRef(item.file.path, item.file.size), None, [item]) for item in others]
        # The rows come in the order of the source's files, whatever their splits are called.
        place = {item.key: at for at, item in enumerate(self.rows_of.files)}
        return tuple(sorted(refs, key=lambda ref: place[ref.elsewhere.items[0].key]))

    def _ref(self, ref: SplitRef, add: AddAction | None, items: Sequence[SourceFile]) -> SplitRef:
        counts = [item.num_records for item in items]
        rows = None if None in counts else sum(count for count in counts if count is not None)
        size = sum(item.file.size for item in items)
        known = replace(ref, partition_values={}, num_records=rows, size=size)
        own = None if add is None else SplitRef.of(add)
        shared = self.once("source rows", self._shared)
        return replace(known, elsewhere=SourceSplit(shared, known, own, items))

    def _shared(self) -> SourceRows:
        def chosen(where: Node) -> frozenset[str]:
            return self.chosen(where).paths

        return SourceRows(self.reading, self.rows_of.rows_in, self.indexed.logical_names, chosen)

    def _masked(self) -> int:
        live = {item.key for item in self.rows_of.files}
        return len({key for add in self.own.adds() for key in covered_keys(add)} - live)

    def few_adds(self, node: Node) -> None:
        """None: the log of a companion has no statistics of rows."""

    def adds(self, paths: Collection[str] | None = None) -> list[AddAction]:
        """The companion's own splits."""
        return self.own.adds(paths)

    def plan(
        self,
        where: Any = None,
        columns: Collection[str] | None = None,
        engine: str = "auto",  # noqa: ARG002 - of every snapshot
        *,
        explain: bool = False,  # noqa: ARG002
        noted: bool = True,
    ) -> FilePlan:
        """The splits a predicate cannot exclude, as rows of `files()`; only path, size and rows are known."""
        node = self.filter_of(where)
        chosen = self.splits(node)
        if noted:
            self.note_filter(node, chosen.metrics)
        schema = file_table.files_schema(
            self.schema, self.partition_columns, None if columns is None else tuple({"path", *columns})
        )
        known = {
            "path": [ref.path for ref in chosen.refs],
            "size": [ref.size for ref in chosen.refs],
            "num_records": [ref.num_records for ref in chosen.refs],
        }
        arrays = [
            pa.array(known[field.name], field.type)
            if field.name in known
            else pa.nulls(len(chosen.refs), field.type)
            for field in schema
        ]
        return FilePlan(pa.Table.from_arrays(arrays, schema=schema), chosen.metrics, chosen.replay)


def _stretches(first: int, rows: int, hidden: np.ndarray) -> np.ndarray:
    """The live rows of a file in an index, as starts and ends, for hidden rows that ascend."""
    starts = np.concatenate([[0], hidden + 1]) + first
    ends = np.concatenate([hidden, [rows]]) + first
    return np.stack([starts, ends], axis=1)
