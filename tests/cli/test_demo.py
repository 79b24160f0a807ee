"""The guided tour runs from nothing to the end, without Spark here."""

import pytest
from rich.console import Console

from indextables.demo import DAYS, Tour, events, run_demo
from indextables.pages import page


def test_events_are_the_same_every_time():
    assert events(DAYS[0], 100).equals(events(DAYS[0], 100))
    assert events(DAYS[0], 3).column("day").to_pylist() == [DAYS[0]] * 3


@pytest.mark.slow
def test_the_tour_reaches_its_end(tmp_path, capsys):
    run_demo(4000, str(tmp_path), spark=False, show_rows=print)
    out = capsys.readouterr().out
    for sentence in (
        "15 were skipped by their statistics",
        "merged into 8 splits",
        "REPAIR: SUCCESS",
        "Done in",
        f"indextables serve {tmp_path / 'events'}",
        f"the documentation begins in {page('index')}",
    ):
        assert sentence in " ".join(out.split())
    assert (tmp_path / "events" / "_transaction_log_backup").is_dir()


def test_a_directory_in_use_is_not_touched(tmp_path, capsys):
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "mine").write_text("x")
    with pytest.raises(SystemExit):
        run_demo(1000, str(tmp_path), spark=False, show_rows=print)
    assert "not empty" in " ".join(capsys.readouterr().out.split())


def test_steps_are_numbered(capsys, tmp_path):
    tour = Tour(Console(width=80), tmp_path, 10, print)
    tour.title("one")
    tour.title("two")
    assert "2. two" in capsys.readouterr().out
