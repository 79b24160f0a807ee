"""Late puts under freed numbers, on every kind of store: no reader takes one for what it listed, and no commit is made twice."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from indextables.errors import CommitError, StorageError
from indextables.log.transaction_log import TransactionLog
from indextables.storage.envelope import unpack
from indextables.storage.store import Store, open_store
from indextables.storage.stores import remote
from indextables.table import Table
from support.builder import LOG_DIR, commit_path
from support.faults import Around
from support.servers import azure_server, lossy_proxy, s3_options, s3_server  # noqa: F401

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture(params=["memory", "local", "s3", "azure"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return open_store(f"memory://{uuid.uuid4().hex}/t")
    if request.param == "local":
        return open_store(tmp_path / "t")
    server = request.getfixturevalue(f"{request.param}_server")
    return open_store(f"{server.root}/{uuid.uuid4().hex}", server.options)


class Losing(Around):
    """A store that sends the put of one version later, if ever, and says that it heard no answer."""

    def __init__(self, inner: Store, path: str) -> None:
        super().__init__(inner)
        self.path = path
        self.pending = None

    def _do(self, operation, path, call):
        if (operation, path) == ("put_if_absent", self.path):
            self.pending = call
            raise StorageError("no answer")
        return call()


class Interrupted(Around):
    """A store in which something happens before the first read of one file."""

    def __init__(self, inner: Store, path: str, meanwhile) -> None:
        super().__init__(inner)
        self.path, self.meanwhile = path, meanwhile

    def _do(self, operation, path, call):
        if (operation, path) == ("get", self.path) and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return call()


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def opened(store: Store) -> Table:
    log = TransactionLog.open(store.uri, store=store)
    return Table(log, log.snapshot())


def ids(table: Table) -> list[int]:
    return sorted(table.scan().read_all()["id"].to_pylist())


def erase_history(table: Table, store: Store) -> None:
    """Truncate, and let the fences go as well, oldest first, as a later cleanup does."""
    table.truncate_history()
    for version in range(table.version):
        store.delete(commit_path(version))


def test_a_reader_that_listed_a_version_does_not_take_a_late_put_under_its_number_for_it(store: Store):
    TransactionLog.open(store.uri, store=store).initialize(SCHEMA)
    late = Losing(store, commit_path(1))
    with pytest.raises(CommitError) as error:
        opened(late).append(rows(99))
    assert error.value.outcome == "unknown"
    writer = opened(store)
    writer.append(rows(1))

    def others_go_on() -> None:
        writer.append(rows(2))
        erase_history(writer, store)
        assert late.pending(), "the late put creates the number that was freed"
        # A store far away still has the bytes that were listed, and might give these.
        remote.forget_objects()

    reader = Interrupted(store, commit_path(1), others_go_on)
    table = opened(reader)
    assert reader.meanwhile is None
    assert (table.version, ids(table)) == (2, [1, 2])


@pytest.mark.parametrize("names_commits", [True, False])
def test_a_lost_answer_and_a_strangers_late_put_do_not_make_a_commit_twice_on_s3(s3_server, names_commits):  # noqa: F811
    """The answer to the put of version 1 is lost. Until the writer looks, it was merged and retired."""
    root = f"{s3_server.root}/{uuid.uuid4().hex}"
    direct = open_store(root, s3_server.options)
    TransactionLog.open(root, store=direct).initialize(SCHEMA)
    other = opened(direct)
    stranger = Losing(direct, commit_path(1))
    with pytest.raises(CommitError):
        opened(stranger).append(rows(50))
    state = {"armed": False, "put": False}

    def lose(method: str, path: str) -> str | None:
        if not state["armed"] or not path.endswith(commit_path(1)):
            return None
        if method == "PUT":
            state["put"] = True
            return "reply"
        if state["put"]:
            state["armed"] = False
            other.append(rows(2))
            assert other.merge_splits().status == "SUCCESS"
            other.append(rows(3))
            erase_history(other, direct)
            if not names_commits:
                forget_commit_ids(direct, other.version)
            assert stranger.pending(), "the stranger's late put takes the number that was freed"
        return None

    with lossy_proxy(s3_server.endpoint, lose) as endpoint:
        table = opened(open_store(root, s3_options(endpoint)))
        state["armed"] = True
        if names_commits:
            assert table.append(rows(99)).version == 1
        else:
            with pytest.raises(CommitError) as error:
                table.append(rows(99))
            assert error.value.outcome == "unknown"
    assert not state["armed"]
    assert ids(opened(direct)) == [2, 3, 99]


def forget_commit_ids(store: Store, version: int) -> None:
    """Make a checkpoint one of 0.2.0, which named no commits."""
    path = f"{LOG_DIR}/{version:020d}.checkpoint.json"
    document = json.loads(unpack(store.get(path), name=path))
    assert document.pop("commitIds")
    store.put(path, json.dumps(document).encode())
    store.delete(f"{LOG_DIR}/_last_checkpoint")
