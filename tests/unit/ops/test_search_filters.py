"""Filters over many splits: an absent word opens no index, and nothing about them can change an answer."""

from __future__ import annotations

import random
import uuid

import pyarrow as pa
import pytest

from indextables.index.filters import hash_words
from indextables.index.read.cache import MEMORY
from indextables.log.transaction_log import TransactionLog
from indextables.ops.read.word_filters import read_filters, update_filters
from indextables.split.open_splits import forget_splits
from indextables.storage.stores.memory import MemoryStore
from indextables.table import Table
from support.faults import CountingStore

OPTIONS = {
    "indexing.typemap.message": "text",
    "indexing.typemap.level": "string",
    "indexFilters.enabled": "true",
    "checkpoint.enabled": "false",
}
SCHEMA = pa.schema([("id", pa.int64()), ("message", pa.string()), ("level", pa.string())])
SPLITS = 40


@pytest.fixture
def store():
    return CountingStore(MemoryStore(f"memory://filtered-{uuid.uuid4().hex}"))


@pytest.fixture
def table(store):
    """Splits of twenty lines; in each a word of its own."""
    dice = random.Random(5)
    log = TransactionLog.open(store.uri, OPTIONS, store=store)
    log.initialize(SCHEMA, properties={f"spark.indextables.{key}": value for key, value in OPTIONS.items()})
    made = Table(log, log.snapshot())
    for split in range(SPLITS):
        lines = [f"common {dice.choice(['red', 'blue'])} line" for _ in range(19)] + [
            f"only{split} needle fox"
        ]
        rows = {"id": range(split * 20, split * 20 + 20), "message": lines, "level": ["INFO"] * 19 + ["Warn"]}
        made.append(pa.table(rows, SCHEMA))
    made.checkpoint()
    return made


def reopened(table, store):
    """The table in a process that knows nothing of it yet."""
    forget_splits()
    MEMORY.clear()
    log = TransactionLog.open(store.uri, OPTIONS, store=store)
    fresh = Table(log, log.snapshot())
    store.clear()
    return fresh


def splits_opened(store):
    return {path for operation, path in store.opens if path.endswith(".split")}


QUERIES = [
    ("only7", 1),
    ("nowhere", 0),
    ("only7 AND common", 1),
    ("only7 OR only9", 2),
    ('"needle fox"', SPLITS),
    ('"needle only3"', 1),
    ("level:Warn AND only5", 1),
    ("level:nothing", 0),
    ("only*", SPLITS),
    ("NOT common", SPLITS),
    ("(only1 OR only2) AND NOT only2", 2),
]


@pytest.mark.parametrize(("query", "most"), QUERIES)
def test_only_splits_that_may_match_are_opened_and_the_answer_is_the_same(table, store, query, most):
    fresh = reopened(table, store)
    found = fresh.count(query=query)
    assert len(splits_opened(store)) <= most + 2  # a filter may be wrong about a split now and then
    assert fresh.last_scan.search.ruled_out == SPLITS - len(splits_opened(store))
    for meta in list(store.list("_transaction_log/filters")):
        store.delete(meta.path)
    unfiltered = reopened(table, store)
    assert unfiltered.count(query=query) == found
    assert unfiltered.last_scan.search.ruled_out == 0


def test_a_word_of_one_split_costs_few_requests(table, store):
    fresh = reopened(table, store)
    fresh.count(query="common")
    forget_splits()
    MEMORY.clear()
    store.clear()
    assert fresh.count(query="only11") == 1
    assert store.count("get_range") <= 3


def test_splits_written_later_are_asked_themselves_until_the_next_checkpoint(table, store):
    table.append(pa.table({"id": [1], "message": ["late word"], "level": [None]}, SCHEMA))
    fresh = reopened(table, store)
    assert fresh.count(query="late") == 1
    assert len(splits_opened(store)) == 1
    assert update_filters(TransactionLog.open(store.uri, OPTIONS, store=store)) == 1
    assert reopened(table, store).count(query="only3") == 1
    assert len(splits_opened(store)) == 1


def test_small_groups_become_one_and_only_words_of_new_splits_are_read(table, store):
    log = TransactionLog.open(store.uri, OPTIONS, store=store)
    for turn in range(5):
        table.append(pa.table({"id": [turn], "message": [f"turn{turn}"], "level": ["x"]}, SCHEMA))
        store.clear()
        forget_splits()
        assert update_filters(log) == 1
        assert len(splits_opened(store)) == 1
    files = read_filters(store)
    assert sum(len(file.group.names) for file in files) == SPLITS + 5
    assert len(files) < 6
    assert reopened(table, store).count(query="turn3") == 1


