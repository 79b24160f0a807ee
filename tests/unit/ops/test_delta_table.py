"""A Delta table as a table: opened, looked at, its rows read, all without Spark."""

from __future__ import annotations

import json
import pickle
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.errors import (
    CorruptLogError,
    DamagedSplitError,
    MissingSplitError,
    PredicateError,
    QueryError,
    SchemaError,
    TableError,
    VersionNotFoundError,
)
from indextables.ops.delta.scan import scan
from indextables.storage.store import open_store
from support.deltarows import inline_vector, put_file, stored_vector
from support.deltatables import DeltaLog, add, schema_string


def people(store):
    """Three files of ten rows in two partitions; some rows of two of them are deleted."""
    log = DeltaLog(store, schema_string(p="string", id="long", name="string"), ("p",))
    vectors = [None, inline_vector([1, 3]), stored_vector(store, [0, 9], "ab")]
    for number, dv in enumerate(vectors):
        ids = list(range(number * 10, number * 10 + 10))
        rows = pa.table({"id": ids, "name": [f"name {at}" for at in ids]})
        value = f"x %{number % 2}"
        log.commit(put_file(log, f"p={value}/f{number}.parquet", rows, dv=dv, partitionValues={"p": value}))
    log.checkpoint("classic")
    return log


LIVE = [*range(10), 10, *range(12, 13), *range(14, 20), *range(21, 29)]


@pytest.fixture(params=["local", "memory"])
def log(request, tmp_path):
    """The same table on a disk and in a store that is read by ranges."""
    uri = tmp_path / "a [table]" if request.param == "local" else f"memory://{tmp_path.name}-{id(request)}"
    return people(open_store(uri))


def ids(reader):
    return reader.read_all().column("id").to_pylist()


def test_rows_come_in_the_order_of_the_log_without_the_deleted_ones(log):
    table = it.DeltaTable.open(log.store.uri)
    found = table.scan().read_all()
    assert found.column_names == ["p", "id", "name"]
    assert found.column("id").to_pylist() == LIVE
    assert found.slice(11, 1).to_pylist() == [{"p": "x %1", "id": 12, "name": "name 12"}]
    assert table.count() == len(LIVE)
    assert pa.table(table).num_rows == len(LIVE)


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("id > 11 AND p = 'x %1'", [at for at in LIVE if 11 < at < 20]),
        ((it.col("id") <= 10) | (it.col("name") == "name 22"), [*range(11), 22]),
        ("id IN (11, 13, 20)", []),
        ("p IS NULL", []),
        ("name LIKE '%1_'", [at for at in LIVE if 10 <= at < 20]),
    ],
)
def test_a_filter_decides_every_row_and_a_deleted_one_does_not_come_back(log, where, wanted):
    table = it.DeltaTable.open(log.store.uri)
    assert ids(table.scan(where)) == wanted
    assert table.count(where) == len(wanted)


def test_only_the_wanted_columns_come_in_the_order_they_were_asked_for(log):
    table = it.DeltaTable.open(log.store.uri)
    found = table.scan("id = 22", columns=["NAME", "p"]).read_all()
    assert found.to_pylist() == [{"name": "name 22", "p": "x %0"}]
    only = table.scan(columns=["p"]).read_all().column("p").to_pylist()
    assert (only.count("x %0"), only.count("x %1")) == (18, 8)
    with pytest.raises(SchemaError, match="the table has no column 'nam'; it has"):
        table.scan(columns=["nam"])


def test_a_version_is_read_as_it_was(log):
    table = it.DeltaTable.open(log.store.uri, version=1)
    assert (table.version, table.count(), ids(table.scan())) == (1, 10, list(range(10)))
    assert table.refresh().version == 3
    with pytest.raises(VersionNotFoundError):
        it.DeltaTable.open(log.store.uri, version=9)


def test_the_handle_says_what_the_table_is(log):
    table = it.DeltaTable.open(log.store.uri)
    assert table.schema.names == ["p", "id", "name"]
    assert table.partition_columns == ("p",)
    assert json.loads(table.spark_schema)["fields"][1]["type"] == "long"
    assert table.protocol.min_reader_version == 3
    assert repr(table) == f"DeltaTable({log.store.uri!r}, version=3)"
    said = table.describe()
    assert (said.provider, said.num_files, said.num_rows, said.checkpoint_version) == (
        "delta",
        3,
        len(LIVE),
        3,
    )
    assert pickle.loads(pickle.dumps(table)).version == 3


