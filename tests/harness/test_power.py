"""A power cut loses nothing that was acknowledged and leaves no file that is believed though it is not whole."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

import indextables as it
from harness.disk import ContentSynced, Cut, NamesSynced, recording, write_image
from harness.power import METHODS, RECORDED, TABLE, run_replays
from indextables.storage.stores.local import LocalStore

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="what is recorded are the calls made on Linux"
)
SAMPLE = 2 * len(RECORDED)
READS = {
    "aggregate", "constraints", "count", "describe", "exists", "explain_score", "facets", "files", "head", "histogram", "history",
    "last_scan", "log", "metadata", "open", "partition_columns", "protocol", "refresh", "sample", "scan", "schema",
    "search", "search_df", "skipped_files", "snapshot", "spark_schema", "time_zone", "to_df", "to_pandas", "to_polars", "uri", "version",
    "writer",  # its rows go the way of append
    "changes", "stored_names",
    "add_column", "rename_column", "drop_column", "move_column",  # one commit without files, as update_properties
}  # fmt: skip


def test_after_a_power_cut_every_verb_has_kept_what_it_acknowledged(tmp_path: Path) -> None:
    tally = run_replays(range(SAMPLE), tmp_path, live_on=False)
    assert tally.broken == {}
    assert set(tally.verbs) == set(RECORDED)
    assert tally.acknowledged
    assert tally.under_way


def test_every_method_of_a_table_is_recorded_or_writes_nothing() -> None:
    public = {name for name, _ in inspect.getmembers(it.Table) if not name.startswith("_")}
    assert public == METHODS | READS


@pytest.mark.parametrize("lost", [ContentSynced, NamesSynced])
def test_replays_notice_when_files_or_directories_are_not_synced(tmp_path: Path, lost: type) -> None:
    """A harness that finds nothing has to show that it could."""
    tally = run_replays(range(9), tmp_path, live_on=False, ignored=lambda event: isinstance(event, lost))
    assert tally.broken


def test_replays_notice_when_the_directory_above_a_new_one_is_not_synced(tmp_path: Path) -> None:
    first, verbs = list(RECORDED).index("new partition"), len(RECORDED)
    tally = run_replays(
        range(first, 8 * verbs, verbs),
        tmp_path,
        live_on=False,
        ignored=lambda event: event == NamesSynced(TABLE),
    )
    assert tally.broken


@pytest.mark.parametrize("verb", ["put", "put_if_absent", "put_file"])
def test_a_file_in_a_directory_that_another_writer_has_not_synced_yet_survives(
    tmp_path: Path, verb: str
) -> None:
    """The other one was stopped between making the directory and syncing the one above."""
    base, image = tmp_path / "disk", tmp_path / "image"
    base.mkdir()
    source = tmp_path / "finished"
    source.write_bytes(b"rows")
    with recording(base) as disk:
        disk.mkdir(f"{base}/table")
        disk.mkdir(f"{base}/table/day=1")
        store = LocalStore(base / "table")
        content = str(source) if verb == "put_file" else b"rows"
        getattr(store, verb)("day=1/a.split", content)
    write_image(disk.events, Cut(len(disk.events), "before", "empty"), image)
    assert (image / "table/day=1/a.split").read_bytes() == b"rows"
