"""Rows of Delta tables: the live ones, all of them, whatever hides, renames or moves them."""

from __future__ import annotations

import base64
import datetime as dt
import json
import struct
import uuid
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.errors import TableError
from indextables.log.delta.snapshot import open_snapshot
from indextables.log.scans import last_scans
from indextables.options import Options
from indextables.spark.delta.rows import rows_frame
from indextables.storage.deletion_vectors import _B85, _Z85
from indextables.storage.store import open_store
from support.deltatables import DeltaLog, add, schema_string
from support.golden import plain
from support.shared import shared

pytestmark = pytest.mark.spark

# What the other reader itself says or does about these tables.
NOT_COMPARABLE = {
    "delta-rs__table_with_edge_timestamps": "deltalake overflows on the year 9999 and gives 1816",
}


def rows_of(table: pa.Table, names):
    return sorted(str([plain(row.get(name)) for name in names]) for row in table.to_pylist())


def rows_of_others(path) -> pa.Table | None:
    """The table as the deltalake package reads it; None where it cannot, or where data files are not there."""
    import deltalake

    try:
        table = deltalake.DeltaTable(str(path))
        return pa.table(deltalake.QueryBuilder().register("t", table).execute("select * from t").read_all())
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


@pytest.mark.slow
@pytest.mark.usefixtures("plain_plans")
def test_golden_rows_are_what_another_reader_reads(spark):
    """K7: every golden table whose data files are there and which the deltalake package can open."""
    manifest = json.loads(shared("golden", "delta", "MANIFEST.json").read_text())
    compared, different = 0, []
    for row in manifest:
        if row["outcome"] != "ok" or row["name"] in NOT_COMPARABLE:
            continue
        path = shared("golden", "delta", "tables", row["name"])
        theirs = rows_of_others(path)
        if theirs is None:
            continue
        ours = it.delta.read(spark, str(path)).toArrow()
        compared += 1
        if rows_of(ours, ours.column_names) != rows_of(theirs, ours.column_names):
            different.append(row["name"])
    assert different == []
    assert compared >= 110


def serialized(rows):
    """Row positions below 65,536 as a deletion vector's bitmap."""
    body = (
        struct.pack("<IIHH", 12346, 1, 0, len(rows) - 1)
        + struct.pack("<I", 0)
        + struct.pack(f"<{len(rows)}H", *rows)
    )
    return struct.pack("<iqI", 1681511377, 1, 0) + body


def z85(data):
    return base64.b85encode(data + b"\0" * (-len(data) % 4)).decode().translate(str.maketrans(_B85, _Z85))


@pytest.fixture
def table(tmp_path):
    """Four files of ten rows in two partitions; rows of three of them are deleted, each in another way."""
    root = tmp_path / "a [table]"
    log = DeltaLog(open_store(root), schema_string(p="string", id="long", name="string"), ("p",))
    bitmap = serialized([1, 3])
    frame = b"\x01" + struct.pack(">i", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))
    name = uuid.uuid4()
    (root / f"deletion_vector_{name}.bin").write_bytes(frame)
    absolute = root / "by its address.bin"
    absolute.write_bytes(frame)
    common = {"sizeInBytes": len(bitmap), "cardinality": 2}
    vectors = [
        None,
        {"storageType": "u", "pathOrInlineDv": z85(name.bytes), "offset": 1, **common},
        {"storageType": "i", "pathOrInlineDv": z85(bitmap), **common},
        {"storageType": "p", "pathOrInlineDv": absolute.as_uri(), "offset": 1, **common},
    ]
    for number, dv in enumerate(vectors):
        path = f"p=x %{number % 2}/f{number}.parquet"
        (root / path).parent.mkdir(exist_ok=True)
        ids = list(range(number * 10, number * 10 + 10))
        pq.write_table(pa.table({"id": ids, "name": [f"n{at}" for at in ids]}), root / path)
        stats = {
            "numRecords": 10,
            "minValues": {"id": ids[0]},
            "maxValues": {"id": ids[-1]},
            "nullCount": {"id": 0},
            "tightBounds": dv is None,
        }
        size = (root / path).stat().st_size
        value = f"x %{number % 2}"
        log.commit(add(path, stats=stats, dv=dv, partitionValues={"p": value}, size=size))
    log.checkpoint("v2-json")
    return log


