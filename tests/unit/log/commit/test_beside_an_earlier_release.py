"""Writers of this tree and cleaners, writers and readers of 0.2.0 on one table: nothing acknowledged is lost or doubled.

The earlier release runs in a process of its own, from the commit that RELEASES.md names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from indextables.errors import CommitError
from indextables.log.transaction_log import TransactionLog
from indextables.storage.store import open_store
from indextables.table import Table
from support.builder import LOG_DIR, commit_path
from support.earlier import WHY_SKIPPED, unpack_release
from support.faults import Around

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64())])
EARLIER = """
import json, sys
import pyarrow as pa
import indextables as it
assert it.__version__ == "0.2.0", it.__version__
schema = pa.schema([("id", pa.int64())])
table = it.Table.open(sys.argv[1]) if it.Table.exists(sys.argv[1]) else it.Table.create(sys.argv[1], schema)
for verb, *values in json.loads(sys.argv[2]):
    if verb == "append":
        table.append(pa.table({"id": pa.array(values, pa.int64())}))
    elif verb == "merge":
        assert table.merge_splits().status == "SUCCESS"
    else:
        getattr(table, verb)()
print(json.dumps([table.version, sorted(table.scan().read_all()["id"].to_pylist())]))
"""


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory):
    """A function that runs verbs of 0.2.0 on a table, and gives its version and rows as that release reads them."""
    src = unpack_release("0.2.0", tmp_path_factory.mktemp("earlier"))
    if src is None:
        pytest.skip(WHY_SKIPPED)

    def run(path: Path, *verbs: tuple[str | int, ...]) -> tuple[int, list[int]]:
        done = subprocess.run(
            [sys.executable, "-c", EARLIER, str(path), json.dumps(verbs)],
            env={**os.environ, "PYTHONPATH": str(src)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        version, ids = json.loads(done.stdout)
        return version, ids

    return run


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(path: Path) -> list[int]:
    return sorted(Table.open(str(path)).scan().read_all()["id"].to_pylist())


class Paused(Around):
    """A store in which others go on before or after the first put of a version."""

    def __init__(self, inner, moment: str, meanwhile) -> None:
        super().__init__(inner)
        self.moment, self.meanwhile = moment, meanwhile

    def _do(self, operation, path, call):
        is_version = operation == "put_if_absent" and path == commit_path(2)
        if is_version and self.moment == "before":
            self._go_on()
        done = call()
        if is_version and self.moment == "after":
            self._go_on()
        return done

    def _go_on(self) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()


def grow_old(path: Path) -> None:
    """Let every log file seem two hours old, so that the earlier release leaves no fence."""
    for file in (path / LOG_DIR).iterdir():
        status = file.stat()
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns - 2 * 3600 * 10**9))


@pytest.mark.parametrize("fences", [True, False], ids=["fences", "no fences"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_earlier_release_that_cleans_up_is_safe_for_a_writer_that_pauses(
    earlier, tmp_path, moment, fences
):
    path = tmp_path / "t"
    Table.create(str(path), SCHEMA).append(rows(1))

    def meanwhile() -> None:
        earlier(path, ("append", 2), ("append", 3))
        if not fences:
            grow_old(path)
        earlier(path, ("merge",), ("truncate_history",))

    store = Paused(open_store(path), moment, meanwhile)
    log = TransactionLog.open(store.uri, store=store)
    table = Table(log, log.snapshot())
    expected = [1, 2, 3, 99]
    if fences:
        table.append(rows(99))
    else:
        # The checkpoint of the earlier release names no commits, and the version that followed is gone.
        with pytest.raises(CommitError) as error:
            table.append(rows(99))
        assert error.value.outcome == "unknown"
        expected = [1, 2, 3] if moment == "before" else [1, 2, 3, 99]
    assert ids(path) == expected
    assert earlier(path) == (Table.open(str(path)).version, expected)


def test_each_release_reads_what_the_other_wrote_checkpointed_and_truncated(earlier, tmp_path):
    path = tmp_path / "t"
    table = Table.create(str(path), SCHEMA)
    table.append(rows(1))
    assert earlier(path, ("append", 2), ("truncate_history",)) == (2, [1, 2])
    table.refresh()
    table.append(rows(3))
    table.truncate_history()
    assert earlier(path, ("append", 4)) == (4, [1, 2, 3, 4])
    assert ids(path) == [1, 2, 3, 4]


def test_a_table_of_the_earlier_release_is_changed_in_its_ways_and_stays_readable_to_it(earlier, tmp_path):
    path = tmp_path / "t"
    assert earlier(path, ("append", *range(10))) == (1, [*range(10)])
    table = Table.open(str(path))
    assert table.delete("id = 3").files_rewritten == 1
    assert table.update("id = 4", {"id": 40}).rows_updated == 1
    assert earlier(path) == (3, [0, 1, 2, 5, 6, 7, 8, 9, 40])


def test_the_first_vector_of_a_new_table_keeps_the_earlier_release_out(earlier, tmp_path):
    path = tmp_path / "t"
    table = Table.create(str(path), SCHEMA)
    assert earlier(path, ("append", *range(10))) == (1, [*range(10)])
    assert table.refresh().delete("id = 3").files_rewritten == 0
    with pytest.raises(AssertionError, match="needs the reader feature.*deletionVectors"):
        earlier(path)
    assert ids(path) == [n for n in range(10) if n != 3]