def test_counting_opens_no_file_that_the_log_decides_about(log):
    table = it.DeltaTable.open(log.store.uri)
    for where, rows, read in (
        (None, 26, 0),
        ("id >= 0", 26, 0),
        ("p = 'x %1'", 8, 0),
        ("id >= 15", 13, 1),
        ("id >= 10", 16, 0),
        ("id > 100", 0, 0),
    ):
        assert table.count(where) == rows, where
        assert table.last_scan.files_read == read, where


def test_counting_reads_footers_where_the_log_says_nothing(tmp_path):
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(id="long"))
    rows = pa.table({"id": list(range(10))})
    log.commit(put_file(log, "a", rows, statistics=False), put_file(log, "b", rows))
    log.commit(put_file(log, "c", rows, statistics=False, dv=inline_vector([0])))
    table = it.DeltaTable.open(tmp_path / "t")
    assert table.count() == 29
    assert table.last_scan.files_read == 2
    assert table.count("id < 5") == 14
    assert table.describe().num_rows is None


def test_row_groups_that_cannot_match_are_not_read(tmp_path, monkeypatch):
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(id="long", x="double", name="string"))
    nan = float("nan")
    rows = pa.table(
        {
            "id": list(range(100)),
            "x": [nan if at == 7 else float(at) for at in range(100)],
            "name": [f"n{at:03d}" for at in range(100)],
        }
    )
    log.commit(put_file(log, "f", rows, statistics=False, group_rows=10))
    read = []
    original = pq.ParquetFile.iter_batches

    def noted(self, *args, row_groups, **more):
        read.extend(row_groups)
        return original(self, *args, row_groups=row_groups, **more)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    table = it.DeltaTable.open(tmp_path / "t")
    for where, wanted, groups in (
        ("id >= 42 AND id < 44", [42, 43], [4]),
        ("name = 'n099'", [99], [9]),
        ("x < 5", list(range(5)), [0]),
        # NaN is above every number and in no maximum, so every group may hold one.
        ("x > 98", [7, 99], list(range(10))),
        ("id IS NULL", [], []),
    ):
        read.clear()
        assert ids(table.scan(where)) == wanted, where
        assert read == groups, where


def test_deleted_rows_are_counted_from_the_start_of_the_file_whatever_groups_are_read(tmp_path):
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(id="long"))
    rows = pa.table({"id": list(range(100))})
    log.commit(put_file(log, "f", rows, group_rows=10, dv=inline_vector([2, 42, 99])))
    table = it.DeltaTable.open(tmp_path / "t")
    assert ids(table.scan()) == [at for at in range(100) if at not in {2, 42, 99}]
    assert ids(table.scan("id BETWEEN 41 AND 43 OR id > 97")) == [41, 43, 98]


def test_few_of_the_columns_of_a_remote_file_are_few_of_its_bytes(tmp_path):
    store = open_store(f"memory://{tmp_path.name}")
    log = DeltaLog(store, schema_string(id="long", text="string"))
    rows = pa.table(
        {"id": list(range(1000)), "text": [random.Random(at).randbytes(600).hex() for at in range(1000)]}
    )
    made = put_file(log, "f", rows)
    log.commit(made)
    table = it.DeltaTable.open(store.uri)
    fetched = []
    original = type(table._snapshot.store).get_range

    class Noting(type(store)):
        def get_range(self, path, start, length, *, etag=None):
            fetched.append(length)
            return original(self, path, start, length, etag=etag)

    table._snapshot.store.__class__ = Noting
    assert table.scan(columns=["id"]).read_all().num_rows == 1000
    assert 0 < sum(fetched) < made["add"]["size"] / 4


