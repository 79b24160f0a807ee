"""Collects small batches from any number of threads, and commits several of them as one version.

`write` gives a ticket back at once; a thread of the writer's own commits what is pending when
there is enough of it or it has waited long enough. A batch is acknowledged when its version is
durable: only `Ticket.wait` says so. Rows of batches that fit into one split become one split.
A flush that fails raises in every ticket of it, and later batches go on.

After a commit small splits are merged by levels, in another thread, which readers and writers
of the table never wait for; only `close` does.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from indextables.errors import OptionError, TableError
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.fields import cast_table
from indextables.ops.constraints import check_rows
from indextables.ops.write.after_write import after_write
from indextables.ops.write.commit import APPEND, planned, write_rows
from indextables.ops.write.data import to_arrow
from indextables.ops.write.rows import WritePlan

_log = logging.getLogger(__name__)


class Flush:
    """The outcome of one commit of several batches."""

    __slots__ = ("heard", "version")

    def __init__(self) -> None:
        self.version: Future[int] = Future()
        self.heard = False
        """Whether somebody was told of its failure."""


class Ticket:
    """One batch that was handed to a writer."""

    __slots__ = ("_flush",)

    def __init__(self, flush: Flush) -> None:
        self._flush = flush

    def wait(self, timeout: float | None = None) -> int:
        """The version that has the rows, once it is committed; raises what its flush failed with.

        TimeoutError after `timeout` seconds says nothing about the rows: they are still on their way.
        """
        committed = self._flush.version
        try:
            return committed.result(timeout)
        except TimeoutError:
            if not committed.done():
                raise TimeoutError(
                    f"the batch was not committed within {timeout} s, and is still on its way"
                ) from None
            raise
        finally:
            self._flush.heard = self._flush.heard or committed.done()


@dataclass(frozen=True, slots=True)
class Limits:
    """When a writer commits what is pending, and how much may be."""

    rows: int
    size_bytes: int
    seconds: float
    pending_bytes: int

    def __post_init__(self) -> None:
        for name, value in (
            ("flush_rows", self.rows),
            ("flush_bytes", self.size_bytes),
            ("max_pending_bytes", self.pending_bytes),
        ):
            if value < 1:
                raise OptionError(f"{name} is {value}; expected 1 or more", key=name)
        if not self.seconds >= 0:
            raise OptionError(f"flush_seconds is {self.seconds}; expected 0 or more", key="flush_seconds")


@dataclass(slots=True)
class _Pending:
    """Batches that wait for the next commit."""

    flush: Flush = field(default_factory=Flush)
    tables: list[pa.Table] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0
    since_s: float = 0.0


class Writer:
    """Many small batches, few commits; safe to use from several threads.

    Close it, or use it in a `with` statement: rows that are pending when the process ends are lost, and no
    ticket said that they were committed.
    """

    def __init__(self, log: TransactionLog, snapshot: Snapshot, limits: Limits) -> None:
        # Handles of its own: what it commits moves no handle of the caller's.
        self._appending = TransactionLog(log.store, log.options, log.runtime)
        self._merging = TransactionLog(log.store, log.options, log.runtime)
        self._limits = limits
        self._opened_on = snapshot
        self._clock = log.runtime.clock
        self._plan: WritePlan | None = None
        self._changed = threading.Condition()
        """Guards everything below, and is notified of every change of it."""
        self._pending = _Pending()
        self._in_flight_bytes = 0
        self._flush_now = False
        self._closing = False
        self._all_flushed = False
        self._commits = 0
        self._failed: Flush | None = None
        """The first flush that failed since somebody was told of one."""
        self._threads: list[threading.Thread] = []

    def write(self, data: Any) -> Ticket:
        """Hand over a batch, anything that `Table.append` takes; it is committed with others soon.

        Rows that do not fit the table are an error here. Waits while more than `max_pending_bytes` are
        pending or being committed.
        """
        rows = self._checked(data)
        with self._changed:
            self._require_open()
            while (held := self._pending.size_bytes + self._in_flight_bytes) and (
                held + rows.nbytes > self._limits.pending_bytes
            ):
                self._flush_now = True
                self._changed.notify_all()
                self._changed.wait()
                self._require_open()
            pending = self._pending
            if not pending.tables:
                pending.since_s = self._clock.monotonic_s()
            pending.tables.append(rows)
            pending.rows += rows.num_rows
            pending.size_bytes += rows.nbytes
            self._start()
            self._changed.notify_all()
            return Ticket(pending.flush)

    def flush(self) -> None:
        """Commit what is pending now, and wait for it; raises if a flush failed that no ticket told of."""
        with self._changed:
            pending = self._pending
            self._flush_now = bool(pending.tables)
            self._changed.notify_all()
        if pending.tables:
            pending.flush.version.exception()
        self._raise_unheard()

    def close(self) -> None:
        """Commit what is pending, wait for a merge that runs, and end; raises as `flush` does."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._raise_unheard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close()
        except Exception:  # noqa: BLE001 - the error of the caller's own block must not be hidden
            _log.warning("%s: the last rows could not be written", self._appending.uri, exc_info=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def _checked(self, data: Any) -> pa.Table:
        """The rows in the columns of the table, with its constraints kept."""
        source = to_arrow(data)
        rows: pa.Table = source if isinstance(source, pa.Table) else source.read_all()
        snapshot = self._appending.newest_seen() or self._opened_on
        plan = self._plan
        if plan is None or plan.planned_on != snapshot.metadata or not plan.data_schema.equals(rows.schema):
            plan = self._plan = planned(snapshot, rows.schema, snapshot.settings, APPEND)
        rows = cast_table(rows, plan.schema, timestamps=snapshot.settings.write.timestamps)
        check_rows(plan.checks, rows, plan.schema)
        return rows

    def _require_open(self) -> None:
        if self._closing:
            raise TableError(f"the writer of {self._appending.uri} is closed", uri=self._appending.uri)

    def _raise_unheard(self) -> None:
        with self._changed:
            failed, self._failed = self._failed, None
        if failed is not None and not failed.heard:
            Ticket(failed).wait()

    def _start(self) -> None:
        if self._threads:
            return
        for run in (self._flush_when_due, self._merge_when_committed):
            # Not waited for when the interpreter ends: what they have not committed was never acknowledged.
            thread = threading.Thread(target=run, name="indextables-writer", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _flush_when_due(self) -> None:
        while (batch := self._next_batch()) is not None:
            failed = None
            try:
                # The table may have been changed between two batches.
                rows = pa.concat_tables(batch.tables, promote_options="permissive")
                version = write_rows(self._appending, rows).version
            except BaseException as error:  # noqa: BLE001 - whoever waits for a ticket must hear of it
                failed = batch.flush
                failed.version.set_exception(error)
            else:
                batch.flush.version.set_result(version)
            with self._changed:
                self._in_flight_bytes = 0
                self._commits += failed is None
                self._failed = self._failed or failed
                self._changed.notify_all()
        with self._changed:
            self._all_flushed = True
            self._changed.notify_all()

    def _next_batch(self) -> _Pending | None:
        """What to commit next, once it is due; None when the writer is closed and nothing is left."""
        with self._changed:
            while not self._is_due():
                if self._closing:
                    return None
                self._changed.wait(self._seconds_left())
            batch, self._pending = self._pending, _Pending()
            self._in_flight_bytes = batch.size_bytes
            self._flush_now = False
            return batch

    def _is_due(self) -> bool:
        pending, limits = self._pending, self._limits
        if not pending.tables:
            return False
        enough = pending.rows >= limits.rows or pending.size_bytes >= limits.size_bytes
        return enough or self._closing or self._flush_now or self._seconds_left() == 0

    def _seconds_left(self) -> float | None:
        """How long what is pending may still wait; None if nothing is."""
        if not self._pending.tables:
            return None
        return max(0.0, self._pending.since_s + self._limits.seconds - self._clock.monotonic_s())

    def _merge_when_committed(self) -> None:
        merged_after = 0
        while True:
            with self._changed:
                while self._commits == merged_after:
                    if self._all_flushed:
                        return
                    self._changed.wait()
                merged_after = self._commits
            after_write(self._merging, stream=True)
