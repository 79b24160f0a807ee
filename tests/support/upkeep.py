"""Tables for maintenance tests: a real log whose splits are small stand-in files, and a clock that is set by hand."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.runtime import LOCAL

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("text", pa.string())])
HOUR_MS = 3_600_000


class HandClock:
    """Time that passes only when told to."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms

    def monotonic_s(self) -> float:
        return self.ms / 1000

    def sleep_s(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)

    def pass_hours(self, hours: float) -> None:
        self.ms += round(hours * HOUR_MS)


class StandIn:
    """A table of a real log and files that only have a name and a size."""

    def __init__(
        self,
        root: Path,
        *,
        options: dict[str, Any] | None = None,
        partition_by: tuple[str, ...] = (),
        clock: Any = None,
    ) -> None:
        self.root = root
        self.options = {"checkpoint.interval": 1000, **(options or {})}
        self.clock = clock or LOCAL.clock
        self.runtime = replace(LOCAL, clock=self.clock) if clock else LOCAL
        self.log = self.handle()
        self.log.initialize(SCHEMA, list(partition_by))

    def handle(self) -> TransactionLog:
        """A fresh handle, which remembers nothing."""
        return TransactionLog.open(str(self.root), self.options, runtime=self.runtime)

    @property
    def log_dir(self) -> Path:
        return self.root / "_transaction_log"

    def file(self, path: str, content: bytes | None = None) -> Path:
        """Put a file into the table, as old as the clock says."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.encode() if content is None else content)
        seconds = self.clock.now_ms() / 1000
        os.utime(place, (seconds, seconds))
        return place

    def add(self, *paths: str, on_disk: bool = True, **fields: Any) -> int:
        """Commit splits; their partition values come from their directories."""
        return self.log.add_files([self.split(path, on_disk=on_disk, **fields) for path in paths])

    def split(self, path: str, *, on_disk: bool = True, **fields: Any) -> AddAction:
        if on_disk:
            self.file(path)
        values = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
        given = {"num_records": 1, "size": len(path.encode()), "partition_values": values, **fields}
        return AddAction(path=path, modification_time=self.clock.now_ms(), **given)

    def age_log(self, *, hours: float) -> None:
        """Make every log file look this much older than now."""
        seconds = (self.clock.now_ms() - hours * HOUR_MS) / 1000
        for file in self.log_dir.iterdir():
            os.utime(file, (seconds, seconds))

    def live(self, version: int | None = None) -> list[str]:
        return [add.path for add in self.handle().snapshot(version=version).adds()]


def fingerprint(root: Path) -> dict[str, str]:
    """Every file below a directory with the hash of its content."""
    return {
        str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }
