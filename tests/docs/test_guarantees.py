"""Every promise on the page of guarantees names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
NAMED = re.findall(
    r"`(tests/[\w/]+\.py)(?:::(\w+))?`", "".join((ROOT / "docs" / "guarantees.md").read_text())
)


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_the_test_that_a_promise_names_is_there(path, name):
    assert f"def {name}" in (ROOT / path).read_text() if name else (ROOT / path).exists()


def test_the_page_names_tests():
    assert len(NAMED) > 10  # noqa: PLR2004
