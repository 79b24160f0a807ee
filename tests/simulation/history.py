"""A history: a seed turned into a plan of actors, steps and faults; the plan run; the end looked at.

Each seed draws which verbs and which faults it uses at all, and how the table
is set up. Few kinds of things in one history meet each other more often than
all kinds would.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from indextables.log.transaction_log import TransactionLog
from indextables.runtime import Runtime
from indextables.split.open_splits import forget_splits
from simulation.actors import Actor, Stage, Step
from simulation.intents import ACKNOWLEDGED, Intent, Violation
from simulation.oracle import _CHECKPOINT, _COMMIT, _FLOOR, Truth, actions_of, checkpoint_of
from simulation.world import HOUR_MS, LOG_DIR, ActorClock, Faults, SimStore, World

WRITES = (
    "append",
    "append",
    "txn",
    "overwrite",
    "remove",
    "merge",
    "delete",
    "restore",
    "properties",
    "skip",
)
UPKEEP = ("checkpoint", "cleanup", "truncate", "purge", "repair")
READS = ("read", "look", "hold", "travel", "follow")
THEMES = (
    ("restore", "merge"),
    ("restore", "merge", "remove"),
    ("restore", "overwrite", "purge"),
    ("truncate", "append"),
    ("truncate", "restore", "travel"),
    ("cleanup", "checkpoint", "overwrite"),
    ("txn", "checkpoint", "cleanup"),
    ("merge", "delete", "remove"),
    ("overwrite", "delete", "look"),
    ("purge", "merge", "travel"),
    ("repair", "merge", "follow"),
)
"""What has most to fear from each other; every third history is about one of these."""


@dataclass(frozen=True)
class Topic:
    """A kind of history that is rare among all, and has seeds of its own."""

    verbs: tuple[str, ...]
    pause: float = 0.0
    """How often an operation takes minutes or hours."""
    long: float = 0.15
    """How often the pause before a step takes minutes or days."""
    hours: int | None = None
    """Log retention; None is drawn."""
    skews_hours: tuple[int, ...] = ()
    """How far the clocks are wrong that clean up, truncate and purge; each actor draws one."""
    faults: Mapping[str, Any] = field(default_factory=dict)
    """Faults that every actor has."""
    founded: bool = True
    """Whether the table is there from the start; else every actor begins by creating it."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the table that are not drawn."""


TOPICS = {
    "reuse": Topic(("append", "append", "overwrite", "truncate", "cleanup"), pause=0.05, long=0.3, hours=0),
    "restore": Topic(("append", "restore", "restore", "merge", "merge")),
    "purge": Topic(("append", "overwrite", "merge", "purge", "travel"), long=0.5, hours=720),
    "clocks": Topic(
        ("append", "append", "merge", "delete", "purge", "cleanup", "read"),
        pause=0.05,
        skews_hours=(0, 0, 9 * 24, 60 * 24, -24),
    ),
    "swap": Topic(
        ("append", "append", "txn", "merge", "overwrite", "swap", "checkpoint", "truncate", "read", "follow"),
        pause=0.02,
    ),
    # Every version file stays, so that whatever lies in the place of a checkpoint costs no row and no error.
    "exchanged": Topic(
        (
            "append",
            "append",
            "append",
            "merge",
            "remove",
            "restore",
            "checkpoint",
            "exchange",
            "exchange",
            "read",
        ),
        long=0.05,
        options={
            "checkpoint.format": "parquet",
            "checkpoint.actionsPerPart": "2",
            "checkpoint.interval": "3",
            "cleanup.enabled": "false",
            "transaction.cache.enabled": "false",
        },
    ),
    "birth": Topic(("append", "append", "overwrite", "truncate", "read"), pause=0.05, hours=0, founded=False),
    "upsert": Topic(("append", "upsert", "upsert", "upsert", "merge", "delete"), long=0.0),
    "vectors": Topic(
        ("append", "append", "delete", "delete", "delete", "upsert", "merge", "restore"), long=0.0
    ),
    "strangers": Topic(
        ("append", "append", "read", "merge", "truncate"),
        long=0.3,
        hours=0,
        faults={"pause": 0.2, "lost_reply": 0.02, "late": 0.02, "echo": 0.02},
    ),
    # Splits and listings that take days. A writer that is stopped between its look at the log and its put is not
    # protected from PURGE, as docs/guarantees.md says.
    "slow": Topic(
        ("append", "append", "merge", "purge", "read"),
        faults={"pause": 0.15, "longest": 8.5, "pause_in": ("put", "list", "delete")},
    ),
    "frozen": Topic(
        ("append", "append", "truncate", "purge"),
        long=0.1,
        hours=0,
        skews_hours=(0, 2, 9 * 24, -24),
        faults={
            "pause": 0.25,
            "after_put": 0.3,
            "freeze": 0.5,
            "lost_reply": 0.003,
            "late": 0.003,
            "echo": 0.003,
        },
    ),
}
GENTLE = Faults()


