"""Live tail: rows that are appended while the page is open, sent as server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio

from indextables.errors import Error, OptionError
from indextables.model.plain import plain_value
from indextables.ops.read import follow
from indextables.table import Table
from indextables.web.questions import Question
from indextables.web.tables import Served
from indextables.web.waiting import Desk

EVERY_S = 1.0
"""How often the log is asked for newer versions."""
_MOST_ROWS = 500
"""Rows sent of one look; the newest of them where there are more."""


class Follower:
    """What the page follows, with the columns in the order it shows them."""

    def __init__(self, served: Served, question: Question) -> None:
        table = served.open()
        if not isinstance(table, Table):
            raise OptionError("a Delta table cannot be followed here")
        where = question.where(table.schema, "UTC")
        self._rows = follow.Follower(table.log, question.query, where, question.columns)

    def poll(self) -> dict[str, Any] | None:
        """The rows that came since the last look; None when nothing was committed."""
        before = self._rows.version
        held: list[list[Any]] = []
        dropped = 0
        for found in self._rows.poll():
            held += [list(map(plain_value, row.values())) for row in found.to_pylist(maps_as_pydicts="lossy")]
            dropped += max(0, len(held) - _MOST_ROWS)
            held = held[-_MOST_ROWS:]
        if self._rows.version == before:
            return None
        return {
            "version": self._rows.version,
            "rows": held,
            "dropped": dropped,
            "passed_over": self._rows.passed_over,
        }


async def events(desk: Desk, follower: Follower) -> AsyncIterator[bytes]:
    """One event per look that found newer versions, a comment otherwise, so that a dead connection shows."""
    while True:
        try:
            found = await desk.run(follower.poll)
        except Error as error:
            yield f"event: failed\ndata: {json.dumps({'message': error.message})}\n\n".encode()
            return
        yield b": nothing\n\n" if found is None else f"data: {json.dumps(found)}\n\n".encode()
        await anyio.sleep(EVERY_S)
