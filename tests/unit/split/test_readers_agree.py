"""A split is a Parquet file: pyarrow, DuckDB and Polars read the rows that were written, all types included."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from indextables.table import Table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("tiny", pa.int8()), ("small", pa.int16()), ("int", pa.int32()), ("float", pa.float32()), ("double", pa.float64()),
        ("flag", pa.bool_()), ("text", pa.string()), ("bytes", pa.binary()), ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")), ("money", pa.decimal128(12, 2)),
        ("huge", pa.decimal128(38, 10)), ("words", pa.list_(pa.field("element", pa.string()))),
        ("inside", pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])),
        ("pairs", pa.map_(pa.string(), pa.int64())), ("part", pa.string()),
    ]
)  # fmt: skip


def row(at):
    full = at % 5 != 0
    return {
        "id": at,
        "tiny": at % 120 if full else None,
        "small": -at if full else None,
        "int": at * 1000 if full else None,
        "float": at / 4 if full else None,
        "double": [math.inf, -0.0, at / 3][at % 3] if full else None,
        "flag": at % 2 == 0 if full else None,
        "text": f"línea {at} 日本" if full else None,
        "bytes": bytes([at % 256, 0, 255]) if full else None,
        "day": date(1960 + at % 100, 1 + at % 12, 1 + at % 28) if full else None,
        "moment": datetime(1970 + at % 60, 1, 1, 1, 2, 3, at, tzinfo=UTC) if full else None,
        "local": datetime(1900 + at % 200, 1, 1, 1, 2, 3, at) if full else None,
        "money": Decimal(at) / 100 if full else None,
        "huge": Decimal(at) * 10**15 + Decimal("0.0000000001") if full else None,
        "words": ["a", None, f"w{at}"][: at % 4] if full else None,
        "inside": {"a": at, "b": {"c": f"deep {at}"} if at % 2 else None} if full else None,
        "pairs": [(f"k{at}", at), ("x", None)] if full else None,
        "part": ["p q", "r/s", None, ""][at % 4],
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("readers") / "t"
    made = Table.create(
        path, SCHEMA, ["part"], {"indexing.typemap.text": "text", "indexing.fastfields": "id,moment"}
    )
    for start in (0, 3000, 6000):
        made.append(pa.Table.from_pylist([row(at) for at in range(start, start + 3000)], schema=SCHEMA))
    return made


@pytest.fixture(scope="module")
def expected(table):
    return table.scan().read_all().sort_by("id")


def local_files(table):
    root = table.uri.removeprefix("file://")
    return [f"{root}/{path}" for path in table.files()["path"].to_pylist()]


def test_our_reader_returns_what_was_written(expected):
    assert expected.equals(pa.Table.from_pylist([row(at) for at in range(9000)], schema=SCHEMA))


def test_pyarrow_reads_the_same_rows(table, expected):
    parts = [pq.ParquetFile(path, page_checksum_verification=True).read() for path in local_files(table)]
    assert pa.concat_tables(parts).sort_by("id").cast(SCHEMA).equals(expected)


def test_pyarrow_datasets_read_a_directory_of_splits(table, expected):
    import pyarrow.dataset as ds

    found = ds.dataset(local_files(table), format="parquet", schema=SCHEMA).to_table()
    assert found.sort_by("id").equals(expected)


def test_duckdb_reads_the_same_rows(table, expected):
    import duckdb

    files = ", ".join(f"'{path}'" for path in local_files(table))
    found = (
        duckdb.sql(f"SELECT * FROM read_parquet([{files}], hive_partitioning = false) ORDER BY id")
        .arrow()
        .read_all()
    )
    assert found.column_names == SCHEMA.names
    for name in SCHEMA.names:
        assert found[name].cast(SCHEMA.field(name).type).to_pylist() == expected[name].to_pylist(), name
    one = duckdb.sql(
        f"SELECT count(*) FROM read_parquet([{files}], hive_partitioning = false) WHERE text = 'línea 7 日本'"
    )
    assert one.fetchall() == [(1,)]


def test_polars_reads_the_same_rows(table, expected):
    import polars as pl

    found = pl.read_parquet(local_files(table), hive_partitioning=False, glob=False).sort("id").to_arrow()
    assert found.column_names == SCHEMA.names
    for name in SCHEMA.names:
        if name in ("pairs", "inside", "words"):
            assert [_plain(v) for v in found[name].to_pylist()] == [
                _plain(v) for v in expected[name].to_pylist()
            ], name
        else:
            assert found[name].cast(SCHEMA.field(name).type).to_pylist() == expected[name].to_pylist(), name


def _plain(value):
    """Polars holds maps as lists of structs."""
    if isinstance(value, list):
        return [tuple(item.values()) if isinstance(item, dict) else item for item in value]
    return value


def test_the_files_are_plain_parquet_to_the_shell_of_any_reader(table):
    for path in local_files(table):
        metadata = pq.read_metadata(path)
        assert metadata.num_rows == sum(
            metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)
        )
        assert metadata.schema.to_arrow_schema().names == SCHEMA.names
