"""The page on object stores names a number of round trips for each verb, and the verbs keep to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.far_store import FarStore, Request, sequential_trips
from benchmarks.stores import TRIPS, Tables, measure

PAGE = Path(__file__).parents[2] / "docs" / "stores.md"
LONG_MS = 250
"""A request takes so long that a busy machine does not turn requests made at once into requests in turn."""


def test_the_page_has_the_numbers_that_are_kept() -> None:
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    assert {verb: int(trips) for verb, trips in rows} == TRIPS


@pytest.mark.slow
def test_no_verb_makes_more_trips_than_the_page_says() -> None:
    store = FarStore()
    try:
        tables = Tables(store)
        tables.prepare()
        store.set_latency(LONG_MS)
        measured = {trips.name: trips.sequential for trips in measure(tables)}
    finally:
        store.close()
    assert {verb: trips for verb, trips in measured.items() if trips > TRIPS[verb]} == {}
    assert measured.keys() == TRIPS.keys()


def test_only_requests_that_wait_for_an_answer_count() -> None:
    at_once = [Request("GET", str(n), 0.0 + n / 100, 1.0 + n / 100, 0) for n in range(5)]
    in_turn = [Request("GET", str(n), 2.0 + n, 3.0 + n, 0) for n in range(3)]
    assert sequential_trips(at_once) == 1
    assert sequential_trips([*at_once, *in_turn]) == 4
