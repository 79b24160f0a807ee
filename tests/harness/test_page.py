"""The page on reliability says what the result files say."""

from __future__ import annotations

from harness.page import render
from simulation.page import PAGE


def test_the_page_holds_the_figures_of_kills_networks_soaks_and_rivals():
    text = PAGE.read_text()
    assert text == render(text), "run `python -m harness.page` from tests"
