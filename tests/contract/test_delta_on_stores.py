"""Delta tables over every kind of storage: the same files, the same rows, read by ranges where they are remote."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import MissingSplitError, NotATableError
from indextables.log.table_kind import TableKind
from indextables.storage.store import open_store
from support.deltarows import inline_vector, put_file, stored_vector
from support.deltatables import DeltaLog, schema_string
from support.servers import s3_server  # noqa: F401 - fixture


@pytest.fixture(params=["local", "memory", "s3"])
def place(request, tmp_path):
    """An address no other test uses, and the options that reach it."""
    if request.param == "local":
        return str(tmp_path / "t"), {}
    if request.param == "memory":
        return f"memory://{uuid.uuid4().hex}/t", {}
    server = request.getfixturevalue("s3_server")
    return f"{server.root}/{uuid.uuid4().hex}/t", dict(server.options)


def test_rows_counts_and_history_are_those_of_the_log(place):
    uri, options = place
    store = open_store(uri, options)
    log = DeltaLog(store, schema_string(id="long", p="string", name="string"), ("p",))
    for number in range(3):
        ids = list(range(number * 10, number * 10 + 10))
        rows = pa.table({"id": ids, "name": [f"n{at}" for at in ids]})
        dv = [None, inline_vector([0]), stored_vector(store, [9])][number]
        log.commit(put_file(log, f"p=a %{number}/f", rows, dv=dv, partitionValues={"p": f"a %{number}"}))
    log.checkpoint("v2-parquet")
    with pytest.raises(NotATableError) as refused:
        it.Table.open(uri, options=options)
    assert refused.value.kind is TableKind.DELTA
    table = it.DeltaTable.open(uri, options=options)
    live = [at for at in range(30) if at not in {10, 29}]
    assert sorted(table.scan().read_all().column("id").to_pylist()) == live
    assert table.scan("id = 28", columns=["p", "name"]).read_all().to_pylist() == [
        {"p": "a %2", "name": "n28"}
    ]
    assert (table.count(), table.count("id >= 5"), table.count("p = 'a %1'")) == (28, 23, 9)
    assert table.history().num_rows == 4
    store.delete("p=a %1/f")
    with pytest.raises(MissingSplitError, match="/f is part of the table but does not exist"):
        table.scan().read_all()
