"""Losing and winning the race for a version number (docs/behaviour.md, E1, E3, E5, E7)."""

from __future__ import annotations

import threading

import pytest

from indextables.errors import AttemptsExhaustedError, CommitError, ConflictError, StorageError
from indextables.log.commit.attempt import CommitPlan, Rule, delay_ms
from indextables.log.commit.changes import removals
from indextables.model.actions import CommitInfo
from indextables.options import Options
from indextables.storage.stores.local import LocalStore
from support.builder import LogBuilder, add, paths_of
from support.faults import FaultyStore


class Overtaken:
    """A store in which another writer commits just before ours does, a given number of times."""

    def __init__(self, inner, foreign, times=1, each=1):
        self.inner, self.foreign, self.times, self.each = inner, foreign, times, each

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def put_if_absent(self, path, data):
        if self.times:
            self.times -= 1
            for _ in range(self.each):
                self.foreign()
        return self.inner.put_if_absent(path, data)


@pytest.fixture
def builder():
    return LogBuilder().create().append("a")


def overtaken(builder, foreign, times=1, each=1, **options):
    other = LogBuilder(Overtaken(builder.store, foreign, times, each), options, builder.clock)
    return other.log()


def test_an_append_lands_behind_a_foreign_version(builder):
    """E3: and the metrics say how many attempts and conflicts there were."""
    log = overtaken(builder, lambda: builder.append("foreign"))
    assert log.add_files([add("ours")]) == 3
    assert paths_of(log) == ["a", "foreign", "ours"]
    assert (log.last_commit.version, log.last_commit.attempts, log.last_commit.conflicts) == (3, 2, 1)


def test_the_next_number_comes_from_a_listing_never_from_memory(builder):
    """E1: a handle that has not looked for long does not guess."""
    log = builder.log()
    log.snapshot()
    builder.append("b").append("c")
    assert log.add_files([add("d")]) == 4
    assert log.last_commit.conflicts == 0


def test_pauses_grow_from_base_to_maximum_with_little_jitter(builder):
    """E3: min(base * 2^(n-1), max), up to 10 % more."""
    transaction = Options.of(
        {"transaction.retry.baseDelayMs": 100, "transaction.retry.maxDelayMs": 5000}
    ).transaction
    assert [delay_ms(transaction, n, 0) for n in (1, 2, 3, 7, 99)] == [100, 200, 400, 5000, 5000]
    assert delay_ms(transaction, 1, 1) == pytest.approx(110)
    log = overtaken(builder, lambda: builder.append(1), times=3)
    log.add_files([add("x")])
    for pause, plain in zip(builder.clock.slept_s, (0.1, 0.2, 0.4), strict=True):
        assert plain <= pause <= plain * 1.1


def test_a_writer_that_never_gets_in_gives_up_with_version_and_attempts(builder):
    """E3: the dedicated error; nothing of it is in the log."""
    log = overtaken(builder, lambda: builder.append(1), times=1000)
    with pytest.raises(AttemptsExhaustedError) as error:
        log.add_files([add("ours")])
    assert error.value.attempts == 10
    assert error.value.version == 11
    assert "ours" not in paths_of(builder.log())


def test_attempts_count_only_while_the_log_is_stuck(builder):
    """E3: on a busy log, where others get through in number, a writer keeps trying."""
    log = overtaken(builder, lambda: builder.append(1), times=25, each=2, **{"checkpoint.enabled": "false"})
    assert log.add_files([add("ours")]) == 52
    assert log.last_commit.attempts == 26


def test_after_a_busy_moment_attempts_are_counted_anew(builder):
    """E3: two versions of others at the first attempt, and one at each of the ten that are left."""
    moments = []

    def foreign():
        for _ in range(1 if moments else 2):
            builder.append(1)
        moments.append(1)

    with pytest.raises(AttemptsExhaustedError) as error:
        overtaken(builder, foreign, times=1000).add_files([add("ours")])
    assert error.value.attempts == 11


def test_a_lost_reply_is_settled_by_reading_back(builder):
    """E5: our content landed, so it is a success and is there once."""
    for moment in range(1, 12):
        fresh = LogBuilder().create().append("a")
        store = FaultyStore(fresh.store, moment, "lost_reply")
        log = LogBuilder(store, clock=fresh.clock).log()
        try:
            version = log.add_files([add("b")])
        except Exception:
            assert paths_of(fresh.log()) == ["a"], store.operations
        else:
            assert version == 2
            assert paths_of(fresh.log()) == ["a", "b"]
        assert fresh.log().latest_version() <= 2
        if not store.fired:
            break
        if store.operations[moment - 1][0] == "put_if_absent":
            assert paths_of(fresh.log()) == ["a", "b"]


def test_a_failed_put_burns_no_version_number(builder):
    """E5: the commit failed, and the next one takes the same number."""

    class FailsOnce:
        def __init__(self, inner):
            self.inner, self.fail = inner, True

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def put_if_absent(self, path, data):
            if self.fail:
                self.fail = False
                raise StorageError("no space", final=True)
            return self.inner.put_if_absent(path, data)

    log = LogBuilder(FailsOnce(builder.store), clock=builder.clock).log()
    with pytest.raises(CommitError, match="nothing was committed"):
        log.add_files([add("b")])
    assert log.add_files([add("c")]) == 2
    assert paths_of(builder.log()) == ["a", "c"]


