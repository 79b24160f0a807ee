"""Time travel in Delta tables: by what commits record where they do, else by the age of their files."""

from __future__ import annotations

import os

import pytest

from indextables.errors import VersionNotFoundError
from indextables.log.delta.snapshot import open_snapshot
from indextables.log.delta.timestamps import monotone
from indextables.options import Options
from indextables.storage.store import open_store
from support.deltatables import LOG, DeltaLog, add, schema_string

OPTIONS = Options.of(None)
HOUR = 3_600_000
START = 1_700_000_000_000


@pytest.fixture
def log(tmp_path):
    return DeltaLog(open_store(tmp_path), schema_string(a="long"))


def age(tmp_path, *times_ms):
    for version, written in enumerate(times_ms):
        os.utime(tmp_path / LOG / f"{version:020d}.json", (written / 1000, written / 1000))


def at(log, time_ms):
    return open_snapshot(log.store.uri, as_of_ms=time_ms, options=OPTIONS).version


def test_a_time_means_the_newest_version_at_or_before_it(log, tmp_path):
    """A13: by file age."""
    for number in range(3):
        log.commit(add(str(number)))
    age(tmp_path, START, START + HOUR, START + 2 * HOUR, START + 3 * HOUR)
    assert [at(log, START + offset) for offset in (0, HOUR - 1, HOUR, 99 * HOUR)] == [0, 0, 1, 3]
    with pytest.raises(
        VersionNotFoundError, match=r"oldest readable version, 0, was written at 20\d\d-\d\d-\d\dT"
    ):
        at(log, START - 1)


def test_file_ages_are_forced_to_increase(log, tmp_path):
    """A13: a copied log has odd ages."""
    assert monotone([5, 3, 3, 9]) == [5, 6, 7, 9]
    for number in range(3):
        log.commit(add(str(number)))
    age(tmp_path, START, START - HOUR, START - HOUR, START + HOUR)
    assert at(log, START) == 0
    assert at(log, START + 1) == 1
    assert at(log, START + 2) == 2


def test_recorded_times_beat_file_ages(log, tmp_path):
    """A13: in-commit timestamps, enabled at a version in the middle of the log."""
    log.commit(add("a"))
    configuration = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": str(START + 5 * HOUR),
    }
    metadata = {**log.metadata, "configuration": configuration}
    log.commit({"commitInfo": {"inCommitTimestamp": START + 5 * HOUR}}, {"metaData": metadata})
    log.commit({"commitInfo": {"inCommitTimestamp": START + 6 * HOUR}}, add("b"))
    log.commit({"commitInfo": {"inCommitTimestamp": START + 7 * HOUR}}, add("c"))
    age(tmp_path, START, START + HOUR, START, START, START)
    found = [at(log, START + hours * HOUR) for hours in (0, 1, 4, 5, 6, 6.5, 7, 99)]
    assert found == [0, 1, 1, 2, 3, 3, 4, 4]


def test_versions_whose_files_are_gone_cannot_be_travelled_to(log, tmp_path):
    """A13: the error says what is left."""
    for number in range(4):
        log.commit(add(str(number)))
        if number == 1:
            log.checkpoint("classic")
    age(tmp_path, *(START + number * HOUR for number in range(5)))
    log.drop_commits(1)
    assert at(log, START + 2 * HOUR) == 2
    with pytest.raises(VersionNotFoundError, match="oldest readable version, 2"):
        at(log, START + HOUR)
