"""The commit protocol as a small machine, small enough to try every order of its steps.

A world is a log directory and the actors that work on it. Each step is one
store operation of one actor. `search` visits every world that any order of
steps can reach and reports the first one that breaks a promise, with the steps
that led there. An actor that crashes is one that takes no further step, so
every crash is among the orders tried.

`Rules` names the rules of the protocol one by one. With `MENDED` no order
breaks a promise. Without one of them some order does: that is what the rule is
for. `docs/spec/commit-protocol.md` describes them in words.

There is no clock: a file that may go can go at once, and a pause has any
length. What is left out: the content of commits (an id stands for it), damage,
and a listing that misses a file made meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_ATTEMPTS = 2
"""A writer gives up after this many numbers."""
UNLUCKY = "a"
"""The writer whose puts lose their answer, arrive late or twice, and whose looks fail."""
LATE_CLEANER = "t"
"""The cleaner whose floor may arrive after it gave up."""


@dataclass(frozen=True)
class Rules:
    """Which rules the actors follow, and what their surroundings do to them."""

    look: bool = True
    """After a put, a writer looks whether its number was free because it had been retired."""
    doubt_failed_looks: bool = True
    """A writer whose look fails says that it does not know; else it believes the put that was confirmed."""
    doubt_strangers: bool = True
    """Another's file under the number is a reason to look; else it proves that ours never was history."""
    doubt_lost_replies: bool = True
    """A put without an answer that is not there yet counts as unknown, not as failed."""
    doubt_own_file: bool = True
    """That our file is there proves nothing; else it proves that it came after its number was retired."""
    admit_doubt: bool = True
    """A writer that cannot tell says so; otherwise it claims that nothing was committed."""
    ask_floor: bool = True
    """Below a floor, the log is asked which commit had the number; else the writer commits again."""
    window: int = 2
    """The checkpoint at the floor names the commits of so many versions."""
    link: bool = True
    """A commit names the commit it follows, and a writer that the checkpoint does not answer asks the next one."""
    probe: bool = False
    """The look opens the base first: while it is the file that was listed, no listing is needed (local disks)."""
    floor: bool = True
    """Before anything goes, a floor file says which versions are history no longer."""
    floor_first: bool = True
    """It is put before the first deletion, not after the last."""
    ascending: bool = True
    """Version files go from the oldest up."""
    checkpoint_first: bool = True
    """History goes only below a checkpoint that exists."""
    bound_reads: bool = True
    """A reader takes the object it listed or none; else whichever has the name by now."""
    answers_get_lost: bool = True
    """The surroundings: a put may lose its answer, or arrive after its writer gave up."""
    store_settles: bool = True
    """The surroundings: a store or a proxy answers a put from what lies there after its answer was lost."""
    echo: bool = True
    """The surroundings: a put may be carried out twice, the second time at any later moment."""
    looks_fail: bool = True
    """The surroundings: any look of a writer may fail for good."""


MENDED = Rules()
LOCAL = Rules(probe=True)
OLD = Rules(look=False, floor=False, link=False, doubt_lost_replies=False, bound_reads=False)
"""Believe the put; delete version files, then checkpoints."""
CLOCKED = Rules(
    doubt_failed_looks=False, doubt_strangers=False, doubt_own_file=False, window=0, bound_reads=False
)
"""Believe what a clock says: a put within half an hour of the look was in time."""


class File(NamedTuple):
    """A version file: which commit it is and which one it follows; a fence holds no actions."""

    commit: str | None
    follows: str | None
    fence: bool = False
    object: int = 0
    """Which of the objects that ever had this name it is."""


