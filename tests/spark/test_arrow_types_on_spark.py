"""Every Arrow type that a table takes without Spark is read by Spark, value for value; others are refused."""

from __future__ import annotations

import math
import re
import struct
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import indextables as it
from indextables.errors import SchemaError
from indextables.spark.versions import frame_of_arrow

UTC = timezone.utc
MOMENT = datetime(2024, 2, 29, 12, 34, 56, tzinfo=UTC)
LOCAL = datetime(1969, 12, 31, 23, 59, 59)


REQUIRED = pa.struct(
    [
        pa.field("x", pa.int8(), nullable=False),
        pa.field("y", pa.struct([pa.field("z", pa.string(), nullable=False)]), nullable=False),
        pa.field("w", pa.list_(pa.int64()), nullable=False),
    ]
)


def numbers() -> dict[str, tuple[pa.DataType, list[Any]]]:
    found: dict[str, tuple[pa.DataType, list[Any]]] = {}
    for bits in (8, 16, 32, 64):
        signed, unsigned = getattr(pa, f"int{bits}")(), getattr(pa, f"uint{bits}")()
        found[f"int{bits}"] = (signed, [-(2 ** (bits - 1)), 0, 2 ** (bits - 1) - 1])
        found[f"uint{bits}"] = (unsigned, [0, 1, 2**bits - 1])
    half = [struct.unpack("e", struct.pack("e", value))[0] for value in (1.5, -0.25, 65504.0)]
    found["float16"] = (pa.float16(), half)
    found["float32"] = (pa.float32(), [1.5, -math.inf, math.nan])
    found["float64"] = (pa.float64(), [0.1, math.inf, math.nan, -0.0])
    money = [Decimal("1.50"), Decimal("-99999.99")]
    for name, kind in (
        ("decimal32", pa.decimal32(7, 2)), ("decimal64", pa.decimal64(16, 2)), ("decimal128", pa.decimal128(38, 2)),
        ("decimal256", pa.decimal256(38, 2)), ("decimal256_wide", pa.decimal256(60, 2)),
        ("decimal_negative_scale", pa.decimal128(5, -2)), ("decimal_whole", pa.decimal128(10, 0)),
    ):  # fmt: skip
        found[name] = (kind, [Decimal("100")] if kind.scale <= 0 else money)
    found["bool"] = (pa.bool_(), [True, False])
    return found


def texts() -> dict[str, tuple[pa.DataType, list[Any]]]:
    words, raw = ["", "línea 日本 🙂", "x" * 5000], [b"", b"\x00\xff", b"abc"]
    found: dict[str, tuple[pa.DataType, list[Any]]] = {
        "string": (pa.string(), words), "large_string": (pa.large_string(), words),
        "string_view": (pa.string_view(), words),
        "binary": (pa.binary(), raw), "large_binary": (pa.large_binary(), raw),
        "binary_view": (pa.binary_view(), raw), "fixed_binary": (pa.binary(3), [b"abc", b"\x00\x01\x02"]),
        "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "a"]),
        "dictionary_large": (pa.dictionary(pa.int32(), pa.large_string()), ["a", "b", "a"]),
        "dictionary_int": (pa.dictionary(pa.int32(), pa.int64()), [7, 7, 9]),
        "run_end": (pa.run_end_encoded(pa.int32(), pa.string()), ["a", "a", "b"]),
        "uuid": (pa.uuid(), [b"0123456789abcdef"]), "json": (pa.json_(), ['{"a": 1}']),
        "null": (pa.null(), [None]),
    }  # fmt: skip
    return found


