"""REPAIR inside the simulation: the production code between two directories of the simulated store."""

from __future__ import annotations

from typing import Any

from indextables.ops.maintain.repair.relocated_log import LogDirectory
from indextables.ops.maintain.repair.repair import RepairJob, RepairRequest
from indextables.ops.maintain.repair.run import carry_out
from indextables.options import Options
from simulation.world import LOG_DIR


def repair(actor: Any, target: str) -> bool:
    """Write a repaired log to `target`; whether it is complete."""
    store = actor.store
    request = RepairRequest(f"{store.uri}/{LOG_DIR}", f"{store.uri}/{target}")
    job = RepairJob(
        request,
        LogDirectory(store, LOG_DIR),
        LogDirectory(store, target),
        Options.of(actor.stage.options),
        actor.runtime,
    )
    return carry_out(job).status == "SUCCESS"
