"""REPAIR ... SWAP: the repaired log takes the place of the old one, beside writers and through every interruption."""

from __future__ import annotations

import itertools
import threading
import uuid

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import CommandError, CommitError, ConflictError, ProtocolError, TableError
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction, ProtocolAction
from indextables.ops.maintain.repair.relocated_log import LogDirectory
from indextables.ops.maintain.repair.repair import RepairJob, RepairRequest
from indextables.ops.maintain.repair.run import carry_out
from indextables.ops.maintain.truncate_history import run_truncate
from indextables.options import Options
from indextables.sql.commands.grammar import parse_command
from indextables.storage.store import open_store
from support.faults import Around, Crash, FaultyStore
from support.upkeep import SCHEMA, StandIn, fingerprint

LOG = "_transaction_log"
TARGET = "_repaired"
QUICK = {"transaction.retry.baseDelayMs": 0, "transaction.retry.maxDelayMs": 0, "checkpoint.interval": 1000}


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path):
    """A store with a table of three splits in four versions."""
    made = open_store(tmp_path / "t" if request.param == "local" else f"memory://{uuid.uuid4().hex}/t")
    log = TransactionLog.open(made.uri, QUICK, store=made)
    log.initialize(SCHEMA)
    for name in ("a", "b", "c"):
        append(made, name)
    return made


def append(store, name, log=None):
    path = f"{name}.split"
    store.put(path, path.encode())
    add = AddAction(path=path, size=len(path), num_records=1)
    return (log or TransactionLog.open(store.uri, QUICK, store=store)).add_files([add])


def swap(store, source=None, **request):
    """Repair the log of `source`, by default the store itself, and put the result in its place."""
    asked = RepairRequest(f"{store.uri}/{LOG}", f"{store.uri}/{TARGET}", swap=True, **request)
    return carry_out(
        RepairJob(asked, LogDirectory(store, LOG), LogDirectory(store, TARGET), Options.of(QUICK))
    )


def live(store):
    return [add.path for add in TransactionLog.open(store.uri, QUICK, store=store).list_files()]


def contents(store, directory):
    return {meta.path.rpartition("/")[2]: store.get(meta.path) for meta in store.list(directory)}


def kept(store):
    """The names of the directories with old logs."""
    return sorted({meta.path.partition("/")[0] for meta in store.list() if meta.path.startswith(f"{LOG}.")})


def close(store, **request):
    """A swap that is interrupted right after the log was closed."""
    for moment in itertools.count(1):
        faulty = FaultyStore(store, moment, "crash_after")
        with pytest.raises(Crash):
            swap(faulty, **request)
        if faulty.operations[-1][0] == "put_if_absent":
            return


# What it does


def test_the_repaired_log_is_in_place_and_the_old_one_is_kept(store):
    before, log = contents(store, LOG), TransactionLog.open(store.uri, QUICK, store=store)
    old_id = log.metadata().id
    result = swap(store)
    assert (result.status, result.source_version, result.valid_splits, result.missing_splits) == (
        "SUCCESS",
        3,
        3,
        0,
    )
    assert live(store) == ["a.split", "b.split", "c.split"]
    assert contents(store, TARGET) == {}
    assert [f"{store.uri}/{name}" for name in kept(store)] == [result.kept_log]
    old = contents(store, kept(store)[0])
    assert {name: old[name] for name in before} == before
    assert set(old) - set(before) == {f"{4:020}.json"}
    new = log.snapshot(max_staleness_s=0)
    assert new.table_id != old_id
    assert new.split_table_id == old_id
    assert log.versions() == [5]


def test_the_table_takes_appends_through_old_and_new_handles(store):
    before = TransactionLog.open(store.uri, QUICK, store=store)
    before.snapshot()
    swap(store)
    assert append(store, "d") == 6
    assert append(store, "e", before) == 7
    assert live(store) == [f"{name}.split" for name in "abcde"]


