"""Version files that are not what a writer wrote, and the forms they may have (docs/behaviour.md, G)."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest

from indextables.errors import CorruptLogError, OptionError
from support.builder import HINT, LogBuilder, checkpoint_path, commit_path, paths_of

LINE = b'{"add":{"path":"b"}}\n'


@pytest.fixture
def builder():
    return LogBuilder().create().append("a")


def test_versions_and_checkpoints_are_compressed_by_default_and_the_hint_never(builder):
    """G1."""
    builder.checkpoint()
    for path in (commit_path(0), commit_path(1), checkpoint_path(1)):
        assert builder.store.get(path)[:4] == b"\x01\x01\x1f\x8b"
    assert builder.store.get(HINT).startswith(b"{")


def test_compression_can_be_off_and_mixed_tables_read(builder):
    """G1."""
    plain = LogBuilder(builder.store, {"transaction.compression.enabled": "false"}, builder.clock)
    plain.append("b").checkpoint()
    builder.append("c")
    plain.append("d")
    assert builder.store.get(commit_path(2)).startswith(b'{"add"')
    assert builder.store.get(checkpoint_path(2)).startswith(b"{")
    assert paths_of(builder.log()) == paths_of(plain.log()) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("read", ["true", "false"])
@pytest.mark.parametrize("written", ["true", "false"])
def test_either_setting_reads_what_either_wrote(written, read):
    """G1: the setting is about writing; a file says itself what it is."""
    key = "transaction.compression.enabled"
    builder = LogBuilder(options={key: written}).create().append("a").checkpoint().append("b")
    for path in (commit_path(1), checkpoint_path(1), commit_path(2)):
        assert builder.store.get(path).startswith(b"{") is (written == "false")
    assert paths_of(LogBuilder(builder.store, {key: read}, builder.clock).log()) == ["a", "b"]


@pytest.mark.parametrize("level", range(1, 10))
def test_every_gzip_level_reads_back(level):
    """G3."""
    builder = LogBuilder(options={"transaction.compression.gzip.level": level}).create().append("a")
    assert paths_of(builder.log()) == ["a"]


@pytest.mark.parametrize(
    "option", [{"gzip.level": 0}, {"gzip.level": 10}, {"gzip.level": "high"}, {"codec": "zstd"}]
)
def test_other_levels_and_codecs_are_refused_before_anything_is_written(option):
    """G3."""
    options = {f"transaction.compression.{key}": value for key, value in option.items()}
    with pytest.raises(OptionError, match="transaction.compression"):
        LogBuilder(options=options).create()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\x01", "cut off"),
        (b"\x01\xff" + LINE, "unknown compression codec"),
        (b"\x01\x01" + gzip.compress(LINE, mtime=0)[:-6], "00000000000000000002.json"),
        (b"\x01\x01" + b"nonsense", "00000000000000000002.json"),
        (b"PAR1", "00000000000000000002.json"),
        (b"\x00\x00", "00000000000000000002.json"),
    ],
)
def test_a_version_that_is_no_log_file_is_a_clear_error(builder, content, message):
    """G2."""
    builder.store.put(commit_path(2), content)
    with pytest.raises(CorruptLogError, match=message) as error:
        builder.log().list_files()
    assert "00000000000000000002.json" in str(error.value)
    assert paths_of(builder.log(), 1) == ["a"]


def test_a_decompression_bomb_is_refused(builder):
    """G2: within bounded memory."""
    bomb = gzip.compress(b"\n" * (240 << 20), 6)
    builder.store.put(commit_path(2), b"\x01\x01" + bomb)
    tracemalloc.start()
    with pytest.raises(CorruptLogError, match="bomb"):
        builder.log().list_files()
    assert tracemalloc.get_traced_memory()[1] < 200 << 20
    tracemalloc.stop()


def test_an_action_among_blank_lines_without_end_is_read(builder):
    """A10: many blank lines cost neither time nor memory."""
    text = b"\n" * (40 << 20) + b'{"remove":{"path":"a"}}\n'
    builder.store.put(commit_path(2), b"\x01\x01" + gzip.compress(text, 1))
    assert paths_of(builder.log()) == []
