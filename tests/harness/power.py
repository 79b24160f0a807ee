"""Cut the power: `python -m harness.power --replays 600 --keep`, from the directory `tests`.

Every verb that commits is recorded on a local disk, operation by operation. A
replay stops the record somewhere, drops or reorders what was not synced, and
opens the table that is left: it must hold what was acknowledged, all or nothing
of what was under way, and nothing else; and life must go on.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import indextables as it
from harness.disk import Cut, Event, Note, recording, write_image
from harness.inquest import Finding, read, require_history, require_life, require_one_of
from harness.kills import RESULTS
from harness.verbs import OPTIONS, SCHEMA, VERBS, Content, Step, Verb, day_of, make_template, rows
from support.commit import current_commit

TABLE = "table"
_ACKNOWLEDGED = 0.3
"""How often the power goes at the moment when a verb has returned, the one that matters most."""


def _open(root: str) -> it.Table:
    return it.Table.open(root, options=OPTIONS)


def _ids(batch: pa.Table) -> Content:
    return Counter(batch["id"].to_pylist())


def _replaced(new: pa.Table, matches: Callable[[str], bool]) -> Callable[[Content], Content]:
    """The content with all matching rows exchanged for new ones."""
    return lambda content: Counter({key: n for key, n in content.items() if not matches(key)}) + _ids(new)


def create(root: str, name: str, _: random.Random) -> Iterator[Step]:
    """Create a table in a directory that is not there yet, and write the first rows."""
    yield Step(
        lambda: it.Table.create(f"{root}/../new/deep", SCHEMA, ["day"], options=OPTIONS), lambda _: Counter()
    )
    new = rows(name, 0)
    yield Step(lambda: _open(f"{root}/../new/deep").append(new), lambda content: content + _ids(new))


def new_partition(root: str, name: str, _: random.Random) -> Iterator[Step]:
    """Rows of days that have no directory yet."""
    for batch in range(2):
        new = rows(name, batch).set_column(1, "day", pa.array([f"new {batch}"] * 3))
        yield Step(lambda new=new: _open(root).append(new), lambda content, new=new: content + _ids(new))


def grow(root: str, name: str, _: random.Random) -> Iterator[Step]:
    """Rows with a column that the table lacks."""
    new = rows(name, 0).append_column("level", pa.array([1, 2, 3]))
    yield Step(lambda: _open(root).append(new, merge_schema=True), lambda content: content + _ids(new))


def overwrite(root: str, name: str, _: random.Random) -> Iterator[Step]:
    """Replace all rows, then those of the partitions that new rows belong to."""
    new = rows(name, 0)
    yield Step(lambda: _open(root).overwrite(new), _replaced(new, lambda _: True))
    one = rows(name, 1, 1)
    yield Step(
        lambda: _open(root).overwrite(one, partitions="dynamic"),
        _replaced(one, lambda key: day_of(key) == "1"),
    )


def update(root: str, _name: str, dice: random.Random) -> Iterator[Step]:
    """Other values in some rows, which stay."""
    for batch in dice.sample(range(4), 2):
        where = f"id = 'base-{batch}-1'"
        yield Step(
            lambda where=where: _open(root).update(where, {"message": "other"}), lambda content: content
        )


def upsert(root: str, name: str, _: random.Random) -> Iterator[Step]:
    """Rows by key: some are there, some are new."""
    new = pa.concat_tables([rows("base", 3), rows(name, 0)])
    yield Step(lambda: _open(root).merge(new, "id"), lambda content: content | _ids(new))


def delete_by_query(root: str, _name: str, _: random.Random) -> Iterator[Step]:
    """Delete what a search finds."""
    yield Step(
        lambda: _open(root).delete(query='message:row AND message:"base-2-0"'),
        lambda content: Counter({key: n for key, n in content.items() if key != "base-2-0"}),
    )


def drop_partitions(root: str, _name: str, _: random.Random) -> Iterator[Step]:
    """Remove a day."""
    nothing = rows("none", 0, 0)
    yield Step(
        lambda: _open(root).drop_partitions("day = '1'"), _replaced(nothing, lambda key: day_of(key) == "1")
    )


def properties(root: str, _name: str, _: random.Random) -> Iterator[Step]:
    """Properties, and statistics that are suggested and stored."""
    for value in ("one", "two"):
        yield Step(
            lambda value=value: _open(root).update_properties({"owner": value}), lambda content: content
        )
    yield Step(lambda: _open(root).suggest_statistics(["id"], store=True), lambda content: content)


def constraints(root: str, _name: str, _: random.Random) -> Iterator[Step]:
    """A constraint that is added, which raises the protocol, and dropped."""
    yield Step(lambda: _open(root).add_constraint("some_id", "id IS NOT NULL"), lambda content: content)
    yield Step(lambda: _open(root).drop_constraint("some_id"), lambda content: content)


RECORDED: dict[str, Verb] = {
    **{name: verb for name, verb in VERBS.items() if name != "repair"},
    "create": create, "new partition": new_partition, "grow": grow, "overwrite": overwrite, "update": update,
    "upsert": upsert, "delete by query": delete_by_query, "drop partitions": drop_partitions,
    "properties": properties, "constraints": constraints,
}  # fmt: skip
METHODS = {
    "add_constraint", "append", "checkpoint", "create", "delete", "drop_constraint", "drop_partitions", "merge",
    "merge_splits", "overwrite", "purge", "purge_rows", "restore", "suggest_statistics", "truncate_history", "update", "update_properties",
}  # fmt: skip
"""The methods of Table that these call: all that write."""


@dataclass(frozen=True, slots=True)
class Record:
    """One verb, all that it did to the disk, and what the table held after each of its steps."""

    verb: str
    root: str
    """Of the table, below the directory that was recorded."""
    events: list[Event]
    begin: int
    """The first event that is the verb's."""
    contents: list[Content | None]
    """Before the first step and after each; None where there is no table."""


