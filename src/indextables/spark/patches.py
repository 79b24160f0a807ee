"""The methods of Spark's own classes that `connect` wraps so that they know IndexTables.

Each wrapper checks whether a call is meant for us: the format is ours, the statement is
ours, or the view is over one of our tables. Every other call is passed to Spark with
exactly the arguments it came with.
"""

# ruff: noqa: A002, N803, SLF001
# because these are Spark's own signatures
from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

from indextables.spark.options import is_connect, is_ours
from indextables.spark.requests import (
    read_request,
    reader_source,
    session_of,
    write_request,
    writer_source,
    written_frame,
)
from indextables.spark.versions import frame_class, writer_mode

_lock = threading.Lock()

Method = Callable[..., Any]


def install(spark: Any) -> None:
    """Wrap the classes of this session's readers and writers; done once per class."""
    if is_connect(spark):
        from pyspark.sql.connect.readwriter import DataFrameReader, DataFrameWriter
        from pyspark.sql.connect.session import SparkSession
    else:
        from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
        from pyspark.sql.session import SparkSession

    with _lock:
        _wrap(DataFrameReader, "load", _load)
        _wrap(DataFrameWriter, "save", _save)
        _wrap(DataFrameWriter, "insertInto", _insert_into)
        _wrap(SparkSession, "sql", _sql)
        if not is_connect(spark):
            _wrap(frame_class(), "explain", _explain)


def _wrap(owner: type, name: str, door: Callable[[Method], Method]) -> None:
    original = owner.__dict__[name]
    if hasattr(original, "_indextables"):
        return
    wrapped = functools.wraps(original)(door(original))
    wrapped._indextables = original  # type: ignore[attr-defined]
    setattr(owner, name, wrapped)


def _load(original: Method) -> Method:
    def load(self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:
        if not is_ours(format or reader_source(self)):
            return original(self, path, format, schema, **options)
        from indextables.spark.load import load_table

        if schema is not None:
            self.schema(schema)
        return load_table(session_of(self), read_request(self.options(**options), path))

    return load


def _save(original: Method) -> Method:
    def save(
        self: Any,
        path: Any = None,
        format: Any = None,
        mode: Any = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        if not is_ours(format or writer_source(self)):
            original(self, path, format, mode, partitionBy, **options)
            return
        from indextables.spark.write.save import save_frame

        self.mode(mode).options(**options)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        save_frame(session_of(self), written_frame(self), write_request(self, path))

    return save


def _insert_into(original: Method) -> Method:
    def insertInto(self: Any, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N802
        from indextables.spark.read.views import table_of_view
        from indextables.spark.write.save import insert_frame

        spark = session_of(self)
        table = table_of_view(spark, tableName)
        if table is None:
            original(self, tableName, overwrite)
            return
        if overwrite is None:
            state = writer_mode(self._jwrite) if hasattr(self, "_jwrite") else self._write.mode
            overwrite = str(state).lower() == "overwrite"
        insert_frame(spark, written_frame(self), table, overwrite=overwrite)

    return insertInto


def _sql(original: Method) -> Method:
    def sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:
        from indextables.spark.sql.statements import run_statement

        return run_statement(self, functools.partial(original, self), sqlQuery, args, kwargs)

    return sql


def _explain(original: Method) -> Method:
    def explain(self: Any, extended: Any = None, mode: Any = None) -> None:
        from indextables.spark.read.scans import explained

        original(self, extended, mode)
        shown = explained(self)
        if shown:
            sys.stdout.write(f"{shown}\n")

    return explain