def times() -> dict[str, tuple[pa.DataType, list[Any]]]:
    days = [date(1582, 10, 15), date(1970, 1, 1), date(9999, 12, 31)]
    found: dict[str, tuple[pa.DataType, list[Any]]] = {
        "date32": (pa.date32(), days),
        "date64": (pa.date64(), days),
    }
    for unit in ("s", "ms", "us", "ns"):
        found[f"timestamp_{unit}"] = (pa.timestamp(unit), [LOCAL, LOCAL + timedelta(days=20000)])
        found[f"timestamp_{unit}_utc"] = (pa.timestamp(unit, "UTC"), [MOMENT])
        found[f"timestamp_{unit}_paris"] = (pa.timestamp(unit, "Europe/Paris"), [MOMENT])
        found[f"duration_{unit}"] = (pa.duration(unit), [timedelta(days=-3, seconds=5), timedelta(0)])
    found["time32_s"] = (pa.time32("s"), [time(1, 2, 3)])
    found["time32_ms"] = (pa.time32("ms"), [time(1, 2, 3)])
    found["time64_us"] = (pa.time64("us"), [time(1, 2, 3, 4)])
    found["time64_ns"] = (pa.time64("ns"), [time(1, 2, 3, 4)])
    found["month_day_nano"] = (pa.month_day_nano_interval(), [pa.MonthDayNano([1, 2, 3])])
    return found


def nested() -> dict[str, tuple[pa.DataType, list[Any]]]:
    inner = pa.struct(
        [("a", pa.uint32()), pa.field("b", pa.large_string()), ("t", pa.timestamp("ms", "UTC"))]
    )
    row = {"a": 4_000_000_000, "b": "deep", "t": MOMENT}
    pairs = [("k", [row, None]), ("l", None), ("m", [])]
    found: dict[str, tuple[pa.DataType, list[Any]]] = {
        "list": (pa.list_(pa.int32()), [[1, None, 2], []]), "large_list": (pa.large_list(pa.int64()), [[1], []]),
        "fixed_list": (pa.list_(pa.float32(), 2), [[1.0, 2.0], [3.0, 4.0]]),
        "list_view": (pa.list_view(pa.string()), [["a", None], []]),
        "large_list_view": (pa.large_list_view(pa.string()), [["a"], []]),
        "list_of_lists": (pa.list_(pa.list_(pa.uint8())), [[[1, 255], None, []], []]),
        "list_of_structs": (pa.list_(inner), [[row, None], []]),
        "list_of_dictionaries": (pa.list_(pa.dictionary(pa.int8(), pa.string())), [["a", "b"], []]),
        "struct": (inner, [row, {"a": None, "b": None, "t": None}]),
        "struct_of_struct": (pa.struct([("in", pa.struct([("x", pa.int8())]))]), [{"in": {"x": 1}}, {"in": None}]),
        "struct_required": (REQUIRED, [{"x": 1, "y": {"z": "a"}, "w": [1]}]),
        "list_of_required": (pa.list_(REQUIRED), [[{"x": 1, "y": {"z": "a"}, "w": []}, None], []]),
        "map_of_required": (pa.map_(pa.string(), REQUIRED), [[("k", None)], []]),
        "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], []]),
        "map_of_maps": (pa.map_(pa.int32(), pa.map_(pa.string(), pa.bool_())), [[(1, [("x", True)])], []]),
        "map_of_lists": (pa.map_(pa.large_string(), pa.list_(inner)), [pairs]),
        "list_of_times": (pa.list_(pa.time32("s")), [[time(1, 2, 3)]]),
        "struct_of_durations": (pa.struct([("d", pa.duration("s"))]), [{"d": timedelta(seconds=1)}]),
        "struct_empty": (pa.struct([]), [{}]), "list_of_nulls": (pa.list_(pa.null()), [[None]]),
    }  # fmt: skip
    return found


CASES = numbers() | texts() | times() | nested()
REFUSED = {
    "decimal256_wide", "time32_s", "time32_ms", "time64_us", "time64_ns", "list_of_times", "month_day_nano",
    "union", "struct_empty",
}  # fmt: skip
"""What no Spark type can hold."""


def made(name: str) -> pa.Table:
    kind, values = CASES[name]
    if pa.types.is_run_end_encoded(kind):
        column: Any = pa.compute.run_end_encode(pa.array([*values, None], kind.value_type))
    elif isinstance(kind, pa.BaseExtensionType):
        column = pa.ExtensionArray.from_storage(kind, pa.array([*values, None], kind.storage_type))
    else:
        column = pa.array([*values, None], kind)
    return pa.table({"n": pa.array(range(len(column)), pa.int32()), "c": column})


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, it.Table], dict[str, SchemaError]]:
    """A table for every type, and the error of every type that has none."""
    root = tmp_path_factory.mktemp("types")
    taken: dict[str, it.Table] = {}
    refused: dict[str, SchemaError] = {}
    for name in CASES:
        rows = made(name)
        try:
            table = it.Table.create(str(root / name), rows.schema)
            table.append(rows)
            taken[name] = table
        except SchemaError as error:
            refused[name] = error
    return taken, refused


