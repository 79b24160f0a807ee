"""The columnar engine answers as the reference engine does, from every form of checkpoint."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from indextables.log.replay import checkpoint_adds
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from support.builder import LogBuilder

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("notes", pa.list_(pa.string())),
    ]
)
FILTERS = [
    "id = 17",
    "id > 150",
    "id < 40 AND name = 'n03'",
    "name > 'n15' OR day = DATE '2024-01-03'",
    "day = DATE '2024-01-02' AND price < 4",
    "name IS NULL",
    "price IS NOT NULL",
    "NOT (id > 20)",
    "at >= TIMESTAMP '2024-01-01 00:00:05Z'",
]


def file(number: int, **fields: Any) -> AddAction:
    """An add with statistics for every column that can have them."""
    day = f"2024-01-{1 + number % 4:02d}"
    values: dict[str, Any] = {
        "path": f"day={day}/{number * 7919 % 1000:04d}-{number}.split",
        "partition_values": {"day": day if number % 9 else None},
        "size": 100 + number,
        "modification_time": 1_700_000_000_000 + number,
        "num_records": 10,
        "min_values": {"id": str(number * 10), "name": f"n{number:02d}", "price": str(number / 4)},
        "max_values": {"id": str(number * 10 + 9), "name": f"n{number + 2:02d}", "price": str(number / 2)},
        "stats": f'{{"nullCount":{{"id":0,"name":{number % 3},"price":{10 if number % 5 == 0 else 0}}}}}',
        "hotcache_start_offset": number,
        "hotcache_length": 50,
    }
    return AddAction(**{**values, **fields})


ODD = [
    file(30, min_values=None, max_values=None, num_records=None, stats=None),
    file(31, min_values=None, max_values=None, num_records=None,
         stats='{"numRecords":7,"minValues":{"id":5,"name":"a"},"maxValues":{"id":6},"nullCount":{"id":1}}'),
    file(32, stats="not json"),
    file(33, tags={"owner": "me", "empty": None}),
    file(34, min_values={"id": "x", "name": 'quote " \\ \n end', "price": "NaN"}),
    file(35, path='s3://elsewhere/dir/é"quoted\\.split'),
    file(36, partition_values={"day": None}, extra={"newField": {"deep": [1, 2]}}),
    file(37, max_values={"id": "99", "name": "zzz [TRUNCATED]"}),
    file(38, stats='{"nullCount":\n{"id":3}}'),
    file(39, min_values={}, max_values={}),
]  # fmt: skip


def log_with(adds: list[AddAction], tail: bool = True, **options: Any) -> TransactionLog:
    builder = LogBuilder(options=options).create(SCHEMA, ["day"]).append(*adds).checkpoint()
    if tail:
        builder.append(file(50), file(51)).remove(adds[0].path, adds[2].path)
        builder.append(file(4, size=777)).append(adds[0])
    return builder.log()


def same(found: pa.Table, wanted: pa.Table) -> None:
    assert found.schema == wanted.schema
    # As text, because NaN is not equal to itself.
    assert [str(row) for row in found.to_pylist()] == [str(row) for row in wanted.to_pylist()]


def check_same(log: TransactionLog, filters: list[str] = FILTERS) -> None:
    snapshot = log.snapshot()
    expected = snapshot.plan(engine="reference")
    same(snapshot.plan(engine="columnar").files, expected.files)
    for where in filters:
        found, wanted = (snapshot.plan(where, engine=name) for name in ("columnar", "reference"))
        same(found.files, wanted.files)
        assert found.metrics == wanted.metrics, where


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"transaction.compression.enabled": "false"},
        {"checkpoint.actionsPerPart": "7"},
        {"checkpoint.actionsPerPart": "7", "checkpoint.format": "json"},
        {"checkpoint.format": "parquet"},
        {"checkpoint.format": "parquet", "checkpoint.actionsPerPart": "7"},
    ],
)
def test_every_form_of_checkpoint_gives_the_files_the_reference_gives(options):
    """K1: columnar == reference, listing and pruning, with and without a tail after the checkpoint."""
    check_same(log_with([file(number) for number in range(25)], **options))
    check_same(log_with([file(number) for number in range(25)], tail=False, **options), FILTERS[:2])


@pytest.mark.parametrize("options", [{}, {"checkpoint.format": "parquet"}])
def test_adds_in_unusual_forms_are_read_like_any_other(options):
    """A12, K3: missing, misplaced or unreadable statistics, tags and unknown fields change no answer."""
    for odd in ODD:
        check_same(log_with([file(1), file(2), file(3), odd], **options), FILTERS[:1])
    check_same(log_with([file(number) for number in range(12)] + ODD, **options))


def test_a_log_without_a_checkpoint_is_answered_from_its_commits():
    """K1: the tail alone makes the table, an empty table included."""
    check_same(LogBuilder().create(SCHEMA, ["day"]).log())
    check_same(LogBuilder().create(SCHEMA, ["day"]).append(*(file(n) for n in range(5))).log())
    check_same(LogBuilder().create(SCHEMA).append(*(file(n) for n in range(5))).log())


def test_an_empty_checkpoint_with_a_tail():
    """K1: everything removed, then files again."""
    builder = LogBuilder().create(SCHEMA, ["day"]).append(file(1)).remove(file(1).path).checkpoint()
    check_same(builder.log())
    check_same(builder.append(file(2)).log())


def test_a_refresh_reads_only_the_new_commit():
    """F4: the base stays; its columns are neither read nor built again."""
    builder = LogBuilder().create(SCHEMA, ["day"]).append(*(file(n) for n in range(20))).checkpoint()
    log = builder.log()
    before = log.snapshot(max_staleness_s=0)
    before.plan("id > 100", columns=("size",))
    base = before.state.memo["columnar"].checkpoint
    builder.append(file(60)).remove(file(3).path)
    after = log.snapshot(max_staleness_s=0)
    read = base.bytes_read
    found = after.plan("id > 100", columns=("size",)).files
    assert after.state.memo["columnar"].checkpoint is base
    assert base.bytes_read == read
    assert found.equals(after.plan("id > 100", columns=("size",), engine="reference").files)
    assert before.plan(engine="columnar").files.equals(before.plan(engine="reference").files)


@pytest.mark.parametrize("seed", range(3))
def test_every_version_a_handle_has_seen_stays_right(seed):
    """F4: of a refreshed handle only new keys are looked up; older snapshots and files that come back count too."""
    dice = random.Random(seed)
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create(SCHEMA, ["day"])
    log = builder.append(*(file(number) for number in range(30))).checkpoint().log()
    live, seen = set(range(30)), []
    for _ in range(12):
        gone = dice.sample(sorted(live), 3)
        back = dice.sample(range(40), 2)
        builder.remove(*(file(number).path for number in gone)).append(
            *(file(number, size=7) for number in back)
        )
        live = (live - set(gone)) | set(back)
        seen.append(log.snapshot(max_staleness_s=0))
        for snapshot in dice.sample(seen, min(3, len(seen))):
            where = dice.choice(FILTERS)
            found, expected = (snapshot.plan(where, engine=name).files for name in ("columnar", "reference"))
            same(found, expected)
            same(snapshot.plan(engine="columnar").files, snapshot.plan(engine="reference").files)
    assert len({id(snapshot.state.memo) for snapshot in seen}) == 1


def test_a_tail_too_long_for_objects_that_cannot_be_folded_is_not_read_again(monkeypatch):
    """A refresh reads the new commit alone, however much was removed since the checkpoint."""
    monkeypatch.setattr("indextables.log.state.FOLD_KEYS", 5)
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create(SCHEMA, ["day"])
    builder.append(*(file(number) for number in range(30))).checkpoint()
    log = builder.remove(*(file(number).path for number in range(9))).log()
    before = log.snapshot(max_staleness_s=0)
    builder.remove(file(20).path)
    after = log.snapshot(max_staleness_s=0)
    assert after.state.memo is before.state.memo
    same(after.plan(engine="columnar").files, after.plan(engine="reference").files)


def test_only_the_columns_of_the_question_are_read():
    """A listing of sizes touches no statistics."""
    log = log_with([file(number) for number in range(9)])
    snapshot = log.snapshot()
    assert snapshot.plan(columns=("size",)).files.column_names == ["path", "size"]
    loaded = snapshot.state.memo["columnar"].checkpoint._pieces
    assert {leaf.column for leaf in loaded} == {"path", "size"}


def test_columns_beyond_the_memory_limit_are_read_again(monkeypatch):
    """The largest columns go first; answers stay the same."""
    monkeypatch.setattr(checkpoint_adds, "CACHED_BYTES", 100)
    log = log_with([file(number) for number in range(25)])
    check_same(log)
    assert {leaf.column for leaf in log.snapshot().state.memo["columnar"].checkpoint._pieces} == {"path"}
