"""Translates errors from Spark into ours.

A planner that fails inside a query is called by the JVM, and a missing split is noticed
by an executor: both come back as Java exceptions. PySpark converts Java exceptions to
Python ones in a single function; `connect` wraps that function, which then returns our own
exception if the cause is ours. Every other exception is left unchanged.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from indextables import errors
from indextables.errors import CommandError, Error, MissingSplitError

_MARK = re.compile(r"\[indextables#(\d+)\]")
_GONE = re.compile(r"(\S+\.split)")
_REST = re.compile(r"(?:(?!\. |\.?\n| does not exist).)*")
_RAISED = re.compile(r"^indextables\.errors\.(\w+): (.*)", re.MULTILINE | re.DOTALL)
_REPORTED = re.compile(r"IllegalStateException\)?:? (\w+Error): (.*)", re.DOTALL)
_TRAILER = re.compile(r"\s*(?:SQLSTATE: \w+|\n\tat \S+\().*", re.DOTALL)
"""What Spark puts behind the message of a worker: its state, or, in 3.5, the stack of the JVM."""
_DELTA_PATH = re.compile(r"TABLE_OR_VIEW_NOT_FOUND\][^\n]*?`delta`\.(`[^`\n]+`)")
_DELTA_FORMAT = re.compile(r"DATA_SOURCE_NOT_FOUND\][^\n]*?: delta\.")
_REMEMBERED = 256
_VERSIONS = 8
_MAX_CAUSES = 12

_lock = threading.Lock()
_numbers = itertools.count(1)
_errors: OrderedDict[int, BaseException] = OrderedDict()
_watched: OrderedDict[str, tuple[int, ...]] = OrderedDict()


def remember(error: BaseException) -> str:
    """Store an exception and return a message for the JVM from which `recall` finds it again."""
    number = next(_numbers)
    with _lock:
        _errors[number] = error
        while len(_errors) > _REMEMBERED:
            _errors.popitem(last=False)
    return f"[indextables#{number}] {type(error).__name__}: {error}"


def recall(text: str) -> BaseException | None:
    """The stored exception that a message refers to."""
    mark = _MARK.search(text)
    if mark is None:
        return None
    with _lock:
        return _errors.get(int(mark.group(1)))


def raised_in_worker(text: str) -> Error | None:
    """Our error raised in another Python process: a worker, whose traceback Spark forwards, or a server."""
    raised = _RAISED.search(text) or _REPORTED.search(text)
    kind = getattr(errors, raised.group(1), None) if raised else None
    if raised is None or not (isinstance(kind, type) and issubclass(kind, Error)):
        return None
    return kind(_TRAILER.sub("", raised.group(2)).rstrip())


def missing_split(text: str) -> Error | None:
    """Our error for Spark's report that one of our files is missing."""
    if "FILE_NOT_EXIST" not in text and "FileNotFoundException" not in text:
        return None
    split = _GONE.search(text)
    if split is None:
        return None
    path = split.group(1).rstrip(".,")
    return MissingSplitError(
        f"{path} is named by the transaction log but is not there: the version this DataFrame reads is "
        "too old and its files have been purged, or the file was deleted by hand. Load the table again for "
        "the newest version; if that fails too, REPAIR INDEXFILES TRANSACTION LOG writes a log without the "
        "missing files.",
        path=path,
    )


def watch(version: int | None, *addresses: str) -> None:
    """Record where data files of a version of a Delta table are: the table, or single files outside of it."""
    with _lock:
        for address in addresses:
            others = [one for one in _watched.get(address, ()) if one != version]
            _watched[address] = (*others, *(() if version is None else (version,)))[-_VERSIONS:]
            _watched.move_to_end(address)
        while len(_watched) > _REMEMBERED:
            _watched.popitem(last=False)


def missing_data_file(text: str) -> Error | None:
    """Our error for Spark's report that a data file of a Delta table is gone."""
    if "FILE_NOT_EXIST" not in text and "FileNotFoundException" not in text:
        return None
    # Spark writes addresses percent-encoded, Hadoop as they are.
    message = unquote(_one_slash(text))
    with _lock:
        watched = [(unquote(_one_slash(address)), versions) for address, versions in _watched.items()]
    for address, versions in watched:
        if address not in message:
            continue
        planned = f"Planned last: version {' and '.join(map(str, versions))}. " if versions else ""
        path = address + _REST.match(message.partition(address)[2])[0]  # type: ignore[index]
        return MissingSplitError(
            f"{path} is named by the log of a Delta table but is not there: the version this DataFrame "
            "reads is too old and VACUUM removed its files, or the file was deleted by hand. "
            f"{planned}Read the newest version, or bring the file back.",
            path=path,
        )
    return None


def _one_slash(text: str) -> str:
    """A text in which `file:/x` and `file:///x` are written alike."""
    return text.replace("file:///", "file:/")


def delta_without_package(text: str) -> Error | None:
    """Our error for a Delta table in a session that does not have the package of Delta Lake."""
    by_path = _DELTA_PATH.search(text)
    if by_path is None and _DELTA_FORMAT.search(text) is None:
        return None
    path = "`/path/of/the/table`" if by_path is None else by_path[1]
    return CommandError(
        "this session does not have the package of Delta Lake. IndexTables reads Delta tables without it, "
        f"and never writes them: use indextables.{path} in SQL, or "
        f'spark.read.format("indextables").load("{path.strip("`")}").'
    )


def own_error(text: str) -> BaseException | None:
    """Our exception for a message of Spark's."""
    return (
        recall(text)
        or raised_in_worker(text)
        or missing_split(text)
        or missing_data_file(text)
        or delta_without_package(text)
    )


def converting(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """PySpark's conversion of Java exceptions, with our translation before it."""

    def convert_exception(java_exception: Any) -> Any:
        return _ours(java_exception) or original(java_exception)

    return convert_exception


def converting_of_server(original: Callable[..., Any]) -> Callable[..., Any]:
    """The same for errors that a Spark Connect server reports."""

    def convert_exception(*args: Any, **kwargs: Any) -> Any:
        converted = original(*args, **kwargs)
        return own_error(str(converted)) or converted

    return convert_exception


def _ours(java_exception: Any) -> BaseException | None:
    cause = java_exception
    for _ in range(_MAX_CAUSES):
        if cause is None:
            return None
        text = str(cause.getMessage() or "")
        error = own_error(text)
        if error is not None:
            return error
        cause = cause.getCause()
    return None
