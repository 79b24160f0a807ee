"""Long tails in a process without executors: sorted on local disk, and read like a checkpoint."""

from __future__ import annotations

import gc
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from indextables.errors import ConflictError, CorruptLogError, VersionNotFoundError
from indextables.model.actions import TxnAction
from support.builder import LogBuilder, add, commit_path

FOLDING = {"distributedLogReplay.localMemory": "64"}
NOT_FOLDING = {"distributedLogReplay.localMemory": "1g"}


def history(seed, *, checkpoints=False, compression="true"):
    """Appends, removes, re-adds, a skip, a property and a transaction."""
    dice = random.Random(seed)
    builder = LogBuilder(
        options={"checkpoint.enabled": "false", "transaction.compression.enabled": compression}
    ).create()
    log, live = builder.log(), set()
    for number in range(14):
        names = [f"f{dice.randrange(12)}" for _ in range(dice.randint(1, 5))]
        log.add_files(
            [add(name, size=number, min_values={"id": str(number)}) for name in dict.fromkeys(names)],
            txn=TxnAction(app_id="a", version=number),
        )
        live.update(names)
        if live and dice.random() < 0.6:
            gone = dice.sample(sorted(live), min(len(live), 2))
            log.remove_files(gone)
            live.difference_update(gone)
        if checkpoints and number == 6:
            log.checkpoint()
    log.update_properties({"owner": "me"})
    log.record_skipped_file("f1", "broken", "merge")
    return builder


def opened(builder, version=None, **options):
    return builder.log(**{key.replace(".", "__"): value for key, value in options.items()}).snapshot(version)


