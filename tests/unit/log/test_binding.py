"""Log files are bound to their table and version: a file in another's place is damage, never other rows."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import CorruptLogError, DamagedSplitError, MissingVersionError, VersionNotFoundError
from indextables.storage.envelope import pack, unpack
from support.builder import HINT, LogBuilder, checkpoint_path, commit_path, paths_of

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])


def rows(word: str) -> pa.Table:
    return pa.table({"n": [1, 2, 3], "text": [word, f"{word} one", f"{word} two"]}, SCHEMA)


def swapped(path: str, source: LogBuilder, target: LogBuilder, other: str | None = None) -> LogBuilder:
    """The target with a file of the source (by default of the same name) in the place of its own."""
    return target.damage(path, source.store.get(other or path))


def test_a_version_replaced_by_a_copy_of_another_version_is_an_error_naming_both():
    builder = LogBuilder().create().append("a").append("b").append("c")
    swapped(commit_path(3), builder, builder, commit_path(1))
    with pytest.raises(CorruptLogError, match="version 3.*holds the commit of version 1"):
        builder.log().snapshot()
    assert paths_of(builder.log(), 2) == ["a", "b"]


def test_the_newest_version_replaced_by_a_copy_of_version_0_is_an_error():
    """The creation of a table has no commitInfo, and no other version looks like it."""
    builder = LogBuilder().create().append("a").append("b")
    swapped(commit_path(2), builder, builder, commit_path(0))
    with pytest.raises(CorruptLogError, match="version 2.*holds the commit of version 0"):
        builder.log().snapshot()


@pytest.mark.parametrize("version", [0, 2, 3])
def test_a_version_of_another_table_is_an_error_naming_both_tables(version):
    builder = LogBuilder().create().append("a").append("b").append("c")
    other = LogBuilder().create().append("x").append("y").append("z")
    ids = {builder.log().metadata().id, other.log().metadata().id}
    swapped(commit_path(version), other, builder)
    with pytest.raises(CorruptLogError, match="belongs to the table") as caught:
        builder.log().snapshot()
    assert {caught.value.found, caught.value.table_id} == ids


def test_version_0_of_another_table_is_noticed_when_it_is_opened_by_itself():
    builder = LogBuilder().create().append("a")
    swapped(commit_path(0), LogBuilder().create(), builder)
    with pytest.raises(CorruptLogError, match="belongs to the table"):
        builder.log().snapshot(version=0)


def test_a_handle_that_knows_the_table_notices_a_foreign_commit_too():
    builder = LogBuilder().create().append("a")
    log = builder.log()
    assert log.latest_version() == 1
    other = LogBuilder().create().append("x").append("y")
    builder.store.put(commit_path(2), other.store.get(commit_path(2)))
    with pytest.raises(CorruptLogError, match="belongs to the table"):
        log.snapshot(max_staleness_s=0)


def test_foreign_commits_below_the_checkpoint_are_noticed_by_whoever_reads_them():
    builder = LogBuilder().create().append("a").append("b").checkpoint().append("c")
    other = LogBuilder().create().append("x").append("y")
    swapped(commit_path(1), other, builder)
    log = builder.log()
    assert paths_of(log) == ["a", "b", "c"]
    for question in (lambda: log.read_version(1), log.history, lambda: log.snapshot(version=1)):
        with pytest.raises(CorruptLogError, match="belongs to the table"):
            question()


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_checkpoint_of_another_version_is_passed_over(form, caplog):
    builder = LogBuilder(options={"checkpoint.format": form}).create().append("a").checkpoint()
    first = builder.log().latest_version()
    builder.append("b").append("c").checkpoint()
    last = builder.log().latest_version()
    builder.hint(None)
    swapped(checkpoint_path(last, form), builder, builder, checkpoint_path(first, form))
    with caplog.at_level(logging.WARNING):
        assert paths_of(builder.log()) == ["a", "b", "c"]
    assert f"holds the checkpoint of version {first}" in caplog.text


def test_parts_of_a_checkpoint_are_bound_by_their_manifest():
    options = {"checkpoint.actionsPerPart": 2, "checkpoint.format": "json"}
    builder = LogBuilder(options=options).create().append("a", "b", "c").checkpoint().append("d").checkpoint()
    builder.hint(None)
    swapped(checkpoint_path(2), builder, builder, checkpoint_path(1))
    assert paths_of(builder.log()) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("tail", [0, 1])
def test_a_checkpoint_of_another_table_is_passed_over(tail):
    builder = LogBuilder().create().append("a").append("b").checkpoint().hint(None)
    other = LogBuilder().create().append("x").append("y").checkpoint()
    for number in range(tail):
        builder.append(f"c{number}")
    swapped(checkpoint_path(2), other, builder)
    expected = ["a", "b", *(f"c{number}" for number in range(tail))]
    assert paths_of(builder.log()) == expected


def test_a_checkpoint_of_another_table_with_nothing_below_it_is_an_error():
    builder = LogBuilder().create().append("a").append("b").checkpoint().hint(None).append("c")
    other = LogBuilder().create().append("x").append("y").checkpoint()
    swapped(checkpoint_path(2), other, builder).lose(commit_path(0), commit_path(1))
    with pytest.raises(MissingVersionError):
        builder.log().snapshot()


def test_a_checkpoint_that_was_replaced_after_a_handle_opened_is_not_mixed_with_the_commits_it_knows():
    """The repaired log of a table has checkpoints of the same names, and other files in them."""
    builder = LogBuilder().create().append("a").checkpoint().append("b").hint(None)
    snapshot = builder.log().snapshot()
    repaired = LogBuilder().create().append("x").checkpoint()
    swapped(checkpoint_path(1), repaired, builder)
    assert sorted(add.path for add in snapshot.adds()) == ["a", "b"]


def test_a_handle_on_a_log_that_was_replaced_whole_says_what_is_left():
    builder = LogBuilder().create().append("a").checkpoint().append("b").hint(None)
    snapshot = builder.log().snapshot()
    repaired = LogBuilder().create().append("x").checkpoint()
    for path in (commit_path(0), commit_path(1), checkpoint_path(1), HINT):
        swapped(path, repaired, builder)
    builder.lose(commit_path(2))
    with pytest.raises(VersionNotFoundError, match="no version 2; available: 0-1"):
        list(snapshot.adds())


def test_a_checkpoint_that_lost_lines_is_passed_over():
    """A JSON document without its hint says itself how many files it lists."""
    options = {"transaction.compression.enabled": "false"}
    builder = LogBuilder(options=options).create().append("a", "b", "c").checkpoint().hint(None)
    text = builder.store.get(checkpoint_path(1))
    lines = [line for line in text.split(b"\n") if b'"path":"b"' not in line]
    builder.damage(checkpoint_path(1), b"\n".join(lines))
    assert paths_of(builder.log()) == ["a", "b", "c"]


def test_a_hint_with_other_counts_than_the_checkpoint_is_not_believed(caplog):
    builder = LogBuilder().create().append("a", "b", "c").checkpoint()
    hint = {**msgspec.json.decode(builder.store.get(HINT)), "numFiles": 5_000_000_000, "size": 1}
    builder.hint(msgspec.json.encode(hint))
    with caplog.at_level(logging.WARNING):
        snapshot = builder.log().snapshot()
    assert snapshot.num_files_hint == 3
    assert "using the checkpoint" in caplog.text


def test_commits_without_a_table_id_or_version_are_accepted():
    """Other writers, and older ones, do not bind their files."""
    builder = LogBuilder().create().append("a").append("b")
    for version in (1, 2):
        text = unpack(builder.store.get(commit_path(version)), name="x")
        lines = [msgspec.json.decode(line) for line in text.splitlines()]
        for field in ("tableId", "version", "crc32"):
            del lines[-1]["commitInfo"][field]
        builder.damage(commit_path(version), b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    assert paths_of(builder.log()) == ["a", "b"]


def test_commits_name_their_table_and_version():
    builder = LogBuilder().create().append("a").append("b")
    log = builder.log()
    for version in (1, 2):
        info = log.read_version(version)[-1]
        assert (info.table_id, info.version) == (log.metadata().id, version)


def test_splits_of_equal_size_that_changed_places_are_noticed(tmp_path):
    """Each by the checksum of its footer, which stands in its add."""
    table = it.Table.create(str(tmp_path / "t"), SCHEMA, options={"indexing.typemap.text": "text"})
    for number in range(12):
        table.append(rows(f"word{number:02d}"))
    by_size: dict[int, list[Path]] = {}
    for path in (tmp_path / "t").glob("*.split"):
        by_size.setdefault(path.stat().st_size, []).append(path)
    first, second = next(paths for paths in by_size.values() if len(paths) > 1)[:2]
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    again = it.Table.open(str(tmp_path / "t"))
    for question in (
        lambda: again.scan().read_all(),
        lambda: again.search("text:one").read_all(),
        lambda: again.count(query="text:one"),
        lambda: again.delete("n = 1"),
    ):
        with pytest.raises(DamagedSplitError, match="not the split that was written"):
            question()


def test_packing_is_no_part_of_the_binding():
    """The same lines in another envelope are the same commit."""
    builder = LogBuilder().create().append("a")
    plain = unpack(builder.store.get(commit_path(1)), name="x")
    builder.damage(commit_path(1), plain)
    assert paths_of(builder.log()) == ["a"]
    builder.damage(commit_path(1), pack(plain, builder.log().options.compression))
    assert paths_of(builder.log()) == ["a"]


PLAIN = {"transaction.compression.enabled": "false"}


def test_a_changed_digit_in_a_plain_commit_is_noticed():
    builder = LogBuilder(options=PLAIN).create().append("a").append("b")
    text = builder.store.get(commit_path(1))
    builder.damage(commit_path(1), text.replace(b'"numRecords":10', b'"numRecords":11'))
    with pytest.raises(CorruptLogError, match="version 1.*checksum"):
        builder.log().snapshot()


def test_a_changed_letter_in_a_plain_version_0_is_noticed():
    builder = LogBuilder(options=PLAIN).create().append("a")
    text = builder.store.get(commit_path(0))
    builder.damage(commit_path(0), text.replace(b"name", b"nane", 1))
    with pytest.raises(CorruptLogError, match="version 0.*checksum"):
        builder.log().snapshot()


def test_a_plain_commit_cut_at_the_end_of_a_line_is_noticed():
    builder = LogBuilder(options=PLAIN).create().append("a", "b", "c").append("d")
    text = builder.store.get(commit_path(1))
    builder.damage(commit_path(1), b"".join(text.splitlines(keepends=True)[:2]))
    with pytest.raises(CorruptLogError, match="version 1 was cut short"):
        builder.log().snapshot()


def test_a_changed_digit_in_a_plain_checkpoint_is_noticed_without_its_hint():
    builder = LogBuilder(options=PLAIN).create().append("a").append("b").checkpoint().hint(None)
    text = builder.store.get(checkpoint_path(2))
    builder.damage(checkpoint_path(2), text.replace(b'"numRecords":10', b'"numRecords":99'))
    assert builder.log().snapshot().num_records == 20


def test_a_copy_of_version_0_is_no_later_version():
    builder = LogBuilder().create().append("a")
    builder.store.put(commit_path(2), builder.store.get(commit_path(0)))
    with pytest.raises(CorruptLogError, match="holds the commit of version 0"):
        builder.log().snapshot()
