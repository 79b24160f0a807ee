"""Times of log lines: each is read by itself, whatever stands beside it."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from indextables.ingest.log_times import Years, instants

MOMENT = datetime(2024, 5, 3, 10, 0, 5, tzinfo=UTC)
TIMES = {
    "2024-05-03 10:00:05": MOMENT,
    "2024-05-03T10:00:05.123456789Z": MOMENT + timedelta(microseconds=123_456),
    "2024/05/03 10:00:05,12": MOMENT + timedelta(milliseconds=120),
    "2024-05-03 12:30:05 +02:30": MOMENT,
    "2024-05-03 12:00:05+02": MOMENT,
    "2024-05-03T07:45:05-0215": MOMENT,
    "03/May/2024:10:00:05 +0000": MOMENT,
    "3 May 2024 10:00:05": MOMENT,
    "Fri May  3 10:00:05 2024": MOMENT,
    "Fri May  3 10:00:05 UTC 2024": MOMENT,
    "May  3 2024 10:00:05": MOMENT,
    "May  3 10:00:05": MOMENT,
    "Dec 31 23:59:60": datetime(2025, 1, 1, tzinfo=UTC),
    "24/05/03 10:00:05": MOMENT,
    "20240503100005": MOMENT,
    "20240503-10:0:5:7": MOMENT + timedelta(milliseconds=7),
    "240503 100005": MOMENT,
    "2024-05-03-10.00.05.5": MOMENT + timedelta(milliseconds=500),
    "05-03 10:00:05.123": MOMENT + timedelta(milliseconds=123),
    "0503 10:00:05.000001": MOMENT + timedelta(microseconds=1),
    "1714730405": MOMENT,
    "1714730405.5": MOMENT + timedelta(milliseconds=500),
    "1714730405123456": MOMENT + timedelta(microseconds=123_456),
}
NO_TIMES = [
    None, "", "yesterday", "2024-13-03 10:00:05", "2023-02-29 10:00:05", "2024-05-03 24:00:05",
    "2024-05-03 10:60:05", "2024-05-03 10:00:61", "2714730405", "0714730405", "2024-05-03 10:00:05x",
    "Mai  3 10:00:05", "٢٠٢٤-05-03 10:00:05", "2024-05-03 10:00:05\0", "1" * 70,
]  # fmt: skip


def test_times_of_every_form_and_what_is_none_are_read_side_by_side():
    expected = {**TIMES, **dict.fromkeys(NO_TIMES)}
    dice = random.Random(5)
    for _ in range(20):
        texts = dice.choices(list(expected), k=60)
        # Lines of one year in order: those that say no year are all of 2024.
        found = instants(pa.array(["?", *texts, "?"]).slice(1, len(texts)), lambda: Years(2024))
        yearless = {"May  3 10:00:05", "Dec 31 23:59:60", "05-03 10:00:05.123", "0503 10:00:05.000001"}
        for text, moment in zip(texts, found.to_pylist(), strict=True):
            if text in yearless:
                assert (moment.month, moment.day) == (expected[text].month, expected[text].day)
            else:
                assert moment == expected[text], text


def test_every_form_is_read_by_itself():
    for text, moment in TIMES.items():
        assert instants(pa.array([text]), lambda: Years(2024)).to_pylist() == [moment], text
    for text in NO_TIMES:
        assert instants(pa.array([text], pa.string()), lambda: Years(2024)).to_pylist() == [None], text
