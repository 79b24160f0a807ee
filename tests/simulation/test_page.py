"""The page on reliability says what the result files and the planted bugs say."""

from __future__ import annotations

from simulation.page import PAGE, render


def test_the_page_holds_the_figures_of_the_result_files():
    text = PAGE.read_text()
    assert text == render(text), "run `make harness`, or `python -m simulation.page` from tests"
