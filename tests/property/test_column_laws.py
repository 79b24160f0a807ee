"""Columns are renamed, dropped, added again and moved between writes; every version reads as it was."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import settings

from support.column_life import OPTIONS, PHASES, Life


class LifeWithVectors(Life):
    """The same, where rows are deleted by vectors."""

    options: ClassVar = {**OPTIONS, "deletionVectors.enabled": "true", "checkpoint.format": "parquet"}


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=12, stateful_step_count=20, deadline=None, phases=PHASES)
TestLifeWithVectors = pytest.mark.slow(LifeWithVectors.TestCase)
TestLifeWithVectors.settings = settings(max_examples=20, stateful_step_count=25, deadline=None, phases=PHASES)
