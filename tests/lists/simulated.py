"""Lists in simulated histories: the level `lists` of the simulation, with its faults and its clocks."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC
from typing import Any

from indextables.log.transaction_log import TransactionLog
from indextables.table import Table
from lists.checker import ABORTED, COMMITTED, UNKNOWN, Append, Read, Transaction, check
from lists.workload import (
    FORMS,
    Stream,
    append_rows,
    draw_appends,
    first_cells,
    read_lists,
    read_some_lists,
    replace_rows,
    update_cells,
)
from simulation.actors import Stage
from simulation.history import Plan, draw_options, draw_parts, quiet_log
from simulation.intents import ACKNOWLEDGED, FAILED, NOTHING, Intent, Violation
from simulation.questions import Row
from simulation.tables import INDEXING, TableActor

UPKEEP = ("merge", "checkpoint", "truncate", "purge")
_OUTCOMES = {ACKNOWLEDGED: COMMITTED, NOTHING: ABORTED, FAILED: ABORTED}


def plan_lists(seed: int) -> Plan:
    """Draw a history of lists."""
    chance = random.Random(f"lists:{seed}")
    form = FORMS[seed % len(FORMS)]
    verbs = ["push"] * 4 + ["pull"] * 3 + chance.sample(UPKEEP, chance.randint(0, 2))
    if form == "rows":
        verbs += ["stream"]
    options = {
        **draw_options(chance),
        **INDEXING,
        "mergeOnWrite.enabled": chance.choice(("false", "true")),
        "mergeOnWrite.fanIn": "2",
    }
    parts = draw_parts(chance, verbs, chance.randint(2, 4), (3, 7), long=0.05)
    if chance.random() < 0.3:
        parts = tuple(replace(part, faults=replace(part.faults, lost_reply=0.01)) for part in parts)
    return Plan(f"lists-{seed}", options, parts, "lists", chance.choice(((), ("k",))), form)


class ListActor(TableActor):
    """One process that appends to lists and reads them."""

    _stream: Stream | None = None

    @property
    def form(self) -> str:
        """How a list lies in the table."""
        return self.stage.form

    @staticmethod
    def found_table(log: TransactionLog, stage: Stage) -> None:
        """Make the table, with empty lists where a list is a cell."""
        TableActor.found_table(log, stage)
        if stage.form == "cells":
            rows = first_cells()
            intent = Intent(-1, "founder", "append", 0, operation="WRITE")
            intent.rows = tuple(Row(row["id"], row["n"], row["body"]) for row in rows.to_pylist())
            log.store.intent = intent  # type: ignore[attr-defined]
            Table(log, log.snapshot()).append(rows)

    def _open(self) -> None:
        super()._open()
        self._stream = None

    def attempt(self, verb: str, work: Any, pick: float) -> Intent:
        """Note what a call did to lists as a transaction."""
        self._operations: list[Append | Read] = []
        self._is_fresh, self._in_session, self._version = True, True, None
        process = f"{self.name}-{self.lives}"
        intent = super().attempt(verb, work, pick)
        if verb in {"push", "pull", "stream"}:
            outcome = _OUTCOMES.get(intent.outcome, UNKNOWN)
            if outcome != COMMITTED and not any(isinstance(item, Append) for item in self._operations):
                return intent
            self.stage.transactions.append(
                Transaction(
                    f"#{intent.number}", process, outcome, intent.began_ms, intent.ended_ms,
                    tuple(self._operations), self._is_fresh, self._in_session, version=self._version,
                )
            )  # fmt: skip
        return intent

    def do_push(self, intent: Intent, pick: float) -> None:
        """Append elements to some lists."""
        appends = draw_appends(random.Random(pick), self._new_element)
        getattr(self, f"_push_{self.form}")(intent, appends)
        intent.returned = self._version
        intent.outcome = ACKNOWLEDGED

    def _new_element(self) -> str:
        self.made += 1
        return f"{self.name}{self.made}"

    def _push_rows(self, intent: Intent, appends: list[Append]) -> None:
        intent.verb, intent.operation = "append", "WRITE"
        intent.rows = tuple(_row(item.key, item.element) for item in appends)
        self._operations += appends
        self._version = append_rows(self.table, appends)

    def _push_replaced(self, intent: Intent, appends: list[Append]) -> None:
        table = self.table.refresh()
        reads = read_lists(table, self.form)
        intent.verb, intent.operation, intent.version = "overwrite", "OVERWRITE", table.version
        elements = [(read.key, element) for read in reads for element in read.elements]
        elements += [(item.key, item.element) for item in appends]
        intent.rows = tuple(_row(key, element) for key, element in elements)
        self._operations += [*reads, *appends]
        self._version = replace_rows(table, reads, appends, table.version)

    def _push_cells(self, intent: Intent, appends: list[Append]) -> None:
        intent.verb, intent.operation = "update", "UPDATE"
        added: dict[str, str] = {}
        for item in appends:
            added[item.key] = f"{added.get(item.key, '')} {item.element}"
        intent.matches = lambda row: row.id in added
        intent.change = lambda row: row._replace(body=(row.body + added[row.id]).strip())
        self._operations += appends
        reads: dict[str, Read] = {}
        try:
            self._version = update_cells(self.table, appends, reads)
        finally:
            self._operations[:0] = reads.values()

    def do_pull(self, intent: Intent, pick: float) -> None:
        """Read lists: as they are now, as this process saw them last, or as they were."""
        intent.verb = "read"
        chance = random.Random(pick)
        kind = chance.choice(("now", "now", "as seen", "version", "time"))
        if kind == "now":
            table = self.table.refresh()
        elif kind == "as seen":
            intent.verb, table, self._is_fresh = "reread", self.table, False
        else:
            intent.verb, self._is_fresh, self._in_session = "travel", False, False
            table = self._as_it_was(kind, chance)
        self._operations += read_some_lists(table, self.form, chance)
        self._version = table.version
        intent.outcome = ACKNOWLEDGED

    def _as_it_was(self, kind: str, chance: random.Random) -> Table:
        first = 1 if self.form == "cells" else 0
        versions = [version for version in self.log.versions() if version >= first]
        if kind == "version":
            return Table(self.log, self.log.snapshot(chance.choice(versions)))
        rows = self.table.history().to_pylist()
        times = [row["timestamp"] for row in rows if row["timestamp"] and row["version"] >= first]
        return Table(self.log, self.log.snapshot(as_of=chance.choice(times).astimezone(UTC)))

    def do_stream(self, intent: Intent, pick: float) -> None:
        """Follow the table from its first version on."""
        intent.verb = "follow"
        if self._stream is None:
            self._stream = Stream(self.log)
        self._operations += self._stream.reads()
        self._version = self._stream.follower.version
        intent.outcome = ACKNOWLEDGED

    @staticmethod
    def check_end(stage: Stage) -> list[Violation]:
        """Read the lists when all is quiet, and hold the history against every promise."""
        log = quiet_log(stage, "reader")
        try:
            table = Table(log, log.snapshot(max_staleness_s=0))
            reads = read_lists(table, stage.form)
        except Exception as error:
            return [Violation("lists: unreadable", f"{type(error).__name__}: {error}")]
        moment = stage.world.now_ms + 1
        last = Transaction(
            "the last read",
            "reader",
            COMMITTED,
            moment,
            moment,
            tuple(reads),
            final=True,
            version=table.version,
        )
        return [
            Violation(f"lists: {anomaly.kind}", anomaly.what)
            for anomaly in check([*stage.transactions, last])
        ]


def _row(key: str, element: str) -> Row:
    return Row(element, int(key[-1]), key)
