"""When checkpoints are written, what a reader opens, and what it does when one is damaged (docs/behaviour.md, C)."""

from __future__ import annotations

import logging
from hashlib import sha256

import msgspec
import pytest

from indextables.errors import CorruptLogError, OptionError, StorageError
from indextables.log.format.dialect import LogFile
from indextables.log.format.protocol import PARQUET_CHECKPOINT
from indextables.log.segment import Segment
from indextables.log.transaction_log import can_wait, is_due
from support.builder import HINT, LOG_DIR, LogBuilder, add, checkpoint_path, commit_path, paths_of
from support.faults import Around, CountingStore

KEEP_ALL = {"checkpointRetention.duration": 10**12}
FORMS = {
    "document": {},
    "plain": {"transaction.compression.enabled": "false"},
    "parts": {"checkpoint.actionsPerPart": 3, "checkpoint.format": "json"},
    "parquet": {"checkpoint.format": "parquet"},
    "parquet parts": {"checkpoint.format": "parquet", "checkpoint.actionsPerPart": 3},
}


def file_form(form):
    return "parquet" if form.startswith("parquet") else "json"


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


@pytest.fixture
def builder(form):
    """Versions 0 to 25 with checkpoints at 10 and 20."""
    built = LogBuilder(options={**KEEP_ALL, **FORMS[form]}).create()
    built.appends(8).remove(*paths_of(built.log())[:2]).appends(16)
    assert built.log().latest_version() == 25
    return built


def live(builder):
    """The live paths by every engine there is; they agree."""
    snapshot = builder.log().snapshot()
    found = {
        engine: snapshot.files(engine=engine).column("path").to_pylist()
        for engine in ("reference", "columnar")
    }
    assert found["reference"] == found["columnar"] == paths_of(builder.log())
    return found["reference"]


def test_the_tenth_commit_writes_a_checkpoint_and_the_hint():
    """C1."""
    builder = LogBuilder().create().appends(9)
    assert not any("checkpoint" in name for name in builder.names())
    builder.append("tenth")
    assert "00000000000000000010.checkpoint.json" in builder.names()
    hint = msgspec.json.decode(builder.store.get(HINT))
    assert (hint["version"], hint["numFiles"]) == (10, 10)


def test_a_checkpoint_is_due_at_multiples_or_that_far_from_the_last():
    """C1."""
    assert [version for version in range(25) if is_due(version, -1, 10)] == [*range(10, 25)]
    assert [version for version in range(25) if is_due(version, 10, 10)] == [20, 21, 22, 23, 24]
    assert [version for version in range(1, 6) if is_due(version, version - 1, 1)] == [1, 2, 3, 4, 5]
    assert is_due(10, 9, 10)
    assert not is_due(10, 10, 10)
    assert not is_due(0, -1, 10)


def checkpoint_versions(builder):
    return [int(name[:20]) for name in builder.names() if name.endswith(".checkpoint.json")]


def test_a_checkpoint_waits_for_a_quarter_of_the_bytes_of_the_last_one():
    """C1: the first two stand at 10 and 20."""
    builder = LogBuilder(options=KEEP_ALL).create()
    log = builder.log()
    log.add_files([add(sha256(b"%d" % number).hexdigest()) for number in range(3_000)])
    for number in range(119):
        log.add_files([add(f"later {number:05}")])
    first, second, third = checkpoint_versions(builder)
    assert (first, second) == (10, 20)
    sizes = [builder.store.head(commit_path(version)).size for version in range(second + 1, third + 1)]
    quarter = builder.store.head(checkpoint_path(second)).size / 4
    assert sum(sizes[:-1]) < quarter <= sum(sizes)
    assert len(paths_of(builder.log())) == 3_119


def test_no_checkpoint_waits_for_more_than_200_versions():
    """C1: however large the last one is."""

    def segment(newest, version, checkpoint_bytes):
        commits = tuple(LogFile(f"{at:020}.json", at, "commit", 100) for at in range(newest + 1, version + 1))
        return Segment(
            version, None, commits, newest_checkpoint=newest, newest_checkpoint_bytes=checkpoint_bytes
        )

    assert can_wait(segment(20, 219, 10**9), 10)
    assert not can_wait(segment(20, 220, 10**9), 10)
    assert can_wait(segment(20, 40, 8_001), 10)
    assert not can_wait(segment(20, 40, 8_000), 10)
    assert not can_wait(segment(10, 20, 10**9), 10)
    assert not can_wait(segment(-1, 30, 0), 10)


