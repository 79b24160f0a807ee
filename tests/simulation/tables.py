"""Actors that use whole tables: the rows lie in real splits, and every verb is that of `Table`.

A history costs tens of times more than at the level of the log, so there are
fewer of them. The oracle reads the splits' rows with pyarrow alone. Which verbs
there are is in `verbs`, and what readers ask in `questions`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from indextables.index.settings import from_options
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import TxnAction
from indextables.ops.read.follow import Follower
from indextables.table import Table
from simulation.actors import Actor, Stage
from simulation.history import Plan, draw_options, draw_parts
from simulation.intents import ACKNOWLEDGED, NOTHING, UNKNOWN, Followed, Found, Intent, Observation
from simulation.questions import WORDS, Row, draw_condition, draw_query, draw_question, draw_search

SCHEMA = pa.schema([("id", pa.string()), ("k", pa.int64()), ("n", pa.int64()), ("body", pa.string())])
INDEXING = {"indexing.typemap.body": "text"}
WRITES = (
    "append", "txn", "grow", "overwrite", "overwrite_where", "overwrite_partitions", "redefine", "delete",
    "delete_query", "update", "upsert", "upsert_delete", "merge", "restore", "drop_partitions", "properties",
)  # fmt: skip
UPKEEP = ("checkpoint", "truncate", "purge", "repair")
READS = ("read", "search", "travel", "as_of", "follow", "find")
THEMES = (
    ("upsert", "upsert", "overwrite_where"),
    ("upsert", "upsert_delete", "restore"),
    ("grow", "grow", "read"),
    ("update", "upsert", "merge"),
    ("properties", "properties", "checkpoint", "read"),
    ("append", "follow", "follow"),
    ("as_of", "as_of", "travel"),
    ("find", "find", "truncate"),
    ("search", "search", "search", "checkpoint", "delete_query"),
    ("drop_partitions", "overwrite_partitions", "update"),
)
"""What has most to fear from each other; every second history is about one of these."""


def plan_table_history(seed: int) -> Plan:
    """Draw a history at the level of the table."""
    chance = random.Random(f"table:{seed}")
    if chance.random() < 0.5:
        verbs = ["append", *chance.choice(THEMES)]
    else:
        verbs = [
            "append",
            *chance.sample(WRITES, chance.randint(1, 4)),
            *chance.sample(UPKEEP, chance.randint(0, 2)),
            *chance.sample(READS, chance.randint(0, 2)),
        ]
    options = {
        **draw_options(chance),
        **INDEXING,
        "mergeOnWrite.enabled": chance.choice(("false", "false", "true")),
        "mergeOnWrite.fanIn": "2",
        "indexFilters.enabled": chance.choice(("false", "true")),
        "deletionVectors.enabled": "false",
    }
    if random.Random(f"vectors:{seed}").random() < 0.5:
        options |= {"deletionVectors.enabled": "true", "deletionVectors.foldShare": "0.6"}
    if verbs.count("search") > 1:
        # Filters are made at checkpoints, and asked where there are several splits.
        options |= {
            "indexFilters.enabled": "true",
            "checkpoint.interval": "1",
            "mergeOnWrite.enabled": "false",
        }
    partition_by = chance.choice(((), ("k",)))
    if not partition_by:
        verbs = [verb for verb in verbs if verb != "drop_partitions"]
    parts = draw_parts(chance, verbs, chance.randint(2, 3), (2, 5))
    if verbs.count("follow") > 1:
        # A follower that fails between two splits of a commit has to go on with the second one.
        partition_by = ("k",)
        parts = tuple(replace(part, faults=replace(part.faults, error=0.12, on_puts=1.0)) for part in parts)
    return Plan(f"table-{seed}", options, parts, "table", partition_by)


def table_rows(path: str, data: bytes) -> Sequence[Row]:
    """The rows of a real split, without the production reader."""
    table = pq.read_table(pa.BufferReader(data), use_threads=False)
    columns = [name for name in Row._fields if name in table.column_names]
    rows = [Row(**row) for row in table.select(columns).to_pylist()]
    if "k=" in path:
        assert all(f"k={row.k}/" in path for row in rows), path
    return rows


class TableActor(Actor):
    """One process with a handle on the table."""

    _table: Table | None = None
    stream: Followed | None = None

    @staticmethod
    def found_table(log: TransactionLog, stage: Stage) -> None:
        """Make a table whose column `body` can be searched."""
        log.initialize(
            SCHEMA, stage.partition_by, properties=from_options(log.options, SCHEMA).to_properties()
        )

    @property
    def table(self) -> Table:
        """The handle, opened by the first verb that needs it."""
        if self._table is None:
            self._table = Table(self.log, self.log.snapshot())
        return self._table

    def _open(self) -> None:
        super()._open()
        self._table = None
        self.stream = None
        self.unsure: list[str] = []

    def attempt(self, verb: str, work: Any, pick: float) -> Intent:
        """Remember the commits that nobody could tell the outcome of, to ask about them later."""
        intent = super().attempt(verb, work, pick)
        if intent.outcome == UNKNOWN:
            self.unsure.append(intent.error.fields["commit_id"])  # type: ignore[union-attr]
        return intent

    # Rows

    def draw_row(self, key: str, x: Any = None) -> Row:
        """A row with a key, and whatever the number of rows made so far makes of the rest."""
        chance = random.Random(f"{self.stage.world.seed}:{self.name}:{self.made}")
        body = " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 3)))
        return Row(key, chance.randint(0, 9), body, x)

    def new_rows(self, intent: Intent, pick: float, half: int | None = None) -> pa.Table:
        """A few rows that no other call writes; `half` is the parity of their last digit."""
        rows: list[Row] = []
        while len(rows) < 1 + int(pick * 3):
            self.made += 1
            if half is None or self.made % 2 == half:
                rows.append(self.draw_row(f"{self.name}{self.made}"))
        intent.rows = tuple(rows)
        return as_table(rows)

    # Verbs that write

    def _wrote(self, intent: Intent, result: Any) -> None:
        if getattr(result, "status", "SUCCESS") == "SUCCESS":
            intent.outcome, intent.returned = ACKNOWLEDGED, result.version
        else:
            intent.outcome = NOTHING

    def _told(self, intent: Intent, result: Any) -> None:
        if result.status == "SUCCESS":
            self.done(intent)
        else:
            intent.outcome = NOTHING

    def do_append(self, intent: Intent, pick: float) -> None:
        intent.operation = "WRITE"
        self._wrote(intent, self.table.append(self.new_rows(intent, pick)))

    def do_grow(self, intent: Intent, pick: float) -> None:
        """Append with a column that the table may lack, or have with another type."""
        intent.operation = "WRITE"
        kind, value = ((pa.int32(), 7), (pa.int64(), 1 << 40), (pa.string(), "seven"))[int(pick * 3)]
        rows = self.new_rows(intent, pick)
        intent.rows = tuple(row._replace(x=value) for row in intent.rows)
        rows = rows.append_column("x", pa.array([value] * rows.num_rows, kind))
        self._wrote(intent, self.table.append(rows, merge_schema=True))

    def _write_batch(self, intent: Intent, number: int) -> None:
        intent.operation = "WRITE"
        intent.txn = (self.name, number)
        rows = self.new_rows(intent, 0)
        result = self.table.append(rows, txn=TxnAction(app_id=self.name, version=number))
        if result.files_added:
            self._wrote(intent, result)
        else:
            intent.outcome = NOTHING

    def do_overwrite(self, intent: Intent, pick: float) -> None:
        intent.operation = "OVERWRITE"
        rows = self.new_rows(intent, pick)
        expected = self.table.refresh().version if pick < 0.5 else None
        intent.version = expected
        self._wrote(intent, self.table.overwrite(rows, expected_version=expected))

    def do_redefine(self, intent: Intent, pick: float) -> None:
        """Replace the rows and the columns."""
        intent.operation = "OVERWRITE"
        rows = self.new_rows(intent, pick)
        by = self.stage.partition_by
        self._wrote(intent, self.table.overwrite(rows, overwrite_schema=True, partition_by=by))

    def do_overwrite_where(self, intent: Intent, pick: float) -> None:
        intent.operation = "OVERWRITE"
        half = int(pick * 2)
        intent.matches = lambda row: row.k == half
        rows = self.new_rows(intent, pick, half)
        self._wrote(intent, self.table.overwrite(rows, where=f"k = {half}"))

    def do_overwrite_partitions(self, intent: Intent, pick: float) -> None:
        intent.operation = "OVERWRITE"
        rows = self.new_rows(intent, pick / 2)
        touched = {row.k for row in intent.rows}
        partitioned = bool(self.stage.partition_by)
        intent.matches = lambda row: row.k in touched or not partitioned
        self._wrote(intent, self.table.overwrite(rows, partitions="dynamic"))

    def do_delete(self, intent: Intent, pick: float) -> None:
        intent.operation = "DELETE"
        condition, intent.matches = draw_condition(random.Random(pick))
        self._wrote(intent, self.table.delete(condition))

    def do_delete_query(self, intent: Intent, pick: float) -> None:
        intent.operation = "DELETE"
        query, intent.matches = draw_query(random.Random(pick))
        self._wrote(intent, self.table.delete(query=query))

    def do_update(self, intent: Intent, pick: float) -> None:
        intent.operation = "UPDATE"
        condition, intent.matches = draw_condition(random.Random(pick))
        number = int(pick * 1000) % 10
        intent.change = lambda row: row._replace(n=number)
        self._wrote(intent, self.table.update(condition, {"n": number}))

    def _source(self, intent: Intent, pick: float) -> pa.Table:
        """Rows with one or two of three keys that all actors share."""
        chance = random.Random(pick)
        rows = []
        for key in chance.sample(("key0", "key1", "key2"), chance.randint(1, 2)):
            self.made += 1
            rows.append(self.draw_row(key))
        intent.rows = tuple(rows)
        return as_table(rows)

    def do_upsert(self, intent: Intent, pick: float) -> None:
        """Update the rows whose keys are there, insert the others."""
        intent.operation = "MERGE"
        source = self._source(intent, pick)
        given = {row.id: row for row in intent.rows}

        def effect(before: Counter[Row]) -> Counter[Row]:
            there = {row.id: row for row in before}
            rest = Counter(row for row in before.elements() if row.id not in given)
            return rest + Counter(
                row._replace(x=there[key].x) if key in there else row for key, row in given.items()
            )

        intent.effect = effect
        self._wrote(intent, self.table.merge(source, "id"))

    def do_upsert_delete(self, intent: Intent, pick: float) -> None:
        """Delete the rows whose keys are there, insert the others."""
        intent.operation = "MERGE"
        source = self._source(intent, pick)
        given = {row.id: row for row in intent.rows}

        def effect(before: Counter[Row]) -> Counter[Row]:
            there = {row.id for row in before}
            rest = Counter(row for row in before.elements() if row.id not in given)
            return rest + Counter(row for key, row in given.items() if key not in there)

        intent.effect = effect
        self._wrote(intent, self.table.merge(source, "id", matched="delete"))

    def do_drop_partitions(self, intent: Intent, pick: float) -> None:
        intent.operation = "DROP PARTITIONS"
        half = int(pick * 2)
        intent.matches = lambda row: row.k == half
        self._told(intent, self.table.drop_partitions(f"k = {half}"))

    def do_properties(self, intent: Intent, pick: float) -> None:
        intent.operation = "SET PROPERTIES"
        intent.properties = self.some_properties(pick)
        self.done(intent, self.table.update_properties(intent.properties))

    def do_merge(self, intent: Intent, pick: float) -> None:
        """Put splits together, or write those with deleted rows anew."""
        if int(pick * 1000) % 3 == 0:
            intent.operation = "PURGE ROWS"
            self._told(intent, self.table.purge_rows())
        else:
            intent.operation = "MERGE SPLITS"
            self._told(intent, self.table.merge_splits())

    def do_restore(self, intent: Intent, pick: float) -> None:
        intent.operation = "RESTORE"
        versions = self.log.versions()
        intent.version = versions[int(pick * len(versions))]
        self._told(intent, self.table.restore(intent.version))

    # Upkeep

    def do_checkpoint(self, intent: Intent, pick: float) -> None:
        self.table.checkpoint()
        intent.outcome = ACKNOWLEDGED

    def do_truncate(self, intent: Intent, pick: float) -> None:
        self.table.truncate_history()
        intent.outcome = ACKNOWLEDGED

    def do_purge(self, intent: Intent, pick: float) -> None:
        self.table.purge(older_than_hours=24, log_retention_hours=(None, 0.0, 1.0)[int(pick * 3)])
        intent.outcome = ACKNOWLEDGED

    # Readers

    def do_read(self, intent: Intent, pick: float) -> None:
        self._ask(intent, self.table.refresh(), pick, newest=True)

    def do_search(self, intent: Intent, pick: float) -> None:
        self._ask(intent, self.table.refresh(), pick, newest=True)

    def do_travel(self, intent: Intent, pick: float) -> None:
        versions = self.log.versions()
        intent.version = versions[int(pick * len(versions))]
        self._ask(intent, Table(self.log, self.log.snapshot(intent.version)), pick)

    def do_as_of(self, intent: Intent, pick: float) -> None:
        """The version at the very moment of one of them, or a millisecond before or after it."""
        times = [time for time in self.table.history()["timestamp"].to_pylist() if time]
        chosen = times[int(pick * len(times))].astimezone(UTC)
        chosen += timedelta(milliseconds=int(pick * 1000) % 3 - 1)
        moment_ms = (chosen - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
        self._ask(intent, Table(self.log, self.log.snapshot(as_of=chosen)), pick, as_of_ms=moment_ms)

    def _ask(
        self, intent: Intent, table: Table, pick: float, *, newest: bool = False, as_of_ms: int | None = None
    ) -> None:
        """Put a random question, and one for the files."""
        chance = random.Random(f"{self.name}:{pick}")
        question = draw_search(chance) if intent.verb == "search" else draw_question(chance)
        self.stage.world.note(self.name, f"?? {question.name}")
        answer = question.ask(table)
        paths = frozenset(table.files()["path"].to_pylist())
        intent.outcome, intent.ended_ms = ACKNOWLEDGED, self.stage.world.now_ms
        self.stage.seen.append(
            Observation(
                intent, table.version, paths, newest, question=question, answer=answer, as_of_ms=as_of_ms
            )
        )

    def do_follow(self, intent: Intent, pick: float) -> None:
        """Begin to follow the table, or go on."""
        if self.stream is None:
            follower = Follower(self.log)
            self.stream = Followed(self.name, follower, follower.version)
            self.stage.followed.append(self.stream)
        for rows in self.stream.follower.poll():
            for row in rows.to_pylist():
                self.stream.rows.append(Row(row["id"], row["n"], row["body"], row.get("x")))
        intent.outcome = ACKNOWLEDGED

    def do_find(self, intent: Intent, pick: float) -> None:
        """Ask what became of a commit: one whose outcome was unknown, or any of the history."""
        ids = [name for name in self.table.history()["commit_id"].to_pylist() if name]
        ids = self.unsure if self.unsure and int(pick * 1000) % 2 else ids
        if not ids:
            intent.outcome = NOTHING
            return
        commit_id = ids[int(pick * len(ids))]
        version = self.log.find_commit(commit_id)
        self.stage.found.append(Found(intent, commit_id, version))
        intent.outcome = ACKNOWLEDGED


def as_table(rows: Sequence[Row]) -> pa.Table:
    """Rows in the columns that every table has."""
    return pa.table(
        {
            "id": [row.id for row in rows],
            "k": [row.k for row in rows],
            "n": [row.n for row in rows],
            "body": [row.body for row in rows],
        },
        SCHEMA,
    )
