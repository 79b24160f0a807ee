"""One look says what a statement is; an ordinary one is not read beyond its first word."""

from __future__ import annotations

import pytest

from indextables.sql.commands import TableName
from indextables.sql.recogniser import (
    Change,
    CreateView,
    Form,
    Insert,
    MaintenanceCommand,
    OtherStatement,
    SharedCommand,
    ViewDefinition,
    recognise,
)

LOGS = TableName(view=("logs",))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("MERGE SPLITS '/t'", MaintenanceCommand()),
        ("/* a /* nested */ note */ describe indextables state '/t'", MaintenanceCommand()),
        ("PURGE ROWS logs", MaintenanceCommand()),
        ("OPTIMIZE logs", SharedCommand(LOGS)),
        ("REORG TABLE logs APPLY (PURGE)", SharedCommand(LOGS)),
        ("SHOW PARTITIONS logs", SharedCommand(LOGS, is_spark_syntax=True)),
        ("ANALYZE TABLE logs COMPUTE STATISTICS", SharedCommand(LOGS, is_spark_syntax=True)),
        ("ANALYZE TABLE logs FOR SKIPPING", SharedCommand(LOGS)),
        ("MERGE INTO logs USING s ON true WHEN MATCHED THEN DELETE", Change("MERGE", ("logs",))),
        ("EXPLAIN FORMATTED UPDATE logs SET a = 1", Change("UPDATE", ("logs",))),
        ("EXPLAIN INSERT INTO logs VALUES (1)", OtherStatement()),
        ("CREATE TEMPORARY VIEW v USING indextables", CreateView("VIEW", "v", temporary=True)),
        ("CREATE TABLE a USING parquet AS SELECT 1 JOIN b USING (id)", OtherStatement()),
        ("WITH insert AS (SELECT 1) SELECT * FROM insert", OtherStatement()),
        ("FROM s INSERT INTO logs SELECT *", OtherStatement()),
        ("SELECT 1 -- /* never closed", OtherStatement()),
        ("/* never closed MERGE SPLITS '/t'", OtherStatement()),
        ("DROP TABLE logs", OtherStatement()),
        ("", OtherStatement()),
    ],
)
def test_a_statement_has_one_form(text: str, form: Form) -> None:
    assert recognise(text).form == form


def test_an_insert_keeps_what_stands_before_and_behind_its_target() -> None:
    text = "WITH s AS (SELECT 1) INSERT OVERWRITE logs BY NAME SELECT * FROM s"
    expected = Insert(("logs",), True, "WITH s AS (SELECT 1) ", "BY NAME SELECT * FROM s")
    assert recognise(text).form == expected


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("SELECT 1", set()),
        ("SELECT * FROM logs WHERE message INDEXQUERY 'a'", {"search"}),
        ("SELECT * FROM indextables . `/t` WHERE m textsearch 'a'", {"path", "search"}),
        ("SELECT indextables_date_histogram (ts, '1h') FROM logs", {"bucket"}),
    ],
)
def test_a_statement_says_which_words_of_ours_it_mentions(text: str, mentions: set[str]) -> None:
    statement = recognise(text)
    assert statement.mentions == mentions
    assert statement.is_sparks == (not mentions & {"path", "search"})


def test_the_query_of_a_view_begins_behind_its_head() -> None:
    text = "-- note\nCREATE OR REPLACE GLOBAL TEMP VIEW `my view` AS SELECT 1"
    statement = recognise(text)
    assert statement.view == ViewDefinition("`my view`", replace=True, shared=True)
    assert text[statement.start :] == "SELECT 1"
    assert not statement.is_explained
    assert recognise("EXPLAIN SELECT 1").is_explained