def test_small_checkpoints_do_not_wait():
    """C1: ten commits have more bytes than a quarter of a checkpoint of few files."""
    builder = LogBuilder(options=KEEP_ALL).create().appends(60)
    assert checkpoint_versions(builder) == [10, 20, 30, 40, 50, 60]


@pytest.mark.parametrize("door", ["option", "property"])
def test_an_interval_that_is_set_is_obeyed_to_the_letter(door):
    """C1."""
    setting = {"checkpoint.interval": "10"}
    builder = LogBuilder(options={**KEEP_ALL, **(setting if door == "option" else {})}).create()
    if door == "property":
        builder.log().update_properties(setting)
    log = builder.log()
    log.add_files([add(f"first {number:05}") for number in range(3_000)])
    while log.latest_version() < 60:
        log.add_files([add(f"later {log.latest_version():05}")])
    assert checkpoint_versions(builder) == [10, 20, 30, 40, 50, 60]


def test_a_handle_that_commits_for_long_builds_on_its_own_checkpoints(monkeypatch):
    """Its tail stays short, and it lists what a fresh handle lists."""
    monkeypatch.setattr("indextables.log.transaction_log.LONG_TAIL_KEYS", 25)
    builder = LogBuilder(options=KEEP_ALL).create()
    log = builder.log()
    for number in range(67):
        log.add_files([add(f"file {number:05}")])
    log.remove_files(["file 00003", "file 00066"])
    assert sum(log.snapshot().state.tail.size()) < 50
    assert paths_of(log) == paths_of(builder.log()) == live(builder)
    assert len(paths_of(log)) == 65


def test_statistics_within_the_limit_are_not_decoded_for_a_checkpoint(monkeypatch):
    """However long the line of an add is; one that has a value over the limit is cut."""
    from indextables.log.checkpoint import live_adds

    builder = LogBuilder(options=KEEP_ALL).create()
    names = [f"column{number}" for number in range(40)]
    bounds = dict.fromkeys(names, "x" * 60)
    builder.log().add_files(
        [add(f"{number:03}", min_values=bounds, max_values=bounds) for number in range(50)]
    )
    decoded, plain = [], live_adds.lines_adds
    monkeypatch.setattr(
        live_adds, "lines_adds", lambda lines, name: decoded.append(len(lines)) or plain(lines, name)
    )
    builder.log().checkpoint()
    assert sum(decoded) == 0
    limited = builder.log(stats__truncation__maxLength=59)
    limited.add_files([add("zz")])
    limited.checkpoint()
    assert sum(decoded) == 50
    assert all(not item.min_values for item in builder.log().list_files())


def test_a_missed_checkpoint_is_made_up_for():
    """C1: the writer of version 10 could not; the one of version 11 does."""
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().appends(10)
    builder.log(checkpoint__enabled="true").add_files([add("eleventh")])
    assert "00000000000000000011.checkpoint.json" in builder.names()


def test_checkpoints_can_be_switched_off_and_the_interval_must_make_sense():
    """C1."""
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().appends(21)
    assert not any("checkpoint" in name for name in builder.names())
    for value in (0, -1, "often"):
        with pytest.raises(OptionError, match="interval"):
            builder.log(checkpoint__interval=value)


def test_a_reader_opens_no_version_at_or_below_the_checkpoint(builder, form):
    """C3."""
    store = CountingStore(builder.store)
    log = LogBuilder(store, builder.options, builder.clock).log()
    assert len(log.list_files()) == 22
    log.snapshot().files()
    commits = [path for path in store.reads if path[-25:-5].isdigit() and "checkpoint" not in path]
    assert sorted(set(commits)) == [commit_path(version) for version in range(21, 26)]


