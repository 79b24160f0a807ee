"""Word filters over many indexes: which of them may have a word, answered by one small read.

Every index has a split-block Bloom filter of its words. The filters of a group have the
same number of blocks and are stored block by block: the blocks for one word are adjacent,
one for each index. So a single range of 32 bytes per index answers for the whole group.
An index that has the word is never ruled out.

    blocks          for each block number: 32 bytes per index, then a CRC-32
    members         the settings and the names of the group, as MessagePack, compressed
    trailer         "ITF1", blocks, members, lengths, checksums
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import field

import msgspec
import numpy as np
import pyarrow as pa

from indextables.errors import DamagedIndexError
from indextables.index.codec.numbers import Array, starts_of
from indextables.index.codec.root import FieldRoot
from indextables.index.query.combine import Boost, Combined
from indextables.index.query.evaluate import Compiler
from indextables.index.query.plan import OneTerm, Plan, TermKey
from indextables.index.query.ranges import Phrase
from indextables.index.query.tree import Query
from indextables.index.read.cache import RangeReader
from indextables.index.read.lookup import Index, fields_of
from indextables.records import dataclass
from indextables.storage.checksum import crc32

BITS_PER_WORD = 14
"""Bits per word, for about four false positives in a thousand."""
_LANES = 8
_BLOCK = 4 * _LANES
_HEAD = struct.Struct("<4sIIIII")
_TRAILER = _HEAD.size + 4
_FIRST_READ = 32 << 10
_ANSWERS = 256
"""Keys whose answers a group remembers, at a byte per member."""
_MAGIC = b"ITF1"
_MEMBERS = msgspec.msgpack.Decoder(tuple[str, list[str]])
_SALTS = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31],
    np.uint32,
)
_FACTOR = 0x9E3779B97F4A7C15
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def hash_words(words: Sequence[bytes]) -> Array:
    """A 64-bit hash for each word; it must stay the same in every later version."""
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    data = np.frombuffer(b"".join(words), np.uint8).astype(np.uint64) + np.uint64(1)
    starts = starts_of(lengths)
    index = np.arange(len(data)) - np.repeat(starts[:-1], lengths)
    sums = np.zeros(len(words), np.uint64)
    filled = np.flatnonzero(lengths)
    if len(filled):
        powers = _powers(int(lengths.max()))
        sums[filled] = np.add.reduceat(data * powers[index], starts[:-1][filled])
    return _mixed(sums)


def _powers(count: int) -> Array:
    powers = np.full(max(count, 1), _FACTOR, np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)


def _mixed(sums: Array) -> Array:
    mixed = sums
    for shift, factor in zip((30, 27), _MIX, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _blocks_for(words: int) -> int:
    """Blocks of a filter: the next power of two, so that splits of similar size share a group."""
    return 1 << max(0, (words * BITS_PER_WORD - 1) // (8 * _BLOCK)).bit_length()


def _masks(hashes: Array) -> Array:
    """The bits of each word inside its block: one in each of eight lanes."""
    low = hashes.astype(np.uint32)
    return np.uint32(1) << ((low[:, None] * _SALTS) >> np.uint32(27))


def key_of(field: int, word: bytes) -> bytes:
    """The key of a field's word in a filter."""
    return field.to_bytes(2, "little") + word


def filter_of(index: Index) -> Array:
    """The filter of one index, made from its words: an array of blocks of eight lanes each."""
    blocks = _blocks_for(sum(field.words for field in index.root.fields))
    bloom = np.zeros((blocks, _LANES), np.uint32)
    for number, block in index.every_block():
        hashes = hash_words([key_of(number, word) for word in block.words()])
        at = (hashes >> np.uint64(32)) & np.uint64(blocks - 1)
        np.bitwise_or.at(bloom, at.astype(np.int64), _masks(hashes))
    return bloom


def group_bytes(names: Sequence[str], filters: Sequence[Array], settings: str) -> bytes:
    """The stored form of a group; its filters must have the same number of blocks.

    `settings` are those the indexes were made with; a table with other settings cannot use the group.
    """
    (blocks,) = {len(item) for item in filters}
    rows = np.stack(filters, axis=1).astype("<u4").tobytes()
    width = _BLOCK * len(filters)
    body = b"".join(
        row + struct.pack("<I", crc32(row))
        for row in (rows[at : at + width] for at in range(0, len(rows), width))
    )
    members = msgspec.msgpack.encode((settings, list(names)))
    listed: bytes = pa.compress(members, codec="zstd", asbytes=True)
    before = _HEAD.pack(_MAGIC, blocks, len(filters), len(listed), len(members), crc32(listed))
    return body + listed + before + struct.pack("<I", crc32(before))


