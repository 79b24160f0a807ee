"""A log that is closed for writing: what an interrupted REPAIR ... SWAP leaves, and the end of it."""

from __future__ import annotations

import itertools
from pathlib import Path

import indextables as it
from indextables.ops.maintain.repair.relocated_log import LogDirectory
from indextables.ops.maintain.repair.repair import RepairJob, RepairRequest
from indextables.ops.maintain.repair.run import carry_out
from indextables.options import Options
from indextables.storage.store import open_store
from support.faults import Crash, FaultyStore

LOG = "_transaction_log"
TARGET = "_repaired"


def close_log(root: Path) -> None:
    """Begin a swap and die right after the version that closes the log."""
    store = open_store(root)
    request = RepairRequest(f"{store.uri}/{LOG}", f"{store.uri}/{TARGET}", swap=True)
    for moment in itertools.count(1):
        faulty = FaultyStore(store, moment, "crash_after")
        try:
            carry_out(
                RepairJob(request, LogDirectory(faulty, LOG), LogDirectory(faulty, TARGET), Options.of({}))
            )
        except Crash:
            if faulty.operations[-1][0] == "put_if_absent":
                return


def finish_swap(root: Path) -> None:
    """Do what the interrupted swap had begun."""
    done = it.repair_log(str(root / LOG), str(root / TARGET), swap=True)
    assert done.status == "SUCCESS", done