@pytest.mark.parametrize(
    "hint",
    [
        None, b"", b"garbage", b"{}", b"[]", b'{"version":"x"}', b'{"version":-3}', b'{"version":1.5}',
        b'{"version":10}', b'{"version":0}', b'{"version":15}', b'{"version":25}', b'{"version":99}',
        b'{"version":20,"size":"many"}', b"\xff\xfe", b"\x01\x01", b'{"version":99999999999999999999999}',
    ],
)  # fmt: skip
def test_a_hint_may_lie_in_any_way(hint, caplog):
    """C5: the listing decides; one warning; same table."""
    builder = LogBuilder(options=KEEP_ALL).create().appends(25)
    expected = live(builder)
    builder.hint(hint)
    with caplog.at_level(logging.WARNING):
        assert paths_of(builder.log()) == expected
    assert len(caplog.records) == 1
    assert live(builder) == expected
    builder.append("zz next")
    assert live(builder) == [*expected, "zz next"]


def test_a_hint_to_a_deleted_checkpoint_is_no_harm(builder, form):
    """C5."""
    expected = live(builder)
    builder.lose(checkpoint_path(20, file_form(form)))
    assert live(builder) == expected


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "nonsense", "bomb"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(builder, form, damage, caplog):
    """C6: same files, with a warning; never a partial list."""
    expected = live(builder)
    hurt(builder, checkpoint_path(20, file_form(form)), damage)
    with caplog.at_level(logging.WARNING):
        assert live(builder) == expected
    assert "falling back" in caplog.text
    assert builder.log().snapshot().num_files == len(expected)
    builder.append("zz next")
    assert live(builder) == [*expected, "zz next"]


def hurt(builder, path, damage):
    if damage == "flip":
        builder.damage(path)
    elif damage == "cut":
        builder.truncate(path, 0.7)
    else:
        bomb = b"\x01\x01" + b"\x1f\x8b\x08\x00" + b"\x00" * 40
        builder.damage(path, {"empty": b"", "nonsense": b"nonsense", "bomb": bomb}[damage])


def test_when_every_checkpoint_is_damaged_the_versions_are_replayed(builder, form):
    """C6."""
    expected = live(builder)
    for version in (10, 20):
        builder.truncate(checkpoint_path(version, file_form(form)))
    assert live(builder) == expected


def test_when_nothing_is_left_to_fall_back_to_it_is_an_error(builder, form):
    """C6: it says what is missing and what can still be read."""
    for version in (10, 20):
        builder.truncate(checkpoint_path(version, file_form(form)))
    builder.lose(commit_path(0), commit_path(1))
    with pytest.raises(CorruptLogError, match="0-1 is missing") as error:
        builder.log().snapshot().files()
    assert "damaged" in str(error.value)


@pytest.mark.parametrize("form", ["parts", "parquet parts"], indirect=True)
def test_a_missing_or_damaged_part_makes_the_checkpoint_incomplete(builder):
    """C7."""
    expected = live(builder)
    parts = [name for name in builder.names() if "of0" in name and name.startswith(f"{20:020d}")]
    assert len(parts) > 2
    path = f"{LOG_DIR}/{parts[1]}"
    builder.damage(path)
    assert live(builder) == expected
    builder.lose(path)
    assert live(builder) == expected


def test_a_crash_between_checkpoint_and_hint_is_no_harm(builder):
    """C8."""
    expected = live(builder)
    builder.hint(b'{"version":10,"size":8,"checksum":"0"}')
    assert live(builder) == expected


def test_a_failing_checkpoint_never_fails_its_commit(caplog):
    """C9: the commit is durable and returns success, with a warning."""
    builder = LogBuilder().create().appends(9)

    class NoCheckpoints:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def put_if_absent(self, path, data):
            if "checkpoint" in path:
                raise StorageError("no space left")
            return self.inner.put_if_absent(path, data)

    log = LogBuilder(NoCheckpoints(builder.store), clock=builder.clock).log()
    with caplog.at_level(logging.WARNING):
        assert log.add_files([add("tenth")]) == 10
        assert log.add_files([add("eleventh")]) == 11
    assert "the commit itself is durable" in caplog.text
    assert len(live(builder)) == 11


