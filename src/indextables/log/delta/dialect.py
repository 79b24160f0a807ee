"""The Delta dialect: a `_delta_log` read like one of our logs, and never written.

What differs from the native log is defined in this package: file names, percent-encoded
paths, deletion vectors as part of a file's identity, Parquet checkpoints, and features a
reader must support. Segments, the replay rule and pruning are shared with the native log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from indextables.log.delta.commits import decode_commit, key_of
from indextables.log.delta.paths import ADVICE, LOG_DIR, parse_log_name
from indextables.log.format.dialect import Checkpoint, Hint, LogFile, LogNames
from indextables.model.actions import Action
from indextables.storage.store import ObjectMeta

_KINDS: dict[str, Any] = {"classic": "checkpoint", "uuid": "checkpoint", "multipart": "part"}
# Among checkpoints of one version, single files are preferred to multi-part ones, and a checkpoint with
# sidecars to one that repeats every add.
_PREFERENCE = {"uuid": 2, "classic": 1, "multipart": 0}


class DeltaDialect(LogNames):
    """File names, line codec and file identity of Delta Lake."""

    name = "delta"
    log_dir = LOG_DIR
    advice = ADVICE

    def parse_name(self, name: str, meta: ObjectMeta) -> LogFile | None:
        """Read a name of the log directory; None when it is not a log file."""
        parsed = parse_log_name(name)
        if parsed is None:
            return None
        return LogFile(
            name=name,
            version=parsed.version,
            kind=_KINDS.get(parsed.kind, parsed.kind),
            size=meta.size,
            modified_ms=meta.modified_ms,
            etag=meta.etag,
            format=parsed.format,
            part=parsed.part,
            parts=parsed.parts,
            uuid=parsed.uuid,
            last_version=parsed.end,
        )

    def decode_commit(self, data: bytes, *, name: str, version: int) -> list[Action]:
        """Read the stored bytes of a commit file, paths decoded; an empty file is an error."""
        return decode_commit(data, name=name, version=version)

    def decode_hint(self, data: bytes) -> Hint | None:
        """Read `_last_checkpoint`; None when it makes no sense."""
        try:
            wire = msgspec.json.decode(data)
            version, size = int(wire["version"]), wire.get("size")
            pointed = str((wire.get("v2Checkpoint") or {}).get("path") or "")
            files, parts = wire.get("numOfAddFiles"), wire.get("parts")
            return Hint(
                version=version,
                size=None if size is None else int(size),
                # That checksum covers the hint itself; it says nothing about the checkpoint.
                num_files=None if files is None else int(files),
                format="json" if pointed.endswith(".json") else "parquet",
                parts=None if parts is None else int(parts),
            )
        except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError):
            return None

    def checkpoints(self, files: Sequence[LogFile]) -> list[Checkpoint]:
        """The complete checkpoints, newest first; a multi-part checkpoint that lacks a part is left out."""
        ranked: list[tuple[tuple[int, int, str], Checkpoint]] = []
        parts: dict[tuple[int, int], dict[int, LogFile]] = {}
        for file in files:
            if file.kind == "checkpoint":
                kind = _PREFERENCE["uuid" if file.uuid else "classic"]
                ranked.append(
                    ((file.version, kind, file.name), Checkpoint(file.version, file.format or "", (file,)))
                )
            elif file.kind == "part" and file.part is not None and file.parts is not None:
                parts.setdefault((file.version, file.parts), {})[file.part] = file
        for (version, count), numbered in parts.items():
            if len(numbered) == count:
                pieces = tuple(numbered[number] for number in range(1, count + 1))
                rank = (version, _PREFERENCE["multipart"], pieces[0].name)
                ranked.append((rank, Checkpoint(version, "parquet", pieces)))
        return [checkpoint for _, checkpoint in sorted(ranked, key=lambda item: item[0], reverse=True)]

    # The key is path and deletion vector: one commit may remove a file without and add it with a vector.
    key = staticmethod(key_of)


DELTA = DeltaDialect()
