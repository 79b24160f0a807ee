"""The verbs that free space work where there is no room for a checkpoint."""

from __future__ import annotations

import pytest

from indextables.errors import StorageError
from indextables.ops.maintain.purge import PurgeRequest, run_purge
from indextables.ops.maintain.truncate_history import run_truncate
from support.builder import LogBuilder, paths_of
from support.faults import Around

ROOM = 2_000


class FullStore(Around):
    """A store with little room: what is deleted makes some, and a write that needs more fails."""

    def __init__(self, inner, room=ROOM):
        super().__init__(inner)
        self.room = room

    def _do(self, operation, path, call):
        if operation == "delete":
            self.room += sum(meta.size for meta in self.inner.list() if meta.path == path)
        return call()

    def put(self, path, data):
        self._take(path, len(data))
        super().put(path, data)

    def put_if_absent(self, path, data):
        self._take(path, len(data))
        return super().put_if_absent(path, data)

    def _take(self, path, size):
        if size > self.room:
            raise StorageError(f"Could not write {path}: No space left on device.", path=path, final=True)
        self.room -= size


def full(builder: LogBuilder, room: int = ROOM) -> tuple[LogBuilder, FullStore]:
    store = FullStore(builder.store, room)
    return LogBuilder(store, builder.options, builder.clock), store


def large() -> LogBuilder:
    """A log whose checkpoint needs more than there is room for."""
    plain = {"checkpoint.enabled": "false", "transaction.compression.enabled": "false"}
    return LogBuilder(options=plain).create().append(20).append(20)


@pytest.mark.parametrize("room", [ROOM, 0])
def test_truncate_lets_go_what_an_older_checkpoint_covers_to_make_room(room):
    builder = large().checkpoint().append(5).checkpoint().append(1)
    files = paths_of(builder.log())
    builder.wait(hours=2)
    tight, store = full(builder, room)
    with pytest.raises(StorageError, match="No space left"):
        tight.log().checkpoint()
    result = run_truncate(tight.log())
    assert (result.status, result.version, result.versions_deleted) == ("SUCCESS", 4, 4)
    assert store.room > ROOM
    assert paths_of(builder.log()) == files
    assert builder.log().versions() == [4]


def test_truncate_says_so_where_nothing_can_make_room():
    builder = large()
    builder.wait(hours=2)
    tight, _ = full(builder)
    with pytest.raises(StorageError, match="No space left"):
        run_truncate(tight.log())
    assert builder.log().versions() == [0, 1, 2]


@pytest.mark.parametrize("room", [ROOM, 0])
def test_purge_deletes_orphans_to_make_room_for_the_checkpoint_its_log_retention_needs(room):
    builder = large()
    builder.store.put("orphan.split", b"x" * 50_000)
    builder.wait(hours=24 * 30).append(1)
    builder.wait(hours=24 * 30)
    files = paths_of(builder.log())
    tight, store = full(builder, room)
    result = run_purge(tight.log(), PurgeRequest(log_retention_hours=24))
    assert (result.orphaned_files_found, result.orphaned_files_deleted) == (1, 1)
    assert result.bytes_deleted == 50_000
    assert result.transaction_logs_deleted > 0
    assert store.room > ROOM
    assert paths_of(builder.log()) == files


def test_purge_without_a_log_retention_needs_no_room_at_all():
    builder = large()
    builder.store.put("orphan.split", b"x" * 50_000)
    builder.wait(hours=24 * 30)
    tight, store = full(builder, room=0)
    result = run_purge(tight.log(), PurgeRequest())
    assert (result.orphaned_files_found, result.orphaned_files_deleted) == (1, 1)
    assert store.room == 50_000
