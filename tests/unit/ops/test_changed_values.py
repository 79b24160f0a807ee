"""UPDATE and MERGE write a split anew by copying what did not change: nobody can tell, except by the bytes."""

import datetime as dt
import decimal
import math
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.errors import DamagedSplitError
from indextables.ops.rewrite import values as rewriting
from indextables.split.write.writer import ROWS_PER_GROUP

COUNT = 2 * ROWS_PER_GROUP + 100
"""Three row groups."""
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("kind", pa.string()),
        ("number", pa.float64()),
        ("small", pa.float32()),
        ("message", pa.string()),
        ("note", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([pa.field("city", pa.string(), nullable=False), ("street", pa.string())])),
        ("counts", pa.map_(pa.string(), pa.int32())),
        ("price", pa.decimal128(12, 2)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("flag", pa.bool_()),
        ("raw", pa.binary()),
    ]
)
OPTIONS = {
    "indexing.typemap.message": "text",
    "indexing.typemap.note": "text",
    "indexing.fastfields": "number",
    # Few rows that change would leave by a vector; here splits are written anew.
    "deletionVectors.enabled": "false",
}


def make(count: int = COUNT) -> pa.Table:
    """Rows of every type, few distinct values each, so that they are quickly made."""
    ids = pa.array(range(count), pa.int64())

    def cycled(values, kind):
        some = pa.array(values, kind)
        return some.take(pa.array([at % len(some) for at in range(count)]))

    columns = [
        ids,
        cycled(["a", "b", None, "c", "d"], pa.string()),
        cycled([1.5, 0.0, -2.5, None, 7.0, 8.0, 9.0], pa.float64()),
        cycled([1.0, math.nan, 3.0], pa.float32()),
        pc.binary_join_element_wise("request", pc.cast(ids, pa.string()), "failed", " "),
        cycled(["calm seas", "rough seas", None], pa.string()),
        cycled([["x"], [], None, ["y", None, "z"]], SCHEMA.field("tags").type),
        cycled([{"city": "Bern", "street": None}, None, {"city": "Ulm", "street": "s"}], SCHEMA.field("place").type),
        cycled([[("a", 1)], [], None], SCHEMA.field("counts").type),
        cycled([decimal.Decimal("1.25"), None, decimal.Decimal("-3.00")], pa.decimal128(12, 2)),
        cycled([dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in range(1, 29)], SCHEMA.field("at").type),
        cycled([dt.date(2026, 1, day) for day in range(1, 29)], pa.date32()),
        cycled([True, False, None], pa.bool_()),
        cycled([b"\0\1", None, b"bytes"], pa.binary()),
    ]  # fmt: skip
    return pa.Table.from_arrays(columns, schema=SCHEMA)


ROWS = make()


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> it.Table:
    made = it.Table.create(tmp_path_factory.mktemp("changed") / "t", SCHEMA, options=OPTIONS)
    made.append(ROWS)
    return made


@pytest.fixture
def copied(original, monkeypatch):
    """The table as it was written, and a refusal to write all of its rows."""
    original.restore(1)

    def refuse(*_, **__):
        raise AssertionError("the rows were written whole")

    monkeypatch.setattr("indextables.ops.write.update.rewrite", refuse)
    monkeypatch.setattr("indextables.ops.write.upsert.rewrite", refuse)
    return original


def only_file(table: it.Table) -> Path:
    (path,) = table.files()["uri"].to_pylist()
    return Path(path.removeprefix("file://"))


def fresh(rows: pa.Table, place: Path) -> it.Table:
    made = it.Table.create(place, SCHEMA, options=OPTIONS)
    made.append(rows)
    return made


def facts(table: it.Table) -> dict[str, object]:
    (row,) = table.files().to_pylist()
    return {name: row[name] for name in ("num_records", "min", "max", "null_count")}


def index_of(table: it.Table) -> bytes:
    (row,) = table.files().to_pylist()
    end = row["index_offset"] + row["index_length"]
    return only_file(table).read_bytes()[row["index_offset"] : end]


def root_of(table: it.Table) -> str:
    (tags,) = table.files()["tags"].to_pylist()
    return dict(tags)["indexRoot"]


CHANGES = {
    "numbers and a zero with another sign": ("number = 0.0", {"number": -0.0, "kind": "zero"}),
    "neighbouring rows and nested values": (
        "id < 50",
        {"kind": "changed", "tags": ["new"], "place": {"city": "Rome", "street": "via"}},
    ),
    "a word of the index": ("id = 40000", {"message": "entirely other words"}),
    "everything to null": ("true", {"price": None, "number": None, "raw": None, "note": None}),
    "the largest value leaves": (f"id = {COUNT - 1}", {"id": 5, "note": "stormy"}),
}


def applied(condition: str, values) -> pa.Table:
    chosen = duckdb.sql(f"SELECT coalesce({condition}, false) AS chosen FROM ids").to_arrow_table()["chosen"]  # noqa: S608
    rows = ROWS
    for name, value in values.items():
        field = SCHEMA.field(name)
        new = pa.array([value, None], field.type)
        column = pa.concat_arrays([new, rows[name].combine_chunks()])
        places = pc.if_else(chosen.combine_chunks(), 0, pa.array(range(2, COUNT + 2), pa.int64()))
        rows = rows.set_column(rows.schema.get_field_index(name), field, column.take(places))
    return rows


