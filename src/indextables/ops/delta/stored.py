"""A Parquet file in a store: mapped into memory where it is local, read by ranges where it is not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from indextables.errors import StorageError
from indextables.storage.ranged_file import RangedFile
from indextables.storage.store import Store, resolve

if TYPE_CHECKING:
    from types import TracebackType


@dataclass(slots=True)
class StoredFile:
    """One data file, opened when its rows are asked for and closed with the block it is used in."""

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
        import pyarrow.parquet as pq

        local = self.store.local_path(self.path)
        if local is not None:
            self._source = pa.memory_map(local)
            return pq.ParquetFile(self._source, coerce_int96_timestamp_unit="us")
        size = self.size or self.store.head(self.path).size
        try:
            return self._ranged(size)
        except (pa.ArrowInvalid, StorageError):
            # The log may be wrong about the size; the store is not.
            known = self.store.head(self.path).size
            if known == size:
                raise
            return self._ranged(known)

    def _ranged(self, size: int) -> Any:
        import pyarrow.parquet as pq

        self._source = pa.PythonFile(RangedFile(partial(self.store.get_range, self.path), size), mode="r")
        return pq.ParquetFile(self._source, coerce_int96_timestamp_unit="us", pre_buffer=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._source is not None:
            self._source.close()
