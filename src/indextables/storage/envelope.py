"""The envelope of a log file: the bytes 0x01 0x01, then gzip; or the plain JSON itself.

The first 0x01 marks an envelope, since no JSON text begins with it; the second names the codec. The
gzip body may have several members, one after the other, as large checkpoints do. Each member we
write notes its own length in a gzip extra field, `IT`, which other gzip readers pass over: with
it the members can be found, and inflated in parallel, without inflating what comes before.

Nothing here trusts a length it reads. Inflating stops as soon as the output outgrows what any log
could have been compressed from, so a decompression bomb costs a bounded amount of memory.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, cast

from isal import igzip_lib, isal_zlib

from indextables.errors import CorruptLogError, OptionError
from indextables.options import CompressionOptions
from indextables.runtime import in_threads

MAGIC = b"\x01"
GZIP = b"\x01"

# Log lines repeat much, but every one names another file: 10,000 adds that differ in a counter
# only shrink about 45 times. Below the free allowance the ratio is not looked at, since a few
# lines of long equal statistics may well exceed it.
HONEST_RATIO = 300
FREE_BYTES = 64 << 20
WORTH_THREADS = 512 << 10
"""Stored bytes from which starting threads costs less than it saves."""

_FASTEST_LEVEL = 1
_HIGHEST_ISAL_LEVEL = 3
_HIGHEST_LEVEL = 9
_FEED_BYTES = 64 << 10
_CHUNK_BYTES = 4 << 20
# id, method, flags = extra field, no time, no hints, unknown system; the extra field's length;
# its only subfield: name, length, length of the whole member
_HEADER = struct.Struct("<2sBBIBBH2sHQ")
_TRAILER = struct.Struct("<II")
_EXTRA = 4
_SUBFIELD = b"IT"
_Undecodable = cast("type[Exception]", igzip_lib.IsalError)
_Undecodable_at_once = cast("type[Exception]", isal_zlib.error)


def pack(data: bytes, compression: CompressionOptions, *, first: bool = True) -> bytes:
    """Wrap the text of a log file as the options say; a text in chunks is packed one by one.

    Of several chunks only the `first` carries the two bytes of the envelope; each is a gzip member.
    """
    if not compression.enabled:
        return data
    return (MAGIC + GZIP if first else b"") + _member(data, _level(compression))


def is_packed(data: bytes) -> bool:
    """Whether a file begins like an envelope."""
    return data[:1] == MAGIC


def unpack(data: bytes, *, name: str, limit: int | None = None) -> bytes:
    """The text of a log file. `name` is for messages; `limit` bounds the size of the text."""
    if not _opened(data, name):
        return data
    chunks = list(unpack_members(data, name, limit=limit))
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def unpack_members(
    data: bytes, name: str, *, limit: int | None = None, workers: int = 1, threads_from: int = WORTH_THREADS
) -> Iterator[bytes]:
    """The text of a log file in the chunks it was written in.

    More than `threads_from` stored bytes are inflated by `workers` threads.
    """
    if not _opened(data, name):
        yield data
        return
    body = memoryview(data)[2:]
    spans = _spans(body)
    if len(spans) > 1 and workers > 1 and len(body) > threads_from:
        yield from _unpack_in_parallel(body, spans, name, limit, workers)
        return
    if spans:
        budget = _Budget(name, limit)
        for begin, end in spans:
            text = _inflate_member(body[begin:end], name, limit)
            budget.spend(end - begin, len(text))
            yield text
        return
    parts: list[bytes] = []
    for chunk, ends in _inflate(body, name, _Budget(name, limit)):
        parts.append(chunk)
        if ends:
            yield parts[0] if len(parts) == 1 else b"".join(parts)
            parts = []


def unpack_blocks(data: bytes, name: str) -> Iterator[bytes]:
    """The text of a log file in blocks of bounded size, independent of its gzip members."""
    if not _opened(data, name):
        yield data
        return
    for block, _ in _inflate(memoryview(data)[2:], name, _Budget(name, None)):
        yield block


class _Budget:
    """Tracks how much was inflated from how much, and when to stop."""

    def __init__(self, name: str, limit: int | None) -> None:
        self._name = name
        self._limit = limit
        self.fed = 0
        self.produced = 0

    def spend(self, fed: int, produced: int) -> None:
        self.fed += fed
        self.produced += produced
        if self._limit is not None and self.produced > self._limit:
            raise CorruptLogError(
                f"{self._name} inflates to more than {self._limit} bytes, the most that is allowed for it. "
                "It is damaged, or not a log file of this table.",
                file=self._name,
            )
        if self.produced > FREE_BYTES + HONEST_RATIO * self.fed:
            raise CorruptLogError(
                f"{self._name} inflates to more than {self.produced} bytes from its first {self.fed}: no log "
                "compresses that well. It is a decompression bomb and was not read; find out who wrote it.",
                file=self._name,
            )


def _opened(data: bytes, name: str) -> bool:
    """True for an envelope, False for plain JSON; anything else is an error."""
    if not data:
        raise CorruptLogError(
            f"{name} is empty. Its writer died before the content was on disk, or a copy failed.", file=name
        )
    if is_packed(data):
        if len(data) == 1:
            raise CorruptLogError(f"{name} is cut off after its first byte.", file=name)
        if data[1:2] != GZIP:
            raise CorruptLogError(
                f"{name} has the unknown compression codec 0x{data[1]:02X}; 0x01 (gzip) is the known one. "
                "A newer version of this library may be able to read it.",
                file=name,
            )
        return True
    start = data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:1] in {b"{", b"["} or (
        not start and data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in {b"{", b"["}
    ):
        return False
    raise CorruptLogError(
        f"{name} is neither a compressed log file nor JSON: it begins with the bytes {data[:8].hex(' ')}.",
        file=name,
    )


def _level(compression: CompressionOptions) -> int:
    level = _FASTEST_LEVEL if compression.gzip_level is None else compression.gzip_level
    if not _FASTEST_LEVEL <= level <= _HIGHEST_LEVEL:
        raise OptionError(f"gzip level {level} does not exist; use 1 (fast) to 9 (small).", value=level)
    if compression.codec != "gzip":
        raise OptionError(
            f"compression codec {compression.codec!r} is not known; use gzip.", value=compression.codec
        )
    return level


def _member(data: bytes, level: int) -> bytes:
    """One gzip member that records its own length. Its bytes depend only on the data and the level."""
    squeezer: Any
    if level <= _HIGHEST_ISAL_LEVEL:
        squeezer = isal_zlib.compressobj(level, isal_zlib.DEFLATED, -isal_zlib.MAX_WBITS)
    else:
        squeezer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    body: bytes = squeezer.compress(data) + squeezer.flush()
    length = _HEADER.size + len(body) + _TRAILER.size
    header = _HEADER.pack(b"\x1f\x8b", 8, _EXTRA, 0, 0, 255, 12, _SUBFIELD, 8, length)
    return header + body + _TRAILER.pack(isal_zlib.crc32(data), len(data) & 0xFFFFFFFF)


def _inflate(body: memoryview, name: str, budget: _Budget) -> Iterator[tuple[bytes, bool]]:
    """Inflate members one after the other, as (chunk, whether its member ends here)."""
    begin = 0
    while begin < len(body) or begin == 0:
        inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        fed = begin
        while not inflater.eof:
            feed = body[fed : fed + _FEED_BYTES] if inflater.needs_input else body[:0]
            if inflater.needs_input and not feed:
                raise CorruptLogError(
                    f"{name} ends in the middle of its compressed content, after {len(body) + 2} bytes: it "
                    "was cut off while it was written or copied.",
                    file=name,
                )
            fed += len(feed)
            try:
                chunk = inflater.decompress(feed, _CHUNK_BYTES)
            except _Undecodable as error:
                raise CorruptLogError(
                    f"{name} is damaged: its compressed content does not decode near byte {fed} ({error}).",
                    file=name,
                ) from error
            budget.spend(len(feed), len(chunk))
            yield chunk, inflater.eof
        begin = fed - len(inflater.unused_data)
        budget.spend(begin - fed, 0)


def _spans(body: memoryview) -> list[tuple[int, int]]:
    """The start and end of each member; empty if any of them does not record its length."""
    spans: list[tuple[int, int]] = []
    begin = 0
    while begin < len(body):
        length = _noted_length(body[begin : begin + _HEADER.size])
        if length < _HEADER.size + _TRAILER.size or begin + length > len(body):
            return []
        spans.append((begin, begin + length))
        begin += length
    return spans


def _noted_length(header: memoryview) -> int:
    if len(header) < _HEADER.size:
        return 0
    identity, _, flags, _, _, _, _, subfield, size, length = _HEADER.unpack(header)
    has_length = identity == b"\x1f\x8b" and flags == _EXTRA and subfield == _SUBFIELD and size == 8  # noqa: PLR2004
    return int(length) if has_length else 0


def _unpack_in_parallel(
    body: memoryview, spans: list[tuple[int, int]], name: str, limit: int | None, workers: int
) -> Iterator[bytes]:
    budget = _Budget(name, limit)
    texts = in_threads(lambda span: _inflate_member(body[slice(*span)], name, limit), spans, workers)
    for (begin, end), text in zip(spans, texts, strict=True):
        budget.spend(end - begin, len(text))
        yield text


def _inflate_member(member: memoryview, name: str, limit: int | None) -> bytes:
    text = _inflate_at_once(member, limit)
    if text is not None:
        return text
    parts: list[bytes] = []
    members = 0
    for chunk, ends in _inflate(member, name, _Budget(name, limit)):
        parts.append(chunk)
        members += ends
    if members != 1:
        raise CorruptLogError(f"{name} is damaged: its parts are not as long as they say.", file=name)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _inflate_at_once(member: memoryview, limit: int | None) -> bytes | None:
    """Inflate a sound member that we wrote into memory of the size it states; None for any other.

    Memory that grows piece by piece costs more than the inflating itself.
    """
    checksum, size = _TRAILER.unpack(member[-_TRAILER.size :])
    most = FREE_BYTES + HONEST_RATIO * len(member)
    if size > (most if limit is None else min(limit, most)):
        return None
    inflater = isal_zlib.decompressobj(-isal_zlib.MAX_WBITS)
    try:
        text: bytes = inflater.decompress(member[_HEADER.size : -_TRAILER.size], size + 1)
    except _Undecodable_at_once:
        return None
    sound = inflater.eof and not inflater.unused_data and len(text) == size
    return text if sound and isal_zlib.crc32(text) == checksum else None
