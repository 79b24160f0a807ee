"""The envelope of log files: what goes in comes out, and no damage goes unnoticed."""

from __future__ import annotations

import contextlib
import gzip
import subprocess
import sys
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import CorruptLogError, OptionError
from indextables.options import CompressionOptions
from indextables.storage import envelope
from indextables.storage.envelope import is_packed, pack, unpack, unpack_members

LINES = b"\n".join(
    b'{"add":{"path":"part-%05d.split","partitionValues":{},"size":%d,"dataChange":true}}' % (n, n * 7919)
    for n in range(5000)
)
PLAIN = CompressionOptions(enabled=False)
LEVELS = [None, *range(1, 10)]


def pack_members(chunks, compression):
    return [pack(chunk, compression, first=not at) for at, chunk in enumerate(chunks)]


def level(number: int | None) -> CompressionOptions:
    return CompressionOptions(gzip_level=number)


@pytest.mark.parametrize("number", LEVELS)
def test_a_log_file_begins_with_two_magic_bytes_and_then_is_gzip(number: int | None) -> None:
    """G1, G3: levels 1 to 9, and the fast one when none is set; any gzip reads the body."""
    data = pack(LINES, level(number))
    assert data[:4] == b"\x01\x01\x1f\x8b"
    assert gzip.decompress(data[2:]) == LINES
    assert unpack(data, name="v") == LINES
    assert len(data) < len(LINES) / 5


def test_the_default_is_compressed_and_can_be_switched_off() -> None:
    """G1: enabled=false writes plain JSON."""
    assert is_packed(pack(LINES, CompressionOptions()))
    assert pack(LINES, PLAIN) == LINES
    assert not is_packed(LINES)
    assert unpack(LINES, name="v") == LINES


def test_the_same_text_always_gives_the_same_bytes() -> None:
    for number in LEVELS:
        assert pack(LINES, level(number)) == pack(LINES, level(number))
    assert pack(LINES, level(None)) == pack(LINES, level(1))


@given(text=st.binary(), number=st.sampled_from(LEVELS))
def test_anything_packed_comes_out_equal(text: bytes, number: int | None) -> None:
    """G1."""
    assert unpack(pack(text, level(number)), name="v") == text


@given(
    chunks=st.lists(st.binary(max_size=3000), min_size=1, max_size=6), number=st.sampled_from([None, 3, 6])
)
def test_the_pieces_of_a_file_come_out_as_they_went_in(chunks: list[bytes], number: int | None) -> None:
    """G1: a body of several gzip members, inflated by one thread or by several."""
    data = b"".join(pack_members(chunks, level(number)))
    assert list(unpack_members(data, "v")) == chunks
    assert list(unpack_members(data, "v", workers=3, threads_from=0)) == chunks
    assert unpack(data, name="v") == b"".join(chunks)
    assert gzip.decompress(data[2:]) == b"".join(chunks)


def test_members_of_another_gzip_writer_are_read_too() -> None:
    data = b"\x01\x01" + gzip.compress(LINES[:1000]) + gzip.compress(b"") + gzip.compress(LINES[1000:])
    assert unpack(data, name="v") == LINES
    for workers in (1, 3):
        assert b"".join(unpack_members(data, "v", workers=workers, threads_from=0)) == LINES


def test_plain_pieces_stay_plain() -> None:
    """G1: mixed tables read."""
    assert pack_members([b'{"a":', b"1}"], PLAIN) == [b'{"a":', b"1}"]
    assert list(unpack_members(b'{"a":1}', "v")) == [b'{"a":1}']


@pytest.mark.parametrize("text", [b'{"a":1}', b"[]", b"\n\r\n {}", b"\xef\xbb\xbf{}", b" " * 100 + b"{}"])
def test_plain_json_is_passed_through(text: bytes) -> None:
    """A10: a BOM and blank lines are tolerated."""
    assert unpack(text, name="v") == text


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"\x01", "cut off after its first byte"),
        (b"\x01\xff", "unknown compression codec 0xFF"),
        (b"\x01\x00{}", "unknown compression codec 0x00"),
        (b"\x01\x01", "ends in the middle"),
        (b"\x01\x01not gzip at all", "is damaged"),
        (b"\x1f\x8b\x08\x00", "neither a compressed log file nor JSON"),
        (b"PAR1", "neither a compressed log file nor JSON"),
        (b"hello", "neither a compressed log file nor JSON"),
        (b" \n\n", "neither a compressed log file nor JSON"),
    ],
)
def test_what_is_no_log_file_is_said_to_be_none(data: bytes, says: str) -> None:
    """G2: every kind of garbage has its clear error, with the file's name."""
    for read in (
        lambda: unpack(data, name="00000000000000000007.json"),
        lambda: list(unpack_members(data, "00000000000000000007.json", workers=2, threads_from=0)),
    ):
        with pytest.raises(CorruptLogError, match=says) as caught:
            read()
        assert "00000000000000000007.json" in str(caught.value)
        assert caught.value.file == "00000000000000000007.json"


