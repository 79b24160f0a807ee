"""The commit protocol as a small machine, small enough to try every order of its steps.

A world is a log directory and three actors that work on it. Each step is one
store operation of one actor. `search` visits every world that any order of
steps can reach and reports the first one that breaks a promise, with the steps
that led there. An actor that crashes is one that takes no further step, so
every crash is among the orders tried.

`Rules` names the rules of the protocol one by one. With `MENDED` no order
breaks a promise. Without one of them some order does: that is what the rule is
for. `docs/spec/commit-protocol.md` describes them in words.

What is left out: the content of commits (an id stands for it), time (a file
that may go can go at once), and listings that miss a file made meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_ATTEMPTS = 2
"""A writer gives up after this many numbers."""
UNLUCKY = "a"
"""The actor whose puts may lose their answer or arrive late."""


@dataclass(frozen=True)
class Rules:
    """Which rules the actors follow."""

    look_back: bool = True
    """After a put, a writer asks whether its number was free because it had been retired."""
    floor: bool = True
    """Before anything goes, a floor file says which versions are history no longer."""
    link: bool = True
    """A commit names the commit it follows, and a writer in doubt asks the next one whom it follows."""
    follower_first: bool = True
    """A writer in doubt looks for the next version before it looks for its own."""
    ascending: bool = True
    """Version files go from the oldest up."""
    keep_own: bool = True
    """A writer never deletes a version file that it put."""
    admit_doubt: bool = True
    """A writer that cannot tell says so; otherwise it claims that nothing was committed."""
    doubt_lost_replies: bool = True
    """A put without an answer that is not there yet counts as unknown, not as failed."""
    doubt_strangers: bool = True
    """After a put without an answer, another commit at a retired number proves nothing."""
    checkpoint_first: bool = True
    """History goes only below a checkpoint that exists."""
    answers_get_lost: bool = True
    """The surroundings: a put may lose its answer, or arrive after its writer gave up."""
    pauses_outlast_fences: bool = True
    """The surroundings: a version file may be deleted while a writer that began before it is still at it."""


MENDED = Rules()
OLD = Rules(look_back=False, floor=False, link=False, doubt_lost_replies=False)
"""Believe the put; delete version files, then checkpoints."""


class File(NamedTuple):
    """A version file: which commit it is and which one it follows; a fence holds no actions."""

    commit: str | None
    follows: str | None
    fence: bool = False


class Actor(NamedTuple):
    """One process: what it still has to do, where it is in that, and what it knows."""

    name: str
    tasks: tuple[str, ...]
    at: str = ""
    """The next step of the first task; empty: it has not begun."""
    base: tuple[str, ...] = ()
    """The commits of the newest version it saw."""
    attempts: int = 0
    clean: bool = True
    """Whether the put itself answered that it created the file."""
    todo: tuple[int, ...] = ()
    """Version files it has yet to retire."""
    commit: int = 0
    """How many commits it has begun, which makes their ids."""

    @property
    def id(self) -> str:
        """The id of the commit at hand."""
        return f"{self.name}{self.commit}"

    @property
    def number(self) -> int:
        """The version it tries for."""
        return len(self.base)


class World(NamedTuple):
    """The log directory, the actors, and what an onlooker knows who misses nothing."""

    actors: tuple[Actor, ...]
    files: tuple[tuple[int, File], ...] = ((0, File("zero", None)),)
    checkpoints: tuple[tuple[int, tuple[str, ...]], ...] = ()
    floor: int = 0
    flying: tuple[tuple[int, File], ...] = ()
    """Puts that were given up by their writer and may still arrive."""
    history: tuple[str, ...] = ("zero",)
    """The onlooker's truth: the commit that first got each number as the newest one."""
    acknowledged: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()

    def file(self, number: int) -> File | None:
        """The version file of a number."""
        return next((file for at, file in self.files if at == number), None)


Step = tuple[str, World]


def successors(world: World, rules: Rules) -> Iterator[Step]:
    """Every world that one step makes of this one."""
    for place, actor in enumerate(world.actors):
        if actor.tasks:
            for label, after, changed in _STEPS[actor.at or _FIRST[actor.tasks[0]]](world, actor, rules):
                actors = (*world.actors[:place], changed, *world.actors[place + 1 :])
                yield f"{actor.name}: {label}", after._replace(actors=actors)
    for put in world.flying:
        rest = tuple(item for item in world.flying if item != put)
        _, after = _created(world._replace(flying=rest), *put)
        yield f"the late put of {put[1].commit} arrives at {put[0]}", after