@dataclass(frozen=True)
class Part:
    """One actor of a plan."""

    name: str
    steps: tuple[Step, ...]
    faults: Faults
    skew_ms: int = 0
    machine: str | None = None


@dataclass(frozen=True)
class Plan:
    """Everything that decides a history."""

    seed: str
    options: dict[str, str]
    parts: tuple[Part, ...]
    level: str = "log"
    partition_by: tuple[str, ...] = ()
    form: str = ""
    """How a list lies in the table, where the history is about lists."""
    founded: bool = True
    """Whether the table is there from the start."""


@dataclass
class Outcome:
    """What became of a history."""

    plan: Plan
    violations: list[Violation]
    digest: str
    operations: int
    faults: dict[str, int]
    commits: int
    strays: int
    trace: list[str] = field(default_factory=list)
    verbs: dict[str, int] = field(default_factory=dict)


def plan_topic(name: str, seed: int) -> Plan:
    """Draw a history about one topic."""
    topic, chance = TOPICS[name], random.Random(f"{name}:{seed}")
    options = draw_options(chance)
    if topic.hours is not None:
        options |= {"logRetention.duration": str(topic.hours * HOUR_MS), "cleanup.enabled": "true"}
    options |= topic.options
    parts = draw_parts(chance, topic.verbs, chance.randint(2, 4), (3, 6), long=topic.long)
    faults = {**({"pause": topic.pause} if topic.pause else {}), **topic.faults}
    if faults:
        parts = tuple(replace(part, faults=replace(part.faults, **faults)) for part in parts)
    if topic.skews_hours:
        parts = tuple(replace(part, skew_ms=chance.choice(topic.skews_hours) * HOUR_MS) for part in parts)
    if not topic.founded:
        parts = tuple(replace(part, steps=(Step("create", 0, 0.0), *part.steps)) for part in parts)
    return Plan(f"{name}-{seed}", options, parts, founded=topic.founded)


def plan_history(seed: int) -> Plan:
    """Draw a history at the level of the log."""
    chance = random.Random(f"plan:{seed}")
    if chance.random() < 1 / 3:
        verbs = ["append", *chance.choice(THEMES)]
    else:
        verbs = [
            "append",
            *chance.sample(WRITES, chance.randint(1, 5)),
            *chance.sample(UPKEEP, chance.randint(0, 3)),
            *chance.sample(READS, chance.randint(0, 2)),
        ]
    verbs += ["reread"] if "hold" in verbs else []
    return Plan(str(seed), draw_options(chance), draw_parts(chance, verbs, chance.randint(2, 5), (2, 6)))


def draw_options(chance: random.Random) -> dict[str, str]:
    """How the table is set up: small numbers, so that everything happens soon."""
    hours = chance.choice((0, 1, 24, 720))
    return {
        "checkpoint.interval": str(chance.choice((1, 2, 3, 5, "auto"))),
        "checkpoint.actionsPerPart": str(chance.choice((2, 100_000, 100_000))),
        "checkpoint.format": "parquet" if chance.random() < 0.1 else chance.choice(("json", "auto")),
        "checkpoint.parallelism": "1",
        "logRetention.duration": str(hours * HOUR_MS),
        "checkpointRetention.duration": str(chance.choice((0, 0, 7_200_000))),
        "transaction.compression.enabled": chance.choice(("true", "false")),
        "transaction.cache.enabled": chance.choice(("true", "true", "false")),
        "transaction.retry.maxAttempts": str(chance.choice((3, 10))),
        "purge.retentionCheckEnabled": "false",
        "cleanup.enabled": chance.choice(("true", "true", "false")),
        # With next to no memory every tail is folded.
        **({"distributedLogReplay.localMemory": "64"} if hours == 1 else {}),
    }


def draw_parts(
    chance: random.Random, verbs: Sequence[str], actors: int, steps: tuple[int, int], *, long: float = 0.15
) -> tuple[Part, ...]:
    """Who does what: each actor some steps, with faults that all of them share."""
    faults = draw_faults(chance)
    skewed = chance.random() < 0.3
    together = chance.random() < 0.2
    parts = []
    for at in range(actors):
        taken = tuple(
            Step(chance.choice(verbs), _pause(chance, long), chance.random())
            for _ in range(chance.randint(*steps))
        )
        skew_ms = round(chance.uniform(-2, 2) * HOUR_MS) if skewed else 0
        shared = f"shared-{chance.randint(0, 1)}" if together else None
        parts.append(Part(chr(ord("a") + at), taken, faults, skew_ms, shared))
    return tuple(parts)


