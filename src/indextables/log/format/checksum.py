r"""A checksum inside log files that are not compressed.

gzip notices a changed byte and a missing end; plain JSON does not, and a number with one
changed digit is still a number. So the last line of a version file ends with the checksum
of everything before it, and a plain checkpoint begins with the checksum of everything
after it. Other readers see a field they do not know, and ignore it.

>>> unsealed(sealed(b'{"metaData":{"id":"a"}}\n'), "x", 0)
b'{"metaData":{"id":"a"}}\n'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from indextables.errors import ADVICE_ON_DAMAGE, CorruptLogError
from indextables.storage.checksum import crc32

_END = b"}}\n"
_SEAL = re.compile(rb',"crc32":"([0-9a-f]{8})"\}\}\r?\n?\Z')
_SEAL_BYTES = 32
_DOCUMENT = re.compile(rb'\{"crc32":"([0-9a-f]{8})",')


def sealed(lines: bytes) -> bytes:
    """The lines of a version file, with their checksum added to the end of the last one."""
    return next(sealed_chunks([lines]))


def sealed_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """As `sealed`, for lines that come in chunks of whole lines."""
    total, held = 0, b""
    for chunk in chunks:
        if held:
            total = crc32(held, total)
            yield held
        held = chunk
    if held.endswith(_END) and not held.endswith(b"{" + _END):
        body = held[: -len(_END)]
        held = b'%s,"crc32":"%08x"}}\n' % (body, crc32(body, total))
    yield held


def unsealed(lines: bytes, name: str, version: int) -> bytes:
    """The lines without their checksum, after verifying it; lines that have none are returned unchanged."""
    seal = _SEAL.search(lines, max(0, len(lines) - _SEAL_BYTES))
    if seal is None:
        return lines
    body = lines[: seal.start()]
    if b"%08x" % crc32(body) != seal[1]:
        raise _mismatch(name, version)
    return body + _END


def unsealed_chunks(chunks: Iterable[bytes], name: str, version: int) -> Iterator[bytes]:
    """As `unsealed`, for lines that come in chunks of whole lines; the last line is in the last chunk."""
    total, held = 0, b""
    for chunk in chunks:
        if held:
            total = crc32(held, total)
            yield held
        held = chunk
    seal = _SEAL.search(held, max(0, len(held) - _SEAL_BYTES))
    if seal is None:
        if held:
            yield held
        return
    body = held[: seal.start()]
    if b"%08x" % crc32(body, total) != seal[1]:
        raise _mismatch(name, version)
    yield body + _END


def _mismatch(name: str, version: int) -> CorruptLogError:
    return CorruptLogError(
        f"{name} (version {version}) is damaged: its checksum does not match. {ADVICE_ON_DAMAGE}",
        file=name, version=version,
    )  # fmt: skip


def sealed_document(text: bytes) -> bytes:
    """A JSON object with its checksum as the first field."""
    return b'{"crc32":"%08x",%s' % (crc32(text[1:]), text[1:])


def check_document(data: bytes, name: str) -> None:
    """Raise when a plain document does not match the checksum it begins with."""
    seal = _DOCUMENT.match(data)
    if seal is not None and b"%08x" % crc32(data[seal.end() :]) != seal[1]:
        raise CorruptLogError(f"{name} is damaged: its checksum does not match", file=name)
