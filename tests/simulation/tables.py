"""Actors that use whole tables: the rows lie in real splits, and every verb is that of `Table`.

A history costs tens of times more than at the level of the log, so there are
fewer of them. The oracle reads the splits' rows with pyarrow alone.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from indextables.model.actions import TxnAction
from indextables.ops.write.commit import Order, write
from indextables.table import Table
from simulation.actors import SCHEMA, Actor
from simulation.history import Plan, draw_options, draw_parts
from simulation.intents import ACKNOWLEDGED, NOTHING, Intent, Observation

VERBS = ("append", "append", "txn", "overwrite", "overwrite_where", "delete", "merge", "restore")
UPKEEP = ("checkpoint", "truncate", "purge", "repair")
READS = ("read", "travel")


def plan_table_history(seed: int) -> Plan:
    """Draw a history at the level of the table."""
    chance = random.Random(f"table:{seed}")
    verbs = [
        "append",
        *chance.sample(VERBS, chance.randint(1, 4)),
        *chance.sample(UPKEEP, chance.randint(0, 2)),
        *chance.sample(READS, chance.randint(0, 1)),
    ]
    options = {**draw_options(chance), "mergeOnWrite.enabled": chance.choice(("false", "false", "true"))}
    parts = draw_parts(chance, verbs, chance.randint(2, 3), (2, 4))
    return Plan(f"table-{seed}", options, parts, "table")


def table_rows(_path: str, data: bytes) -> Sequence[str]:
    """The rows of a real split, without the production reader."""
    return pq.read_table(pa.BufferReader(data), columns=["id"], use_threads=False)["id"].to_pylist()


class TableActor(Actor):
    """One process with a handle on the table."""

    _table: Table | None = None

    @property
    def table(self) -> Table:
        """The handle, opened by the first verb that needs it."""
        if self._table is None:
            self._table = Table(self.log, self.log.snapshot())
        return self._table

    def _open(self) -> None:
        super()._open()
        self._table = None

    def new_rows(self, intent: Intent, pick: float, half: int | None = None) -> pa.Table:
        """A few rows that no other call writes; `half` is the parity of their last digit."""
        names = []
        while len(names) < 1 + int(pick * 3):
            self.made += 1
            if half is None or self.made % 2 == half:
                names.append(f"{self.name}{self.made}")
        intent.rows = tuple(names)
        return pa.table({"id": names, "k": [int(name[-1]) % 2 for name in names]}, SCHEMA)

    def do_append(self, intent: Intent, pick: float) -> None:
        intent.operation = "WRITE"
        self._wrote(intent, self.table.append(self.new_rows(intent, pick)))

    def _wrote(self, intent: Intent, result: Any) -> None:
        intent.outcome, intent.returned = ACKNOWLEDGED, result.version

    def _write_batch(self, intent: Intent, number: int) -> None:
        intent.operation = "WRITE"
        intent.txn = (self.name, number)
        rows = self.new_rows(intent, 0)
        result = write(self.log, rows, Order(txn=TxnAction(app_id=self.name, version=number)))
        self.done(intent, result.version)

    def do_overwrite(self, intent: Intent, pick: float) -> None:
        intent.operation = "OVERWRITE"
        rows = self.new_rows(intent, pick)
        expected = self.table.refresh().version if pick < 0.5 else None
        intent.version = expected
        self._wrote(intent, self.table.overwrite(rows, expected_version=expected))

    def do_overwrite_where(self, intent: Intent, pick: float) -> None:
        intent.operation = "OVERWRITE"
        half = int(pick * 2)
        intent.matches = lambda row: int(row[-1]) % 2 == half
        rows = self.new_rows(intent, pick, half)
        self._wrote(intent, self.table.overwrite(rows, where=f"k = {half}"))

    def do_delete(self, intent: Intent, pick: float) -> None:
        intent.operation = "DELETE"
        half = int(pick * 2)
        intent.matches = lambda row: int(row[-1]) % 2 == half
        done = self.table.delete(f"k = {half}")
        if done.status == "SUCCESS":
            self._wrote(intent, done)  # not the newest commit, which may be that of the merge after it
        else:
            intent.outcome = NOTHING

    def do_merge(self, intent: Intent, pick: float) -> None:
        intent.operation = "MERGE SPLITS"
        self._told(intent, self.table.merge_splits())

    def do_restore(self, intent: Intent, pick: float) -> None:
        intent.operation = "RESTORE"
        versions = self.log.versions()
        intent.version = versions[int(pick * len(versions))]
        self._told(intent, self.table.restore(intent.version))

    def _told(self, intent: Intent, result: Any) -> None:
        if result.status == "SUCCESS":
            self.done(intent)
        else:
            intent.outcome = NOTHING

    def do_checkpoint(self, intent: Intent, pick: float) -> None:
        self.table.checkpoint()
        intent.outcome = ACKNOWLEDGED

    def do_truncate(self, intent: Intent, pick: float) -> None:
        self.table.truncate_history()
        intent.outcome = ACKNOWLEDGED

    def do_purge(self, intent: Intent, pick: float) -> None:
        self.table.purge(older_than_hours=24, log_retention_hours=(None, 0.0, 1.0)[int(pick * 3)])
        intent.outcome = ACKNOWLEDGED

    def do_read(self, intent: Intent, pick: float) -> None:
        self._scan(intent, self.table.refresh(), newest=True)

    def do_travel(self, intent: Intent, pick: float) -> None:
        versions = self.log.versions()
        intent.version = versions[int(pick * len(versions))]
        self._scan(intent, Table(self.log, self.log.snapshot(intent.version)), newest=False)

    def _scan(self, intent: Intent, table: Table, *, newest: bool) -> None:
        rows = tuple(table.scan(columns=["id"]).read_all()["id"].to_pylist())
        paths = frozenset(table.files()["path"].to_pylist())
        intent.outcome, intent.ended_ms = ACKNOWLEDGED, self.stage.world.now_ms
        self.stage.seen.append(Observation(intent, table.version, paths, newest, rows=rows))
