"""Checks that executors can run our code: the same package, in the same Python version as the driver.

Otherwise the first write would fail with a traceback from another machine. One small job
checks it first; a local session that runs the driver's own Python needs no check.
"""

from __future__ import annotations

import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from indextables import __version__
from indextables.errors import TableError
from indextables.pages import page
from indextables.spark.options import is_connect

if TYPE_CHECKING:
    import pyarrow as pa

_ANSWER = "version string, python string, missing string"
_MISSING = re.compile(
    r"No module named '([\w.]+)'|([\w.]+) (?:>=|==) ?[\d.]+ must be installed", re.IGNORECASE
)
_VERSIONS = re.compile(
    r"different version:? \(?(\d+)[., ]+(\d+)\)? than that in driver:? \(?(\d+)[., ]+(\d+)"
)
_HELP = (
    f"Give them the driver's environment ({page('deploy')} says how), or only read, after "
    "connect(spark, check=False)."
)

_lock = threading.Lock()
_checked: WeakSet[Any] = WeakSet()


def check_executors(spark: Any) -> None:
    """Raise an error that says what is missing unless executors can import this version; checks once."""
    cluster = spark if is_connect(spark) else spark.sparkContext
    with _lock:
        if cluster in _checked:
            return
    if is_connect(spark) or not _same_python(cluster):
        _check(_ask(spark))
    with _lock:
        _checked.add(cluster)


def _same_python(context: Any) -> bool:
    """Whether tasks run on this machine, in the environment of this process."""
    if not context.master.startswith("local[") and context.master != "local":
        return False
    command = shutil.which(context.pythonExec)
    # By directory, not by file: an environment's python is a link to one that has other packages.
    return command is not None and Path(command).absolute().parent == Path(sys.executable).absolute().parent


def _ask(spark: Any) -> tuple[str, str, str]:
    """The package version, Python version and missing package of an executor."""
    try:
        row = spark.range(1).mapInArrow(_probe(), _ANSWER).collect()[0]
    except Exception as failed:
        message = str(failed)
        versions, missing = _VERSIONS.search(message), _MISSING.search(message)
        if versions is not None:
            return "", f"{versions[1]}.{versions[2]}", ""
        if missing is not None:
            return "", "", missing[1] or missing[2]
        raise
    return row["version"] or "", row["python"], row["missing"] or ""


def _probe() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function that is pickled by value, since the executor may not have our package."""

    def probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import importlib
        import sys

        import pyarrow as pa

        version = missing = None
        try:
            version = importlib.import_module("indextables").__version__
            for name in (
                "indextables.ops.write.rows",
                "indextables.split.search.run",
                "indextables.storage.stores.remote",
            ):
                importlib.import_module(name)
        except ImportError as error:
            missing = error.name or str(error)
        for _ in batches:
            answer = {"version": version, "python": "{}.{}".format(*sys.version_info), "missing": missing}
            yield pa.RecordBatch.from_pylist(
                [answer], pa.schema([(name, pa.string()) for name in ("version", "python", "missing")])
            )

    return probe


def _check(answer: tuple[str, str, str]) -> None:
    version, python, missing = answer
    own = "{}.{}".format(*sys.version_info)
    if python and python != own:
        raise TableError(
            f"The executors of this session run Python {python} and this driver {own}; set PYSPARK_PYTHON "
            f"to a Python {own} that has indextables. {_HELP}",
            python=python,
        )
    if missing:
        raise TableError(
            f"The executors of this session have no {missing}, which indextables needs there. {_HELP}",
            missing=missing,
        )
    if version != __version__:
        raise TableError(
            f"The executors of this session have indextables {version}, this driver {__version__}. {_HELP}",
            version=version,
        )


def forget() -> None:
    """Check again next time, as in a new process."""
    with _lock:
        _checked.clear()
