"""Columns that a write on Spark indexes by itself, several fields of a column, and nested text in Spark's SQL."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import indextables as it

AUTO = "indexing.auto"
TYPEMAP = "spark.indextables.indexing.typemap."
CHOSEN = {"level": "string", "message": "text"}


@pytest.fixture(scope="module")
def logs(spark):
    """Ids, levels of few values, sentences, a column of numbers, and texts that never repeat."""
    return spark.range(60).select(
        "id",
        F.expr("elt(1 + id % 3, 'INFO', 'WARN', 'ERROR')").alias("level"),
        F.expr("concat('disk number ', id, ' is full')").alias("message"),
        F.expr("uuid()").alias("request"),
        F.expr("concat('rack', id % 2)").alias("rack"),
    )


def kinds_of(table) -> dict[str, str]:
    properties = table.metadata.configuration
    return {key.removeprefix(TYPEMAP): value for key, value in properties.items() if key.startswith(TYPEMAP)}


@pytest.fixture
def named(spark):
    """A name in the session catalog, and the table behind it."""
    name = "automatic_logs"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def opened(spark, name):
    location = next(
        row[1] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect() if row[0] == "Location"
    )
    return it.open(location.removeprefix("file:"))


@pytest.mark.core
def test_a_save_indexes_columns_by_their_first_rows(spark, logs, tmp_path):
    path = str(tmp_path / "t")
    logs.write.format("indextables").option(AUTO, "true").partitionBy("rack").save(path)
    table = it.open(path)
    assert kinds_of(table) == CHOSEN
    assert table.count(query="message:full AND level:ERROR") == 20
    assert spark.sql(f"SELECT * FROM indextables.`{path}` WHERE message indexquery 'full'").count() == 60


def test_what_the_write_says_of_a_column_stands(logs, tmp_path):
    path = str(tmp_path / "t")
    chosen = {AUTO: "true", "indexing.typemap.level": "text", "indexing.typemap.message": "text,substring"}
    logs.write.format("indextables").options(**chosen).save(path)
    assert kinds_of(it.open(path)) == {"level": "text", "message": "text,substring", "rack": "string"}
    logs.write.format("indextables").save(str(tmp_path / "plain"))
    assert kinds_of(it.open(tmp_path / "plain")) == {}


@pytest.mark.parametrize("way", ["saveAsTable", "create", "overwrite", "createOrReplace"])
def test_a_named_table_of_a_frame_is_indexed_too(spark, logs, named, way):
    if way in {"overwrite", "createOrReplace"}:
        logs.limit(1).write.format("indextables").saveAsTable(named)
    if way in {"saveAsTable", "overwrite"}:
        writer = logs.write.format("indextables").option(AUTO, "true").partitionBy("rack")
        writer.mode("overwrite" if way == "overwrite" else "error").saveAsTable(named)
    else:
        writer = logs.writeTo(named).using("indextables").option(AUTO, "true").partitionedBy("rack")
        getattr(writer, way)()
    assert kinds_of(opened(spark, named)) == CHOSEN
    found = spark.sql(f"SELECT id FROM {named} WHERE level indexquery 'WARN' AND message indexquery 'disk'")
    assert found.count() == 20


@pytest.mark.core
@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        (f"OPTIONS ('{AUTO}' = 'true')", {**CHOSEN, "rack": "string"}),
        (f"PARTITIONED BY (rack) TBLPROPERTIES ('{AUTO}' = 'true')", CHOSEN),
        (f"TBLPROPERTIES ('{TYPEMAP}message' = 'substring', 'spark.indextables.{AUTO}' = 'true')",
         {"level": "string", "message": "substring", "rack": "string"}),
        ("", {}),
    ],
)  # fmt: skip
def test_create_table_as_select_indexes_what_it_selects(spark, logs, named, words, kinds):
    logs.createOrReplaceTempView("log_rows")
    spark.sql(f"CREATE TABLE {named} USING indextables {words} AS SELECT * FROM log_rows")
    table = opened(spark, named)
    assert kinds_of(table) == kinds
    assert table.count() == 60


def test_the_session_may_ask_for_it(spark, logs, named):
    spark.conf.set(f"spark.indextables.{AUTO}", "true")
    try:
        logs.drop("rack").write.format("indextables").saveAsTable(named)
    finally:
        spark.conf.unset(f"spark.indextables.{AUTO}")
    assert kinds_of(opened(spark, named)) == CHOSEN


def test_the_first_batch_of_a_stream_decides(spark, logs, tmp_path):
    source, path = str(tmp_path / "rows"), str(tmp_path / "t")
    logs.write.parquet(source)
    stream = spark.readStream.schema(logs.schema).parquet(source).writeStream.format("indextables")
    stream = stream.option("checkpointLocation", str(tmp_path / "c")).option(AUTO, "true")
    stream.trigger(availableNow=True).start(path).awaitTermination()
    assert kinds_of(it.open(path)) == {**CHOSEN, "rack": "string"}


@pytest.mark.core
def test_each_field_of_a_column_answers_in_spark(spark, tmp_path):
    path = str(tmp_path / "t")
    schema = pa.schema([("id", pa.int64()), ("message", pa.string())])
    table = it.Table.create(path, schema, options={"indexing.typemap.message": "text,string,substring"})
    for start in range(0, 40, 10):
        ids = list(range(start, start + 10))
        table.append(pa.table({"id": ids, "message": [f"disk sda{at} is full" for at in ids]}, schema))
    frame = spark.read.format("indextables").load(path)
    for condition, ids in (
        ("message indexquery 'sda7'", [7]),
        ("message = 'disk sda12 is full'", [12]),
        ("message IN ('disk sda12 is full', 'disk sda33 is full', 'none')", [12, 33]),
        ("message LIKE '%da21%'", [21]),
        ("contains(message, 'a3 is')", [3]),
        ("instr(message, 'sda38') > 0", [38]),
        ("message indexquery 'full' AND message LIKE '%sda1_ %'", list(range(10, 20))),
        ("NOT message indexquery 'full'", []),
    ):
        assert sorted(row[0] for row in frame.filter(condition).select("id").collect()) == ids, condition


@pytest.mark.core
@pytest.mark.parametrize("kind", ["json", "text"])
def test_nested_columns_are_searched_in_spark_as_without_it(spark, tmp_path, kind):
    path = str(tmp_path / "t")
    frame = spark.sql(
        "SELECT id, named_struct('user', elt(1 + id % 3, 'ann', 'bob smith', 'carl'), 'n', id % 4) AS attributes, "
        "map('host', concat('web', id % 5)) AS labels, array('red', concat('tag', id % 2)) AS tags FROM range(30)"
    )
    nested = ("attributes", "labels", "tags")
    options = {f"indexing.typemap.{name}": kind for name in nested}
    frame.repartition(3).write.format("indextables").options(**options).save(path)
    queries = {
        "attributes": {"ann": range(0, 30, 3), "smith": range(1, 30, 3), '"bob smith"': range(1, 30, 3)},
        "labels": {"web3": range(3, 30, 5)},
        "tags": {"tag1": range(1, 30, 2), "red AND tag0": range(0, 30, 2), "blue": ()},
    }
    if kind == "json":
        queries["attributes"]["attributes.user:ann"] = range(0, 30, 3)
        queries["labels"]["labels.host:web2"] = range(2, 30, 5)
    table = it.open(path)
    for column, asked in queries.items():
        for query, ids in asked.items():
            text = f"SELECT id FROM indextables.`{path}` WHERE {column} indexquery '{query}'"
            assert sorted(row[0] for row in spark.sql(text).collect()) == list(ids), (column, query)
            whole = query if ":" in query else f"{column}:({query})"
            found = table.search(whole, columns=["id"]).read_all()["id"].to_pylist()
            assert sorted(found) == list(ids), (column, query)
    both = "attributes indexquery 'ann' OR tags indexquery 'tag1'"
    expected = [at for at in range(30) if at % 3 == 0 or at % 2]
    read = spark.read.format("indextables").load(path)
    assert sorted(row[0] for row in read.filter(both).select("id").collect()) == expected
