"""ALTER TABLE ... ADD CONSTRAINT ... CHECK and DROP CONSTRAINT.

A constraint is added only if no row of the table breaks it. Files whose statistics rule that out are not
opened. If others commit meanwhile, only files whose rows they changed are looked into before the next
attempt. The first constraint raises the table's protocol: a writer that does not know constraints then
refuses to write, while every reader still reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from indextables.errors import ConstraintError, TableError
from indextables.log.commit.conflicts import CommitPlan, Rule
from indextables.log.format.protocol import with_constraints
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import Action, AddAction
from indextables.model.constraints import PROPERTY, constraints_of
from indextables.ops.constraints import Check, named_check
from indextables.ops.outcomes import NO_ACTION, SUCCESS, ConstraintResult
from indextables.ops.rewrite.rows import require_writable, split_rows
from indextables.reading import Reading
from indextables.storage.deletion_vectors import unique_id

LookedInto = tuple[str, str, str | None]
"""A condition, and a file with the deletion vector that it had: a RESTORE may bring deleted rows back."""


def run_add_constraint(log: TransactionLog, name: str, condition: str) -> ConstraintResult:
    """Add a constraint that every row of the table keeps; else an error shows a row that does not."""
    key, text = name.lower(), condition.strip()
    looked_into: set[LookedInto] = set()

    def build(base: Snapshot) -> Sequence[Action]:
        require_writable(base)
        if key in constraints_of(base.metadata.configuration):
            raise TableError(
                f"{log.uri} has a constraint {key} already: drop it first, or choose another name",
                constraint=key, uri=log.uri,
            )  # fmt: skip
        check = named_check(name, condition, base.schema)
        require_kept(log, base, check, looked_into)
        protocol = with_constraints(base.protocol)
        metadata = replace(
            base.metadata, configuration={**base.metadata.configuration, f"{PROPERTY}{key}": text}
        )
        return [*([protocol] if protocol != base.protocol else ()), metadata]

    plan = CommitPlan("ADD CONSTRAINT", Rule.APPEND, build, parameters={"constraint": key, "condition": text})
    version = log.commit(plan).version
    message = f"version {version} has the constraint {key} CHECK ({text})"
    return ConstraintResult(log.uri, SUCCESS, version, message)


def run_drop_constraint(log: TransactionLog, name: str, *, if_exists: bool = False) -> ConstraintResult:
    """Drop a constraint; one that there is not is an error, unless `if_exists`."""
    key = name.lower()

    def build(base: Snapshot) -> Sequence[Action]:
        require_writable(base)
        names = constraints_of(base.metadata.configuration)
        if key not in names:
            if if_exists:
                return []
            listed = ", ".join(sorted(names)) or "none"
            raise TableError(
                f"{log.uri} has no constraint {key}; its constraints: {listed}", constraint=key, uri=log.uri
            )
        left = {
            item: value for item, value in base.metadata.configuration.items() if item != f"{PROPERTY}{key}"
        }
        return [replace(base.metadata, configuration=left)]

    committed = log.commit(CommitPlan("DROP CONSTRAINT", Rule.APPEND, build, parameters={"constraint": key}))
    if not committed.written:
        return ConstraintResult(log.uri, NO_ACTION, committed.version, f"there is no constraint {key}")
    message = f"version {committed.version} has no constraint {key} any more"
    return ConstraintResult(log.uri, SUCCESS, committed.version, message)


def require_kept(log: TransactionLog, base: Snapshot, check: Check, looked_into: set[LookedInto]) -> None:
    """Raise if rows of a file that were not looked into before break the constraint."""
    paths = base.plan(check.breaks, columns={"path"}).files.column("path").to_pylist()
    adds = {(check.condition, add.path, unique_id(add.deletion_vector)): add for add in base.adds(paths)}
    new = adds.keys() - looked_into
    pieces = [(base.reading, add, check) for key, add in adds.items() if key in new]
    for row in log.runtime.workers.map(_violation, pieces):
        if row is not None:
            error = check.error(row, f"{log.uri} has")
            raise ConstraintError(f"{error.message} Change or delete such rows first.", **error.fields)
    looked_into |= new


def _violation(piece: tuple[Reading, AddAction, Check]) -> dict[str, Any] | None:
    """A row of one file that breaks the constraint; only the columns of the condition are read to find it."""
    reading, add, check = piece
    start = 0
    for _, rows in split_rows(reading, add, check.columns or None):
        at = check.first_violation(rows, reading.schema)
        if at is not None:
            return _row(reading, add, start + at)
        start += rows.num_rows
    return None


def _row(reading: Reading, add: AddAction, number: int) -> dict[str, Any]:
    """One row of a file, with all its columns."""
    start = 0
    for _, rows in split_rows(reading, add):
        if number < start + rows.num_rows:
            row: dict[str, Any] = rows.slice(number - start, 1).to_pylist()[0]
            return row
        start += rows.num_rows
    raise AssertionError(number)
