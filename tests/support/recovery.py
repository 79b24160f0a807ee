"""The manual recovery of a table that has lost a split: repair, back up, replace, verify, as an operator types it."""

from __future__ import annotations

from pathlib import Path

from support.statements import make_table

REPAIRED = ("4", "4", "3", "1", "SUCCESS")
"""Version, splits, valid and missing ones, and status that REPAIR reports of the damaged table."""
ROWS_LEFT = "15"


def damaged_table(path: Path) -> None:
    """A table of four splits, one of which is gone."""
    make_table(str(path))
    min(path.rglob("*.split")).unlink()


def repair(path: Path) -> str:
    """The statement that writes a clean log beside the damaged one."""
    log = path / "_transaction_log"
    return f"REPAIR INDEXFILES TRANSACTION LOG '{log}'\n  AT LOCATION '{log}_repaired'"


def moves(path: Path) -> list[tuple[Path, Path]]:
    """What is moved where: the damaged log away, and the clean one into its place."""
    log = path / "_transaction_log"
    backup, clean = log.with_name("_transaction_log_backup"), log.with_name("_transaction_log_repaired")
    return [(log, backup), (clean, log)]


def verify(path: Path) -> str:
    """The statement that shows the rows which are left."""
    return f"SELECT COUNT(*) FROM indextables.`{path}`"