class Actor(NamedTuple):
    """One process: what it still has to do, where it is in that, and what it knows."""

    name: str
    tasks: tuple[str, ...]
    at: str = ""
    """The next step of the first task; empty: it has not begun."""
    base: tuple[str, ...] = ()
    """The commits of the newest version it saw."""
    base_object: int = 0
    """Which object the file of that version was."""
    attempts: int = 0
    ours: bool = True
    """Whether the file under the number is, or was, the writer's own."""
    confirmed: bool = True
    """Whether the put itself answered that it created the file."""
    floor: int = 0
    """The floor that the last look showed, or the checkpoint that a reader listed."""
    todo: tuple[tuple[int, int], ...] = ()
    """Version files it has yet to retire or to read, each with the object that was listed."""
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
    made: tuple[tuple[int, int], ...] = ()
    """How many objects each name ever had, beyond the first."""
    flying: tuple[tuple[int, File | None], ...] = ()
    """Puts that may still arrive; a floor is one without a file."""
    history: tuple[str, ...] = ("zero",)
    """The onlooker's truth: the commit that first got each number as the newest one."""
    acknowledged: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    misread: str = ""
    """What a reader got that never was."""

    def file(self, number: int) -> File | None:
        """The version file of a number."""
        return next((file for at, file in self.files if at == number), None)


Step = tuple[str, World]
Moves = Iterator[tuple[str, World, Actor]]


def successors(world: World, rules: Rules) -> Iterator[Step]:
    """Every world that one step makes of this one."""
    for place, actor in enumerate(world.actors):
        if actor.tasks:
            for label, after, changed in _STEPS[actor.at or _FIRST[actor.tasks[0]]](world, actor, rules):
                actors = (*world.actors[:place], changed, *world.actors[place + 1 :])
                yield f"{actor.name}: {label}", after._replace(actors=actors)
    for at, (number, file) in enumerate(world.flying):
        rest = world._replace(flying=world.flying[:at] + world.flying[at + 1 :])
        if file is None:
            yield f"the late floor {number} arrives", rest._replace(floor=max(rest.floor, number))
        else:
            _, after = _created(rest, number, file)
            yield f"the late put of {file.commit} arrives at {number}", after


def _created(world: World, number: int, file: File) -> tuple[bool, World]:
    """Put-if-absent."""
    if world.file(number) is not None:
        return False, world
    # The onlooker: a commit is history if nobody ever had its number.
    history = (*world.history, file.commit or "") if number == len(world.history) else world.history
    return True, _put_object(world, number, file)._replace(history=history)


def _put_object(world: World, number: int, file: File) -> World:
    """Give a name another object."""
    made = dict(world.made)
    made[number] = made.get(number, -1) + 1
    others = [item for item in world.files if item[0] != number]
    files = tuple(sorted((*others, (number, file._replace(object=made[number])))))
    return world._replace(files=files, made=tuple(sorted(made.items())))


def _without(world: World, number: int) -> World:
    return world._replace(files=tuple(item for item in world.files if item[0] != number))


def _done(actor: Actor) -> Actor:
    return actor._replace(
        tasks=actor.tasks[1:], at="", attempts=0, ours=True, confirmed=True, todo=(), floor=0
    )


def _top(world: World) -> int:
    return max([number for number, _ in world.files] + [number for number, _ in world.checkpoints])


def newest(world: World) -> tuple[str, ...] | None:
    """The newest version as a reader rebuilds it, commit by commit; None when that fails."""
    return rebuilt(world, _top(world))


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


# A commit: look, put, and look again.


def _begin(world: World, actor: Actor, rules: Rules) -> Moves:
    """List the log; a handle that has committed before may build on what it knows instead."""
    del rules
    if actor.attempts == 0 and actor.base and actor.commit:
        then = actor._replace(at="put", commit=actor.commit + 1, attempts=1)
        yield f"builds on version {actor.number - 1}, which it knows", world, then
    base = newest(world)
    assert base is not None, "checked as a promise before this step is tried"
    begun = actor.commit if actor.attempts else actor.commit + 1
    file = world.file(len(base) - 1)
    yield (
        f"sees version {len(base) - 1}",
        world,
        actor._replace(
            base=base,
            base_object=-1 if file is None else file.object,
            at="put",
            commit=begun,
            ours=True,
            confirmed=True,
            attempts=actor.attempts + 1,
        ),
    )


