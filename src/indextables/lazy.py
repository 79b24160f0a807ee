"""Parts of the package that are loaded by name, when they are first used."""

from __future__ import annotations

import importlib
from typing import Any


def load(name: str) -> Any:
    """Import a module of this package; a package it needs and does not find is a MissingPackageError."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] == "indextables":
            raise
        from indextables.errors import MissingPackageError

        raise MissingPackageError(
            f"indextables needs {missing.name}, which this Python does not have. Install both with pip: "
            "a wheel that was copied, or given to --py-files, comes without what it needs (docs/deploy.md).",
            packages=[missing.name],
        ) from missing
