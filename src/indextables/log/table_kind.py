"""What kind of table a directory holds, judged by its log directory without opening files.

This one function is used wherever no log of ours is found: for the text of the error, to
decide whether a table may be created there, and by the verbs that read Delta tables as
well as ours. An IndexTables table of the JVM system has the same log directory; only its
metadata tells it apart (`require_parquet`).
"""

from __future__ import annotations

import re
from enum import Enum
from itertools import islice
from pathlib import Path

from indextables.errors import NotATableError, NotFoundError, TableError
from indextables.log.delta.paths import LOG_DIR as DELTA_LOG
from indextables.log.delta.paths import parse_log_name
from indextables.log.format.dialect import NATIVE
from indextables.storage.store import Store, open_store
from indextables.storage.urls import parse_url

_ICEBERG = "metadata"
_HUDI = ".hoodie"
_LOOKED_AT = 50
_AT_VERSION = re.compile(r"(?P<path>.+)@v(?P<version>\d+)")
_DATA = (".parquet", ".split", ".csv", ".json", ".orc", ".avro")


class TableKind(Enum):
    """What a directory holds."""

    NATIVE = "an IndexTables table"
    DELTA = "a Delta table"
    ICEBERG = "an Iceberg table"
    HUDI = "a Hudi table"
    FILE = "a file"
    LOG = "the log of a table"
    FILES = "data files without a table"
    OTHER = "files that are not a table"
    NOTHING = "nothing"


_FOREIGN = frozenset({TableKind.DELTA, TableKind.ICEBERG, TableKind.HUDI})
_ADVICE = {
    TableKind.NATIVE: "It is an IndexTables table: open it with Table.open.",
    TableKind.DELTA: (
        "It is a Delta table, which is read and never written: use DeltaTable.open in Python, or inspect, "
        "files, history, count, search and sql on the command line."
    ),
    TableKind.ICEBERG: "It is an Iceberg table, which is not read here.",
    TableKind.HUDI: "It is a Hudi table, which is not read here.",
    TableKind.FILE: "It is a file: give the directory that holds the table.",
    TableKind.LOG: "It is the log directory of a table: give the directory above it.",
    TableKind.FILES: "It holds data files without a transaction log: read them and append them to a table.",
    TableKind.OTHER: "It holds files, but none of a table. Check the path.",
    TableKind.NOTHING: "There is nothing there. Check the path, or create the table first.",
}


def recognise(store: Store) -> TableKind:
    """The kind of table at the root of a store; ours, if there is also one of another system."""
    if any(NATIVE.parse_name(_name(meta.path), meta) for meta in store.list_level(NATIVE.log_dir)):
        return TableKind.NATIVE
    if any(parse_log_name(_name(meta.path)) for meta in store.list_level(DELTA_LOG)):
        return TableKind.DELTA
    if any(meta.path.endswith(".metadata.json") for meta in store.list_level(_ICEBERG)):
        return TableKind.ICEBERG
    if store.list_level(_HUDI):
        return TableKind.HUDI
    some = [meta.path for meta in islice(store.list(), _LOOKED_AT)]
    if not some:
        return TableKind.FILE if _is_file(store) else TableKind.NOTHING
    if store.uri.rpartition("/")[2] in {NATIVE.log_dir, DELTA_LOG}:
        return TableKind.LOG
    return TableKind.FILES if any(path.endswith(_DATA) for path in some) else TableKind.OTHER


def not_a_table(store: Store, log_dir: str) -> NotATableError:
    """The error for a directory that has no version of the expected log."""
    kind = recognise(store)
    expected = TableKind.DELTA if log_dir == DELTA_LOG else TableKind.NATIVE
    # Delta tables are never created here, so for them only the path can be wrong.
    absent = kind is TableKind.NOTHING and expected is TableKind.DELTA
    advice = "There is nothing there. Check the path." if absent else _ADVICE[kind]
    if kind is TableKind.NOTHING and _is_empty_directory(store):
        advice = advice.replace("There is nothing there.", "The directory is empty.")
    older = _AT_VERSION.fullmatch(store.uri)
    if kind is TableKind.NOTHING and older is not None:
        # Delta Lake accepts a version at the end of a path; here a path is used as it is written.
        advice = (
            f"For version {older['version']} of {older['path']} leave @v{older['version']} out and say "
            f"version={older['version']} in Python, VERSION AS OF {older['version']} in SQL, the option "
            f"versionAsOf in Spark or --version {older['version']} in a shell."
        )
    return NotATableError(
        f"{store.uri} is not {expected.value}. {advice}", uri=store.uri, kind=kind, expected=expected
    )


def refuse_foreign(store: Store) -> None:
    """Refuse to create or write a table where one of another system is."""
    kind = recognise(store)
    if kind in _FOREIGN:
        raise TableError(
            f"{store.uri} is {kind.value}, which IndexTables does not write to. Choose another path.",
            uri=store.uri, kind=kind,
        )  # fmt: skip


def read_only(uri: str, statement: str) -> TableError:
    """The error for a statement or a verb that would change a Delta table."""
    return TableError(
        f"{statement} is not possible: {uri} is a Delta table, which IndexTables reads and never writes. Run "
        "it with the engine that writes the table, or copy the rows into a table of IndexTables.",
        uri=uri, kind=TableKind.DELTA,
    )  # fmt: skip


def _is_file(store: Store) -> bool:
    """Whether the root, which lists no files, is itself an object."""
    place, name = parse_url(store.uri).parent()
    if not name:
        return False
    try:
        open_store(place.uri, store.spec().options).head(name)
    except NotFoundError:
        return False
    return True


def _is_empty_directory(store: Store) -> bool:
    """Whether the root, which lists no files, is a local directory; stores have none without files."""
    place = parse_url(store.uri)
    return place.kind == "file" and Path(place.path).is_dir()


def _name(path: str) -> str:
    return path.rpartition("/")[2]
