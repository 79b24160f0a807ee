"""Files as UTF-8 text, whatever they are compressed with and encoded in.

Compression is seen by the first bytes, not by the name. UTF-16 and Latin-1 are noticed; what is neither
text nor compressed text is refused. The bytes of the file itself are counted, for the progress.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from indextables.errors import OptionError, StorageError
from indextables.ingest.followed_file import FollowedFile

ENDINGS = (".gz", ".xz", ".bz2", ".zst", ".lz4")
"""What names of compressed files end with."""
BLOCK_BYTES = 4 << 20
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
_ARCHIVES = {
    b"PK\x03\x04": "a zip archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!": "a rar archive",
    b"\x1f\x9d": "compressed with compress",
    b"PAR1": "a Parquet file",
    b"SQLite": "an SQLite database",
    b"\x7fELF": "a program",
}
_SAMPLE = 64 << 10
_CONTROL = bytes({*range(32), 127} - {*b"\t\n\r\f\x1b"})
_MOST_CONTROL = 0.1
"""Text has fewer control characters than this."""


class TextFile(io.RawIOBase):
    """A file that is read as UTF-8 text."""

    def __init__(self, path: str, encoding: str | None = None, size: int | None = None) -> None:
        """Open a file; without an encoding it is noticed. What it has beyond `size` bytes is not read."""
        opened = FollowedFile.at(path)
        if opened is None:
            raise StorageError(f"there is no file {path}")
        self._end = opened.size if size is None else size
        self.path, self.file = path, opened
        """The file as it is, with how far it was read."""
        self._unpacked = self._unpacker()
        sample = self._next(_SAMPLE)
        self.encoding = encoding or self._notice(sample)
        self._decoder = codecs.getincrementaldecoder(self.encoding)("replace")
        self._is_utf8 = codecs.lookup(self.encoding).name == "utf-8"
        self.has_replaced = False
        """Whether some bytes were no text in the encoding."""
        self._decoded = self._text(sample)

    def readable(self) -> bool:
        """It can be read."""
        return True

    @property
    def head(self) -> bytes:
        """The first text, as long as nothing was read."""
        return self._decoded

    def read(self, size: int = -1) -> bytes:
        """The next bytes of the text, at most `size`."""
        while not self._decoded:
            packed = self._next(BLOCK_BYTES if size < 0 else size)
            self._decoded = self._text(packed)
            if not packed:
                break
        data = self._decoded if size < 0 else self._decoded[:size]
        self._decoded = self._decoded[len(data) :]
        return data

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()
        super().close()

    def blocks(self) -> Iterator[bytes]:
        """The rest of the text in pieces that end with a line, except the last."""
        unfinished: list[bytes] = []
        while data := self.read(BLOCK_BYTES):
            end = data.rfind(b"\n") + 1
            if end:
                yield b"".join([*unfinished, data[:end]])
                unfinished = []
            unfinished.append(data[end:])
        if any(unfinished):
            yield b"".join(unfinished)

    def _unpacker(self) -> Any:
        raw: Any = _Raw(self.file, self._end)
        start = self.file.peek(8)
        for magic, what in _ARCHIVES.items():
            if start.startswith(magic):
                raise OptionError(f"{self.path} is {what}, which cannot be loaded as text. Unpack it first.")
        kind = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)
        if kind == "gzip":
            return gzip.GzipFile(fileobj=raw)
        if kind == "bz2":
            return bz2.BZ2File(raw)
        if kind == "xz":
            return lzma.LZMAFile(raw)
        return raw if kind is None else pa.input_stream(raw, compression=kind)

    def _next(self, size: int) -> bytes:
        try:
            data: bytes = self._unpacked.read(size)
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as damaged:
            raise StorageError(
                f"{self.path} is damaged or cut off: it cannot be unpacked after byte {self.file.offset:,} "
                f"({damaged})"
            ) from damaged
        return data

    def _text(self, packed: bytes) -> bytes:
        try:
            if self._is_utf8 and not self._decoder.getstate()[0]:
                packed.decode()
                return packed
        except UnicodeDecodeError:
            pass
        text = self._decoder.decode(packed, final=not packed)
        self.has_replaced |= "\ufffd" in text
        return text.encode("utf-8", "replace")

    def _notice(self, sample: bytes) -> str:
        """The encoding that some text has."""
        if sample.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
            return "utf-32"
        if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        if sample.startswith(codecs.BOM_UTF8):
            return "utf-8-sig"
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        if even + odd > _MOST_CONTROL * len(sample) and min(even, odd) * 10 < max(even, odd):
            return "utf-16-le" if odd > even else "utf-16-be"
        if len(sample) - len(sample.translate(None, _CONTROL)) > _MOST_CONTROL * len(sample):
            raise OptionError(
                f"{self.path} is no text, and not compressed in a way that is known (gz, xz, bz2, zst, lz4). "
                "Give its --encoding if it is text."
            )
        try:
            codecs.getincrementaldecoder("utf-8")().decode(sample)
        except UnicodeDecodeError:
            return "latin-1"
        return "utf-8"


class _Raw(io.RawIOBase):
    """The bytes of a file as they are."""

    def __init__(self, file: FollowedFile, end: int) -> None:
        self._file, self._end = file, end

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        left = self._end - self._file.offset
        return self._file.take(left if size < 0 else min(size, left))

    def readinto(self, buffer: Any) -> int:
        data = self._file.take(min(len(buffer), self._end - self._file.offset))
        buffer[: len(data)] = data
        return len(data)
