"""What every store does, run over all of them: memory, local files, S3 and Azure."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from indextables.errors import NotFoundError, StorageError, TableError
from indextables.storage.store import ObjectMeta, Store, StoreSpec, open_store, resolve
from indextables.storage.stores.memory import MemoryStore
from support.faults import CountingStore, FaultyStore
from support.servers import azure_server, gs_server, s3_server  # noqa: F401

KINDS = ["memory", "local", "s3", "azure", "gs", "wrapped"]
AWKWARD = [
    "a b/c d.json",
    "a+b=c&d.json",
    "date=2024-01-01/x%3Ay%20z.json",
    "100%/%/%25.json",
    "ümläut/日本語/🦀.json",
    "e\u0301/\u00e9.json",
    "[x]{y}(z)/#1?2*3.json",
    "q'uo\"te/semi;comma,.json",
    "_hidden/.dot/~tilde",
    "tail /space ",
]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of every kind."""
    if request.param == "memory":
        return open_store(f"memory://{uuid.uuid4().hex}/table")
    if request.param == "wrapped":
        return CountingStore(FaultyStore(MemoryStore(), fail_at=0))
    if request.param == "local":
        return open_store(tmp_path / "some where" / "100%")
    server = request.getfixturevalue(f"{request.param}_server")
    return open_store(f"{server.root}/{uuid.uuid4().hex}/some where", server.options)


def paths(found) -> list[str]:
    return [meta.path for meta in found]


def test_every_kind_fits_the_protocol(store: Store) -> None:
    assert isinstance(store, Store)
    assert not store.uri.endswith("/")
    assert store.uri in repr(store) or "100%" in repr(store) or isinstance(store, CountingStore)


@pytest.mark.parametrize(
    "data", [b"", b"x", bytes(range(256)) * 5, os.urandom(1 << 20)], ids=["empty", "one", "all", "MiB"]
)
def test_what_is_put_is_what_is_got(store: Store, data: bytes) -> None:
    store.put("log/a.bin", data)
    assert store.get("log/a.bin") == data
    assert isinstance(store.get("log/a.bin"), bytes)
    assert store.head("log/a.bin").size == len(data)


def test_a_large_object_arrives_whole(store: Store) -> None:
    data = os.urandom(1 << 20) * 20
    store.put("large", data)
    assert store.get("large") == data
    assert store.get_range("large", (17 << 20) + 5, 100) == data[(17 << 20) + 5 :][:100]


def test_put_replaces(store: Store) -> None:
    store.put("a", b"first and longer")
    before = store.head("a")
    store.put("a", b"second")
    after = store.head("a")
    assert store.get("a") == b"second"
    assert (before.size, after.size) == (16, 6)
    assert before.etag != after.etag


def test_an_absent_object_is_not_found_by_any_operation(store: Store) -> None:
    store.put("there/file", b"x")
    for absent in ("nope", "there", "there/file/below", "there/fil"):
        for ask in (store.get, store.head, lambda path: store.get_range(path, 0, 1)):
            with pytest.raises(NotFoundError) as caught:
                ask(absent)
            assert store.uri in str(caught.value)
            assert absent in str(caught.value)
        store.delete(absent)
    assert store.get("there/file") == b"x"


def test_delete_removes_one_object(store: Store) -> None:
    store.put("d/a", b"1")
    store.put("d/ab", b"2")
    store.delete("d/a")
    assert paths(store.list()) == ["d/ab"]
    with pytest.raises(NotFoundError):
        store.get("d/a")


def test_put_if_absent_creates_once_and_never_replaces(store: Store) -> None:
    """E1: put-if-absent, and the look after it, are the only authority for a version number."""
    assert store.put_if_absent("log/00.json", b"winner") is True
    assert store.put_if_absent("log/00.json", b"loser") is False
    assert store.put_if_absent("log/00.json", b"winner") is False
    assert store.get("log/00.json") == b"winner"
    store.delete("log/00.json")
    assert store.put_if_absent("log/00.json", b"") is True
    assert store.put_if_absent("log/00.json", b"again") is False