def _pause(chance: random.Random, long: float) -> int:
    """Mostly next to nothing, sometimes a day: what is old must come about."""
    kind = chance.random()
    if kind < 1 - long:
        return round(10 ** chance.uniform(0, 3))
    return round(10 ** chance.uniform(5, 8.2))


def draw_faults(chance: random.Random) -> Faults:
    """Which kinds of faults this history has, if any."""
    if chance.random() < 0.25:
        return replace(GENTLE, pause=chance.choice((0.0, 0.01)))
    rate = chance.choice((0.002, 0.008, 0.02))
    on = {kind: chance.random() < 0.5 for kind in ("error", "lost_reply", "late", "echo", "crash", "pause")}
    return Faults(
        error=rate * on["error"],
        lost_reply=rate * on["lost_reply"],
        late=rate * on["late"],
        echo=rate * on["echo"],
        crash=rate / 2 * on["crash"],
        pause=rate * on["pause"],
    )


def log_rows(_path: str, data: bytes) -> Sequence[str]:
    """The rows of a split of the log level."""
    return json.loads(data)


def run_plan(plan: Plan, chance: random.Random, *, keep_trace: bool = False) -> Outcome:
    """Run a plan from an empty store to its end, and hold what happened against what was promised."""
    if plan.level == "table":
        from simulation.tables import TableActor, table_rows

        return _run(plan, chance, TableActor, table_rows, keep_trace=keep_trace)
    if plan.level == "lists":
        from lists.simulated import ListActor
        from simulation.tables import table_rows

        return _run(plan, chance, ListActor, table_rows, keep_trace=keep_trace)
    return _run(plan, chance, Actor, log_rows, keep_trace=keep_trace)


def _run(
    plan: Plan,
    chance: random.Random,
    kind: type[Actor],
    rows_in: Callable[[str, bytes], Sequence[Any]],
    *,
    keep_trace: bool,
) -> Outcome:
    chance.seed(f"ids:{plan.seed}")
    # A plan that is run again uses the same names, and must not meet the splits of the last run.
    forget_splits()
    world = World(plan.seed, keep_trace=keep_trace)
    stage = Stage(world, plan.options, partition_by=plan.partition_by, form=plan.form)
    if plan.founded:
        kind.found_table(quiet_log(stage, "founder"), stage)
    actors = [kind(stage, part.name, part.steps, part.faults, skew_ms=part.skew_ms) for part in plan.parts]
    for actor in actors:
        world.start(actor.run)
    world.run()
    truth = Truth(rows_in)
    if any(intent.verb == "swap" for intent in stage.intents):
        _finish_swap(truth, stage)
    end = len(world.journal)
    truth.see(world.journal)
    truth.check_told(stage.intents)
    truth.check_seen(stage.seen)
    truth.check_found(stage.found, world.objects.keys())
    truth.check_followed(stage.followed)
    for actor in actors:
        _check_stream(truth, actor)
    truth.violations += kind.check_end(stage)
    if not truth.violations:
        _check_end(truth, world, stage, end)
    verbs: dict[str, int] = {}
    for intent in stage.intents:
        verbs[f"{intent.verb} {intent.outcome}"] = verbs.get(f"{intent.verb} {intent.outcome}", 0) + 1
    return Outcome(
        plan, truth.violations, world.digest, world.operations, dict(world.faults),
        sum(map(len, truth.epochs)), len(truth.strays), world.trace, verbs,
    )  # fmt: skip


def quiet_log(stage: Stage, name: str) -> TransactionLog:
    """A handle without faults and without a past."""
    world = stage.world
    store = SimStore(world, name, random.Random(0), GENTLE, quiet=True)
    return TransactionLog.open(
        store.uri, stage.options, store=store, runtime=Runtime(clock=ActorClock(world))
    )


def _finish_swap(truth: Truth, stage: Stage) -> None:
    """Run a SWAP again that a crash interrupted, as the message of whoever wants to write says."""
    from simulation.repairing import SWAP_TARGET, swap_in_place

    world = stage.world
    log = quiet_log(stage, "operator")
    closed = "closed" in (log.protocol().writer_features or ())
    if closed or f"{SWAP_TARGET}/{1:020d}.json" in world.objects:
        store = SimStore(world, "operator", random.Random(0), GENTLE, quiet=True)
        try:
            swap_in_place(store, stage.options, Runtime(clock=ActorClock(world)))
        except Exception as error:
            truth.broken("an interrupted swap can be finished", f"{type(error).__name__}: {error}")


