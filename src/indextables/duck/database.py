"""DuckDB for local Parquet files: one database per process, and how SQL names a file."""

from __future__ import annotations

import os
import tempfile
import threading
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from indextables.lazy import duckdb
from indextables.model.names import quoted_text
from indextables.runtime import default_parallelism

ROW_NUMBER = "file_row_number"
"""The column in which DuckDB returns the number of a row in its file."""
_PATTERNS = "*?["

_databases: dict[int, Any] = {}
_lock = threading.Lock()


def connect(**settings: str | int) -> Any:
    """A new database in memory, with some of DuckDB's settings.

    What does not fit goes to a directory of its own below the system's temporary files, which DuckDB removes
    again. By default it would be `.tmp` in the caller's working directory.
    """
    spilled = Path(tempfile.gettempdir(), f"indextables-{uuid.uuid4().hex}")
    connection = duckdb.connect(config={"temp_directory": str(spilled)})
    for name, value in settings.items():
        # One after the other: once access to files is refused, the directory could not be set.
        connection.execute(f"SET {name} = {quoted_text(str(value))}")
    return connection


def _cursor() -> Any:
    """A connection of its own to the database of this process.

    A forked child makes its own: the threads of its parent's are not there. It must not end that one either.
    """
    with _lock:
        database = _databases.get(os.getpid())
        if database is None:
            database = connect(threads=default_parallelism())
            # What was read of a file would be kept, up to most of the memory; early versions keep nothing.
            with suppress(duckdb.CatalogException):
                database.execute("SET enable_external_file_cache = false")
            _databases[os.getpid()] = database
        return database.cursor()


class DuckError(Exception):
    """DuckDB did not answer; this does not mean that the file is damaged."""


def run(query: str, *values: object) -> pa.Table:
    """The result of a query, with values for its parameters."""
    try:
        with _cursor() as connection:
            rows: pa.Table = connection.sql(query, params=values).to_arrow_table()
            return rows
    except duckdb.Error as failed:
        raise DuckError(str(failed)) from failed


def can_name(path: str) -> bool:
    """Whether SQL can name this file: a backslash cannot be escaped next to pattern characters."""
    return "\\" not in path or not any(sign in path for sign in _PATTERNS)


def scan(*paths: str) -> str:
    """The rows of Parquet files with the same columns, with their numbers, as a table of a query."""
    files = ", ".join(
        quoted_text("".join(f"[{sign}]" if sign in _PATTERNS else sign for sign in path)) for path in paths
    )
    return f"read_parquet([{files}], {ROW_NUMBER} = true, hive_partitioning = false)"


def quoted(name: str) -> str:
    """The name of a column."""
    return '"' + name.replace('"', '""') + '"'
