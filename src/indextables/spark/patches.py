"""The methods of Spark's own classes that `connect` wraps to know IndexTables, and `disconnect` puts back.

Each wrapper checks whether a call is meant for us: the format is ours, the statement is
ours, or the view is over one of our tables. Every other call is passed to Spark with
exactly the arguments it came with.
"""

# ruff: noqa: A002, N803
# because these are Spark's own signatures
from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

from indextables.spark import errors
from indextables.spark.options import is_connect, is_ours
from indextables.spark.requests import (
    connect_write_request,
    read_request,
    reader_source,
    session_of,
    written_frame,
)
from indextables.spark.versions import frame_class, writer_mode

_lock = threading.Lock()

Method = Callable[..., Any]
Patch = tuple[Any, str, Callable[[Method], Method]]
"""A class or module, the name of a function in it, and what makes our wrapper of that function."""

_ORIGINAL = "_indextables"
"""The attribute of a wrapper that holds Spark's own method."""


def install(spark: Any) -> None:
    """Wrap the methods for this session's kind of classes; done once per class."""
    _install([*_translations(is_connect(spark)), *_methods(spark)])


def install_translation() -> None:
    """Let only the errors of the JVM become ours."""
    _install(_translations(connect=False))


def _install(patches: list[Patch]) -> None:
    with _lock:
        for owner, name, door in patches:
            current = owner.__dict__[name]
            if hasattr(current, _ORIGINAL):
                continue
            wrapped = functools.wraps(current)(door(current))
            setattr(wrapped, _ORIGINAL, current)
            setattr(owner, name, wrapped)


def uninstall(spark: Any) -> None:
    """Put the methods back for this session's kind of classes.

    A method that somebody else has wrapped since stays as it is.
    """
    with _lock:
        for owner, name, _ in [*_translations(is_connect(spark)), *_methods(spark)]:
            current = owner.__dict__[name]
            # A wrapper made with functools.wraps has our mark too, but wraps another function.
            if getattr(current, _ORIGINAL, None) is getattr(current, "__wrapped__", current):
                setattr(owner, name, current.__wrapped__)


def _methods(spark: Any) -> list[Patch]:
    if is_connect(spark):
        from pyspark.sql.connect.readwriter import DataFrameReader, DataFrameWriter
        from pyspark.sql.connect.session import SparkSession
    else:
        from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
        from pyspark.sql.session import SparkSession

    patches: list[Patch] = [
        (DataFrameReader, "load", _load),
        (DataFrameWriter, "insertInto", _insert_into),
        (SparkSession, "sql", _sql),
    ]
    # What a session with a JVM saves, the data source takes; what it shows, it shows here.
    own: Patch = (
        (DataFrameWriter, "save", _save) if is_connect(spark) else (frame_class(), "explain", _explain)
    )
    return [*patches, own]


def _translations(connect: bool) -> list[Patch]:
    """The function in which PySpark makes Python exceptions of those that the JVM or a server reports."""
    if connect:
        from pyspark.sql.connect.client import core

        return [(core, "convert_exception", errors.converting_of_server)]
    from pyspark.errors.exceptions import captured

    return [(captured, "convert_exception", errors.converting)]


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
        if not is_ours(format or self._write.source):
            original(self, path, format, mode, partitionBy, **options)
            return
        from indextables.spark.write.save import save_frame

        self.mode(mode).options(**options)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        save_frame(session_of(self), written_frame(self), connect_write_request(self, path))

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
