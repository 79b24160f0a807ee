"""The checksum of stored bytes: CRC-32 as in zlib, computed by processor instructions."""

from __future__ import annotations

from isal.isal_zlib import crc32, crc32_combine

__all__ = ["crc32", "crc32_combine"]
