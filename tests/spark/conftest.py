"""Everything in this directory needs Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.spark_versions import reason_to_skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)
        for mark in item.iter_markers("needs_spark"):
            reason = reason_to_skip(*mark.args)
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))
