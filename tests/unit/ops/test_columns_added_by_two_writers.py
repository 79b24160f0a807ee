"""Two writers add a column of the same name at once: the table holds only rows that fit its schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from indextables.errors import ConflictError
from indextables.log.transaction_log import TransactionLog
from indextables.storage.stores.memory import MemoryStore
from indextables.table import Table
from support.faults import Around

SCHEMA = pa.schema([("id", pa.int64())])


class Interrupted(Around):
    """Lets another writer go first, once, when a version is about to be written."""

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner)
        self.meanwhile: Callable[[], Any] | None = None

    def _do(self, operation: str, path: str, call: Callable[[], Any]) -> Any:
        if operation == "put_if_absent" and self.meanwhile is not None:
            work, self.meanwhile = self.meanwhile, None
            work()
        return call()


def opened(store: Any) -> Table:
    log = TransactionLog.open(store.uri, store=store)
    log.initialize(SCHEMA)
    return Table(log, log.snapshot())


def rows(number: int, value: Any, kind: pa.DataType) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64()), "x": pa.array([value], kind)})


def splits(store: MemoryStore) -> list[str]:
    return [meta.path for meta in store.list("") if meta.path.endswith(".split")]


@pytest.mark.parametrize(
    ("first", "second"),
    [((7, pa.int64()), ("seven", pa.string())), (("seven", pa.string()), (7, pa.int32()))],
)
@pytest.mark.parametrize("verb", ["append", "overwrite"])
def test_a_column_that_another_writer_just_added_with_another_type_is_a_conflict(first, second, verb):
    store = MemoryStore()
    slow = Interrupted(store)
    table, other = opened(slow), opened(store)
    slow.meanwhile = lambda: other.append(rows(1, *first), merge_schema=True)

    with pytest.raises(ConflictError, match="another writer added"):
        getattr(table, verb)(rows(2, *second), merge_schema=True)

    left = table.refresh().scan().read_all()
    assert left.to_pylist() == [{"id": 1, "x": first[0]}]
    assert len(splits(store)) == 1


@pytest.mark.parametrize("kinds", [(pa.int32(), pa.int64()), (pa.int64(), pa.int32())])
def test_a_column_that_another_writer_just_added_takes_the_wider_of_the_two_types(kinds):
    store = MemoryStore()
    slow = Interrupted(store)
    table, other = opened(slow), opened(store)
    slow.meanwhile = lambda: other.append(rows(1, 7, kinds[0]), merge_schema=True)

    table.append(rows(2, 8, kinds[1]), merge_schema=True)

    left = table.refresh().scan(sort="id").read_all()
    assert left.schema.field("x").type == pa.int64()
    assert left["x"].to_pylist() == [7, 8]