EXPECTED = sorted(
    (f"x %{file % 2}", file * 10 + row, f"n{file * 10 + row}")
    for file in range(4)
    for row in range(10)
    if file == 0 or row not in (1, 3)
)


def test_deleted_rows_are_gone_however_their_vector_is_stored(spark, table):
    """Relative, inline and absolute deletion vectors, and a file without one."""
    frame = it.delta.read(spark, table.store.local_path(""))
    assert frame.columns == ["p", "id", "name"]
    assert sorted(tuple(row) for row in frame.collect()) == EXPECTED


@pytest.mark.parametrize("tail", [False, True], ids=["checkpoint", "commits after it"])
def test_counting_and_describing_on_the_cluster_collect_no_file(spark, table, tail):
    """Rows are summed up where the log is read, those that deletion vectors hide taken off."""
    if tail:
        table.commit(add("late", stats={"numRecords": 5}, partitionValues={"p": "y"}))
    options = {"distributedLogReplay.fileThreshold": "0"}
    opened = it.DeltaTable.open(table.store.local_path(""), spark=spark, options=options)
    rows = len(EXPECTED) + 5 * tail
    assert opened.count() == rows
    assert opened.last_scan.replay.engine == "spark"
    assert opened.last_scan.replay.rows_collected == 0
    assert opened.last_scan.replay.rows_on_executors == 4
    assert opened.last_scan.files.considered == opened.last_scan.files.kept == 4 + tail
    assert opened.describe().num_rows == rows
    assert it.DeltaTable.open(table.store.local_path("")).describe().num_rows == rows


def test_rows_are_filtered_exactly_and_files_that_cannot_match_are_not_read(spark, table):
    """H11: text and expressions; a deleted row does not come back through a filter."""
    path = table.store.local_path("")
    for where in ("id > 30 AND p = 'x %1'", (it.col("id") > 30) & (it.col("p") == "x %1")):
        found = it.delta.read(spark, path, where)
        assert sorted(row["id"] for row in found.collect()) == [32, 34, 35, 36, 37, 38, 39]
    one = it.delta.read(spark, path).filter("id = 12")
    assert [tuple(row) for row in one.collect()] == [("x %1", 12, "n12")]
    scan = last_scans(table.store.uri)[0]
    assert (scan.considered, scan.kept) == (4, 1)


def test_reading_in_python_gives_the_same_rows(spark, table):
    """The way for Spark Connect and stores without a Hadoop file system."""
    snapshot = open_snapshot(table.store.uri, options=Options.of(None))
    assert sorted(tuple(row) for row in rows_frame(spark, snapshot, None).collect()) == EXPECTED


def test_an_older_version_is_read_as_it_was(spark, table):
    """A13."""
    assert it.delta.read(spark, table.store.local_path(""), version=1).count() == 10