def record(
    verb: str, seed: int, template: Path, home: Path, ignored: Callable[[Event], bool] = lambda _: False
) -> Record:
    """Run a verb on a copy of the template and take down every operation."""
    base = home / f"record-{verb.replace(' ', '-')}-{seed}"
    root = Path(shutil.copytree(template, base / TABLE))
    steps = RECORDED[verb](str(root), "power", random.Random(seed))
    place = "new/deep" if verb == "create" else TABLE
    content = None if verb == "create" else read(root)
    contents = [content]
    with recording(base, ignored) as recorder:
        begin = len(recorder.events)
        for at, step in enumerate(steps):
            recorder.note(("begun", at))
            step.run()
            content = step.effect(content if content is not None else Counter())
            contents.append(content)
            recorder.note(("done", at, it.Table.open(str(base / place)).version))
    shutil.rmtree(base)
    return Record(verb, place, recorder.events, begin, contents)


def draw_cut(recorded: Record, dice: random.Random) -> Cut:
    """A moment, and what the disk makes of it."""
    returns = [
        at + 1
        for at, event in enumerate(recorded.events)
        if isinstance(event, Note) and event.text[0] == "done"
    ]
    at_return = dice.random() < _ACKNOWLEDGED
    return Cut(
        dice.choice(returns) if at_return else dice.randint(recorded.begin, len(recorded.events)),
        dice.choice(("before", "after", "mixed", "mixed")),
        dice.choice(("empty", "whole", "mixed", "mixed")),
        dice.randrange(2**32),
    )


@dataclass
class Tally:
    """What many replays came to."""

    replays: int = 0
    acknowledged: int = 0
    under_way: int = 0
    landed: int = 0
    """Steps under way whose commit was found to be there."""
    verbs: Counter[str] = field(default_factory=Counter)
    broken: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The figures, for a result file."""
        return {**vars(self), "verbs": dict(self.verbs)}


def replay(recorded: Record, cut: Cut, base: Path, tally: Tally, *, live_on: bool) -> None:
    """Open what one cut leaves; Finding when a promise is broken."""
    notes = [event.text for event in recorded.events[: cut.events] if isinstance(event, Note)]
    done = [note for note in notes if note[0] == "done"]
    begun = len(notes) - len(done)
    tally.replays += 1
    tally.verbs[recorded.verb] += 1
    tally.acknowledged += len(done)
    tally.under_way += begun > len(done)
    write_image(recorded.events, cut, base)
    root = base / recorded.root
    content = recorded.contents[len(done)]
    if content is None and not it.Table.exists(str(root)):
        return
    allowed = [found for found in recorded.contents[len(done) : begun + 1] if found is not None]
    found = require_one_of(root, allowed)
    tally.landed += begun > len(done) and found != content
    version = it.TransactionLog.open(str(root)).snapshot().version
    if done and version < done[-1][2]:
        raise Finding(f"version {done[-1][2]} was acknowledged, and the newest is {version}")
    require_history(root)
    if live_on:
        require_life(root, found)


def run_replays(
    numbers: range, home: Path, *, live_on: bool = True, ignored: Callable[[Event], bool] = lambda _: False
) -> Tally:
    """Replay cuts of every verb in turn; what broke is in the tally."""
    tally, began_s = Tally(), time.monotonic()
    template = home / "template"
    with recording(home):  # which syncs nothing
        make_template(template)
    records: dict[tuple[str, int], Record] = {}
    names = list(RECORDED)
    for number in numbers:
        verb, seed = names[number % len(names)], number // len(names) // 16
        if (verb, seed) not in records:
            records[verb, seed] = record(verb, seed, template, home, ignored)
        cut = draw_cut(records[verb, seed], random.Random(f"cut {number}"))
        base = home / f"replay-{number}"
        try:
            replay(records[verb, seed], cut, base, tally, live_on=live_on)
        except Exception as error:  # noqa: BLE001 - a table that cannot be looked at is a finding
            tally.broken[str(number)] = f"{verb}, {cut}: {type(error).__name__}: {error}"
        shutil.rmtree(base, ignore_errors=True)
    tally.seconds = round(time.monotonic() - began_s, 1)
    return tally


def main() -> None:
    """Run replays and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replays", default="0:100", help="first:end, or how many")
    parser.add_argument("--keep", action="store_true", help=f"keep {RESULTS}/power.json")
    arguments = parser.parse_args()
    first, _, end = arguments.replays.rpartition(":")
    with tempfile.TemporaryDirectory(prefix="power-") as home:
        tally = run_replays(range(int(first or 0), int(end)), Path(home))
    text = json.dumps({**tally.to_json(), "commit": current_commit()}, indent=1)
    print(text)
    if arguments.keep:
        (RESULTS / "power.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
