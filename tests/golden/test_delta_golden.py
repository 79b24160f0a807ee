"""Real Delta tables, made by others: every one gives the outcome its authors expect, at every version."""

from __future__ import annotations

import json
import re
import shutil

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import Error, MissingSplitError, TableError
from indextables.log.delta.files.text import typed_partition
from indextables.log.delta.snapshot import open_snapshot
from indextables.options import Options
from support.golden import expected, table_path
from support.shared import shared, shared_directory

OPTIONS = Options.of(None)
LOCAL_ENGINES = ("columnar", "reference")
HERE = shared_directory()
MANIFEST = []
if HERE is not None and (HERE / "golden" / "delta" / "MANIFEST.json").exists():
    MANIFEST = json.loads((HERE / "golden" / "delta" / "MANIFEST.json").read_text())
NAMES = [row["name"] for row in MANIFEST] or ["absent"]
ANSWERED = [row["name"] for row in MANIFEST if row["outcome"] in {"ok", "refuse-or-lenient"}] or ["absent"]
REFUSED = [row["name"] for row in MANIFEST if row["outcome"] == "refuse"] or ["absent"]
CHECKPOINTED = [
    row["name"] for row in MANIFEST if row["outcome"] == "ok" and row["checkpoint_version"] is not None
] or ["absent"]


def rows_of(files: pa.Table):
    columns = files.select(["path", "dv", "size", "num_records"]).to_pylist()
    return sorted(([*row.values()] for row in columns), key=str)


def expected_rows(name):
    return sorted(([path, dv, size, count] for path, dv, size, _, count in expected(name)["files"]), key=str)


def test_the_corpus_is_whole():
    """K7: 154 tables."""
    shared("golden", "delta")
    assert len(NAMES) == 154


@pytest.mark.parametrize("engine", LOCAL_ENGINES)
@pytest.mark.parametrize("name", ANSWERED)
def test_the_newest_version_has_the_expected_files(name, engine):
    """K7: path, deletion vector, size and row count of every live file."""
    snapshot = open_snapshot(table_path(name), options=OPTIONS)
    assert snapshot.version == expected(name)["version"]
    assert rows_of(snapshot.plan(engine=engine).files) == expected_rows(name)


@pytest.mark.parametrize("name", ANSWERED)
def test_partition_values_are_typed_under_their_logical_names(name):
    """K3: the log's strings, decoded by the type of their column."""
    snapshot = open_snapshot(table_path(name), options=OPTIONS)
    files = snapshot.plan(columns=["partition_values", "dv"]).files.to_pylist()
    found = {(row["path"], row["dv"]): row["partition_values"] for row in files}
    for path, dv, _, values, _ in expected(name)["files"]:
        typed = {
            logical: typed_partition(
                pa.array([values.get(physical)], pa.string()), snapshot.schema.field(logical).type
            )[0].as_py()
            for logical, physical in snapshot.columns.physical_partitions().items()
        }
        assert found[path, dv] == typed
        unread = [
            name
            for name, value in typed.items()
            if value is None and values[snapshot.columns.physical_names[name]]
        ]
        assert unread == []


@pytest.mark.parametrize("name", ANSWERED)
def test_every_older_version_is_reconstructed(name):
    """A13: time travel by number to each version the log still holds."""
    for version, state in expected(name)["versions"].items():
        snapshot = open_snapshot(table_path(name), version=int(version), options=OPTIONS)
        files = snapshot.plan(columns=["size", "dv"]).files
        vectors = files.column("dv")
        found = (files.num_rows, len(vectors) - vectors.null_count, sum(files.column("size").to_pylist()))
        assert found == (state["n_files"], state["n_dv"], state["bytes"]), version


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_cannot_be_trusted_is_refused(name):
    """K7: unknown features, missing protocol or metadata, missing commits: an error of ours that names the table."""
    with pytest.raises(Error, match=re.escape(name)):
        open_snapshot(table_path(name), options=OPTIONS).plan()


@pytest.mark.parametrize("name", CHECKPOINTED)
def test_commits_below_the_checkpoint_are_not_needed(name, tmp_path):
    """K7: with the commits at or below the checkpoint deleted the file list is the same."""
    copy = tmp_path / "table"
    shutil.copytree(table_path(name), copy, ignore=shutil.ignore_patterns("part-*", "*.bin"))
    checkpoint = expected(name)["checkpoint_version"]
    for commit in (copy / "_delta_log").glob("*.json"):
        if re.fullmatch(r"\d{20}\.json", commit.name) and int(commit.name[:20]) <= checkpoint:
            commit.unlink()
    for engine in LOCAL_ENGINES:
        found = rows_of(open_snapshot(copy, options=OPTIONS).plan(engine=engine).files)
        assert found == expected_rows(name), engine


@pytest.mark.parametrize("name", ANSWERED)
def test_the_replayed_state_agrees_with_the_version_checksum(name):
    """K7: where a writer left a `.crc` file its counts are ours; one table's was made up to differ."""
    snapshot = open_snapshot(table_path(name), options=OPTIONS)
    if name == "kernel-rs__crc-full":
        with pytest.raises(Error, match="says 10 of 5259"):
            snapshot.verify()
    else:
        snapshot.verify()


@pytest.mark.parametrize("name", ANSWERED)
def test_every_version_gives_the_rows_its_files_promise(name):
    """K7: both local engines list the same files at each version, and reading them gives every row but deleted ones."""
    for version in expected(name)["versions"]:
        table = it.DeltaTable.open(table_path(name), version=int(version))
        snapshot = open_snapshot(table_path(name), version=int(version), options=OPTIONS)
        files = snapshot.plan(engine="columnar").files
        assert rows_of(files) == rows_of(snapshot.plan(engine="reference").files), version
        gone = [row["cardinality"] for row in files.column("deletion_vector").to_pylist() if row]
        if files.column("num_records").null_count or not snapshot.metadata.schema_string:
            continue
        promised = sum(files.column("num_records").to_pylist()) - sum(gone)
        assert table.count() == promised, version
        try:
            found = sum(batch.num_rows for batch in table.scan(columns=[]))
        except (MissingSplitError, TableError):
            # The corpus leaves out some data files, as VACUUM would.
            continue
        assert found == promised, version
