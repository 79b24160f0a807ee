"""Deletion vectors made by hand."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from typing import Any

from indextables.log.delta_vectors import _B85, _Z85


def bitmap(rows: Sequence[int]) -> bytes:
    """Row positions below 65,536 as a deletion vector's bitmap."""
    body = struct.pack("<IIHH", 12346, 1, 0, len(rows) - 1) + struct.pack("<I", 0)
    return struct.pack("<iqI", 1681511377, 1, 0) + body + struct.pack(f"<{len(rows)}H", *rows)


def z85(data: bytes) -> str:
    """Bytes as the text a descriptor holds."""
    return base64.b85encode(data + b"\0" * (-len(data) % 4)).decode().translate(str.maketrans(_B85, _Z85))


def inline_vector(rows: Sequence[int]) -> dict[str, Any]:
    """A descriptor that carries its bitmap itself."""
    data = bitmap(rows)
    return {
        "storageType": "i", "pathOrInlineDv": z85(data), "sizeInBytes": len(data), "cardinality": len(rows),
    }  # fmt: skip
