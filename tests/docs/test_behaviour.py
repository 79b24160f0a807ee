"""Every label in a test's docstring is a line of docs/behaviour.md, and every line names a test with its label."""

from __future__ import annotations

import re

from support.behaviours import LABEL, TESTS, labelled

PAGE = (TESTS.parent / "docs" / "behaviour.md").read_text()
LINES = re.findall(rf"^- \*\*({LABEL})\*\* (.+?)\n  `(tests/[\w/]+\.py::\w+)`$", PAGE, re.M | re.S)


def test_every_label_of_a_test_is_explained():
    assert set(labelled()) == {label for label, _, _ in LINES}


def test_every_behaviour_names_a_test_that_carries_its_label():
    assert not [(label, test) for label, _, test in LINES if test not in labelled().get(label, ())]


def test_every_label_stands_once():
    labels = re.findall(rf"\*\*({LABEL})\*\*", PAGE)
    assert len(labels) == len(set(labels)) == len(LINES)
