"""Which of the files named by a log really exist, found by listing directories.

One listing answers for thousands of files; one request per file would take as many round
trips. Directories with many wanted files are listed singly and concurrently; if the files
are spread over many directories, one listing of the whole table is cheaper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from indextables.ops.progress import Progress, silent, watched
from indextables.runtime import LOCAL, Runtime, Workers
from indextables.storage.store import Store, StoreSpec, open_store, resolve

SPREAD_THINLY = 20
"""Below this many files per directory, listing the whole table is cheaper."""
DISTRIBUTE_FROM = 5_000
"""From this many units of work on, it pays to use the runtime's workers."""


@dataclass(frozen=True, slots=True)
class Directories:
    """Directories of one store to be listed together."""

    store: Store | StoreSpec
    directories: tuple[str, ...]
    recursive: bool


def sizes_found(
    root: Store,
    paths: Collection[str],
    runtime: Runtime = LOCAL,
    *,
    parallelism: int | None = None,
    progress: Progress = silent,
) -> dict[str, int]:
    """The size of every file that exists, by its path in the log; missing files are absent."""
    by_place: dict[str, dict[str, list[str]]] = defaultdict(dict)
    stores: dict[str, Store] = {}
    home = root.uri
    for path in paths:
        # Nearly all paths are relative to the table, which their first characters show.
        plain = ":" not in path and not path.startswith("/")
        store, inside = (root, path) if plain else resolve(root, path)
        place = home if plain else store.uri
        stores.setdefault(place, store)
        by_place[place].setdefault(inside, []).append(path)
    found: dict[str, int] = {}
    for uri, wanted in by_place.items():
        workers = workers_for(runtime, len(wanted))
        places = list(_places(portable(stores[uri], workers), wanted, parallelism or 1))
        listings = workers.map(_list_place, places, parallelism=parallelism)
        for listing in watched(listings, progress, "Listing directories", len(places)):
            for inside, size in listing:
                for path in wanted.get(inside, ()):
                    found[path] = size
    return found


def workers_for(runtime: Runtime, pieces: int) -> Workers:
    """The runtime's workers for much work, threads of this process for little."""
    return runtime.workers if pieces >= DISTRIBUTE_FROM else LOCAL.workers


def portable(store: Store, workers: Workers) -> Store | StoreSpec:
    """A store as the workers can use it: itself for threads, a description of it for other processes."""
    return store if workers.name == LOCAL.workers.name else store.spec()


def carried(store: Store | StoreSpec) -> Store:
    """What `portable` made, as a store again; on a worker."""
    return open_store(store) if isinstance(store, StoreSpec) else store


def _places(store: Store | StoreSpec, inside: Iterable[str], parallelism: int) -> Iterable[Directories]:
    directories: dict[str, int] = defaultdict(int)
    for path in inside:
        directories[path.rpartition("/")[0]] += 1
    if len(directories) > 1 and sum(directories.values()) < SPREAD_THINLY * len(directories):
        yield Directories(store, ("",), recursive=True)
        return
    names = sorted(directories)
    width = max(1, -(-len(names) // (4 * parallelism)))
    for start in range(0, len(names), width):
        yield Directories(store, tuple(names[start : start + width]), recursive=False)


def _list_place(place: Directories) -> list[tuple[str, int]]:
    store = carried(place.store)
    if place.recursive:
        return [(meta.path, meta.size) for meta in store.list(place.directories[0])]
    return [(meta.path, meta.size) for name in place.directories for meta in store.list_level(name)]