def test_a_checkpoint_can_be_asked_for_at_any_version(form):
    built = LogBuilder(options=FORMS[form]).create().append("a", "b", "c", "d").remove("b")
    version = built.log().checkpoint()
    assert version == 2
    assert built.log().checkpoint() == 2
    built.lose(commit_path(0), commit_path(1))
    assert paths_of(built.log()) == ["a", "c", "d"]


def test_parquet_checkpoints_raise_the_protocol_of_an_older_table():
    """C13: before the first one is written, so that older readers are told."""
    builder = LogBuilder().create().append("a")
    assert builder.log(checkpoint__format="parquet").checkpoint() == 2
    protocol = builder.log().protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 3)
    assert protocol.reader_features == (PARQUET_CHECKPOINT,)
    assert "00000000000000000002.checkpoint.parquet" in builder.names()
    assert live(builder) == ["a"]


def test_new_tables_with_parquet_checkpoints_begin_at_three():
    """C13."""
    builder = LogBuilder(options={"checkpoint.format": "parquet"}).create().appends(10)
    assert builder.log().latest_version() == 10
    assert builder.log().protocol().reader_features == (PARQUET_CHECKPOINT,)
    assert "00000000000000000010.checkpoint.parquet" in builder.names()


def test_checkpoints_are_parquet_above_the_size_of_a_part_and_json_up_to_it():
    """By default; the protocol is raised once, by the first that is large."""
    few = {"checkpoint__actionsPerPart": 3, "checkpoint__enabled": "false"}
    builder = LogBuilder().create().append("a", "b", "c")
    assert builder.log(**few).checkpoint() == 1
    assert builder.log().protocol().reader_features is None
    builder.append("d")
    assert builder.log(**few).checkpoint() == 3
    assert builder.log().protocol().reader_features == (PARQUET_CHECKPOINT,)
    builder.remove("a").append("b")
    assert builder.log(**few).checkpoint() == 5
    builder.append("e", "f")
    assert builder.log(**few).checkpoint() == 6
    forms = [name.rpartition(".")[2] for name in builder.names() if len(name.split(".")) == 3]
    assert forms == ["json", "parquet", "json", "parquet"]
    assert live(builder) == ["b", "c", "d", "e", "f"]


def test_json_keeps_checkpoints_json_whatever_their_size():
    """C7: the parts of the specification, for readers that know no other."""
    builder = LogBuilder(options={"checkpoint.format": "json", "checkpoint.actionsPerPart": 1})
    builder.create().append("a", "b", "c").checkpoint()
    assert builder.log().protocol().reader_features is None
    assert not any(name.endswith(".parquet") for name in builder.names())
    assert live(builder) == ["a", "b", "c"]


class NoRaise(CountingStore):
    """Fails every put of one version file."""

    def put_if_absent(self, path, data):
        if path == commit_path(2):
            raise StorageError("refused", final=True)
        return super().put_if_absent(path, data)


def test_a_checkpoint_is_json_while_the_protocol_cannot_be_raised(caplog):
    """A failed raise costs the Parquet form, not the checkpoint."""
    builder = LogBuilder(options={"checkpoint.actionsPerPart": 1}).create().append("a", "b")
    log = LogBuilder(NoRaise(builder.store), builder.options, builder.clock).log()
    with caplog.at_level(logging.WARNING):
        assert log.checkpoint() == 1
    assert "checkpoints stay JSON" in caplog.text
    assert "00000000000000000001.checkpoint.json" in builder.names()
    assert live(builder) == ["a", "b"]


def test_a_parquet_checkpoint_copies_the_columns_of_the_one_before(monkeypatch):
    """C11: lines are decoded once; a table of many files is not parsed for every checkpoint."""
    from indextables.log.checkpoint import live_adds, parquet, reader

    builder = LogBuilder(options={"checkpoint.format": "parquet"}).create()
    builder.append(*(f"f{at}" for at in range(9))).checkpoint()
    decoded = []
    for module in (live_adds, parquet, reader):
        plain = module.decode_lines
        monkeypatch.setattr(
            module,
            "decode_lines",
            lambda lines, *more, plain=plain: decoded.append(len(lines)) or plain(lines, *more),
        )
    builder.append("f3", "new").remove("f5").log().checkpoint()
    assert sum(decoded) == 2
    assert live(builder) == ["f0", "f1", "f2", "f3", "f4", "f6", "f7", "f8", "new"]


