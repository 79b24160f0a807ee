"""What people type from habit, in Python and in a shell: it works, or one sentence says what to type here."""

import json
import re
import sys
from pathlib import Path

import pytest

import indextables as it
from indextables.cli.main import main
from indextables.errors import CommandError, NotATableError, OptionError, TableError
from indextables.sql.commands import TableName
from indextables.sql.commands.grammar import is_command, parse_command, shared_subject
from support.familiar_statements import REFUSED, UNNEEDED, WORKING, make_familiar_table


@pytest.fixture
def path(tmp_path):
    make_familiar_table(str(tmp_path / "events"))
    return f"'{tmp_path / 'events'}'"


@pytest.mark.parametrize("statement", WORKING)
def test_a_statement_of_another_system_is_the_command_of_ours(path, statement):
    row = it.sql(statement.format(t=path)).to_pylist()[0]
    assert {key: row[key] for key in WORKING[statement]} == WORKING[statement]


def test_every_partition_is_shown_with_what_is_in_it(path):
    shown = it.sql(f"SHOW PARTITIONS {path}")
    assert shown.column_names == ["day", "num_files", "num_rows", "size_bytes"]
    assert shown["day"].to_pylist() == ["mon", "tue"]
    assert sum(shown["size_bytes"].to_pylist()) == it.Table.open(path.strip("'")).describe().size_bytes


def test_a_table_without_partitions_says_so(tmp_path):
    import pyarrow as pa

    it.Table.create(str(tmp_path / "t"), pa.schema([("id", pa.int64())]))
    with pytest.raises(TableError, match="is not partitioned"):
        it.sql(f"SHOW PARTITIONS '{tmp_path / 't'}'")


@pytest.mark.parametrize("statement", UNNEEDED)
def test_what_is_not_needed_succeeds_and_says_why(path, statement):
    (row,) = it.sql(statement.format(t=path)).to_pylist()
    assert row["status"] == "NOT NEEDED"
    assert UNNEEDED[statement] in row["message"]


@pytest.mark.parametrize("statement", REFUSED)
def test_what_has_no_counterpart_says_what_to_type(path, statement):
    with pytest.raises(CommandError, match=re.escape(REFUSED[statement])) as refused:
        it.sql(statement.format(t=path))
    assert "\n" not in str(refused.value), "one sentence, not a parser's complaint"


@pytest.mark.parametrize("statement", [*WORKING, *UNNEEDED, *REFUSED])
def test_the_command_line_gives_the_same_answers(path, statement, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["indextables", "sql", statement.format(t=path), "--json"])
    with pytest.raises(SystemExit) as end:
        main()
    printed = capsys.readouterr()
    if statement in REFUSED:
        assert end.value.code == 2
        assert REFUSED[statement] in " ".join(printed.err.split())
        return
    assert end.value.code == 0
    row = json.loads(printed.out)[0]
    wanted = WORKING.get(statement, {"status": "NOT NEEDED"})
    assert {key: row[key] for key in wanted} == wanted


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("OPTIMIZE sales.orders", TableName(view=("sales", "orders"))),
        ("-- why\nVACUUM `a``b`", TableName(view=("a`b",))),
        ("describe history indextables.`/data/t`", TableName(path="/data/t")),
        ("RESTORE TABLE 'it''s' TO VERSION AS OF 1", TableName(path="it's")),
        ("SHOW PARTITIONS t PARTITION (day = 'mon')", TableName(view=("t",))),
    ],
)
def test_words_that_other_tables_have_too_are_left_to_the_owner_of_the_table(statement, table):
    assert not is_command(statement)
    assert shared_subject(statement) == table


@pytest.mark.parametrize(
    "statement", ["SELECT 'OPTIMIZE t'", "SHOW TABLES", "DESCRIBE t", "ANALYZE TABLES IN db", "OPTIMIZER t"]
)
def test_other_statements_have_no_such_table(statement):
    assert shared_subject(statement) is None


def test_a_version_at_the_end_of_a_path_is_answered_with_how_to_say_it(path):
    with pytest.raises(NotATableError, match=r"leave @v1 out and say version=1 in Python, VERSION AS OF 1"):
        it.Table.open(path.strip("'") + "@v1")


def test_a_directory_whose_name_ends_like_a_version_is_still_a_table(tmp_path):
    make_familiar_table(str(tmp_path / "events@v1"))
    assert it.Table.open(str(tmp_path / "events@v1")).count() == 8


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("spark.indextables.read.defaultLimit", "write LIMIT in the query"),
        ("spark.indextables.read.mode", "returns every row"),
        ("read.batchOptimization.profile", "need no tuning"),
        ("spark.indextables.cache.disk.path", "indexCache.dir"),
        ("spark.indextables.prewarm.enabled", "leave it out"),
        ("spark.indextables.indexWriter.heapSize", "write.targetSplitBytes"),
    ],
)
def test_an_option_of_the_jvm_system_says_what_to_do_instead(path, key, words):
    with pytest.raises(OptionError, match=re.escape(words)) as refused:
        it.Table.open(path.strip("'"), options={key: "1"})
    assert "did you mean" not in str(refused.value)


def test_the_pages_for_newcomers_name_every_such_statement():
    pages = "".join((Path("docs/howto") / name).read_text() for name in ("from-delta.md", "from-jvm.md"))
    for statement in (*WORKING, *UNNEEDED, *REFUSED):
        words = re.match(r"[A-Z ]*[A-Z]\b", statement)[0].replace("DESC DETAIL", "DESCRIBE DETAIL")
        words = words.replace("RESET INDEXTABLES PROFILER", "`RESET`")
        assert words in pages, words


def test_vacuum_takes_the_clauses_of_purge():
    vacuum = parse_command("VACUUM events USING INVENTORY '/lists/today.parquet' RETAIN 30 HOURS")
    assert vacuum == parse_command(
        "PURGE INDEXTABLE events OLDER THAN 30 HOURS USING INVENTORY '/lists/today.parquet'"
    )
    assert parse_command("VACUUM events LITE").lite
