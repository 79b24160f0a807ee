"""Following a file into a table, each line exactly once: a commit says how far the file was read.

The place in the file is the version of a `txn` of the same commit as the rows. A
restart goes on there. A file that is replaced under the same name, as logs are when
they are rotated, is read to its end before the one that took its place; a file that
was cut short begins again.
"""

from __future__ import annotations

import os
from typing import IO

import pyarrow as pa

from indextables.errors import StorageError
from indextables.ingest.log_lines import LogForm, split_lines
from indextables.model.actions import TxnAction
from indextables.table import Table

MOST_BYTES = 64 << 20
"""Read in one commit at most."""
MERGE_EVERY = 20
"""Commits after which small splits are merged."""


class Tailer:
    """One file and the table it goes into."""

    def __init__(self, path: str, table: Table, form: LogForm) -> None:
        self._path = os.path.realpath(path)
        self._table = table
        self._form = form
        self._commits = 0
        self._file: IO[bytes] | None = None
        self._app_id = ""
        self.offset = 0

    def poll(self) -> int:
        """Commit the whole lines that came since the last call; how many rows that were."""
        if self._file is None:
            self._open()
        assert self._file is not None
        if os.fstat(self._file.fileno()).st_size < self.offset:
            self._open(again=True)
        data = self._read()
        if not data and self._is_replaced():
            self.close()
            self._open()
            data = self._read()
        return self._commit(data) if data else 0

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self, *, again: bool = False) -> None:
        """Open the file that has the name now, and find out how far the table has it."""
        self.close()
        try:
            self._file = open(self._path, "rb")  # noqa: SIM115, PTH123 - stays open while it is followed
        except OSError as gone:
            raise StorageError(f"cannot read {self._path}: {gone.strerror}") from gone
        state = os.fstat(self._file.fileno())
        stem = f"tail:{self._path}:{state.st_ino}"
        known = self._table.log.snapshot(max_staleness_s=0).txns
        turns = [app for app in known if app.rpartition("#")[0] == stem]
        turn = max((int(app.rpartition("#")[2]) for app in turns), default=0)
        offset = known[f"{stem}#{turn}"].version if turns else 0
        if again or state.st_size < offset:
            # Cut short since: the same file, from its beginning.
            turn, offset = turn + 1, 0
        self._app_id, self.offset = f"{stem}#{turn}", offset

    def _read(self) -> bytes:
        assert self._file is not None
        self._file.seek(self.offset)
        whole, end, _ = self._file.read(MOST_BYTES).rpartition(b"\n")
        return whole + end

    def _is_replaced(self) -> bool:
        assert self._file is not None
        try:
            return os.stat(self._path).st_ino != os.fstat(self._file.fileno()).st_ino  # noqa: PTH116 - beside fstat
        except FileNotFoundError:
            return False

    def _commit(self, data: bytes) -> int:
        rows = self._form.rows(split_lines(data.decode("utf-8", "replace")))
        end = self.offset + len(data)
        batch = pa.Table.from_batches([rows], self._form.schema)
        done = self._table.append(batch, txn=TxnAction(app_id=self._app_id, version=end))
        self.offset = end
        self._commits += 1
        if self._commits % MERGE_EVERY == 0:
            self._table.merge_splits()
        return done.rows
