"""A part of a checkpoint in the place of the checkpoint: no row is lost, whichever version wrote it."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.errors import CorruptLogError, Error
from indextables.log.adds.columns import PATH
from indextables.log.checkpoint.parquet import read_leaves
from indextables.options import Options
from indextables.storage.envelope import pack, unpack

SCHEMA = pa.schema([("id", pa.int64())])
LOG = "_transaction_log"
WRITTEN_BY_0_2_0 = Path(__file__).parents[3] / "golden" / "written_by_0_2_0.zip"


def ids(root: Path, version: int | None = None) -> list[int]:
    return sorted(it.Table.open(root, version=version).scan().read_all()["id"].to_pylist())


def made_now(root: Path, form: str, per_part: int = 3) -> Path:
    """A table of nine rows and nine versions, with a checkpoint of the newest."""
    options = {"checkpoint.format": form, "checkpoint.actionsPerPart": per_part, "checkpoint.interval": 1000}
    table = it.Table.create(root, SCHEMA, options=options)
    for number in range(9):
        table.append(pa.table({"id": [number]}, SCHEMA))
    it.Table.open(root, options=options).checkpoint()
    return root


def made_by_0_2_0(root: Path) -> Path:
    """A table of nine rows: JSON parts at version 5, one Parquet file at 9 and Parquet parts at 10."""
    with zipfile.ZipFile(WRITTEN_BY_0_2_0) as packed:
        packed.extractall(root)
    return root


def main_and_parts(root: Path, version: int, form: str) -> tuple[Path, list[Path]]:
    main = root / LOG / f"{version:020d}.checkpoint.{form}"
    return main, sorted((root / LOG).glob(f"{version:020d}.checkpoint.*of*.{form}"))


@pytest.mark.parametrize("hint", [True, False], ids=["hint", "no hint"])
@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize("form", ["parquet", "json"])
def test_a_part_in_the_place_of_its_checkpoint_loses_no_row(tmp_path, form, part, hint):
    root = made_now(tmp_path / "t", form)
    main, parts = main_and_parts(root, it.Table.open(root).version, form)
    shutil.copyfile(parts[part], main)
    if not hint:
        (root / LOG / "_last_checkpoint").unlink()
    assert ids(root) == list(range(9))
    it.Table.open(root).restore(it.Table.open(root).version - 1)
    assert len(ids(root)) == 8
    assert it.Table.open(root).checkpoint() is not None
    assert len(ids(root)) == 8


def test_a_part_is_refused_by_name_where_nothing_older_is_left(tmp_path):
    root = made_now(tmp_path / "t", "parquet")
    version = it.Table.open(root).version
    main, parts = main_and_parts(root, version, "parquet")
    shutil.copyfile(parts[1], main)
    for file in (*(root / LOG).glob("*.json"), root / LOG / "_last_checkpoint"):
        file.unlink()
    with pytest.raises(Error) as refused:
        ids(root)
    assert "part 2 of 3" in str(refused.value.__cause__)


def test_a_checkpoint_with_fewer_rows_than_it_states_is_damaged(tmp_path):
    root = made_now(tmp_path / "t", "parquet", per_part=1000)
    main, _ = main_and_parts(root, it.Table.open(root).version, "parquet")
    stored = pq.ParquetFile(main)
    with pq.ParquetWriter(main.with_suffix(".fewer"), stored.schema_arrow) as fewer:
        fewer.write_table(stored.read().slice(0, 5))
        fewer.add_key_value_metadata(
            {key: value for key, value in stored.metadata.metadata.items() if key != b"ARROW:schema"}
        )
    main.with_suffix(".fewer").rename(main)
    (root / LOG / "_last_checkpoint").unlink()
    assert ids(root) == list(range(9))


@pytest.mark.parametrize("count", [8, 10])
def test_a_file_with_another_number_of_adds_than_its_manifest_states_is_refused(tmp_path, count):
    """The checksum of a part says so too; parts without one are told by their number of adds alone."""
    root = made_now(tmp_path / "t", "parquet", per_part=1000)
    main, _ = main_and_parts(root, it.Table.open(root).version, "parquet")
    data = main.read_bytes()
    with pytest.raises(CorruptLogError, match=f"holds 9 adds, {count} were written"):
        list(read_leaves(data, main.name, (PATH,), count))
    for right in (9, None):
        assert sum(len(arrays[0]) for arrays, _ in read_leaves(data, main.name, (PATH,), right)) == 9


def test_a_table_of_0_2_0_opens_at_every_version(tmp_path):
    root = made_by_0_2_0(tmp_path / "t")
    rows = {version: len(ids(root, version)) for version in it.Table.open(root).log.versions()}
    assert rows == {**{version: version for version in range(9)}, 9: 8, 10: 9}
    it.Table.open(root).append(pa.table({"id": [9], "text": ["word9"]}))
    it.Table.open(root).checkpoint()
    assert ids(root) == list(range(10))


@pytest.mark.parametrize("hint", [True, False], ids=["hint", "no hint"])
@pytest.mark.parametrize("put", [shutil.copyfile, shutil.move], ids=["copied", "moved"])
@pytest.mark.parametrize("version", [5, 10])
def test_a_part_of_0_2_0_in_the_place_of_its_checkpoint_loses_no_row(tmp_path, version, put, hint):
    root = made_by_0_2_0(tmp_path / "t")
    main, parts = main_and_parts(root, version, "json" if version == 5 else "parquet")
    put(parts[1], main)
    if not hint:
        (root / LOG / "_last_checkpoint").unlink()
    assert ids(root) == list(range(9))
    assert len(ids(root, 5)) == 5
    assert it.Table.open(root, options={"checkpoint.format": "parquet"}).checkpoint() is not None
    (root / LOG / "_last_checkpoint").unlink(missing_ok=True)
    assert ids(root) == list(range(9))


def test_a_part_with_other_content_than_was_written_is_refused(tmp_path):
    """Whole, packed and in its place: only the checksum in the manifest tells."""
    root = made_now(tmp_path / "t", "json")
    _, parts = main_and_parts(root, it.Table.open(root).version, "json")
    text = unpack(parts[1].read_bytes(), name=parts[1].name)
    changed = text.replace(b'"numRecords":1', b'"numRecords":7')
    assert changed != text
    parts[1].write_bytes(pack(changed, Options.of({}).compression))
    assert it.Table.open(root).count() == 9
