"""Which files make a version: listings, hints that lie, gaps (docs/behaviour.md, A11, C5, C12)."""

from __future__ import annotations

import threading

import pytest

from indextables.errors import LogTimeoutError, MissingVersionError, NotATableError, VersionNotFoundError
from indextables.log.format.dialect import NATIVE, Hint
from indextables.log.segment import Listing, find_segment, list_log, ranges, reconstructible, segment_of
from indextables.storage.store import ObjectMeta
from support.builder import LogBuilder, commit_path, paths_of
from support.faults import CountingStore


def listing_of(*names):
    files = [NATIVE.parse_name(name, ObjectMeta(name, 10, 1, None)) for name in sorted(names)]
    return Listing(tuple(file for file in files if file is not None))


def v(number):
    return NATIVE.commit_name(number)


def c(number, form="json"):
    return NATIVE.checkpoint_name(number, form)


def test_the_newest_checkpoint_and_everything_after_it():
    segment = segment_of(listing_of(*map(v, range(6)), c(2), c(4)), NATIVE)
    assert (segment.version, segment.checkpoint.version) == (5, 4)
    assert [file.version for file in segment.commits] == [5]
    assert segment.head.version == 5


def test_travelling_takes_the_newest_checkpoint_at_or_below():
    listing = listing_of(*map(v, range(6)), c(2), c(4))
    for wanted, base in [(0, None), (1, None), (2, 2), (3, 2), (4, 4)]:
        segment = segment_of(listing, NATIVE, wanted)
        assert (segment.checkpoint.version if segment.checkpoint else None) == base
        assert [file.version for file in segment.commits] == list(
            range((base or -1) + 1 if base is None else base + 1, wanted + 1)
        )


def test_a_rejected_checkpoint_is_passed_over():
    listing = listing_of(*map(v, range(6)), c(2), c(4))
    newest = segment_of(listing, NATIVE).checkpoint
    assert segment_of(listing, NATIVE, rejected={newest.identity}).checkpoint.version == 2


def test_a_checkpoint_proves_its_version_existed():
    """C6: a table never silently falls back below a version it once had."""
    listing = listing_of(v(0), v(1), c(2))
    assert segment_of(listing, NATIVE).version == 2
    with pytest.raises(MissingVersionError, match="version 2 is missing"):
        segment_of(listing, NATIVE, rejected={segment_of(listing, NATIVE).checkpoint.identity})


def test_parquet_wins_over_json_at_the_same_version():
    assert segment_of(listing_of(v(0), c(0), c(0, "parquet")), NATIVE).checkpoint.format == "parquet"


def test_gaps_and_absent_versions_are_told_apart():
    """A11, A13."""
    cleaned = listing_of(*map(v, range(4, 8)), c(4), c(6))
    with pytest.raises(VersionNotFoundError, match="available: 4-7"):
        segment_of(cleaned, NATIVE, 2)
    with pytest.raises(MissingVersionError, match="version 7 is missing"):
        segment_of(listing_of(v(6), v(8), c(6)), NATIVE)
    with pytest.raises(NotATableError):
        segment_of(listing_of(), NATIVE)


def test_what_can_be_rebuilt():
    assert reconstructible(listing_of(*map(v, (0, 1, 3, 4, 5)), c(4)), NATIVE) == [0, 1, 4, 5]
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"
    assert ranges([]) == ""


def test_the_hint_saves_listing_what_is_older():
    """C5: the listing starts there, and what it says still has to be true."""
    builder = LogBuilder().create().appends(12)
    store = CountingStore(builder.store)
    assert [file.version for file in list_log(store, NATIVE, 10).files if file.kind == "commit"] == [
        10,
        11,
        12,
    ]
    for hint in (None, Hint(10), Hint(0), Hint(7), Hint(11), Hint(12), Hint(99)):
        segment = find_segment(builder.store, NATIVE, hint=hint)
        assert (segment.version, segment.checkpoint.version) == (12, 10)


def test_a_version_passed_over_by_a_listing_is_looked_up():
    """A local directory is not listed in one act; the file decides, not the listing."""
    builder = LogBuilder().create().appends(3)

    class Forgetful:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def list_level(self, prefix="", start_after=None):
            return [
                meta for meta in self.inner.list_level(prefix, start_after) if meta.path != commit_path(2)
            ]

    log = LogBuilder(Forgetful(builder.store), clock=builder.clock).log()
    assert len(paths_of(log)) == 3