def test_a_file_cut_off_anywhere_is_refused() -> None:
    """G2, C6: never a shorter file list."""
    data = pack(LINES[:2000], CompressionOptions())
    for end in range(2, len(data)):
        with pytest.raises(CorruptLogError):
            unpack(data[:end], name="v")
    parts = b"".join(pack_members([LINES[:500], LINES[500:900]], CompressionOptions()))
    whole_first = len(pack(LINES[:500], CompressionOptions()))
    for end in range(2, len(parts)):
        if end != whole_first:
            with pytest.raises(CorruptLogError):
                list(unpack_members(parts[:end], "v", workers=2, threads_from=0))


def test_a_flipped_bit_anywhere_is_refused_or_changes_nothing() -> None:
    """G2, C6: gzip's own checksum is checked, in every member."""
    chunks = [LINES[:700], LINES[700:1200]]
    data = b"".join(pack_members(chunks, CompressionOptions()))
    second = len(pack_members(chunks, CompressionOptions())[0])
    headers = {start + at for start in (2, second) for at in range(24)}
    # Before the trailer the last byte of a member is filled up with bits that mean nothing.
    filled = {second - 9, len(data) - 9}
    for workers in (1, 2):
        accepted = set()
        for position in range(2, len(data)):
            damaged = bytearray(data)
            damaged[position] ^= 0x10
            with contextlib.suppress(CorruptLogError):
                found = b"".join(unpack_members(bytes(damaged), "v", workers=workers, threads_from=0))
                assert found == b"".join(chunks)
                accepted.add(position)
        assert accepted
        assert accepted < headers | filled, "only what a reader can do without"


def test_trailing_bytes_are_refused() -> None:
    data = pack(LINES, CompressionOptions())
    for tail in (b"\0", b"{}", b"\x1f\x8b", bytes(100)):
        with pytest.raises(CorruptLogError):
            unpack(data + tail, name="v")


def test_an_honest_log_is_far_from_the_limit() -> None:
    """G2: lines as alike as log lines get, at the highest level."""
    adds = b"\n".join(
        b'{"add":{"path":"part-%05d.split","size":100,"dataChange":true}}' % n for n in range(50_000)
    )
    assert len(adds) / len(pack(adds, level(9))) < envelope.HONEST_RATIO / 4


def test_long_equal_statistics_are_no_bomb() -> None:
    lines = b"\n".join(
        b'{"add":{"path":"%d","minValues":{"a":"%s"}}}' % (n, b"x" * 8000) for n in range(5000)
    )
    assert unpack(pack(lines, level(9)), name="v") == lines


def _bomb(size_mib: int) -> bytes:
    """A gzip stream of zeros, made of one block over and over; nobody gets to its missing end."""
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = squeezer.compress(bytes(1 << 20)) + squeezer.flush(zlib.Z_FULL_FLUSH)
    return b"\x01\x01" + gzip.compress(b"")[:10] + block * size_mib


def test_a_decompression_bomb_is_refused_in_bounded_memory() -> None:
    """G2: a gigabyte from a megabyte stops long before it is all there."""
    bomb = _bomb(1024)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptLogError, match="decompression bomb"):
            unpack(bomb, name="v")
        assert tracemalloc.get_traced_memory()[1] < 256 << 20
        with pytest.raises(CorruptLogError, match="decompression bomb"):
            for _ in unpack_members(bomb, "v"):
                pass
        assert tracemalloc.get_traced_memory()[1] < 256 << 20
    finally:
        tracemalloc.stop()


def test_a_bomb_in_many_small_members_is_refused_too() -> None:
    """G2: the allowance is for the file, not for each of its parts."""
    small = pack(bytes(16 << 20), level(9), first=False)
    bomb = b"\x01\x01" + small * 64
    for workers in (1, 2):
        produced = 0
        with pytest.raises(CorruptLogError, match="decompression bomb"):
            for piece in unpack_members(bomb, "v", workers=workers, threads_from=0):
                produced += len(piece)
        assert produced < 256 << 20
    with pytest.raises(CorruptLogError, match="decompression bomb"):
        unpack(bomb, name="v")


def test_a_caller_can_set_a_limit_of_its_own() -> None:
    data = pack(LINES, CompressionOptions())
    assert unpack(data, name="v", limit=len(LINES)) == LINES
    with pytest.raises(CorruptLogError, match=f"more than {len(LINES) - 1} bytes"):
        unpack(data, name="v", limit=len(LINES) - 1)
    with pytest.raises(CorruptLogError, match="more than"):
        list(unpack_members(data, "v", limit=100))


@pytest.mark.parametrize(
    "bad",
    [CompressionOptions(gzip_level=0), CompressionOptions(gzip_level=10), CompressionOptions(codec="zstd")],
)
def test_another_level_or_codec_is_an_error_before_anything_is_written(bad: CompressionOptions) -> None:
    """G3."""
    with pytest.raises(OptionError):
        pack(b"{}", bad)
    with pytest.raises(OptionError):
        pack(b"{}", bad, first=False)


_BOMB_READER = """
import resource, sys
from indextables.errors import CorruptLogError
from indextables.storage.envelope import unpack
bomb = open(sys.argv[1], "rb").read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    unpack(bomb, name="v")
except CorruptLogError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_a_process_that_meets_a_bomb_stays_small(tmp_path) -> None:
    """G2: measured as the operating system sees it."""
    place = tmp_path / "bomb"
    place.write_bytes(_bomb(8192))
    run = subprocess.run(
        [sys.executable, "-c", _BOMB_READER, place], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 300 << 10
