"""The rows of a scan or search: a stream of batches, or a table once one is asked for.

Batches that are taken one by one are not kept, so any number of rows can be processed in
little memory. `to_arrow`, `to_pandas`, `len` and similar read the rest and keep it, and
can be called again.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from indextables.display.plain import counted
from indextables.errors import MissingPackageError, TableError
from indextables.lazy import later
from indextables.ops.read.record import Record
from indextables.ops.results import ScanMetrics

if TYPE_CHECKING:
    from indextables.display import notebook
else:
    notebook = later("indextables.display.notebook")

_SHOWN = 20


class Rows:
    """Rows that are read when they are needed.

    It can be used wherever a `pyarrow.RecordBatchReader` can: it has `schema`, `read_next_batch`,
    `read_all`, `close`, is iterated by batches, and gives itself to other libraries as an Arrow stream.
    """

    def __init__(self, reader: pa.RecordBatchReader, record: Record | None = None) -> None:
        self._reader = reader
        self._record = record
        self._held: list[pa.RecordBatch] = []
        self._table: pa.Table | None = None
        self._again: Iterator[pa.RecordBatch] | None = None
        self._begun = False
        self._ended = False

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._reader.schema

    @property
    def metrics(self) -> ScanMetrics | None:
        """How the rows were found; updated while they are being read."""
        return None if self._record is None else self._record.metrics

    # As a stream

    def read_next_batch(self) -> pa.RecordBatch:
        """The next batch; StopIteration after the last."""
        if self._table is not None:
            self._again = self._again or iter(self._table.to_batches())
            return next(self._again)
        self._begun = True
        if self._held:
            return self._held.pop(0)
        try:
            return self._reader.read_next_batch()
        except StopIteration:
            self._ended = True
            raise

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._table is not None:
            return iter(self._table.to_batches())
        if self._ended:
            raise TableError(
                "the rows were taken as a stream, to the end, and are not kept; ask for them again, or call "
                "to_arrow() before they are taken"
            )
        return self._batches()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                batch = self.read_next_batch()
            except StopIteration:
                return
            yield batch

    def read_all(self) -> pa.Table:
        """The rows, or those that are left where some were taken as a stream."""
        if not self._begun:
            return self.to_arrow()
        left = [] if self._ended else list(self._batches())
        return pa.Table.from_batches(left, self.schema)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a reader of pyarrow, for what takes nothing else."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def close(self) -> None:
        """Stop reading; rows not taken yet are not read."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    # As a table

    def to_arrow(self) -> pa.Table:
        """All rows, as a table that is kept."""
        if self._table is None:
            if self._begun:
                raise TableError(
                    "some of the rows were taken as a stream already; read_all() gives those that are left"
                )
            held = [*self._held, *self._reader]
            self._table, self._held = pa.Table.from_batches(held, self.schema), []
        return self._table

    def to_pylist(self) -> list[dict[str, Any]]:
        """One dict per row."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def to_pandas(self, **options: Any) -> Any:
        """A pandas DataFrame."""
        _require("pandas")
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> Any:
        """A Polars DataFrame."""
        return _require("polars").from_arrow(self.to_arrow())

    def head(self, count: int = 5) -> pa.Table:
        """The first rows; the stream still begins with them."""
        if self._table is not None:
            return self._table.slice(0, count)
        if self._begun:
            return self.to_arrow()
        while sum(batch.num_rows for batch in self._held) < count:
            try:
                self._held.append(self._reader.read_next_batch())
            except StopIteration:
                self._table, self._held = pa.Table.from_batches(self._held, self.schema), []
                return self._table.slice(0, count)
        return pa.Table.from_batches(self._held, self.schema).slice(0, count)

    def __len__(self) -> int:
        if self._begun and self._table is None:
            # A TypeError, because list() asks for the length of what it takes batch by batch.
            raise TypeError("the rows are being taken as a stream, so their number is not known")
        return int(self.to_arrow().num_rows)

    def __bool__(self) -> bool:
        # As for any reader: whether there are rows is asked with len.
        return True

    def __repr__(self) -> str:
        state = counted(self._table.num_rows, "row") if self._table is not None else "not read to the end yet"
        return f"Rows({', '.join(self.schema.names)}; {state})"

    def _repr_html_(self) -> str:
        if self._begun and self._table is None:
            return notebook.table_html(self.schema.empty_table(), "rows that were taken as a stream")
        shown = self.head(_SHOWN + 1)
        total = self._table.num_rows if self._table is not None else None
        more = shown.num_rows > _SHOWN
        caption = counted(total, "row") if total is not None else f"the first {_SHOWN} rows"
        return notebook.table_html(
            shown.slice(0, _SHOWN), f"{caption}, {_SHOWN} shown" if total and more else caption
        )


def _require(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        raise MissingPackageError(
            f"{name} is not installed in this Python; install it with: pip install {name}", packages=[name]
        ) from missing
