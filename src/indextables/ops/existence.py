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


def existing_sizes(
    root: Store,
    paths: Collection[str],
    runtime: Runtime = LOCAL,
    *,
    parallelism: int | None = None,
    progress: Progress = silent,
) -> dict[str, int]:
    """The size of every file that exists, by its path in the log; missing files are absent."""
    by_store: dict[str, dict[str, list[str]]] = defaultdict(dict)
    stores: dict[str, Store] = {}
    home = root.uri
    for path in paths:
        # Nearly all paths are relative to the table, which their first characters show.
        is_relative = ":" not in path and not path.startswith("/")
        store, inside = (root, path) if is_relative else resolve(root, path)
        store_uri = home if is_relative else store.uri
        stores.setdefault(store_uri, store)
        by_store[store_uri].setdefault(inside, []).append(path)
    sizes: dict[str, int] = {}
    for uri, paths_by_file in by_store.items():
        workers = workers_for(runtime, len(paths_by_file))
        directories = list(_directories(portable(stores[uri], workers), paths_by_file, parallelism or 1))
        listings = workers.map(_list_directories, directories, parallelism=parallelism)
        for listing in watched(listings, progress, "Listing directories", len(directories)):
            for inside, size in listing:
                for path in paths_by_file.get(inside, ()):
                    sizes[path] = size
    return sizes


def workers_for(runtime: Runtime, pieces: int) -> Workers:
    """The runtime's workers for much work, threads of this process for little."""
    return runtime.workers if pieces >= DISTRIBUTE_FROM else LOCAL.workers


def portable(store: Store, workers: Workers) -> Store | StoreSpec:
    """A store as the workers can use it: itself for threads, a description of it for other processes."""
    return store if workers.name == LOCAL.workers.name else store.spec()


def as_store(store: Store | StoreSpec) -> Store:
    """What `portable` made, as a store again; on a worker."""
    return open_store(store) if isinstance(store, StoreSpec) else store


def _directories(store: Store | StoreSpec, inside: Iterable[str], parallelism: int) -> Iterable[Directories]:
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


def _list_directories(directories: Directories) -> list[tuple[str, int]]:
    store = as_store(directories.store)
    if directories.recursive:
        return [(meta.path, meta.size) for meta in store.list(directories.directories[0])]
    return [(meta.path, meta.size) for name in directories.directories for meta in store.list_level(name)]