def test_the_history_says_that_it_was_repaired(store):
    swap(store)
    history = TransactionLog.open(store.uri, QUICK, store=store).history().to_pylist()
    assert [(row["version"], row["operation"]) for row in history] == [(5, "REPAIR")]


def test_a_torn_newest_version_is_left_out(store):
    torn = f"{LOG}/{3:020}.json"
    store.put(torn, store.get(torn)[:40])
    assert swap(store, up_to_version=2).status == "SUCCESS"
    assert live(store) == ["a.split", "b.split"]
    assert append(store, "d") == 6


def test_a_missing_version_is_healed(store):
    store.delete(f"{LOG}/{2:020}.json")
    assert swap(store, up_to_version=1).status == "SUCCESS"
    assert live(store) == ["a.split"]
    assert append(store, "d") == 6


def test_a_log_without_any_file_is_made_from_the_splits(tmp_path):
    table = it.Table.create(str(tmp_path / "t"), pa.schema([("id", pa.int64())]))
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    for file in (tmp_path / "t" / LOG).iterdir():
        file.unlink()
    result = it.repair_log(f"{tmp_path}/t/{LOG}", f"{tmp_path}/t/{TARGET}", from_splits=True, swap=True)
    assert result.status == "SUCCESS"
    again = it.Table.open(str(tmp_path / "t"))
    again.append(pa.table({"id": [3]}))
    assert sorted(again.scan().read_all()["id"].to_pylist()) == [0, 1, 2, 3]


def test_it_can_be_done_again(store):
    swap(store)
    append(store, "d")
    assert swap(store).source_version == 6
    assert live(store) == [f"{name}.split" for name in "abcd"]
    assert len(kept(store)) == 2


def test_check_notes_the_old_log_and_purge_leaves_it_alone(tmp_path):
    table = StandIn(tmp_path / "t")
    table.add("a.split")
    kept_log = it.repair_log(str(table.log_dir), str(tmp_path / "t" / TARGET), swap=True).kept_log
    findings = it.check(str(table.root)).findings
    assert [(finding.severity, finding.subject) for finding in findings] == [("NOTE", kept_log)]
    old = fingerprint(table.root)
    it.sql(
        f"PURGE INDEXTABLE '{table.root}' OLDER THAN 0 HOURS",
        options={"purge.retentionCheckEnabled": "false"},
    )
    assert {name: hashed for name, hashed in fingerprint(table.root).items() if f"{LOG}." in str(name)} == {
        name: hashed for name, hashed in old.items() if f"{LOG}." in str(name)
    }


# What it refuses


def test_what_cannot_be_read_closes_nothing(store):
    torn = f"{LOG}/{3:020}.json"
    store.put(torn, store.get(torn)[:40])
    before = contents(store, "")
    result = swap(store)
    assert result.status.startswith("ERROR: ")
    assert "UP TO VERSION" in result.status
    assert contents(store, "") == before


def test_a_log_none_of_whose_splits_exist_is_not_put_in_place(store):
    for name in "abc":
        store.delete(f"{name}.split")
    before = contents(store, "")
    with pytest.raises(TableError, match="Nothing was swapped"):
        swap(store)
    assert contents(store, "") == before


def test_a_target_that_is_not_empty_closes_nothing(store):
    store.put(f"{TARGET}/other", b"x")
    before = contents(store, "")
    with pytest.raises(TableError, match="is not empty"):
        swap(store)
    assert contents(store, "") == before


def test_a_log_that_no_table_uses_is_not_swapped(store):
    asked = RepairRequest(f"{store.uri}/backup", f"{store.uri}/{TARGET}", swap=True)
    with pytest.raises(CommandError, match="not one"):
        carry_out(
            RepairJob(asked, LogDirectory(store, "backup"), LogDirectory(store, TARGET), Options.of(QUICK))
        )


