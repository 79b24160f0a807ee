"""CHECK and NOT NULL: every writer refuses a row that breaks one, says which, and commits nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import indextables as it
from indextables.cli.main import cli
from indextables.errors import (
    CommandError,
    ConflictError,
    ConstraintError,
    OptionError,
    PredicateError,
    ProtocolError,
    SchemaError,
    TableError,
)
from indextables.log.format.protocol import check_readable, check_writable, describe
from indextables.ops.write.alter import TableChange, run_alter
from indextables.options import Options
from indextables.storage.stores.local import LocalStore
from support.racing import Racing

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("price", pa.float64()), ("day", pa.string())]
)
GOOD = [{"id": 1, "price": 5.0, "day": "a"}, {"id": 2, "price": None, "day": "b"}]
BAD = [{"id": 3, "price": 7.0, "day": "a"}, {"id": 4, "price": -1.0, "day": "a"}]


@pytest.fixture
def table(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA, text="day")
    made.append(GOOD)
    made.add_constraint("Positive", "price > 0")
    return made


def rows(table) -> list[dict]:
    return sorted(table.refresh().scan().read_all().to_pylist(), key=lambda row: row["id"])


GUARDED = pa.schema(
    [("id", pa.int64()), ("price", pa.float64()), pa.field("name", pa.string(), nullable=False)]
)
BREAKING = {
    r"positive CHECK \(price > 0\).*-1.0": ("price", -1.0),
    r"'name' is NOT NULL.*'name': None": ("name", None),
}


def broken(column, value, number=4) -> list[dict]:
    """A row that a table takes, and one that it refuses."""
    return [
        {"id": at, "price": 7.0, "name": "a"} | ({column: value} if at == number else {})
        for at in (3, number)
    ]


def broken_table(*of) -> pa.Table:
    return pa.Table.from_pylist(broken(*of), GUARDED)


def through_a_writer(table, *of):
    with table.writer() as writer:
        writer.write(broken(*of))


def from_the_command_line(verb, table, *of):
    file = Path(table.uri.removeprefix("file:") + ".jsonl")
    file.write_text("".join(json.dumps(row) + "\n" for row in broken(*of)))
    done = CliRunner().invoke(cli, [verb, str(file), "--to", table.uri], catch_exceptions=False)
    if done.exit_code:
        raise ConstraintError(done.output)


WRITERS = {
    "append": lambda table, *of: table.append(broken(*of)),
    "append of batches": lambda table, *of: table.append(broken_table(*of).to_reader()),
    "growing schema": lambda table, *of: table.append(
        broken_table(*of).append_column("more", pa.array([1, 2])), merge_schema=True
    ),
    "writer": through_a_writer,
    "write": lambda table, *of: it.write(table.uri, broken(*of), mode="append"),
    "write over": lambda table, *of: it.write(table.uri, broken(*of), mode="overwrite"),
    "overwrite": lambda table, *of: table.overwrite(broken(*of)),
    "overwrite where": lambda table, *of: table.overwrite(broken(*of), where="id > 1"),
    "overwrite of the schema": lambda table, *of: table.overwrite(broken_table(*of), overwrite_schema=True),
    "update": lambda table, column, value: table.update("id = 1", {column: value}),
    "update of another column": lambda table, column, value: table.update("id = 2", {"id": 9, column: value}),
    "update by a function": lambda table, column, value: table.update(
        "true", {column: lambda old: pa.scalar(value, GUARDED.field(column).type)}
    ),
    "merge that updates": lambda table, *of: table.merge(broken(*of, number=1), on="id"),
    "merge that inserts": lambda table, *of: table.merge(broken(*of), on="id"),
    "merge that only inserts": lambda table, *of: table.merge(broken(*of), on="id", matched=None),
    "load": partial(from_the_command_line, "load"),
    "tail": partial(from_the_command_line, "tail"),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("message", BREAKING, ids=["CHECK", "NOT NULL"])
def test_every_writer_refuses_a_row_that_breaks_a_constraint(tmp_path, writer, message):
    """All ways of Python's to bring or change rows; those of Spark are in tests/spark/test_constraints_on_spark.py."""
    table = it.Table.create(tmp_path / "t", GUARDED)
    table.append([{"id": 1, "price": 5.0, "name": "x"}, {"id": 2, "price": None, "name": "y"}])
    table.add_constraint("Positive", "price > 0")
    before, version = rows(table), table.version
    files = sorted(path.name for path in tmp_path.rglob("*.split"))
    with pytest.raises(ConstraintError, match=message) as refused:
        WRITERS[writer](table, *BREAKING[message])
    assert "Nothing was committed" in str(refused.value)
    assert writer in {"load", "tail"} or refused.value.row is not None
    assert rows(table) == before
    assert table.version == version
    assert sorted(path.name for path in tmp_path.rglob("*.split")) == files


