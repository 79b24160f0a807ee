"""Which of the files named by a log really exist, found by listing directories.

One listing answers for thousands of files; one request per file would take as many round
trips. Directories with many wanted files are listed singly and concurrently; if the files
are spread over many directories, one listing of the whole table is cheaper.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from indextables.ops.progress import Progress, silent, watched
from indextables.runtime import LOCAL, Runtime, Workers
from indextables.storage.store import ObjectMeta, Store, StoreSpec, open_store, resolve

SPREAD_THINLY = 20
"""Below this many files per directory, listing the whole table is cheaper."""
DISTRIBUTE_FROM = 5_000
"""From this many units of work on, it pays to use the runtime's workers."""


_ABSENT = -1
_CHUNK_FILES = 10_000
_SEPARATOR = "\0"


@dataclass(frozen=True, slots=True)
class Directories:
    """Directories of one store to be listed together."""

    store: Store | StoreSpec
    directories: tuple[str, ...]
    recursive: bool


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """Paths and sizes of listed files in columns, which take a third of the memory of a tuple for each."""

    chunks: tuple[tuple[str, array[int]], ...]
    """Paths joined by a separator, with their sizes."""

    @classmethod
    def of(cls, files: Iterable[ObjectMeta]) -> ListedFiles:
        """The columns of a listing."""
        chunks = []
        # No split is named with the separator.
        iterator = (meta for meta in files if _SEPARATOR not in meta.path)
        while some := list(islice(iterator, _CHUNK_FILES)):
            paths = _SEPARATOR.join(meta.path for meta in some)
            chunks.append((paths, array("q", (meta.size for meta in some))))
        return cls(tuple(chunks))

    def files(self) -> Iterator[tuple[str, int]]:
        """Every file with its size."""
        for paths, sizes in self.chunks:
            yield from zip(paths.split(_SEPARATOR), sizes, strict=True)


def existing_sizes(
    root: Store,
    paths: Iterable[str],
    runtime: Runtime = LOCAL,
    *,
    parallelism: int | None = None,
    progress: Progress = silent,
) -> dict[str, int]:
    """The size of every file that exists, by its path in the log; missing files are absent."""
    sizes: dict[str, int] = {}
    # Nearly all paths are relative to the table, which their first characters show. These are looked up in
    # `sizes` itself, where a million of them take the least memory; only the others have an entry here.
    addressed: dict[str, dict[str, list[str]]] = {root.uri: {}}
    stores: dict[str, Store] = {root.uri: root}
    for path in paths:
        if ":" not in path and not path.startswith("/"):
            sizes[path] = _ABSENT
        else:
            store, inside = resolve(root, path)
            stores.setdefault(store.uri, store)
            addressed.setdefault(store.uri, {}).setdefault(inside, []).append(path)
    num_relative = len(sizes)
    for uri, paths_by_file in addressed.items():
        at_home = uri == root.uri
        num_files = len(paths_by_file) + (num_relative if at_home else 0)
        if not num_files:
            continue
        workers = workers_for(runtime, num_files)
        files = chain(islice(sizes, num_relative), paths_by_file) if at_home else paths_by_file
        directories = list(_directories(portable(stores[uri], workers), files, parallelism or 1))
        listings = workers.map(_list_directories, directories, parallelism=parallelism)
        for listing in watched(listings, progress, "Listing directories", len(directories)):
            for inside, size in listing.files():
                if at_home and inside in sizes:
                    sizes[inside] = size
                for path in paths_by_file.get(inside, ()):
                    sizes[path] = size
    return {path: size for path, size in sizes.items() if size != _ABSENT}


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


def _list_directories(directories: Directories) -> ListedFiles:
    store = as_store(directories.store)
    if directories.recursive:
        return ListedFiles.of(store.list(directories.directories[0]))
    return ListedFiles.of(chain.from_iterable(store.list_level(name) for name in directories.directories))
