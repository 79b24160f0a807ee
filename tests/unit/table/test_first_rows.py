"""The first rows of a table: whatever fails on the way, the same call made again finishes what is there."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

import indextables as it
from harness.nursery import Nursery
from indextables.errors import Error, SchemaError, TableError
from indextables.ops.write.save import save
from indextables.options import Options
from indextables.storage.stores.memory import MemoryStore
from support.faults import Around, Crash, FaultyStore

ROWS = [{"id": 1, "message": "link up"}, {"id": 2, "message": "link down"}]
SCHEMA = pa.Table.from_pylist(ROWS).schema
OPTIONS = Options.of({"indexing.typemap.message": "text", "transaction.retry.baseDelayMs": "1"})


def _write(store, mode="error", rows=ROWS):
    log = it.TransactionLog.open(store.uri, OPTIONS, store=store)
    return save(log, rows, mode, OPTIONS, ())


def _rows(store):
    log = it.TransactionLog.open(store.uri, store=store)
    if not any(store.list("_transaction_log")):
        return [], 0
    return log.versions(), sum(add.num_records for add in log.list_files())


@pytest.mark.parametrize("mode", ["error", "ignore"])
@pytest.mark.parametrize("fault", ["error", "lost_reply", "crash", "crash_after"])
def test_whatever_fails_on_the_way_the_same_call_made_again_leaves_the_rows_once(fault, mode):
    left = set()
    for moment in itertools.count(1):
        store = MemoryStore()
        faulty = FaultyStore(store, moment, fault)
        acknowledged = False
        try:
            acknowledged = _write(faulty, mode).rows == len(ROWS)
        except (Error, Crash):
            pass
        if not faulty.fired:
            break
        versions, count = _rows(store)
        left.add((tuple(versions), count))
        if acknowledged or count:
            assert (versions, count) == ([0, 1], len(ROWS))
            if mode == "error":
                with pytest.raises(TableError, match="is a table already"):
                    _write(store, mode)
            else:
                assert _write(store, mode).rows == 0
        else:
            assert _write(store, mode).version == 1
        assert _rows(store) == ([0, 1], len(ROWS)), (moment, faulty.operations)
    assert left == {((), 0), ((0,), 0), ((0, 1), len(ROWS))}, "each of these states was left at least once"


def killed_write(job):
    """What the process does that is killed."""
    it.write(job["root"], ROWS, text="message")


@pytest.mark.slow
def test_a_killed_write_of_a_new_table_is_finished_by_the_next(tmp_path: Path) -> None:
    """kill -9 each time the process is about to touch a file of the table."""
    left = set()
    with Nursery() as nursery:
        for moment in itertools.count(1):
            root = tmp_path / f"t{moment}"
            notes = str(tmp_path / "notes")
            job = {
                "root": str(root), "notes": notes, "kill_at": moment,
                "work": "unit.table.test_first_rows:killed_write",
            }  # fmt: skip
            (end,) = nursery.run([job])
            if end == 0:
                break
            assert end < 0, Path(notes).read_text()
            rows = len(it.open(root)) if it.Table.exists(root) else None
            left.add(rows)
            if rows:
                with pytest.raises(TableError, match="is a table already"):
                    it.write(root, ROWS, text="message")
            else:
                assert it.write(root, ROWS, text="message").version == 1
            table = it.open(root)
            assert (table.version, table.scan().to_pylist()) == (1, ROWS)
            assert len(it.read(root, query="down")) == 1
    assert left == {None, 0, len(ROWS)}


class _AnotherFirst(Around):
    """Before version 1 is put, another writer puts its own."""

    def __init__(self, inner):
        super().__init__(inner)
        self.is_first = True

    def _do(self, operation, path, call):
        if operation == "put_if_absent" and path.endswith("1.json") and self.is_first:
            self.is_first = False
            assert _write(self.inner, rows=ROWS[:1]).version == 1
        return call()


@pytest.mark.parametrize("mode", ["error", "ignore"])
def test_of_two_writers_of_first_rows_one_writes_them(mode):
    """One has made version 0; before it commits, another takes that for unfinished and finishes it."""
    store = MemoryStore()
    if mode == "error":
        with pytest.raises(TableError, match="was written by another writer meanwhile; nothing was written"):
            _write(_AnotherFirst(store), mode)
    else:
        assert (_write(_AnotherFirst(store), mode).version) == 1
    assert _rows(store) == ([0, 1], 1)
    assert sum(meta.path.endswith(".split") for meta in store.list()) == 1


def test_a_table_that_was_created_and_never_written_takes_its_first_rows(tmp_path):
    for mode in ("error", "ignore", "append", "overwrite"):
        uri = tmp_path / mode
        it.Table.create(uri, SCHEMA)
        assert it.write(uri, ROWS, mode=mode).rows == 2
    it.Table.create(tmp_path / "t", SCHEMA)
    with pytest.raises(SchemaError, match="is a table with another schema"):
        it.Table.create(tmp_path / "t", pa.schema([("id", pa.int32())]), data={"id": [1]})
    with pytest.raises(SchemaError, match="message"):
        it.write(tmp_path / "t", {"id": [1], "message": [2]})
    it.open(tmp_path / "t").update_properties({"owner": "ann"})
    with pytest.raises(TableError, match="is a table already"):
        it.write(tmp_path / "t", ROWS)
