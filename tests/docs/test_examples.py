"""The examples in README and docs run, and print what the pages say they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.pages import blocks, forget_views, run_page

ROOT = Path(__file__).parent.parent.parent


def pages():
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        if any(kind == "python" for kind, _ in blocks(path)):
            text = "".join(code for kind, code in blocks(path) if kind == "python")
            marks = [pytest.mark.spark] if "spark" in text.lower() else []
            yield pytest.param(path, id=path.relative_to(ROOT).as_posix(), marks=marks)


@pytest.mark.parametrize("path", list(pages()))
def test_the_examples_of_a_page_run_in_order_and_print_what_it_shows(path, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("spark")
        request.addfinalizer(forget_views)
    run_page(path)


def links():
    for path in sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]):
        for target in re.findall(r"\]\(([^)#\s]+)", path.read_text()):
            if "://" not in target:
                yield pytest.param(path, target, id=f"{path.name}:{target}")


@pytest.mark.parametrize(("path", "target"), list(links()))
def test_a_link_between_pages_leads_somewhere(path, target):
    assert (path.parent / target).exists()
