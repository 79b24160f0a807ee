"""What a process does to a table before it is killed, step by step, and what each step may leave behind.

A step is announced before it begins and acknowledged when the verb has
returned. Whoever finds the process dead knows from that which content the table
may have: that after the acknowledged steps, or that after one more.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

import indextables as it
from indextables.ops.write.commit import Order, write

SCHEMA = pa.schema([("id", pa.string()), ("day", pa.string()), ("message", pa.string())])
OPTIONS = {
    "indexing.typemap.message": "text",
    "checkpoint.interval": "4",
    "transaction.retry.baseDelayMs": "5",
    "transaction.retry.maxAttempts": "100",
    "purge.retentionCheckEnabled": "false",
    "deletionVectors.foldShare": "0.6",
}
DAYS = ("1", "2")
MANY = 6000
"""Rows of which a fifth is too many for vectors inside the log."""
STEPS = 3

Content: TypeAlias = Counter[str]


def rows(writer: str, batch: int, count: int = 3) -> pa.Table:
    """Rows that no other batch has."""
    ids = [f"{writer}-{batch}-{n}" for n in range(count)]
    days = [DAYS[n % len(DAYS)] for n in range(count)]
    return pa.table({"id": ids, "day": days, "message": [f"row {name} of {writer}" for name in ids]}, SCHEMA)


def make_template(root: Path) -> None:
    """A table with some history: appends, a delete, a merge, checkpoints, and splits that nobody needs."""
    table = it.Table.create(str(root), SCHEMA, ["day"], options=OPTIONS)
    for batch in range(4):
        table.append(rows("base", batch))
    table.delete("id = 'base-0-0'")
    table.merge_splits(max_source_splits=3)
    for batch in range(4, 7):
        table.append(rows("base", batch))
    (root / "day=1").joinpath("orphan.split").write_bytes(b"left by a writer that never committed")


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a verb, and the content that it makes of the one before."""

    run: Callable[[], object]
    effect: Callable[[Content], Content]


def _same(content: Content) -> Content:
    return content


def _plus(batch: pa.Table) -> Callable[[Content], Content]:
    return lambda content: content + Counter(batch["id"].to_pylist())


def _open(root: str) -> it.Table:
    return it.Table.open(root, options=OPTIONS)


def append(root: str, name: str, _: random.Random) -> Iterator[Step]:
    """Appends, each a commit; the fourth version from the last checkpoint writes one."""
    for batch in range(STEPS + 2):
        new = rows(name, batch)
        yield Step(lambda new=new: _open(root).append(new), _plus(new))


def append_once(root: str, name: str, _: random.Random) -> Iterator[Step]:
    """Batches with a transaction, which whoever comes after the dead process writes again."""
    for batch in range(STEPS):
        new = rows(name, batch)
        txn = it.TxnAction(app_id=name, version=batch)
        log = it.TransactionLog.open(root, OPTIONS)
        yield Step(lambda new=new, txn=txn, log=log: write(log, new, Order(txn=txn)), _plus(new))


def overwrite_where(root: str, name: str, _: random.Random) -> Iterator[Step]:
    """Replace a day: the rows of the other one stay."""
    for batch in range(STEPS):
        day = DAYS[batch % len(DAYS)]
        new = rows(name, batch).filter(pa.compute.field("day") == day)

        def effect(content: Content, day: str = day, new: pa.Table = new) -> Content:
            kept = Counter({key: count for key, count in content.items() if day_of(key) != day})
            return kept + Counter(new["id"].to_pylist())

        yield Step(lambda day=day, new=new: _open(root).overwrite(new, where=f"day = '{day}'"), effect)


def day_of(key: str) -> str:
    """The day of a row by its id."""
    return DAYS[int(key.rsplit("-", 1)[1]) % len(DAYS)]