@pytest.mark.parametrize("mode", ["name", "id"])
def test_renamed_columns_are_found_by_what_the_files_call_them(spark, tmp_path, mode):
    """Column mapping, inside structs as well."""

    def field(name, kind, physical, number):
        metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
        return {"name": name, "type": kind, "nullable": True, "metadata": metadata}

    inner = {"type": "struct", "fields": [field("b", "string", "c-3", 3)]}
    schema = json.dumps(
        {
            "type": "struct",
            "fields": [
                field("a b", inner, "c-1", 1),
                field("day", "date", "c-2", 2),
                field("n", "long", "c-4", 4),
            ],
        }
    )
    log = DeltaLog(
        open_store(tmp_path / "t"), schema, ("day",), configuration={"delta.columnMapping.mode": mode}
    )

    def numbered(name, kind, number):
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    # By id the names in the file do not matter, by name the ids do not.
    names = ("c-1", "c-3", "c-4") if mode == "name" else ("x", "y", "z")
    arrow = pa.schema(
        [
            numbered(names[0], pa.struct([numbered(names[1], pa.string(), 3)]), 1),
            numbered(names[2], pa.int64(), 4),
        ]
    )
    pq.write_table(
        pa.table({names[0]: [{names[1]: "v"}], names[2]: [5]}, schema=arrow), tmp_path / "t" / "f.parquet"
    )
    log.commit(add("f.parquet", partitionValues={"c-2": "2024-02-29"}))
    frame = it.delta.read(spark, str(tmp_path / "t"))
    assert frame.schema.simpleString() == "struct<a b:struct<b:string>,day:date,n:bigint>"
    assert [row.asDict(recursive=True) for row in frame.filter("`a b`.b = 'v' AND n = 5").collect()] == [
        {"a b": {"b": "v"}, "day": dt.date(2024, 2, 29), "n": 5}
    ]


def test_a_filter_between_the_cut_maximum_and_the_real_one_keeps_the_file(spark, tmp_path):
    """Delta cuts timestamps in statistics to milliseconds."""
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(t="timestamp"))
    moment = dt.datetime(2024, 1, 1, 0, 0, 0, 123_456, dt.UTC)
    pq.write_table(
        pa.table({"t": pa.array([moment], pa.timestamp("us", tz="UTC"))}), tmp_path / "t" / "f.parquet"
    )
    cut = "2024-01-01T00:00:00.123Z"
    log.commit(
        add(
            "f.parquet",
            stats={"numRecords": 1, "minValues": {"t": cut}, "maxValues": {"t": cut}, "nullCount": {"t": 0}},
        )
    )
    log.checkpoint("classic")
    where = "t > TIMESTAMP '2024-01-01 00:00:00.123400Z'"
    assert it.delta.read(spark, str(tmp_path / "t"), where).count() == 1
    for engine in ("columnar", "spark"):
        assert it.delta.files(tmp_path / "t", where, spark=spark, engine=engine).num_rows == 1
        assert (
            it.delta.files(
                tmp_path / "t", "t > TIMESTAMP '2024-01-01 00:00:00.124Z'", spark=spark, engine=engine
            ).num_rows
            == 0
        )


def test_a_missing_data_file_is_an_error(spark, table):
    """K5: never fewer rows."""
    root = table.store.local_path("")
    next(file for file in __import__("pathlib").Path(root).rglob("f0.parquet")).unlink()
    with pytest.raises(Exception, match="f0.parquet"):
        it.delta.read(spark, root).collect()


def test_a_table_whose_files_lie_elsewhere_is_read_once_its_reader_allows_the_place(spark, tmp_path):
    """As a shallow clone's do; the error names the places to allow."""
    log = DeltaLog(open_store(tmp_path / "clone"), schema_string(id="long"))
    for number in range(2):
        place = tmp_path / f"source{number}"
        place.mkdir()
        pq.write_table(pa.table({"id": [number]}), place / "f.parquet")
        log.commit(add((place / "f.parquet").as_uri(), size=(place / "f.parquet").stat().st_size))
    clone = str(tmp_path / "clone")
    with pytest.raises(TableError, match=r"read\.allowedRoots") as caught:
        it.delta.read(spark, clone).collect()
    assert caught.value.roots == [f"file://{tmp_path}/source0", f"file://{tmp_path}/source1"]
    spark.conf.set("spark.indextables.read.allowedRoots", ",".join(caught.value.roots))
    try:
        found = it.delta.read(spark, clone).collect()
    finally:
        spark.conf.unset("spark.indextables.read.allowedRoots")
    assert sorted(row["id"] for row in found) == [0, 1]
