"""Scores in SQL and on executors are those of one index; highlights and DELETE by search in `spark.sql`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import indextables as it
from indextables.errors import CommandError
from indextables.spark.search import on_driver
from indextables.spark.search.tasks import SearchTask
from indextables.sql.select.rewrite import rewrite

SCHEMA = pa.schema([("id", pa.int64()), ("message", pa.string()), ("day", pa.string())])
QUERY = "kafka noise"


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    lines = [
        " ".join(["noise"] * (n % 5) + ["kafka"] * (n % 3) + ["filler"] * (n % 11)) or "quiet"
        for n in range(120)
    ]
    return pa.table({"id": range(120), "message": lines, "day": [f"d{n % 3}" for n in range(120)]}, SCHEMA)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, rows: pa.Table) -> Path:
    root = tmp_path_factory.mktemp("scores") / "t"
    table = it.Table.create(root, SCHEMA, options={"indexing.typemap.message": "text"})
    for start in range(0, 120, 17):
        table.append(rows.slice(start, 17))
    return root


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory, rows: pa.Table) -> dict[int, float]:
    """The scores of the same rows in one split."""
    table = it.Table.create(
        tmp_path_factory.mktemp("one") / "t", SCHEMA, options={"indexing.typemap.message": "text"}
    )
    table.append(rows)
    found = table.search(QUERY, score=True).read_all()
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


@pytest.fixture(params=["driver", "executors"])
def searcher(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "executors":
        monkeypatch.setattr(on_driver, "MOST_ROWS", -1)
        monkeypatch.setattr(on_driver, "MOST_SPLITS", -1)
    return str(request.param)


@pytest.mark.usefixtures("searcher")
def test_scores_are_those_of_one_index(spark: SparkSession, path: Path, wanted: dict[int, float]) -> None:
    table = f"indextables.`{path}`"
    where = f"WHERE message indexquery '{QUERY}'"
    found = {row.id: row._score for row in spark.sql(f"SELECT id, _score FROM {table} {where}").collect()}
    assert found == pytest.approx(wanted, abs=1e-5)
    best = spark.sql(f"SELECT *, _score FROM {table} {where} ORDER BY _score DESC LIMIT 5")
    assert best.columns == ["id", "message", "day", "_score"]
    assert [row._score for row in best.collect()] == pytest.approx(
        sorted(wanted.values(), reverse=True)[:5], abs=1e-5
    )
    filtered = spark.sql(
        f"SELECT id, _score FROM {table} {where} AND day = 'd1' ORDER BY _score DESC LIMIT 4"
    ).collect()
    of_that_day = sorted((score for key, score in wanted.items() if key % 3 == 1), reverse=True)
    assert [row._score for row in filtered] == pytest.approx(of_that_day[:4], abs=1e-5)
    frame = it.Table.open(path, spark=spark).search_df(QUERY, where="day = 'd1'", score=True, limit=4)
    assert [row._score for row in frame.collect()] == pytest.approx(of_that_day[:4], abs=1e-5)


def test_a_star_does_not_show_the_score_and_order_may_use_it(
    spark: SparkSession, path: Path, wanted: dict[int, float]
) -> None:
    found = spark.sql(
        f"SELECT * FROM indextables.`{path}` WHERE message indexquery '{QUERY}' ORDER BY _score DESC, id LIMIT 3"
    )
    assert found.columns == SCHEMA.names
    best = sorted(wanted, key=lambda key: (-round(wanted[key], 4), key))[:3]
    assert [row.id for row in found.collect()] == best


def test_a_score_without_one_search_that_has_to_hold_is_refused(spark: SparkSession, path: Path) -> None:
    for condition in ("message indexquery 'a' OR id = 1", "message indexquery 'a' AND day indexquery 'b'"):
        with pytest.raises(CommandError, match="_score is the score of a search"):
            spark.sql(f"SELECT _score FROM indextables.`{path}` WHERE {condition}").collect()


def test_only_a_bare_order_by_score_with_a_limit_is_pushed_down() -> None:
    def best(statement: str) -> int | None:
        found = rewrite(statement.replace("FROM T", "FROM indextables.`/t`"), lambda _: ("id", "message"))
        assert found is not None
        return found.searches[0].best

    assert best("SELECT id FROM T WHERE message indexquery 'a' ORDER BY _score DESC LIMIT 5") == 5
    assert best("SELECT id FROM T WHERE (message indexquery 'a') ORDER BY _score DESC LIMIT 5 OFFSET 2") == 7
    for other in (
        "SELECT id FROM T WHERE message indexquery 'a' AND id > 1 ORDER BY _score DESC LIMIT 5",
        "SELECT id FROM T WHERE message indexquery 'a' ORDER BY _score LIMIT 5",
        "SELECT id FROM T WHERE message indexquery 'a' ORDER BY _score DESC, id LIMIT 5",
        "SELECT DISTINCT _score FROM T WHERE message indexquery 'a' ORDER BY _score DESC LIMIT 5",
        "SELECT max(_score) FROM T WHERE message indexquery 'a' GROUP BY id ORDER BY _score DESC LIMIT 5",
        "SELECT id, _score FROM T WHERE message indexquery 'a' LIMIT 5",
    ):
        assert best(other) is None, other


def test_a_plan_pushes_the_same_down(
    spark: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int | None] = []
    original = on_driver.counted

    def counted(session: SparkSession, task: SearchTask) -> dict[str, int] | None:
        limits.append(task.selection.limit)
        return original(session, task)

    monkeypatch.setattr(on_driver, "counted", counted)
    search = f"SELECT id, _score FROM indextables.`{path}` WHERE message indexquery '{QUERY}'"
    for rest in (
        "ORDER BY _score DESC LIMIT 5",
        "ORDER BY _score DESC LIMIT 5 OFFSET 2",
        "AND id > 1 ORDER BY _score DESC LIMIT 5",
        "ORDER BY _score LIMIT 5",
        "ORDER BY _score DESC, id LIMIT 5",
    ):
        spark.sql(f"{search} {rest}").collect()
    assert limits == [5, 7, None, None, None]


def test_rows_are_deleted_by_search_in_sql(spark: SparkSession, tmp_path: Path, rows: pa.Table) -> None:
    table = it.Table.create(tmp_path / "t", SCHEMA, options={"indexing.typemap.message": "text"})
    table.append(rows)
    found = spark.sql(
        f"DELETE FROM INDEXTABLES '{tmp_path / 't'}' WHERE message indexquery 'kafka' AND day = 'd1'"
    )
    gone = [n for n in range(120) if n % 3 == 1]
    assert found.first()["rows_deleted"] == len(gone)
    assert table.refresh().count() == 120 - len(gone)


@pytest.mark.core
def test_highlight_marks_what_the_search_finds(spark: SparkSession, path: Path) -> None:
    table = f"indextables.`{path}`"
    where = "WHERE message indexquery 'kafka' AND id < 12"
    found = spark.sql(
        f"SELECT id, highlight(message, 'kaf* -filler') AS shown FROM {table} {where} ORDER BY id"
    ).collect()
    assert [row.id for row in found] == [1, 2, 4, 5, 7, 8, 10, 11]
    assert found[0].shown == "noise <em>kafka</em> filler"
    star = spark.sql(f"SELECT *, highlight(t.message, 'noise') AS shown FROM {table} t {where}")
    assert star.columns == [*SCHEMA.names, "shown"]
    either = spark.sql(
        f"SELECT id, highlight(message, 'noise') AS shown FROM {table} "
        "WHERE (message indexquery 'kafka' OR id = 3) AND id < 4 ORDER BY id"
    ).collect()
    assert [(row.id, row.shown) for row in either] == [
        (1, "<em>noise</em> kafka filler"),
        (2, "<em>noise</em> <em>noise</em> kafka kafka filler filler"),
        (3, "<em>noise</em> <em>noise</em> <em>noise</em> filler filler filler"),
    ]
    with pytest.raises(it.errors.QueryError, match="a single '&'"):
        spark.sql(f"SELECT highlight(message, 'a & b') FROM {table} WHERE message indexquery 'a'").collect()
    with pytest.raises(it.errors.QueryError, match="column 'id' is not indexed"):
        spark.sql(f"SELECT highlight(id, 'a') FROM {table} WHERE message indexquery 'a'").collect()