def test_without_swap_a_closed_log_gives_an_open_one(store):
    close(store)
    before = contents(store, LOG)
    asked = RepairRequest(f"{store.uri}/{LOG}", f"{store.uri}/other")
    job = RepairJob(asked, LogDirectory(store, LOG), LogDirectory(store, "other"), Options.of(QUICK))
    assert carry_out(job).status == "SUCCESS"
    assert contents(store, LOG) == before
    assert (
        TransactionLog(LogDirectory(store, "other"), Options.of(QUICK)).add_files([AddAction(path="x")]) == 2
    )


# While the log is closed


def test_readers_go_on_and_writers_are_told_what_to_run(store):
    open_before = TransactionLog.open(store.uri, QUICK, store=store)
    open_before.snapshot()
    close(store)
    assert live(store) == ["a.split", "b.split", "c.split"]
    command = f"REPAIR INDEXFILES TRANSACTION LOG '{store.uri}/{LOG}' AT LOCATION '{store.uri}/{TARGET}' SWAP"
    for log in (None, open_before):
        with pytest.raises(ProtocolError) as refused:
            append(store, "d", log)
        assert "closed for writing" in refused.value.message
        assert refused.value.message.endswith(command)
    assert swap(store).status == "SUCCESS"
    assert append(store, "d", open_before) == 6


def test_readers_of_older_releases_go_on_and_their_writers_are_refused(store):
    """A writer feature that they do not know keeps their writers out; reader features do not change."""
    log = TransactionLog.open(store.uri, QUICK, store=store)
    before = log.protocol()
    close(store)
    after = log.snapshot(max_staleness_s=0).protocol
    assert (after.min_reader_version, after.reader_features) == (
        before.min_reader_version,
        before.reader_features,
    )
    assert (after.min_writer_version, after.writer_features) == (3, ("closed",))


def test_check_names_the_command_that_finishes_it(tmp_path):
    table = StandIn(tmp_path / "t")
    table.add("a.split")
    store = open_store(str(table.root))
    close(store)
    [finding] = it.check(str(table.root)).findings
    assert finding.command.endswith("SWAP")
    it.sql(finding.command)
    assert table.live() == ["a.split"]
    assert not any(finding.severity == "WARNING" for finding in it.check(str(table.root)).findings)


def test_another_repair_waits_for_the_first(store):
    close(store)
    with pytest.raises(TableError, match=f"has to be finished first: REPAIR .*{TARGET}' SWAP"):
        swap(store, up_to_version=2)
    assert swap(store).status == "SUCCESS"


def test_a_handle_that_still_knows_a_damaged_log_cannot_commit_either(store):
    """A version in the middle is lost, and a handle opened before goes on: it lands before, or is refused."""
    open_before = TransactionLog.open(store.uri, QUICK, store=store)
    open_before.snapshot()
    store.delete(f"{LOG}/{1:020}.json")
    store.delete(f"{LOG}/{2:020}.json")
    assert append(store, "d", open_before) == 4
    close(store, up_to_version=0)
    with pytest.raises(ProtocolError, match="closed for writing"):
        append(store, "e", open_before)


# Interruptions


