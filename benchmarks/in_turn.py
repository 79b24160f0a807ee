"""One question put to several systems in turn, in one process: equal answers, then medians of wall and CPU time.

Alternating is what makes ratios hold on a busy machine: all systems meet the same load.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.harness import count_of

ROUNDS = 5
OURS = "indextables"

Ask = Callable[[], Any]


def in_turn(systems: Mapping[str, Ask], rounds: int = ROUNDS) -> Mapping[str, Any]:
    """The facts of a case: our seconds, those of the others beside them, and everybody's CPU milliseconds."""
    answers = {name: ask() for name, ask in systems.items()}
    for name, answer in answers.items():
        if answer != answers[OURS]:
            raise AssertionError(f"{name} says {answer!r:.200}, we say {answers[OURS]!r:.200}")
    wall: dict[str, list[float]] = {name: [] for name in systems}
    cpu: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name, ask in systems.items():
            began, worked = time.perf_counter(), time.process_time()
            ask()
            wall[name].append(time.perf_counter() - began)
            cpu[name].append(time.process_time() - worked)
    return {
        "seconds": median(wall[OURS]),
        "beside": {name: median(times) for name, times in wall.items() if name != OURS},
        "cpu_ms": {name: round(median(times) * 1000, 2) for name, times in cpu.items()},
    }


def ratios(rows: Sequence[Mapping[str, Any]], most: Mapping[str, float]) -> list[str]:
    """For every case of the largest size, our time over the best rival's, by wall and by CPU, and its goal."""
    if not rows:
        return []
    size = max((row["size"] for row in rows), key=count_of)
    lines = []
    for row in rows:
        if row["size"] != size or row["system"] != OURS:
            continue
        others = [
            r["seconds"] for r in rows if (r["case"], r["size"]) == (row["case"], size) and r is not row
        ]
        cpu = dict(row["facts"].get("cpu_ms", {}))
        mine = cpu.pop(OURS, None)
        if not others or mine is None:
            continue
        wall, work = row["seconds"] / min(others), mine / min(cpu.values())
        text = f"{size}: {row['case']}: {wall:.2g} of the best rival's wall time, {work:.2g} of its CPU"
        goal = most.get(row["case"])
        if goal is not None:
            text += f", goal <= {goal:g}: {'met' if wall <= goal else 'MISSED'}"
        lines.append(text)
    return lines
