"""What a scan says about itself: which engine, why, which files, how long."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

import indextables as it
from indextables.log.scans import last_scans


@pytest.fixture
def table(tmp_path):
    made = it.Table.create(
        tmp_path / "t", pa.schema([("day", pa.string()), ("id", pa.int64())]), partition_by=["day"]
    )
    for day, first in (("mon", 0), ("tue", 10), ("tue", 20)):
        made.append(pa.table({"day": [day] * 5, "id": list(range(first, first + 5))}))
    return made


WHERE = "day = 'tue' AND id >= 20"


@pytest.mark.parametrize(
    ("ask", "engine"),
    [
        (lambda table: table.files(where=WHERE), "columnar"),
        (lambda table: table.scan(where=WHERE).read_all(), "reference"),
        (lambda table: table.count(where=WHERE), "reference"),
    ],
    ids=["files", "scan", "count"],
)
def test_a_scan_says_which_files_were_left_out_and_by_what(table, ask, engine):
    ask(table)
    files = table.last_scan.files
    assert (files.considered, files.pruned_by_partition, files.skipped_by_statistics, files.kept) == (
        3,
        1,
        1,
        1,
    )
    replay = table.last_scan.replay
    assert replay.engine == engine
    assert replay.why.startswith("3 files, about ")
    assert sum(replay.seconds.values()) > 0
    assert replay.rows_on_executors == 0


@pytest.mark.parametrize("verb", ["files", "scan", "count"])
def test_a_scan_is_logged_once(table, caplog, verb):
    with caplog.at_level(logging.INFO, "indextables"):
        getattr(table, verb)(where=WHERE)
    lines = [entry.getMessage() for entry in caplog.records if "files to read" in entry.getMessage()]
    assert len(lines) == 1
    assert f"{table.uri} version 3: 1 of 3 files to read, 1 pruned by partition" in lines[0]
    assert f"engine {'columnar' if verb == 'files' else 'reference'} (3 files" in lines[0]
    assert lines[0] == str(last_scans(table.uri)[0])
