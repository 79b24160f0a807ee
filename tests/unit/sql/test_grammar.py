"""The text of every maintenance command and the value it stands for."""

import re
from pathlib import Path

import pytest

from indextables.errors import CommandError
from indextables.sql.commands import (
    AnalyzeSkipping,
    CheckTable,
    DeleteRows,
    Describe,
    DropPartitions,
    InvalidateCache,
    MergeSplits,
    Purge,
    PurgeRows,
    RepairLog,
    Restore,
    Subject,
    TableName,
    TruncateHistory,
    WriteCheckpoint,
)
from indextables.sql.commands.grammar import is_command, parse_command, shared_subject

T = TableName(path="/data/t")
VIEW = TableName(view=("events",))

STATEMENTS = {
    "REPAIR INDEXFILES TRANSACTION LOG '/a/_transaction_log' AT LOCATION '/b'": RepairLog(
        "/a/_transaction_log", "/b"
    ),
    "REPAIR INDEXFILES TRANSACTION LOG '/a' AT LOCATION '/b' FROM SPLITS": RepairLog("/a", "/b", True),
    "REPAIR INDEXFILES TRANSACTION LOG '/a' AT LOCATION '/b' UP TO VERSION 7": RepairLog(
        "/a", "/b", False, 7
    ),
    "CHECK INDEXTABLES '/t'": CheckTable(TableName("/t")),
    "MERGE SPLITS '/data/t'": MergeSplits(T),
    "MERGE SPLITS events WHERE day = '2024-01-01' TARGET SIZE 100M DRY RUN": MergeSplits(
        VIEW, "day = '2024-01-01'", target_bytes=100 << 20, dry_run=True
    ),
    "MERGE SPLITS '/data/t' MAX DEST SPLITS 5 MAX SOURCE SPLITS PER MERGE 50": MergeSplits(
        T, max_dest_splits=5, max_source_splits=50
    ),
    "PURGE ROWS '/data/t'": PurgeRows(T),
    "PURGE ROWS events WHERE day = '2024-01-01' DRY RUN": PurgeRows(VIEW, "day = '2024-01-01'", True),
    "PURGE INDEXTABLE '/data/t'": Purge(T),
    "PURGE INDEXTABLE '/data/t' OLDER THAN 14 DAYS TRANSACTION LOG RETENTION 30 DAYS DRY RUN": Purge(
        T, 14 * 24, 30 * 24, True
    ),
    "PURGE INDEXTABLE events OLDER THAN 1 HOUR": Purge(VIEW, 1),
    "purge indextable events lite older than 2 days": Purge(VIEW, 48, lite=True),
    "PURGE INDEXTABLE events USING INVENTORY 's3://b/list.parquet' DRY RUN": Purge(
        VIEW, dry_run=True, inventory="s3://b/list.parquet"
    ),
    "DROP INDEXTABLES PARTITIONS FROM '/data/t' WHERE year = 2023 AND month > 6": DropPartitions(
        T, "year = 2023 AND month > 6"
    ),
    "CHECKPOINT INDEXTABLES '/data/t'": WriteCheckpoint(T),
    "COMPACT INDEXTABLES events": WriteCheckpoint(VIEW),
    "ANALYZE INDEXTABLES '/data/t' FOR SKIPPING": AnalyzeSkipping(T),
    "ANALYZE INDEXTABLES events FOR SKIPPING STORE": AnalyzeSkipping(VIEW, store=True),
    "TRUNCATE INDEXTABLES TIME TRAVEL '/data/t' DRY RUN": TruncateHistory(T, True),
    "DESCRIBE INDEXTABLES TRANSACTION LOG '/data/t'": Describe(Subject.TRANSACTION_LOG, T),
    "DESCRIBE INDEXTABLES TRANSACTION LOG '/data/t' INCLUDE ALL": Describe(Subject.TRANSACTION_LOG, T, True),
    "DESCRIBE INDEXTABLES STATE '/data/t'": Describe(Subject.STATE, T),
    "DESCRIBE INDEXTABLES HISTORY events": Describe(Subject.HISTORY, VIEW),
    "DESCRIBE INDEXTABLES SKIPPED FILES '/data/t'": Describe(Subject.SKIPPED_FILES, T),
    "DESCRIBE INDEXTABLES COMPONENT SIZES '/data/t'": Describe(Subject.COMPONENT_SIZES, T),
    "DESCRIBE INDEXTABLES DATA SKIPPING STATS": Describe(Subject.DATA_SKIPPING_STATS),
    "INVALIDATE INDEXTABLES TRANSACTION LOG CACHE": InvalidateCache(),
    "INVALIDATE INDEXTABLES TRANSACTION LOG CACHE FOR '/data/t'": InvalidateCache(T),
    "RESTORE INDEXTABLES '/data/t' TO VERSION 12": Restore(T, 12),
    "DELETE FROM INDEXTABLES '/data/t' WHERE id IN (1, 2) OR name LIKE 'a%'": DeleteRows(
        T, "id IN (1, 2) OR name LIKE 'a%'"
    ),
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_each_statement_stands_for_its_command(text):
    assert is_command(text)
    assert parse_command(text) == STATEMENTS[text]


@pytest.mark.parametrize("text", STATEMENTS)
def test_keywords_may_be_written_in_any_case(text):
    """J8: commands are case-insensitive; quoted text keeps its case."""
    pieces = text.split("'")
    swapped = "'".join(p if i % 2 else p.swapcase() for i, p in enumerate(pieces)).replace("EVENTS", "events")
    assert is_command(swapped)
    parsed = parse_command(swapped)
    assert type(parsed) is type(STATEMENTS[text])
    if getattr(parsed, "where", None) is None:
        assert parsed == STATEMENTS[text]


@pytest.mark.parametrize("text", STATEMENTS)
def test_comments_and_trailing_semicolons_change_nothing(text):
    words = text.split(" ")
    commented = f"-- why\n/* outer /* inner */ */ {words[0]} /* x */ {' '.join(words[1:])} -- end\n ; ;"
    assert is_command(commented)
    assert parse_command(commented) == STATEMENTS[text]


def test_strings_take_doubled_quotes_and_double_quotes():
    """J8: strings with '' escapes or double quotes."""
    parsed = parse_command(
        """REPAIR INDEXFILES TRANSACTION LOG 'it''s/_transaction_log' AT LOCATION "b""c'd" """
    )
    assert parsed == RepairLog("it's/_transaction_log", "b\"c'd")


def test_comment_marks_and_semicolons_inside_strings_belong_to_the_string():
    text = "DELETE FROM INDEXTABLES '/a--b/*c*/' WHERE note = 'x; -- y'"
    assert parse_command(text) == DeleteRows(TableName(path="/a--b/*c*/"), "note = 'x; -- y'")


def test_a_table_may_be_a_qualified_or_backticked_view_or_a_path_in_spark_spelling():
    assert parse_command("CHECKPOINT INDEXTABLES global_temp.`my view`") == WriteCheckpoint(
        TableName(view=("global_temp", "my view"))
    )
    assert parse_command("CHECKPOINT INDEXTABLES indextables.`/data/t`") == WriteCheckpoint(T)


def test_analyze_takes_columns_by_name_and_the_spellings_of_other_systems():
    text = "FOR SKIPPING COLUMNS (id, `a``b`, address.city) STORE"
    command = AnalyzeSkipping(VIEW, ("id", "a`b", "address.city"), True)
    for start in ("ANALYZE INDEXTABLES events", "ANALYZE TABLE events", "ANALYZE events"):
        assert parse_command(f"{start} {text}") == command
    assert shared_subject("ANALYZE events FOR SKIPPING") == VIEW
    assert shared_subject("ANALYZE TABLE events\n FOR SKIPPING STORE") == VIEW
    assert shared_subject("ANALYZE events") is None


@pytest.mark.parametrize("name", ["splits", "history", "where", "dry", "target", "indextables"])
def test_keywords_are_not_reserved_as_view_names(name):
    assert parse_command(f"MERGE SPLITS {name} DRY RUN") == MergeSplits(TableName(view=(name,)), dry_run=True)


def test_columns_named_like_clauses_stay_in_the_condition():
    parsed = parse_command("MERGE SPLITS t WHERE target = 1 AND run > max TARGET SIZE 1G")
    assert parsed == MergeSplits(TableName(view=("t",)), "target = 1 AND run > max", target_bytes=1 << 30)


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("100M", 100 << 20),
        ("1g", 1 << 30),
        ("5 MB", 5 << 20),
        ("'64K'", 64 << 10),
        ("4096", 4096),
        ("2GiB", 2 << 30),
    ],
)
def test_sizes_are_bytes_or_carry_a_unit(written, size):
    assert parse_command(f"MERGE SPLITS t TARGET SIZE {written}").target_bytes == size


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        ("REPAIR INDEXFILES TRANSACTION LOG '/a'\n  AT LOCATON '/b'", 2, 6, "LOCATION"),
        ("REPAIR INDEXFILES TRANSACTION LOG /a AT LOCATION '/b'", 1, 35, "a quoted path"),
        ("MERGE SPLITS", 1, 13, "a quoted path"),
        ("MERGE SPLITS '/t' TARGT SIZE 1", 1, 19, "TARGET SIZE"),
        ("DROP INDEXTABLES PARTITIONS FROM '/t'", 1, 38, "WHERE"),
        ("MERGE SPLITS '/t' WHERE", 1, 24, "a condition"),
        ("PURGE INDEXTABLE t OLDER THAN 7 WEEKS", 1, 33, "DAYS or HOURS"),
        ("RESTORE INDEXTABLES t TO VERSION -1", 1, 34, "a whole number"),
        ("DESCRIBE INDEXTABLES STATE '/t' INCLUDE ALL", 1, 33, "the end of the statement"),
        ("MERGE SPLITS '/t' TARGET SIZE 'big'", 1, 31, "a size such as 100M, 1G or 1048576"),
        ("MERGE SPLITS ''", 1, 14, "a quoted path"),
        ("RESTORE INDEXTABLES t TO VERSION 1 /* open", 1, 36, "*/"),
    ],
)
def test_a_syntax_error_shows_line_column_and_what_was_expected(text, line, column, expected):
    """J8: a syntax error shows line, column and what was expected."""
    with pytest.raises(CommandError) as caught:
        parse_command(text)
    error = caught.value
    assert (error.line, error.column) == (line, column)
    assert expected in error.expected
    assert f"Line {line}, column {column}" in str(error)
    assert expected in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "MERGE SPLITS t DRY RUN DRY RUN",
        "MERGE SPLITS t TARGET SIZE 1G TARGET SIZE 2G",
        "MERGE SPLITS t TARGET SIZE 0",
        "MERGE SPLITS t MAX SOURCE SPLITS PER MERGE 1",
        "PURGE INDEXTABLE t OLDER THAN 99999999999999999999999 DAYS",
        "RESTORE INDEXTABLES t TO VERSION 1; RESTORE INDEXTABLES t TO VERSION 2",
        "MERGE SPLITS 't",
        "SELECT 1",
        "",
    ],
)
def test_what_makes_no_sense_is_refused(text):
    with pytest.raises(CommandError):
        parse_command(text)


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("REPAIR INDEXFILES TRANSACTION LOG '/a'\nAT LOCATON '/b'", (2, 4), ("LOCATION",)),
        ("REPAIR INDEXFILES TRANSACTION LOG '/a' AT", (1, 42), ("LOCATION",)),
        ("MERGE SPLITS t DRY RUNN", (1, 20), ("RUN",)),
        ("MERGE SPLITS t TARGET\nSIZ 3", (2, 1), ("SIZE",)),
        ("MERGE SPLITS t MAX SOURCE SPLIT 3", (1, 27), ("SPLITS PER MERGE",)),
        ("MERGE SPLITS t MAX", (1, 19), ("DEST SPLITS", "SOURCE SPLITS PER MERGE")),
        ("PURGE INDEXTABLE t OLDER 3 DAYS", (1, 26), ("THAN",)),
        ("BUILD INDEXTABLES COMPANION FOR DELTA '/a' INDEXING MODE ()", (1, 53), ("MODES",)),
        ("BUILD INDEXTABLES COMPANION FOR DELTA '/a' FROM VERSON 3", (1, 49), ("VERSION",)),
    ],
)
def test_a_phrase_with_a_wrong_word_is_blamed_on_that_word(text, at, expected):
    with pytest.raises(CommandError) as error:
        parse_command(text)
    assert (error.value.line, error.value.column) == at
    assert error.value.expected == expected


