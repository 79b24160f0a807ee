"""A Spark Connect server with plain settings, and two clients: one that only sends SQL, one with this package.

    python -m support.connect_statements DIRECTORY

prints what was wrong with their statements, as JSON. A process of its own, since
PySpark has classic sessions or remote ones, not both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import indextables as it
from indextables.spark.jvm import jar
from support.core_statements import CORE
from support.ports import free_port
from support.spark_sql import CONFS, HOME
from support.statement_places import Place, wrong


@contextmanager
def server(directory: Path) -> Iterator[str]:
    """The address of a server with a catalog of its own in memory and a catalog `lake` of directories."""
    port = free_port()
    given = {
        **CONFS,
        "spark.jars": str(jar.ready_jar()),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"{directory}/warehouse",
        "spark.sql.catalog.lake": "io.indextables.DirectoryCatalog",
        "spark.sql.catalog.lake.warehouse": f"{directory}/lake",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        # Where a server starts the Python side is no business of the client's environment.
        "spark.pyspark.python": sys.executable,
    }
    command = [HOME / "bin" / "spark-submit", "--master", "local[2]"]
    command += [part for key, value in given.items() for part in ("--conf", f"{key}={value}")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_CONNECT_MODE": "0"}
    with (directory / "server.txt").open("wb") as said:
        process = subprocess.Popen(command, cwd=directory, env=environment, stdout=said, stderr=said)
    try:
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def session(address: str) -> Any:
    """A client of the server; PySpark itself asks again until the server is up."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.remote(address).create()


def sender(spark: Any) -> Any:
    return lambda sql: [tuple(row) for row in spark.sql(sql).collect()]


def searched_by_name(spark: Any) -> dict[str, list[int]]:
    """The rows that a search of a named table finds, by every way to write it."""
    from pyspark.sql import functions as f

    spark.sql(
        "CREATE TABLE lake.notes (id INT, note STRING) USING indextables TBLPROPERTIES ('indexing.typemap.note' = 'text')"
    )
    spark.sql("INSERT INTO lake.notes VALUES (1, 'disk error'), (2, 'all quiet'), (3, 'network error')")
    notes, error = spark.table("lake.notes"), "note indexquery 'error'"
    frames = {
        "sql": spark.sql(f"SELECT id FROM lake.notes WHERE {error} ORDER BY id"),
        "filter": notes.filter(error).orderBy("id"),
        "expr": notes.filter(f.expr(f"{error} AND id > 1")),
        "scored": spark.sql(f"SELECT id FROM lake.notes WHERE {error} ORDER BY _score DESC, id LIMIT 1"),
    }
    found = {name: [row.id for row in frame.collect()] for name, frame in frames.items()}
    spark.sql("DELETE FROM lake.notes WHERE note indexquery 'disk'")
    return {**found, "after a delete": [row.id for row in notes.filter("true").orderBy("id").collect()]}


def streamed_by_name(spark: Any, root: Path) -> list[int]:
    """What a stream carries from one named table to another, which it makes."""
    stream = spark.readStream.table("lake.notes").writeStream.format("indextables")
    query = (
        stream.option("checkpointLocation", str(root / "stream"))
        .trigger(availableNow=True)
        .toTable("lake.copied")
    )
    query.awaitTermination(120)
    if query.exception() is not None:
        raise query.exception()
    return sorted(row.id for row in spark.table("lake.copied").collect())


def main(directory: str) -> None:
    """Send the statements from both clients."""
    root = Path(directory)
    with server(root) as address:
        bare = session(address)
        said: dict[str, Any] = {
            "bare": wrong(sender(bare), Place("", root / "warehouse"), CORE, bare.version)
        }
        bare.stop()
        spark = it.connect(session(address))
        said["connected"] = wrong(sender(spark), Place("lake.", root / "lake"), CORE, spark.version)
        path = str(root / "lake" / "t")
        said["rows"] = sorted(row.id for row in spark.read.format("indextables").load(path).collect())
        spark.sql(f"UPDATE indextables.`{path}` SET n = 100 WHERE id = 9")
        said["by path"] = spark.sql(f"SELECT n FROM indextables.`{path}` WHERE id = 9").first()[0]
        found = spark.sql(f"SELECT id FROM indextables.`{path}` WHERE message indexquery 'inserted'")
        said["searched"] = [row.id for row in found.collect()]
        said["by name"] = searched_by_name(spark)
        said["streamed"] = streamed_by_name(spark, root)
        try:
            spark.sql("INSERT INTO lake.t REPLACE WHERE day = 'e' SELECT 60L, 'f', 'outside', 3L, 1")
        except Exception as error:
            said["error"] = type(error).__name__
        spark.stop()
    sys.stdout.write("\n" + json.dumps(said) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
