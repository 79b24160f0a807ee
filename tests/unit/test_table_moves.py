"""A table handle moves to what its own verbs wrote, and stays where it is otherwise."""

from __future__ import annotations

import pyarrow as pa
import pytest

from indextables.errors import SchemaError
from indextables.log.transaction_log import TransactionLog
from indextables.table import Table

SCHEMA = pa.schema([("id", pa.int64())])


def rows(*ids):
    return pa.table({"id": pa.array(ids, pa.int64())})


class Overtaken(TransactionLog):
    """A log in which another writer appends right after each of our commits."""

    def commit(self, plan):
        done = super().commit(plan)
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
