"""Truncated statistics can be seen: in the log of the process, in the history, and column by column."""

from __future__ import annotations

import json
import logging

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import OptionError

ROWS = pa.table({"id": [1, 2], "text": ["x" * 2000, "y" * 3000], "note": ["a" * 50, "b" * 60]})


def lines(caplog, level):
    return [record.getMessage() for record in caplog.records if record.levelno == level]


def truncation_lines(caplog):
    return [text for text in lines(caplog, logging.INFO) if "tatistics" in text]


def last_metrics(path):
    newest = it.sql(f"DESCRIBE INDEXTABLES HISTORY '{path}'").to_pylist()[0]
    found = newest["operation_metrics"]
    return {
        key: int(value)
        for key, value in (json.loads(found) if isinstance(found, str) else dict(found)).items()
    }


def test_a_write_reports_every_column_once_and_their_sum(tmp_path, caplog):
    """H12: one line per column and one for all, however many files were written; the history says the same."""
    table = it.Table.create(tmp_path / "t", ROWS.schema)
    with caplog.at_level(logging.INFO):
        done = table.append(ROWS, options={"write.maxRowsPerSplit": "1"})
    assert done.files_added == 2
    assert truncation_lines(caplog) == [
        "Truncating statistics for column 'text' (min length: 3000, max length: 3000, strategy: drop)",
        f"Statistics truncated: 1 columns, estimated size reduction: {done.bytes_saved} bytes",
    ]
    metrics = last_metrics(tmp_path / "t")
    assert (metrics["numTruncatedColumns"], metrics["statsBytesSaved"]) == (1, done.bytes_saved)
    assert done.bytes_saved > 10_000


def test_a_write_without_long_values_says_nothing(tmp_path, caplog):
    table = it.Table.create(tmp_path / "t", ROWS.schema)
    with caplog.at_level(logging.INFO):
        table.append(ROWS, options={"stats.truncation.maxLength": "4000"})
    assert truncation_lines(caplog) == []
    assert "numTruncatedColumns" not in last_metrics(tmp_path / "t")


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.merge_splits(),
        lambda table: table.update("id = 1", {"text": "z" * 5000}),
        lambda table: table.delete("id = 1"),
        lambda table: table.merge(pa.table({"id": [9], "text": ["z" * 2000], "note": ["n"]}), on=["id"]),
        lambda table: table.overwrite(
            pa.table({"id": [1], "text": ["short"], "note": ["n"]}), where="id = 1"
        ),
    ],
    ids=["merge_splits", "update", "delete", "merge", "overwrite where"],
)
def test_rewrites_report_it_too(tmp_path, caplog, change):
    """All verbs that rewrite files write statistics anew and truncate them by the same rule."""
    table = it.Table.create(tmp_path / "t", ROWS.schema)
    table.append(ROWS)
    table.append(ROWS.slice(1))
    with caplog.at_level(logging.INFO):
        change(table)
    assert [text.partition(":")[0] for text in truncation_lines(caplog)] == [
        "Truncating statistics for column 'text' (min length",
        "Statistics truncated",
    ]
    assert last_metrics(tmp_path / "t")["numTruncatedColumns"] == 1


def test_an_unknown_strategy_warns_once_per_write_and_drops(tmp_path, caplog):
    table = it.Table.create(tmp_path / "t", ROWS.schema)
    for _ in range(2):
        caplog.clear()
        table.append(ROWS, options={"stats.truncation.strategy": "sideways", "write.maxRowsPerSplit": "1"})
        assert lines(caplog, logging.WARNING) == ["Unknown truncation strategy 'sideways', using 'drop'"]
    assert all("text" not in (add.min_values or {}) for add in table.log.snapshot().adds())


def test_a_column_can_have_its_own_limit_and_strategy(tmp_path):
    """H13: options and properties alike; the other columns keep the setting for all."""
    table = it.Table.create(tmp_path / "t", ROWS.schema)
    table.update_properties({"stats.truncation.strategy.text": "truncate"})
    table.append(ROWS, options={"stats.truncation.maxLength.NOTE": "20", "stats.truncation.maxLength": "100"})
    (add,) = table.log.snapshot().adds()
    assert add.min_values["text"] == "x" * 88 + " [TRUNCATED]"
    assert "note" not in add.min_values
    assert table.count("text LIKE 'x%' AND note >= 'a'") == 1


@pytest.mark.parametrize("key", ["stats.truncation.maxLength.nothere", "stats.truncation.strategy.nothere"])
def test_a_column_that_is_not_there_is_an_error(tmp_path, key):
    table = it.Table.create(tmp_path / "t", ROWS.schema)
    value = "truncate" if "strategy" in key else "20"
    with pytest.raises(OptionError, match="no column 'nothere'"):
        table.append(ROWS, options={key: value})
    with pytest.raises(OptionError, match="no column 'nothere'"):
        table.update_properties({key: value})
    with pytest.raises(OptionError, match="no column 'nothere'"):
        it.Table.create(tmp_path / "u", ROWS.schema, options={key: value})
    assert not it.Table.exists(tmp_path / "u")


def test_a_limit_that_is_no_number_is_an_error(tmp_path):
    table = it.Table.create(tmp_path / "t", ROWS.schema)
    with pytest.raises(OptionError, match="expected a whole number >= 1"):
        table.append(ROWS, options={"stats.truncation.maxLength.text": "many"})


def test_a_column_without_statistics_is_named_once_per_scan_when_debugging(tmp_path, caplog):
    table = it.Table.create(tmp_path / "t", ROWS.schema)
    table.append(ROWS, options={"write.maxRowsPerSplit": "1"})
    with caplog.at_level(logging.DEBUG, logger="indextables"):
        assert table.count("text = 'z' AND id = 1") == 0
    missing = [text for text in lines(caplog, logging.DEBUG) if text.startswith("Statistics missing")]
    assert missing == ["Statistics missing for column 'text', cannot skip file (1 of the 1 files to read)"]
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="indextables"):
        assert table.count("text = 'z'") == 0
    assert "Statistics missing" not in caplog.text


def test_checkpoints_skips_and_cooldown_are_logged(tmp_path, caplog):
    """The messages of 3.2.3, 3.6.2 and 3.6.4, at the levels the text gives."""
    table = it.Table.create(tmp_path / "t", ROWS.schema)
    table.append(ROWS)
    (add,) = table.log.snapshot().adds()
    with caplog.at_level(logging.DEBUG, logger="indextables"):
        table.checkpoint()
        table.log.record_skipped_file(add.path, "broken", "merge")
        assert table.log.filter_files_in_cooldown([add]) == []
        table.merge_splits()
    info, debug = lines(caplog, logging.INFO), lines(caplog, logging.DEBUG)
    assert "Created checkpoint at version 1 with 1 active files" in info
    (skip,) = table.log.skipped_files()
    (recorded,) = [text for text in info if text.startswith("Recorded skipped file")]
    assert recorded.startswith(f"Recorded skipped file: {add.path} (skip count: 1, retry after: 20")
    assert recorded.endswith("Z)")
    assert info.count("Filtered out 1 files currently in cooldown period") == 2
    assert any(text.startswith(f"File in cooldown: {add.path} (retry after: ") for text in debug)
    assert skip.skip_count == 1
