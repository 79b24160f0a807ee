"""Tables for maintenance tests: a real log whose splits are small stand-in files, and a clock that is set by hand."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from indextables.index.query.syntax import parse_query
from indextables.index.settings import from_options
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.ops.rewrite.rows import split_rows
from indextables.ops.table_settings import settings_of
from indextables.options import Options
from indextables.runtime import LOCAL
from indextables.split.layout import SplitRef
from indextables.split.open_splits import forget_splits
from indextables.split.search.run import search_split
from indextables.split.search.selection import Selection
from indextables.split.write.build import build_splits
from indextables.storage.stores.local import LocalStore
from support.faults import Around

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


class DatedStore(Around):
    """A local store whose files are as old as a clock says."""

    def __init__(self, root: Path, clock: Any) -> None:
        super().__init__(LocalStore(str(root)))
        self.clock = clock

    def _do(self, operation: str, path: str, call: Any) -> Any:
        done = call()
        place = self.inner.local_path(path)
        if operation.startswith("put") and place is not None and done is not False:
            seconds = self.clock.now_ms() / 1000
            os.utime(place, (seconds, seconds))
        return done


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
        store = None if self.clock is LOCAL.clock else DatedStore(self.root, self.clock)
        return TransactionLog.open(str(self.root), self.options, runtime=self.runtime, store=store)

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


class RowTable:
    """A table with real splits, written and read by the parts below the Table facade."""

    def __init__(
        self,
        root: Path,
        schema: pa.Schema,
        *,
        partition_by: tuple[str, ...] = (),
        options: dict[str, Any] | None = None,
        clock: Any = None,
    ) -> None:
        self.root = root
        self.options = {"checkpoint.interval": 1000, **(options or {})}
        self.runtime = replace(LOCAL, clock=clock) if clock else LOCAL
        self.log = self.handle()
        spec = from_options(Options.of(self.options), schema)
        self.log.initialize(schema, list(partition_by), properties=spec.to_properties())

    def handle(self) -> TransactionLog:
        return TransactionLog.open(str(self.root), self.options, runtime=self.runtime)

    def write(self, rows: pa.Table) -> list[AddAction]:
        """Splits of these rows, not committed."""
        snapshot = self.handle().snapshot()
        built = build_splits(
            rows.to_batches(), snapshot.schema, snapshot.partition_columns, settings_of(snapshot),
            Options.of(self.options), self.log.store, table_id=snapshot.table_id,
        )  # fmt: skip
        return [split.add for split in built]

    def append(self, rows: pa.Table) -> int:
        return self.log.add_files(self.write(rows))

    def rows(self, version: int | None = None) -> list[dict[str, Any]]:
        """Every row, file by file in path order."""
        snapshot = self.handle().snapshot(version=version)
        parts = [part for add in snapshot.adds() for _, part in split_rows(snapshot.reading, add)]
        return [row for part in parts for row in part.to_pylist()]

    def found(self, query: str) -> list[dict[str, Any]]:
        """Rows that a full-text query finds, by whatever means each split allows."""
        snapshot = self.handle().snapshot()
        parsed = parse_query(query, settings_of(snapshot), snapshot.schema)
        parts = [
            part
            for add in snapshot.adds()
            for part in search_split(
                snapshot.reading, SplitRef.of(add), Selection(parsed, columns=tuple(snapshot.schema.names))
            )
        ]
        return [row for part in parts for row in part.to_pylist()]

    def damage_rows(self, path: str) -> None:
        """Flip bytes in the first data page."""
        self._flip(path, 40)

    def damage_index(self, add: AddAction) -> None:
        """Flip bytes in the first file of the index."""
        self._flip(add.path, add.hotcache_start_offset + 10)

    def _flip(self, path: str, at: int) -> None:
        file = self.root / path
        data = bytearray(file.read_bytes())
        data[at] ^= 0xFF
        data[at + 1] ^= 0xFF
        file.write_bytes(bytes(data))
        forget_splits()
