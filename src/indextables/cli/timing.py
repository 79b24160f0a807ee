"""How long the usual questions to one table take, cold and warm."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.delta import DeltaTable
    from indextables.table import Table

_REPEATS = 3


def time_table(make: Callable[[], Table | DeltaTable], where: str | None, query: str | None) -> pa.Table:
    """Time opening, listing, counting and searching; the first run is cold, the best of the others warm."""
    import pyarrow as pa

    opened: list[Table | DeltaTable] = []

    def open_table() -> int:
        opened.append(make())
        return opened[-1].version

    questions: list[tuple[str, Callable[[], Any]]] = [
        ("open", open_table),
        ("list files", lambda: opened[0].files().num_rows),
        ("count rows", partial(_count, opened)),
    ]
    if where is not None:
        questions.append(("files that may match", lambda: opened[0].files(where=where).num_rows))
        questions.append(("count matching rows", partial(_count, opened, where)))
    if query is not None:
        questions.append(("count rows found", partial(_count, opened, where, query)))
    rows = [(name, *_timed(ask)) for name, ask in questions]
    names = ("question", "answer", "first_ms", "best_ms")
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})


def _count(opened: list[Table | DeltaTable], where: str | None = None, query: str | None = None) -> int:
    return opened[0].count(where, query=query)


def _timed(ask: Callable[[], Any]) -> tuple[int, float, float]:
    times = []
    for _ in range(1 + _REPEATS):
        began = time.perf_counter()
        answer = ask()
        times.append((time.perf_counter() - began) * 1000)
    return answer, round(times[0], 1), round(min(times[1:]), 1)
