"""A table from somebody else: its log does not choose what the reader's credentials open."""

from __future__ import annotations

import os
from dataclasses import replace

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import TableError
from indextables.ops.maintain.repair.repair import RepairRequest
from indextables.ops.maintain.repair.run import run_repair
from indextables.options import Options
from indextables.storage.store import is_allowed, open_store, require_allowed, resolve
from indextables.storage.stores.local import LocalStore

SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string())])
INDEXED = {"indexing.typemap.t": "text"}


@pytest.fixture
def tables(tmp_path):
    """A table of somebody else, whose log names a split of ours by its absolute path."""
    ours = it.Table.create(str(tmp_path / "ours"), SCHEMA, options=INDEXED)
    ours.append(pa.table({"n": [1, 2], "t": ["secret one", "secret two"]}, SCHEMA))
    theirs = it.Table.create(str(tmp_path / "theirs"), SCHEMA, options=INDEXED)
    theirs.append(pa.table({"n": [3], "t": ["bait"]}, SCHEMA))
    log = it.TransactionLog.open(str(tmp_path / "ours"))
    add = log.list_files()[0]
    stolen = replace(add, path=f"{tmp_path}/ours/{add.path}")
    it.TransactionLog.open(str(tmp_path / "theirs")).add_files([stolen])
    return tmp_path


READERS = {
    "scan": lambda table: table.scan().read_all(),
    "scan where": lambda table: table.scan("n = 1").read_all(),
    "search": lambda table: table.search("t:secret").read_all(),
    "count by query": lambda table: table.count(query="t:secret"),
    "count where": lambda table: table.count("n = 1"),
    "merge": lambda table: table.merge_splits(),
    "delete": lambda table: table.delete("n = 1"),
    "overwrite where": lambda table: table.overwrite(pa.table({"n": [1], "t": ["x"]}, SCHEMA), where="n = 1"),
}


@pytest.mark.parametrize("reader", READERS)
def test_files_outside_the_table_are_refused_and_the_error_names_the_option(tables, reader):
    table = it.Table.open(str(tables / "theirs"))
    with pytest.raises(TableError, match=r"outside the table.*read\.allowedRoots") as caught:
        READERS[reader](table)
    assert caught.value.roots == [f"file://{tables}/ours"]
    assert it.Table.open(str(tables / "theirs")).version == 2, "nothing was committed"


@pytest.mark.parametrize("reader", READERS)
def test_places_that_the_reader_names_are_followed(tables, reader):
    options = {"read.allowedRoots": f"s3://elsewhere/x, {tables}/ours"}
    READERS[reader](it.Table.open(str(tables / "theirs"), options=options))


def test_a_table_cannot_allow_itself(tables):
    log = it.TransactionLog.open(str(tables / "theirs"))
    log.update_properties({"read.allowedRoots": str(tables)})
    with pytest.raises(TableError, match="outside the table"):
        it.Table.open(str(tables / "theirs")).scan().read_all()


def test_listing_and_describing_need_no_permission(tables):
    table = it.Table.open(str(tables / "theirs"))
    assert table.files().num_rows == 2
    assert table.history().num_rows == 3
    assert table.describe() is not None


def test_repair_keeps_what_lies_elsewhere_without_looking_at_it(tables):
    request = RepairRequest(f"{tables}/theirs/_transaction_log", f"{tables}/theirs/_repaired")
    for split in (tables / "ours").glob("*.split"):
        split.unlink()
    result = run_repair(request, Options.of(None))
    assert (result.status, result.valid_splits, result.missing_splits) == ("SUCCESS", 2, 0)


