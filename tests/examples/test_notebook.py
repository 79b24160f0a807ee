"""The example notebook runs from beginning to end, and what is kept of it is fit to be read anywhere."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
NOTEBOOK = ROOT / "examples" / "first-hour.ipynb"
nbformat = pytest.importorskip("nbformat")


def shown(cell) -> str:
    """Everything that a cell shows, as one text."""
    pieces = []
    for output in cell.outputs:
        data = output.get("data", {})
        pieces += [output.get("text", ""), *(str(data[kind]) for kind in sorted(data))]
    return "".join(pieces)


def code_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def again():
    spec = spec_from_file_location("run_notebook", ROOT / "scripts" / "run_notebook.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.executed()


def test_the_notebook_runs_and_shows_what_is_kept_of_it(again):
    """Times and sizes differ from run to run; the lines without them do not."""
    kept = nbformat.read(NOTEBOOK, as_version=4)
    assert [cell.source for cell in code_of(kept)] == [cell.source for cell in code_of(again)]
    for before, now in zip(code_of(kept), code_of(again), strict=True):
        assert [output.output_type for output in before.outputs] == [o.output_type for o in now.outputs]
        assert re.sub(r"[\d.]+", "#", shown(before)) == re.sub(r"[\d.]+", "#", shown(now)), before.source


def test_tables_rows_metrics_and_results_are_shown_as_tables(again):
    for start in ("web = it.Table", "web.search", "web.last_scan", "web.merge_splits"):
        cell = next(cell for cell in code_of(again) if cell.source.startswith(start))
        assert "<table" in shown(cell), start
    assert not re.search(r"at 0x[0-9a-f]+", "".join(map(shown, code_of(again))))


def test_a_long_verb_draws_a_bar_that_ends_full(again):
    cell = next(cell for cell in code_of(again) if cell.source.startswith("web.merge_splits"))
    bar = next(
        output for output in cell.outputs if "<progress" in output.get("data", {}).get("text/html", "")
    )
    assert bar.data["text/plain"] == "Merging splits: 1 of 1"


def test_no_path_of_a_machine_is_kept():
    assert not re.search(r"/(?:tmp|home|root|work|Users)/", NOTEBOOK.read_text())


def test_nothing_is_drawn_outside_of_a_notebook():
    from indextables.ops.progress import in_notebook, silent

    assert in_notebook() is silent