@pytest.mark.parametrize("mode", ["name", "id"])
def test_renamed_columns_are_found_by_what_the_files_call_them(tmp_path, mode):
    """Two columns swapped by renames, one inside a struct."""

    def field(name, kind, physical, number):
        metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
        return {"name": name, "type": kind, "nullable": True, "metadata": metadata}

    inner = {"type": "struct", "fields": [field("b", "string", "c-3", 3)]}
    fields = [field("a", "long", "c-1", 1), field("b", "long", "c-2", 2), field("s", inner, "c-4", 4)]
    fields.append(field("day", "date", "c-5", 5))
    log = DeltaLog(
        open_store(tmp_path / "t"),
        json.dumps({"type": "struct", "fields": fields}),
        ("day",),
        configuration={"delta.columnMapping.mode": mode},
    )

    def numbered(name, kind, number):
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    names = ("c-1", "c-2", "c-4", "c-3") if mode == "name" else ("b", "a", "t", "u")
    arrow = pa.schema(
        [
            numbered(names[0], pa.int64(), 1),
            numbered(names[1], pa.int64(), 2),
            numbered(names[2], pa.struct([numbered(names[3], pa.string(), 3)]), 4),
        ]
    )
    values = {names[0]: [60, 5], names[1]: [40, 90], names[2]: [{names[3]: "v"}, None]}
    log.commit(
        put_file(log, "f", pa.table(values, arrow), statistics=False, partitionValues={"c-5": "2024-02-29"})
    )
    table = it.DeltaTable.open(tmp_path / "t")
    found = table.scan("a > 50 AND b < 50").read_all().to_pylist()
    assert [(row["a"], row["b"], row["s"], str(row["day"])) for row in found] == [
        (60, 40, {"b": "v"}, "2024-02-29")
    ]
    assert table.count("s.b = 'v'") == 1
    assert table.scan(columns=["s"]).read_all().to_pylist() == [{"s": {"b": "v"}}, {"s": None}]


def test_older_files_have_narrower_types_and_fewer_columns(tmp_path):
    inner = {"type": "array", "elementType": "long", "containsNull": True}
    log = DeltaLog(
        open_store(tmp_path / "t"), schema_string(n="long", d="decimal(12,2)", m=inner, late="string")
    )
    old = pa.table(
        {
            "n": pa.array([1, None], pa.int16()),
            "d": pa.array([3, 4], pa.int8()),
            "m": pa.array([[1, None], None], pa.list_(pa.int32())),
        }
    )
    log.commit(put_file(log, "old", old, statistics=False))
    table = it.DeltaTable.open(tmp_path / "t")
    rows = table.scan().read_all()
    assert rows.schema.field("m").type == pa.list_(pa.int64())
    assert [tuple(map(str, row.values())) for row in rows.to_pylist()] == [
        ("1", "3.00", "[1, None]", "None"),
        ("None", "4.00", "None", "None"),
    ]
    assert table.count("n = 1 AND late IS NULL") == 1


def test_a_partition_value_that_cannot_be_read_is_an_error_and_never_a_null(tmp_path):
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(p="integer", id="long"), ("p",))
    log.commit(put_file(log, "f", pa.table({"id": [1]}), partitionValues={"p": "one"}))
    table = it.DeltaTable.open(tmp_path / "t")
    for ask in (lambda: table.scan().read_all(), lambda: table.count("p = 1")):
        with pytest.raises(CorruptLogError, match="f a partition value that is not of its column's type"):
            ask()
    assert ids(table.scan(columns=["id"])) == [1]


@pytest.mark.parametrize("what", ["data", "vector"])
def test_a_file_that_is_gone_is_an_error_that_names_it(log, what):
    names = {"data": "p=x %0/f2.parquet", "vector": "ab/deletion_vector"}
    gone = next(meta.path for meta in log.store.list() if names[what] in meta.path)
    log.store.delete(gone)
    with pytest.raises(MissingSplitError, match="f2.parquet.* does not exist"):
        it.DeltaTable.open(log.store.uri).scan().read_all()