@pytest.mark.parametrize("compression", ["true", "false"])
@pytest.mark.parametrize("checkpoints", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_folded_tail_answers_like_one_in_memory(seed, checkpoints, compression):
    builder = history(seed, checkpoints=checkpoints, compression=compression)
    newest = builder.log().snapshot().version
    for version in (0, 1, newest // 2, newest):
        plain, folded = opened(builder, version, **NOT_FOLDING), opened(builder, version, **FOLDING)
        if folded.segment.commits:
            assert folded.state.fold is not None
        assert plain.state.fold is None
        assert folded.adds() == plain.adds()
        assert folded.adds(["f1", "f3", "none"]) == plain.adds(["f1", "f3", "none"])
        assert folded.files().equals(plain.files())
        assert folded.files("id > 5").equals(plain.files("id > 5"))
        assert folded.files(engine="reference").equals(plain.files(engine="reference"))
        assert folded.totals == plain.totals
        for name in ("protocol", "metadata", "skips", "txns", "info", "timestamp_ms", "num_files"):
            assert getattr(folded, name) == getattr(plain, name), name


@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize("seed", range(3))
def test_the_checkpoint_of_a_folded_tail_is_that_of_the_tail(seed, form):
    first, second = history(seed), history(seed)
    for builder, memory in ((first, FOLDING), (second, NOT_FOLDING)):
        settings = {**memory, "checkpoint.format": form}
        log = builder.log(**{key.replace(".", "__"): value for key, value in settings.items()})
        log.checkpoint()
    read = [opened(builder, **NOT_FOLDING) for builder in (first, second)]
    assert [item.segment.checkpoint.format for item in read] == [form, form]
    assert read[0].adds() == read[1].adds()
    assert read[0].skips.keys() == read[1].skips.keys()


def test_commits_after_the_fold_apply_to_it():
    """Own commits, those of others, and a source that somebody removed."""
    builder = history(5)
    log = builder.log(distributedLogReplay__localMemory="64")
    before = log.snapshot()
    assert before.state.fold is not None
    log.add_files([add("late", size=7)])
    assert log.snapshot().state.fold is before.state.fold
    live = [item.path for item in before.adds()]
    builder.log().remove_files([live[0]])
    after = log.snapshot(max_staleness_s=0)
    assert [item.path for item in after.adds()] == sorted([*live[1:], "late"])
    assert [item.path for item in before.adds()] == live
    assert log.snapshot(before.version).adds() == before.adds()
    with pytest.raises(ConflictError):
        log.remove_files([live[0]])


def test_a_damaged_line_is_reported_by_the_commit_that_holds_it():
    builder = history(1, compression="false")
    whole = builder.store.get(commit_path(3))
    for bad in (whole.replace(b'"size":', b'"size" :', 1), builder.store.get(commit_path(4)), b"", b"\n"):
        builder.store.put(commit_path(3), bad)
        messages = []
        for memory in (FOLDING, NOT_FOLDING):
            with pytest.raises(CorruptLogError) as caught:
                opened(builder, **memory)
            messages.append((caught.value.message, caught.value.fields))
        assert messages[0] == messages[1]


def test_a_field_that_cannot_be_read_is_reported_by_its_line():
    """Lines are checked for their path; what else is in them is read when it is needed."""
    builder = history(1, compression="false")
    lines = builder.store.get(commit_path(3)).splitlines(keepends=True)
    builder.store.put(commit_path(3), lines[0].replace(b'"size":2', b'"size":{}') + b"".join(lines[1:-1]))
    messages = []
    for memory in (FOLDING, NOT_FOLDING):
        with pytest.raises(CorruptLogError) as caught:
            opened(builder, 3, **memory).adds()
        messages.append(caught.value.message)
    assert messages[0] == messages[1]


def test_a_damaged_checkpoint_is_passed_by():
    builder = history(2, checkpoints=True)
    newest = builder.log().snapshot()
    checkpoint = newest.segment.checkpoint
    path = f"_transaction_log/{checkpoint.files[0].name}"
    data = builder.store.get(path)
    builder.store.put(path, data[: len(data) // 2])
    assert opened(builder, **FOLDING).adds() == newest.adds() == opened(builder, **NOT_FOLDING).adds()


def test_no_room_to_fold_is_no_reason_to_refuse(tmp_path, monkeypatch, caplog):
    builder = history(3)
    expected = opened(builder, **NOT_FOLDING).adds()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert opened(builder, **FOLDING).adds() == expected
    assert "cannot be sorted on local disk" in caplog.text


def test_the_files_of_a_fold_go_with_its_snapshot(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    snapshot = opened(history(3), **FOLDING)
    assert list(tmp_path.iterdir())
    expected = snapshot.adds()
    for file in tmp_path.rglob("*.json"):
        file.unlink()
    # Whoever clears the directory for temporary files does not take the table away.
    assert snapshot.adds() == expected
    del snapshot
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_version_that_is_not_there_stays_unknown():
    with pytest.raises(VersionNotFoundError):
        opened(history(3), 99, **FOLDING)


_MEASURED = """
import logging, pathlib, sys
import pyarrow.compute, pyarrow.ipc
from indextables.log.transaction_log import TransactionLog
from indextables.ops.maintain.repair.repair import RepairRequest
from indextables.ops.maintain.repair.run import run_repair
from indextables.options import Options
large, small, verb = sys.argv[1:]
FOLDING = {"distributedLogReplay.localMemory": "64m"}
def checkpoint(root, expected):
    log = TransactionLog.open(root, FOLDING)
    assert (log.snapshot().state.fold is not None) == (expected > 1000)
    log.checkpoint()
def repair(root, expected):
    options = Options.of({**FOLDING, "repair.validateSplits": "false"})
    result = run_repair(RepairRequest(f"{root}/_transaction_log", f"{root}/repaired"), options)
    assert (result.status, result.valid_splits) == ("SUCCESS", expected)
def repair_away(root, expected):
    logging.disable()
    result = run_repair(
        RepairRequest(f"{root}/_transaction_log", f"{root}/repaired"), Options.of(FOLDING)
    )
    assert (result.valid_splits, result.missing_splits) == (0, expected)
def peak_mb():
    # Unlike `getrusage`, this does not begin with the peak of the process that started this one.
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
TransactionLog.open(small, {}).snapshot().files("id = 5")
globals()[verb](small, 100)
before = peak_mb()
globals()[verb](large, 100_000)
print(peak_mb() - before)
"""


@pytest.fixture(scope="module")
def long_and_short(tmp_path_factory):
    """Logs of 100,000 adds and of 100, in 10 commits each."""
    roots = []
    for count in (10_000, 10):
        root = tmp_path_factory.mktemp("tail")
        builder = LogBuilder(store=_local(root), options={"checkpoint.enabled": "false"}).create()
        for commit in range(10):
            builder.append(*(_add(commit * count + at) for at in range(count)))
        roots.append(root)
    return roots


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("verb", ["repair", "repair_away", "checkpoint"])
def test_a_long_tail_takes_little_memory(verb, long_and_short, tmp_path):
    """As objects, 100,000 adds take 190 MB to checkpoint and 377 MB to repair."""
    roots = [shutil.copytree(root, tmp_path / name) for root, name in zip(long_and_short, "ab", strict=True)]
    grown = subprocess.run(
        [sys.executable, "-c", _MEASURED, *map(str, roots), verb], capture_output=True, text=True, check=True
    )
    assert float(grown.stdout) < 140, grown.stdout


def _local(root: Path):
    from indextables.storage.stores.local import LocalStore

    return LocalStore(root)


def _add(number):
    digits = f"{number * 2654435761 % 2**64:016x}"
    return add(
        f"part-{digits}.split",
        size=number,
        min_values={"id": str(number), "name": f"a{digits}"},
        max_values={"id": str(number + 9), "name": f"z{digits}"},
    )
