"""Known stories of lost rows in other systems, as plans whose outcome is decided by a seed.

- `ten_writers`: ten writers append at once; delta-rs 3736 dropped 142 of 2,000 commits.
- `retried_delete`: a DELETE is repeated while others append; iceberg-python 3320 would delete rows it never saw.
- `lost_reply`: every second conditional put takes effect and its reply is lost; icechunk's design 017.

Two are about this table format alone:

- `freed_number`: a reader pauses before it reads a version that it listed; its number is used, freed and, by a put
  that took hours, used again.
- `erased_while_planned`: DELETE, UPDATE and MERGE read a version that TRUNCATE erases.

The same stories step by step, and with real processes, are in `harness.stories`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from simulation.actors import Step
from simulation.history import Part, Plan, draw_options
from simulation.tables import INDEXING
from simulation.world import Faults

MINUTE_MS = 60_000


def ten_writers(seed: int, appends: int = 10) -> Plan:
    """Ten writers who append as fast as they can, and try as often as a table's own options say."""
    plan = _plan("ten_writers", seed, [["append"] * appends] * 10, Faults())
    options = {key: value for key, value in plan.options.items() if "retry" not in key}
    return replace(plan, options=options)


def retried_delete(seed: int) -> Plan:
    """One deletes again and again beside two who append, and some replies get lost."""
    steps = [["append", "delete", "delete", "delete"], ["append"] * 5, ["append", "merge", "append", "read"]]
    return _plan("retried_delete", seed, steps, Faults(lost_reply=0.03, error=0.02), level="table")


def lost_reply(seed: int) -> Plan:
    """Two writers whose conditional puts mostly work and often do not say so."""
    return _plan("lost_reply", seed, [["append"] * 5, ["append"] * 5], Faults(lost_reply=0.02, on_puts=25.0))


def freed_number(seed: int) -> Plan:
    """A slow put and a slow reader, beside one who appends and truncates history."""
    chance = random.Random(f"freed_number:{seed}")

    def pause_ms(least_minutes: float, most_minutes: float) -> int:
        return round(chance.uniform(least_minutes, most_minutes) * MINUTE_MS)

    busy = (("append", 0), ("append", pause_ms(60, 120)), ("truncate", 50))
    parts = (
        Part("a", (_step(chance, "append", 0),), Faults(pause=1.0, pause_in=("put_if_absent",))),
        Part("b", tuple(_step(chance, verb, pause) for verb, pause in busy), Faults()),
        Part("c", (_step(chance, "read", pause_ms(0, 60)),), Faults(pause=1.0, pause_in=("get",))),
    )
    options = draw_options(chance) | {"checkpoint.interval": "10", "logRetention.duration": "0"}
    return Plan(f"freed_number-{seed}", options, parts)


def erased_while_planned(seed: int) -> Plan:
    """Changes that read slowly what they change, beside one who appends and truncates history."""
    chance = random.Random(f"erased_while_planned:{seed}")
    slow = ["append", "update", "upsert", "delete"]
    quick = ["append", "truncate"] * 5
    parts = (
        Part("a", tuple(_step(chance, verb, 0) for verb in slow), Faults(pause=0.2, pause_in=("get",))),
        Part("b", tuple(_step(chance, verb, chance.randint(0, MINUTE_MS)) for verb in quick), Faults()),
    )
    options = draw_options(chance) | INDEXING
    options |= {"checkpoint.interval": "2", "checkpoint.actionsPerPart": "2", "logRetention.duration": "0"}
    return Plan(f"erased_while_planned-{seed}", options, parts, "table")


def _step(chance: random.Random, verb: str, pause_ms: int) -> Step:
    return Step(verb, pause_ms, chance.random())


def _plan(name: str, seed: int, steps: list[list[str]], faults: Faults, level: str = "log") -> Plan:
    chance = random.Random(f"{name}:{seed}")
    parts = [
        Part(
            chr(ord("a") + at),
            tuple(Step(verb, chance.randint(0, 50), chance.random()) for verb in verbs),
            faults,
        )
        for at, verbs in enumerate(steps)
    ]
    options = draw_options(chance) | (INDEXING if level == "table" else {})
    return Plan(f"{name}-{seed}", options, tuple(parts), level)


STORIES: dict[str, Callable[[int], Plan]] = {
    "ten_writers": ten_writers,
    "retried_delete": retried_delete,
    "lost_reply": lost_reply,
    "freed_number": freed_number,
    "erased_while_planned": erased_while_planned,
}