def test_an_object_is_read_as_the_one_that_was_listed_or_not_at_all(store: Store) -> None:
    """Its name may have been freed and used again since."""
    store.put("log/1.json", b"listed")
    (listed,) = store.list_level("log")
    (walked,) = store.list("log")
    for etag in (None, listed.etag, walked.etag, store.head("log/1.json").etag):
        assert store.get("log/1.json", etag=etag) == b"listed"
        assert store.get_range("log/1.json", 2, 3, etag=etag) == b"ste"
        assert store.get_range("log/1.json", 1, 0, etag=etag) == b""
    store.delete("log/1.json")
    assert store.put_if_absent("log/1.json", b"late..") is True
    for read, part in (
        (lambda: store.get("log/1.json", etag=listed.etag), b"listed"),
        (lambda: store.get_range("log/1.json", 2, 3, etag=listed.etag), b"ste"),
        (lambda: store.get_range("log/1.json", 0, 0, etag=listed.etag), b""),
    ):
        assert _read_or_replaced(read) in (None, part)
    assert store.get("log/1.json", etag=store.head("log/1.json").etag) == b"late.."
    store.delete("log/1.json")
    with pytest.raises(NotFoundError):
        store.get("log/1.json")


def _read_or_replaced(read: Callable[[], bytes]) -> bytes | None:
    """What is read; None if the store says that another object has the name. It may still hold the old one."""
    try:
        return read()
    except NotFoundError as replaced:
        assert "another object has its name now" in str(replaced)
        return None


def test_exactly_one_of_many_threads_creates(store: Store) -> None:
    """E1: mutual exclusion; the content is the winner's, whole."""
    for round_ in range(3):
        name = f"log/{round_:020}.json"
        offers = [f"writer {n} ".encode() * 500 for n in range(12)]
        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda data, name=name: store.put_if_absent(name, data), offers))
        assert sum(answers) == 1
        assert store.get(name) == offers[answers.index(True)]
    assert len(paths(store.list("log"))) == 3


def _create_many(spec: StoreSpec, writer: int, names: int) -> list[str]:
    mine = open_store(spec)
    return [
        name
        for n in range(names)
        if mine.put_if_absent(name := f"log/{n:020}.json", f"{writer}:{n}".encode() * 50)
    ]


@pytest.mark.slow
def test_exactly_one_of_many_processes_creates(store: Store) -> None:
    """E2: the same between processes, for the stores that processes share."""
    if store.uri.startswith("memory:"):
        pytest.skip("a memory store belongs to one process")
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        won = pool.starmap(_create_many, [(store.spec(), writer, 30) for writer in range(3)])
    assert sorted(sum(won, [])) == [f"log/{n:020}.json" for n in range(30)]
    for writer, names in enumerate(won):
        for name in names:
            assert store.get(name) == f"{writer}:{int(name[4:24])}".encode() * 50


def test_listing_is_sorted_by_bytes_at_every_depth(store: Store) -> None:
    names = [
        "a",
        "a.b",
        "a0",
        "b/x",
        "b/x/y" if not _is_local(store) else "b/x.y",
        "b.c",
        "b0/1",
        "Z",
        "é",
        "z",
        "~",
        "\ue000",
        "🦀",
    ]
    for name in names:
        store.put(name, name.encode())
    expected = sorted(names, key=lambda name: name.encode())
    assert paths(store.list()) == expected
    assert [meta.size for meta in store.list()] == [len(name.encode()) for name in expected]
    for after in [*expected, "", "b/", "b/w", "a.", "zz"]:
        later = [name for name in expected if name.encode() > after.encode()]
        assert paths(store.list(start_after=after)) == later
        assert paths(store.list_level(start_after=after)) == [name for name in later if "/" not in name]


def _is_local(store: Store) -> bool:
    return store.local_path("x") is not None


def test_a_prefix_is_a_directory_not_the_start_of_a_name(store: Store) -> None:
    for name in ("log/1", "log/2", "log/sub/3", "log2/4", "logs", "other/log/5"):
        store.put(name, b"")
    assert paths(store.list("log")) == ["log/1", "log/2", "log/sub/3"]
    assert paths(store.list("log/")) == ["log/1", "log/2", "log/sub/3"]
    assert paths(store.list_level("log")) == ["log/1", "log/2"]
    assert paths(store.list("log", start_after="log/1")) == ["log/2", "log/sub/3"]
    assert paths(store.list_level("log", start_after="log/1")) == ["log/2"]
    assert paths(store.list("log", start_after="zzz")) == []
    assert paths(store.list("log", start_after="aaa")) == ["log/1", "log/2", "log/sub/3"]
    assert paths(store.list_level()) == ["logs"]


def test_a_directory_that_does_not_exist_is_empty(store: Store) -> None:
    assert paths(store.list()) == []
    assert store.list_level("log") == []
    store.put("log/1", b"")
    assert paths(store.list("lo")) == []
    assert paths(store.list("log/1")) == []
    assert store.list_level("log/1") == []


