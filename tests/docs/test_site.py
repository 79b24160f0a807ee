"""The documentation builds as a site, without a warning, and loads nothing from elsewhere."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from indextables.pages import page

ROOT = Path(__file__).parent.parent.parent


def _generated():
    spec = spec_from_file_location("write_pages", ROOT / "scripts" / "write_pages.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATED = ["options.md", "reference/cli.md", "decisions/index.md", "delta.md", "howto/logs.md", "deploy.md"]


@pytest.mark.parametrize("name", GENERATED)
def test_a_page_made_from_the_source_is_up_to_date(name):
    module = _generated()
    assert set(module.PAGES) == set(GENERATED)
    assert (module.DOCS / name).read_text() == module.PAGES[name](), "run `make docs`"


def test_every_decision_has_a_date_a_status_and_a_topic_in_its_third_line():
    head = _generated().DECISION_HEAD
    pages = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [page.name for page in pages if not head.fullmatch(page.read_text().splitlines()[2])] == []
    assert [page.name for page in pages if not page.read_text().startswith(f"# {page.name[:3]}: ")] == []


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_needs_no_network(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "CI": "1"})
    assert done.returncode == 0, done.stderr
    loaded = re.compile(r"<(?:script|img|iframe|link)[^>]*(?:src|href)=\"?(https?://[^\s\">]+)")
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 30
    assert {url for page in pages for url in loaded.findall(page.read_text())} <= set()


def test_every_plot_of_the_page_about_performance_has_its_figures():
    page = (ROOT / "docs" / "performance.md").read_text()
    spec = spec_from_file_location("plots", ROOT / "scripts" / "plots.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in module.PLOTS:
        assert f"images/performance-{name}.svg" in page
        drawn = (module.IMAGES / f"performance-{name}.svg").read_text()
        for seconds in module.bars(name).values():
            assert "IndexTables" in seconds
            assert all(f"{system}, {module._text(value)}" in drawn for system, value in seconds.items())


def _messages(path):
    """The texts of a module that are not docstrings."""
    tree = ast.parse(path.read_text())
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [node.value for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs]  # fmt: skip


def test_no_message_names_a_file_of_the_sources():
    modules = sorted((ROOT / "src").rglob("*.py"))
    found = [
        (path.name, text) for path in modules for text in _messages(path) if re.search(r"\bdocs/\w", text)
    ]
    assert found == []


def test_every_page_that_a_message_names_is_carried_by_the_wheel():
    calls = re.compile(r"\bpage\([\"'](\w+)[\"']\)")
    names = {name for path in (ROOT / "src").rglob("*.py") for name in calls.findall(path.read_text())}
    assert names >= {"deploy", "filters", "index", "options"}
    assert [name for name in sorted(names) if not Path(page(name)).is_file()] == []
    assert page("none") == "the page none.md of the documentation"


def test_the_code_of_the_home_page_fits_its_column():
    """Wider lines are cut off at the right edge, behind a scroll bar."""
    code = re.findall(
        r"^```\w+\n(.*?)^```", (ROOT / "docs" / "index.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert code
    assert max(len(line) for block in code for line in block.splitlines()) <= 78
