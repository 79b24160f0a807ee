"""What `Table` and `DeltaTable` have in common: a handle on one version, and what that version is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

if TYPE_CHECKING:
    from types import TracebackType

    import pyarrow as pa

    from indextables.log.snapshot import Snapshot
    from indextables.model.actions import MetadataAction, ProtocolAction
    from indextables.ops.maintain.describe import Description
    from indextables.ops.read.record import Record
    from indextables.ops.read.rows import Rows
    from indextables.ops.results import ScanMetrics

S = TypeVar("S", bound="Snapshot")


class Handle(Generic[S]):
    """A handle on one version of a table, ours or Delta's."""

    def __init__(self, snapshot: S) -> None:
        self._snapshot = snapshot
        self._record: Record | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r}, version={self.version})"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        return self.describe().to_html()

    @property
    def uri(self) -> str:
        """The table's root."""
        return self._snapshot.store.uri

    @property
    def snapshot(self) -> S:
        """The version this handle reads, for the functions that work on one."""
        return self._snapshot

    @property
    def version(self) -> int:
        """The version this handle reads."""
        return self._snapshot.version

    @property
    def schema(self) -> pa.Schema:
        """The columns, by the names users see."""
        return self._snapshot.schema

    @property
    def time_zone(self) -> str:
        """The zone in which a filter's times without an offset are read."""
        return self._snapshot.time_zone

    @property
    def spark_schema(self) -> str:
        """The columns as the JSON text of a Spark StructType, as the log has it."""
        return self._snapshot.metadata.schema_string

    @property
    def stored_names(self) -> dict[str, str]:
        """The name that every column has in the files of the table, for other readers of them."""
        names = self._snapshot.names
        return {name: name for name in self.schema.names} if names is None else dict(names.stored_names)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns, in order."""
        return self._snapshot.partition_columns

    @property
    def protocol(self) -> ProtocolAction:
        """What the table asks of its readers and writers."""
        return self._snapshot.protocol

    @property
    def metadata(self) -> MetadataAction:
        """Schema, partitioning and properties, as the log has them."""
        return self._snapshot.metadata

    @property
    def last_scan(self) -> ScanMetrics | None:
        """How the last files, scan, count or search came about; it grows while batches are being read."""
        return None if self._record is None else self._record.metrics

    # In a notebook or a script

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        # A handle is one, however many rows it has: `if table:` asks no store.
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """A handle holds nothing open between two calls, so there is nothing to close."""

    def head(self, n: int = 10) -> pa.Table:
        """The first rows of a scan, which reads files in the order of their names."""
        with self.scan() as rows:
            return rows.head(n)

    def to_pandas(self, **options: Any) -> Any:
        """All rows as a pandas DataFrame; `scan` and `search` take a filter, columns and a limit first."""
        return self.scan().to_pandas(**options)

    def to_polars(self) -> Any:
        """All rows as a Polars DataFrame; `scan` and `search` take a filter, columns and a limit first."""
        return self.scan().to_polars()

    def count(self, where: Any = None) -> int:
        """How many rows there are, or match a filter."""
        raise NotImplementedError

    def scan(self, where: Any = None, columns: Any = None) -> Rows:
        """The rows, or those for which the filter is true, as a stream of batches."""
        raise NotImplementedError

    def describe(self) -> Description:
        """What the log says about the version this handle reads."""
        raise NotImplementedError
