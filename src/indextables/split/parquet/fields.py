"""The field numbers of Parquet's metadata structures, as far as splits use them."""

from __future__ import annotations

from typing import Any, Final

from indextables.split.parquet.thrift import Struct


class FileFields:
    """FileMetaData: the footer."""

    VERSION: Final = 1
    SCHEMA: Final = 2
    ROWS: Final = 3
    GROUPS: Final = 4
    PAIRS: Final = 5
    CREATED_BY: Final = 6


class ElementFields:
    """SchemaElement: one node of the schema, in depth-first order."""

    TYPE: Final = 1
    INT96: Final = 3
    """A value of TYPE."""
    REPETITION: Final = 3
    NAME: Final = 4
    CHILDREN: Final = 5
    CONVERTED: Final = 6
    REPEATED: Final = 2
    """A value of REPETITION."""
    UTF8: Final = 0
    """A value of CONVERTED."""


class GroupFields:
    """RowGroup."""

    COLUMNS: Final = 1
    BYTES: Final = 2
    ROWS: Final = 3
    FILE_OFFSET: Final = 5
    COMPRESSED_BYTES: Final = 6


class ChunkFields:
    """ColumnChunk."""

    FILE_OFFSET: Final = 2
    META: Final = 3
    OFFSET_INDEX: Final = 4
    OFFSET_INDEX_LENGTH: Final = 5
    COLUMN_INDEX: Final = 6
    COLUMN_INDEX_LENGTH: Final = 7


class MetaFields:
    """ColumnMetaData; the first four describe the column rather than its bytes."""

    DESCRIPTION: Final = (1, 2, 3, 4)
    PATH: Final = 3
    CODEC: Final = 4
    VALUES: Final = 5
    UNCOMPRESSED_BYTES: Final = 6
    COMPRESSED_BYTES: Final = 7
    DATA_PAGE: Final = 9
    INDEX_PAGE: Final = 10
    DICTIONARY_PAGE: Final = 11
    BLOOM: Final = 14
    BLOOM_LENGTH: Final = 15


class PageFields:
    """OffsetIndex, its PageLocations, and PageHeader."""

    LOCATIONS: Final = 1
    OFFSET: Final = 1
    LENGTH: Final = 2
    FIRST_ROW: Final = 3
    KIND: Final = 1
    DATA_KIND: Final = 0
    DICTIONARY_KIND: Final = 2
    DATA_V2_KIND: Final = 3
    """Values of KIND."""
    COMPRESSED_BYTES: Final = 3
    DATA_HEADER: Final = 5
    DATA_HEADER_V2: Final = 8
    VALUES: Final = 1


class PairFields:
    """KeyValue."""

    KEY: Final = 1
    VALUE: Final = 2


def value(struct: Struct, number: int, default: Any = None) -> Any:
    """The value of a field; the default if it is absent."""
    field = struct.get(number)
    return default if field is None else field[1]


def items(struct: Struct, number: int) -> list[Struct]:
    """The structures of a list field; empty if it is absent."""
    structs: list[Struct] = struct[number][1][1] if number in struct else []
    return structs
