"""Names in a Delta log: which files belong to it, which make a checkpoint, and what a path means."""

import pyarrow as pa
import pytest

import indextables as it
from indextables.log.delta.dialect import DELTA
from indextables.log.delta.paths import decode_path, parse_log_name
from indextables.log.delta.source import shortcut
from indextables.model.actions import AddAction, RemoveAction
from indextables.storage.store import ObjectMeta

V = "00000000000000000007"
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def log_files(*names):
    found = [DELTA.parse_name(name, ObjectMeta(f"_delta_log/{name}", 10, 1_000, None)) for name in names]
    return [file for file in found if file is not None]


@pytest.mark.parametrize(
    ("name", "kind", "format_"),
    [
        (f"{V}.json", "commit", "json"),
        (f"{V}.checkpoint.parquet", "classic", "parquet"),
        (f"{V}.checkpoint.0000000001.0000000002.parquet", "multipart", "parquet"),
        (f"{V}.checkpoint.{UUID}.json", "uuid", "json"),
        (f"{V}.checkpoint.{UUID}.parquet", "uuid", "parquet"),
        (f"{V}.00000000000000000009.compacted.json", "compacted", "json"),
        (f"{V}.crc", "crc", "json"),
    ],
)
def test_every_kind_of_log_file_is_known_by_its_name(name, kind, format_):
    """K7: names of the Delta protocol."""
    found = parse_log_name(name)
    assert (found.kind, found.version, found.format) == (kind, 7, format_)


@pytest.mark.parametrize(
    "name",
    [
        "_last_checkpoint",
        "7.json",
        f".{V}.json.tmp",
        f"{V}.{UUID}.json",
        f"{V}.checkpoint.1.2.parquet",
        f"{V}.checkpoint.0000000003.0000000002.parquet",
        f"{V}.checkpoint.0000000001.0000000002.{UUID}.parquet",
        f"{V}.00000000000000000007.compacted.json",
        f"{V}.00000000000000000009.stats.json",
        f"{V}.checkpoint.json",
        "٠" * 20 + ".json",
    ],
)
def test_other_names_are_not_the_logs(name):
    """A6: staged commits, temporary files and strangers are left alone."""
    assert parse_log_name(name) is None


def test_a_multipart_checkpoint_counts_only_with_all_its_parts():
    """K7: an incomplete multi-part checkpoint is none."""
    whole = [f"{V}.checkpoint.{part:010d}.0000000003.parquet" for part in (1, 2, 3)]
    assert DELTA.checkpoints(log_files(*whole[:2])) == []
    (found,) = DELTA.checkpoints(log_files(*reversed(whole)))
    assert [file.name for file in found.files] == whole


def test_parts_of_two_attempts_with_different_counts_never_mix():
    """K7: two racing writers may cut one checkpoint differently."""
    names = [
        f"{V}.checkpoint.0000000001.0000000002.parquet",
        f"{V}.checkpoint.0000000002.0000000003.parquet",
        f"{V}.checkpoint.0000000003.0000000003.parquet",
    ]
    assert DELTA.checkpoints(log_files(*names)) == []


def test_newer_checkpoints_come_first_and_single_files_before_parts():
    """K7: two checkpoints at one version."""
    names = [
        f"{V}.checkpoint.0000000001.0000000001.parquet",
        f"{V}.checkpoint.parquet",
        f"{V}.checkpoint.{UUID}.json",
        "00000000000000000008.checkpoint.parquet",
    ]
    found = [checkpoint.files[0].name for checkpoint in DELTA.checkpoints(log_files(*names))]
    assert found == [names[3], names[2], names[1], names[0]]


@pytest.mark.parametrize(
    ("written", "real"),
    [
        ("a.parquet", "a.parquet"),
        ("p=a%20b/x.parquet", "p=a b/x.parquet"),
        ("p=%2520/x.parquet", "p=%20/x.parquet"),
        ("p=a+b/x.parquet", "p=a+b/x.parquet"),
        ("p=%C3%A9/x.parquet", "p=é/x.parquet"),
        ("p=100%/x.parquet", "p=100%/x.parquet"),
        ("p=%ff/x.parquet", "p=%ff/x.parquet"),
    ],
)
def test_paths_are_decoded_once(written, real):
    """K2: the key is the decoded path."""
    assert decode_path(written) == real


def test_commits_carry_decoded_paths():
    """K2: an add written encoded and a remove written plain are about one file."""
    lines = b'{"add":{"path":"p=a%20b","size":1}}\n{"remove":{"path":"p=a b"}}\n'
    add, remove = DELTA.decode_commit(lines, name="x.json", version=0)
    assert isinstance(add, AddAction)
    assert isinstance(remove, RemoveAction)
    assert DELTA.key(add) == DELTA.key(remove) == ("p=a b", None)


def test_the_offset_is_part_of_a_files_identity():
    """K2: two vectors in one deletion vector file differ by their offset alone."""
    keys = set()
    for offset in (None, 1, 35):
        vector = {"storageType": "u", "pathOrInlineDv": "ab", "sizeInBytes": 1, "cardinality": 1}
        descriptor = vector if offset is None else {**vector, "offset": offset}
        keys.add(DELTA.key(AddAction(path="x", deletion_vector=descriptor)))
    assert keys == {("x", "uab"), ("x", "uab@1"), ("x", "uab@35")}


def test_a_hint_is_read_and_nonsense_is_none():
    """C5: `_last_checkpoint` may be anything."""
    hint = DELTA.decode_hint(b'{"version":3,"size":8,"numOfAddFiles":4,"checksum":"x"}')
    assert (hint.version, hint.num_files, hint.format, hint.checksum) == (3, 4, "parquet", None)
    for nonsense in (b"", b"{", b"[]", b'{"version":"x"}', b"null", b'"3"'):
        assert DELTA.decode_hint(nonsense) is None


def commits_and(*compacted):
    commits = [f"{version:020d}.json" for version in range(3, 13)]
    files = log_files(*commits, *(f"{low:020d}.{high:020d}.compacted.json" for low, high in compacted))
    return [file for file in files if file.kind == "commit"], [
        file for file in files if file.kind == "compacted"
    ]


@pytest.mark.parametrize(
    ("compacted", "read"),
    [
        ([], [(v, v) for v in range(3, 13)]),
        ([(3, 6)], [(3, 6), *((v, v) for v in range(7, 13))]),
        ([(3, 6), (3, 9), (7, 11)], [(3, 9), (10, 10), (11, 11), (12, 12)]),
        ([(0, 6), (4, 8)], [(3, 3), (4, 8), *((v, v) for v in range(9, 13))]),
        ([(3, 12), (5, 20)], [(v, v) for v in range(3, 13)]),
    ],
)
def test_compaction_files_stand_in_for_the_commits_they_cover(compacted, read):
    """K7: an optional shortcut; the newest commit is read itself, ranges beyond the version are left alone."""
    chosen = shortcut(*commits_and(*compacted))
    assert [(file.version, file.last_version or file.version) for file in chosen] == read


@pytest.mark.parametrize("name", ['q"uote', "back\\slash", "tab\tbed"])
def test_statistics_of_a_column_with_an_odd_name_skip_files(tmp_path, name):
    from deltalake import write_deltalake

    path = str(tmp_path / "t")
    for value in (1, 2, 3):
        write_deltalake(path, pa.table({"id": [value], name: [value]}), mode="append")
    table = it.DeltaTable.open(path)
    where = f"`{name}` = 2"
    assert table.scan(where, ["id"]).read_all()["id"].to_pylist() == [2]
    assert table.files(where).num_rows == 1
