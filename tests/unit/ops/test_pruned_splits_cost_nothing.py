"""A filter beside a search, a count or an aggregate over 10,000 splits: the others are neither opened nor made."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from indextables.index.read.cache import MEMORY
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.split.layout import SplitRef
from indextables.split.open_splits import forget_splits
from indextables.storage.stores.memory import MemoryStore
from indextables.table import Table
from support.faults import CountingStore

SPLITS = 10_000
SCHEMA = pa.schema([("day", pa.string()), ("n", pa.int64()), ("message", pa.string()), ("code", pa.string())])
OPTIONS = {
    "indexing.typemap.message": "text",
    "indexing.typemap.code": "substring",
    "checkpoint.enabled": "false",
}
FEW = 4
"""The splits of the day that is asked for; they are the only ones that exist."""


@pytest.fixture(scope="module", params=["json", "parquet"])
def store(request):
    """A log of 10,000 splits in a checkpoint, of which nobody may open more than the few of one day."""
    options = {**OPTIONS, "checkpoint.format": request.param}
    store = CountingStore(MemoryStore(f"memory://ten-thousand-{request.param}"))
    log = TransactionLog.open(store.uri, options, store=store)
    properties = {f"spark.indextables.{key}": value for key, value in options.items()}
    log.initialize(SCHEMA, ["day"], properties=properties)
    table = Table(log, log.snapshot())
    for at in range(FEW):
        numbers = range(at * 10, at * 10 + 10)
        words = [f"request {number} failed" for number in numbers]
        codes = [f"code-{number:04d}" for number in numbers]
        table.append(pa.table({"day": ["d7"] * 10, "n": numbers, "message": words, "code": codes}, SCHEMA))
    (first, *_) = table._snapshot.adds()
    log.add_files(
        replace(first, path=f"day=d{day}/absent-{at:05d}.split", partition_values={"day": f"d{day}"})
        for at in range(SPLITS - FEW)
        for day in [100 + at % 400]
    )
    log.checkpoint()
    return store


class Asked:
    """One question in a process that knows nothing of the table: what was opened and what was made for it."""

    def __init__(self, store, monkeypatch):
        forget_splits()
        MEMORY.clear()
        log = TransactionLog.open(store.uri, store=store)
        self.table = Table(log, log.snapshot())
        self.made = 0
        for one in (AddAction(path="any"), SplitRef("any")):
            self._counted(type(one), monkeypatch)
        store.clear()
        self._store = store

    def _counted(self, kind, monkeypatch):
        begin = kind.__init__

        def counted(self_, *values, **named):
            self.made += 1
            begin(self_, *values, **named)

        monkeypatch.setattr(kind, "__init__", counted)

    @property
    def opened(self):
        return {path for path in self._store.reads if path.endswith(".split")}


@pytest.fixture
def asked(store, monkeypatch):
    return Asked(store, monkeypatch)


QUESTIONS = {
    "search": lambda table: len(table.search("failed", "day = 'd7'").read_all()),
    "best of a search in a scan": lambda table: len(
        table.search("failed", "day = 'd7'", sort="n").read_all()
    ),
    "count of a search": lambda table: table.count("day = 'd7'", query="failed"),
    "scan": lambda table: len(table.scan("day = 'd7'", ["n"]).read_all()),
    "scan by trigrams": lambda table: 40 * len(table.scan("day = 'd7' AND code LIKE '%-0017'").read_all()),
    "count by rows": lambda table: table.count("day = 'd7' AND message LIKE '%failed'"),
    "aggregate": lambda table: table.aggregate("message", ["count(*)"], where="day = 'd7'").num_rows,
    "aggregate of a search": lambda table: (
        table.aggregate("message", ["count(*)"], query="failed", where="day = 'd7'").num_rows
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_only_the_splits_of_the_partition_are_opened_and_only_these_become_objects(asked, question):
    assert QUESTIONS[question](asked.table) == FEW * 10
    assert 0 < len(asked.opened) <= FEW
    assert asked.made <= 8 * FEW


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (lambda table: table.count(), 10 * SPLITS),
        (lambda table: table.count("day = 'd7'"), 10 * FEW),
        (lambda table: table.count("day = 'd100'"), 250),
        (lambda table: table.facets("day", top=None).num_rows, 401),
        (lambda table: table.aggregate(None, ["min(n)"], where="day = 'd7'").to_pylist(), [{"min(n)": 0}]),
    ],
)
def test_what_the_log_knows_opens_and_makes_nothing(asked, question, answer):
    assert question(asked.table) == answer
    assert not asked.opened
    assert not asked.made


def test_counting_objects_counts(asked):
    assert len(asked.table._snapshot.adds()) == SPLITS
    assert asked.made == SPLITS
