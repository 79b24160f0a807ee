"""A table handle moves to what its own verbs wrote, and stays where it is otherwise."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pyarrow as pa
import pytest

from indextables.errors import ConflictError, SchemaError
from indextables.log.commit.attempt import CommitPlan, Rule
from indextables.log.commit.changes import removals
from indextables.log.transaction_log import TransactionLog
from indextables.model.fields import schema_to_json
from indextables.table import Table

SCHEMA = pa.schema([("id", pa.int64())])


def rows(*ids):
    return pa.table({"id": pa.array(ids, pa.int64())})


class Overtaken(TransactionLog):
    """A log in which another writer appends right after each of our commits."""

    def commit(self, plan, begin=None):
        done = super().commit(plan, begin)
        Table.open(self.uri).append(rows(100))
        return done


@pytest.fixture
def path(tmp_path):
    Table.create(tmp_path / "t", SCHEMA).append(rows(1))
    return tmp_path / "t"


def test_a_verb_that_commits_moves_to_the_version_it_wrote(path):
    """Not to one that another writer added meanwhile."""
    log = Overtaken.open(path)
    table = Table(log, log.snapshot())
    written = table.append(rows(2))
    assert table.version == written.version == 2
    assert sorted(table.scan().read_all()["id"].to_pylist()) == [1, 2]
    assert table.refresh().version == 3


def test_a_verb_that_changes_nothing_stays_where_it_is(path):
    table = Table.open(path)
    Table.open(path).append(rows(2))
    table.delete("id = 77")
    table.append(SCHEMA.empty_table())
    assert (table.version, table.count()) == (1, 1)
    assert table.refresh().count() == 2


def test_a_column_asked_for_twice_is_refused(path):
    with pytest.raises(SchemaError, match="'id' is asked for twice"):
        Table.open(path).scan(columns=["id", "ID"])


def batches(table, meanwhile):
    """Rows to append, before the last of which another writer does something."""
    yield rows(2).to_batches()[0]
    meanwhile()
    yield rows(3).to_batches()[0]


def test_an_append_that_was_prepared_for_another_schema_is_refused(path):
    """The change came while its files were being written, before its commit began."""

    def meanwhile():
        log = TransactionLog.open(path)
        changed = replace(log.metadata(), schema_string=schema_to_json(pa.schema([("id", pa.string())])))

        def build(base):
            return [changed, *removals(base, base.adds())]

        log.commit(CommitPlan("OVERWRITE", Rule.EXCLUSIVE, build))

    table = Table.open(path)
    with pytest.raises(ConflictError, match="changed the schema"):
        table.append(batches(table, meanwhile))
    assert Table.open(path).count() == 0


def test_an_append_to_a_table_that_was_made_anew_meanwhile_is_refused(path):
    def meanwhile():
        shutil.rmtree(path / "_transaction_log")
        Table.create(path, SCHEMA)

    table = Table.open(path)
    with pytest.raises(ConflictError, match="made the table anew"):
        table.append(batches(table, meanwhile))
    assert Table.open(path).count() == 0


@pytest.mark.parametrize("verb", ["delete", "merge_splits"])
def test_a_rewrite_that_was_prepared_for_another_schema_is_refused(path, verb, monkeypatch):
    table = Table.open(path)
    table.append(rows(2, 3))
    log = TransactionLog.open(path)
    wider = replace(log.metadata(), schema_string=schema_to_json(pa.schema([("id", pa.string())])))
    original = TransactionLog.commit

    def late(self, plan):
        monkeypatch.setattr(TransactionLog, "commit", original)
        log.commit(CommitPlan("SCHEMA", Rule.APPEND, lambda _: [wider]))
        return original(self, plan)

    monkeypatch.setattr(TransactionLog, "commit", late)
    with pytest.raises(ConflictError, match="changed the schema"):
        table.delete("id = 2") if verb == "delete" else table.merge_splits()
