"""A companion answers as a table with the source's live rows does: fresh, stale, half built, at older versions.

Histories are drawn: of a log that is written here (deletion vectors, mapped columns, widened types), and of tables
written by delta-rs. After every commit the same questions go to the companion and to a table that holds the live
rows of the source alone. The source stays as it was, byte by byte.
"""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest

import indextables as it
from indextables.companion.refresh import status_of
from indextables.errors import Error, NotATableError
from indextables.log.transaction_log import TransactionLog
from indextables.runtime import LOCAL
from indextables.split.open_splits import forget_splits
from indextables.storage.store import open_store
from indextables.storage.stores.memory import MemoryStore
from support.companions import (
    COLUMNS,
    OPERATIONS,
    SINGLE,
    CraftedSource,
    Indexes,
    bytes_of,
    oracle_of,
    questions,
    rows_of,
)
from support.faults import Crash, FaultyStore
from support.sampled import first_of

STEPS = 6
QUESTIONS = 6


@pytest.mark.slow
@pytest.mark.parametrize("seed", first_of(6, range(60)))
def test_every_answer_is_that_of_the_live_rows_alone(tmp_path, seed, record_property):
    rng = random.Random(seed)
    source = CraftedSource.make(open_store(tmp_path / "source"), rng)
    source.append(rng.choice([1, 4]))
    indexes = Indexes(str(tmp_path / "source"), tmp_path, source.indexed, rng)
    history, versions, number = [], [], 0
    for step in range(STEPS):
        indexes.before_commit()
        version = source.log.version
        while source.log.version == version:
            history.append(source.step())
        indexes.after_commit()
        before = bytes_of(tmp_path / "source")
        names = dict(source.names)
        oracle = oracle_of(str(tmp_path / f"rows{step}"), source.rows(), names, source.indexed)
        versions.append((source.log.version, oracle, names, source.renamed(questions(rng, 3))))
        named = {"level": names["level"], "n": names["n"]}
        drawn = source.renamed(questions(rng, QUESTIONS))
        number += indexes.assert_alike(oracle, drawn, (seed, history), **named)
        version, then, names, earlier = rng.choice(versions)
        named = {"level": names["level"], "n": names["n"]}
        number += indexes.assert_alike(then, earlier, (seed, history, version), version, **named)
        assert bytes_of(tmp_path / "source") == before
    assert number > STEPS * QUESTIONS * 3
    record_property("questions", number)


@pytest.mark.slow
@pytest.mark.parametrize("seed", first_of(3, range(30)))
def test_tables_of_delta_rs_are_searched_as_they_are(tmp_path, seed, record_property):
    """Appends, deletes, updates, merges, compaction, z-order, vacuum, new columns, checkpoints."""
    import deltalake

    rng = random.Random(seed)
    path = str(tmp_path / "source")
    by = ["level"] if rng.random() < 0.4 else None
    deltalake.write_deltalake(path, rows_of(rng, 0, 60), partition_by=by)
    columns = {"msg": "text"} if by else COLUMNS
    indexes = Indexes(path, tmp_path, columns, rng)

    def change(number):
        table = deltalake.DeltaTable(path)
        choice = rng.choice(
            [
                "append",
                "append",
                "delete",
                "update",
                "merge",
                "compact",
                "z",
                "vacuum",
                "column",
                "checkpoint",
            ]
        )
        new = rows_of(rng, number * 1000, rng.choice([1, 20, 80]))
        if choice == "append":
            deltalake.write_deltalake(path, new, mode="append", schema_mode="merge")
        elif choice == "delete":
            table.delete(f"n < {rng.randrange(40)}")
        elif choice == "update":
            table.update(updates={"msg": "'disk x7 updated'"}, predicate=f"n > {rng.randrange(60, 100)}")
        elif choice == "merge":
            some = pa.concat_tables([new, rows_of(rng, (number - 1) * 1000, 5)])
            merging = table.merge(some, "s.id = t.id", source_alias="s", target_alias="t")
            merging.when_matched_update({"msg": "s.msg"}).when_not_matched_insert(
                {name: f"s.{name}" for name in some.column_names}
            ).execute()
        elif choice == "compact":
            table.optimize.compact()
        elif choice == "z":
            table.optimize.z_order(["id"])
        elif choice == "vacuum":
            table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        elif choice == "column":
            wider = new.append_column(f"c{number}", pa.array([number] * new.num_rows, pa.int64()))
            deltalake.write_deltalake(path, wider, mode="append", schema_mode="merge")
        else:
            table.create_checkpoint()
        return choice

    history, total = [], 0
    for number in range(1, 7):
        indexes.before_commit()
        version = deltalake.DeltaTable(path).version()
        while deltalake.DeltaTable(path).version() == version:
            history.append(change(number))
        indexes.after_commit()
        before = bytes_of(path)
        live = it.DeltaTable.open(path).scan().read_all()
        oracle = it.Table.create(
            str(tmp_path / f"rows{number}"), live.schema, data=live if live.num_rows else None,
            options={f"indexing.typemap.{name}": kind for name, kind in columns.items()},
        )  # fmt: skip
        drawn = [
            (query, where) for query, where in questions(rng, QUESTIONS) if not by or "level:" not in query
        ]
        total += indexes.assert_alike(oracle, drawn, (seed, history))
        assert bytes_of(path) == before
    record_property("questions", total)