@pytest.mark.parametrize(
    ("damage", "mode"),
    [
        *itertools.product(["none", "torn", "missing"], ["error", "crash", "crash_after", "lost_reply"]),
        ("none, on disk", "crash_after"),
    ],
)
def test_every_interruption_leaves_a_whole_log_and_the_command_finishes_it(tmp_path, damage, mode):
    for moment in itertools.count(1):
        place = tmp_path / str(moment) if "disk" in damage else f"memory://{uuid.uuid4().hex}/t"
        store = open_store(place)
        TransactionLog.open(store.uri, QUICK, store=store).initialize(SCHEMA)
        for name in "abc":
            append(store, name)
        request, rows = {}, ["a.split", "b.split", "c.split"]
        if damage in {"torn", "missing"}:
            newest = f"{LOG}/{3:020}.json"
            store.put(newest, store.get(newest)[:40])
            request, rows = {"up_to_version": 2}, rows[:2]
        if damage == "missing":
            store.delete(f"{LOG}/{2:020}.json")
            request, rows = {"up_to_version": 1}, rows[:1]
        faulty = FaultyStore(store, moment, mode)
        try:
            status = swap(faulty, **request).status
        except (Crash, it.Error) as failed:
            status = str(failed)
        if "none" in damage:
            assert live(store) == rows
        if not faulty.fired:
            assert status == "SUCCESS"
            break
        if status != "SUCCESS":
            finished = swap(store, **request)
            assert (finished.status, finished.valid_splits) == ("SUCCESS", len(rows))
        assert live(store) == rows
        assert contents(store, TARGET) == {}
        assert set(contents(store, kept(store)[0])) >= {f"{number:020}.json" for number in (0, 1, 4)}
        append(store, "later")
        assert live(store) == sorted([*rows, "later.split"])


@pytest.mark.parametrize("mode", ["crash", "crash_after"])
def test_a_writer_that_came_in_between_survives_the_rest(mode):
    """After the switch a writer may commit before the interrupted swap is finished."""
    for moment in itertools.count(1):
        store = open_store(f"memory://{uuid.uuid4().hex}/t")
        TransactionLog.open(store.uri, QUICK, store=store).initialize(SCHEMA)
        append(store, "a")
        faulty = FaultyStore(store, moment, mode)
        try:
            swap(faulty)
        except Crash:
            pass
        rows = ["a.split"]
        try:
            append(store, "b")
            rows.append("b.split")
        except ProtocolError:
            pass
        assert swap(store).status == "SUCCESS"
        assert live(store) == rows
        if not faulty.fired:
            break


# Races


def test_nothing_acknowledged_is_lost_beside_appenders(store):
    acknowledged, refused, unknown = set(), set(), set()
    begun, done = threading.Event(), threading.Event()

    def write(writer):
        log = TransactionLog.open(store.uri, QUICK, store=store)
        for number in itertools.count():
            name = f"w{writer}-{number}"
            try:
                append(store, name, log)
                acknowledged.add(f"{name}.split")
            except ProtocolError:
                refused.add(f"{name}.split")
            except CommitError as failed:
                (unknown if failed.fields.get("outcome") == "unknown" else refused).add(f"{name}.split")
            if number == 5:
                begun.set()
            # A pause as real appenders have it: three threads that never stop can outrun CLOSE's hundred attempts.
            if done.wait(0.005) and number > 5:
                return

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    try:
        begun.wait(60)
        assert swap(store).status == "SUCCESS"
    finally:
        done.set()
        for writer in writers:
            writer.join(60)
    rows = set(live(store))
    assert acknowledged <= rows
    assert not refused & rows
    assert rows <= acknowledged | unknown | {"a.split", "b.split", "c.split"}
    append(store, "later")


class Paused(Around):
    """A store in which something happens right before one operation; by default before the first put-if-absent."""

    def __init__(self, inner, meanwhile, moment=None):
        super().__init__(inner)
        self.meanwhile, self.moment, self.operations = meanwhile, moment, 0

    def _do(self, operation, path, call):
        self.operations += 1
        now = operation == "put_if_absent" if self.moment is None else self.operations == self.moment
        if now and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return call()


def small_table():
    store = open_store(f"memory://{uuid.uuid4().hex}/t")
    TransactionLog.open(store.uri, QUICK, store=store).initialize(SCHEMA)
    append(store, "a")
    append(store, "b")
    return store


def add_one(log):
    append(log.store, "new", log)
    return {"new.split"}, set()


def take_one(log):
    log.remove_files(["a.split"])
    return set(), {"a.split"}


def checkpoint(log):
    log.checkpoint()
    return set(), set()


def truncate(log):
    run_truncate(log)
    return set(), set()


