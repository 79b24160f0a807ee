"""The documentation builds as a site, without a warning, and loads nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def _generated():
    spec = spec_from_file_location("write_pages", ROOT / "scripts" / "write_pages.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATED = ["options.md", "reference/cli.md", "decisions/index.md", "delta.md"]


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
