"""Building splits: partitions, rolling, statistics, index settings, and nothing left behind."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from indextables.errors import OptionError, StorageError
from indextables.index.settings import IndexField, IndexSpec, from_options
from indextables.options import Options
from indextables.split.write import build, writer
from indextables.split.write.build import build_splits, partitions
from indextables.storage.store import open_store
from support.faults import FaultyStore
from support.splits import build_all, build_split

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("message", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("n", pa.float64()),
        ("ip", pa.string()),
    ]
)


def rows(count, start=0):
    numbers = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "message": [f"message number {at}" for at in numbers],
            "day": [f"2024-01-{at % 3 + 1:02d}" for at in numbers],
        }
    )


def test_rows_go_to_their_partition_and_keep_all_columns(tmp_path):
    made = build_all(tmp_path, rows(300), partition_columns=["day"])
    assert sorted(b.add.partition_values["day"] for b in made) == ["2024-01-01", "2024-01-02", "2024-01-03"]
    for built in made:
        day = built.add.partition_values["day"]
        assert built.add.path.startswith(f"day={day}/part-")
        table = pq.ParquetFile(built.path).read()
        assert table.column_names == ["id", "message", "day"]
        assert set(table["day"].to_pylist()) == {day}
        assert built.manifest.partition_values == {"day": day}


def test_distinct_partition_values_never_share_a_split():
    """I1, I2: null and the empty string are told apart, the zeros of a float are not."""
    table = pa.table({"p": ["", None, "a/b", "a%2Fb", ""], "v": range(5)})
    assert sorted((values[0] or "", values[0] is None, part["v"].to_pylist()) for values, part in partitions(table, ["p"])) == [
        ("", False, [0, 4]), ("", True, [1]), ("a%2Fb", False, [3]), ("a/b", False, [2]),
    ]  # fmt: skip
    zeros = pa.table({"p": [0.0, -0.0, float("nan"), float("nan")], "v": range(4)})
    assert sum(part.num_rows for _, part in partitions(zeros, ["p"])) == 4
    assert len({values for values, _ in partitions(zeros, ["p"])}) == len(list(partitions(zeros, ["p"])))


def test_a_split_is_closed_at_the_row_limit(tmp_path):
    made = build_all(tmp_path, rows(1000), {"write.maxRowsPerSplit": "300"})
    assert [b.add.num_records for b in made] == [300, 300, 300, 100]
    ids = [at for b in made for at in pq.ParquetFile(b.path).read()["id"].to_pylist()]
    assert ids == list(range(1000))


def test_a_split_is_closed_near_the_target_size(tmp_path):
    import random

    dice = random.Random(1)
    noise = pa.table({"noise": ["".join(dice.choices("abcdefghijklmnop", k=200)) for _ in range(200_000)]})
    made = build_all(tmp_path, noise, {"write.targetSplitBytes": "4m"})
    assert len(made) > 3
    assert all(2 << 20 < b.add.size < 8 << 20 for b in made[:-1])


def test_few_splits_are_open_at_once(tmp_path, monkeypatch):
    """The largest is closed first; every row is still written once."""
    now, most = set(), []

    class Counted(writer.SplitWriter):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            now.add(self)
            most.append(len(now))

        def close(self):
            now.discard(self)
            super().close()

    monkeypatch.setattr(build, "SplitWriter", Counted)
    table = pa.table({"p": [at % 20 for at in range(2000)], "v": pa.array(range(2000), pa.int64())})
    made = build_all(tmp_path, table, {"write.maxOpenSplits": "3"}, ["p"])
    assert max(most) == 4, "one more than stay open: the newest, before the largest is closed"
    assert not now
    assert sorted(at for b in made for at in pq.ParquetFile(b.path).read()["v"].to_pylist()) == list(
        range(2000)
    )


def test_the_add_carries_statistics_sizes_and_tags(tmp_path):
    (built,) = build_all(tmp_path, rows(10), {"indexing.typemap.message": "text"})
    add = built.add
    assert (add.num_records, add.min_values["id"], add.max_values["id"]) == (10, "0", "9")
    assert json.loads(add.stats)["nullCount"]["message"] == 0
    assert add.uncompressed_size_bytes > 0
    assert add.has_footer_offsets
    assert add.tags["splitFormat"] == "2"
    assert add.tags["indexedFields"] == "message:text"


def test_long_statistics_are_truncated_as_options_say(tmp_path):
    """H1: a value of 2000 characters is left out of the statistics."""
    table = pa.table({"long": ["x" * 2000], "short": ["y"]})
    (built,) = build_all(tmp_path, table)
    assert "long" not in built.add.min_values
    assert built.add.max_values["short"] == "y"


def test_parquet_has_small_checked_pages_an_index_and_bloom_filters(tmp_path):
    table = pa.table(
        {"key": [f"key-{at * 7919 % 40_000}" for at in range(40_000)], "text": ["some words"] * 40_000}
    )
    (built,) = build_all(tmp_path, table, {"indexing.typemap.text": "text"})
    metadata = pq.ParquetFile(built.path).metadata
    assert [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)] == [32_768, 7232]
    key = metadata.row_group(0).column(0)
    assert key.compression == "ZSTD"
    assert key.has_offset_index
    assert key.has_column_index
    offsets = "SELECT path_in_schema, bloom_filter_offset FROM parquet_metadata(?) WHERE row_group_id = 0"
    filters = dict(duckdb.execute(offsets, [str(built.path)]).fetchall())
    assert filters["key"] is not None
    assert filters["text"] is None


def test_nothing_local_stays_when_publishing_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    store = FaultyStore(open_store(tmp_path / "table"), fail_at=1, mode="error")
    spec = from_options(Options.of({"indexing.typemap.message": "text"}), rows(1).schema)
    with pytest.raises(StorageError):
        list(build_splits([rows(10)], rows(1).schema, (), spec, Options(), store))
    assert list((tmp_path / "tmp").iterdir()) == []


def test_nothing_local_stays_when_the_rows_fail_or_the_caller_stops(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    spec = from_options(Options.of({"indexing.typemap.message": "text"}), rows(1).schema)

    def broken():
        yield rows(100_000)
        raise RuntimeError("the source went away")

    def writing():
        return build_splits(
            broken(), rows(1).schema, ["day"], spec, Options(), open_store(tmp_path / "table")
        )

    with pytest.raises(RuntimeError, match="went away"):
        list(writing())
    small = Options.of({"write.maxRowsPerSplit": "10"})
    stopped = build_splits([rows(100)], rows(1).schema, (), spec, small, open_store(tmp_path / "table"))
    next(stopped)
    stopped.close()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_no_rows_make_no_split(tmp_path):
    assert build_all(tmp_path, rows(0)) == []


def test_large_values_make_small_row_groups(tmp_path):
    """A row group is bounded in bytes, not only in rows."""
    table = pa.table({"blob": [b"x" * 1_000_000] * 80})
    (built,) = build_all(tmp_path, table)
    metadata = pq.ParquetFile(built.path).metadata
    assert metadata.num_row_groups > 1
    assert all(
        metadata.row_group(at).num_rows * 1_000_000 <= writer.BYTES_PER_GROUP + 1_000_000
        for at in range(metadata.num_row_groups)
    )


@pytest.mark.parametrize(
    "options",
    [
        {"indexing.typemap.message": "text", "indexing.typemap.tags": "text"},
        {"indexing.typemap.text": "message, tags"},
        {"spark.indextables.indexing.typemap.MESSAGE": "TEXT", "indexing.typemap.Tags": "text"},
    ],
)
def test_settings_are_given_by_column_or_as_a_list(options):
    spec = from_options(Options.of(options), SCHEMA)
    assert spec == IndexSpec(
        (
            IndexField("message", "text", "default@2", "position"),
            IndexField("tags", "text", "default@2", "position"),
        )
    )


def test_settings_survive_as_table_properties():
    options = {
        "indexing.typemap.message": "text", "indexing.tokenizer.message": "en_stem", "indexing.typemap.ip": "ip",
        "indexing.indexrecordoption.message": "freq", "indexing.fastfields": "n,id,ip",
    }  # fmt: skip
    spec = from_options(Options.of(options), SCHEMA)
    assert from_options(Options().over(spec.to_properties(), "t"), SCHEMA) == spec
    assert IndexSpec.from_wire(spec.to_wire()) == spec


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"indexing.typemap.nope": "text"}, "the table has no column 'nope'; it has"),
        ({"indexing.typemap.text": "nope"}, "has no column 'nope'; it has"),
        ({"indexing.fastfields": "nope"}, "has no column 'nope'; it has"),
        ({"indexing.tokenizer.nope": "raw"}, "has no column 'nope'; it has"),
        ({"indexing.typemap.message": "fulltext"}, "expected one of text, string, json, ip"),
        (
            {"indexing.typemap.message": "text", "indexing.tokenizer.message": "klingon"},
            "expected one of default",
        ),
        ({"indexing.tokenizer.message": "raw"}, "is not indexed"),
        ({"indexing.typemap.id": "text"}, "needs text or a nested type"),
        ({"indexing.typemap.message": "ip", "indexing.tokenizer.message": "en_stem"}, "has no tokenizer"),
        ({"indexing.fastfields": "tags"}, "needs a number"),
        (
            {"indexing.typemap.message": "text", "indexing.fastfields": "message"},
            "names column 'message', which is indexed as text: .* index the column as string",
        ),
        ({"indexing.typemap.message": "text", "indexing.typemap.string": "message"}, "twice"),
    ],
)
def test_settings_that_cannot_be_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        from_options(Options.of(options), SCHEMA)


def test_a_uuid_column_costs_little_with_compact_ids(tmp_path):
    """Identifiers stay out of the dictionary, and an exact search for one still finds its row."""
    import uuid

    dice = __import__("random").Random(5)
    ids = [str(uuid.UUID(int=dice.getrandbits(128), version=4)) for _ in range(20_000)]
    table = pa.table({"message": [f"request {one} done" for one in ids]})
    plain = build_split(tmp_path / "a", table, {"indexing.typemap.message": "text"})
    compact = build_split(
        tmp_path / "b",
        table,
        {"indexing.typemap.message": "text", "indexing.tokenizer.message": "compact_ids"},
    )
    assert compact.add.hotcache_length < 0.5 * plain.add.hotcache_length
    for at in (0, 777, 19_999):
        assert compact.hits(f'"{ids[at]}"') == plain.hits(f'"{ids[at]}"') == [at]
        assert compact.hits(f'"request {ids[at].upper()} done"') == [at]
    assert compact.hits('"550e8400-e29b-41d4-a716-446655440000"') == []


_PEAK = """
import sys, pyarrow as pa, tempfile, random
from indextables.options import Options
from indextables.split.write.build import build_splits
from indextables.index.settings import from_options
from indextables.storage.store import open_store

def peak():
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))

dice = random.Random(1)
words = [f"word{at}" for at in range(50_000)]
schema = pa.schema([("p", pa.int64()), ("text", pa.string())])
text = 0

def batches():
    global text
    for at in range(40):
        lines = [" ".join(dice.choices(words, k=25)) for _ in range(10_000)]
        text += sum(map(len, lines))
        yield pa.record_batch([pa.array([k % 4 for k in range(10_000)], pa.int64()), pa.array(lines)], schema=schema)

options = Options.of({"indexing.typemap.text": "text"})
spec = from_options(options, schema)
before = peak()
with tempfile.TemporaryDirectory() as directory:
    adds = list(build_splits(batches(), schema, ["p"], spec, options, open_store(directory)))
print(len(adds), text, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
def test_memory_while_building_stays_within_the_stated_bound():
    """3.5 times the open text plus 256 MiB, here with four partitions open at once."""
    done = subprocess.run([sys.executable, "-c", _PEAK], capture_output=True, text=True, check=True)
    splits, text, peak = map(int, done.stdout.split())
    assert splits == 4
    assert peak <= 3.5 * text + (256 << 20)
