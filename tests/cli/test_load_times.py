"""Times of log lines: the year that syslog leaves out, days that do not exist, and times of no known form."""

import os
from datetime import UTC, datetime

import pytest

import indextables as it


def load_syslog(run, tmp_path, times, modified):
    path = tmp_path / "syslog"
    path.write_text("".join(f"{time} host app[{n}]: line {n}\n" for n, time in enumerate(times)))
    moment = datetime.fromisoformat(modified).replace(tzinfo=UTC).timestamp()
    os.utime(path, (moment, moment))
    code, out, err = run("load", path, "--to", tmp_path / "t", "--format", "log")
    assert (code, err) == (0, "")
    rows = it.Table.open(tmp_path / "t").scan(columns=["pid", "ts", "message"]).read_all()
    return rows.sort_by("pid").to_pylist(), out


@pytest.mark.parametrize(
    ("modified", "times", "days"),
    [
        ("2026-11-17", ["Dec 10 10:00:00"], ["2025-12-10"]),
        ("2026-11-17", ["Nov 17 10:00:00"], ["2026-11-17"]),
        # East of Greenwich the clock is ahead of the file's modification, which is in UTC.
        ("2026-11-17", ["Nov 17 12:00:00"], ["2026-11-17"]),
        ("2019-03-01", ["Jan  5 10:00:00", "Feb 20 10:00:00"], ["2019-01-05", "2019-02-20"]),
        ("2026-01-02", ["Dec 31 23:59:59", "Jan  1 00:00:01"], ["2025-12-31", "2026-01-01"]),
        ("2024-06-30", ["Mar  1 00:00:00", "Dec  1 00:00:00", "Apr  1 00:00:00"], ["2023-03-01", "2023-12-01", "2024-04-01"]),
        # A line of the old year that comes late.
        ("2026-01-02", ["Dec 31 23:59:58", "Jan  1 00:00:01", "Dec 31 23:59:59", "Jan  1 00:00:02"], ["2025-12-31", "2026-01-01", "2025-12-31", "2026-01-01"]),
        ("2026-11-17", ["Feb 28 10:00:00", "Feb 29 10:00:00", "Mar  1 10:00:00"], ["2024-02-28", "2024-02-29", "2024-03-01"]),
        ("2024-02-29", ["Feb 29 10:00:00"], ["2024-02-29"]),
        # Quiet for eight months is no change of year.
        ("2025-10-01", ["Jan  5 10:00:00", "Sep 10 10:00:00"], ["2025-01-05", "2025-09-10"]),
    ],
)  # fmt: skip
def test_a_time_without_a_year_is_the_last_one_before_the_file_was_modified(
    run, tmp_path, modified, times, days
):
    rows, out = load_syslog(run, tmp_path, times, modified)
    assert [row["ts"].date().isoformat() for row in rows] == days
    assert f"{len(times)} of {len(times)} row" in out


def test_years_go_on_across_the_blocks_of_a_large_file(run, tmp_path, monkeypatch):
    monkeypatch.setattr("indextables.ingest.streams.BLOCK_BYTES", 100)
    times = [f"{month} 10 10:00:00" for month in ("Oct", "Nov", "Dec", "Jan", "Feb", "Mar") * 3]
    rows, _ = load_syslog(run, tmp_path, times, "2024-03-11")
    years = [row["ts"].year for row in rows]
    assert years == [2021] * 3 + [2022] * 6 + [2023] * 6 + [2024] * 3


def test_a_day_that_does_not_exist_is_said_and_keeps_its_line(run, tmp_path):
    times = ["Feb 28 10:00:00", "Feb 30 10:00:00", "Apr 31 10:00:00"]
    rows, out = load_syslog(run, tmp_path, times, "2026-11-17")
    assert [row["ts"] is None for row in rows] == [False, True, True]
    assert rows[1]["message"] == "Feb 30 10:00:00 host app[1]: line 1"
    assert "1 of 3 rows have a time; 2 do not: the first is line 2: 'Feb 30 10:00:00" in out


def test_29_february_of_a_common_year_is_not_1_march(run, tmp_path):
    (tmp_path / "a.log").write_text("2023-02-28 10:00:00 INFO a\n2023-02-29 10:00:00 INFO b\n")
    code, out, _ = run("load", tmp_path / "a.log", "--to", tmp_path / "t")
    assert (code, "1 do not: the first is line 2:" in out) == (0, True)
    rows = it.Table.open(tmp_path / "t").scan(columns=["ts", "message"]).read_all().to_pylist()
    assert [row["ts"] and row["ts"].day for row in rows] == [28, None]
    assert rows[1]["message"] == "2023-02-29 10:00:00 INFO b"


PATTERN = r"^(?P<ts>[^|]*)\|(?P<code>\d+)\|(?P<message>.*)$"


def test_a_time_that_a_pattern_finds_and_nobody_can_read_stays_in_the_message(run, tmp_path):
    (tmp_path / "own.log").write_text("2024-05-03 10:00:05|1|good\nthe third of May|2|odd\n|3|none\n")
    code, out, _ = run("load", tmp_path / "own.log", "--to", tmp_path / "t", "--pattern", PATTERN)
    assert code == 0
    assert "2 do not: the first is line 2: 'the third of May|2|odd'" in out
    rows = it.Table.open(tmp_path / "t").scan(columns=["code", "message"]).read_all().to_pylist()
    assert rows == [
        {"code": "1", "message": "good"},
        {"code": "2", "message": "the third of May|2|odd"},
        {"code": "3", "message": "none"},
    ]


def test_a_pattern_that_finds_no_time_that_can_be_read_is_refused_with_an_example(run, tmp_path):
    (tmp_path / "own.log").write_text("the third|1|good\nthe fourth|2|too\n")
    code, _, err = run("load", tmp_path / "own.log", "--to", tmp_path / "t", "--pattern", PATTERN)
    assert code == 2
    assert "'the third|1|good'" in err
    assert "another name" in err
    assert not (tmp_path / "t").exists()