def test_a_listing_longer_than_one_page_is_complete(store: Store) -> None:
    """A7: a listing is never a shorter one; object stores page at 1000."""
    names = [f"log/{n:020}.json" for n in range(1005)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.put(name, b"x"), names))
    assert paths(store.list("log")) == names
    assert paths(store.list_level("log")) == names
    assert paths(store.list_level("log", start_after=names[2])) == names[3:]


@pytest.mark.parametrize("name", AWKWARD)
def test_any_name_is_taken_literally(store: Store, name: str) -> None:
    assert store.put_if_absent(name, b"1") is True
    assert store.put_if_absent(name, b"2") is False
    assert store.get(name) == b"1"
    assert store.get_range(name, 0, 1) == b"1"
    assert store.head(name).path == name
    assert paths(store.list()) == [name]
    directory = name.rpartition("/")[0]
    assert paths(store.list_level(directory)) == [name]
    store.delete(name)
    assert paths(store.list()) == []


def test_a_backslash_is_literal_or_refused_but_never_a_slash(store: Store) -> None:
    if store.uri.startswith("az:"):
        with pytest.raises(StorageError, match="backslash"):
            store.put("a\\b", b"1")
    else:
        store.put("a\\b", b"1")
        assert paths(store.list_level()) == ["a\\b"]