def test_filters_of_splits_that_are_gone_go_too(table, store):
    table.overwrite(pa.table({"id": [1], "message": ["new"], "level": ["x"]}, SCHEMA))
    log = TransactionLog.open(store.uri, OPTIONS, store=store)
    update_filters(log)
    names = {name for file in read_filters(store) for name in file.group.names}
    assert names == set(table.files()["path"].to_pylist())


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "foreign"])
def test_a_damaged_filter_changes_no_answer(table, store, damage):
    (meta,) = store.list("_transaction_log/filters")
    sound = store.get(meta.path)
    for at in range(0, len(sound), max(1, len(sound) // 40)):
        broken = bytearray(sound)
        if damage == "flip":
            broken[at] ^= 4
        elif damage == "cut":
            del broken[at:]
        elif damage == "empty":
            broken.clear()
        else:
            broken[:] = b"not a filter at all, but long enough to be one"
        store.put(meta.path, bytes(broken))
        fresh = reopened(table, store)
        assert fresh.count(query="only7") == 1
        assert fresh.count(query="needle") == SPLITS


def test_other_settings_make_old_filters_unused(table, store):
    table._log.update_properties({"spark.indextables.indexing.tokenizer.message": "whitespace"})
    fresh = reopened(table, store)
    assert fresh.count(query="only7") == 1
    assert fresh.last_scan.search.ruled_out == 0


def test_no_word_is_missed_and_few_are_mistaken():
    """Ten thousand random words: all known ones are found, and fewer than one in two hundred others are."""
    from indextables.index.build.builder import IndexBuilder
    from indextables.index.filters import FilterGroup, filter_of, group_bytes, key_of
    from indextables.index.read.lookup import BytesRanges, Index
    from indextables.index.settings import IndexField, IndexSpec

    dice = random.Random(1)
    spec = IndexSpec((IndexField("m", "text", "default", "basic"),))
    words = [f"{dice.getrandbits(60):x}" for _ in range(10_000)]
    builder = IndexBuilder(spec, pa.schema([("m", pa.string())]))
    builder.add(pa.table({"m": words}))
    built = builder.finish()
    index = Index.open(BytesRanges(built.to_bytes()), built.length, built.root_length)
    data = group_bytes(["a", "b"], [filter_of(index)] * 2, "s")
    group = FilterGroup.open(BytesRanges(data), len(data))
    assert group.may_hold([key_of(0, word.encode()) for word in words]).all()
    others = [key_of(0, f"{dice.getrandbits(60):x}".encode()) for _ in range(10_000)]
    assert group.may_hold(others)[:, 0].mean() < 0.005


def test_hashes_never_change():
    """Files written by one version are read by the next."""
    assert [int(value) for value in hash_words([b"", b"a", b"error", "naïve".encode(), b"x" * 300])] == HASHES


HASHES = [0, 17508005127702757215, 18019507104401900588, 14787918922373207803, 18036385044437326255]


def created(store, splits, **options):
    """A table without the option of filters, its rows in so many splits of one line."""
    settings = {"indexing.typemap.message": "text", "write.maxRowsPerSplit": "1", **options}
    log = TransactionLog.open(store.uri, settings, store=store)
    log.initialize(SCHEMA, properties={"spark.indextables.indexing.typemap.message": "text"})
    made = Table(log, log.snapshot())
    append(made, range(splits))
    return made


def append(table, numbers):
    lines = [f"word{number}" for number in numbers]
    table.append(pa.table({"id": [*numbers], "message": lines, "level": lines}, SCHEMA))


def covered(store):
    return sum(len(file.group.names) for file in read_filters(store))


@pytest.mark.parametrize(("splits", "members"), [(63, 0), (64, 64)])
def test_a_table_has_filters_from_64_splits_on(store, splits, members):
    table = created(store, splits)
    table.checkpoint()
    assert covered(store) == members
    forget_splits()
    assert table.count(query="word7") == 1
    assert table.last_scan.search.ruled_out == max(0, members - 1)


def test_filters_that_are_turned_off_are_neither_written_nor_read(store):
    table = created(store, 70, **{"indexFilters.enabled": "false"})
    table.checkpoint()
    assert covered(store) == 0
    store.clear()
    assert table.count(query="word7") == 1
    assert not [path for _, path in store.opens if "filters" in path]


def test_a_write_that_makes_a_checkpoint_covers_new_splits(store):
    table = created(store, 64, **{"checkpoint.interval": "2"})
    assert covered(store) == 0
    append(table, range(64, 66))
    assert covered(store) == 66


def test_a_word_asked_for_again_needs_no_request(store):
    table = created(store, 64)
    table.checkpoint()
    assert table.count(query="word7") == 1
    store.clear()
    assert table.count(query="word7") == 1
    assert store.count("get_range", "list_level") == 0


def test_filters_are_made_a_part_at_a_time_where_they_may_read_little(store):
    table = created(store, 64, **{"indexFilters.enabled": "false"})
    log = TransactionLog.open(store.uri, {}, store=store)
    assert update_filters(log, most_bytes=1) == 1
    assert 1 < update_filters(log, most_bytes=40_000) < 63
    update_filters(log)
    assert covered(store) == 64
    assert table.count(query="word7") == 1


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_the_option_is_kept_as_a_property_of_a_new_table(tmp_path, enabled):
    Table.create(tmp_path / "t", SCHEMA, options={"indexFilters.enabled": enabled})
    opened = Table.open(tmp_path / "t")
    assert opened.metadata.configuration["spark.indextables.indexFilters.enabled"] == enabled