def test_a_store_that_repeats_a_put_finds_its_own_file_in_the_way(builder):
    """E5: a put that is answered 'exists' by its own first try is no conflict."""

    class Repeating:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def put_if_absent(self, path, data):
            self.inner.put_if_absent(path, data)
            return self.inner.put_if_absent(path, data)

    log = LogBuilder(Repeating(builder.store), clock=builder.clock).log()
    assert log.add_files([add("b")]) == 2
    assert log.add_files([add("c")]) == 3
    assert log.last_commit.conflicts == 0
    assert paths_of(builder.log()) == ["a", "b", "c"]


def test_an_unreachable_store_after_a_failed_put_is_an_unknown_outcome(builder):
    """E5: the error says so and gives the commit id to look for."""

    class Down:
        def __init__(self, inner):
            self.inner, self.down = inner, False

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def put_if_absent(self, path, data):
            self.inner.put_if_absent(path, data)
            self.down = True
            raise StorageError("no answer")

        def get(self, path, *, etag=None):
            if self.down:
                raise StorageError("still no answer")
            return self.inner.get(path, etag=etag)

    log = LogBuilder(Down(builder.store), clock=builder.clock).log()
    with pytest.raises(CommitError, match="is unknown") as error:
        log.add_files([add("b")])
    landed = builder.log().read_version(2)[-1]
    assert isinstance(landed, CommitInfo)
    assert landed.commit_id == error.value.commit_id


def test_concurrent_property_changes_are_all_kept(tmp_path):
    """E7."""
    builder = LogBuilder(LocalStore(tmp_path / "t")).create()
    failures = []

    def change(number):
        try:
            builder.log(transaction__retry__maxAttempts=100).update_properties({f"key{number}": str(number)})
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=change, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert builder.log().metadata().configuration == {f"key{n}": str(n) for n in range(8)}
    assert builder.log().latest_version() == 8


def test_properties_given_as_none_are_removed_and_no_change_is_no_commit(builder):
    log = builder.log()
    assert log.update_properties({"a": "1", "b": "2"}) == 2
    assert log.update_properties({"a": None}) == 3
    assert log.update_properties({"b": "2"}) == 3
    assert log.metadata().configuration == {"b": "2"}


def test_a_plan_is_built_again_for_every_attempt(builder):
    """E4: overwrite re-reads the file list before each attempt."""
    log = overtaken(builder, lambda: builder.append("foreign"))
    assert log.overwrite_files([add("new")]) == 3
    assert paths_of(builder.log()) == ["new"]


def test_commit_info_is_the_last_line_with_time_id_and_no_secret(builder):
    """And times are strictly larger than the one before, on a clock that stands still."""
    plan = CommitPlan(
        "WRITE", Rule.APPEND, lambda _: [add("b")],
        parameters={"mode": "append", "fs.s3a.secret.key": "hunter2", "aws_session_token": "t"},
        metrics={"numOutputRows": 5}, user_metadata="nightly",
    )  # fmt: skip
    log = builder.log()
    log.commit(plan)
    log.commit(plan)
    second, third = (builder.log().read_version(version)[-1] for version in (2, 3))
    assert isinstance(second, CommitInfo)
    assert second.operation == "WRITE"
    assert second.user_metadata == "nightly"
    assert second.operation_metrics["numOutputRows"] == 5
    assert second.operation_metrics["numAddedFiles"] == 1
    assert third.timestamp > second.timestamp > builder.log().snapshot(version=1).timestamp_ms
    assert second.commit_id != third.commit_id
    assert "hunter2" not in str(second)
    assert second.operation_parameters["aws_session_token"] == "***"


def test_two_merges_that_share_a_source_exactly_one_succeeds(builder):
    """E4."""
    builder.append("b", "c")

    def merge(sources, target):
        def build(base):
            return [*removals(base, base.adds(sources), data_change=False), add(target, data_change=False)]

        return CommitPlan("MERGE", Rule.MERGE, build, sources=frozenset(sources))

    log = overtaken(builder, lambda: builder.log().commit(merge({"a", "b"}, "ab")))
    with pytest.raises(ConflictError, match="b, no longer live in version"):
        log.commit(merge({"b", "c"}, "bc"))
    assert paths_of(builder.log()) == ["ab", "c"]


def test_threads_on_one_handle_all_get_in(tmp_path):
    """E2 in small: one handle, many threads."""
    builder = LogBuilder(LocalStore(tmp_path / "t"), {"transaction.retry.maxAttempts": 1000}).create()
    log = builder.log()
    threads = [
        threading.Thread(target=lambda n=n: [log.add_files([add(f"{n}-{i}")]) for i in range(5)])
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert builder.log().versions() == list(range(21))
    assert len(builder.log().list_files()) == 20
