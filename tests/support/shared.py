"""The material kept beside the repository: specifications and golden tables. Tests without it skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def shared_directory() -> Path | None:
    """Where the shared material lies, or None on a machine that has none."""
    named = os.environ.get("INDEXTABLES_SHARED")
    place = Path(named) if named else Path(__file__).resolve().parents[3] / "shared"
    return place if place.is_dir() else None


def shared(*parts: str) -> Path:
    """A file or directory of the shared material; skips the test when it is not there."""
    place = shared_directory()
    if place is None:
        pytest.skip("needs the shared material: set INDEXTABLES_SHARED to its directory")
    found = place.joinpath(*parts)
    if not found.exists():
        pytest.skip(f"the shared material has no {'/'.join(parts)}")
    return found
