"""A builder of table logs: any state a log can be in, made through the real write path.

log = LogBuilder().create().append("a", "b").append(5).checkpoint().stale_hint(3).log()

Only damage is done behind the log's back: files are overwritten or deleted in the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import msgspec
import pyarrow as pa

from indextables.log.format.dialect import NATIVE
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.storage.store import Store
from indextables.storage.stores.memory import MemoryStore
from support.clock import FixedClock, runtime_at

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32())])
LOG_DIR = NATIVE.log_dir
_numbers = count(1)
HINT = f"{LOG_DIR}/_last_checkpoint"


def add(path: str, **fields: Any) -> AddAction:
    """An add with small, plausible fields."""
    values: dict[str, Any] = {
        "size": 100,
        "modification_time": 1_700_000_000_000,
        "num_records": 10,
        **fields,
    }
    return AddAction(path=path, **values)


def commit_path(version: int) -> str:
    return f"{LOG_DIR}/{NATIVE.commit_name(version)}"


def checkpoint_path(version: int, form: str = "json") -> str:
    return f"{LOG_DIR}/{NATIVE.checkpoint_name(version, form)}"


def paths_of(log: TransactionLog, version: int | None = None) -> list[str]:
    """The live paths of a version, by whole actions."""
    return [item.path for item in log.snapshot(version, max_staleness_s=0).adds()]


class LogBuilder:
    """Grows one log step by step; every step returns the builder."""

    def __init__(
        self,
        store: Store | None = None,
        options: Mapping[str, Any] | None = None,
        clock: FixedClock | None = None,
    ) -> None:
        self.clock = clock or FixedClock()
        self.store = store if store is not None else MemoryStore(now_ms=self.clock.now_ms)
        self.options = dict(options or {})
        self._writer = self.log()

    def log(self, **options: Any) -> TransactionLog:
        """A fresh handle on the log, which remembers nothing."""
        merged = {**self.options, **{key.replace("__", "."): value for key, value in options.items()}}
        return TransactionLog.open(self.store.uri, merged, store=self.store, runtime=runtime_at(self.clock))

    def create(self, schema: pa.Schema = SCHEMA, partition_by: Sequence[str] = ()) -> LogBuilder:
        self._writer.initialize(schema, partition_by)
        return self

    def append(self, *files: str | int | AddAction) -> LogBuilder:
        """One commit with the given paths or adds; a number makes as many new files."""
        adds: list[AddAction] = []
        for file in files:
            if isinstance(file, int):
                adds += [add(self._fresh()) for _ in range(file)]
            else:
                adds.append(add(file) if isinstance(file, str) else file)
        self._writer.add_files(adds)
        return self

    def appends(self, commits: int, files: int = 1) -> LogBuilder:
        """So many commits of so many new files each."""
        for _ in range(commits):
            self.append(files)
            self.clock.advance(ms=1)
        return self

    def remove(self, *paths: str) -> LogBuilder:
        self._writer.remove_files(paths)
        return self

    def overwrite(self, *paths: str) -> LogBuilder:
        self._writer.overwrite_files([add(path) for path in paths])
        return self

    def checkpoint(self) -> LogBuilder:
        self._writer.checkpoint()
        return self

    def cleanup(self) -> LogBuilder:
        self._writer.cleanup()
        return self

    def wait(self, **amount: float) -> LogBuilder:
        self.clock.advance(**amount)
        return self

    def hint(self, content: bytes | None) -> LogBuilder:
        """Replace `_last_checkpoint`, or delete it."""
        if content is None:
            self.store.delete(HINT)
        else:
            self.store.put(HINT, content)
        return self

    def stale_hint(self, version: int, **fields: Any) -> LogBuilder:
        """Let `_last_checkpoint` name another version than the newest checkpoint's."""
        return self.hint(msgspec.json.encode({"version": version, "size": 1, **fields}))

    def damage(self, path: str, content: bytes | None = None) -> LogBuilder:
        """Overwrite a file, or flip a bit in its middle."""
        if content is None:
            data = bytearray(self.store.get(path))
            data[len(data) // 2] ^= 0x10
            content = bytes(data)
        self.store.put(path, content)
        return self

    def truncate(self, path: str, share: float = 0.5) -> LogBuilder:
        """Cut a file short."""
        data = self.store.get(path)
        return self.damage(path, data[: int(len(data) * share)])

    def lose(self, *paths: str) -> LogBuilder:
        for path in paths:
            self.store.delete(path)
        return self

    def names(self) -> list[str]:
        """The names in the log directory."""
        return [meta.path.rpartition("/")[2] for meta in self.store.list_level(LOG_DIR)]

    def _fresh(self) -> str:
        return f"f{next(_numbers):05d}.split"
