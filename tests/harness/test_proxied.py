"""Behind a network that loses, cuts and repeats, every verb says what is true."""

from __future__ import annotations

import pytest

from harness.proxied import FAULTS, Tally, Weather, run_proxied
from support.servers import ObjectServer, azure_server, s3_server  # noqa: F401 - fixtures

SEEDS = range(4)


@pytest.mark.long
@pytest.mark.sample
def test_nothing_acknowledged_is_lost_behind_a_faulty_network_on_s3(s3_server: ObjectServer) -> None:  # noqa: F811
    tally = run_proxied(s3_server, SEEDS)
    assert tally.broken == {}
    assert tally.faults.keys() == set(FAULTS)
    assert tally.acknowledged > 0


@pytest.mark.long
def test_nothing_acknowledged_is_lost_behind_a_faulty_network_on_azure(azure_server: ObjectServer) -> None:  # noqa: F811
    assert run_proxied(azure_server, SEEDS).broken == {}


def test_the_weather_of_a_seed_is_always_the_same() -> None:
    def day(seed: int) -> list[str | None]:
        weather = Weather(seed, Tally())
        weather.fair = False
        return [weather("GET", "/") for _ in range(500)]

    assert day(1) == day(1) != day(2)
    assert set(FAULTS) <= set(day(3))
