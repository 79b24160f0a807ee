"""The versions of Spark that a wheel carries classes for, as pyproject.toml names them."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYSPARKS = ROOT / "build" / "pyspark"
"""Where `make wheel` has the PySparks that it compiled for, each in a directory named after its version."""


def sparks() -> dict[str, str]:
    """The release of PySpark by its line: "3.5.9" of "3.5"."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(project["tool"]["indextables"]["spark"])
