"""Stories that other systems published, told again here: `python -m harness.stories --keep`, from `tests`.

Each is the history of its source, step by step, and says what came of it here: how many writes were asked
for and acknowledged, and how many rows are lost, doubled or there though nobody was told so.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

import indextables as it
from harness.nursery import Nursery, note
from indextables.errors import AttemptsExhaustedError, StorageError
from indextables.log.transaction_log import TransactionLog
from indextables.storage.store import open_store
from indextables.table import Table
from simulation.history import run_plan
from simulation.seams import deterministic
from simulation.stories import ten_writers
from support.commit import current_commit
from support.faults import Around

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "reliability" / "stories.json"
SCHEMA = pa.schema([("id", pa.string()), ("x", pa.int64())])
LOG = "_transaction_log/"

T = TypeVar("T")


@dataclass
class Figures:
    """What came of one story."""

    writes: int = 0
    acknowledged: int = 0
    refused: int = 0
    """Told that nothing was committed."""
    lost: int = 0
    doubled: int = 0
    unexpected: int = 0
    """Rows that are there though their writer was refused, or that a statement should have left."""
    seconds: float = 0.0

    def compare(self, expected: Counter[str], table: Table) -> None:
        """Count what differs from what the writers were told."""
        rows = Counter(table.scan(columns=["id"]).read_all()["id"].to_pylist())
        self.lost += sum((expected - rows).values())
        self.doubled += sum(times - 1 for times in rows.values() if times > 1)
        self.unexpected += len(rows.keys() - expected.keys())

    @property
    def sound(self) -> bool:
        """Whether everything is as it was told."""
        return not (self.lost or self.doubled or self.unexpected)


@dataclass(frozen=True)
class Story:
    """A history with its source."""

    source: str
    url: str
    there: str
    """What happened in the other system."""
    tell: Callable[[], Figures]
    """What happens here."""


def rows(*ids: str, x: int = 0) -> pa.Table:
    """Rows with these ids."""
    return pa.table({"id": list(ids), "x": [x] * len(ids)}, SCHEMA)


# delta-rs 3736


def append_many(job: dict[str, Any]) -> None:
    """What one process of ten does: append one row after the other, and say how each ended."""
    table = it.Table.open(job["root"])
    for number in range(job["appends"]):
        name = f"{job['name']}-{number}"
        try:
            table.append(rows(name))
        except AttemptsExhaustedError:
            note(job["notes"], {"refused": name})
        else:
            note(job["notes"], {"done": name})


def ten_processes(appends: int = 200) -> Figures:
    """Ten processes append at once to a table on a local disk, with the options that a table has by itself."""
    figures = Figures(writes=10 * appends)
    with tempfile.TemporaryDirectory(prefix="stories-") as home, Nursery() as nursery:
        root = str(Path(home) / "t")
        it.Table.create(root, SCHEMA)
        jobs = [
            {
                "work": "harness.stories:append_many", "root": root, "name": f"w{at}", "appends": appends,
                "notes": str(Path(home) / f"{at}.notes"),
            }
            for at in range(10)
        ]  # fmt: skip
        ends = nursery.run(jobs)
        assert ends == [0] * 10, ends
        told = [json.loads(line) for job in jobs for line in Path(job["notes"]).read_text().splitlines()]
        done = Counter(item["done"] for item in told if "done" in item)
        figures.acknowledged, figures.refused = len(done), sum("refused" in item for item in told)
        figures.compare(done, it.Table.open(root))
    return figures


def ten_simulated(appends: int = 50) -> Figures:
    """Ten writers append at once, one store operation at a time; every step is checked by the oracle."""
    with deterministic() as chance:
        outcome = run_plan(ten_writers(0, appends), chance)
    told = outcome.verbs
    acknowledged = told.get("append acknowledged", 0)
    return Figures(
        writes=10 * appends,
        acknowledged=acknowledged,
        refused=told.get("append failed", 0),
        lost=len(outcome.violations),
    )


# iceberg-python 3320


class Interrupted(Around):
    """A store in which somebody else goes on right before the first put of a version."""

    def __init__(self, inner: Any, meanwhile: Callable[[], object]) -> None:
        super().__init__(inner)
        self.meanwhile: Callable[[], object] | None = meanwhile

    def _do(self, operation: str, path: str, call: Callable[[], T]) -> T:
        if operation == "put_if_absent" and path.startswith(LOG) and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return call()


def _through(store: Any) -> Table:
    log = TransactionLog.open(store.uri, store=store)
    return Table(log, log.snapshot(max_staleness_s=0))


def retried_delete() -> Figures:
    """A DELETE is planned; before it commits, others append rows that match; it is tried again."""
    figures = Figures()
    for appends in range(1, 6):
        for seen in range(1, 4):
            store = open_store(f"memory://retried-delete-{appends}-{seen}-{time.monotonic_ns()}/t")
            log = TransactionLog.open(store.uri, store=store)
            log.initialize(SCHEMA)
            table = Table(log, log.snapshot())
            table.append(rows("stays", x=2))
            for number in range(seen):
                table.append(rows(f"seen{number}", x=1))
            later = [f"later{number}" for number in range(appends)]
            other = _through(store)

            def meanwhile(other: Table = other, later: list[str] = later) -> None:
                for name in later:
                    other.append(rows(name, x=1))

            _through(Interrupted(store, meanwhile)).delete("x = 1")
            figures.writes += 1
            figures.acknowledged += 1
            expected = Counter(["stays", *later])
            figures.compare(expected, _through(store))
    return figures


# icechunk, design 017


class LostReply(Around):
    """A store whose first put of a version takes effect, and whose answer does not arrive."""

    def __init__(self, inner: Any, way: str, meanwhile: Callable[[], object] | None) -> None:
        super().__init__(inner)
        self.way, self.meanwhile, self.is_lost = way, meanwhile, False

    def _do(self, operation: str, path: str, call: Callable[[], T]) -> T:
        if operation != "put_if_absent" or not path.startswith(LOG) or self.is_lost:
            return call()
        self.is_lost = True
        call()
        if self.meanwhile is not None:
            self.meanwhile()
        if self.way == "sent again":
            # The layer below repeats the request, and the condition fails against what it has just written.
            return call()
        raise StorageError(f"no answer to {operation} {path}", uri=self.uri, path=path)


def lost_reply() -> Figures:
    """The reply to a conditional put is lost, or the put is sent again and finds itself; others write or do not."""
    figures = Figures()
    for way in ("sent again", "no answer"):
        for others in range(4):
            store = open_store(f"memory://lost-reply-{way[0]}-{others}-{time.monotonic_ns()}/t")
            log = TransactionLog.open(store.uri, store=store)
            log.initialize(SCHEMA)
            other, expected = _through(store), Counter(["mine", "mine too"])

            def meanwhile(
                other: Table = other, others: int = others, expected: Counter[str] = expected
            ) -> None:
                for number in range(others):
                    other.append(rows(f"theirs{number}"))
                    expected[f"theirs{number}"] += 1

            table = _through(LostReply(store, way, meanwhile))
            for name in ("mine", "mine too"):
                table.append(rows(name))
                figures.writes += 1
                figures.acknowledged += 1
            figures.compare(expected, _through(store))
    return figures


def stories(appends: int = 200) -> Iterator[tuple[str, Story]]:
    """Every story by name, the first with so many appends by each of ten writers."""
    delta_rs = "https://github.com/delta-io/delta-rs/issues/3736"
    yield (
        "ten processes",
        Story("delta-rs 3736", delta_rs, "142 of 2,000 commits dropped", lambda: ten_processes(appends)),
    )
    yield (
        "ten simulated writers",
        Story(
            "delta-rs 3736", delta_rs, "142 of 2,000 commits dropped", lambda: ten_simulated(min(appends, 50))
        ),
    )
    yield (
        "retried delete beside appends",
        Story(
            "iceberg-python 3320",
            "https://github.com/apache/iceberg-python/pull/3320",
            "the delete takes rows that it never saw",
            retried_delete,
        ),
    )
    yield (
        "lost reply to a conditional put",
        Story(
            "icechunk, design 017",
            "https://github.com/earth-mover/icechunk/blob/main/design-docs/017-conditional-put-lost-response.md",
            "a conflict that never happened",
            lost_reply,
        ),
    )


def main() -> None:
    """Tell every story and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--appends", type=int, default=200, help="of each of the ten writers")
    parser.add_argument("--keep", action="store_true", help=f"write {RESULTS}")
    parser.add_argument("names", nargs="*", help="the stories to tell; all, if none is named")
    arguments = parser.parse_args()
    kept = json.loads(RESULTS.read_text())["stories"] if arguments.names else {}
    told: dict[str, Any] = {"appends": arguments.appends, "stories": kept}
    for name, story in stories(arguments.appends):
        if arguments.names and name not in arguments.names:
            continue
        began = time.monotonic()
        figures = story.tell()
        figures.seconds = round(time.monotonic() - began, 1)
        told["stories"][name] = {
            "source": story.source, "url": story.url, "there": story.there, **asdict(figures),
            "commit": current_commit(),
        }  # fmt: skip
        print(name, json.dumps(told["stories"][name]), flush=True)
    if arguments.keep:
        RESULTS.write_text(json.dumps(told, indent=2) + "\n")
    raise SystemExit(
        any(item["lost"] + item["doubled"] + item["unexpected"] for item in told["stories"].values())
    )


if __name__ == "__main__":
    main()