@dataclass(frozen=True, slots=True)
class FilterGroup:
    """The filters of a group of indexes, open for lookups."""

    ranges: RangeReader
    settings: str
    names: tuple[str, ...]
    blocks: int
    answers: dict[bytes, Array] = field(default_factory=dict)
    """For keys that were looked up before, which members may have them."""

    @classmethod
    def open(cls, ranges: RangeReader, length: int) -> FilterGroup:
        """Read the members of a group: one read, or two for a large group."""
        first = min(length, _FIRST_READ)
        tail = bytes(ranges.many([(length - first, first)])[0])
        if len(tail) < _TRAILER:
            raise damaged("it is too short")
        head, checksum = tail[-_TRAILER:-4], tail[-4:]
        magic, blocks, members, listed, raw, crc = _HEAD.unpack(head)
        if magic != _MAGIC or struct.pack("<I", crc32(head)) != checksum:
            raise damaged("its trailer is not what was written")
        if blocks * (_BLOCK * members + 4) + listed + _TRAILER != length:
            raise damaged("it has another length")
        if listed + _TRAILER <= len(tail):
            body = tail[len(tail) - _TRAILER - listed : len(tail) - _TRAILER]
        else:
            body = bytes(ranges.many([(length - listed - _TRAILER, listed)])[0])
        if crc32(body) != crc:
            raise damaged("its list of members is not what was written")
        members_bytes = pa.decompress(body, raw, codec="zstd", asbytes=True)
        settings, names = _MEMBERS.decode(members_bytes)
        return cls(ranges, settings, tuple(names), blocks)

    def may_match(self, query: Query) -> Array:
        """For each member, whether one of its rows may match the query; at most one round trip.

        The query must have been parsed with the settings of the group.
        """
        fields = fields_of(query.spec, [FieldRoot(blocks=0)] * len(query.spec.fields))
        plan = Compiler(fields, query.compared, has_values=True).plan(query.node)
        keys = list(dict.fromkeys(_required_keys(plan)))
        rows = self.may_hold([key_of(*key) for key in keys])
        return self._may_match(plan, dict(zip(keys, rows, strict=True)))

    def _may_match(self, plan: Plan, by_key: Mapping[TermKey, Array]) -> Array:
        if isinstance(plan, Boost):
            return self._may_match(plan.part, by_key)
        if isinstance(plan, Combined):
            if plan.must:
                return np.asarray(np.all([self._may_match(part, by_key) for part in plan.must], axis=0))
            if plan.should:
                return np.asarray(np.any([self._may_match(part, by_key) for part in plan.should], axis=0))
            return np.full(len(self.names), bool(plan.must_not))
        keys = _required_keys(plan)
        if not keys:
            return np.ones(len(self.names), np.bool_)
        return np.asarray(np.all([by_key[key] for key in keys], axis=0))

    def may_hold(self, keys: Sequence[bytes]) -> Array:
        """For each key and each member, whether the member may have it; one round trip."""
        answers = {key: cached for key in keys if (cached := self.answers.get(key)) is not None}
        missing = [key for key in keys if key not in answers]
        hashes = hash_words(missing)
        width = _BLOCK * len(self.names) + 4
        ranges = [(int(at) * width, width) for at in (hashes >> np.uint64(32)) & np.uint64(self.blocks - 1)]
        blocks = self.ranges.many(ranges) if ranges else ()
        for key, block, mask in zip(missing, blocks, _masks(hashes), strict=True):
            body = bytes(block)
            if struct.pack("<I", crc32(body[:-4])) != body[-4:]:
                raise damaged("a block is not what was written")
            lanes = np.frombuffer(body[:-4], "<u4").reshape(len(self.names), _LANES)
            answers[key] = ((lanes & mask) == mask).all(axis=1)
        if len(self.answers) + len(missing) > _ANSWERS:
            self.answers.clear()
        self.answers.update((key, answers[key]) for key in missing[:_ANSWERS])
        return np.array([answers[key] for key in keys], np.bool_).reshape(len(keys), len(self.names))

    def every_filter(self) -> list[Array]:
        """The filters of all members, to build a larger group."""
        width = _BLOCK * len(self.names) + 4
        body = bytes(self.ranges.many([(0, self.blocks * width)])[0])
        rows = np.frombuffer(body, np.uint8).reshape(self.blocks, width)
        for row in rows:
            if struct.pack("<I", crc32(row[:-4])) != row[-4:].tobytes():
                raise damaged("a block is not what was written")
        lanes = np.ascontiguousarray(rows[:, :-4]).view("<u4").reshape(self.blocks, len(self.names), _LANES)
        return [np.ascontiguousarray(lanes[:, at]) for at in range(len(self.names))]


def _required_keys(plan: Plan) -> list[TermKey]:
    """The words without which a query part cannot match: all words of a phrase, none of a range."""
    if isinstance(plan, Boost):
        return _required_keys(plan.part)
    if isinstance(plan, Combined):
        parts = plan.must or plan.should
        return [key for part in parts for key in _required_keys(part)]
    if isinstance(plan, OneTerm):
        return [(plan.field, plan.word)]
    if isinstance(plan, Phrase):
        return [(plan.field, word) for word in plan.words]
    return []


def damaged(why: str) -> DamagedIndexError:
    """The error for a group that cannot be used; the indexes themselves can be asked instead."""
    return DamagedIndexError(f"a filter over indexes is damaged: {why}")