ids = ROWS.select(["id", "number"])


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_split_is_what_writing_all_rows_would_have_made(copied, change, tmp_path):
    condition, values = change
    expected = applied(condition, values)
    copied.update(condition, values)
    other = fresh(expected, tmp_path / "fresh")
    found = copied.scan().read_all()
    assert found.schema.equals(other.schema)
    assert same(found, expected)
    assert facts(copied) == facts(other)
    assert same(pq.read_table(only_file(copied)), expected)
    for query in ("message:request", "message:other", "note:stormy", "number:[1000 TO *]"):
        assert copied.count(query=query) == other.count(query=query)
    assert it.check(copied.uri, {"repair.validateSplits": "deep"}).findings == ()


def same(found: pa.Table, expected: pa.Table) -> bool:
    """Whether two tables are equal to the bit: NaN is itself, and the two zeros are not the same."""

    def bits(table: pa.Table) -> pa.Table:
        found = table.select(SCHEMA.names).combine_chunks()
        for name, kind in (("number", pa.int64()), ("small", pa.int32())):
            at = found.schema.get_field_index(name)
            found = found.set_column(at, name, pa.concat_arrays(found[name].chunks).view(kind))
        return found

    return bits(found).equals(bits(expected))


def test_a_merge_copies_the_columns_that_its_rows_do_not_change(copied):
    before = chunks(only_file(copied))
    some = ROWS.take([5, 40_000]).set_column(2, SCHEMA.field("number"), pa.array([-1.0, -2.0]))
    done = copied.merge(some, on="id")
    assert (done.rows_updated, done.rows_inserted) == (2, 0)
    after = chunks(only_file(copied))
    changed = {key for key in before if before[key] != after[key]}
    # `small` has a NaN only in other rows than these; nested values are never compared.
    assert {name for _, name in changed} <= {"number", "tags", "place", "counts"}
    assert (2, "number") not in changed
    assert copied.count("number = -2.0") == 1


def chunks(path: Path) -> dict[tuple[int, str], bytes]:
    """The bytes of every column of every row group."""
    data, metadata = path.read_bytes(), pq.read_metadata(path)
    found: dict[tuple[int, str], bytes] = {}
    for group in range(metadata.num_row_groups):
        for leaf in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(leaf)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            name = chunk.path_in_schema.partition(".")[0]
            body = data[start : start + chunk.total_compressed_size]
            found[group, name] = found.get((group, name), b"") + body
    return found


def test_the_index_of_columns_that_stay_is_copied_to_the_byte(copied, tmp_path):
    before = index_of(copied)
    copied.update("id = 1", {"kind": "changed"})
    assert index_of(copied)[: len(before) // 2] == before[: len(before) // 2]
    copied.update("id = 1", {"note": "only this"})
    values = {"kind": "changed", "note": "only this"}
    other = fresh(applied("id = 1", values), tmp_path / "fresh")
    # The root has the checksums of all else, and is the same whether fields are built or taken over.
    assert root_of(copied) == root_of(other)


def test_other_readers_find_rows_by_filters_and_page_indexes(copied):
    copied.update("id IN (3, 40003, 60003, 65003)", {"kind": "needle"})
    path = str(only_file(copied))
    counted = duckdb.sql(f"SELECT count(*) FROM read_parquet('{path}') WHERE kind = 'needle' AND id > 60000")  # noqa: S608
    assert counted.fetchall() == [(2,)]
    assert pq.read_table(path, filters=[("id", "=", 40_003)])["kind"].to_pylist() == ["needle"]
    assert duckdb.sql(
        f"SELECT count(*) FROM read_parquet('{path}') WHERE message = 'request 5 failed'"
    ).fetchall() == [(1,)]  # noqa: S608


def test_a_damaged_page_that_would_be_copied_is_noticed(original):
    original.restore(1)
    path = only_file(original)
    whole = path.read_bytes()
    start = pq.read_metadata(path).row_group(1).column(4).data_page_offset
    path.write_bytes(whole[: start + 40] + b"\xff\0\xff" + whole[start + 43 :])
    version = original.version
    try:
        with pytest.raises(DamagedSplitError, match=path.name):
            original.update("id = 1", {"flag": False})
    finally:
        path.write_bytes(whole)
    assert it.Table.open(original.uri).version == version


def test_a_split_of_an_older_schema_is_written_whole(tmp_path):
    table = it.Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("n", pa.int32())]))
    table.append(pa.table({"id": [1, 2], "n": pa.array([1, 2], pa.int32())}))
    table.append(
        pa.table({"id": [3], "n": pa.array([1 << 40], pa.int64()), "more": ["m"]}), merge_schema=True
    )
    table.update("id <= 2", {"more": "later"})
    assert sorted(table.scan().read_all().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "n": 1, "more": "later"},
        {"id": 2, "n": 2, "more": "later"},
        {"id": 3, "n": 1 << 40, "more": "m"},
    ]
    assert table.count("n >= 1") == 3


def test_values_are_the_same_only_to_the_bit():
    def column(values, kind=None):
        return pa.chunked_array([pa.array(values, kind)])

    assert rewriting.same_values(column([1.0, None, math.nan]), column([1.0, None, math.nan]))
    assert not rewriting.same_values(column([0.0]), column([-0.0]))
    assert rewriting.same_values(column(["a", None]), column(["a", None]))
    assert not rewriting.same_values(column(["a"]), column([None], pa.string()))
    assert not rewriting.same_values(column([1], pa.int32()), column([1], pa.int64()))
    assert not rewriting.same_values(column([[1]]), column([[1]]))
