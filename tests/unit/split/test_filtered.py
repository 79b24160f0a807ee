"""A filter over the rows of one split keeps the rows for which it is true."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from indextables.index.settings import from_options
from indextables.options import Options
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.evaluate.rows import mask
from indextables.reading import Reading
from indextables.split.layout import SplitRef, read_footer
from indextables.split.open_splits import forget_splits
from indextables.split.read.row_map import RowMap
from indextables.split.search.filtered import Filtered
from indextables.split.source import SplitFile
from indextables.split.write.build import build_splits
from indextables.storage.checksum import crc32
from indextables.storage.stores.memory import MemoryStore
from support.faults import CountingStore

ROWS = 40_000
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int16()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("born", pa.date32()),
        ("price", pa.float64()),
    ]
)
START = datetime(1969, 12, 31, tzinfo=UTC)


@pytest.fixture(scope="module")
def rows():
    chance = np.random.default_rng(3)
    numbers = np.arange(ROWS)
    late = (numbers > 8000) & (numbers < 21_000)
    return pa.table(
        {
            "id": numbers - 20_000,
            "small": pa.array((numbers // 1000).astype(np.int16), mask=late),
            "name": pa.array([f"{n:06d}é{chance.integers(1 << 60):x}" for n in numbers], mask=late),
            "at": [START + timedelta(seconds=int(n)) for n in numbers],
            "born": pa.array([date(1969, 12, 1) + timedelta(days=int(n) // 500) for n in numbers], mask=late),
            "price": pa.array([float("nan") if n % 5000 == 0 else n / 7 for n in numbers]),
        },
        schema=SCHEMA,
    )


@pytest.fixture(scope="module")
def split(rows):
    store = MemoryStore("memory://pages")
    options = Options.of({})
    (built,) = build_splits(rows.to_batches(), SCHEMA, (), from_options(options, SCHEMA), options, store)
    return CountingStore(store), SplitRef.of(built.add)


def kept(split, where):
    forget_splits()
    store, ref = split
    node = as_node(where, SCHEMA, "UTC")
    found = Filtered(Reading(store, SCHEMA, Options()), ref, node).tables(None, ["id"])
    return [number for _, table in found for number in table.column("id").to_pylist()]


FILTERS = [
    "name LIKE '0300%'",
    "name = '000007'",
    "name > '039990'",
    "name IS NULL AND id < -9000",
    "name IS NOT NULL AND small = 3",
    "name >= '02' AND name < '0201' OR id = 19999",
    "NOT (name > '000100')",
    "name IN ('x', '012345') OR name LIKE '%zz%'",
    "name <=> NULL AND born IS NULL AND at < TIMESTAMP '1970-01-01 02:30:00'",
    "born = DATE '1970-01-30' AND name > '0'",
    "name > '0' AND price > 5000.0",
    "small IN (38, 39) AND name < '9' AND at >= TIMESTAMP '1969-12-31 10:40:00'",
]


@pytest.mark.parametrize("where", FILTERS)
def test_the_rows_kept_are_those_for_which_the_filter_is_true(split, rows, where):
    wanted = rows.filter(mask(as_node(where, SCHEMA, "UTC"), rows, SCHEMA, "UTC"))
    assert kept(split, where) == wanted.column("id").to_pylist()


def test_what_other_releases_wrote_after_the_page_map_is_ignored(split):
    inner, ref = split
    source = SplitFile(inner, ref.path)
    manifest = read_footer(source, ref).manifest
    piece = manifest.row_map
    stored = source.read_one(manifest.offset + manifest.length - piece.length, piece.length)
    longer = msgspec.msgpack.encode([*msgspec.msgpack.decode(stored), [0, 0, 0]])
    row_map = RowMap.from_bytes(longer, crc32(longer))
    assert sum(row_map.group_rows) == ROWS
