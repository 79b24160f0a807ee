"""Deletion vectors: where they lie, how they are framed, and which rows they hold."""

import struct
import uuid
import zlib

import pytest

from indextables.errors import CorruptLogError, TableError
from indextables.storage.deletion_vectors import (
    _B85,
    _Z85,
    DeletionVector,
    decode_bitmap,
    deleted_rows,
    descriptor,
    unique_id,
    z85_decode,
)
from indextables.storage.store import open_store

RUNS, ARRAY, BITS = "runs", "array", "bits"


def z85_encode(data: bytes) -> str:
    import base64

    return base64.b85encode(data).decode().translate(str.maketrans(_B85, _Z85))


def container(kind, rows):
    if kind == ARRAY:
        return struct.pack(f"<{len(rows)}H", *rows)
    if kind == BITS:
        bits = bytearray(8192)
        for row in rows:
            bits[row // 8] |= 1 << row % 8
        return bytes(bits)
    present = set(rows)
    starts = [row for row in rows if row - 1 not in present]
    ends = [row for row in rows if row + 1 not in present]
    pairs = [value for first, last in zip(starts, ends, strict=True) for value in (first, last - first)]
    return struct.pack(f"<H{len(pairs)}H", len(starts), *pairs)


def bucket(containers):
    """Serialise {key: (kind, rows)} as a 32-bit Roaring bitmap, written after its public format description."""
    count = len(containers)
    has_runs = any(kind == RUNS for kind, _ in containers.values())
    if has_runs:
        flags = sum(1 << at for at, (kind, _) in enumerate(containers.values()) if kind == RUNS)
        head = struct.pack("<I", (count - 1) << 16 | 12347) + flags.to_bytes((count + 7) // 8, "little")
    else:
        head = struct.pack("<II", 12346, count)
    for key, (_, rows) in containers.items():
        head += struct.pack("<HH", key, len(rows) - 1)
    bodies = [container(kind, rows) for kind, rows in containers.values()]
    if not has_runs or count >= 4:
        head += b"\0\0\0\0" * count
    return head + b"".join(bodies)


def bitmap(buckets):
    body = b"".join(struct.pack("<I", key) + bucket(containers) for key, containers in buckets.items())
    return struct.pack("<iq", 1681511377, len(buckets)) + body


CASES = {
    "few rows": {0: {0: (ARRAY, [0, 3, 4, 65535])}},
    "many rows": {0: {0: (BITS, list(range(0, 65536, 3)))}},
    "runs": {0: {0: (RUNS, [0, 1, 2, 10, 11, 65535])}},
    "a whole container": {0: {0: (RUNS, list(range(65536)))}},
    "several containers": {0: {0: (ARRAY, [1]), 2: (RUNS, [5, 6]), 9: (BITS, list(range(5000)))}},
    "four containers with runs": {0: {at: (RUNS, [at, at + 1]) for at in range(4)}},
    "beyond 32 bits": {0: {0: (ARRAY, [7])}, 3: {1: (ARRAY, [2, 9])}},
    "nothing": {},
}


@pytest.mark.parametrize("name", CASES)
def test_every_container_kind_decodes_to_its_rows(name):
    """K7: array, bitmap and run containers, in 64 bits."""
    expected = [
        (high << 32) + (key << 16) + row
        for high, containers in CASES[name].items()
        for key, (_, rows) in containers.items()
        for row in rows
    ]
    assert decode_bitmap(bitmap(CASES[name]), name="x").to_pylist() == expected


@pytest.mark.parametrize("cut", [0, 3, 11, 15, 20, 30])
def test_a_cut_bitmap_is_an_error(cut):
    """K5: a damaged vector never means fewer deleted rows."""
    data = bitmap(CASES["several containers"])[: cut or -1]
    with pytest.raises(CorruptLogError):
        decode_bitmap(data, name="x")


def test_another_magic_number_is_refused():
    with pytest.raises(CorruptLogError, match="magic number"):
        decode_bitmap(struct.pack("<iq", 1681511376, 0), name="x")


def file_of(*vectors):
    data, offsets = b"\x01", []
    for vector in vectors:
        offsets.append(len(data))
        data += struct.pack(">i", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
    return data, offsets


@pytest.fixture
def store():
    return open_store(f"memory://{uuid.uuid4()}")


def test_vectors_share_a_file_and_are_cut_out_by_offset(store):
    """K7: a relative vector, with and without a prefix directory."""
    first, second = bitmap(CASES["few rows"]), bitmap(CASES["runs"])
    data, offsets = file_of(first, second)
    name = uuid.uuid4()
    for prefix in ("", "ab"):
        store.put(f"{prefix}{'/' if prefix else ''}deletion_vector_{name}.bin", data)
        vector = DeletionVector("u", prefix + z85_encode(name.bytes), offsets[1], len(second), 6)
        assert deleted_rows(store, vector, "f.parquet", 65_536).to_pylist() == [0, 1, 2, 10, 11, 65535]


def test_an_absolute_vector_lies_anywhere(store):
    """K7: storage type p."""
    data, (offset,) = file_of(bitmap(CASES["few rows"]))
    other = open_store(f"memory://{uuid.uuid4()}")
    other.put("vectors/x.bin", data)
    vector = DeletionVector("p", f"{other.uri}/vectors/x.bin", offset, len(data) - 9, 4)
    trusting = open_store(store.uri, {"read.allowedRoots": other.uri})
    assert deleted_rows(trusting, vector, "f.parquet", 65_536).to_pylist() == [0, 3, 4, 65535]
    with pytest.raises(TableError, match="outside the table"):
        deleted_rows(store, vector, "f.parquet", 65_536)


def test_an_inline_vector_lies_in_the_log(store):
    """K7: storage type i; the text is padded to four bytes, the size tells how many count."""
    data = bitmap(CASES["few rows"])
    text = z85_encode(data + b"\0" * (-len(data) % 4))
    vector = DeletionVector("i", text, None, len(data), 4)
    assert deleted_rows(store, vector, "f.parquet", 65_536).to_pylist() == [0, 3, 4, 65535]
    assert vector.unique_id == f"i{text}"


def test_the_protocols_own_example_of_a_relative_path():
    """K7: the example of PROTOCOL.md."""
    vector = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6)
    assert vector.location() == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert vector.unique_id == "uab^-aqEH.-t@S}K{vb[*k^@4"


@pytest.mark.parametrize("place", ["length", "body", "checksum", "version"])
def test_a_damaged_file_is_an_error_that_names_it(store, place):
    """K5: the frame of a vector is verified."""
    data, (offset,) = file_of(bitmap(CASES["few rows"]))
    at = {"length": offset + 3, "body": offset + 20, "checksum": len(data) - 1, "version": 0}[place]
    broken = bytearray(data)
    broken[at] ^= 0xFF
    store.put("x.bin", bytes(broken))
    vector = DeletionVector("p", f"{store.uri}/x.bin", offset, len(data) - 9, 4)
    with pytest.raises(CorruptLogError, match=r"x\.bin"):
        deleted_rows(store, vector, "f.parquet", 65_536)


def test_a_wrong_cardinality_is_an_error(store):
    """K5: the descriptor and the bitmap must agree."""
    data = bitmap(CASES["few rows"])
    text = z85_encode(data + b"\0" * (-len(data) % 4))
    with pytest.raises(CorruptLogError, match=r"inline of f.parquet holds 4 rows, but the log says 5"):
        deleted_rows(store, DeletionVector("i", text, None, len(data), 5), "f.parquet", 65_536)


def test_a_row_beyond_the_file_is_an_error(store):
    """K5: the vector belongs to another file, or was damaged in a way no checksum shows."""
    data = bitmap(CASES["few rows"])
    text = z85_encode(data + b"\0" * (-len(data) % 4))
    vector = DeletionVector("i", text, None, len(data), 4)
    with pytest.raises(CorruptLogError, match=r"inline of f.parquet names row 65535.* has 65535 rows"):
        deleted_rows(store, vector, "f.parquet", 65_535)


def test_an_absent_descriptor_is_none_and_an_incomplete_one_an_error():
    assert descriptor(None) is None
    assert unique_id({"storageType": None}) is None
    with pytest.raises(CorruptLogError, match="incomplete"):
        descriptor({"storageType": "u"})


def test_z85_is_decoded():
    """The test vector of ZeroMQ's RFC 32."""
    assert z85_decode("HelloWorld") == bytes.fromhex("864FD26FB559F75B")
    with pytest.raises(CorruptLogError, match="Z85"):
        z85_decode("ab~")