def test_rows_for_which_the_condition_is_true_or_null_are_written(table):
    table.append([{"id": 5, "price": None, "day": None}, {"id": 6, "price": float("nan"), "day": "x"}])
    table.update("id = 1", {"price": 9.0})
    table.merge([{"id": 2, "price": 3.0, "day": "b"}], on="id")
    assert [row["price"] for row in rows(table)][:3] == [9.0, 3.0, None]
    table.delete("id = 5")
    table.merge_splits()
    assert len(rows(table)) == 3


def test_a_null_of_a_column_that_is_not_null_shows_its_row(table):
    before = rows(table)
    with pytest.raises(ConstraintError, match=r"column 'id' is NOT NULL.*1 nulls.*'day': 'here'") as refused:
        table.append([{"id": 7, "price": 1.0, "day": "x"}, {"id": None, "price": 1.0, "day": "here"}])
    assert refused.value.row == {"id": None, "price": 1.0, "day": "here"}
    with pytest.raises(SchemaError, match="NOT NULL"):
        table.update("id = 1", {"id": None})
    assert rows(table) == before


def test_a_constraint_that_a_row_breaks_is_not_added(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA)
    for start in range(0, 40, 10):
        made.append([{"id": n, "price": float(n), "day": "x"} for n in range(start, start + 10)])
    version, protocol = made.version, made.protocol
    with pytest.raises(ConstraintError, match=r"'id': 30, 'price': 30.0") as refused:
        made.add_constraint("small", "price < 30")
    assert refused.value.row == {"id": 30, "price": 30.0, "day": "x"}
    assert (made.refresh().version, made.protocol, made.constraints) == (version, protocol, {})
    made.delete("price >= 30")
    made.add_constraint("small", "price < 30")
    assert made.constraints == {"small": "price < 30"}


@pytest.mark.parametrize(
    "condition", ["rand() > 0.5", "id IN (SELECT 1)", "nobody > 1", "id >", "", "sum(id) > 1"]
)
def test_a_condition_that_is_not_understood_is_refused(table, condition):
    version = table.version
    with pytest.raises((PredicateError, SchemaError)):
        table.add_constraint("odd", condition)
    assert table.refresh().version == version


def test_constraints_are_dropped_by_name(table):
    with pytest.raises(TableError, match="no constraint nobody; its constraints: positive"):
        table.drop_constraint("nobody")
    assert table.drop_constraint("nobody", if_exists=True).status == "NO ACTION"
    with pytest.raises(TableError, match="has a constraint positive already"):
        table.add_constraint("POSITIVE", "id > 0")
    table.drop_constraint("positive")
    table.append(BAD)
    assert table.constraints == {}
    assert len(rows(table)) == 4


