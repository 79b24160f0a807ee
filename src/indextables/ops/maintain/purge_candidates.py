"""Which files PURGE looks at: a listing of the table, an inventory that somebody made, or what the log names.

A listing of a bucket with millions of objects takes minutes and costs money; stores make inventories of
their own, and the log itself names most of what can go. Whatever the source, what may be deleted is decided
by the same rule (`plan_purge`). An inventory may be old: a file that it lacks stays, and one that is gone by
now is deleted twice. It must show the log of this table, which proves that it was not cut down to splits:
without the logs of tables below this one, their splits would look like orphans.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import pyarrow as pa

from indextables.errors import NotFoundError, SchemaError, StorageError
from indextables.lazy import pc, pq
from indextables.log.format.dialect import NATIVE
from indextables.log.history import from_listings
from indextables.log.purge_mark import files_of_vectors
from indextables.log.segment import list_log
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction, RemoveAction
from indextables.model.names import no_column
from indextables.runtime import in_threads
from indextables.storage.store import ObjectMeta, Store, open_store, requests_at_once, resolve

_SIZE, _TIME = ("size", "length"), ("modification_time", "modificationTime", "last_modified")
_AT_ONCE = 64

Inventory: TypeAlias = str | os.PathLike[str] | pa.Table | pa.RecordBatchReader
"""The path of a Parquet file, or its rows."""


def inventory_files(root: Store, inventory: Inventory) -> Iterator[ObjectMeta]:
    """The files of an inventory that lie below the table, with paths relative to it.

    An inventory is rows, or the path of a Parquet file of them: `path`, `size` (or `length`) in bytes, and
    `modification_time` (or `modificationTime`, `last_modified`), a timestamp or milliseconds since 1970.
    """
    rows = _rows(root, inventory)
    paths = _column(rows.schema, ("path",), inventory)
    sizes, times = _column(rows.schema, _SIZE, inventory), _column(rows.schema, _TIME, inventory)
    shows_log = False
    for batch in rows.to_batches() if isinstance(rows, pa.Table) else rows:
        columns = (batch[paths], batch[sizes].cast(pa.int64()), _milliseconds(batch[times]))
        for path, size, modified_ms in zip(*(column.to_pylist() for column in columns), strict=True):
            inside = None if path is None or path.endswith("/") else _inside(root, path)
            if inside is None:
                continue
            shows_log = shows_log or inside.startswith(f"{NATIVE.log_dir}/")
            # A file of unknown age counts as young, which no retention lets go.
            if modified_ms is not None:
                yield ObjectMeta(inside, size or 0, modified_ms)
    if not shows_log:
        raise StorageError(
            f"the inventory has no file of {root.uri}/{NATIVE.log_dir}, so it does not list everything below "
            "the table, and splits of tables below this one could not be told from orphans. Give an "
            "inventory of all files, as addresses or relative to the table.",
            uri=root.uri,
        )


def _rows(root: Store, inventory: Inventory) -> pa.Table | pa.RecordBatchReader:
    if isinstance(inventory, (pa.Table, pa.RecordBatchReader)):
        return inventory
    address = os.fspath(inventory)
    directory, _, name = address.rpartition("/")
    data = open_store(directory or ".", dict(root.spec().options)).get(name)
    try:
        return pq.read_table(pa.BufferReader(data))
    except pa.ArrowInvalid as damaged:
        raise StorageError(
            f"{address} is no inventory: it must be a Parquet file with the columns path, size and "
            f"modification_time ({damaged}).",
            uri=address,
        ) from damaged


def _column(schema: pa.Schema, names: tuple[str, ...], inventory: Inventory) -> str:
    for name in names:
        if name in schema.names:
            return name
    named = f"the inventory {inventory}" if isinstance(inventory, str) else "the inventory"
    raise SchemaError(
        f"{no_column(schema.names, names[0], named)}. It needs path, size and modification_time.",
        column=names[0],
    )


def _milliseconds(times: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(times.type):
        # Rounded down: a file is never taken for older than it is by more than the part of a millisecond.
        return pc.cast(times, pa.timestamp("ms", times.type.tz), safe=False).cast(pa.int64())
    return times.cast(pa.int64())


def _inside(root: Store, path: str) -> str | None:
    """The path relative to the root; None for a file elsewhere."""
    store, inside = resolve(root, path, anywhere=True)
    return inside if store.uri == root.uri else None


def named_files(log: TransactionLog, needed: Iterable[str]) -> Iterator[ObjectMeta]:
    """The files that the log names, those it removed besides those it needs, as far as they exist."""
    store = log.store
    # A commit that another writer's cleanup removed meanwhile is left out of the next listing.
    named = {*needed, *from_listings(lambda: set(_of_commits(log)))}
    paths = sorted({inside for path in named if (inside := _inside(store, path)) is not None})

    def look(path: str) -> ObjectMeta | None:
        try:
            return store.head(path)
        except NotFoundError:
            return None

    return (file for file in in_threads(look, paths, requests_at_once(store)) if file is not None)


def _of_commits(log: TransactionLog) -> Iterator[str]:
    """The splits that commits added or removed, and the files of their deletion vectors."""
    commits = list(list_log(log.store, NATIVE).commits.values())
    for start in range(0, len(commits), _AT_ONCE):
        for _, actions in log.source.read_commits(commits[start : start + _AT_ONCE]):
            files = [action for action in actions if isinstance(action, (AddAction, RemoveAction))]
            yield from (file.path for file in files)
            yield from files_of_vectors(files)