def plain(value: Any) -> Any:
    """One form for what Arrow and Spark give back: instants in UTC, maps as pairs, NaN equal to itself."""
    if isinstance(value, Row):
        return {key: plain(item) for key, item in value.asDict(recursive=False).items()}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, datetime) and value.tzinfo is not None:
        return ("instant", value.astimezone(UTC).replace(tzinfo=None))
    return value


def of_arrow(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_map(kind):
        return None if value is None else {plain(key): of_arrow(item, kind.item_type) for key, item in value}
    if value is not None and pa.types.is_list(kind):
        return [of_arrow(item, kind.value_type) for item in value]
    if value is not None and pa.types.is_struct(kind):
        return {field.name: of_arrow(value[field.name], field.type) for field in kind}
    return plain(value)


def of_spark(value: Any, kind: pa.DataType) -> Any:
    if value is not None and pa.types.is_map(kind):
        return {plain(key): of_spark(item, kind.item_type) for key, item in value.items()}
    if value is not None and pa.types.is_list(kind):
        return [of_spark(item, kind.value_type) for item in value]
    if value is not None and pa.types.is_struct(kind):
        return {field.name: of_spark(value[field.name], field.type) for field in kind}
    if isinstance(value, datetime) and pa.types.is_timestamp(kind) and kind.tz is not None:
        # Collected in the zone of this process, without saying so.
        return ("instant", value.astimezone(UTC).replace(tzinfo=None))
    return plain(value)


def collected(spark: SparkSession, tables: dict[str, it.Table]) -> dict[str, list[Any]]:
    """The rows of many tables with one job: each becomes a column of one frame."""
    frames: list[DataFrame] = [
        spark.read.format("indextables").load(table.uri).select("n", F.col("c").alias(name))
        for name, table in tables.items()
    ]
    every = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), [
        frame.withColumn("of", F.lit(name)) for name, frame in zip(tables, frames, strict=True)
    ])  # fmt: skip
    found: dict[str, list[tuple[int, Any]]] = {name: [] for name in tables}
    for row in every.collect():
        found[row["of"]].append((row["n"], row[row["of"]]))
    return {
        name: [value for _, value in sorted(rows, key=lambda item: item[0])] for name, rows in found.items()
    }


def test_spark_reads_every_type_that_a_table_takes(
    spark: SparkSession, tables: tuple[dict[str, it.Table], dict[str, SchemaError]]
) -> None:
    taken, _ = tables
    by_spark = collected(spark, taken)
    for name, table in taken.items():
        ours = table.scan().read_all().sort_by("n")["c"]
        expected = [of_arrow(value, ours.type) for value in ours.to_pylist()]
        assert [of_spark(value, ours.type) for value in by_spark[name]] == expected, name
        assert expected[-1] is None, name


def test_values_are_the_ones_that_were_given(
    tables: tuple[dict[str, it.Table], dict[str, SchemaError]],
) -> None:
    """A table changes the encoding of a value and never the value."""
    taken, _ = tables
    for name, table in taken.items():
        _, values = CASES[name]
        found = table.scan().read_all().sort_by("n")["c"]
        given = [of_arrow(value, found.type) for value in [*values, None]]
        got = [of_arrow(value, found.type) for value in found.to_pylist()]
        assert got == given, name


def test_types_without_a_spark_type_are_refused_and_the_column_is_named(
    tables: tuple[dict[str, it.Table], dict[str, SchemaError]],
) -> None:
    taken, refused = tables
    for name, error in refused.items():
        assert re.search(r"column '?c\b", str(error)), f"{name}: {error}"
    assert set(refused) | set(taken) == set(CASES)
    assert not REFUSED & set(taken)


