"""Rows deleted by vectors are gone for Spark too, whatever way it reads the table."""

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa
import pytest

import indextables as it

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.string()),
        ("message", pa.string()),
        ("amount", pa.decimal128(10, 2)),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("city", pa.string()), ("at", pa.timestamp("us", "UTC"))])),
        ("counts", pa.map_(pa.string(), pa.int32())),
    ]
)
OPTIONS = {"indexing.typemap.message": "text", "deletionVectors.enabled": "true"}
ROWS = 5000


def row(number):
    return {
        "id": number,
        "day": str(number % 2),
        "message": None if number % 11 == 0 else f"word{number % 7} line {number}",
        "amount": Decimal(number) / 100,
        "tags": None if number % 5 == 0 else [f"t{number % 3}"] * (number % 4),
        "place": None
        if number % 6 == 0
        else {"city": f"c{number % 9}", "at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)},
        "counts": [(f"k{number % 3}", number)],
    }


def is_gone(number):
    return number % 10 == 3 or 1000 <= number < 1200


LIVE = [number for number in range(2 * ROWS) if not is_gone(number)]


def make(path, partition_by=()):
    table = it.Table.create(path, SCHEMA, partition_by=partition_by, options=OPTIONS)
    table.update_properties({"deletionVectors.enabled": "true"})
    for first in (0, ROWS):
        table.append(pa.Table.from_pylist([row(n) for n in range(first, first + ROWS)], SCHEMA))
    table.delete("id % 10 = 3")
    table.delete("id >= 1000 AND id < 1200")
    assert table.files()["num_deleted"].null_count < table.files().num_rows
    return table


@pytest.fixture(scope="module", params=[(), ("day",)], ids=["whole", "partitioned"])
def path(request, tmp_path_factory):
    root = tmp_path_factory.mktemp("vectors") / "t"
    make(root, request.param)
    return str(root)


def ids(frame):
    return sorted(found["id"] for found in frame.select("id").collect())


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_a_loaded_table_has_the_live_rows(spark, path, vectorized):
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        frame = spark.read.format("indextables").load(path)
        assert ids(frame) == LIVE
        assert frame.count() == len(LIVE)
        assert ids(frame.where("id < 1300 AND id > 900")) == [n for n in LIVE if 900 < n < 1300]
        assert frame.where("message LIKE 'word3%'").count() == sum(n % 7 == 3 and n % 11 != 0 for n in LIVE)
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


@pytest.mark.parametrize("nested", ["true", "false"])
def test_every_column_of_a_live_row_is_its_own(spark, path, nested):
    spark.conf.set("spark.sql.parquet.enableNestedColumnVectorizedReader", nested)
    try:
        frame = spark.read.format("indextables").load(path)
        for found in frame.where("id % 97 = 0").collect():
            expected = row(found["id"])
            assert (found["message"], found["amount"], found["tags"]) == (
                expected["message"], expected["amount"], expected["tags"],
            )  # fmt: skip
            assert found["counts"] == dict(expected["counts"])
            assert (found["place"] or {"city": None})["city"] == (expected["place"] or {"city": None})["city"]
    finally:
        spark.conf.unset("spark.sql.parquet.enableNestedColumnVectorizedReader")


def test_aggregates_and_limits_see_live_rows(spark, path):
    frame = spark.read.format("indextables").load(path)
    totals = frame.selectExpr(
        "count(*) n", "count(message) m", "min(id) least", "max(id) most", "sum(id) s"
    ).first()
    assert totals["n"] == len(LIVE)
    assert totals["m"] == sum(n % 11 != 0 for n in LIVE)
    assert (totals["least"], totals["most"], totals["s"]) == (LIVE[0], LIVE[-1], sum(LIVE))
    assert len(frame.limit(50).collect()) == 50
    by_day = {found["day"]: found["count"] for found in frame.groupBy("day").count().collect()}
    assert by_day == {day: sum(str(n % 2) == day for n in LIVE) for day in ("0", "1")}


def test_row_numbers_stay_those_of_the_file(spark, path):
    frame = spark.read.format("indextables").load(path)
    numbered = frame.select("id", "_metadata.row_index", "_metadata.file_path").collect()
    assert len({(found["file_path"], found["row_index"]) for found in numbered}) == len(LIVE)
    assert max(found["row_index"] for found in numbered) > len(LIVE) / 4 - 1


def test_searches_find_live_rows_alone(spark, path):
    hits = [n for n in LIVE if n % 7 == 3 and n % 11 != 0]
    frame = spark.read.format("indextables").load(path)
    frame.createOrReplaceTempView("searched")
    assert ids(spark.sql("SELECT id FROM searched WHERE message indexquery 'word3'")) == hits
    either = spark.sql("SELECT id FROM searched WHERE message indexquery 'word3' OR id < 50")
    assert ids(either) == sorted({*hits, *(n for n in LIVE if n < 50)})
    assert ids(it.Table.open(path, spark=spark).search_df("word3")) == hits
    assert ids(it.Table.open(path, spark=spark).to_df("id < 100")) == [n for n in LIVE if n < 100]


def test_statements_on_a_named_table_leave_deleted_rows_gone(spark, tmp_path):
    make(tmp_path / "t")
    spark.sql(f"CREATE TABLE vectors USING indextables LOCATION '{tmp_path}/t'")
    try:
        assert ids(spark.table("vectors")) == LIVE
        spark.sql("UPDATE vectors SET message = 'new' WHERE id = 5")
        assert ids(spark.table("vectors")) == LIVE
        spark.sql("DELETE FROM vectors WHERE id = 7")
        left = [n for n in LIVE if n != 7]
        assert ids(spark.table("vectors")) == left
        spark.range(3, 8).createOrReplaceTempView("source")
        spark.sql(
            "MERGE INTO vectors t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET message = 'm' "
            "WHEN NOT MATCHED THEN INSERT (id, day) VALUES (s.id, '9')"
        )
        assert ids(spark.table("vectors")) == sorted({*left, 3, 7})
    finally:
        spark.sql("DROP TABLE vectors")


@pytest.mark.core
def test_statements_change_few_rows_by_vectors_and_write_no_other(spark, tmp_path):
    table = it.Table.create(tmp_path / "t", SCHEMA, options=OPTIONS)
    table.append(pa.Table.from_pylist([row(n) for n in range(2000)], SCHEMA))
    (split,) = table.files(columns=["path"])["path"].to_pylist()
    name = f"indextables.`{tmp_path}/t`"

    def after(statement):
        spark.sql(statement.format(t=name)).collect()
        table.refresh()
        metrics = {key: int(n) for key, n in table.history(1).to_pylist()[0]["operation_metrics"]}
        files = table.files()
        hidden = dict(zip(files["path"].to_pylist(), files["num_deleted"].to_pylist(), strict=True))
        return metrics["numOutputRows"], metrics["numDeletionVectors"], hidden[split]

    assert after("DELETE FROM {t} WHERE id % 500 = 7") == (0, 1, 4)
    assert after("UPDATE {t} SET message = 'new' WHERE id IN (5, 6, 1999)") == (3, 1, 7)
    assert after("DELETE FROM {t} WHERE message indexquery 'new' AND id = 6 OR id = 100") == (2, 1, 8), (
        "three rows less one are written anew"
    )
    merged = (
        "MERGE INTO {t} x USING (SELECT id FROM range(8, 11) UNION ALL SELECT 3000) s ON x.id = s.id "
        "WHEN MATCHED AND s.id = 8 THEN DELETE WHEN MATCHED AND s.id = 9 THEN UPDATE SET message = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, day) VALUES (s.id, '9')"
    )
    # The row with id 10 matches and stays as it is: it comes back with the others.
    assert after(merged) == (3, 1, 11)
    gone = {7, 507, 1007, 1507, 6, 100, 8}
    left = [*(n for n in range(2000) if n not in gone), 3000]
    assert ids(spark.table(name)) == left
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == left
    assert table.count(query="merged") == 1
    for found in spark.table(name).where("id IN (10, 11, 1500)").collect():
        expected = row(found["id"])
        assert (found["message"], found["amount"], found["tags"]) == (
            expected["message"], expected["amount"], expected["tags"],
        )  # fmt: skip


def test_statements_and_python_change_different_rows_of_a_file_together(spark, tmp_path):
    """What a statement planned on an older version still holds, or is a conflict that names the row."""
    table = it.Table.create(tmp_path / "t", SCHEMA, options=OPTIONS)
    table.append(pa.Table.from_pylist([row(n) for n in range(2000)], SCHEMA))
    frame = spark.sql(f"SELECT id FROM indextables.`{tmp_path}/t`")
    table.delete("id = 3")
    spark.sql(f"DELETE FROM indextables.`{tmp_path}/t` WHERE id IN (3, 4)").collect()
    assert ids(frame) == list(range(2000)), "a frame keeps its version"
    assert ids(spark.table(f"indextables.`{tmp_path}/t`")) == [n for n in range(2000) if n not in (3, 4)]
    assert table.refresh().purge_rows().rows_purged == 2
    assert table.files()["num_deleted"].to_pylist() == [None]


def test_random_statements_leave_what_a_dictionary_has(spark, tmp_path):
    """DELETE, UPDATE and MERGE of Spark and of Python in turn, with folds between them."""
    rng = random.Random(7)
    options = {**OPTIONS, "deletionVectors.foldShare": "0.6"}
    table = it.Table.create(tmp_path / "t", SCHEMA, partition_by=("day",), options=options)
    table.append(pa.Table.from_pylist([row(n) for n in range(400)], SCHEMA))
    model = {n: row(n)["message"] for n in range(400)}
    name, fresh = f"indextables.`{tmp_path}/t`", 1000
    for step in range(14):
        some = rng.sample(sorted(model), rng.choice([1, 5, 40]))
        listed = ", ".join(map(str, some))
        match step % 7:
            case 0 | 4:
                spark.sql(f"DELETE FROM {name} WHERE id IN ({listed})").collect()
                model = {key: text for key, text in model.items() if key not in some}
            case 1 | 5:
                spark.sql(f"UPDATE {name} SET message = 'step {step}' WHERE id IN ({listed})").collect()
                model |= dict.fromkeys(some, f"step {step}")
            case 2:
                spark.sql(
                    f"MERGE INTO {name} x USING (SELECT explode(array({listed}, {fresh})) AS id) s ON x.id = s.id "
                    f"WHEN MATCHED AND s.id % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET message = 'm {step}' "
                    "WHEN NOT MATCHED THEN INSERT (id, day, message) VALUES (s.id, '1', 'inserted')"
                ).collect()
                model |= dict.fromkeys(some, f"m {step}")
                model = {key: text for key, text in model.items() if key not in some or key % 3}
                model[fresh] = "inserted"
                fresh += 1
            case 3:
                table.refresh().delete(f"id IN ({listed})")
                model = {key: text for key, text in model.items() if key not in some}
            case 6:
                rng.choice([table.refresh().purge_rows, table.refresh().merge_splits])()
        read = {
            found["id"]: found["message"] for found in spark.table(name).select("id", "message").collect()
        }
        assert read == model, step
        rows = table.refresh().scan(columns=["id", "message"]).to_arrow().to_pylist()
        assert {found["id"]: found["message"] for found in rows} == model, step
        assert (table.count(), len(rows)) == (len(model), len(model)), step


def test_few_deleted_rows_of_a_large_file_are_left_out(spark, tmp_path):
    """They travel as a list of numbers, many as bits."""
    gone = {0, 5, 700, 1999}
    table = it.Table.create(tmp_path / "t", SCHEMA, options=OPTIONS)
    table.append(pa.Table.from_pylist([row(n) for n in range(2000)], SCHEMA))
    table.delete(f"id IN ({', '.join(map(str, gone))})")
    assert ids(spark.read.format("indextables").load(str(tmp_path / "t"))) == [
        n for n in range(2000) if n not in gone
    ]


def test_a_live_view_follows_deletions(spark, tmp_path):
    table = it.Table.create(tmp_path / "t", SCHEMA, options=OPTIONS)
    table.append(pa.Table.from_pylist([row(n) for n in range(100)], SCHEMA))
    frame = spark.read.format("indextables").option("refresh", "true").load(str(tmp_path / "t"))
    assert frame.count() == 100
    table.update_properties({"deletionVectors.enabled": "true"})
    table.delete("id < 10")
    assert ids(frame) == list(range(10, 100))


def test_a_stream_begins_with_the_live_rows(spark, tmp_path):
    make(tmp_path / "t")
    query = (
        spark.readStream.format("indextables").load(str(tmp_path / "t"))
        .writeStream.format("memory").queryName("streamed")
        .option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination(120)
    assert ids(spark.table("streamed")) == LIVE


def test_the_distributed_log_knows_vectors(spark, path):
    table = it.Table.open(path, spark=spark)
    near, far = table.files(engine="columnar"), table.files(engine="spark")
    assert far["num_deleted"].to_pylist() == near["num_deleted"].to_pylist()
    assert far["dv"].to_pylist() == near["dv"].to_pylist()