@pytest.mark.parametrize("mode", ["error", "lost_reply", "crash", "crash_after"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_dies_at_any_moment_leaves_a_companion_that_answers(tmp_path, monkeypatch, operation, mode):
    monkeypatch.setattr("indextables.companion.refresh.SPLITS_PER_COMMIT", 2)
    place = str(tmp_path / "source")
    source = CraftedSource.make(open_store(place), random.Random(7))
    source.append(2)
    made = MemoryStore()
    if operation != "build":
        OPERATIONS["build"](TransactionLog(made, SINGLE, LOCAL), place)
    source.delete_rows()
    source.append(2)
    source.drop_file()
    if operation == "merge":
        OPERATIONS["refresh"](TransactionLog(made, SINGLE, LOCAL), place)
        source.append(1)
    oracle = oracle_of(str(tmp_path / "rows"), source.rows(), source.names)
    expected = {word: sorted(_ids(oracle.search(f"msg:{word}", columns=["id"]))) for word in ("disk", "x3")}
    for moment in itertools.count(1):
        inner = MemoryStore()
        for meta in made.list():
            inner.put(meta.path, made.get(meta.path))
        store = FaultyStore(inner, moment, mode)
        try:
            OPERATIONS[operation](TransactionLog(store, SINGLE, LOCAL), place)
        except (Error, Crash):
            pass
        # What is open was read from the store of the process that died.
        forget_splits()
        after = TransactionLog(inner, SINGLE, LOCAL)
        if operation != "build" or _is_there(after):
            _assert_answers(after, expected, moment)
        OPERATIONS[operation](TransactionLog(inner, SINGLE, LOCAL), place)
        after = TransactionLog(inner, SINGLE, LOCAL)
        _assert_answers(after, expected, moment)
        assert status_of(after).files_stale == (1 if operation == "merge" else 0)
        if not store.fired:
            break
    assert moment > 8


def _is_there(log):
    try:
        return log.snapshot(max_staleness_s=0) is not None
    except NotATableError:
        return False


def _assert_answers(log, expected, moment):
    from indextables.companion.opening import open_version

    table = it.Table(log, open_version(log, max_staleness_s=0))
    for word, found in expected.items():
        assert sorted(_ids(table.search(f"msg:{word}", columns=["id"]))) == found, (moment, word)
        assert table.count(query=f"msg:{word}") == len(found), (moment, word)


def _ids(reader):
    return reader.read_all().column("id").to_pylist()
