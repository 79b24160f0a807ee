"""Which engine replays a log (docs/behaviour.md, K4)."""

from __future__ import annotations

import pytest

from indextables.errors import OptionError
from indextables.log.replay.rule import BYTES_PER_FILE, choose
from indextables.options import Options
from support.builder import LogBuilder

LOCAL, SPARK = frozenset(), frozenset({"spark"})


def option(**values):
    return Options.of({key.replace("__", "."): value for key, value in values.items()})


def test_auto_stays_local_while_the_state_fits_the_memory():
    """K4."""
    fits = (1 << 30) // BYTES_PER_FILE
    assert choose(option(), fits, SPARK) == "columnar"
    assert choose(option(), fits + 1, SPARK) == "spark"
    assert choose(option(distributedLogReplay__localMemory="1m"), 10_000, SPARK) == "spark"


def test_a_number_is_a_threshold():
    """K4: at it local, above it Spark."""
    for options in (
        option(distributedLogReplay__fileThreshold=100),
        Options.of({"spark.databricks.delta.v2.distributedLogReplay.fileThreshold": 100}),
    ):
        assert choose(options, 100, SPARK) == "columnar"
        assert choose(options, 101, SPARK) == "spark"


def test_without_a_number_of_files_a_session_or_permission_it_is_local():
    assert choose(option(), None, SPARK) == "columnar"
    assert choose(option(distributedLogReplay__fileThreshold=0), 5, LOCAL) == "columnar"
    refused = option(distributedLogReplay__enabled="false", distributedLogReplay__fileThreshold=0)
    assert choose(refused, 5, SPARK) == "columnar"


def test_the_plain_engine_can_be_selected():
    assert choose(option(transaction__useOptimized="false"), 5, LOCAL) == "reference"
    assert choose(option(transaction__optimized__enabled="false"), 5, LOCAL, "local") == "reference"


def test_an_engine_can_be_forced_and_must_exist():
    """K4."""
    assert choose(option(), 5, SPARK, "spark") == "spark"
    assert choose(option(), 10**9, SPARK, "columnar") == "columnar"
    assert choose(option(), 10**9, SPARK, "local") == "columnar"
    with pytest.raises(OptionError, match="spark"):
        choose(option(), 5, LOCAL, "spark")


def test_a_snapshot_tells_which_engine_answered():
    builder = LogBuilder().create().append("a")
    assert builder.log().snapshot().plan().replay.engine == "columnar"
    assert builder.log(transaction__useOptimized="false").snapshot().plan().replay.engine == "reference"
    assert builder.log().snapshot().plan(engine="reference").replay.engine == "reference"


def test_the_number_of_files_comes_from_the_checkpoint_without_reading_its_adds():
    """K4."""
    builder = LogBuilder().create().append(7).checkpoint().append(2)
    assert builder.log().snapshot().num_files_hint == 9
