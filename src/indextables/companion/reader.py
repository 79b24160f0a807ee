"""The live rows of some files of a source, read as the rows of one split.

Its row groups are those of the files, one after the other, without the rows that deletion vectors hide. Row
numbers count live rows alone, and what is returned has the names and types of the source's columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from indextables.companion.source import SourceFile, SourceFiles
from indextables.errors import DamagedSplitError, SplitError
from indextables.ops.delta.data_file import RowReader, group_rows, hidden_rows
from indextables.records import dataclass
from indextables.runtime import in_threads
from indextables.split.layout import SplitRef
from indextables.split.read.page_cache import PageCache
from indextables.split.read.rows import FEW_ROWS, RowsByGroup, SplitReader
from indextables.split.source import SplitFile
from indextables.storage.store import requests_at_once

if TYPE_CHECKING:
    from indextables.companion.pages import FilePages
    from indextables.predicate.tree import Node


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file of a source that is about to be read: its row groups, and the rows that are hidden."""

    item: SourceFile
    group_rows: tuple[int, ...]
    """All rows of each row group."""
    hidden: np.ndarray
    """The numbers of the rows that a deletion vector hides, ascending."""

    @property
    def rows(self) -> int:
        """How many rows are stored."""
        return sum(self.group_rows)

    def live_groups(self) -> Iterator[tuple[int, np.ndarray | None]]:
        """For every row group, how many of its rows are live, and which if not all are."""
        start = 0
        for rows in self.group_rows:
            first, last = np.searchsorted(self.hidden, [start, start + rows])
            if first == last:
                yield rows, None
            else:
                live = np.ones(rows, bool)
                live[self.hidden[first:last] - start] = False
                numbers = np.flatnonzero(live)
                yield len(numbers), numbers
            start += rows


def live_files(
    source: SourceFiles, items: Sequence[SourceFile], counted: Mapping[bytes, tuple[int, ...]]
) -> list[LiveFile]:
    """Files that are about to be read; `counted` has the rows of their row groups where these are known."""

    def opened(item: SourceFile) -> LiveFile:
        with source.reading():
            groups = counted.get(item.key)
            if groups is None:
                groups = group_rows(source.store, item.file)
            hidden = hidden_rows(source.store, item.file, sum(groups))
        numbers = np.zeros(0, np.int64)
        if hidden is not None:
            numbers = hidden.to_numpy(zero_copy_only=False).astype(np.int64)
        return LiveFile(item, groups, numbers)

    if all(item.key in counted and item.file.vector is None for item in items):
        return [opened(item) for item in items]
    return list(in_threads(opened, items, requests_at_once(source.store)))


class SourceReader(SplitReader):
    """The live rows of some files."""

    def __init__(
        self,
        place: SplitFile,
        ref: SplitRef,
        source: SourceFiles,
        files: Sequence[LiveFile],
        chosen: Callable[[Node], frozenset[str]] | None,
        *,
        pages_of: Callable[[SourceFile], FilePages | None],
    ) -> None:
        """Take the files to read.

        `chosen` gives the paths a filter leaves, None for all; `pages_of` where the pages of a file lie.
        """
        groups = [(file, number, live) for file in files for number, live in enumerate(file.live_groups())]
        super().__init__(place, ref, [count for _, _, (count, _) in groups], None)
        self._source_of_rows = source
        self._chosen = chosen
        self._pages_of = pages_of
        self._groups = groups

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the source; where a file has none of that name, it is null."""
        return tuple(self._source_of_rows.columns.schema.names)

    def plan(self, parts: RowsByGroup, columns: Sequence[str]) -> str:
        """As of any split, but few rows are always asked for by their pages: how large these are varies."""
        return "pages" if 0 < self.count_of(parts) <= FEW_ROWS else super().plan(parts, columns)

    def groups_left(self, where: Node, partition_values: Collection[str]) -> list[bool]:  # noqa: ARG002
        """For every row group, whether the log of the source allows a match in its file."""
        if self._chosen is None:
            return [True] * len(self._groups)
        paths = self._chosen(where)
        return [file.item.file.path in paths for file, _, _ in self._groups]

    def _read(
        self,
        rows_by_group: Mapping[int, np.ndarray | None],
        columns: Sequence[str],
        *,
        coded: bool = False,  # noqa: ARG002 - of every reader
        cache: PageCache | None = None,  # noqa: ARG002
    ) -> pa.Table:
        if not columns:
            return pa.table({"": pa.nulls(self.count_of(rows_by_group))}).select([])
        source = self._source_of_rows
        reader = RowReader(source.columns, tuple(columns))
        tables = [reader.schema.empty_table()]
        by_file = groupby(rows_by_group.items(), key=lambda pair: id(self._groups[pair[0]][0]))
        for _, pairs in by_file:
            rows_of_file: dict[int, np.ndarray | None] = {}
            for group, rows in pairs:
                file, number, (count, live) = self._groups[group]
                if count:
                    rows_of_file[number] = live if rows is None else rows if live is None else live[rows]
            if rows_of_file:
                with source.reading():
                    tables += self._picked(reader, file.item, rows_of_file)
            source.require_unchanged(file.item)
        table = pa.concat_tables(tables)
        if table.num_rows != self.count_of(rows_by_group):
            raise DamagedSplitError(
                f"{file.item.file.path} of {source.uri} has not the rows that it had when it was indexed: "
                f"{self.count_of(rows_by_group)} were to be read, and {table.num_rows} are there",
                path=file.item.file.path,
            )
        return table

    def _picked(
        self, reader: RowReader, item: SourceFile, rows_of_file: Mapping[int, np.ndarray | None]
    ) -> Iterable[pa.Table]:
        """Rows of one file: some by the pages that hold them if these are known, else by row groups."""
        store = self._source_of_rows.store
        if not any(rows is None for rows in rows_of_file.values()):
            pages = self._pages_of(item)
            try:
                tables = None if pages is None else pages.picked(reader, store, item.file, rows_of_file)
            except SplitError:
                # What is wrong, the map or the file, is found out by reading the file as it says itself.
                tables = None
            if tables is not None:
                return tables
        return reader.picked(store, item.file, rows_of_file)
