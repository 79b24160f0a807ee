"""The layout of a split: a Parquet file with a search index between its pages and its footer.

    PAR1 | row groups, bloom filters, page indexes | index, its root last | row map | footer, its length, PAR1

The footer is Parquet's own. Its key-value metadata holds, under `indextables.index`, the
manifest: where the index and the row map are, which columns are indexed and how, and
which table and partition the rows belong to. Under `indextables.crc` it holds the
checksum of the footer itself, computed with those eight digits as zeros. Other Parquet
readers ignore all this and read the rows as usual.

The log's add has the same offsets, with checksums. So a search reads the root and the row
map at once and never needs the footer, and a file that was replaced by another one is
noticed.
"""

from __future__ import annotations

import os
import struct as packing
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from indextables.errors import DamagedSplitError, NewerSplitError, SplitError
from indextables.index.settings import IndexSpec
from indextables.lazy import later
from indextables.model.actions import AddAction
from indextables.model.column_names import ColumnNames
from indextables.records import dataclass
from indextables.split.parquet.fields import FileFields, PairFields, items, value
from indextables.split.parquet.thrift import BINARY, LIST, STRUCT, Struct, ThriftError, decode, encode
from indextables.split.source import SplitFile, cut_short
from indextables.storage.checksum import crc32
from indextables.storage.deletion_vectors import DeletionVector, descriptor

if TYPE_CHECKING:
    from indextables.model import stats
else:
    stats = later("indextables.model.stats")

FORMAT_VERSION = 2
INDEX_KEY = b"indextables.index"
CRC_KEY = b"indextables.crc"
MAGIC = b"PAR1"
TAIL = 8
_BLANK_CRC = b"00000000"
LARGEST_FOOTER = 256 << 20


ROOT_TAG, ROW_MAP_TAG, TOKENS_TAG = "indexRoot", "rowMap", "indexTokens"


@dataclass(frozen=True, slots=True)
class Region:
    """A byte range that is read as a whole: its length and its checksum."""

    length: int
    crc32: int

    def to_tag(self) -> str:
        """Its representation in the tags of an add."""
        return f"{self.length}:{self.crc32:08x}"

    @classmethod
    def from_tag(cls, tag: str | None) -> Region | None:
        """Read what `to_tag` wrote; None for anything else."""
        length, _, crc = (tag or "").partition(":")
        if not (length.isdecimal() and length.isascii()):
            return None
        try:
            return cls(int(length), int(crc, 16))
        except ValueError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitManifest:
    """What a split says about itself in its footer."""

    format: int = FORMAT_VERSION
    offset: int = 0
    """Where the index begins."""
    length: int = 0
    """Length of the index and the row map together; the footer follows."""
    root: Region | None = None
    """The end of the index, which a reader needs first; None for a split without an index."""
    row_map: Region = Region(0, 0)
    components: Mapping[str, int] = field(default_factory=dict)
    """Bytes by component."""
    tokens: Mapping[str, int] = field(default_factory=dict)
    """Number of words in all rows, by indexed column."""
    rows: int = 0
    group_rows: tuple[int, ...] = ()
    fields: tuple[Mapping[str, Any], ...] = ()
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    table_id: str = ""
    replaces: tuple[str, ...] = ()
    """Splits whose rows this one holds, so that rebuilding a lost log does not duplicate them."""


# msgspec prepares a type when it is first used, and two threads must not do that at once.
msgspec.json.Decoder(SplitManifest)


@dataclass(frozen=True, slots=True)
class SplitRef:
    """What is needed to open a split: its path and size, and the offsets of its parts if they are known."""

    path: str
    size: int | None = None
    index_offset: int | None = None
    index_length: int | None = None
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    num_records: int | None = None
    """All rows of the file, deleted ones included."""
    footer_crc: str | None = None
    """The footer's checksum according to the log; if None, it is not checked."""
    root: Region | None = None
    row_map: Region | None = None
    vector: DeletionVector | None = None
    """Which rows of the split are deleted."""
    names: ColumnNames | None = None
    """The columns in whose place the file has stored names; None where it has the columns' own names."""
    elsewhere: Any = None
    """For rows that lie in files of somebody else: what gives them, and an index of them if there is one.

    It has the methods of `open_splits.RowsElsewhere`."""

    @property
    def live_records(self) -> int | None:
        """How many rows are not deleted, as far as the log knows."""
        if self.num_records is None or self.vector is None:
            return self.num_records
        return self.num_records - self.vector.cardinality

    @classmethod
    def of(cls, add: AddAction) -> SplitRef:
        """The split that an add action names."""
        tags = add.tags or {}
        rows = add.num_records
        if rows is None and add.stats is not None:
            # Other writers count rows in their statistics alone.
            rows = stats.of_add(add, null_counts=False).num_records
        return cls(
            add.path,
            add.size or None,
            add.hotcache_start_offset,
            add.hotcache_length,
            add.values,
            rows,
            add.footer_crc,
            Region.from_tag(tags.get(ROOT_TAG)),
            Region.from_tag(tags.get(ROW_MAP_TAG)),
            None if add.deletion_vector is None else descriptor(add.deletion_vector),
            add.names,
        )

    def placed(self, manifest: SplitManifest) -> SplitRef:
        """The same split, with the offsets that its footer gives."""
        return replace(
            self,
            index_offset=manifest.offset,
            index_length=manifest.length,
            root=manifest.root,
            row_map=manifest.row_map,
        )


