"""A filter beside a query, or alone: what it keeps, and how little is read for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import indextables as it
from indextables.index.query.syntax import parse_query
from indextables.index.read.cache import MEMORY
from indextables.index.settings import from_options
from indextables.options import Options
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.evaluate.rows import mask
from indextables.reading import Reading
from indextables.split import open_splits
from indextables.split.layout import SplitRef
from indextables.split.open_splits import forget_splits, open_split
from indextables.split.search.filtered import Filtered
from indextables.split.search.run import count_split, search_split
from indextables.split.search.selection import Selection
from indextables.split.write.build import build_splits
from indextables.storage.stores.memory import MemoryStore
from support.faults import CountingStore

ROWS = 100_000
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("kind", pa.string()),
        ("price", pa.float64()),
        ("message", pa.string()),
        ("bulk", pa.string()),
    ]
)
OPTIONS = Options.of({"indexing.typemap.message": "text"})
SPEC = from_options(OPTIONS, SCHEMA)


@pytest.fixture(scope="module")
def rows():
    chance = np.random.default_rng(5)
    numbers = np.arange(ROWS)
    return pa.table(
        {
            "id": numbers,
            "kind": pa.array([None if n % 11 == 0 else "abc"[n % 3] for n in numbers]),
            "price": pa.array(chance.random(ROWS), mask=numbers % 13 == 0),
            "message": [
                f"{('even', 'odd')[n % 2]} line {'rare' if n % 997 == 0 else 'usual'}" for n in numbers
            ],
            "bulk": [f"{chance.integers(1 << 60):x}" * 4 for _ in numbers],
        },
        schema=SCHEMA,
    )


@pytest.fixture(scope="module")
def split(rows):
    store = MemoryStore("memory://filters")
    (built,) = build_splits(rows.to_batches(), SCHEMA, (), SPEC, OPTIONS, store)
    return Reading(CountingStore(store), SCHEMA, OPTIONS), SplitRef.of(built.add)


@pytest.fixture
def cold(split):
    forget_splits()
    MEMORY.clear()
    split[0].store.clear()
    return split


CASES = [
    ("even", "id < 50"),
    ("even AND rare", "kind = 'a' OR price > 0.5"),
    ("odd", "kind IS NULL AND id BETWEEN 40000 AND 60000"),
    ("usual", "NOT (price < 0.9)"),
    ("rare", "id > 99999999"),
]


@pytest.mark.parametrize(("query", "where"), CASES)
def test_the_rows_are_those_of_the_query_that_the_filter_keeps(split, rows, query, where):
    words = [word for word in query.split() if word != "AND"]
    wanted = [row for row in rows.to_pylist() if all(word in row["message"].split() for word in words)]
    node = as_node(where, SCHEMA, "UTC")
    keeps = set(_kept(split, node))
    wanted = [row["id"] for row in wanted if row["id"] in keeps]
    asked = parse_query(query, SPEC, SCHEMA)
    assert ids(search_split(*split, Selection(asked, node, ("id", "bulk")))) == wanted
    assert count_split(*split, Selection(asked, node)) == len(wanted)
    assert ids(search_split(*split, Selection(asked, node, ("id",), limit=7))) == wanted[:7]


def ids(tables):
    return [number for table in tables for number in table["id"].to_pylist()]


def _kept(split, node):
    """The filter over every row, without statistics or an index."""
    table = pa.concat_tables([part for _, part in open_split(split[0].store, split[1]).scan(SCHEMA.names)])
    return table.filter(mask(node, table, SCHEMA)).column("id").to_pylist()


@pytest.mark.parametrize(("query", "where"), CASES)
def test_the_best_rows_are_the_best_of_those_that_the_filter_keeps(split, query, where):
    node = as_node(where, SCHEMA, "UTC")
    asked = parse_query(query, SPEC, SCHEMA)
    (every,) = search_split(*split, Selection(asked, None, ("id",), score=True))
    keeps = set(_kept(split, node))
    wanted = [(row["id"], row["_score"]) for row in every.to_pylist() if row["id"] in keeps]
    for limit in (3, 40, None):
        (found,) = search_split(*split, Selection(asked, node, ("id",), limit, score=True))
        assert [(row["id"], row["_score"]) for row in found.to_pylist()] == wanted[:limit]


def test_row_groups_that_statistics_rule_out_are_not_read(cold):
    node = as_node("id < 1000", SCHEMA, "UTC")
    query = parse_query("usual", SPEC, SCHEMA)
    assert count_split(*cold, Selection(query, node)) == 998
    narrow = cold[0].store.bytes_read
    forget_splits()
    MEMORY.clear()
    cold[0].store.clear()
    assert count_split(*cold, Selection(query, as_node("price >= 0.0", SCHEMA, "UTC"))) > 90_000
    assert narrow * 4 < cold[0].store.bytes_read


def test_other_columns_are_read_for_the_rows_that_are_left(cold):
    node = as_node("price < 0.0001", SCHEMA, "UTC")
    query = parse_query("usual", SPEC, SCHEMA)
    found = pa.concat_tables(search_split(*cold, Selection(query, node, tuple(SCHEMA.names))))
    assert 0 < found.num_rows < 30
    # Every `bulk` is 64 random digits: reading them all would take megabytes.
    assert cold[0].store.bytes_read < 3 << 20


def test_a_scan_reads_the_other_columns_for_the_rows_it_keeps(cold):
    node = as_node("price < 0.0001", SCHEMA, "UTC")
    reading, ref = cold
    kept = Filtered(reading, ref, node).tables(None, SCHEMA.names)
    found = pa.concat_tables([table for _, table in kept])
    assert found.column("id").to_pylist() == sorted(_kept(cold, node))
    forget_splits()
    reading.store.clear()
    list(Filtered(reading, ref, node).tables(None, SCHEMA.names))
    assert reading.store.bytes_read < 3 << 20


def test_a_damaged_footer_rules_nothing_out(split, rows):
    reading, ref = split
    data = bytearray(reading.store.get(ref.path))
    data[-300:-200] = bytes(100)
    store = MemoryStore("memory://damaged")
    store.put(ref.path, bytes(data))
    node = as_node("id < 1000", SCHEMA, "UTC")
    assert (
        count_split(replace(reading, store=store), ref, Selection(parse_query("usual", SPEC, SCHEMA), node))
        == 998
    )


def test_a_partition_filter_beside_a_query_opens_only_the_splits_of_that_partition(tmp_path, monkeypatch):
    schema = pa.schema([("day", pa.string()), ("message", pa.string())])
    made = it.Table.create(tmp_path / "t", schema, ["day"], {"indexing.typemap.message": "text"})
    for day in "abcd":
        made.append(pa.table({"day": [day] * 5, "message": ["some error"] * 5}))
    forget_splits()
    opened = []
    plain = open_splits.SplitFile.of
    monkeypatch.setattr(
        open_splits.SplitFile, "of", lambda store, path: (opened.append(path), plain(store, path))[1]
    )
    assert made.search("error", where="day = 'c'").read_all().num_rows == 5
    assert made.count(query="error", where="day IN ('c')") == 5
    assert made.facets("message", "error", "day = 'c'")["count"].to_pylist() == [5]
    assert opened
    assert {path.partition("/")[0] for path in opened} == {"day=c"}
    scan = made.last_scan
    assert (scan.files.considered, scan.files.pruned_by_partition, scan.files.kept) == (4, 3, 1)
