"""A word in one split of a thousand: what it costs with filters, and what without."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from indextables.index.filters import key_of
from indextables.index.read.cache import MEMORY
from indextables.log.transaction_log import TransactionLog
from indextables.ops.read.word_filters import read_filters
from indextables.split.open_splits import forget_splits
from indextables.storage.stores.memory import MemoryStore
from indextables.table import Table
from support.faults import CountingStore

pytestmark = pytest.mark.slow

SPLITS, ROWS = 1000, 12
OPTIONS = {
    "indexing.typemap.message": "text",
    "indexFilters.enabled": "true",
    "checkpoint.enabled": "false",
    "write.maxRowsPerSplit": str(ROWS),
}
SCHEMA = pa.schema([("n", pa.int64()), ("message", pa.string())])
KIB = 1 << 10


def name(number):
    """A word of one line only."""
    return f"id{number * 7919 % 1_000_003}"


@pytest.fixture(scope="module")
def store():
    """A thousand splits of twelve lines, made by one append; every line has a number of its own."""
    store = CountingStore(MemoryStore("memory://a-thousand-splits"))
    log = TransactionLog.open(store.uri, OPTIONS, store=store)
    log.initialize(SCHEMA, properties={f"spark.indextables.{key}": value for key, value in OPTIONS.items()})
    table = Table(log, log.snapshot())
    lines = [f"request {number} of {name(number)} answered" for number in range(SPLITS * ROWS)]
    table.append(pa.table({"n": range(SPLITS * ROWS), "message": lines}, SCHEMA))
    table.checkpoint()
    assert len(table.files()) == SPLITS
    return store


def fresh(store, **options):
    """The table in a process that knows nothing of it yet, its log read."""
    forget_splits()
    MEMORY.clear()
    log = TransactionLog.open(store.uri, {**OPTIONS, **options}, store=store)
    table = Table(log, log.snapshot())
    table.files()
    store.clear()
    return table


def of_splits(store):
    return [path for operation, path in store.opens if operation == "get_range" and path.endswith(".split")]


def test_with_filters_a_word_of_one_split_opens_that_split_after_a_few_requests(store):
    table = fresh(store)
    assert table.count(query="id7919") == 1
    opened = of_splits(store)
    assert len(set(opened)) <= 1 + SPLITS * 0.005
    assert len(store.opens) - len(opened) <= 8
    assert store.bytes_read <= 512 * KIB


def test_without_filters_every_split_is_asked_with_one_small_request(store):
    table = fresh(store, **{"indexFilters.enabled": "false"})
    assert table.count(query="id7919") == 1
    opened = of_splits(store)
    assert len(opened) == len(set(opened)) == SPLITS
    assert store.bytes_read <= SPLITS * 8 * KIB


@pytest.mark.parametrize(
    "how", [{}, {"score": True, "limit": 5}, {"sort": "n DESC", "limit": 5}, {"where": "n >= 0"}]
)
def test_a_search_reads_rows_only_of_the_split_that_has_the_word(store, how):
    table = fresh(store, **{"indexFilters.enabled": "false"})
    assert table.count(query="id7919") == 1
    table.count(query="request")
    store.clear()
    assert table.search("id7919", **how).read_all()["n"].to_pylist() == [1]
    assert len(set(of_splits(store))) == 1
    said = table.last_scan
    assert (said.search.splits, said.search.by_index, said.search.hits) == (SPLITS, SPLITS, 1)
    assert (said.files_read, said.rows) == (SPLITS, 1)


def test_a_search_over_many_splits_has_every_row_in_the_order_of_the_table(store):
    table = fresh(store)
    rows = table.search("request answered", columns=["n"]).read_all()["n"].to_pylist()
    assert rows == table.scan(columns=["n"]).read_all()["n"].to_pylist()
    assert sorted(rows) == list(range(SPLITS * ROWS))
    assert len(table.search("request", limit=100).read_all()) == 100


def test_small_splits_on_a_disk_are_read_together_and_in_order(tmp_path):
    """More than one unit of work, the last one not full."""
    options = {"indexing.typemap.message": "text", "write.maxRowsPerSplit": "2"}
    table = Table.create(str(tmp_path / "t"), SCHEMA, options=options)
    table.append(
        pa.table({"n": range(150), "message": [f"line {n} of w{n % 7}" for n in range(150)]}, SCHEMA)
    )
    assert len(table.files()) == 75
    every = table.scan(columns=["n"]).read_all()["n"].to_pylist()
    assert sorted(every) == list(range(150))
    for _ in range(2):  # the second time the indexes are open
        assert table.search("line", columns=["n"]).read_all()["n"].to_pylist() == every
        assert table.search("w3", columns=["n"]).read_all()["n"].to_pylist() == [
            n for n in every if n % 7 == 3
        ]
        assert table.search("w3", sort="n", limit=3).read_all()["n"].to_pylist() == [3, 10, 17]
        best = table.search("w3 OR 45", limit=4, score=True).read_all()
        assert best["n"].to_pylist()[0] == 45
        assert best["_score"].to_pylist() == sorted(best["_score"].to_pylist(), reverse=True)
        assert table.search("owl").read_all().num_rows == 0


def test_filters_miss_no_word_and_are_seldom_wrong(store):
    files = fresh(store).files()
    first = dict(
        zip(files["path"].to_pylist(), (held["n"] for held in files["min"].to_pylist()), strict=True)
    )
    dice = random.Random(7)
    wrong = asked = known = 0
    for file in read_filters(store):
        group = file.group
        home = np.array([first[path] // ROWS for path in group.names])
        held = np.array(dice.sample(range(SPLITS * ROWS), 5000))
        possible = group.may_hold([key_of(0, name(number).encode()) for number in held.tolist()])
        true = home == held[:, None] // ROWS
        assert possible[true].all()
        known += true.sum()
        absent = group.may_hold([key_of(0, f"no{dice.randrange(10**9)}".encode()) for _ in range(5000)])
        wrong += (possible & ~true).sum() + absent.sum()
        asked += possible.size + absent.size
    assert known >= 5000
    assert wrong <= 0.005 * asked