def delete(root: str, _name: str, dice: random.Random) -> Iterator[Step]:
    """Delete rows of some batches by vectors inside the log; a split with one row left is written anew."""
    for batch in dice.sample(range(7), STEPS):
        gone = f"base-{batch}-1"

        def effect(content: Content, gone: str = gone) -> Content:
            return Counter({key: count for key, count in content.items() if key != gone})

        yield Step(lambda gone=gone: _open(root).delete(f"id = '{gone}'"), effect)


def delete_many(root: str, name: str, _: random.Random) -> Iterator[Step]:
    """Delete so many rows that their vectors need a file, and write the splits that hold them anew."""
    new = rows(name, 0, MANY)
    yield Step(lambda: _open(root).append(new), _plus(new))

    def effect(content: Content) -> Content:
        return Counter(
            {key: n for key, n in content.items() if not key.startswith(name) or key[-1] not in "34"}
        )

    gone = " OR ".join(f"id LIKE '{name}-0-%{digit}'" for digit in (3, 4))
    yield Step(lambda: _open(root).delete(gone), effect)
    yield Step(lambda: _open(root).purge_rows(), _same)


def restore(root: str, _name: str, dice: random.Random) -> Iterator[Step]:
    """Go back to older versions."""
    log = it.TransactionLog.open(root, OPTIONS)
    for version in dice.sample(log.versions()[:-1], 2):
        held = Counter(it.Table.open(root, version=version).scan(columns=["id"]).read_all()["id"].to_pylist())
        yield Step(lambda version=version: _open(root).restore(version), lambda _, held=held: held)


def merge(root: str, _name: str, dice: random.Random) -> Iterator[Step]:
    """Merges of few sources at a time."""
    for _ in range(2):
        yield Step(lambda: _open(root).merge_splits(max_source_splits=dice.choice((2, 3, 9))), _same)


def checkpoint(root: str, _name: str, dice: random.Random) -> Iterator[Step]:
    """Checkpoints in every form, and the cleanup that follows them."""
    for form in dice.sample(("json", "parquet"), 2):
        few = {"checkpoint.format": form, "checkpoint.actionsPerPart": str(dice.choice((1, 3, 1000)))}
        log = it.TransactionLog.open(root, {**OPTIONS, **few})
        yield Step(log.checkpoint, _same)
        yield Step(log.cleanup, _same)


def purge(root: str, _name: str, dice: random.Random) -> Iterator[Step]:
    """Purge orphans, with and without old log files."""
    for hours in (None, dice.choice((None, 0))):
        yield Step(
            lambda hours=hours: _open(root).purge(older_than_hours=0, log_retention_hours=hours), _same
        )


def truncate(root: str, _name: str, _: random.Random) -> Iterator[Step]:
    """Forget history, write, forget again."""
    yield Step(lambda: _open(root).truncate_history(), _same)
    new = rows("after", 0)
    yield Step(lambda: _open(root).append(new), _plus(new))
    yield Step(lambda: _open(root).truncate_history(), _same)


def repair(root: str, name: str, _: random.Random) -> Iterator[Step]:
    """Repairs beside the log, which is only read."""
    log = f"{root}/_transaction_log"
    for number in range(2):
        yield Step(lambda number=number: it.repair_log(log, f"{root}/_repaired-{name}-{number}"), _same)


Verb: TypeAlias = Callable[[str, str, random.Random], Iterator[Step]]
VERBS: dict[str, Verb] = {
    "append": append,
    "append once": append_once,
    "overwrite where": overwrite_where,
    "delete": delete,
    "delete many": delete_many,
    "restore": restore,
    "merge": merge,
    "checkpoint": checkpoint,
    "purge": purge,
    "truncate": truncate,
    "repair": repair,
}
BESIDE = ("append", "merge", "checkpoint", "repair", "append once")
"""Verbs that may be killed beside a writer that goes on: whatever they do, its rows stay."""


def effects(root: str, verb: str, name: str, seed: Any) -> list[Callable[[Content], Content]]:
    """What the steps of a verb do to the content, without doing it."""
    return [step.effect for step in VERBS[verb](root, name, random.Random(seed))]
