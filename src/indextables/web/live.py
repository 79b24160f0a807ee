"""Live tail: rows that are appended while the page is open, sent as server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio

from indextables.display.plain import plain_value
from indextables.errors import Error, OptionError, StorageError, TableError
from indextables.ops.read import follow
from indextables.table import Table
from indextables.web.answers import readable
from indextables.web.row_request import RowRequest
from indextables.web.tables import ServedTable
from indextables.web.workers import RequestWorkers

EVERY_S = 1.0
"""How often the log is listed for newer versions."""
_MOST_ROWS = 500
"""Rows sent of one look; the newest of them where there are more."""


class LiveTail:
    """The rows that are appended to one table, as events with the columns in the order the page shows."""

    def __init__(self, served: ServedTable, row_request: RowRequest, after: str | None = None) -> None:
        table = served.open()
        if not isinstance(table, Table):
            raise OptionError("a Delta table cannot be followed here")
        row_request = readable(table, row_request).of(table.schema)
        where = row_request.where(table.schema, table.time_zone)
        table_id, _, version = (after or "").rpartition(":")
        self._appended = follow.Follower(
            table.log,
            row_request.query,
            where,
            row_request.columns,
            after=int(version) if version.isdecimal() else None,
        )
        if table_id and table_id != self._appended.table_id:
            raise TableError(f"{table.uri} was created again or repaired in the meantime; follow it again")
        self._sent = self._appended.version
        self._rows: list[list[Any]] = []
        self._dropped = 0

    @property
    def position(self) -> str:
        """Table and version of the last event; a page that lost its connection sends it as `after`."""
        return f"{self._appended.table_id}:{self._appended.version}"

    def poll(self) -> dict[str, Any] | None:
        """The rows that came since the last look; None when nothing was committed.

        After an error, the next look has the rows that were read before it, too.
        """
        for table in self._appended.poll():
            self._rows += [
                list(map(plain_value, row.values())) for row in table.to_pylist(maps_as_pydicts="lossy")
            ]
            self._dropped += max(0, len(self._rows) - _MOST_ROWS)
            self._rows = self._rows[-_MOST_ROWS:]
        if self._appended.version == self._sent:
            return None
        event = {
            "version": self._appended.version,
            "rows": self._rows,
            "dropped": self._dropped,
            "passed_over": self._appended.skipped_commits,
        }
        self._sent, self._rows, self._dropped = self._appended.version, [], 0
        return event


async def events(workers: RequestWorkers, tail: LiveTail) -> AsyncIterator[bytes]:
    """One event per look that found newer versions, a comment otherwise, so that a dead connection shows.

    After an error of the store the page is informed and the store tried again; other errors end the stream.
    """
    yield f": following\nid: {tail.position}\n\n".encode()
    while True:
        try:
            event = await workers.run(tail.poll)
        except StorageError as failed:
            yield _event("waiting", {"message": failed.message})
        except Error as error:
            yield _event("failed", {"message": error.message})
            return
        else:
            yield b": nothing\n\n" if event is None else _event("message", event, tail.position)
        await anyio.sleep(EVERY_S)


def _event(kind: str, data: dict[str, Any], position: str | None = None) -> bytes:
    lines = ([] if position is None else [f"id: {position}"]) + [
        f"event: {kind}",
        f"data: {json.dumps(data)}",
    ]
    return "\n".join([*lines, "", ""]).encode()
