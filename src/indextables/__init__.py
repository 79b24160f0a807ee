"""ACID tables with full-text search for PySpark.

The public names are loaded on first use: importing one part on an executor
does not load the others, and `import indextables` alone loads none of them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from indextables.lazy import load as _load

if TYPE_CHECKING:
    from indextables import delta as delta
    from indextables.companion.handle import companion as companion
    from indextables.delta import DeltaTable as DeltaTable
    from indextables.errors import Error as Error
    from indextables.index.query.syntax import plain_query as plain_query
    from indextables.log.transaction_log import TransactionLog as TransactionLog
    from indextables.maintenance import check as check
    from indextables.maintenance import repair_log as repair_log
    from indextables.model.actions import AddAction as AddAction
    from indextables.model.actions import CommitInfo as CommitInfo
    from indextables.model.actions import MetadataAction as MetadataAction
    from indextables.model.actions import ProtocolAction as ProtocolAction
    from indextables.model.actions import RemoveAction as RemoveAction
    from indextables.model.actions import SkipAction as SkipAction
    from indextables.model.actions import TxnAction as TxnAction
    from indextables.model.stats import truncate_statistics as truncate_statistics
    from indextables.one_call import open as open  # noqa: A004
    from indextables.one_call import read as read
    from indextables.one_call import write as write
    from indextables.predicate.tree import col as col
    from indextables.spark import functions as functions
    from indextables.sql.runner import sql as sql
    from indextables.table import Table as Table

__version__ = "0.3.0.dev0"

_HOMES = {
    "AddAction": "indextables.model.actions",
    "CommitInfo": "indextables.model.actions",
    "DeltaTable": "indextables.delta",
    "Error": "indextables.errors",
    "MetadataAction": "indextables.model.actions",
    "ProtocolAction": "indextables.model.actions",
    "RemoveAction": "indextables.model.actions",
    "SkipAction": "indextables.model.actions",
    "Table": "indextables.table",
    "TransactionLog": "indextables.log.transaction_log",
    "TxnAction": "indextables.model.actions",
    "check": "indextables.maintenance",
    "companion": "indextables.companion.handle",
    "col": "indextables.predicate.tree",
    "open": "indextables.one_call",
    "plain_query": "indextables.index.query.syntax",
    "read": "indextables.one_call",
    "repair_log": "indextables.maintenance",
    "sql": "indextables.sql.runner",
    "truncate_statistics": "indextables.model.stats",
    "write": "indextables.one_call",
}
_MODULES = {
    "delta": "indextables.delta",
    "errors": "indextables.errors",
    "functions": "indextables.spark.functions",
}

__all__ = [
    "AddAction",
    "CommitInfo",
    "DeltaTable",
    "Error",
    "MetadataAction",
    "ProtocolAction",
    "RemoveAction",
    "SkipAction",
    "Table",
    "TransactionLog",
    "TxnAction",
    "check",
    "col",
    "companion",
    "configure",
    "connect",
    "delta",
    "disconnect",
    "errors",
    "functions",
    "open",
    "plain_query",
    "read",
    "repair_log",
    "sql",
    "truncate_statistics",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _load(_MODULES[name])
    if name in _HOMES:
        return getattr(_load(_HOMES[name]), name)
    raise AttributeError(f"module 'indextables' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def connect(spark: Any, *, check: bool = True) -> Any:
    """Teach a Spark session `format("indextables")` and our SQL; returns the session.

    Calling it again on the same session changes nothing. Needs Spark 3.5 or later.
    The first call on a cluster looks whether an executor has this package in this
    version and raises an error if not; `check=False` leaves that out.
    """
    return _load("indextables.spark.session").connect(spark, check=check)


def disconnect(spark: Any) -> None:
    """Give PySpark's classes their own methods back, which `connect` had wrapped.

    All sessions of this process share the classes. What `connect` gave to this session in the JVM stays
    until the session ends: the extension, the catalog and the format `indextables`.
    """
    _load("indextables.spark.session").disconnect(spark)


def configure(builder: Any, cloud: str | None = None) -> Any:
    """Set the recommended configuration on a `SparkSession.builder`; returns the builder.

    `cloud="s3"`, `"azure"` or `"gcs"` also names the Hadoop package that lets
    Spark read that store natively.
    """
    return _load("indextables.spark.session").configure(builder, cloud=cloud)


if "IPython" in sys.modules:
    # In a notebook: histories, file lists and counts are Arrow tables, which have no HTML of their own.
    _load("indextables.display.notebook").show_arrow_tables()