@pytest.mark.parametrize("statistics", [True, False], ids=["counted by the log", "counted by the footer"])
@pytest.mark.parametrize(
    ("rows", "cardinality", "message"),
    [
        ([7], 1, r"deletion vector inline of f names row 7, counted from 0, but the file has 5 rows"),
        ([1], 2, r"deletion vector inline of f holds 1 rows, but the log says 2"),
    ],
)
def test_a_vector_that_does_not_fit_its_file_is_one_error_whatever_is_asked(
    tmp_path, rows, cardinality, message, statistics
):
    """A scan must not give five rows where a count gives four."""
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(id="long", name="string"))
    data = pa.table({"id": range(5), "name": [f"name {number}" for number in range(5)]})
    vector = {**inline_vector(rows), "cardinality": cardinality}
    log.commit(put_file(log, "f", data, statistics=statistics, dv=vector))
    log.commit(put_file(log, "whole", data))
    table = it.DeltaTable.open(tmp_path / "t")
    questions = {
        "scan": lambda: table.scan().read_all(),
        "scan of no column": lambda: table.scan(columns=[]).read_all(),
        "count": table.count,
        "count again": table.count,
        "count of all by a filter": lambda: table.count("id >= 0"),
        "count by a filter": lambda: table.count("id > 2"),
        "search": lambda: table.search("name").read_all(),
        "count of a search": lambda: table.count(query="name"),
        "SELECT": lambda: it.sql(f"SELECT count(*) FROM '{tmp_path / 't'}'").read_all(),
    }
    for name, ask in questions.items():
        with pytest.raises(CorruptLogError, match=message):
            pytest.fail(f"{name}: {ask()}")


def test_a_file_that_is_no_parquet_is_an_error_that_names_it(log):
    log.store.put("p=x %0/f0.parquet", b"PAR1 not really PAR1")
    with pytest.raises(DamagedSplitError, match="f0.parquet cannot be read as Parquet"):
        it.DeltaTable.open(log.store.uri).scan().read_all()


def test_a_stream_that_is_not_read_to_its_end_lets_go_of_its_files(log):
    reader, record = scan(it.DeltaTable.open(log.store.uri)._snapshot)
    assert reader.read_next_batch().num_rows == 10
    reader.close()
    assert record.metrics.files_read <= 3


def test_words_are_found_by_reading_the_rows(log):
    table = it.DeltaTable.open(log.store.uri)
    assert ids(table.search("name:12 OR name:22")) == [12, 22]
    assert ids(table.search("12 OR 13", where="id > 5", limit=5)) == [12]
    assert table.search("name:22", columns=["p"]).read_all().to_pylist() == [{"p": "x %0"}]
    assert table.count(query="name") == len(LIVE)
    assert table.count("id < 5", query="name") == 5


def test_a_table_without_text_says_so_when_it_is_searched(tmp_path):
    log = DeltaLog(open_store(tmp_path / "n"), schema_string(id="long"))
    log.commit(put_file(log, "f", pa.table({"id": [1]})))
    with pytest.raises(QueryError, match="words need a column"):
        it.DeltaTable.open(tmp_path / "n").search("error")


def test_what_needs_spark_says_so(log):
    table = it.DeltaTable.open(log.store.uri)
    with pytest.raises(TableError, match=r"DeltaTable.open\(uri, spark=spark\)"):
        table.to_df()
    pytest.importorskip("pyspark")
    from pyspark.sql.types import StructType

    # Anything of pyspark stands for a Column here: making a real one takes a session.
    with pytest.raises(PredicateError, match="a Spark Column needs its session"):
        table.files(where=StructType())


def test_history_goes_by_the_times_that_as_of_goes_by(tmp_path):
    log = people(open_store(tmp_path / "t"))
    told = {"commitInfo": {"timestamp": 5, "operation": "WRITE", "operationMetrics": {"numFiles": "1"}}}
    log.commit(told, add("nothing", size=0))
    table = it.DeltaTable.open(tmp_path / "t")
    history = table.history()
    assert history.column("version").to_pylist() == [4, 3, 2, 1, 0]
    assert history.column("operation").to_pylist() == ["WRITE", None, None, None, "CREATE TABLE"]
    assert table.history(2).num_rows == 2
    for row in history.to_pylist():
        assert it.DeltaTable.open(tmp_path / "t", as_of=row["timestamp"]).version == row["version"]


def test_the_file_list_says_how_it_came_about(log):
    found = it.delta.files(log.store.uri, where="id > 15 AND p = 'x %1'")
    said = json.loads(found.schema.metadata[b"indextables.scan"])
    assert (said["considered"], said["pruned_by_partition"], said["kept"]) == (3, 2, 1)
    assert said["engine"] == "columnar"
    assert said["why"]
    assert said["seconds"]
    assert it.delta.last_scans(log.store.uri, 1)[0].as_dict() == said