def _put(world: World, actor: Actor, rules: Rules) -> Moves:
    number, file = actor.number, File(actor.id, actor.base[-1] if rules.link else None)
    created, after = _created(world, number, file)
    confirmed = actor._replace(at=_after_put(rules), ours=True, confirmed=True)
    if created:
        yield f"puts version {number}", after, confirmed
    else:
        yield f"finds version {number} taken", world, actor._replace(at="exists")
    if actor.name != UNLUCKY:
        return
    if rules.answers_get_lost:
        late = world._replace(flying=(*world.flying, (number, file)))
        lost = actor._replace(at="settled by the store" if rules.store_settles else "no answer")
        if created:
            yield f"puts version {number}, the answer is lost", after, lost
        yield f"gets no answer to its put of version {number}", late, lost
    if rules.echo and created:
        echo = after._replace(flying=(*after.flying, (number, file)))
        yield f"puts version {number}, and a proxy will repeat it", echo, confirmed


def _after_put(rules: Rules) -> str:
    return "acknowledge" if not rules.look else "probe" if rules.probe else "look"


def _again(actor: Actor) -> Actor:
    return actor._replace(at="" if actor.attempts < MOST_ATTEMPTS else "give up")


def _settled_by_store(world: World, actor: Actor, rules: Rules) -> Moves:
    """A store that answers from what it finds says created, exists, or, where nothing is, no answer."""
    found = world.file(actor.number)
    if found is None:
        yield "hears no answer", world, actor._replace(at="no answer")
    elif found.commit == actor.id:
        yield "hears: created", world, actor._replace(at=_after_put(rules), confirmed=True)
    else:
        yield "hears: exists", world, actor._replace(at="exists")


def _exists(world: World, actor: Actor, rules: Rules) -> Moves:
    yield from _whose(world, actor, rules, answered=True)


def _no_answer(world: World, actor: Actor, rules: Rules) -> Moves:
    yield from _whose(world, actor, rules, answered=False)


def _whose(world: World, actor: Actor, rules: Rules, *, answered: bool) -> Moves:
    """Read the file under the number."""
    found = world.file(actor.number)
    mine = actor._replace(at=_after_put(rules), ours=True, confirmed=False)
    others = actor._replace(at="look", ours=False, confirmed=False)
    if found is not None and found.commit == actor.id:
        yield "finds its own commit there", world, mine
    elif found is not None and not (rules.look and rules.doubt_strangers):
        yield "finds another commit there", world, _again(actor)
    elif found is not None:
        yield "finds another commit there", world, others
    elif answered:
        yield "finds nothing there any more", world, others if rules.look else _again(actor)
    else:
        yield from _doubt(world, actor, admit=rules.doubt_lost_replies)
    if rules.looks_fail and actor.name == UNLUCKY:
        yield from _doubt(world, actor, admit=True)


def _doubt(world: World, actor: Actor, *, admit: bool) -> Moves:
    if admit:
        yield "says: unknown", world._replace(unknown=world.unknown | {actor.id}), _done(actor)
    else:
        denied = world._replace(denied=world.denied | {actor.id})
        yield "says: nothing was committed", denied, _done(actor)


def _failing(world: World, actor: Actor, rules: Rules) -> Moves:
    """A look that fails, however often it is repeated."""
    if not (rules.looks_fail and actor.name == UNLUCKY):
        return
    if rules.doubt_failed_looks or not (actor.ours and actor.confirmed):
        yield from _doubt(world, actor, admit=True)
    else:
        yield "cannot look, and believes the clock", world, actor._replace(at="acknowledge")


def _probe(world: World, actor: Actor, rules: Rules) -> Moves:
    base = world.file(actor.number - 1)
    if base is not None and not base.fence and base.object == actor.base_object:
        yield "sees that its base is the file it listed", world, actor._replace(at="acknowledge")
    else:
        yield "sees that its base is gone", world, actor._replace(at="look")
    yield from _failing(world, actor, rules)