def _check_stream(truth: Truth, actor: Actor) -> None:
    if len(truth.epochs) > 1:
        return
    for number, files in actor.delivered:
        version = truth.versions.get(number)
        if version is None:
            truth.broken("a stream delivers what was added", f"{actor.name}: version {number} never was")
            continue
        changes = any(body.get("dataChange", True) for body in version.bodies("remove"))
        wanted = [body["path"] for body in version.bodies("add") if body.get("dataChange", True)]
        if list(files) != ([] if changes else wanted):
            truth.broken("a stream delivers what was added", f"{actor.name}: version {number} gave {files}")


def _check_end(truth: Truth, world: World, stage: Stage, end: int) -> None:
    """When all is quiet: every offered version opens and is what it was, and the table can be written."""
    log = quiet_log(stage, "inspector")
    present = set(world.objects)
    try:
        offered = log.versions()
        newest = log.snapshot(max_staleness_s=0).version
    except Exception as error:
        truth.broken("the table can be read", f"{type(error).__name__}: {error}")
        return
    if newest != truth.newest:
        truth.broken("the newest version is found", f"{newest} instead of {truth.newest}")
    for number in offered:
        _check_version(truth, log, number, present)
    if not {"truncate", "purge", "repair", "swap"} & {intent.verb for intent in stage.intents}:
        young = truth.kept_for(int(stage.options["logRetention.duration"]), world.now_ms)
        if not set(young) <= set(offered):
            lost = sorted(set(young) - set(offered))
            truth.broken(
                "history is kept as long as promised", f"versions {lost} are gone, there are {offered}"
            )
    floor = max((int(found[1]) for path in world.objects if (found := _FLOOR.fullmatch(path))), default=0)
    for number, form, path in _checkpoints(world, stage):
        if number < floor:
            # It came after history had let go of its version and of its parts; nobody looks at it.
            continue
        try:
            checkpoint_of(world.objects[path].data, form, lambda name: world.objects[name].data)
        except KeyError as part:
            truth.broken("a checkpoint has its parts", f"{path} names {part}, which is gone")
    raw = _raw_live(world, stage, truth.newest)
    if raw != truth.versions[truth.newest].live:
        truth.broken("the bytes hold the newest version", f"version {truth.newest} replays differently")
    try:
        log.history()
        version = log.add_files([])
        assert version == newest
    except Exception as error:
        truth.broken("the table can be written", f"{type(error).__name__}: {error}")


def _check_version(truth: Truth, log: TransactionLog, number: int, present: set[str]) -> None:
    version = truth.versions.get(number)
    try:
        live = frozenset(add.path for add in log.snapshot(number).adds())
    except Exception as error:
        truth.broken("an offered version opens", f"version {number}: {type(error).__name__}: {error}")
        return
    if version is None or live != version.live:
        truth.broken("an offered version is what it was", f"version {number}")
        return
    lost = truth.lost_splits(live, present)
    if lost:
        truth.broken("no live split is deleted", f"version {number} needs {lost[:3]}")


def _checkpoints(world: World, stage: Stage) -> list[tuple[int, str, str]]:
    """Version, form and path of every checkpoint that is in the store now and of which no file was exchanged."""
    damaged = {path[: len(LOG_DIR) + 21] for path in stage.exchanged}
    return [
        (int(found[1]), found[2], path)
        for path in world.objects
        if (found := _CHECKPOINT.fullmatch(path)) and path[: len(LOG_DIR) + 21] not in damaged
    ]


def _raw_live(world: World, stage: Stage, newest: int) -> frozenset[str] | None:
    """The live files of the newest version, from the bytes that are in the store now."""
    commits = {int(found[1]): path for path in world.objects if (found := _COMMIT.fullmatch(path))}
    live: set[str] = set()
    start = -1
    for number, form, path in sorted(_checkpoints(world, stage), reverse=True):
        if number > newest:
            continue
        with contextlib.suppress(KeyError):
            data = world.objects[path].data
            live = set(checkpoint_of(data, form, lambda name: world.objects[name].data))
            start = number
            break
    for number in range(start + 1, newest + 1):
        if number not in commits:
            return None
        for kind, body in actions_of(world.objects[commits[number]].data):
            if kind == "remove":
                live.discard(body["path"])
            elif kind == "add":
                live.add(body["path"])
    return frozenset(live)


def describe(intents: Sequence[Intent]) -> list[str]:
    """What the actors did and were told, one line each."""
    return [str(intent) for intent in intents if intent.outcome != ACKNOWLEDGED or intent.operation]


__all__ = ["LOG_DIR", "Outcome", "Part", "Plan", "plan_history", "run_plan"]
