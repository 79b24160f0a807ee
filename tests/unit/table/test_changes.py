"""The changes of a table, as its users ask for them; `tests/property/test_change_laws.py` has the laws."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import OptionError, SchemaError, TableError, VersionNotFoundError
from indextables.ops.read.row_difference import RowDifference, row_codes


@pytest.fixture(params=["true", "false"], ids=["by vectors", "written anew"])
def table(request, tmp_path):
    """A table whose versions 1 to 4 are an append, a delete, an update and a merge."""
    rows = pa.table({"id": list(range(6)), "text": ["disk"] * 6})
    options = {"deletionVectors.enabled": request.param, "deletionVectors.foldShare": "1.0"}
    table = it.Table.create(tmp_path / "t", data=rows, text="text", options=options)
    table.delete("id = 2")
    table.update("id = 3", {"text": "error"})
    table.merge(pa.table({"id": [4, 9], "text": ["retry", "new"]}), on="id")
    return table


def changed(table, *args, **more):
    rows = table.changes(*args, **more).to_pylist()
    return sorted((row["_commit_version"], row["_change_type"], row["id"], row["text"]) for row in rows)


def test_every_kind_of_change_has_its_name(table):
    assert changed(table, 2) == [
        (2, "delete", 2, "disk"),
        (3, "update_postimage", 3, "error"),
        (3, "update_preimage", 3, "disk"),
        (4, "insert", 9, "new"),
        (4, "update_postimage", 4, "retry"),
        (4, "update_preimage", 4, "disk"),
    ]
    assert changed(table, 1, 1) == [(1, "insert", number, "disk") for number in range(6)]


def test_the_filter_and_the_columns_name_what_happened_too(table):
    rows = table.changes(
        1, where="_change_type = 'delete' OR (id = 9 AND _commit_version > 3)", columns=["_CHANGE_TYPE", "id"]
    )
    assert rows.schema.names == ["_change_type", "id"]
    assert [tuple(row.values()) for row in rows.to_pylist()] == [("delete", 2), ("insert", 9)]
    assert table.changes(1, columns=[]).to_arrow().num_rows == 12
    with pytest.raises(SchemaError, match="nothing"):
        table.changes(1, columns=["nothing"])


def test_a_merge_of_splits_changes_nothing_and_a_restore_goes_back(table):
    table.append(pa.table({"id": [7], "text": ["more"]}))
    table.merge_splits(target_size="10M")
    merged = table.version
    assert changed(table, merged, merged) == []
    table.restore(3)
    restored = table.version
    assert changed(table, restored) == [
        (restored, "delete", 4, "retry"), (restored, "delete", 7, "more"), (restored, "delete", 9, "new"),
        (restored, "insert", 4, "disk"),
    ]  # fmt: skip


def test_rows_come_with_the_columns_of_today(table):
    table.append(pa.table({"id": [10], "text": ["x"], "level": ["low"]}), merge_schema=True)
    rows = table.changes(2).to_pylist()
    assert [row["level"] for row in rows if row["_commit_version"] < 5] == [None] * 6
    assert rows[-1]["level"] == "low"


def test_changes_begin_at_a_time(table):
    times = {row["_commit_version"]: row["_commit_timestamp"] for row in table.changes(1).to_pylist()}
    history = dict(
        zip(*(table.history()[name].to_pylist() for name in ("version", "timestamp")), strict=True)
    )
    assert {version: history[version] for version in times} == times
    assert changed(table, from_time=times[4]) == changed(table, 4)
    assert changed(table, from_time=(times[3] + dt.timedelta(microseconds=1000)).isoformat()) == changed(
        table, 4
    )
    with pytest.raises(VersionNotFoundError, match="newest version"):
        table.changes(from_time="2999-01-01T00:00:00Z")


def test_wrong_ranges_are_errors_and_the_version_after_the_newest_has_no_changes(table):
    assert changed(table, 5) == []
    for wrong in ({}, {"from_version": 1, "from_time": "2026-01-01"}, {"from_version": 6}, {"from_version": -1},
                  {"from_version": 3, "to_version": 2}, {"from_version": True}):  # fmt: skip
        with pytest.raises(OptionError):
            table.changes(**wrong)
    with pytest.raises(VersionNotFoundError, match="refresh"):
        table.changes(1, 9)


def test_a_cleaned_version_is_an_error_that_names_the_oldest_one(table):
    table.checkpoint()
    table.truncate_history()
    table.append(pa.table({"id": [11], "text": ["x"]}))
    with pytest.raises(VersionNotFoundError, match="oldest version from which they can be given is (4|5)"):
        table.changes(2)
    assert changed(table, 5) == [(5, "insert", 11, "x")]


def test_a_purged_file_is_an_error_that_names_the_oldest_version(table, tmp_path):
    table.overwrite(pa.table({"id": [0], "text": ["new"]}))
    table.append(pa.table({"id": [1], "text": ["new"]}))
    live = {Path(path).name for path in table.files()["path"].to_pylist()}
    for file in Path(tmp_path, "t").rglob("*.split"):
        if file.name not in live:
            file.unlink()
    it.Table.open(table.uri).log.invalidate_cache()
    from indextables.split.open_splits import forget_splits

    forget_splits()
    with pytest.raises(VersionNotFoundError, match="oldest version from which they can be given is 6"):
        table.changes(5).to_arrow()
    assert changed(table, 6) == [(6, "insert", 1, "new")]


def test_a_column_of_the_same_name_is_an_error(tmp_path):
    table = it.Table.create(tmp_path / "t", data=pa.table({"_Change_Type": ["a"]}))
    with pytest.raises(SchemaError, match="_change_type"):
        table.changes(1)


def test_sql_without_spark_reads_changes(table):
    rows = it.sql(
        f"SELECT id FROM table_changes('{table.uri}', 2, 3) AS c WHERE _change_type = 'delete'"
    ).to_pylist()
    assert rows == [{"id": 2}]
    joined = f"SELECT count(*) AS n FROM table_changes('{table.uri}', '2020-01-01') c JOIN '{table.uri}' t ON t.id = c.id"
    assert it.sql(joined).to_pylist() == [{"n": 11 - 1}]
    for wrong in ("table_changes()", f"table_changes('{table.uri}')", f"table_changes('{table.uri}', now())"):
        with pytest.raises(it.Error, match="table_changes takes"):
            it.sql(f"SELECT * FROM {wrong}")


ROWS = pa.table(
    {
        "number": pa.array([1, 1, None, 2, 2, 3], pa.int32()),
        "real": pa.array([0.0, -0.0, float("nan"), float("nan"), None, 1.0]),
        "text": ["", None, "a", "a", "ab", "b"],
        "flag": [True, None, False, False, True, True],
        "exact": pa.array([None, 1, 2, 2, 3, 3], pa.decimal128(20, 2)),
        "list": pa.array([[1], [], None, [None, 1], [1, None], [1]], pa.list_(pa.int8())),
        "struct": pa.array([{"a": None}, None, {"a": ["x"]}, {"a": []}, {"a": None}, {"a": ["x"]}], pa.struct([("a", pa.list_(pa.string()))])),
        "map": pa.array([[("k", 1)], [], None, [("k", None)], [("l", 1)], [("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "bytes": pa.array([b"\0", None, b"", b"\0\0", b"\0", b"x"], pa.binary()),
        "day": pa.array([1, 2, None, 1, 2, 1], pa.date32()),
        "at": pa.array([1, 2, None, 1, 2, 1], pa.timestamp("us", "UTC")),
    }
)  # fmt: skip


@pytest.mark.parametrize("column", [[name] for name in ROWS.schema.names] + [ROWS.schema.names])
def test_rows_have_the_same_number_only_if_they_are_equal_to_the_bit(column):
    rows = pa.concat_tables([ROWS, ROWS.slice(2, 3)]).select(column)
    codes = row_codes(rows)
    values = [repr(row) for row in rows.to_pylist()]
    for one in range(len(values)):
        for other in range(len(values)):
            assert (codes[one] == codes[other]) == (values[one] == values[other])


@pytest.mark.parametrize("buckets", [1, 7])
@pytest.mark.parametrize("keys", [(), ("number",)])
def test_a_difference_is_the_same_through_buckets(buckets, keys):
    rng = np.random.default_rng(1)
    left, came = (ROWS.take(pa.array(rng.integers(0, 6, size))) for size in (400, 300))
    with RowDifference(ROWS.schema, keys, buckets * (16 << 20)) as difference:
        parts = list(difference.of([left.slice(0, 100), left.slice(100)], [came]))
    assert len(parts) == buckets
    counts = [
        np.array([[repr(row) for row in side.to_pylist()].count(repr(one)) for one in ROWS.to_pylist()])
        for side in (left, came)
    ]
    rest = [[repr(row) for part in parts for row in part[side].to_pylist()] for side in (0, 1)]
    for side, more, fewer in ((0, *counts), (1, *counts[::-1])):
        expected = np.maximum(more - fewer, 0)
        assert [rest[side].count(repr(one)) for one in ROWS.to_pylist()] == expected.tolist()


def test_a_companion_has_no_changes_of_its_own(tmp_path):
    it.Table.create(tmp_path / "s", data=pa.table({"id": [1], "text": ["a b"]}))
    pytest.importorskip("deltalake").write_deltalake(
        str(tmp_path / "d"), pa.table({"id": [1], "text": ["a b"]})
    )
    it.companion(tmp_path / "d", tmp_path / "c", columns={"text": "text"})
    with pytest.raises((OptionError, TableError), match="companion"):
        it.open(tmp_path / "c").changes(0)