@dataclass(frozen=True, slots=True)
class Footer:
    """The footer of a split after its checks: Parquet's metadata as stored, and our manifest."""

    start: int
    end: int
    body: bytes
    manifest: SplitManifest

    @property
    def crc(self) -> str:
        """The checksum it carries, as the add of the split names it."""
        stored = _stored_crc(self.body)
        return "" if stored is None else stored[0].decode("ascii", "replace")


def read_footer(source: SplitFile, ref: SplitRef) -> Footer:
    """Read and check the footer of a split."""
    size = ref.size if ref.size is not None else source.size()
    if size < len(MAGIC) + TAIL:
        raise cut_short(source.name)
    if ref.index_offset is not None and ref.index_length is not None:
        start = ref.index_offset + ref.index_length
        data = bytes(source.read_one(start, size - start))
    else:
        data = b""
    return parse_footer(_whole_footer(source, size, data), size, source.name, ref.footer_crc)


def _whole_footer(source: SplitFile, size: int, data: bytes) -> bytes:
    """The footer and the eight bytes after it; `data` was read where the log says the footer is."""
    tail = data[-TAIL:] if len(data) >= TAIL else bytes(source.read_one(size - TAIL, TAIL))
    length = packing.unpack("<I", tail[:4])[0]
    if tail[4:] != MAGIC or length + TAIL + len(MAGIC) > size or length > LARGEST_FOOTER:
        raise damaged_footer(source.name, "it does not end like a Parquet file")
    if len(data) == length + TAIL:
        return data
    return bytes(source.read_one(size - TAIL - length, length + TAIL))


def parse_footer(data: bytes, size: int, name: str, expected: str | None = None) -> Footer:
    """Check the bytes of a footer and the eight after it, and decode the manifest.

    `expected` is the checksum that the log has.
    """
    body = data[:-TAIL]
    start = size - len(data)
    if data[-TAIL:] != packing.pack("<I", len(body)) + MAGIC:
        raise damaged_footer(name, "it does not end like a Parquet file")
    checksum = _stored_crc(body)
    if checksum is None:
        if not _is_parquet(body):
            raise damaged_footer(name, "its metadata cannot be read")
        raise SplitError(
            f"{name} is a Parquet file but not a split of IndexTables: its footer holds no "
            f"{CRC_KEY.decode()!r}. Only files written by IndexTables can be part of a table.",
            path=name,
        )
    stored, at = checksum
    if b"%08x" % crc32(body[:at] + _BLANK_CRC + body[at + len(stored) :]) != stored:
        raise damaged_footer(name, "its checksum does not match")
    if expected is not None and stored != expected.encode():
        raise DamagedSplitError(
            f"{name} is not the split that was written under this name: its footer has the checksum "
            f"{stored.decode('ascii', 'replace')}, the log says {expected}. Another file was put in its "
            "place; bring back the right one, or restore a version of the table without this file.",
            path=name,
        )
    try:
        entries = dict(_pairs(decode(body)[0]))
        manifest = decode_manifest(entries[INDEX_KEY], name)
    except (ThriftError, KeyError, msgspec.MsgspecError) as bad:
        raise damaged_footer(name, f"its metadata cannot be read ({bad})") from bad
    return Footer(start, size, body, manifest)


def damaged_footer(name: str, why: str) -> DamagedSplitError:
    """The error for a footer that is not what was written."""
    return DamagedSplitError(
        f"the footer of {name} is damaged: {why}. Bring back an intact copy, "
        "or restore a version of the table without this file.",
        path=name,
    )


