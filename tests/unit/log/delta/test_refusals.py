"""Delta tables that must not be read as they lie, and words that help with those that cannot be read."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import indextables as it
from indextables.errors import CorruptLogError, Error, ProtocolError, TableError
from indextables.log.delta.snapshot import open_snapshot
from indextables.options import Options
from indextables.storage.store import open_store
from support.deltahistories import keys_of
from support.deltatables import KINDS, DeltaLog, add, remove, schema_string

OPTIONS = Options.of(None)


def new_log(**columns):
    return DeltaLog(open_store(f"memory://{uuid.uuid4()}"), schema_string(**columns or {"n": "long"}))


@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize("feature", ["coordinatedCommits-preview", "coordinatedCommits"])
def test_a_table_whose_commits_a_coordinator_keeps_is_refused(feature, version):
    """It is a feature of writers, and yet the log directory lacks the newest commits."""
    log = new_log()
    features = {"readerFeatures": []} if version == 3 else {}
    log.commit(
        {
            "protocol": {
                "minReaderVersion": version,
                "minWriterVersion": 7,
                "writerFeatures": [feature],
                **features,
            }
        }
    )
    with pytest.raises(ProtocolError, match=f"{feature}.*coordinator"):
        it.delta.files(log.store.uri)


@pytest.mark.parametrize("feature", ["catalogManaged", "catalogOwned-preview"])
def test_a_table_that_a_catalog_manages_is_refused_with_the_way_out(feature):
    log = new_log()
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    log.commit({"protocol": {**protocol, "readerFeatures": [feature], "writerFeatures": [feature]}})
    with pytest.raises(
        ProtocolError, match=f"{feature}.*known to its catalog alone.*CREATE TABLE ... AS SELECT"
    ):
        it.delta.files(log.store.uri)


@pytest.mark.parametrize("named", ["delta.`{}`", "{}", "delta.`file://{}`"])
def test_a_shallow_clone_is_followed_to_the_source_its_log_names_if_that_is_allowed(tmp_path, named):
    write_deltalake(tmp_path / "source", pa.table({"n": [1, 2]}))
    write_deltalake(tmp_path / "secret", pa.table({"n": [3]}))
    paths = {
        name: it.DeltaTable.open(tmp_path / name).files()["path"][0].as_py() for name in ("source", "secret")
    }
    clone = DeltaLog(open_store(tmp_path / "clone"), schema_string(n="long"))
    source = named.format(tmp_path / "source")
    info = {"operation": "CLONE", "operationParameters": {"source": source, "sourceVersion": "0"}}
    clone.commit({"commitInfo": info}, add(f"file://{tmp_path}/source/{paths['source']}"))
    allowed = {"read.allowCloneSource": "true"}
    with pytest.raises(TableError, match="outside the table.*read.allowCloneSource"):
        it.DeltaTable.open(tmp_path / "clone").scan().read_all()
    assert it.DeltaTable.open(tmp_path / "clone", options=allowed).to_pandas()["n"].tolist() == [1, 2]
    # Only the source is followed, not every address.
    clone.commit(add(f"file://{tmp_path}/secret/{paths['secret']}"))
    with pytest.raises(TableError, match="outside the table"):
        it.DeltaTable.open(tmp_path / "clone", options=allowed).scan().read_all()
    both = {**allowed, "read.allowedRoots": str(tmp_path / "secret")}
    assert it.DeltaTable.open(tmp_path / "clone", options=both).count() == 3


def test_a_clone_whose_source_has_only_a_name_stays_refused(tmp_path):
    write_deltalake(tmp_path / "source", pa.table({"n": [1, 2]}))
    path = it.DeltaTable.open(tmp_path / "source").files()["path"][0].as_py()
    clone = DeltaLog(open_store(tmp_path / "clone"), schema_string(n="long"))
    info = {"operation": "CLONE", "operationParameters": {"source": "main.db.source"}}
    clone.commit({"commitInfo": info}, add(f"file://{tmp_path}/source/{path}"))
    with pytest.raises(TableError, match="outside the table"):
        it.DeltaTable.open(tmp_path / "clone", options={"read.allowCloneSource": "true"}).to_pandas()


@pytest.mark.parametrize("kind", [None, *KINDS])
@pytest.mark.parametrize(("added", "removed"), [
    ("file:/x/f.parquet", "file:///x/f.parquet"),
    ("/x/f.parquet", "file:/x/f.parquet"),
    ("file:///x/f.parquet", "/x/f.parquet"),
    ("file://localhost/x/f.parquet", "/x/f.parquet"),
])  # fmt: skip
def test_one_local_file_has_one_key_however_its_address_is_written(kind, added, removed):
    log = new_log()
    log.commit(add(added), add("g"))
    if kind is not None:
        log.checkpoint(kind)
    log.commit(remove(removed))
    snapshot = open_snapshot(log.store.uri, options=OPTIONS)
    for engine in ("columnar", "reference"):
        assert keys_of(snapshot.plan(engine=engine).files) == [("g", None, 100)], engine


def broken_logs():
    missing = new_log()
    missing.commit(add("a"))
    missing.commit(add("b"))
    missing.store.delete(f"_delta_log/{1:020d}.json")
    empty, torn = new_log(), new_log()
    empty.store.put(f"_delta_log/{1:020d}.json", b"")
    torn.store.put(f"_delta_log/{1:020d}.json", b'{"add": {"path": "a"')
    return {"a missing commit": missing, "an empty commit": empty, "a torn commit": torn}


@pytest.mark.parametrize("case", ["a missing commit", "an empty commit", "a torn commit"])
def test_a_damaged_log_is_not_sent_to_commands_that_do_not_work_on_delta_tables(case):
    with pytest.raises(CorruptLogError) as caught:
        it.delta.files(broken_logs()[case].store.uri)
    assert "REPAIR" not in str(caught.value)
    assert "backup" in str(caught.value)


def test_a_path_without_a_table_is_not_told_to_be_created(tmp_path):
    (tmp_path / "t").mkdir()
    with pytest.raises(Error) as caught:
        it.delta.files(tmp_path / "t")
    assert "is not a Delta table. The directory is empty. Check the path." in str(caught.value)
    assert "reate" not in str(caught.value)
