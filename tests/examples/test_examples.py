"""The examples run from an empty directory and print what the page about them shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "examples.md"
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))


def shown(name: str) -> str:
    """What the page says an example prints: the text block of the section that names it."""
    section = next(part for part in PAGE.read_text().split("\n## ") if f"`python {name}`" in part)
    return re.search(r"```text\n(.*?)```", section, re.DOTALL)[1]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_its_page_shows(name, tmp_path):
    command = [sys.executable, str(ROOT / "examples" / name)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown(name)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_says_what_it_needs_and_has_its_picture(name):
    assert "`pip install indextables" in (ROOT / "examples" / name).read_text()
    section = next(part for part in PAGE.read_text().split("\n## ") if f"`python {name}`" in part)
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", section)
    assert pictures
    assert all((PAGE.parent / picture).is_file() for picture in pictures)