def _look(world: World, actor: Actor, rules: Rules) -> Moves:
    above = [number for number, _ in (*world.files, *world.checkpoints) if number > actor.number]
    retired = world.floor > actor.number if rules.floor else bool(above)
    if retired:
        then = _again(actor) if not rules.ask_floor else actor._replace(at="checkpoint at the floor")
        yield "sees its number was retired", world, then._replace(floor=world.floor)
    elif actor.ours:
        yield "sees its number was never retired", world, actor._replace(at="acknowledge")
    else:
        yield "sees that another has its number", world, _again(actor)
    yield from _failing(world, actor, rules)


def _ids_at_floor(world: World, actor: Actor, rules: Rules) -> Moves:
    ids = dict(world.checkpoints).get(actor.floor)
    if ids is None and rules.floor:
        yield "finds the checkpoint at the floor gone", world, actor._replace(at="look")
    elif ids is None or actor.number < len(ids) - rules.window:
        yield "is not told by the checkpoint", world, actor._replace(at="follower")
    elif ids[actor.number] == actor.id:
        yield "is named by the checkpoint", world, actor._replace(at="acknowledge")
    else:
        yield "is not what the checkpoint names", world, actor._replace(at="too late")
    yield from _failing(world, actor, rules)


def _follower(world: World, actor: Actor, rules: Rules) -> Moves:
    found = world.file(actor.number + 1)
    if found is None:
        yield "finds no next version", world, actor._replace(at="own")
    elif not rules.link:
        yield "finds a next version", world, actor._replace(at="acknowledge")
    elif found.follows is None:
        yield from _doubt(world, actor, admit=rules.admit_doubt)
    elif found.follows == actor.id:
        yield "is followed by the next version", world, actor._replace(at="acknowledge")
    else:
        yield "is not what the next version follows", world, actor._replace(at="too late")
    yield from _failing(world, actor, rules)


def _own(world: World, actor: Actor, rules: Rules) -> Moves:
    found = world.file(actor.number)
    whole = found is not None and found.commit == actor.id and not found.fence and actor.confirmed
    if whole and not rules.doubt_own_file:
        yield "finds its own file still there", world, actor._replace(at="too late")
    else:
        yield from _doubt(world, actor, admit=rules.admit_doubt)


def _too_late(world: World, actor: Actor, rules: Rules) -> Moves:
    del rules
    yield "was too late, and commits again", world, _again(actor)


def _acknowledge(world: World, actor: Actor, rules: Rules) -> Moves:
    del rules
    told = world._replace(acknowledged=world.acknowledged | {actor.id})
    file = world.file(actor.number)
    known = actor._replace(base=(*actor.base, actor.id), base_object=-1 if file is None else file.object)
    yield f"acknowledges {actor.id}", told, _done(known)


def _give_up(world: World, actor: Actor, rules: Rules) -> Moves:
    del rules
    yield "gives up", world._replace(denied=world.denied | {actor.id}), _done(actor)


# A checkpoint of the version an actor knows, however late.


def _see(world: World, actor: Actor, rules: Rules) -> Moves:
    del rules
    base = newest(world)
    assert base is not None, "checked as a promise before this step is tried"
    yield f"sees version {len(base) - 1}", world, actor._replace(base=base, at="checkpoint")


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
    yield f"writes the checkpoint of {len(actor.base) - 1}", after, actor._replace(at="list below")


def _list_below(world: World, actor: Actor, rules: Rules) -> Moves:
    version = len(actor.base) - 1
    going = tuple((number, file.object) for number, file in world.files if number < version)
    order = going if rules.ascending else tuple(reversed(going))
    then = actor._replace(todo=order, at="raise floor" if rules.floor and rules.floor_first else "retire")
    yield f"lists what is below {version}", world, then