def test_versions_are_read_side_by_side_and_in_order():
    """C12: as many at a time as the option says."""
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().appends(12)
    running, most, lock = 0, 0, threading.Lock()
    both = threading.Barrier(3, timeout=10)

    class Watched:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def get(self, path, *, etag=None):
            nonlocal running, most
            if path.endswith("_last_checkpoint"):
                return self.inner.get(path)
            with lock:
                running += 1
                most = max(most, running)
                number = int(path[-25:-5])
            if number < 12:
                both.wait()
            with lock:
                running -= 1
            return self.inner.get(path, etag=etag)

    log = LogBuilder(Watched(builder.store), {"checkpoint.parallelism": 3}, builder.clock).log()
    assert len(log.list_files()) == 12
    assert most == 3


def test_a_read_that_hangs_ends_in_an_error_naming_the_versions():
    """C12: and nothing partial is used."""
    builder = LogBuilder().create().appends(4)
    release = threading.Event()

    class Hanging:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def get(self, path, *, etag=None):
            if path in {commit_path(2), commit_path(3)}:
                release.wait(20)
            return self.inner.get(path, etag=etag)

    log = LogBuilder(Hanging(builder.store), {"checkpoint.read.timeoutSeconds": 1}, builder.clock).log()
    try:
        with pytest.raises(LogTimeoutError, match=r"nothing of version\(s\) 2-3 for 1 s") as error:
            log.list_files()
        assert error.value.versions == [2, 3]
    finally:
        release.set()


class Overlapping:
    """A store that notes how many version files are asked for at the same time."""

    def __init__(self, inner):
        self.inner = inner
        self.running, self.most = 0, 0
        self.lock = threading.Lock()
        self.second = threading.Event()

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def get(self, path, *, etag=None):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
            if self.running > 1:
                self.second.set()
        self.second.wait(0.1)
        with self.lock:
            self.running -= 1
        return self.inner.get(path, etag=etag)


@pytest.mark.parametrize(("parallelism", "at_once"), [("1", False), ("4", True)])
def test_a_property_says_how_many_files_are_read_at_once(parallelism, at_once):
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create()
    builder.log().update_properties({"checkpoint.parallelism": parallelism})
    builder.appends(1).checkpoint().appends(4)
    store = Overlapping(builder.store)
    LogBuilder(store, builder.options, builder.clock).log().snapshot()
    assert (store.most > 1) is at_once


def test_a_property_limits_the_silence_of_the_store():
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create()
    builder.log().update_properties({"checkpoint.read.timeoutSeconds": "1"})
    builder.appends(1).checkpoint().appends(2)
    release = threading.Event()

    class Hanging(Overlapping):
        def get(self, path, *, etag=None):
            if path == commit_path(4):
                release.wait(20)
            return self.inner.get(path, etag=etag)

    try:
        with pytest.raises(LogTimeoutError, match=r"version\(s\) 4 for 1 s"):
            LogBuilder(Hanging(builder.store), builder.options, builder.clock).log().snapshot()
    finally:
        release.set()


def test_decoding_and_waiting_for_a_thread_do_not_count_as_silence(monkeypatch):
    """One thread decodes four files, each for almost the limit: in all far longer than it."""
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().appends(4)
    decode = type(NATIVE).decode_commit

    def slowly(self, data, **where):
        threading.Event().wait(0.4)
        return decode(self, data, **where)

    monkeypatch.setattr(type(NATIVE), "decode_commit", slowly)
    options = {"checkpoint.read.timeoutSeconds": 1, "checkpoint.parallelism": 1}
    assert LogBuilder(builder.store, options, builder.clock).log().snapshot().version == 4


def test_names_that_parse():
    """A6."""
    meta = ObjectMeta("x", 1, 2, "e")
    part = NATIVE.parse_name(NATIVE.part_name(7, "ab-12", 2, 3), meta)
    assert (part.kind, part.version, part.uuid, part.part, part.parts) == ("part", 7, "ab-12", 2, 3)
    assert NATIVE.parse_name(v(7), meta).version == 7
    assert NATIVE.parse_name(c(7), meta).kind == "checkpoint"
    for name in (
        "7.json",
        v(7) + "x",
        "x" + v(7),
        "0" + v(7),
        c(7) + ".tmp",
        "_last_checkpoint",
        "٠" * 20 + ".json",
    ):
        assert NATIVE.parse_name(name, meta) is None
