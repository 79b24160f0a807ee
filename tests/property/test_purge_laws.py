"""PURGE over random histories: no version that can be rebuilt ever loses a file, and nothing useless stays."""

import random

import pytest

from indextables.log.format.dialect import NATIVE
from indextables.log.segment import list_log, reconstructible
from indextables.ops.maintain.purge import PurgeRequest, run_purge
from indextables.ops.maintain.truncate_history import run_truncate
from indextables.ops.rewrite.restore import run_restore
from support.upkeep import HandClock, StandIn

RETENTION_HOURS = 48


class History:
    """A table that lives through random events."""

    def __init__(self, root, seed):
        self.rng = random.Random(seed)
        self.table = StandIn(root, clock=HandClock(), options={"checkpoint.interval": 5})
        self.names = (f"{n:04}.split" for n in range(10_000))

    def step(self):
        table, rng = self.table, self.rng
        table.clock.pass_hours(rng.choice([0, 1, 30]))
        live = table.live()
        match rng.randrange(9):
            case 0 | 1 | 2:
                table.log.add_files([table.split(next(self.names)) for _ in range(rng.randint(1, 4))])
            case 3:
                if live:
                    table.log.remove_files(rng.sample(live, rng.randint(1, len(live))))
            case 4:
                table.log.overwrite_files([table.split(next(self.names)) for _ in range(rng.randint(0, 3))])
            case 5:
                table.log.checkpoint()
            case 6:
                table.file(f"orphan-{next(self.names)}")
            case 7:
                run_restore(table.handle(), rng.choice(self.versions()))
            case 8:
                if rng.random() < 0.2:
                    run_truncate(table.handle())
                elif live:
                    # A path that was removed comes back under the same name.
                    path = rng.choice(live)
                    add = next(add for add in table.handle().list_files() if add.path == path)
                    table.log.remove_files([path])
                    table.log.add_files([add])

    def versions(self):
        return reconstructible(list_log(self.table.handle().store, NATIVE), NATIVE)

    def states(self):
        log = self.table.handle()
        return {
            version: [add.path for add in log.snapshot(version=version).adds()] for version in self.versions()
        }

    def splits(self):
        return {file.name: file for file in self.table.root.glob("*.split")}


@pytest.mark.parametrize("seed", range(25))
def test_time_travel_reads_the_same_before_and_after_a_purge(tmp_path, seed):
    """Purge never deletes what any reconstructible version needs; everything else that is old goes."""
    history = History(tmp_path / "t", seed)
    for _ in range(4):
        for _ in range(history.rng.randint(3, 10)):
            history.step()
        before = history.states()
        old = {
            name
            for name, file in history.splits().items()
            if history.table.clock.now_ms() - file.stat().st_mtime * 1000 > RETENTION_HOURS * 3_600_000
        }
        needed = {path for paths in before.values() for path in paths}
        result = run_purge(history.table.handle(), PurgeRequest(older_than_hours=RETENTION_HOURS))
        assert history.states() == before
        there = history.splits()
        assert needed <= there.keys(), "a version that can be rebuilt lost a file"
        assert not (old - needed) & there.keys(), "an old file that no version needs was left"
        assert result.orphaned_files_deleted == len(old - needed)


@pytest.mark.parametrize("seed", range(5))
def test_a_retention_for_the_log_only_costs_versions_that_are_past_it(tmp_path, seed):
    """D3: with TRANSACTION LOG RETENTION every version that stays can still be read whole."""
    history = History(tmp_path / "t", seed)
    for _ in range(20):
        history.step()
    history.table.log.checkpoint()
    history.table.age_log(hours=100)
    for _ in range(3):
        history.step()
    newest = history.table.live()
    run_purge(history.table.handle(), PurgeRequest(older_than_hours=RETENTION_HOURS, log_retention_hours=24))
    assert history.table.live() == newest
    there = history.splits().keys()
    for paths in history.states().values():
        assert set(paths) <= there
