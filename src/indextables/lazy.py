"""What is loaded when it is first used: large libraries under their usual names, and parts of this package.

A module that needs a large library only sometimes writes `from indextables.lazy import pc` at its top. The
type checker sees the library itself.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from indextables.errors import MissingPackageError
from indextables.pages import page

if TYPE_CHECKING:
    import duckdb
    import lark
    import msgspec
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pv
    import pyarrow.json as pj
    import pyarrow.parquet as pq
    import sqlglot
    import tantivy
    from sqlglot import exp

__all__ = (
    "duckdb", "exp", "lark", "later", "load", "msgspec", "np", "pa", "pc", "pd", "pj", "pq", "pv", "sqlglot",
    "tantivy",
)  # fmt: skip

LIBRARIES = {
    "duckdb": "duckdb",
    "exp": "sqlglot.expressions",
    "lark": "lark",
    "msgspec": "msgspec",
    "np": "numpy",
    "pa": "pyarrow",
    "pc": "pyarrow.compute",
    "pd": "pandas",
    "pj": "pyarrow.json",
    "pq": "pyarrow.parquet",
    "pv": "pyarrow.csv",
    "sqlglot": "sqlglot",
    "tantivy": "tantivy",
}
"""The names this module gives, and the libraries behind them."""


def load(name: str) -> Any:
    """Import a module of this package; a package it needs and does not find is a MissingPackageError."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] == "indextables":
            raise
        raise MissingPackageError(
            f"indextables needs {missing.name}, which this Python does not have. Install both with pip: "
            "a wheel that was copied, or given to --py-files, comes without what it needs. Clusters are "
            f"described in {page('deploy')}.",
            packages=[missing.name],
        ) from missing


class _Later(ModuleType):
    """Stands for a module that is imported when one of its names is first needed."""

    def __getattr__(self, name: str) -> Any:
        # What Python itself asks a module about is no reason to load the library.
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, (self.__name__,)


def later(name: str) -> Any:
    """A module that is imported when one of its names is first needed.

    It stands in the `else` of `if TYPE_CHECKING`, where the same module is imported under the same name.
    """
    return _Later(name)


if not TYPE_CHECKING:
    globals().update({name: _Later(library) for name, library in LIBRARIES.items()})
