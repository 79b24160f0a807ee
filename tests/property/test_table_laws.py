"""A table lives through any order of its verbs, and every version it can show holds the rows it held."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import indextables as it
from support.index_merging import indexes_of_any_size  # noqa: F401 - a fixture

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("message", pa.string())])
WORDS = ["error", "timeout", "disk", "node 7", "", None]
PARTITIONS = ["a", "b/c", "100%25", None]
OPTIONS = {
    "indexing.typemap.message": "text",
    "checkpoint.interval": "4",
    "write.maxRowsPerSplit": "6",
    "purge.retentionCheckEnabled": "false",
    "deletionVectors.enabled": "false",
}
ids = st.integers(0, 40)
seeds = st.integers(0, 2**32)


def rows_of(seed, count):
    rng = random.Random(seed)
    return [(rng.randint(0, 40), rng.choice(PARTITIONS), rng.choice(WORDS)) for _ in range(count)]


def as_table(rows):
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA
    )


def as_rows(reader):
    found = reader.read_all().select(SCHEMA.names)
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


class Life(RuleBasedStateMachine):
    """A table beside a plain list of rows for each of its versions."""

    options = OPTIONS

    @initialize()
    def create(self):
        self.root = Path(tempfile.mkdtemp())
        self.table = it.Table.create(self.root / "t", SCHEMA, partition_by=["p"], options=self.options)
        self.states = {0: Counter()}
        self.rows = Counter()

    def teardown(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def now(self, rows):
        """What the table should hold after a verb; versions in between hold the same as before."""
        for version in range(max(self.states) + 1, self.table.version):
            self.states[version] = self.rows
        self.rows = rows
        self.states[self.table.version] = rows

    @rule(seed=seeds, count=st.integers(0, 15))
    def append(self, seed, count):
        rows = rows_of(seed, count)
        self.table.append(as_table(rows))
        self.now(self.rows + Counter(rows))

    @rule(seed=seeds, count=st.integers(0, 8))
    def overwrite(self, seed, count):
        rows = rows_of(seed, count)
        self.table.overwrite(as_table(rows))
        self.now(Counter(rows))

    @rule(seed=seeds, low=ids)
    def overwrite_where(self, seed, low):
        rows = [(low, p, message) for _, p, message in rows_of(seed, 3)]
        self.table.overwrite(as_table(rows), where=it.col("id") == low)
        self.now(Counter({row: n for row, n in self.rows.items() if row[0] != low}) + Counter(rows))

    @rule(low=ids, high=ids)
    def delete(self, low, high):
        self.table.delete(f"id >= {low} AND id < {high}")
        self.now(Counter({row: n for row, n in self.rows.items() if not low <= row[0] < high}))

    @rule(low=ids, message=st.sampled_from(WORDS))
    def update(self, low, message):
        self.table.update(f"id = {low}", {"message": message})
        changed = Counter()
        for (number, p, old), n in self.rows.items():
            changed[number, p, message if number == low else old] += n
        self.now(changed)

    @rule(seed=seeds, count=st.integers(1, 5))
    def upsert(self, seed, count):
        source = {row[0]: row for row in rows_of(seed, count)}
        self.table.merge(as_table(list(source.values())), on="id")
        merged = Counter()
        for row, n in self.rows.items():
            merged[source.get(row[0], row)] += n
        present = {row[0] for row in self.rows}
        self.now(merged + Counter(row for number, row in source.items() if number not in present))

    @rule(value=st.sampled_from(PARTITIONS[:3]))
    def drop_partition(self, value):
        self.table.drop_partitions(it.col("p") == value)
        self.now(Counter({row: n for row, n in self.rows.items() if row[1] != value}))

    @rule()
    def merge(self):
        self.table.merge_splits(target_size="1M")
        self.now(self.rows)

    @rule()
    def checkpoint(self):
        self.table.checkpoint()
        self.now(self.rows)

    @rule(data=st.data())
    def restore(self, data):
        version = data.draw(st.sampled_from(sorted(self.shown())))
        self.table.restore(version)
        self.now(self.states[version])

    @rule()
    def purge(self):
        self.table.purge(older_than_hours=0)

    @precondition(lambda self: self.table.version > 6)
    @rule()
    def forget_the_past(self):
        self.table.truncate_history()
        self.now(self.rows)

    @rule()
    def open_again(self):
        self.table = it.Table.open(self.root / "t", options=self.options)

    def shown(self):
        """The versions that can be read now."""
        return [
            version
            for version in self.states
            if version in set(it.TransactionLog.open(self.root / "t").versions())
        ]

    @invariant()
    def rows_are_the_rows(self):
        assert self.table.count() == sum(self.rows.values())
        assert as_rows(self.table.scan()) == self.rows

    @invariant()
    def search_finds_what_the_words_say(self):
        expected = Counter({row: n for row, n in self.rows.items() if row[2] in ("error", "disk")})
        assert as_rows(self.table.search("message:(error OR disk)")) == expected
        some = {row: n for row, n in expected.items() if row[0] > 20}
        assert self.table.count("id > 20", query="message:(error OR disk)") == sum(some.values())

    @rule(data=st.data())
    def travel(self, data):
        version = data.draw(st.sampled_from(sorted(self.shown())))
        assert as_rows(it.Table.open(self.root / "t", version=version).scan()) == self.states[version]


class LifeWithVectors(Life):
    """The same, where rows are deleted by vectors; some handles do not, and all read the same table."""

    options: ClassVar = {**OPTIONS, "deletionVectors.enabled": "true", "deletionVectors.foldShare": "0.7"}

    @rule()
    def open_without(self):
        self.table = it.Table.open(self.root / "t", options=OPTIONS)

    @rule()
    def purge_rows(self):
        self.table.purge_rows()
        self.now(self.rows)
        assert self.table.files()["num_deleted"].null_count == self.table.files().num_rows

    @rule()
    def repair(self):
        """A repaired log takes the place of the log; it has the newest version alone."""
        log, repaired = self.root / "t" / "_transaction_log", self.root / "t" / "_repaired"
        it.repair_log(log, repaired)
        shutil.rmtree(log)
        repaired.rename(log)
        self.open_again()
        self.states = {self.table.version: self.rows}


TestLife = pytest.mark.slow(Life.TestCase)
TestLifeWithVectors = pytest.mark.slow(LifeWithVectors.TestCase)
TestLifeWithVectors.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
TestLife.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
