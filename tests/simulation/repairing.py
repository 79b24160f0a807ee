"""REPAIR inside the simulation: the production code between two directories of the simulated store."""

from __future__ import annotations

from typing import Any

from indextables.ops.maintain.repair.relocated_log import LogDirectory
from indextables.ops.maintain.repair.repair import RepairJob, RepairRequest
from indextables.ops.maintain.repair.run import carry_out
from indextables.options import Options
from indextables.runtime import Runtime
from simulation.world import LOG_DIR, SimStore

SWAP_TARGET = "_swapped"


class _SharedAddress:
    """The store of an actor under the address that all of them share: SWAP goes by it when it is repeated."""

    uri = "memory://shared/table"

    def __init__(self, store: SimStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def repair(actor: Any, target: str) -> bool:
    """Write a repaired log to `target`; whether it is complete."""
    return _carry_out(actor.store, actor.stage.options, actor.runtime, target) == "SUCCESS"


def swap_in_place(store: SimStore, options: dict[str, str], runtime: Runtime) -> bool:
    """REPAIR ... SWAP, or what is left of one that was interrupted; whether it is complete."""
    return _carry_out(_SharedAddress(store), options, runtime, SWAP_TARGET, swap=True) == "SUCCESS"


def _carry_out(
    store: Any, options: dict[str, str], runtime: Runtime, target: str, *, swap: bool = False
) -> str:
    request = RepairRequest(f"{store.uri}/{LOG_DIR}", f"{store.uri}/{target}", swap=swap)
    source, clean = LogDirectory(store, LOG_DIR), LogDirectory(store, target)
    return carry_out(RepairJob(request, source, clean, Options.of(options), runtime)).status
