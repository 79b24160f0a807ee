"""Columns renamed, dropped, added again and moved: no file is written, and everything follows the names."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.errors import ConflictError, OptionError, PredicateError, SchemaError
from indextables.log.format.protocol import describe

SCHEMA = pa.schema([("id", pa.int64()), ("msg", pa.string()), ("level", pa.string()), ("day", pa.string())])
ROWS = [
    {"id": 1, "msg": "disk error", "level": "high", "day": "a"},
    {"id": 2, "msg": "all fine", "level": "low", "day": "b"},
]


@pytest.fixture
def table(tmp_path):
    options = {"indexing.typemap.msg": "text,substring", "indexing.typemap.level": "string"}
    made = it.Table.create(tmp_path / "t", SCHEMA, partition_by=["day"], options=options)
    made.append(ROWS)
    return it.Table.open(tmp_path / "t")


def rows(table, **how) -> list[dict]:
    return sorted(table.scan(**how).read_all().to_pylist(), key=lambda row: row["id"])


def test_a_renamed_column_is_read_searched_and_filtered_by_its_new_name(table):
    files = table.files().column("path").to_pylist()
    table.rename_column("msg", "message")
    assert table.files().column("path").to_pylist() == files
    assert table.schema.names == ["id", "message", "level", "day"]
    assert rows(table)[0] == {"id": 1, "message": "disk error", "level": "high", "day": "a"}
    assert table.search("message:error").read_all().column("id").to_pylist() == [1]
    assert table.last_scan.search.by_index
    assert table.count("message LIKE '%fin%'") == 1
    assert table.last_scan.ruled_by == ("message as substring",)
    with pytest.raises(PredicateError, match="no column 'msg'"):
        table.count("msg = 'x'")
    table.append([{"id": 3, "message": "error again", "level": "low", "day": "a"}])
    assert table.count(query="error") == 2


def test_settings_and_statistics_follow(table):
    table.update_properties({
        "dataSkippingStatsColumns": "id,level", "stats.truncation.maxLength.level": "10",
    })  # fmt: skip
    table.rename_column("level", "severity")
    stored = table.metadata.configuration.items()
    properties = {key.removeprefix("spark.indextables."): value for key, value in stored}
    assert properties["dataSkippingStatsColumns"] == "id,severity"
    assert properties["stats.truncation.maxLength.severity"] == "10"
    assert properties["indexing.typemap.severity"] == "string"
    assert not any("level" in f"{key}={value}" for key, value in properties.items())
    assert table.files("severity > 'm'").num_rows == 0
    table.append([{"id": 3, "msg": "x", "severity": "zz", "day": "c"}])
    assert table.files("severity > 'm'").num_rows == 1
    assert [each["severity"] for each in table.files().column("min").to_pylist()] == ["high", "low", "zz"]
    table.drop_column("severity")
    assert not any("severity" in f"{key}={value}" for key, value in table.metadata.configuration.items())


def test_partitions_follow(table):
    table.rename_column("day", "date")
    assert table.partition_columns == ("date",)
    assert table.files("date = 'b'").num_rows == 1
    table.overwrite([{"id": 7, "msg": "new", "level": None, "date": "a"}], where="date = 'a'")
    assert [row["id"] for row in rows(table)] == [2, 7]
    table.drop_partitions("date = 'a'")
    assert [row["id"] for row in rows(table)] == [2]
    with pytest.raises(SchemaError, match="partitioned by it"):
        table.drop_column("date")


def test_a_column_that_is_added_again_is_another_one(table):
    table.drop_column("level")
    table.add_column("level", pa.int64(), after="id")
    assert table.schema.names == ["id", "level", "msg", "day"]
    assert [row["level"] for row in rows(table)] == [None, None]
    table.append([{"id": 3, "level": 7, "msg": "x", "day": "a"}])
    assert table.count("level = 7") == 1
    assert table.stored_names["level"] == "level-5"


def test_older_versions_keep_their_names(table):
    before = table.version
    table.rename_column("msg", "message")
    table.drop_column("level")
    table.rename_column("id", "level")
    old = it.Table.open(table.uri, version=before)
    assert rows(old) == ROWS
    assert old.search("msg:error").read_all().num_rows == 1
    table.append([{"level": 5, "message": "error", "day": "a"}])
    table.restore(before)
    assert rows(table) == ROWS
    table.append([{"id": 5, "msg": "error", "level": "x", "day": "a"}])
    assert table.count(query="error") == 2


def test_two_columns_change_their_names(table):
    table.rename_column("msg", "other")
    table.rename_column("level", "msg")
    table.rename_column("other", "level")
    assert rows(table)[0] == {"id": 1, "level": "disk error", "msg": "high", "day": "a"}
    assert table.count("msg = 'high'") == 1
    assert table.count(query="level:error") == 1
    assert table.files("msg > 'i' AND level > 'b'").num_rows == 0
    table.update("id = 1", {"msg": "higher"})
    assert rows(table)[0] == {"id": 1, "level": "disk error", "msg": "higher", "day": "a"}
    table.merge([{"id": 2, "level": "new error", "msg": "m", "day": "b"}], on="id")
    assert rows(table)[1] == {"id": 2, "level": "new error", "msg": "m", "day": "b"}
    assert table.count(query="level:error") == 2


def test_a_table_that_never_renames_stays_at_its_protocol(table):
    table.add_column("more", pa.int32(), first=True)
    table.move_column("id", after="day")
    assert describe(table.protocol) == "2/2"
    assert table.schema.names == ["more", "msg", "level", "day", "id"]
    assert table.metadata.column_mapping is None
    table.rename_column("more", "less")
    assert describe(table.protocol) == "3/3 with columnMapping"


def test_other_readers_find_columns_by_their_stored_names(table):
    table.rename_column("msg", "message")
    table.add_column("more", pa.int64())
    table.append([{"id": 3, "message": "x", "level": "y", "day": "a", "more": 8}])
    assert table.stored_names == {
        "id": "id", "message": "msg", "level": "level", "day": "day", "more": "more-5",
    }  # fmt: skip
    path = table.files("id = 3").column("uri")[0].as_py().removeprefix("file://")
    assert pq.read_table(path).to_pylist() == [{"id": 3, "msg": "x", "level": "y", "day": "a", "more-5": 8}]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda table: table.rename_column("id", "LEVEL"), "there is a column level"),
        (lambda table: table.rename_column("nothing", "x"), "no column 'nothing'"),
        (lambda table: table.rename_column("id", ""), "not empty"),
        (lambda table: table.drop_column("nothing"), "no column 'nothing'"),
        (lambda table: table.add_column("ID", pa.int64()), "(?i)differ only in case|twice|ID"),
        (lambda table: table.add_column("x", pa.int64(), after="nothing"), "no column 'nothing'"),
        (lambda table: table.add_column("x", pa.int64(), first=True, after="id"), "not both"),
        (lambda table: table.move_column("id"), "where the column goes"),
    ],
)  # fmt: skip
def test_what_is_not_possible_is_refused(table, change, reason):
    version = table.version
    with pytest.raises(SchemaError, match=reason):
        change(table)
    assert table.refresh().version == version


def test_the_only_column_stays(tmp_path):
    table = it.Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    with pytest.raises(SchemaError, match="the only one"):
        table.drop_column("id")
    assert table.drop_column("nothing", if_exists=True) == table.version


def test_a_column_of_a_constraint_keeps_its_name(table):
    table.add_constraint("positive", "id > 0")
    for change in (lambda: table.rename_column("id", "key"), lambda: table.drop_column("id")):
        with pytest.raises(SchemaError, match=r"constraint positive CHECK \(id > 0\)"):
            change()
    table.rename_column("msg", "message")
    table.drop_constraint("positive")
    table.rename_column("id", "key")


def test_a_dotted_name_may_not_be_that_of_a_field(tmp_path):
    schema = pa.schema([("s", pa.struct([("x", pa.int64())])), ("a", pa.int64())])
    table = it.Table.create(tmp_path / "t", schema)
    table.append([{"s": {"x": 1}, "a": 2}])
    with pytest.raises(SchemaError, match="dotted"):
        table.rename_column("a", "s.x")
    table.rename_column("s", "t")
    assert table.count("t.x = 1") == 1
    assert table.files("t.x > 1").num_rows == 0


@pytest.mark.parametrize("change", ["rename", "drop", "again"])
def test_a_write_that_was_prepared_on_other_columns_is_refused(table, change):
    other = it.Table.open(table.uri)
    other.count()
    if change == "rename":
        table.rename_column("level", "severity")
    else:
        table.drop_column("level")
        if change == "again":
            table.add_column("level", pa.string())
    row = [{"id": 3, "msg": "x", "level": "y", "day": "a"}]
    if change == "again":
        other.append(row)
        assert table.refresh().count("level = 'y'") == 1
    else:
        with pytest.raises((ConflictError, SchemaError), match="level"):
            other.append(row)
    with pytest.raises((ConflictError, SchemaError, PredicateError), match="level|msg"):
        it.Table.open(table.uri, version=1).refresh().delete(
            "nothing.level = 'high' OR level = 1 OR msgs = 2"
        )


def test_an_append_that_races_with_a_rename_commits_nothing(table, monkeypatch):
    from indextables.ops.write import commit

    original, renames = commit.commit_splits, []

    def rename_first(*arguments, **more):
        if not renames:
            renames.append(it.Table.open(table.uri).rename_column("level", "severity"))
        return original(*arguments, **more)

    monkeypatch.setattr(commit, "commit_splits", rename_first)
    with pytest.raises(ConflictError, match="renamed or dropped the column level"):
        table.append(pa.Table.from_pylist([{"id": 3, "msg": "x", "level": "y", "day": "a"}]).to_reader())
    assert table.refresh().count() == 2


def test_a_repaired_log_and_a_checkpoint_keep_the_names(table, tmp_path):
    table.rename_column("msg", "message")
    table.append([{"id": 3, "message": "new error", "level": "y", "day": "c"}])
    table.checkpoint()
    again = it.Table.open(table.uri, options={"transaction.cache.enabled": "false"})
    assert again.count("message LIKE '%error'") == 2
    assert again.files("message > 'e'").num_rows == 1
    log = "_transaction_log"
    it.repair_log(str(tmp_path / "t" / log), str(tmp_path / "repaired" / log))
    repaired = it.TransactionLog.open(tmp_path / "repaired").snapshot()
    assert repaired.schema.names == ["id", "message", "level", "day"]
    assert repaired.names == table.refresh().snapshot.names
    assert repaired.protocol.reader_features == ("columnMapping",)
    assert repaired.plan("message > 'e'").files.num_rows == 1


def test_changes_go_by_the_names_of_the_version_that_is_read(table):
    table.rename_column("level", "other")
    table.rename_column("msg", "level")
    table.rename_column("day", "date")
    table.delete("id = 2")
    changes = table.changes(1).read_all() if hasattr(table.changes(1), "read_all") else table.changes(1)
    shown = [
        (row["_change_type"], row["id"], row["level"], row["other"], row["date"])
        for row in changes.to_pylist()
    ]
    assert shown == [
        ("insert", 1, "disk error", "high", "a"),
        ("insert", 2, "all fine", "low", "b"),
        ("delete", 2, "all fine", "low", "b"),
    ]


def test_options_of_a_handle_lose_a_name_that_is_gone(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA, options={"indexing.typemap.msg": "text"})
    made.append(ROWS)
    made.rename_column("msg", "message")
    made.append([{"id": 3, "message": "error", "level": "x", "day": "a"}])
    assert made.count(query="error") == 2
    with pytest.raises(OptionError, match="'msg'"):
        it.Table.open(made.uri, options={"indexing.typemap.msg": "text"}).append([{"id": 4}])
