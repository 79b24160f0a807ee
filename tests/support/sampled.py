"""A few cases of many: the first run with `make test`, the others with `make test-long`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_of(count: int, cases: Iterable[Any]) -> list[Any]:
    """All cases, as parameters of a test; those after the first `count` are marked long."""
    return [
        case if number < count else pytest.param(case, marks=pytest.mark.long)
        for number, case in enumerate(cases)
    ]
