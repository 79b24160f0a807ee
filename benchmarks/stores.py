"""How many round trips a verb makes to a far object store, one after the other.

Each verb begins with nothing cached. `docs/stores.md` has the numbers of `TRIPS`, and a test keeps them.
`python -m benchmarks.stores` measures with 30 ms a request and 50 MB/s.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.far_store import FarStore, Request, sequential_trips
from benchmarks.log_lines import RARE, log_lines

SPLITS = 50
ROWS = 200
ORPHANS = 1000


LATENCY_MS = 30

TRIPS = {
    "open, with a checkpoint": 2,
    "open and count, with a checkpoint": 2,
    "open and count 41 commits": 4,
    "append on a handle": 3,
    "open and append": 6,
    "count a rare word in 50 splits": 4,
    "rows of a rare word in 50 splits": 6,
    "scan of 50 splits": 6,
    "facet of 50 splits": 11,
    "top ten of one split": 6,
    "delete one row of 50 splits": 8,
    "purge 1,000 orphans": 13,
    "merge 20 splits": 8,
}
"""How many requests each verb may make one after the other."""


@dataclass(frozen=True, slots=True)
class Trips:
    """What one verb requested, in the order in which the requests began."""

    name: str
    requests: tuple[Request, ...]
    seconds: float

    @property
    def sequential(self) -> int:
        """How many of the requests were made one after the other."""
        return sequential_trips(self.requests)

    @property
    def kilobytes(self) -> int:
        """What was sent and received."""
        return sum(request.size_bytes for request in self.requests) // 1000


class Tables:
    """The tables of one far store, and fresh handles on them."""

    def __init__(self, store: FarStore) -> None:
        self.store = store

    def open(self, name: str, **options: str) -> Any:
        """A handle that has read nothing before, in a process that has read nothing before."""
        import indextables as it
        from indextables.index.read.cache import MEMORY
        from indextables.split.open_splits import forget_splits
        from indextables.storage.stores.remote import forget_objects

        forget_splits()
        forget_objects()
        MEMORY.clear()
        return it.Table.open(self.store.uri(name), options={**self.store.options, **options})

    def prepare(self) -> None:
        """Fifty small splits with a checkpoint, one larger split, a log without a checkpoint, and orphans."""
        import indextables as it
        from indextables.runtime import in_threads
        from indextables.storage.store import open_store

        batches = list(log_lines(SPLITS * ROWS, batch_rows=ROWS))
        for name, count, options in (
            ("many", SPLITS, {"checkpoint.interval": str(SPLITS)}),
            ("tail", SPLITS - 9, {"checkpoint.enabled": "false"}),
            ("twenty", 20, {}),
            ("fifty", SPLITS, {}),
        ):
            table = it.Table.create(
                self.store.uri(name), batches[0].schema,
                options={**self.store.options, **options, "indexing.typemap.message": "text"},
            )  # fmt: skip
            for batch in batches[:count]:
                table.append(batch)
        table = it.Table.create(
            self.store.uri("one"), batches[0].schema,
            options={**self.store.options, "indexing.typemap.message": "text"},
        )  # fmt: skip
        table.append(iter(log_lines(SPLITS * ROWS)))
        table.checkpoint()
        orphans = open_store(self.store.uri("one"), self.store.options)
        names = [f"part-00000000-0000-4000-8000-{number:012d}.split" for number in range(ORPHANS)]
        list(in_threads(lambda name: orphans.put(name, b""), names, 32))


def verbs(tables: Tables) -> Iterator[tuple[str, Callable[[], Callable[[], object]]]]:
    """Name, and what prepares the verb and returns it."""
    batch = next(iter(log_lines(ROWS, seed=11, batch_rows=ROWS)))

    def fresh(work: Callable[[], object]) -> Callable[[], Callable[[], object]]:
        def ready() -> Callable[[], object]:
            tables.open("one")
            return work

        return ready

    yield "open, with a checkpoint", fresh(lambda: tables.open("one").version)
    yield "open and count, with a checkpoint", fresh(lambda: tables.open("one").count())
    yield "open and count 41 commits", fresh(lambda: tables.open("tail").count())
    yield "append on a handle", lambda: (lambda table: lambda: table.append(batch))(tables.open("many"))
    yield "open and append", fresh(lambda: tables.open("many").append(batch))
    yield "count a rare word in 50 splits", fresh(lambda: tables.open("fifty").count(query=RARE))
    yield "rows of a rare word in 50 splits", fresh(lambda: tables.open("fifty").search(RARE).read_all())
    yield "scan of 50 splits", fresh(lambda: tables.open("fifty").scan().read_all())
    yield "facet of 50 splits", fresh(lambda: tables.open("fifty").facets("status", query="user"))
    yield (
        "top ten of one split",
        fresh(lambda: tables.open("one").search("user", limit=10, score=True).read_all()),
    )
    yield "delete one row of 50 splits", fresh(lambda: tables.open("fifty").delete("id = 777"))
    unchecked = {"purge.retentionCheckEnabled": "false"}
    yield (
        "purge 1,000 orphans",
        fresh(lambda: tables.open("one", **unchecked).purge(older_than_hours=0)),
    )
    yield "merge 20 splits", fresh(lambda: tables.open("twenty").merge_splits())


def measure(tables: Tables, only: str = "") -> Iterator[Trips]:
    """Run each verb once, and count."""
    for name, prepare in verbs(tables):
        if only not in name:
            continue
        verb = prepare()
        tables.store.requests()
        began = time.perf_counter()
        verb()
        seconds = time.perf_counter() - began
        requests = sorted(tables.store.requests(), key=lambda request: request.began_s)
        yield Trips(name, tuple(requests), seconds)


def main(only: str = "", every_request: str = "") -> None:
    """Print a row for each verb whose name contains `only`; with a second word, its requests as well."""
    store = FarStore()
    tables = Tables(store)
    tables.prepare()
    store.set_latency(LATENCY_MS)
    print("| verb | requests in turn | at most | requests | KB | seconds |\n|---|---:|---:|---:|---:|---:|")
    for trips in measure(tables, only):
        print(
            f"| {trips.name} | {trips.sequential} | {TRIPS[trips.name]} | {len(trips.requests)} "
            f"| {trips.kilobytes} | {trips.seconds:.2f} |"
        )
        for request in trips.requests if every_request else ():
            print(
                f"{request.began_s:.3f} {request.ended_s:.3f} {request.kind} {request.key} {request.size_bytes}"
            )
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