def decode_manifest(data: bytes, name: str) -> SplitManifest:
    """Decode a manifest; a newer format version is refused before anything else is read."""
    raw = msgspec.json.decode(data)
    version = raw.get("format") if isinstance(raw, dict) else None
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise NewerSplitError(
            f"{name} has split format {version}, and this program reads up to {FORMAT_VERSION}. "
            "Upgrade indextables to read it.",
            path=name,
            format=version,
        )
    return msgspec.convert(raw, SplitManifest)


def encode_manifest(manifest: SplitManifest) -> bytes:
    """The stored form of a manifest."""
    return msgspec.json.encode(manifest)


def finish(
    path: str, footer: Struct, index: Iterable[bytes], row_map: bytes, manifest: SplitManifest
) -> Footer:
    """Turn a finished Parquet file into a split by inserting the index and the row map before its footer.

    `index` comes in chunks, the root last; the manifest, which goes into the footer, is completed here.
    """
    with Path(path).open("r+b") as out:
        out.seek(-TAIL, os.SEEK_END)
        start = out.tell() - packing.unpack("<I", out.read(4))[0]
        out.seek(start)
        out.truncate()
        root = None
        for chunk in index:
            out.write(chunk)
            root = Region(len(chunk), crc32(chunk))
        out.write(row_map)
        manifest = replace(
            manifest,
            offset=start,
            length=out.tell() - start,
            root=root,
            row_map=Region(len(row_map), crc32(row_map)),
        )
        body = _sealed({**footer, FileFields.PAIRS: (LIST, (STRUCT, _entries(footer, manifest)))})
        begin = out.tell()
        out.write(body + packing.pack("<I", len(body)) + MAGIC)
        return Footer(begin, out.tell(), body, manifest)


def _entries(footer: Struct, manifest: SplitManifest) -> list[Struct]:
    pairs = items(footer, FileFields.PAIRS)
    others = [pair for pair in pairs if value(pair, PairFields.KEY) not in (INDEX_KEY, CRC_KEY)]
    ours = ((INDEX_KEY, encode_manifest(manifest)), (CRC_KEY, _BLANK_CRC))
    return others + [{PairFields.KEY: (BINARY, key), PairFields.VALUE: (BINARY, text)} for key, text in ours]


def _sealed(footer: Struct) -> bytes:
    body = encode(dict(sorted(footer.items())))
    checksum = _stored_crc(body)
    assert checksum is not None
    _, at = checksum
    return body[:at] + b"%08x" % crc32(body) + body[at + len(_BLANK_CRC) :]


def _stored_crc(body: bytes) -> tuple[bytes, int] | None:
    """The checksum in a footer and its offset, found without trusting the rest of the footer."""
    at = body.rfind(CRC_KEY)
    # After the key: the header of the value's field, then its length.
    start = at + len(CRC_KEY) + 2
    stored = body[start : start + len(_BLANK_CRC)]
    return (stored, start) if at >= 0 and len(stored) == len(_BLANK_CRC) else None


def _pairs(footer: Struct) -> list[tuple[bytes, bytes]]:
    pairs = items(footer, FileFields.PAIRS)
    return [(value(pair, PairFields.KEY), value(pair, PairFields.VALUE, b"")) for pair in pairs]


def _is_parquet(body: bytes) -> bool:
    try:
        footer, _ = decode(body)
    except ThriftError:
        return False
    needed = {FileFields.VERSION, FileFields.SCHEMA, FileFields.ROWS, FileFields.GROUPS}
    return needed <= set(footer) and INDEX_KEY not in dict(_pairs(footer))


def index_tags(spec: IndexSpec) -> dict[str, str | None]:
    """The tags of an add: the split's format, and the indexed columns with their kinds."""
    tags: dict[str, str | None] = {"splitFormat": str(FORMAT_VERSION)}
    if spec.fields:
        tags["indexedFields"] = ",".join(f"{item.column}:{item.kind}" for item in spec.fields)
        # Lets MERGE SPLITS see, without opening the split, whether the table's settings have changed since.
        tags["indexSettings"] = f"{zlib.crc32(msgspec.json.encode(spec.to_wire())):08x}"
    return tags


def split_tags(spec: IndexSpec, manifest: SplitManifest) -> dict[str, str | None]:
    """The tags of a written split: `index_tags`, lengths and checksums of its parts, ranking totals."""
    tags = index_tags(spec)
    tags[ROW_MAP_TAG] = manifest.row_map.to_tag()
    if manifest.root is not None:
        tags[ROOT_TAG] = manifest.root.to_tag()
        tags[TOKENS_TAG] = msgspec.json.encode(manifest.tokens).decode()
    return tags