Moves = Iterator[tuple[str, World, Actor]]


def _created(world: World, number: int, file: File) -> tuple[bool, World]:
    """Put-if-absent."""
    if world.file(number) is not None:
        return False, world
    files = tuple(sorted((*world.files, (number, file))))
    # The onlooker: a commit is history if nobody ever had its number.
    history = (*world.history, file.commit or "") if number == len(world.history) else world.history
    return True, world._replace(files=files, history=history)


def _without(world: World, number: int) -> World:
    return world._replace(files=tuple(item for item in world.files if item[0] != number))


def _done(actor: Actor) -> Actor:
    return actor._replace(tasks=actor.tasks[1:], at="", attempts=0, clean=True, todo=())


def newest(world: World) -> tuple[str, ...] | None:
    """The newest version as a reader rebuilds it, commit by commit; None when that fails."""
    top = max([number for number, _ in world.files] + [number for number, _ in world.checkpoints])
    return rebuilt(world, top)


def rebuilt(world: World, version: int) -> tuple[str, ...] | None:
    """A version as a reader rebuilds it: the best checkpoint, then the commits after it."""
    below = [item for item in world.checkpoints if world.floor <= item[0] <= version]
    start, commits = max(below, default=(-1, ()))
    if start < 0 and world.floor > 0:
        return None
    for number in range(start + 1, version + 1):
        file = world.file(number)
        if file is None or file.fence:
            return None
        commits = (*commits, file.commit or "")
    return commits


def offered(world: World) -> list[int]:
    """The versions that names alone show as readable."""
    numbers = {number for number, _ in world.files}
    starts = {number for number, _ in world.checkpoints}
    found: list[int] = []
    for number in sorted(numbers | starts):
        if number < world.floor:
            continue
        follows = number in numbers and (number == 0 or (bool(found) and found[-1] == number - 1))
        if number in starts or follows:
            found.append(number)
    return found


# A commit: look, put, and look back.


def _look(world: World, actor: Actor, rules: Rules) -> Moves:
    del rules
    base = newest(world)
    assert base is not None, "checked as a promise before this step is tried"
    begun = actor.commit if actor.attempts else actor.commit + 1
    yield (
        f"sees version {len(base) - 1}",
        world,
        actor._replace(base=base, at="put", commit=begun, clean=True, attempts=actor.attempts + 1),
    )


def _put(world: World, actor: Actor, rules: Rules) -> Moves:
    file = File(actor.id, actor.base[-1] if rules.link else None)
    created, after = _created(world, actor.number, file)
    if created:
        then = actor._replace(at="look back" if rules.look_back else "acknowledge")
        yield f"puts version {actor.number}", after, then
    else:
        yield f"finds version {actor.number} taken", world, _again(actor)
    if actor.name == UNLUCKY and rules.answers_get_lost:
        if created:
            yield f"puts version {actor.number}, the answer is lost", after, actor._replace(at="settle")
        late = world._replace(flying=(*world.flying, (actor.number, file)))
        yield f"gets no answer to its put of version {actor.number}", late, actor._replace(at="settle")


def _again(actor: Actor) -> Actor:
    return actor._replace(at="" if actor.attempts < MOST_ATTEMPTS else "give up")


def _settle(world: World, actor: Actor, rules: Rules) -> Moves:
    found = world.file(actor.number)
    if found is None:
        yield from _doubt(world, actor, admit=rules.doubt_lost_replies)
    elif found.commit == actor.id:
        then = "look back" if rules.look_back else "acknowledge"
        yield "finds its own commit there", world, actor._replace(at=then, clean=False)
    elif rules.look_back and rules.doubt_strangers:
        # A stranger there proves nothing if ours was retired before it came.
        yield "finds another commit there", world, actor._replace(at="look past", clean=False)
    else:
        yield "finds another commit there", world, _again(actor)


def _look_past(world: World, actor: Actor, rules: Rules) -> Moves:
    if world.floor > actor.number:
        yield "sees its number was retired", world, actor._replace(at="follower" if rules.link else "own")
    else:
        yield "sees its number was never retired", world, _again(actor)


