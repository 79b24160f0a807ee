"""Local files: the order of the system calls that makes writes last, and what is left when one fails."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from indextables.errors import NotFoundError, StorageError
from indextables.storage.store import open_store
from indextables.storage.stores import durable
from indextables.storage.stores.local import LocalStore

VERSION_FILE = re.compile(r"[0-9]{20}[.]json")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "table"


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def record_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the calls that decide about durability, as 'fsync file', 'link', 'fsync directory' ..."""
    calls: list[str] = []

    def wrap(name: str) -> None:
        real = getattr(os, name)

        def call(*args, **kwargs):
            if name == "fsync":
                kind = "directory" if stat.S_ISDIR(os.fstat(args[0]).st_mode) else "file"
                calls.append(f"fsync {kind}")
            else:
                calls.append(name)
            return real(*args, **kwargs)

        monkeypatch.setattr(durable.os, name, call)

    for name in ("fsync", "link", "replace", "mkdir", "unlink"):
        wrap(name)
    return calls


def fail(monkeypatch: pytest.MonkeyPatch, name: str, code: int, when=lambda *args: True) -> None:
    real = getattr(os, name)

    def call(*args, **kwargs):
        if when(*args):
            raise OSError(code, os.strerror(code))
        return real(*args, **kwargs)

    monkeypatch.setattr(durable.os, name, call)


def write_before(directory: Path) -> None:
    """Use a directory once: the first write of a process also syncs the names of the directories above."""
    directory.mkdir(exist_ok=True)
    LocalStore(directory).put("before", b"")
    (directory / "before").unlink()


def is_directory(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def test_put_if_absent_syncs_the_file_links_it_and_syncs_the_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E1, E6: durable before visible, and the name durable before the call returns."""
    write_before(root)
    calls = record_calls(monkeypatch)
    assert LocalStore(root).put_if_absent("a", b"x")
    assert calls == ["fsync file", "link", "fsync directory", "unlink"]


def test_put_syncs_the_file_renames_it_and_syncs_the_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_before(root)
    calls = record_calls(monkeypatch)
    LocalStore(root).put("a", b"x")
    assert calls[:3] == ["fsync file", "replace", "fsync directory"]


def test_directories_that_had_to_be_made_are_synced_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_before(root.parent)
    calls = record_calls(monkeypatch)
    LocalStore(root).put_if_absent("log/sub/a", b"x")
    assert calls[:6] == ["mkdir", "fsync directory"] * 3


def test_directories_that_were_there_are_synced_by_the_first_write_of_a_process(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever made them may have been stopped before the sync."""
    write_before(root)
    (root / "log" / "sub").mkdir(parents=True)
    calls = record_calls(monkeypatch)
    LocalStore(root).put("log/sub/a", b"x")
    assert calls[:4] == ["fsync directory", "fsync directory", "fsync file", "replace"]
    calls.clear()
    LocalStore(root).put("log/sub/b", b"x")
    assert calls[:2] == ["fsync file", "replace"]


def test_a_loser_that_sees_the_file_writes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LocalStore(root).put("a", b"x")
    calls = record_calls(monkeypatch)
    assert not LocalStore(root).put_if_absent("a", b"y")
    assert calls == []


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK])
def test_without_hard_links_creation_is_exclusive_all_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """E1: O_EXCL where there are no links; exactly one of many threads wins."""
    fail(monkeypatch, "link", code)
    store = LocalStore(root)
    offers = [bytes([n]) * 100_000 for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda data: store.put_if_absent("log/v.json", data), offers))
    assert sum(answers) == 1
    assert store.get("log/v.json") == offers[answers.index(True)]
    assert names(root / "log") == ["v.json"]


