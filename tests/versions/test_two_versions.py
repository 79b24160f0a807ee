"""0.2.0 and this tree take turns at one table, and both always give the right answers."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import indextables as it
from support.earlier import WHY_SKIPPED, unpack_release
from versions.two_versions import EARLIER, Finding, Remote, Tally, Turns, run_seeds

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def peers(earlier: Path, root: Path):
    """Both releases at one table."""
    with Remote(earlier, root) as old, Remote(Path(it.__file__).parents[1], root) as new:
        yield {"earlier": old, "this": new}


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """The source of 0.2.0."""
    src = unpack_release(EARLIER, tmp_path_factory.mktemp("earlier"))
    return src or pytest.skip(WHY_SKIPPED)


@pytest.mark.parametrize("seed", range(3))
def test_both_releases_write_and_read_one_table(earlier, seed):
    tally = run_seeds(range(seed, seed + 1), earlier)
    assert not tally.broken, tally.broken[str(seed)]
    assert tally.answers >= 40


def test_a_log_that_this_tree_closed_is_refused_to_writers_of_the_earlier_release_and_read_whole(
    earlier, tmp_path
):
    root, tally = tmp_path / "t", Tally()
    with peers(earlier, root) as both:
        turns = Turns(0, root, both, tally)
        turns.create()
        turns.take("append")
        turns.take("close")
        turns.take("append")
    assert tally.refused == 3


def test_rows_that_are_gone_behind_the_back_of_both_are_found(earlier, tmp_path):
    root = tmp_path / "t"
    with peers(earlier, root) as both:
        turns = Turns(0, root, both, Tally())
        turns.create()
        turns.take("append")
        it.Table.open(str(root)).delete("id = 1")
        with pytest.raises(Finding, match="rows"):
            turns.take("properties")