def test_the_first_checkpoint_of_a_long_tail_decodes_some_adds_at_a_time(monkeypatch):
    """The tail's text and columns are never all in memory."""
    from indextables.log.adds.lines import CHUNK_LINES
    from indextables.log.checkpoint import live_adds

    builder = LogBuilder(options={"checkpoint.format": "parquet", "checkpoint.enabled": "false"}).create()
    builder.append(CHUNK_LINES + 7).append(CHUNK_LINES)
    decoded, plain = [], live_adds.decode_lines
    monkeypatch.setattr(
        live_adds, "decode_lines", lambda lines, *more: decoded.append(len(lines)) or plain(lines, *more)
    )
    builder.log().checkpoint()
    assert decoded == [CHUNK_LINES, CHUNK_LINES, 7]
    assert builder.log().snapshot().num_files == 2 * CHUNK_LINES + 7


def test_an_incremental_reader_keeps_its_base_when_a_checkpoint_vanishes(builder, form):
    """E6: cleanup by another process between two reads is no error."""
    log = builder.log()
    assert len(log.list_files()) == 22
    builder.append("more").wait(days=99)
    builder.log(logRetention__duration=0, checkpointRetention__duration=0).checkpoint()
    builder.log(logRetention__duration=0, checkpointRetention__duration=0).cleanup()
    assert len(log.list_files(max_staleness_s=0)) == 23
    assert log.snapshot().num_files == 23


@pytest.mark.parametrize("read_before", [False, True])
def test_a_writer_whose_base_another_one_cleaned_away_still_writes_checkpoints(read_before, caplog):
    """C1, C9: two writers that live long, each with the checkpoint it began with."""
    table = LogBuilder(options={"checkpoint.interval": 5}).create().appends(7)
    one, other = table.log(), table.log()
    for log in (one, other):
        log.add_files([add(f"{id(log)}.split")])
        if read_before:
            log.snapshot().files()
    table.wait(days=40)
    for number in range(22):
        (one if number % 4 < 2 else other).add_files([add(f"n{number:02d}.split")])
        table.wait(days=40)
    assert "failed" not in caplog.text
    assert len(paths_of(table.log())) == 7 + 2 + 22
    newest = max(name for name in table.names() if ".checkpoint." in name)
    assert int(newest[:20]) >= table.log().latest_version() - 5
    assert len(table.names()) < 20


def test_what_was_removed_since_a_checkpoint_is_not_in_the_next_one(form):
    """C3: the first, the last and some in the middle of the old checkpoint go, one of them comes back."""
    builder = LogBuilder(options={**KEEP_ALL, **FORMS[form], "checkpoint.interval": 1000}).create()
    builder.appends(12).checkpoint()
    old = sorted(paths_of(builder.log()))
    builder.remove(old[0], old[4], old[5], old[-1]).append(old[5], "zz", "aa").checkpoint()
    expected = sorted({*old, "zz", "aa"} - {old[0], old[4], old[-1]})
    assert live(builder) == expected
    hint = msgspec.json.decode(builder.store.get(HINT))
    assert hint["numFiles"] == len(expected)


class Echoing(Around):
    """Sends every put-if-absent twice, as a client does that lost the first reply: the second finds a file."""

    def _do(self, operation, path, call):
        done = call()
        return False if operation == "put_if_absent" else done


@pytest.mark.parametrize("form", ["document", "parts", "parquet", "parquet parts"])
def test_a_checkpoint_whose_put_was_sent_twice_keeps_its_parts(form):
    builder = LogBuilder(options={**KEEP_ALL, **FORMS[form]}).create().appends(8)
    echoing = LogBuilder(Echoing(builder.store), builder.options, builder.clock).log()
    echoing.checkpoint()
    for version in range(9):
        builder.store.delete(commit_path(version))
    assert len(paths_of(builder.log())) == 8