def _doubt(world: World, actor: Actor, *, admit: bool) -> Moves:
    if admit:
        yield "says: unknown", world._replace(unknown=world.unknown | {actor.id}), _done(actor)
    else:
        denied = world._replace(denied=world.denied | {actor.id})
        yield "says: nothing was committed", denied, _done(actor)


def _look_back(world: World, actor: Actor, rules: Rules) -> Moves:
    above = [number for number, _ in (*world.files, *world.checkpoints) if number > actor.number]
    retired = world.floor > actor.number if rules.floor else bool(above)
    if not retired:
        yield "sees its number was never retired", world, actor._replace(at="acknowledge")
    else:
        first = "follower" if rules.follower_first else "own"
        yield "sees its number was retired", world, actor._replace(at=first)


def _follower(world: World, actor: Actor, rules: Rules) -> Moves:
    found = world.file(actor.number + 1)
    if found is None:
        then = actor._replace(at="own" if rules.follower_first else "too late")
        yield "finds no next version", world, then
    elif not rules.link:
        yield "finds a next version", world, actor._replace(at="acknowledge")
    elif found.follows is None:
        yield from _doubt(world, actor, admit=rules.admit_doubt)
    elif found.follows == actor.id:
        yield "is followed by the next version", world, actor._replace(at="acknowledge")
    else:
        yield "is not what the next version follows", world, actor._replace(at="too late")


def _own(world: World, actor: Actor, rules: Rules) -> Moves:
    found = world.file(actor.number)
    whole = found is not None and found.commit == actor.id and not found.fence and actor.clean
    if whole:
        then = actor._replace(at="too late" if rules.follower_first else "follower")
        yield "finds its own file still there", world, then
    else:
        yield from _doubt(world, actor, admit=rules.admit_doubt)


def _too_late(world: World, actor: Actor, rules: Rules) -> Moves:
    after = world if rules.keep_own else _without(world, actor.number)
    yield "was too late, and commits again", after, _again(actor)


def _acknowledge(world: World, actor: Actor, rules: Rules) -> Moves:
    del rules
    told = world._replace(acknowledged=world.acknowledged | {actor.id})
    yield f"acknowledges {actor.id}", told, _done(actor._replace(base=(*actor.base, actor.id)))


def _give_up(world: World, actor: Actor, rules: Rules) -> Moves:
    del rules
    yield "gives up", world._replace(denied=world.denied | {actor.id}), _done(actor)


# A checkpoint of the version an actor knows, however late.


def _checkpoint(world: World, actor: Actor, rules: Rules) -> Moves:
    del rules
    version = len(actor.base) - 1
    yield f"writes the checkpoint of {version}", _with_checkpoint(world, actor.base), _done(actor)


def _with_checkpoint(world: World, base: tuple[str, ...]) -> World:
    version = len(base) - 1
    if version in dict(world.checkpoints):
        return world
    return world._replace(checkpoints=tuple(sorted((*world.checkpoints, (version, base)))))


# Truncating, and cleanup with the shortest retention: the same steps.


def _keep(world: World, actor: Actor, rules: Rules) -> Moves:
    base = newest(world)
    assert base is not None, "checked as a promise before this step is tried"
    then = actor._replace(base=base, at="cover")
    yield f"wants to keep version {len(base) - 1} only", world, then
    del rules


def _cover(world: World, actor: Actor, rules: Rules) -> Moves:
    after = _with_checkpoint(world, actor.base) if rules.checkpoint_first else world
    yield f"writes the checkpoint of {len(actor.base) - 1}", after, actor._replace(at="raise floor")


def _raise_floor(world: World, actor: Actor, rules: Rules) -> Moves:
    version = len(actor.base) - 1
    going = tuple(number for number, _ in world.files if number < version)
    order = going if rules.ascending else tuple(reversed(going))
    then = actor._replace(todo=order, at="drop checkpoints" if rules.floor else "retire")
    raised = max(world.floor, version) if rules.floor else world.floor
    yield f"raises the floor to {version}", world._replace(floor=raised), then