def test_a_refused_append_writes_nothing(tmp_path: Path) -> None:
    table = it.Table.create(str(tmp_path / "t"), pa.schema([("n", pa.int32()), ("c", pa.timestamp("us"))]))
    rows = pa.table({"n": pa.array([1], pa.int32()), "c": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(SchemaError, match="'c'"):
        table.append(rows)
    with pytest.raises(SchemaError, match="column 'c' has the Arrow type time32"):
        table.append(pa.table({"n": pa.array([1], pa.int32()), "c": pa.array([1], pa.time32("s"))}))
    assert not list(tmp_path.rglob("*.split"))
    assert (table.refresh().version, table.count()) == (0, 0)


PARTITIONED = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False), ("day", pa.date32()), ("text", pa.string()),
        ("inside", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.field("element", pa.string())))])),
        ("pairs", pa.map_(pa.string(), pa.int64())), ("part", pa.string()),
    ]
)  # fmt: skip


@pytest.fixture(scope="module")
def partitioned(tmp_path_factory: pytest.TempPathFactory) -> it.Table:
    """A directory of splits below directories of two partition columns."""
    path = tmp_path_factory.mktemp("partitioned") / "t"
    table = it.Table.create(str(path), PARTITIONED, ["day", "part"], {"indexing.typemap.text": "text"})
    for start in (0, 60):
        rows = [
            {
                "id": at, "day": date(2024, 1, 1 + at % 3), "text": f"line {at}" if at % 7 else None,
                "inside": {"a": at, "b": ["x", None, str(at)][: at % 4]} if at % 5 else None,
                "pairs": [(f"k{at}", at), ("z", None)] if at % 2 else None, "part": ["p q", "r/s=1", None][at % 3],
            }
            for at in range(start, start + 60)
        ]  # fmt: skip
        table.append(pa.Table.from_pylist(rows, schema=PARTITIONED))
    return table


def files_of(table: it.Table) -> list[str]:
    root = table.uri.removeprefix("file://")
    return [f"{root}/{path}" for path in table.files()["path"].to_pylist()]


def rows_of(found: pa.Table) -> list[Any]:
    """Rows by id; maps as pairs, which one reader holds as structs."""
    rows = found.select(PARTITIONED.names).sort_by("id").to_pylist()
    for row in rows:
        if row["pairs"] is not None:
            row["pairs"] = [tuple(item.values()) if isinstance(item, dict) else item for item in row["pairs"]]
    return rows


def test_four_readers_agree_about_a_directory_of_splits(spark: SparkSession, partitioned: it.Table) -> None:
    """Partition columns are in the files themselves, so a reader needs neither the log nor the names."""
    import duckdb
    import polars as pl
    import pyarrow.dataset as ds

    files = files_of(partitioned)
    expected = rows_of(partitioned.scan().read_all())
    assert len(expected) == 120
    assert rows_of(ds.dataset(files, format="parquet", schema=PARTITIONED).to_table()) == expected
    relation = duckdb.sql(
        "SELECT * FROM read_parquet($files, hive_partitioning = false)", params={"files": files}
    )
    assert rows_of(relation.arrow().read_all()) == expected
    assert rows_of(pl.read_parquet(files, hive_partitioning=False, glob=False).to_arrow()) == expected
    wanted = [
        {field.name: of_arrow(row[field.name], field.type) for field in PARTITIONED} for row in expected
    ]
    plain_files = spark.read.schema(spark.read.format("indextables").load(partitioned.uri).schema)
    copies = partitioned.uri + "-copies"
    flat = Path(copies.removeprefix("file://"))
    flat.mkdir()
    for at, name in enumerate(files):
        (flat / f"{at}.parquet").symlink_to(name)
    for frame in (spark.read.format("indextables").load(partitioned.uri), plain_files.parquet(copies)):
        found = [
            {field.name: of_spark(row[field.name], field.type) for field in PARTITIONED}
            for row in frame.orderBy("id").collect()
        ]
        assert found == wanted


@pytest.mark.core
def test_rows_behind_a_batch_without_rows_are_rows_of_the_frame(spark):
    numbers = [pa.array(values, pa.int64()) for values in ([], [1, 2], [], [3], [])]
    table = pa.table({"n": pa.chunked_array(numbers)})
    assert [row["n"] for row in frame_of_arrow(spark, table).collect()] == [1, 2, 3]
    assert frame_of_arrow(spark, table.slice(0, 0)).collect() == []
