"""What a cold search may cost: requests and bytes, counted at the store, for a split of a million lines."""

from __future__ import annotations

import pyarrow as pa
import pytest

from benchmarks.log_lines import RARE, SCHEMA, log_lines
from indextables.index.query.syntax import parse_query
from indextables.index.read.cache import MEMORY
from indextables.index.settings import from_options
from indextables.options import Options
from indextables.reading import Reading
from indextables.split.layout import SplitRef
from indextables.split.open_splits import forget_splits
from indextables.split.search.run import count_split, hits_split, search_split
from indextables.split.search.selection import Selection
from indextables.split.write.build import build_splits
from indextables.storage.stores.memory import MemoryStore
from support.faults import CountingStore

pytestmark = pytest.mark.slow

LINES = 1_000_000
ONE_ROW = "onlyhere"
KIB = 1 << 10
OPTIONS = {
    "indexing.typemap.message": "text",
    "write.targetSplitBytes": "4g",
    "write.maxRowsPerSplit": "10000000",
}


def with_a_needle(batches):
    """The lines, one of which holds a word that stands nowhere else."""
    for number, batch in enumerate(batches):
        if number == 7:
            messages = batch["message"].to_pylist()
            messages[321] += f" {ONE_ROW}"
            at = SCHEMA.get_field_index("message")
            columns = [*batch.columns[:at], pa.array(messages), *batch.columns[at + 1 :]]
            batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
        yield batch


@pytest.fixture(scope="module")
def lines():
    """One split of a million lines in a store that counts."""
    options = Options.of(OPTIONS)
    spec = from_options(options, SCHEMA)
    store = MemoryStore("memory://budgets")
    (built,) = build_splits(with_a_needle(log_lines(LINES)), SCHEMA, (), spec, options, store)
    return Reading(CountingStore(store), SCHEMA, options), SplitRef.of(built.add), spec


@pytest.fixture
def cold(lines):
    """The same store with nothing known of it."""
    forget_splits()
    MEMORY.clear()
    lines[0].store.clear()
    return lines


def spent(store):
    assert {operation for operation, _ in store.opens} <= {"get_range"}
    return len(store.opens), store.bytes_read


def count(cold, query):
    reading, ref, spec = cold
    return count_split(reading, ref, Selection(parse_query(query, spec, SCHEMA)))


def test_an_absent_word_costs_two_small_reads(cold):
    assert count(cold, "nowheretobefound") == 0
    requests, size = spent(cold[0].store)
    assert requests <= 2
    assert size <= 32 * KIB


def test_a_needle_with_its_row_costs_four_reads(cold):
    reading, ref, spec = cold
    (found,) = search_split(
        reading, ref, Selection(parse_query(ONE_ROW, spec, SCHEMA), columns=tuple(SCHEMA.names))
    )
    assert found["message"][0].as_py().endswith(ONE_ROW)
    requests, size = spent(reading.store)
    assert requests <= 4
    assert size <= 192 * KIB


@pytest.mark.parametrize("query", ["conn*", "timed AND internal AND attempt", f"{RARE} OR nowheretobefound"])
def test_prefixes_and_conjunctions_cost_six_reads(cold, query):
    reading, ref, spec = cold
    assert len(hits_split(reading, ref, Selection(parse_query(query, spec, SCHEMA))))
    requests, size = spent(reading.store)
    assert requests <= 6
    assert size <= 256 * KIB


def test_a_phrase_costs_ten_reads(cold):
    assert count(cold, '"timed out after"') > 50_000
    requests, size = spent(cold[0].store)
    assert requests <= 10
    assert size <= 768 * KIB


def test_the_ten_best_cost_a_megabyte(cold):
    reading, ref, spec = cold
    query = parse_query("timed OR garbage", spec, SCHEMA)
    (found,) = search_split(reading, ref, Selection(query, columns=("id",), limit=10, score=True))
    assert found.num_rows == 10
    assert spent(reading.store)[1] <= 1024 * KIB


def test_a_second_search_reads_nothing_for_what_is_known(cold):
    first = count(cold, RARE)
    cold[0].store.clear()
    assert count(cold, RARE) == first == 10
    assert spent(cold[0].store) == (0, 0)
