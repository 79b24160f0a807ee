"""A companion whose source changes: while it is asked, in its columns, and after a part of the index was lost."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import MissingSplitError
from indextables.storage.store import open_store
from support.companions import CraftedSource

SINGLE = {"write.targetSplitBytes": "1"}


@pytest.fixture
def places(tmp_path):
    """A Delta table of four files, and the place of its index."""
    source, index = str(tmp_path / "source"), str(tmp_path / "index")
    for number in range(4):
        rows = pa.table({"id": [number, number + 10], "msg": [f"disk full {number}", "quiet"]})
        deltalake.write_deltalake(source, rows, mode="append")
    return source, index


def ids(table, query):
    return sorted(table.search(query, columns=["id"]).read_all().column("id").to_pylist())


# While it is asked


@pytest.mark.parametrize("indexed", [True, False])
def test_a_table_that_is_open_gives_its_version_or_one_error_that_names_it(places, indexed):
    source, index = places
    companion = it.companion(source, index, {"msg": "text"}, None if indexed else SINGLE)
    if not indexed:
        log = it.TransactionLog.open(index)
        log.remove_files([add.path for add in log.list_files()])
    table = it.open(index)
    delta = deltalake.DeltaTable(source)
    deltalake.write_deltalake(source, pa.table({"id": [50], "msg": ["a late disk"]}), mode="append")
    delta.update_incremental()
    delta.optimize.compact()
    assert (table.version, ids(table, "disk"), table.count()) == (3, [0, 1, 2, 3], 8)
    # Nothing is kept in memory of another handle.
    table = it.open(index, version=3)
    delta.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    named = r"part of version 3 of .*/source, which was planned, and is not there any more: VACUUM"
    for ask in (
        lambda: table.search("disk").read_all(),
        lambda: table.scan().read_all(),
        lambda: table.count("id >= 0 AND msg LIKE '%disk%'"),
        lambda: table.head(3),
    ):
        with pytest.raises(MissingSplitError, match=named) as caught:
            ask()
        assert caught.value.fields["version"] == 3
    assert ids(it.open(index), "disk") == [0, 1, 2, 3, 50]
    companion.refresh()
    assert ids(it.open(index), "disk") == [0, 1, 2, 3, 50]


ASKED = {
    "search": lambda table: table.search("disk", sort="id", limit=2).read_all(),
    "scores": lambda table: table.search("disk", score=True, limit=1).read_all(),
    "count": lambda table: table.count("id > 1", query="disk"),
    "condition": lambda table: table.count("id > 1"),
    "facets": lambda table: table.facets("msg", "disk"),
    "groups": lambda table: table.aggregate("msg", {"rows": "count(*)"}),
    "histogram": lambda table: table.histogram("id", 5),
    "rows": lambda table: table.scan("id >= 0").read_all(),
}


@pytest.mark.parametrize("door", ASKED)
def test_whatever_is_asked_says_which_files_are_indexed_scanned_and_masked(places, door):
    source, index = places
    it.companion(source, index, {"msg": "text"})
    deltalake.write_deltalake(source, pa.table({"id": [50], "msg": ["a late disk"]}), mode="append")
    deltalake.DeltaTable(source).delete("id = 0 OR id = 10")
    table = it.open(index)
    ASKED[door](table)
    coverage = table.last_scan.coverage
    assert (coverage.indexed, coverage.scanned, coverage.masked) == (3, 1, 1)


# Its columns


def crafted(tmp_path, *, mapped):
    """A source of three files, with mapped columns or without."""
    place = str(tmp_path / "crafted")
    seeds = (seed for seed in range(100) if (random.Random(seed).random() < 0.5) == mapped)
    source = CraftedSource.make(open_store(place), random.Random(next(seeds)))
    source.append(3)
    return place, source, str(tmp_path / "index")


def matching(source, column, word):
    rows = source.rows().to_pylist()
    return sorted(row["id"] for row in rows if row[column] and word in row[column].split())


def test_a_column_of_another_type_is_scanned_until_it_is_indexed_again(tmp_path):
    place, source, index = crafted(tmp_path, mapped=False)
    companion = it.companion(place, index, ["msg"], {"indexing.fastfields": "n"})
    source.evolve()
    assert source.kinds["n"] == "long"
    most = sorted(row["id"] for row in source.rows().to_pylist() if row["n"] > 50)
    for covered in ((0, 3), (3, 0)):
        table = it.open(index)
        assert ids(table, "n:>50") == most
        assert ids(table, "msg:disk") == matching(source, "msg", "disk")
        coverage = table.last_scan.coverage
        assert (coverage.indexed, coverage.scanned) == covered
        companion.refresh()


def test_a_column_that_is_renamed_is_searched_by_its_new_name_and_stays_indexed(tmp_path):
    place, source, index = crafted(tmp_path, mapped=True)
    companion = it.companion(place, index, ["msg", "level"])
    while (name := source.names["msg"]) == "msg":
        source.evolve()
    table = it.open(index)
    assert ids(table, f"{name}:disk") == matching(source, name, "disk")
    assert table.last_scan.coverage.scanned == 0
    assert name in table.schema.names
    assert companion.refresh().parquet_files_indexed == 0


def test_a_column_that_is_dropped_and_added_again_is_another_column(tmp_path):
    place, source, index = crafted(tmp_path, mapped=True)
    companion = it.companion(place, index, {"msg": "text", "level": "string"})
    assert it.open(index).count(query="level:ERROR") > 0
    source.drop_and_add()
    source.append()
    errors = matching(source, "level", "ERROR")
    assert errors
    for _ in range(2):
        table = it.open(index)
        # Rows of files that are older than the column have no value in it, though an index has words there.
        assert ids(table, "level:ERROR") == errors
        assert table.count("level = 'ERROR'") == len(errors)
        assert ids(table, "msg:disk") == matching(source, "msg", "disk")
        companion.refresh()
    again = it.companion(place, f"{index} again", {"msg": "text", "level": "string"})
    table = it.open(again.uri)
    assert ids(table, "level:ERROR") == errors
    assert table.last_scan.coverage.scanned == 0


# After a loss


def test_a_split_that_is_lost_costs_no_row_and_is_indexed_again_after_a_repair(places):
    source, index = places
    companion = it.companion(source, index, {"msg": "text"}, SINGLE)
    lost = next(Path(index).glob("*.split"))
    lost.unlink()
    (finding,) = it.sql(f"CHECK INDEXTABLES '{index}'").to_pylist()
    assert (finding["severity"], finding["subject"]) == ("WARNING", lost.name)
    assert "same answers" in finding["consequence"]
    assert ids(it.open(index), "disk") == [0, 1, 2, 3]
    (row,) = it.sql(f"{finding['command']} SWAP").to_pylist()
    assert (row["status"], row["valid_splits"], row["missing_splits"]) == ("SUCCESS", 3, 1)
    assert companion.status().files_stale == 1
    assert ids(it.open(index), "disk") == [0, 1, 2, 3]
    assert companion.refresh().parquet_files_indexed == 1
    assert ids(it.open(index), "disk") == [0, 1, 2, 3]


def test_a_companion_whose_log_is_lost_is_made_anew_and_not_taken_for_a_table_without_rows(places):
    source, index = places
    it.companion(source, index, {"msg": "text"}, SINGLE)
    log = Path(index, "_transaction_log")
    repair = f"REPAIR INDEXFILES TRANSACTION LOG '{log}' AT LOCATION '{index}_log' FROM SPLITS"
    Path(log, f"{1:020d}.json").unlink()
    (row,) = it.sql(repair).to_pylist()
    assert (row["status"], row["total_splits"]) == ("SUCCESS", 4)
    Path(log, f"{0:020d}.json").unlink()
    (row,) = it.sql(repair.replace("_log'", "_other'")).to_pylist()
    assert row["status"].startswith("ERROR: the splits are those of a companion index")
    shutil.rmtree(index)
    it.companion(source, index, {"msg": "text"})
    assert ids(it.open(index), "disk") == [0, 1, 2, 3]