def _drop_checkpoints(world: World, actor: Actor, rules: Rules) -> Moves:
    version = len(actor.base) - 1
    kept = tuple(item for item in world.checkpoints if item[0] >= version)
    then = actor._replace(at="retire") if rules.floor else _done(actor)
    yield f"deletes the checkpoints before {version}", world._replace(checkpoints=kept), then


def _retire(world: World, actor: Actor, rules: Rules) -> Moves:
    if not actor.todo:
        yield "is done", world, _done(actor) if rules.floor else actor._replace(at="drop checkpoints")
        return
    number, *rest = actor.todo
    then = actor._replace(todo=tuple(rest))
    if rules.pauses_outlast_fences or not _wanted(world, number):
        yield f"deletes version {number}", _without(world, number), then
    found = world.file(number)
    if found is None:
        yield f"finds no version {number}", world, then
    elif rules.floor:
        fence = File(found.commit, found.follows, fence=True)
        others = [item for item in world.files if item[0] != number]
        yield (
            f"leaves a fence at {number}",
            world._replace(files=tuple(sorted((*others, (number, fence))))),
            then,
        )


def _wanted(world: World, number: int) -> bool:
    """Whether a writer that began before this version was there has yet to finish."""
    return any(actor.at in _COMMITTING and actor.number <= number for actor in world.actors)


_COMMITTING = {"put", "settle", "look past", "look back", "follower", "own", "too late", "acknowledge"}
_FIRST = {"commit": "look", "checkpoint": "checkpoint", "truncate": "keep"}
_STEPS: dict[str, Callable[[World, Actor, Rules], Moves]] = {
    "look": _look,
    "put": _put,
    "settle": _settle,
    "look past": _look_past,
    "look back": _look_back,
    "follower": _follower,
    "own": _own,
    "too late": _too_late,
    "acknowledge": _acknowledge,
    "give up": _give_up,
    "checkpoint": _checkpoint,
    "keep": _keep,
    "cover": _cover,
    "raise floor": _raise_floor,
    "drop checkpoints": _drop_checkpoints,
    "retire": _retire,
}


def broken_promise(world: World) -> str | None:
    """The first promise this world breaks, in words; None when it keeps all."""
    lost = sorted(world.acknowledged - set(world.history))
    if lost:
        return f"{lost[0]} was acknowledged and is not in the history"
    denied = sorted(world.denied & set(world.history))
    if denied:
        return f"{denied[0]} is in the history, and its writer was told that nothing was committed"
    twice = sorted({commit for commit in world.history if world.history.count(commit) > 1})
    if twice:
        return f"{twice[0]} is in the history twice"
    if newest(world) != world.history:
        return f"a reader finds {newest(world)} and the history is {world.history}"
    for version in offered(world):
        found = rebuilt(world, version)
        if found is None:
            return f"version {version} is offered and cannot be opened"
        if found != world.history[: version + 1]:
            return f"version {version} opens as {found}, not as {world.history[: version + 1]}"
    return None


@dataclass(frozen=True)
class Found:
    """What a search came to."""

    worlds: int
    broken: str | None = None
    trace: tuple[str, ...] = ()
    unknown: int = 0
    """Finished worlds in which some writer could not tell."""


@dataclass
class _Origins:
    """How each world was reached first."""

    parents: dict[World, tuple[World | None, str]] = field(default_factory=dict)

    def trace(self, world: World) -> tuple[str, ...]:
        steps: list[str] = []
        parent, label = self.parents[world]
        while parent is not None:
            steps.append(label)
            parent, label = self.parents[parent]
        return tuple(reversed(steps))


def search(programs: dict[str, tuple[str, ...]], rules: Rules) -> Found:
    """Try every order of the steps of these programs; breadth first, so a trace is a shortest one."""
    start = World(tuple(Actor(name, tasks) for name, tasks in programs.items()))
    origins = _Origins({start: (None, "")})
    queue = deque([start])
    unknown = 0
    while queue:
        world = queue.popleft()
        broken = broken_promise(world)
        if broken is not None:
            return Found(len(origins.parents), broken, origins.trace(world))
        ended = True
        for label, after in successors(world, rules):
            ended = False
            if after not in origins.parents:
                origins.parents[after] = (world, label)
                queue.append(after)
        unknown += ended and bool(world.unknown)
    return Found(len(origins.parents), unknown=unknown)
