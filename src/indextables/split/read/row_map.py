"""The row map: what a reader needs to fetch some rows of a split without its Parquet footer.

It holds the number of rows of each row group, the schema (`Skeleton`), and offset and
checksum of every page (`PageMap`). It directly follows the index, so that one read can
fetch the index's root and the row map. The log has its length and checksum; as the row map
has the checksum of every page, that one number protects all rows of the split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from indextables.records import dataclass
from indextables.split.parquet.page_map import PageMap, map_foreign_pages, map_pages, pages_bytes
from indextables.split.parquet.thrift import Struct, ThriftError
from indextables.split.read.page_reader import Skeleton, skeleton_bytes
from indextables.storage.checksum import crc32


class RowMapError(Exception):
    """The bytes are not a valid row map."""


_MAPS = msgspec.msgpack.Decoder(list[Any])


@dataclass(frozen=True, slots=True)
class RowMap:
    """The row groups of a split, and its pages."""

    group_rows: tuple[int, ...]
    skeleton: Skeleton
    pages: PageMap

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, crc: int) -> RowMap:
        """Read what `row_map_bytes` wrote; RowMapError when its checksum is not `crc`."""
        if crc32(data) != crc:
            raise RowMapError("its checksum does not match")
        try:
            # Some releases wrote where the page statistics lie after these three.
            groups, skeleton, pages, *_ = _MAPS.decode(data)
            return cls(tuple(groups), Skeleton.from_bytes(skeleton), PageMap.from_bytes(pages, groups))
        except (pa.ArrowException, msgspec.MsgspecError, ThriftError, KeyError, TypeError, ValueError) as bad:
            raise RowMapError(f"it cannot be read ({bad})") from bad


def row_map_bytes(footer: Struct, group_rows: Sequence[int], read: Callable[[int, int], Any]) -> bytes:
    """The row map of a finished Parquet file; `read` returns bytes of the file by offset and length."""
    return _encoded(footer, group_rows, map_pages(footer, read))


def foreign_row_map_bytes(
    footer: Struct, group_rows: Sequence[int], read: Callable[[int, int], Any], whole: memoryview | None
) -> bytes | None:
    """The row map of a file of another writer; None if none of its pages can be found."""
    pages = map_foreign_pages(footer, read, whole)
    return _encoded(footer, group_rows, pages) if pages.num_rows else None


def _encoded(footer: Struct, group_rows: Sequence[int], pages: pa.Table) -> bytes:
    return msgspec.msgpack.encode((list(group_rows), skeleton_bytes(footer), pages_bytes(pages)))