VERBS = [add_one, take_one, checkpoint, truncate]


def attempt(verb, log):
    """Which rows a verb was told that it added and removed."""
    try:
        return verb(log)
    except (ProtocolError, ConflictError, TableError):
        return set(), set()


def require_whole(store, added, removed):
    """The table has the rows that it had and those it acknowledged, and goes on."""
    rows = ({"a.split", "b.split"} | added) - removed
    assert set(live(store)) == rows
    append(store, "later")
    assert set(live(store)) == rows | {"later.split"}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("handle", ["fresh", "open"])
def test_a_writer_may_come_between_any_two_steps_of_a_swap(verb, handle):
    for moment in itertools.count(1):
        store = small_table()
        log, outcome = TransactionLog.open(store.uri, QUICK, store=store), []
        if handle == "open":
            log.snapshot()
        paused = Paused(store, lambda: outcome.append(attempt(verb, log)), moment)  # noqa: B023
        assert swap(paused).status == "SUCCESS"
        if paused.meanwhile is not None:
            break
        require_whole(store, *outcome[0])


@pytest.mark.parametrize("verb", VERBS)
def test_a_swap_may_come_between_any_two_steps_of_a_writer(verb):
    for moment in itertools.count(1):
        store = small_table()
        paused = Paused(store, lambda: swap(store), moment)  # noqa: B023
        outcome = attempt(verb, TransactionLog.open(store.uri, QUICK, store=paused))
        if paused.meanwhile is not None:
            break
        require_whole(store, *outcome)


def test_two_runs_of_one_swap_do_not_hurt_each_other():
    for moment in itertools.count(1):
        store = small_table()
        paused = Paused(store, lambda: swap(store), moment)  # noqa: B023
        try:
            status = swap(paused).status
        except TableError as refused:
            status = refused.message
        assert status == "SUCCESS" or swap(store).status == "SUCCESS"
        if paused.meanwhile is not None:
            break
        require_whole(store, set(), set())


@pytest.mark.parametrize("freed", [False, True])
def test_a_writer_that_paused_over_the_swap_is_refused(store, freed):
    """Its number is taken, or was freed below the floor: either way it hears so, and leaves no gap."""

    def meanwhile():
        swap(store)
        if freed:
            for number in range(5):
                store.delete(f"{LOG}/{number:020}.json")

    paused = Paused(store, meanwhile)
    log = TransactionLog.open(store.uri, QUICK, store=paused)
    with pytest.raises(ConflictError, match="nothing was committed"):
        append(store, "d", log)
    assert live(store) == ["a.split", "b.split", "c.split"]
    assert append(store, "d", log) == 6
    assert live(store) == [f"{name}.split" for name in "abcd"]


def test_a_delete_that_was_prepared_before_the_swap_holds_or_conflicts(store):
    log = TransactionLog.open(store.uri, QUICK, store=Paused(store, lambda: swap(store)))
    try:
        log.remove_files(["a.split"])
    except ConflictError:
        assert live(store) == ["a.split", "b.split", "c.split"]
    else:
        assert live(store) == ["b.split", "c.split"]


# Doors


@pytest.mark.parametrize("clause", ["", " FROM SPLITS", " UP TO VERSION 7"])
def test_the_statement_takes_swap_at_its_end(clause):
    command = parse_command(f"repair indexfiles transaction log 'a' at location 'b'{clause} swap")
    assert command.swap
    assert command.from_splits == ("SPLITS" in clause)
    assert not parse_command(f"REPAIR INDEXFILES TRANSACTION LOG 'a' AT LOCATION 'b'{clause}").swap


def test_a_protocol_cannot_be_raised_to_closed_by_hand(store):
    with pytest.raises(ProtocolError):
        TransactionLog.open(store.uri, QUICK, store=store).upgrade_protocol(3, 3, ["closed"])
    assert isinstance(TransactionLog.open(store.uri, store=store).protocol(), ProtocolAction)
