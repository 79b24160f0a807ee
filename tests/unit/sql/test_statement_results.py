"""Every statement from Python and from the command line: its exact columns, and dry runs that change nothing."""

import json
import subprocess
import sys

import pytest

import indextables as it
from indextables.cli.main import main
from indextables.errors import CommandError
from indextables.sql.runner import columns
from support.statements import DRY_RUNS, STATEMENTS, UNCHECKED, make_table
from support.upkeep import fingerprint


@pytest.fixture
def path(tmp_path):
    make_table(str(tmp_path / "t"))
    return str(tmp_path / "t")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_returns_exactly_its_columns(path, statement):
    before = columns(statement.format(t=path))
    result = it.sql(statement.format(t=path))
    assert before == result.schema, "what is said before it runs"
    assert list(zip(result.schema.names, result.schema.types)) == STATEMENTS[statement]
    if "status" in result.schema.names:
        assert set(result["status"].to_pylist()) <= {"SUCCESS", "NO ACTION"}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_command_line_prints_the_same_columns(path, statement, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["indextables", "sql", statement.format(t=path), "--json"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    for row in json.loads(capsys.readouterr().out):
        assert list(row) == [name for name, _ in STATEMENTS[statement]]


@pytest.mark.parametrize("statement", DRY_RUNS)
def test_a_dry_run_leaves_the_directory_byte_identical(path, tmp_path, statement):
    before = fingerprint(tmp_path)
    (row,) = it.sql(statement.format(t=path), options=UNCHECKED).to_pylist()
    assert row["status"] == "DRY RUN"
    assert fingerprint(tmp_path) == before


def test_a_view_cannot_be_named_without_a_session():
    with pytest.raises(CommandError, match="there is no Spark session"):
        it.sql("CHECKPOINT INDEXTABLES events")


def test_plain_sql_is_refused_with_what_was_expected():
    with pytest.raises(CommandError, match="expected"):
        it.sql("INSERT INTO events VALUES (1)")


def test_sql_stays_callable_after_its_package_was_imported(path):
    import indextables.sql.commands.grammar  # noqa: F401

    assert it.sql(f"DESCRIBE INDEXTABLES STATE '{path}'").num_rows == 1


def test_invalidate_makes_other_handles_look_again(path):
    """F3: another process's commit is seen after INVALIDATE."""
    table = it.TransactionLog.open(path, {"transaction.maxStalenessSeconds": "3600"})
    assert table.latest_version() == 4
    _commit_elsewhere(path)
    assert table.latest_version() == 4
    it.sql("INVALIDATE INDEXTABLES TRANSACTION LOG CACHE")
    assert table.latest_version() == 5
    _commit_elsewhere(path)
    it.sql(f"INVALIDATE INDEXTABLES TRANSACTION LOG CACHE FOR '{path}'")
    assert table.latest_version() == 6


def _commit_elsewhere(path):
    """A commit by a process of its own, of which this one hears nothing."""
    script = (
        "import sys, uuid, indextables as it; "
        "it.TransactionLog.open(sys.argv[1]).update_properties({'owner': uuid.uuid4().hex})"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)


def test_data_skipping_is_counted_per_table(path):
    """H9: files considered, pruned by partition, skipped by statistics, read."""
    from indextables.log.scans import SKIPPING_TOTALS

    SKIPPING_TOTALS.clear()
    it.Table.open(path).count("day = '0' AND id < 3")
    (row,) = it.sql(f"DESCRIBE INDEXTABLES DATA SKIPPING STATS '{path}'").to_pylist()
    assert row["files_pruned_by_partition"] > 0
    assert row["files_skipped_by_statistics"] > 0
    considered, kept = row["files_considered"], row["files_kept"]
    assert row["skip_rate"] == (considered - kept) / considered


def test_component_sizes_add_up_to_the_split(path):
    rows = it.sql(f"DESCRIBE INDEXTABLES COMPONENT SIZES '{path}'").to_pylist()
    sizes = {add.path: add.size for add in it.TransactionLog.open(path).list_files()}
    for name, size in sizes.items():
        mine = [row for row in rows if row["path"] == name]
        assert {row["component"] for row in mine} == {"column", "index", "footer"}
        assert {row["name"] for row in mine if row["component"] == "column"} == {"id", "day", "message"}
        index = {row["name"] for row in mine if row["component"] == "index"}
        assert index == {"words", "lists", "positions", "norms", "root", "row map"}
        assert not any(character.isdigit() for character in "".join(index)), "the same in every split"
        assert 0.5 * size < sum(row["size_bytes"] for row in mine) <= size


def test_writes_can_be_followed_by_a_merge_and_a_purge(tmp_path):
    options = {
        "mergeOnWrite.enabled": "true",
        "mergeOnWrite.fanIn": "3",
        "purgeOnWrite.enabled": "true",
    }
    import pyarrow as pa

    from support.statements import SCHEMA

    table = it.Table.create(tmp_path / "t", SCHEMA, options=options)
    for n in range(3):
        result = table.append(pa.table({"id": [n], "day": ["1"], "message": ["x"]}, SCHEMA))
        assert result.rows == 1
    assert table.files().num_rows == 1
    assert table.count() == 3


def test_a_failing_merge_never_fails_the_write(tmp_path, monkeypatch, caplog):
    import pyarrow as pa

    import indextables.ops.write.after_write as aftercare
    from indextables.errors import ConflictError
    from support.statements import SCHEMA

    def fail(*_):
        raise ConflictError("somebody was faster")

    monkeypatch.setattr(aftercare, "run_merge", fail)
    table = it.Table.create(tmp_path / "t", SCHEMA, options={"mergeOnWrite.enabled": "true"})
    assert table.append(pa.table({"id": [1], "day": ["1"], "message": ["x"]}, SCHEMA)).rows == 1
    assert "somebody was faster" in caplog.text


@pytest.mark.parametrize(
    "verb",
    [
        lambda table: table.delete("id = 1"),
        lambda table: table.restore(2),
        lambda table: table.merge_splits(),
        lambda table: table.purge(),
        lambda table: table.purge_rows(),
        lambda table: table.checkpoint(),
        lambda table: table.drop_partitions("day = '1'"),
        lambda table: table.truncate_history(),
    ],
    ids=[
        "delete",
        "restore",
        "merge_splits",
        "purge",
        "purge_rows",
        "checkpoint",
        "drop_partitions",
        "truncate_history",
    ],
)
def test_verbs_on_an_older_version_raise_and_on_the_newest_move_the_handle(path, verb):
    """Verbs on a Table opened at an old version raise; one that commits moves it to what it wrote."""
    from indextables.errors import TableError

    with pytest.raises(TableError, match="older version"):
        verb(it.Table.open(path, version=2))
    table = it.Table.open(path)
    verb(table)
    assert table.version == it.TransactionLog.open(path).latest_version()


def test_a_size_can_be_text_or_bytes(path):
    table = it.Table.open(path)
    assert table.merge_splits(target_size="1K", dry_run=True).merge_groups == 0
    assert table.merge_splits(target_size=100 << 20, dry_run=True).merge_groups == 2
