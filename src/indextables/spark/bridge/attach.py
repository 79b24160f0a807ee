"""The Python side of `Bridge.java`: every request of the JVM arrives here.

A connected session attaches it once per JVM. A request names the session it comes from,
so that one bridge serves sessions with different catalogs and settings.
"""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakSet

from indextables.spark.bridge import changes, rows, searches, statements, streams, tables
from indextables.spark.bridge.request import JvmRequest
from indextables.spark.errors import remember
from indextables.spark.jvm import CATALOG
from indextables.spark.jvm.callback import Callback

_SESSIONS = 64

_ANSWERS: Mapping[str, Callable[[JvmRequest], dict[str, Any]]] = {
    "alter": tables.alter,
    "changes": changes.changes,
    "compare": searches.compare,
    "create": tables.create,
    "describe": tables.describe,
    "drop_partitions": tables.drop_partitions,
    "exists": tables.exists,
    "partitions": tables.partitions,
    "pin": searches.pin,
    "refuse": searches.refuse,
    "refuse_change": tables.refuse_change,
    "refuse_search": tables.refuse_search,
    "relation": tables.relation,
    "replace_rows": rows.replace_rows,
    "rows": tables.rows,
    "run_statement": statements.run_statement,
    "save": rows.save,
    "search": searches.search,
    "search_function": searches.search_function,
    "search_groups": searches.search_groups,
    "spelled": searches.spell,
    "statement": statements.statement,
    "stream_batch": streams.batch,
    "stream_into": streams.into,
    "stream_offset": streams.next_offset,
    "stream_open": streams.open_stream,
    "stream_write": streams.write,
    "truncate": tables.truncate,
    "write": rows.write,
}

_lock = threading.Lock()
_sessions: OrderedDict[str, Any] = OrderedDict()
_attached: WeakSet[Any] = WeakSet()


def attach(spark: Any, *, plain: bool = False) -> None:
    """Let the JVM of a session call this process; `plain` errors are for users who see them in the JVM."""
    context = spark.sparkContext
    with _lock:
        _sessions[_name(spark._jsparkSession)] = spark
        if context._gateway in _attached:
            return
        _attached.add(context._gateway)
    token = secrets.token_hex(16)

    def answer(question: Mapping[str, Any]) -> str:
        return _answered(context, question)

    context._jvm.io.indextables.Bridge.attach(
        Callback(answer, _plain_failure if plain else _failure, token), token
    )


def name_tables(spark: Any) -> None:
    """Install our optimizer rule and, unless another one is set, our catalog in a running session."""
    jvm, session = spark.sparkContext._jvm, spark._jsparkSession
    jvm.io.indextables.Extensions.teach(session)
    key = "spark.sql.catalog.spark_catalog"
    if spark.conf.get(key, "builtin") == "builtin":
        spark.conf.set(key, CATALOG)


def _answered(context: Any, question: Mapping[str, Any]) -> str:
    objects = context._jvm.io.indextables.Bridge.parked(question["number"])
    request = JvmRequest(_session(context, objects.get("session")), question["request"], objects)
    return json.dumps({"answer": _ANSWERS[question["op"]](request)})


def _failure(error: Exception | str) -> str:
    return json.dumps({"error": error if isinstance(error, str) else remember(error)})


def _plain_failure(error: Exception | str) -> str:
    return json.dumps({"error": error if isinstance(error, str) else f"{type(error).__name__}: {error}"})


def _session(context: Any, java_session: Any) -> Any:
    """The Python session for a JVM session; caches of logs belong to it."""
    from pyspark.sql import SparkSession

    name = _name(java_session)
    with _lock:
        session = _sessions.get(name)
        if session is None:
            session = _sessions[name] = SparkSession(context, java_session)
        _sessions.move_to_end(name)
        while len(_sessions) > _SESSIONS:
            _sessions.popitem(last=False)
    return session


def _name(session: Any) -> str:
    return str(session.sessionUUID())