def test_check_says_what_it_did_not_look_at(tables):
    found = it.check(str(tables / "theirs")).to_arrow().to_pylist()
    assert any("outside the table" in str(row) for row in found)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("a.split", True),
        ("/data/t/a.split", True),
        ("file:///data/t/d%3D1/a.split", True),
        ("/data/t2/a.split", False),
        ("/data/t/../secrets/a.split", False),
        ("/trusted/a.split", True),
        ("/trusted/../etc/a.split", False),
        ("/trusted2/a.split", False),
        ("s3a://bucket/deep/down/a.split", True),
        ("s3://bucket2/a.split", False),
        ("memory://x/a.split", False),
    ],
)
def test_only_paths_below_the_table_or_an_allowed_root_are_allowed(path, allowed):
    store = open_store("/data/t", {"read.allowedRoots": "/trusted/, s3://bucket/deep"})
    assert is_allowed(store, path) is allowed
    assert is_allowed(open_store(store.spec()), path) is allowed, "an executor knows the same"
    if not allowed:
        with pytest.raises(TableError):
            resolve(store, path)


def test_the_error_names_each_place_once():
    store = LocalStore("/data/t")
    with pytest.raises(TableError, match="3 files") as caught:
        from indextables.storage.store import require_allowed

        require_allowed(store, ["x", "/a/b.split", "/a/c/d.split", "s3://bucket/e.split"])
    assert caught.value.roots == ["file:///a", "s3://bucket"]


def partitioned(tmp_path, name="table"):
    schema = pa.schema([("n", pa.int64()), ("day", pa.string())])
    table = it.Table.create(str(tmp_path / name), schema, partition_by=["day"])
    table.append(pa.table({"n": [1, 3, 5, 2], "day": ["a", "a", "a", "b"]}, schema))
    return table


def moved_behind_a_link(tmp_path, item):
    """Move a file or directory of a table elsewhere, and leave a link to it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    item.rename(elsewhere / item.name)
    item.symlink_to(elsewhere / item.name)
    return elsewhere


@pytest.mark.parametrize("what", ["day=a", "day=a/*.split"], ids=["directory", "file"])
def test_a_link_out_of_the_table_is_refused_until_its_target_is_allowed(tmp_path, what):
    """An archive that somebody else packed may hold links to files of whoever unpacks it."""
    table = partitioned(tmp_path)
    item = next((tmp_path / "table").glob(what))
    elsewhere = moved_behind_a_link(tmp_path, item)
    for read in (
        lambda opened: opened.scan().read_all(),
        lambda opened: opened.count("n = 3"),
        lambda opened: opened.delete("n = 3"),
    ):
        with pytest.raises(TableError, match=r"symbolic link on the way to day=a.*read\.allowedRoots"):
            read(it.Table.open(table.uri))
    assert it.Table.open(table.uri).scan("day = 'b'").read_all()["n"].to_pylist() == [2]
    trusting = it.Table.open(table.uri, options={"read.allowedRoots": str(elsewhere)})
    assert sorted(trusting.scan().read_all()["n"].to_pylist()) == [1, 2, 3, 5]


def test_a_link_within_the_table_and_a_table_behind_a_link_are_read(tmp_path):
    table = partitioned(tmp_path)
    root = tmp_path / "table"
    (root / "day=a").rename(root / "moved")
    (root / "day=a").symlink_to("moved", target_is_directory=True)
    (tmp_path / "alias").symlink_to(root, target_is_directory=True)
    for uri in (table.uri, str(tmp_path / "alias")):
        assert sorted(it.Table.open(uri).scan().read_all()["n"].to_pylist()) == [1, 2, 3, 5]


def test_links_are_looked_for_once_in_each_directory(tmp_path, monkeypatch):
    looks = []
    look = os.path.islink
    monkeypatch.setattr(os.path, "islink", lambda path: looks.append(str(path)) or look(path))
    require_allowed(LocalStore(tmp_path), [f"day=a/{number}.split" for number in range(100)])
    assert looks.count(f"{tmp_path}/day=a") == 1


def test_a_link_below_an_allowed_root_does_not_lead_out_of_it(tables):
    (tables / "allowed").mkdir()
    (tables / "allowed" / "way").symlink_to(tables / "ours", target_is_directory=True)
    store = LocalStore(tables / "theirs", {"read.allowedRoots": str(tables / "allowed")})
    assert not is_allowed(store, f"{tables}/allowed/way/x.split")
    assert is_allowed(store, f"{tables}/allowed/x.split")
