"""Every label in a test's docstring is a line of docs/behaviour.md, and every line names a test with its label.

The specification's own lists, at the end of the page, name tests and results that exist.
"""

from __future__ import annotations

import ast
import re
from itertools import groupby

from support.behaviours import LABEL, TESTS, labelled

PAGE = (TESTS.parent / "docs" / "behaviour.md").read_text()
LINES = re.findall(rf"^- \*\*({LABEL})\*\* (.+?)\n  `(tests/[\w/]+\.py::\w+)`$", PAGE, re.M | re.S)
ITEMS = re.findall(r"^- \*\*([A-Z][a-z]+) (\d+)\*\* (.+?)(?=^- |^#|\Z)", PAGE, re.M | re.S)
EVIDENCE = re.compile(r"^  `([\w./-]+)(?:::(\w+))?`$", re.M)


def test_every_label_of_a_test_is_explained():
    assert set(labelled()) == {label for label, _, _ in LINES}


def test_every_behaviour_names_a_test_that_carries_its_label():
    assert not [(label, test) for label, _, test in LINES if test not in labelled().get(label, ())]


def test_every_label_stands_once():
    labels = re.findall(rf"\*\*({LABEL})\*\*", PAGE)
    assert len(labels) == len(set(labels)) == len(LINES)


def test_the_items_of_the_specification_are_numbered_through():
    lists = {
        name: [int(number) for _, number, _ in items] for name, items in groupby(ITEMS, lambda item: item[0])
    }
    assert set(lists) == {"Log", "Repair", "Truncation", "Replay"}
    assert all(numbers == [*range(1, len(numbers) + 1)] for numbers in lists.values())


def test_every_item_of_the_specification_names_what_covers_it_or_is_an_exception():
    assert not [
        (name, number)
        for name, number, text in ITEMS
        if not EVIDENCE.search(text) and "*Exception:*" not in text
    ]


def test_what_covers_an_item_of_the_specification_exists():
    for name, number, text in ITEMS:
        for path, test in EVIDENCE.findall(text):
            file = TESTS.parent / path
            assert file.is_file(), (name, number, path)
            if path.startswith("tests/"):
                names = {
                    node.name
                    for node in ast.parse(file.read_text()).body
                    if isinstance(node, ast.FunctionDef)
                }
                assert test in names, (name, number, test)
