"""Options in the properties of a table, and who wins over them (errata of statistics-truncation, 6)."""

from __future__ import annotations

import logging

import pytest

from support.builder import LogBuilder, commit_path


@pytest.fixture
def builder():
    built = LogBuilder().create()
    built.log().update_properties(
        {
            "spark.indextables.checkpoint.interval": "3",
            "transaction.compression.enabled": "false",
            "mine": "x",
        }
    )
    return built


def test_a_property_counts_where_nobody_else_says_anything(builder):
    builder.append("a").append("b")
    assert "00000000000000000003.checkpoint.json" in builder.names()
    assert builder.store.get(commit_path(2)).startswith(b"{")


def test_an_option_wins_over_a_property(builder):
    """Also one that says what the default would be."""
    log = builder.log(checkpoint__interval=10, transaction__compression__enabled="true")
    settings = log.snapshot().settings
    assert (settings.checkpoint.interval, settings.compression.enabled) == (10, True)
    assert builder.log().snapshot().settings.checkpoint.interval == 3


def test_a_property_with_a_bad_value_is_a_warning(builder, caplog):
    builder.log().update_properties({"spark.indextables.checkpoint.interval": "often"})
    with caplog.at_level(logging.WARNING):
        assert builder.log().snapshot().settings.checkpoint.interval == 10
    assert "often" in caplog.text
    builder.append("still works")