def test_sql_adds_and_drops_constraints(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA)
    path = str(tmp_path / "t")
    answer = it.sql(f"ALTER TABLE '{path}' ADD CONSTRAINT `when` CHECK ((day <> ')') AND id > 0)")
    assert answer.to_pylist()[0]["status"] == "SUCCESS"
    assert made.refresh().constraints == {"when": "(day <> ')') AND id > 0"}
    with pytest.raises(ConstraintError, match="when CHECK"):
        made.append([{"id": 1, "price": 1.0, "day": ")"}])
    assert (
        it.sql(f"ALTER TABLE '{path}' DROP CONSTRAINT IF EXISTS other").to_pylist()[0]["status"]
        == "NO ACTION"
    )
    it.sql(f"alter table '{path}' drop constraint when")
    assert made.refresh().constraints == {}
    for refused in (
        "ADD CONSTRAINT c CHECK id > 0",
        "ADD CONSTRAINT c CHECK (id > 0) OR (id < 9)",
        "ADD CONSTRAINT c",
    ):
        with pytest.raises(CommandError):
            it.sql(f"ALTER TABLE '{path}' {refused}")
    for unkept in ("ADD CONSTRAINT c PRIMARY KEY (id)", "ADD UNIQUE (id)", "ADD CHECK (id > 0)"):
        with pytest.raises(CommandError, match="only CHECK is kept"):
            it.sql(f"ALTER TABLE '{path}' {unkept}")


def test_constraints_are_not_properties(table):
    for change in ({"indextables.constraints.x": "id > 1"}, {"indextables.constraints.positive": None}):
        with pytest.raises(OptionError, match="ADD CONSTRAINT"):
            table.update_properties(change)


def test_only_the_first_constraint_raises_the_protocol_and_only_for_writers(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA)
    made.append(GOOD)
    assert describe(made.protocol) == "2/2"
    made.add_constraint("a", "id > 0")
    assert (made.protocol.min_reader_version, made.protocol.min_writer_version) == (2, 3)
    assert made.protocol.reader_features is None
    assert made.protocol.writer_features == ("checkConstraints",)
    commits = made.version
    made.add_constraint("b", "id < 100")
    assert made.version == commits + 1
    made.checkpoint()
    assert it.open(tmp_path / "t").constraints == {"a": "id > 0", "b": "id < 100"}


def test_a_writer_that_does_not_know_constraints_refuses(tmp_path):
    """What 0.2.0 does with a feature of writers that it has not heard of; it reads the table."""
    made = it.Table.create(tmp_path / "t", SCHEMA)
    made.append(GOOD)
    made.add_constraint("a", "id > 0")
    later = replace(made.protocol, writer_features=("checkConstraintsOfLater",))
    check_readable(later, Options(), "t")
    with pytest.raises(ProtocolError, match="cannot be written"):
        check_writable(later, "t")


def test_an_append_that_was_planned_before_a_constraint_is_a_conflict(tmp_path):
    """Two processes: the rows of the first became splits before the second added its constraint."""
    made = it.Table.create(tmp_path / "t", SCHEMA)
    made.append(GOOD)

    def adding():
        yield pa.Table.from_pylist(BAD, SCHEMA).to_batches()[0]
        it.open(tmp_path / "t").add_constraint("positive", "price > 0")

    before = rows(made)
    reader = pa.RecordBatchReader.from_batches(SCHEMA, adding())
    with pytest.raises(ConflictError, match=r"added the constraint positive CHECK \(price > 0\)"):
        made.append(reader)
    assert rows(made) == before
    with pytest.raises(ConstraintError):
        made.append(BAD)


def test_an_append_from_a_handle_that_has_not_heard_of_a_constraint_is_checked(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA)
    made.append(GOOD)
    it.open(tmp_path / "t").add_constraint("positive", "price > 0")
    with pytest.raises(ConstraintError):
        made.append(BAD)


