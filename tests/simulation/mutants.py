"""Planted bugs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def planted(name: str | None) -> Iterator[None]:
    """Run a block with one bug in the production code."""
    yield