def test_without_hard_links_a_failed_creation_frees_the_name(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E5: a failed put burns no version number."""
    root.mkdir()
    fail(monkeypatch, "link", errno.EPERM)
    synced: list[int] = []
    fail(monkeypatch, "fsync", errno.ENOSPC, when=lambda fd: synced.append(fd) or len(synced) == 2)
    with pytest.raises(StorageError, match="No space left"):
        LocalStore(root).put_if_absent("a", b"x")
    assert names(root) == []


def test_another_error_of_link_is_not_taken_for_missing_support(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(monkeypatch, "link", errno.EIO)
    with pytest.raises(StorageError, match="Could not create"):
        LocalStore(root).put_if_absent("a", b"x")
    assert names(root) == []


def test_a_link_that_worked_but_was_reported_as_taken_is_ours(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E5: over NFS the answer to a link can get lost and its repetition find the name taken, by us."""
    real = os.link

    def link(*args, **kwargs):
        real(*args, **kwargs)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(durable.os, "link", link)
    assert LocalStore(root).put_if_absent("a", b"mine") is True
    assert LocalStore(root).get("a") == b"mine"
    assert names(root) == ["a"]


def test_a_full_disk_is_an_error_that_leaves_nothing_behind(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(root)
    store.put("log/1", b"old")
    fail(monkeypatch, "fsync", errno.ENOSPC, when=lambda fd: not is_directory(fd))
    for write in (store.put, store.put_if_absent):
        with pytest.raises(StorageError, match="No space left on device. Free some space") as caught:
            write("log/2", b"new")
        assert store.uri in str(caught.value)
        assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(StorageError):
        store.put("log/1", b"new")
    assert names(root / "log") == ["1"]
    assert store.get("log/1") == b"old"


def test_when_the_last_sync_fails_the_outcome_is_unknown_and_that_is_said(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E5: the caller learns that it must look; the file is there whole."""
    write_before(root)
    fail(monkeypatch, "fsync", errno.EIO, when=is_directory)
    with pytest.raises(StorageError):
        LocalStore(root).put_if_absent("a", b"x")
    assert LocalStore(root).get("a") == b"x"
    assert names(root) == ["a"]


def test_a_file_system_that_cannot_sync_directories_is_good_enough(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(monkeypatch, "fsync", errno.EINVAL, when=is_directory)
    assert LocalStore(root).put_if_absent("d/a", b"x")


_WRITER = """
import sys
from indextables.storage.stores.local import LocalStore
store = LocalStore(sys.argv[1])
for n in range(100000):
    store.put_if_absent(f"log/{n:020}.json", b"begin" + bytes(50_000) + b"end")
    store.put("log/_last_checkpoint", b"begin" + bytes(50_000) + b"end")
    print(n, flush=True)
"""


@pytest.mark.slow
def test_a_killed_writer_leaves_whole_files_and_temporaries_that_no_log_reader_takes(root: Path) -> None:
    """A6, C8, E6: kill -9 at an arbitrary moment, several times over."""
    for kill_after in (1, 3, 7):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(root / str(kill_after))], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        for _ in range(kill_after):
            acknowledged = int(writer.stdout.readline())
        writer.kill()
        writer.communicate()
        directory = root / str(kill_after) / "log"
        for name in names(directory):
            if name.startswith("."):
                assert name.endswith(".tmp")
                assert not VERSION_FILE.fullmatch(name)
            else:
                content = (directory / name).read_bytes()
                assert (content[:5], content[-3:], len(content)) == (b"begin", b"end", 50_008)
        versions = [name for name in names(directory) if VERSION_FILE.fullmatch(name)]
        assert versions == [f"{n:020}.json" for n in range(len(versions))]
        assert len(versions) > acknowledged


def test_the_temporary_of_a_write_is_hidden_and_beside_its_target(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A6: temporaries never look like log files."""
    seen: list[str] = []
    real = os.link
    monkeypatch.setattr(
        durable.os, "link", lambda source, target: (seen.append(source), real(source, target))[1]
    )
    LocalStore(root).put_if_absent("log/00000000000000000005.json", b"x")
    assert Path(seen[0]).parent == root / "log"
    assert Path(seen[0]).name.startswith(".")
    assert Path(seen[0]).name.endswith(".tmp")


def test_published_files_get_ordinary_permissions(root: Path) -> None:
    """A temporary of mkstemp is private; a table file must not be."""
    plain = Path(tempfile.mkdtemp()) / "plain"
    plain.write_bytes(b"")
    descriptor, private = tempfile.mkstemp()
    os.close(descriptor)
    assert stat.S_IMODE(os.stat(private).st_mode) == 0o600
    store = LocalStore(root)
    store.put_file("a", private)
    store.put("b", b"")
    store.put_if_absent("c", b"")
    for name in "abc":
        assert (root / name).stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EACCES])
def test_a_file_that_cannot_be_moved_is_copied(
    root: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    source = Path(tempfile.mkdtemp()) / "f"
    source.write_bytes(b"content" * 1000)
    fail(monkeypatch, "replace", code, when=lambda origin, target: origin == str(source))
    LocalStore(root).put_file("d/f", str(source))
    assert LocalStore(root).head("d/f").size == 7000
    assert (root / "d" / "f").read_bytes() == b"content" * 1000
    assert names(root / "d") == ["f"]
    assert source.exists()


def test_links_to_files_are_files_and_links_to_directories_are_not_followed(
    root: Path, tmp_path: Path
) -> None:
    """What is listed may be purged, so a listing stays inside the table."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"1")
    store = LocalStore(root)
    store.put("a", b"22")
    (root / "dir").symlink_to(outside)
    (root / "file").symlink_to(outside / "precious")
    (root / "dangling").symlink_to(outside / "gone")
    os.mkfifo(root / "pipe")
    assert [meta.path for meta in store.list()] == ["a", "file"]
    assert [meta.path for meta in store.list_level()] == ["a", "file"]
    assert [meta.path for meta in store.list("dir")] == ["dir/precious"]
    with pytest.raises(NotFoundError):
        store.head("dangling")


def test_a_listing_that_fails_raises(root: Path) -> None:
    """A7: never an empty table."""
    root.mkdir()
    (root / "log").symlink_to("log")
    for ask in (lambda: list(LocalStore(root).list("log")), lambda: LocalStore(root).list_level("log")):
        with pytest.raises(StorageError, match="Could not list") as caught:
            ask()
        assert not isinstance(caught.value, NotFoundError)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_directory_without_permission_is_an_error_not_an_empty_table(root: Path) -> None:
    store = LocalStore(root)
    store.put("log/a", b"")
    (root / "log").chmod(0)
    try:
        with pytest.raises(StorageError, match="permissions"):
            store.list_level("log")
        with pytest.raises(StorageError, match="permissions"):
            store.get("log/a")
    finally:
        (root / "log").chmod(0o755)


def test_a_file_in_the_place_of_the_table_holds_nothing_and_cannot_be_written_into(root: Path) -> None:
    root.write_bytes(b"just a file")
    store = LocalStore(root)
    assert list(store.list()) == []
    assert store.list_level("_transaction_log") == []
    with pytest.raises(NotFoundError):
        store.get("_transaction_log/x")
    with pytest.raises(StorageError, match="Not a directory") as caught:
        store.put_if_absent("_transaction_log/x", b"")
    assert "directories are needed" in str(caught.value)
    assert root.read_bytes() == b"just a file"


def test_nothing_is_made_by_opening_or_reading(root: Path) -> None:
    """A7: nothing is created."""
    store = open_store(root)
    list(store.list())
    store.delete("a/b")
    with pytest.raises(NotFoundError):
        store.get("a")
    assert not root.exists()


def test_a_relative_path_is_fixed_when_the_store_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("some/table")
    monkeypatch.chdir("/")
    store.put("a", b"1")
    assert (tmp_path / "some" / "table" / "a").read_bytes() == b"1"


def test_names_that_are_not_text_are_listed_and_read(root: Path) -> None:
    root.mkdir()
    with open(os.fsencode(root) + b"/bad\xff", "wb") as file:
        file.write(b"1")
    store = LocalStore(root)
    (meta,) = store.list()
    assert store.get(meta.path) == b"1"


def test_a_local_store_does_not_load_the_object_store_library() -> None:
    code = "import sys; from indextables.storage.store import open_store; open_store('/x'); print('obstore' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
