"""The checksum that guards stored bytes: CRC-32 as zlib has it, by the processor's own instructions."""

from __future__ import annotations

from isal.isal_zlib import crc32, crc32_combine

__all__ = ["crc32", "crc32_combine"]