@pytest.mark.parametrize(
    "text",
    [
        "REPAIR TABLE t",
        "MSCK REPAIR TABLE indextables",
        "DESCRIBE t",
        "DESCRIBE indextables",
        "DESC EXTENDED indextables",
        "DESCRIBE HISTORY indextables",
        "DESCRIBE indextables.`/data/t`",
        "DROP TABLE indextables",
        "DROP VIEW splits",
        "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE indextables",
        "DELETE FROM t WHERE a = 1",
        "DELETE FROM indextables WHERE a = 1",
        "DELETE FROM indextables AS i WHERE a = 1",
        "DELETE FROM indextables.`/data/t` WHERE a = 1",
        "RESTORE TABLE indextables TO VERSION AS OF 1",
        "RESTORE indextables TO VERSION AS OF 1",
        "SELECT 'MERGE SPLITS t'",
        "-- MERGE SPLITS t\nSELECT 1",
        "/* MERGE SPLITS t */ SHOW TABLES",
        "CACHE TABLE t",
        "REFRESH TABLE t",
        "MERGESPLITS t",
        "",
        "/* not closed",
    ],
)
def test_plain_sql_that_starts_with_the_same_words_is_not_ours(text):
    assert not is_command(text)


def test_long_plain_statements_are_recognised_at_once():
    import time

    long = "-- why\n" * 1000 + "SELECT " + ", ".join(f"a{i} -- c{i}\n" for i in range(200_000))
    began = time.process_time()
    assert not is_command(long)
    assert time.process_time() - began < 0.2


def test_the_words_of_delta_for_purge_rows_stand_for_it():
    parsed = parse_command("REORG TABLE t WHERE day = 'a' APPLY (PURGE)")
    assert parsed == PurgeRows(TableName(view=("t",)), "day = 'a'")


def documented():
    page = Path(__file__).parents[3] / "docs" / "sql.md"
    blocks = re.findall(r"^```sql\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [*blocks, *re.findall(r"\| `(DESCRIBE [^`]+)`", page.read_text())]


@pytest.mark.parametrize("text", documented())
def test_every_statement_of_the_documentation_is_one(text):
    assert is_command(text) or shared_subject(text) is not None
    parse_command(text)
