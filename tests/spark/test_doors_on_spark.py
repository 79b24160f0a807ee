"""A session's doors answer drawn questions as plain Python does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from doors.spark_doors import SPARK_DOORS, ask_tables


@pytest.mark.slow
def test_spark_answers_as_plain_python_does(spark: Any, tmp_path: Path) -> None:
    tally = ask_tables(spark, range(3), 20, tmp_path, SPARK_DOORS)
    assert not tally.differences, "\n".join(tally.differences[:3])
    assert set(tally.answers) == set(SPARK_DOORS), "a door was never asked"