def _raise_floor(world: World, actor: Actor, rules: Rules) -> Moves:
    version = len(actor.base) - 1
    raised = world._replace(floor=max(world.floor, version))
    then = actor._replace(at="drop checkpoints") if rules.floor_first else _done(actor)
    yield f"raises the floor to {version}", raised, then
    if rules.answers_get_lost and actor.name == LATE_CLEANER:
        late = world._replace(flying=(*world.flying, (version, None)))
        yield f"hears nothing of the floor {version}, and leaves it at that", late, _done(actor)


def _drop_checkpoints(world: World, actor: Actor, rules: Rules) -> Moves:
    version = len(actor.base) - 1
    kept = tuple(item for item in world.checkpoints if item[0] >= version)
    then = _done(actor)
    if rules.floor:
        then = actor._replace(at="retire" if rules.floor_first else "raise floor")
    yield f"deletes the checkpoints before {version}", world._replace(checkpoints=kept), then


def _retire(world: World, actor: Actor, rules: Rules) -> Moves:
    if not actor.todo:
        ends = rules.floor and rules.floor_first
        yield "is done", world, _done(actor) if ends else actor._replace(at="drop checkpoints")
        return
    (number, _), *rest = actor.todo
    then = actor._replace(todo=tuple(rest))
    yield f"deletes version {number}", _without(world, number), then
    found = world.file(number)
    if found is not None and rules.floor:
        fence = File(found.commit, found.follows, fence=True)
        left = world if found.fence else _put_object(world, number, fence)
        yield f"leaves a fence at {number}", left, then


# A reader, object by object.


def _list(world: World, actor: Actor, rules: Rules) -> Moves:
    del rules
    start, _ = max((item for item in world.checkpoints if item[0] >= world.floor), default=(-1, ()))
    wanted = []
    for number in range(start + 1, _top(world) + 1):
        file = world.file(number)
        wanted.append((number, -1 if file is None else file.object))
    then = actor._replace(todo=tuple(wanted), floor=start, base=(), at="read" if start < 0 else "open")
    yield f"lists version {_top(world)}", world, then


def _open(world: World, actor: Actor, rules: Rules) -> Moves:
    del rules
    commits = dict(world.checkpoints).get(actor.floor)
    if commits is None:
        yield f"finds the checkpoint of {actor.floor} gone, and ends", world, _done(actor)
    else:
        yield f"reads the checkpoint of {actor.floor}", world, actor._replace(base=commits, at="read")


def _read(world: World, actor: Actor, rules: Rules) -> Moves:
    if not actor.todo:
        true = world.history[: len(actor.base)]
        wrong = f"a reader got version {len(actor.base) - 1} as {actor.base}, not as {true}"
        after = world if actor.base == true else world._replace(misread=wrong)
        yield f"answers with version {len(actor.base) - 1}", after, _done(actor)
        return
    (number, listed), *rest = actor.todo
    file = world.file(number)
    if file is None or file.fence or (rules.bound_reads and file.object != listed):
        yield f"finds version {number} gone, and ends", world, _done(actor)
    else:
        then = actor._replace(todo=tuple(rest), base=(*actor.base, file.commit or ""))
        yield f"reads version {number}", world, then


_FIRST = {"commit": "begin", "checkpoint": "see", "truncate": "keep", "read": "list"}
_STEPS: dict[str, Callable[[World, Actor, Rules], Moves]] = {
    "begin": _begin,
    "put": _put,
    "settled by the store": _settled_by_store,
    "exists": _exists,
    "no answer": _no_answer,
    "probe": _probe,
    "look": _look,
    "checkpoint at the floor": _ids_at_floor,
    "follower": _follower,
    "own": _own,
    "too late": _too_late,
    "acknowledge": _acknowledge,
    "give up": _give_up,
    "see": _see,
    "checkpoint": _checkpoint,
    "keep": _keep,
    "cover": _cover,
    "list below": _list_below,
    "raise floor": _raise_floor,
    "drop checkpoints": _drop_checkpoints,
    "retire": _retire,
    "list": _list,
    "open": _open,
    "read": _read,
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
    return world.misread or None


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