def test_rows_that_arrive_while_a_constraint_is_added_are_looked_into(tmp_path, monkeypatch):
    """ADD CONSTRAINT loses the race to an append whose rows break it."""
    made = it.Table.create(tmp_path / "t", SCHEMA)
    made.append(GOOD)
    create, state = LocalStore.put_if_absent, {"raced": False}

    def racing(self, *args, **kwargs):
        if not state["raced"] and "_transaction_log/" in str(args[0]) and str(args[0]).endswith(".json"):
            state["raced"] = True
            it.open(tmp_path / "t").append(BAD)
        return create(self, *args, **kwargs)

    monkeypatch.setattr(LocalStore, "put_if_absent", racing)
    with pytest.raises(ConstraintError, match="'price': -1.0"):
        it.open(tmp_path / "t").add_constraint("positive", "price > 0")
    assert state["raced"]
    assert it.open(tmp_path / "t").constraints == {}


def test_rows_that_a_restore_brings_back_while_a_constraint_is_added_are_looked_into(tmp_path):
    """Their file was looked into while the row that breaks the constraint was deleted by a vector."""
    made = it.Table.create(tmp_path / "t", SCHEMA)
    made.append([*(dict(GOOD[0], id=n) for n in range(9)), BAD[1]])
    made.delete("price < 0")
    assert made.files()["num_deleted"].to_pylist() == [1]
    other = it.open(tmp_path / "t")
    with (
        Racing(other, lambda: it.open(tmp_path / "t").restore(1)),
        pytest.raises(ConstraintError, match="'price': -1.0"),
    ):
        other.add_constraint("positive", "price > 0")
    assert (other.refresh().constraints, len(rows(other))) == ({}, 10)


def test_restore_brings_back_the_constraints_of_its_version(table):
    constrained = table.version
    table.drop_constraint("positive")
    table.append(BAD)
    table.restore(constrained)
    assert table.constraints == {"positive": "price > 0"}
    with pytest.raises(ConstraintError):
        table.append(BAD)


def test_partition_columns_can_be_constrained(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA, partition_by="day")
    made.append(GOOD)
    made.add_constraint("letters", "day IN ('a', 'b')")
    with pytest.raises(ConstraintError, match="'day': 'z'"):
        made.append([{"id": 9, "price": 1.0, "day": "z"}])
    with pytest.raises(ConstraintError, match="'day': 'z'"):
        made.update("id = 1", {"day": "z"})


def test_a_column_is_set_not_null_only_if_every_row_has_a_value(tmp_path):
    table = it.Table.create(tmp_path / "t", SCHEMA)
    table.append(GOOD)
    with pytest.raises(ConstraintError, match="price IS NOT NULL.*'id': 2"):
        it.sql(f"ALTER TABLE '{table.uri}' ALTER COLUMN price SET NOT NULL")
    assert table.refresh().version == 1
    done = it.sql(f"ALTER TABLE '{table.uri}' CHANGE COLUMN day SET NOT NULL").to_pylist()[0]
    assert (done["status"], done["version"]) == ("SUCCESS", 2)
    with pytest.raises(ConstraintError, match="'day' is NOT NULL"):
        table.append([{"id": 3, "price": 1.0, "day": None}])
    assert rows(table) == GOOD


def test_each_of_several_columns_that_become_not_null_is_looked_into(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA)
    made.append([{"id": n, "price": None if n == 7 else 5.0, "day": None} for n in range(10)])
    made.delete("price IS NULL")
    both = [TableChange("UpdateColumnNullability", (name,), nullable=False) for name in ("price", "day")]
    with pytest.raises(ConstraintError, match="day IS NOT NULL"):
        run_alter(made.log, both)
    assert made.refresh().version == 2


def test_an_append_that_was_planned_before_a_column_became_not_null_is_a_conflict(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA)
    made.append(GOOD)

    def setting():
        yield pa.Table.from_pylist([{"id": 3, "price": 1.0, "day": None}], SCHEMA).to_batches()[0]
        it.sql(f"ALTER TABLE '{made.uri}' ALTER COLUMN day SET NOT NULL")

    with pytest.raises(ConflictError, match="no longer fit"):
        made.append(pa.RecordBatchReader.from_batches(SCHEMA, setting()))
    assert rows(made) == GOOD
