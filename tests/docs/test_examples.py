"""The examples in README and docs run, and print what the pages say they print."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(path):
    return [(match[1], match[2]) for match in FENCE.finditer(path.read_text())]


def pages():
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        if any(kind == "python" for kind, _ in blocks(path)):
            text = "".join(code for kind, code in blocks(path) if kind == "python")
            marks = [pytest.mark.spark] if "spark" in text.lower() else []
            yield pytest.param(path, id=path.relative_to(ROOT).as_posix(), marks=marks)


def same(printed, shown):
    """Compare line by line, blank ends aside."""
    return [line.rstrip() for line in printed.strip().splitlines()] == [
        line.rstrip() for line in shown.strip().splitlines()
    ]


def forget_views(session):
    """Leave the session as it was: the tables behind a page's views go with the page."""
    for table in session.catalog.listTables():
        if table.isTemporary:
            session.catalog.dropTempView(table.name)


@pytest.mark.parametrize("path", list(pages()))
def test_the_examples_of_a_page_run_in_order_and_print_what_it_shows(path, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    if request.node.get_closest_marker("spark"):
        session = request.getfixturevalue("spark")
        request.addfinalizer(lambda: forget_views(session))
    names = {"__name__": "__page__"}
    found = blocks(path)
    for at, (kind, code) in enumerate(found):
        if kind != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{path.name} block {at}", "exec"), names)
        if at + 1 < len(found) and found[at + 1][0] == "text":
            assert same(printed.getvalue(), found[at + 1][1]), (
                f"{path.name} block {at} printed:\n{printed.getvalue()}"
            )


def links():
    for path in sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]):
        for target in re.findall(r"\]\(([^)#\s]+)", path.read_text()):
            if "://" not in target:
                yield pytest.param(path, target, id=f"{path.name}:{target}")


@pytest.mark.parametrize(("path", "target"), list(links()))
def test_a_link_between_pages_leads_somewhere(path, target):
    assert (path.parent / target).exists()