@pytest.mark.parametrize("bad", ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a\0b"])
def test_a_path_that_names_nothing_below_the_root_is_refused(store: Store, bad: str) -> None:
    for ask in (store.get, store.head, store.delete, lambda path: store.put(path, b"")):
        with pytest.raises(StorageError, match="cannot name an object"):
            ask(bad)
    assert paths(store.list()) == []


def test_a_range_is_exact_or_an_error(store: Store) -> None:
    store.put("r", bytes(range(100)))
    assert store.get_range("r", 0, 100) == bytes(range(100))
    assert store.get_range("r", 10, 5) == bytes(range(10, 15))
    assert store.get_range("r", 99, 1) == b"\x63"
    assert store.get_range("r", 50, 0) == b""
    assert store.get_range("r", 100, 0) == b""
    for start, length in [(0, 101), (99, 2), (100, 1), (1000, 5), (0, 1 << 40), (101, 0)]:
        with pytest.raises(StorageError, match="ends early") as caught:
            store.get_range("r", start, length)
        assert not isinstance(caught.value, NotFoundError)
    with pytest.raises(StorageError, match="negative"):
        store.get_range("r", -1, 5)


def test_metadata_is_the_same_from_head_and_listing(store: Store) -> None:
    earliest = time.time_ns() // 1_000_000
    store.put("log/1.json", b"12345")
    latest = time.time_ns() // 1_000_000
    meta = store.head("log/1.json")
    assert isinstance(meta, ObjectMeta)
    assert (meta.path, meta.size) == ("log/1.json", 5)
    # Object stores keep whole seconds, and file systems the tick of the kernel's clock.
    assert earliest - 1100 <= meta.modified_ms <= latest + 1100
    assert meta.etag
    assert list(store.list())[0].size == 5
    assert list(store.list())[0].etag == meta.etag
    assert store.list_level("log")[0].path == "log/1.json"


def test_put_file_publishes_a_finished_file(store: Store) -> None:
    data = os.urandom(3 << 20)
    for content in (data, b"second", b""):
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(content)
        store.put_file("data/part 1.split", file.name)
        assert store.get("data/part 1.split") == content
        Path(file.name).unlink(missing_ok=True)
    assert paths(store.list()) == ["data/part 1.split"]


def test_put_file_streams_a_large_file(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "large"
    block = os.urandom(1 << 20)
    with source.open("wb") as file:
        for _ in range(40):
            file.write(block)
    store.put_file("large", str(source))
    assert store.head("large").size == 40 << 20
    assert store.get_range("large", (39 << 20) + 7, 1000) == block[7:1007]


def test_put_file_of_a_missing_file_changes_nothing(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Could not write"):
        store.put_file("data/x", str(tmp_path / "gone"))
    assert paths(store.list()) == []


def _read_elsewhere(spec: StoreSpec, path: str) -> bytes:
    return open_store(spec).get(path)


def test_the_spec_opens_the_same_store(store: Store) -> None:
    store.put("a/b", b"here")
    spec = pickle.loads(pickle.dumps(store.spec()))
    again = open_store(spec)
    assert again.uri == store.uri
    assert again.get("a/b") == b"here"
    assert open_store(store.uri, spec.options).get("a/b") == b"here"


def test_a_store_pickles_as_its_configuration(store: Store) -> None:
    if isinstance(store, CountingStore):
        pytest.skip("a test's wrapper stays in its process")
    store.put("a", b"1")
    again = pickle.loads(pickle.dumps(store))
    assert again.uri == store.uri
    assert again.get("a") == b"1"


@pytest.mark.slow
def test_the_spec_opens_the_store_in_another_process(store: Store) -> None:
    if store.uri.startswith("memory:"):
        pytest.skip("a memory store belongs to one process")
    store.put("a/b", b"here")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_read_elsewhere, (store.spec(), "a/b")) == b"here"


def test_a_printed_spec_shows_no_credentials(store: Store) -> None:
    for value in store.spec().options.values():
        assert value not in repr(store.spec())
        assert value not in repr(store)


def test_the_directories_of_a_store_are_stores_too(store: Store) -> None:
    store.put("sub dir/x", b"1")
    below = open_store(
        f"{store.uri}/sub dir".replace(" ", "%20" if _is_local(store) else " "), store.spec().options
    )
    assert paths(below.list()) == ["x"]
    below.put("y/z", b"2")
    assert store.get("sub dir/y/z") == b"2"


def test_local_path_is_the_file_or_nothing(store: Store) -> None:
    store.put("a b/c%", b"content")
    where = store.local_path("a b/c%")
    assert where is None or Path(where).read_bytes() == b"content"
    assert (where is None) == (not store.uri.startswith("file:"))


def test_resolve_keeps_relative_paths_and_finds_absolute_ones(store: Store) -> None:
    if isinstance(store, CountingStore):
        pytest.skip("a wrapper has the name of what it wraps")
    store.put("d/f", b"inside")
    assert resolve(store, "d/f") == (store, "d/f")
    assert resolve(store, "part=a:b/f") == (store, "part=a:b/f")
    assert resolve(store, f"{store.uri}/d/f") == (store, "d/f")
    other = open_store(f"{store.uri}-other", store.spec().options)
    other.put("g", b"outside")
    with pytest.raises(TableError, match="outside the table"):
        resolve(store, f"{other.uri}/g")
    trusting = open_store(store.uri, {**store.spec().options, "read.allowedRoots": other.uri})
    found, path = resolve(trusting, f"{other.uri}/g")
    assert (found.uri, path) == (other.uri, "g")
    assert found.get(path) == b"outside"
    with pytest.raises(StorageError):
        resolve(store, "ftp://host/file")


def test_the_local_file_system_resolves_absolute_paths(tmp_path: Path) -> None:
    (tmp_path / "x y").write_bytes(b"there")
    allowed = {"read.allowedRoots": str(tmp_path)}
    found, path = resolve(open_store(tmp_path / "table", allowed), str(tmp_path / "x y"))
    assert found.get(path) == b"there"
    found, path = resolve(open_store("memory://elsewhere", allowed), (tmp_path / "x y").as_uri())
    assert found.get(path) == b"there"


def test_two_stores_never_mix(store: Store) -> None:
    """F4: two tables never mix, even when one's name begins with the other's."""
    other = open_store(f"{store.uri}2", store.spec().options)
    store.put("a", b"1")
    other.put("a", b"2")
    assert store.get("a") == b"1"
    assert paths(store.list()) == ["a"]
    assert paths(other.list()) == ["a"]


def test_a_reader_never_sees_half_an_object(store: Store) -> None:
    """E6: while one object is replaced again and again, every read is one of the versions."""
    versions = [bytes([n]) * 200_000 for n in range(1, 13)]
    store.put("hint", versions[0])
    done = []

    def write() -> None:
        for data in versions:
            store.put("hint", data)
        done.append(True)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while not done and not writing.done():
            assert store.get("hint") in versions
        writing.result()
    assert store.get("hint") == versions[-1]


def test_memory_stores_of_one_name_share_their_objects_and_their_clock_can_be_set() -> None:
    name = f"memory://{uuid.uuid4().hex}"
    clock: Callable[[], int] = lambda: 1234  # noqa: E731
    MemoryStore(name, now_ms=clock).put("a", b"1")
    assert open_store(name).head("a").modified_ms == 1234
    assert paths(open_store(f"{name}/a").list()) == []
    assert paths(MemoryStore().list()) == []
