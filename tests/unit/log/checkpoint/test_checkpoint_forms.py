"""What a checkpoint holds, in which forms it is written, and which it is read in."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from indextables.errors import CorruptLogError
from indextables.log.checkpoint.json_document import read_document
from indextables.log.checkpoint.reader import NativeCheckpointReader
from indextables.log.format.dialect import Checkpoint, LogFile
from indextables.log.state import load_state
from indextables.model.actions import AddAction, SkipAction, encode_action
from indextables.storage.envelope import is_packed, unpack
from support.builder import HINT, LOG_DIR, LogBuilder, add, checkpoint_path, paths_of

LONG = "x" * 2000
FORMS = [
    {},
    {"transaction.compression.enabled": "false"},
    {"checkpoint.actionsPerPart": "3", "checkpoint.format": "json"},
    {"checkpoint.format": "parquet"},
    {"checkpoint.format": "parquet", "checkpoint.actionsPerPart": "3"},
]


def form_of(options: dict[str, str]) -> str:
    return options.get("checkpoint.format", "json")


def document_of(builder: LogBuilder, version: int) -> dict[str, Any]:
    return json.loads(unpack(builder.store.get(checkpoint_path(version)), name="x"))


def names(builder: LogBuilder) -> list[str]:
    return [meta.path.rpartition("/")[2] for meta in builder.store.list_level(LOG_DIR)]


@pytest.fixture(params=FORMS, ids=lambda options: "-".join(options.values()) or "default")
def built(request) -> LogBuilder:
    """A log of eight files, two of them removed, in each form of checkpoint."""
    builder = LogBuilder(options={"checkpoint.enabled": "false", **request.param})
    return builder.create().append(*(f"f{n}" for n in range(8))).remove("f1", "f6").checkpoint()


def test_a_checkpoint_is_one_json_document_with_live_adds_only():
    """C2: protocol, metaData and add; mergeskip and txn ride along."""
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().append("b", "a", "c").remove("b")
    builder.checkpoint()
    document = document_of(builder, 2)
    assert [item["path"] for item in document["add"]] == ["a", "c"]
    assert document["protocol"] == {"minReaderVersion": 2, "minWriterVersion": 2}
    assert document["metaData"]["id"] == builder.log().metadata().id
    assert document["mergeskip"] == document["txn"] == []
    assert "remove" not in document


def test_every_form_gives_the_files_back(built):
    """C2, C13."""
    log = built.log()
    assert paths_of(log) == ["f0", "f2", "f3", "f4", "f5", "f7"]
    assert log.snapshot().segment.checkpoint is not None
    assert [item.path for item in log.snapshot().adds(["f4", "f1", "nothing"])] == ["f4"]


def test_files_that_were_removed_do_not_count_towards_parquet():
    """With `auto`, the live files decide, not those of the last checkpoint and all that came since."""
    options = {"checkpoint.enabled": "false", "checkpoint.actionsPerPart": "3"}
    builder = LogBuilder(options=options).create().append("a", "b", "c").checkpoint()
    log = builder.append("d").remove("a", "b").log()
    assert log.snapshot().num_files_hint == 4
    log.checkpoint()
    snapshot = builder.log().snapshot()
    assert paths_of(builder.log()) == ["c", "d"]
    assert snapshot.segment.checkpoint.format == "json"
    assert snapshot.protocol.min_writer_version == 2


def test_the_hint_describes_the_checkpoint(built):
    """C4: uncompressed; version, size, sizeInBytes, numFiles, createdTime, checksum, format, parts."""
    hint = json.loads(built.store.get(HINT))
    form = hint["format"]
    main = built.store.get(checkpoint_path(hint["version"], form))
    parts = [name for name in names(built) if ".checkpoint." in name and "of0" in name]
    stored = len(main) + sum(len(built.store.get(f"{LOG_DIR}/{name}")) for name in parts)
    assert hint["checksum"] == hashlib.sha256(main).hexdigest()
    assert (hint["numFiles"], hint["size"], hint["sizeInBytes"]) == (6, 8, stored)
    assert hint["createdTime"] == built.clock.now_ms()
    assert hint.get("parts", 0) == len(parts)


def test_many_actions_make_a_manifest_and_parts():
    """C7: names and fields as the format says; parts are documents themselves."""
    options = {"checkpoint.enabled": "false", "checkpoint.actionsPerPart": "3", "checkpoint.format": "json"}
    builder = LogBuilder(options=options)
    builder.create().append(*(f"f{n}" for n in range(8))).checkpoint()
    manifest = document_of(builder, 1)
    assert (manifest["manifest"], manifest["version"]) == (1, 1)
    assert [part["actions"] for part in manifest["parts"]] == [3, 3, 2]
    found = []
    for number, part in enumerate(manifest["parts"], start=1):
        prefix, uuid, place, suffix = part["path"].rsplit(".", 3)
        assert (prefix, place, suffix) == (f"{1:020d}.checkpoint", f"{number:05d}of00003", "json")
        data = builder.store.get(f"{LOG_DIR}/{part['path']}")
        assert part["sha256"] == hashlib.sha256(data).hexdigest()
        assert part["sizeInBytes"] == len(data)
        found += [item["path"] for item in json.loads(unpack(data, name="x"))["add"]]
    assert found == [f"f{n}" for n in range(8)]


@pytest.mark.parametrize(("files", "parts"), [(0, 0), (1, 0), (3, 0), (4, 2), (6, 2), (7, 3)])
@pytest.mark.parametrize("form", ["json", "parquet"])
def test_parts_are_full_but_for_the_last(files, parts, form):
    """C7: exactly actionsPerPart actions are still one file."""
    options = {"checkpoint.enabled": "false", "checkpoint.actionsPerPart": "3", "checkpoint.format": form}
    builder = LogBuilder(options=options).create().append("gone", *(f"f{n}" for n in range(files)))
    builder.remove("gone").checkpoint()
    assert len([name for name in names(builder) if "of0" in name]) == parts
    assert paths_of(builder.log()) == [f"f{n}" for n in range(files)]


def test_compression_follows_the_options_and_the_hint_never_does():
    """G1."""
    packed = LogBuilder(options={"checkpoint.enabled": "false"}).create().append("a").checkpoint()
    assert is_packed(packed.store.get(checkpoint_path(1)))
    assert not is_packed(packed.store.get(HINT))
    plain = LogBuilder(options={"checkpoint.enabled": "false", "transaction.compression.enabled": "false"})
    plain.create().append("a", "b").checkpoint()
    text = plain.store.get(checkpoint_path(1))
    assert [item["path"] for item in json.loads(text)["add"]] == ["a", "b"]
    assert text.count(b"\n{") == 2, "one action per line"


@pytest.mark.parametrize("level", [1, 3, 6, 9])
def test_every_gzip_level_is_read(level):
    """G3."""
    options = {"checkpoint.enabled": "false", "transaction.compression.gzip.level": str(level)}
    builder = LogBuilder(options=options).create().append(50).checkpoint()
    assert len(paths_of(builder.log())) == 50


def rewritten(builder: LogBuilder, version: int, data: bytes) -> list[str]:
    """The live paths when a version's checkpoint has other bytes and nothing else is left to read."""
    builder.store.put(checkpoint_path(version), data)
    builder.hint(None)
    for number in range(version):
        builder.store.delete(f"{LOG_DIR}/{number:020d}.json")
    return paths_of(builder.log())


def test_other_layouts_of_the_document_are_read():
    """C2: pretty-printed, keys in any order, as one line, with a byte-order mark; a list; JSON lines."""
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().append("b", "a").checkpoint()
    document = document_of(builder, 1)
    turned = {key: document[key] for key in ("add", "metaData", "protocol")}
    turned["add"].reverse()
    kinds = [{"protocol": document["protocol"]}, {"metaData": document["metaData"]}]
    actions = [*kinds, {"add": {"path": "gone"}}, *({"add": item} for item in document["add"])]
    actions += [{"remove": {"path": "gone"}}, {"commitInfo": {"operation": "WRITE"}}]
    lines = "\n".join(json.dumps(action) for action in actions)
    for text in (
        json.dumps(turned), json.dumps(turned, indent=2), "\ufeff" + json.dumps(turned), json.dumps(actions),
        json.dumps(actions, indent=1), lines, lines.replace("\n", "\r\n\n") + "\n",
    ):  # fmt: skip
        assert rewritten(builder, 1, text.encode()) == ["a", "b"]
        found = builder.log().snapshot()
        assert found.files(engine="columnar").equals(found.files(engine="reference"))


def test_of_two_adds_of_a_path_in_a_checkpoint_the_later_counts():
    """A8: in the document form of another writer too, whatever the order of paths."""
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().append("b", "a").checkpoint()
    document = document_of(builder, 1)
    del document["order"]
    document["add"] = [{"path": "b", "size": 1}, {"path": "a", "size": 2}, {"path": "b", "size": 3}]
    lines = ",\n".join(msgspec.json.encode(item).decode() for item in document.pop("add"))
    head = json.dumps(document)[:-1]
    assert rewritten(builder, 1, f'{head},\n"add":[\n{lines}\n]}}\n'.encode()) == ["a", "b"]
    snapshot = builder.log().snapshot()
    assert snapshot.files(engine="columnar").column("size").to_pylist() == [2, 3]
    assert builder.log().checkpoint() == 1


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"{}", b'{"add":[]}', b"null", b'"x"', b"\x01\x01abc", b"[1]"]
)
def test_what_is_no_checkpoint_is_an_error_that_names_the_file(text):
    """C6: never an empty table."""
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().append("a").checkpoint()
    builder.store.put(checkpoint_path(1), text)
    reference = Checkpoint(1, "json", (LogFile(f"{1:020d}.checkpoint.json", 1, "checkpoint", len(text)),))
    with pytest.raises(CorruptLogError, match=r"checkpoint\.json"):
        NativeCheckpointReader().head(builder.store, reference)
    assert paths_of(builder.log()) == ["a"]


def test_every_truncation_of_a_checkpoint_is_noticed():
    """C6: without a checksum to help, at every length."""
    for options in FORMS[:2]:
        builder = (
            LogBuilder(options={"checkpoint.enabled": "false", **options}).create().append(4).checkpoint()
        )
        data = builder.store.get(checkpoint_path(1))
        for length in range(1, len(data) - 1):
            builder.store.put(checkpoint_path(1), data[:length])
            file = LogFile(f"{1:020d}.checkpoint.json", 1, "checkpoint", length)
            with pytest.raises(CorruptLogError):
                list(NativeCheckpointReader().adds(builder.store, Checkpoint(1, "json", (file,))))


def test_unknown_fields_survive_checkpoint_after_checkpoint(built):
    """Issue 2, codec: what a newer writer added is kept on rewrite, its order and form included."""
    line = b'{"path":"new","future":{"b":[1,2.50],"a":null},"size":1}'
    newest = max(int(name[:20]) for name in names(built) if len(name) == 25)
    built.store.put(f"{LOG_DIR}/{newest + 1:020d}.json", b'{"add":' + line + b'}\n{"commitInfo":{}}\n')
    for _ in range(2):
        built.checkpoint()
        found = [item for item in built.log().snapshot().adds() if item.path == "new"]
        assert found[0].extra == {"future": {"b": [1, 2.5], "a": None}}
        built.append(1)


def test_long_statistics_are_cut_in_the_checkpoint_and_nowhere_else():
    """C10: version files stay as they are; partition columns are never cut; other fields are untouched."""
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("part", pa.string())])
    off = {"checkpoint.enabled": "false", "stats.truncation.enabled": "false"}
    builder = LogBuilder(options=off).create(schema, ["part"])
    wide = add(
        "wide",
        partition_values={"part": LONG},
        min_values={"id": "1", "name": LONG, "part": LONG},
        max_values={"id": "2", "name": LONG, "part": LONG},
        extra={"future": 1},
    )
    builder.append(wide, add("small", min_values={"name": "a"}))
    before = builder.store.get(f"{LOG_DIR}/{1:020d}.json")
    log = builder.log(**{"stats.truncation.enabled": "true"})
    log.checkpoint()
    assert builder.store.get(f"{LOG_DIR}/{1:020d}.json") == before
    small, found = builder.log().snapshot().adds()
    assert small.min_values == {"name": "a"}
    assert found.min_values == {"id": "1", "part": LONG}
    assert found.max_values == {"id": "2", "part": LONG}
    assert (found.partition_values, found.extra) == ({"part": LONG}, {"future": 1})


def test_skips_that_matter_and_transactions_ride_along(built):
    """C2, E9: expired skips go with their file."""
    log = built.log()
    log.record_skipped_file("f0", "broken", "merge", cooldown_hours=24)
    log.record_skipped_file("f0", "broken", "merge", cooldown_hours=24)
    log.record_skipped_file("no longer live", "broken", "merge", cooldown_hours=1)
    built.wait(hours=2)
    built.checkpoint()
    state = load_state(built.log()._source)
    assert state.head is not None
    assert [(skip.path, skip.skip_count) for skip in state.head.skips] == [("f0", 2)]
    assert isinstance(state.head.skips[0], SkipAction)


def test_a_sound_checkpoint_is_kept_and_pointed_to(built):
    """Its bytes stay, and the hint has its checksum."""
    hint = json.loads(built.store.get(HINT))
    path = checkpoint_path(hint["version"], hint["format"])
    before = built.store.get(path)
    count = len(names(built))
    built.hint(None).checkpoint()
    assert built.store.get(path) == before
    assert json.loads(built.store.get(HINT))["checksum"] == hint["checksum"]
    assert len(names(built)) == count


def test_a_damaged_checkpoint_is_replaced(built):
    hint = json.loads(built.store.get(HINT))
    path = checkpoint_path(hint["version"], hint["format"])
    built.store.put(path, built.store.get(path)[:-20])
    built.log().checkpoint()
    data = built.store.get(path)
    assert json.loads(built.store.get(HINT))["checksum"] == hashlib.sha256(data).hexdigest()
    assert paths_of(built.log()) == ["f0", "f2", "f3", "f4", "f5", "f7"]


def test_the_hint_moves_only_forward_unless_it_lies(built):
    """C4, C5: a later checkpoint that exists keeps it; one that does not exist loses it."""
    hint = json.loads(built.store.get(HINT))
    later = checkpoint_path(hint["version"] + 5, hint["format"])
    ahead = json.dumps({**hint, "version": hint["version"] + 5}).encode()
    built.hint(ahead)
    built.store.put(later, built.store.get(checkpoint_path(hint["version"], hint["format"])))
    built.store.delete(checkpoint_path(hint["version"], hint["format"]))
    log = built.log()
    snapshot = log.snapshot(version=hint["version"])
    from indextables.log.checkpoint.writer import write_checkpoint

    write_checkpoint(snapshot, built.log().options, built.clock)
    assert built.store.get(HINT) == ahead
    built.store.delete(later)
    write_checkpoint(snapshot, built.log().options, built.clock)
    assert json.loads(built.store.get(HINT))["version"] == hint["version"]


def test_lines_are_kept_byte_for_byte_from_one_checkpoint_to_the_next():
    """C11: an add that nothing touched is copied, not built again."""
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().append("a", "b").checkpoint()
    data = builder.store.get(checkpoint_path(1))
    text = b"".join(read_document(data, "x").chunks)
    odd = text.replace(b'"size":100', b'"size" : 100')
    head = json.dumps({key: value for key, value in document_of(builder, 1).items() if key != "add"})[:-1]
    builder.store.put(
        checkpoint_path(1), head.encode() + b',\n"add":[\n' + odd.removesuffix(b",\n") + b"\n]}\n"
    )
    builder.hint(None)
    log = builder.log()
    log.add_files([add("c")])
    log.checkpoint()
    assert odd in b"".join(read_document(builder.store.get(checkpoint_path(2)), "x").chunks)


def test_paths_with_escapes_and_other_scripts_are_found():
    """A8, I1: removed and replaced paths are matched as text, not as JSON."""
    paths = ['q"uote', "back\\slash", "Größe/ключ", "tab\tand\nnewline", "p" * 700, "\U0001f600", "plain"]
    for options in FORMS:
        builder = (
            LogBuilder(options={"checkpoint.enabled": "false", **options})
            .create()
            .append(*paths)
            .checkpoint()
        )
        builder.remove(*paths[:3]).append(add(paths[3], size=7)).checkpoint()
        assert paths_of(builder.log()) == sorted(paths[3:], key=str.encode)
        snapshot = builder.log().snapshot()
        assert snapshot.files(engine="columnar").equals(snapshot.files(engine="reference"))


def test_an_add_line_is_the_action_without_its_key():
    """C2."""
    from indextables.log.adds.lines import decode_add, encode_add

    action = AddAction(path="a", extra={"x": 1})
    assert b'{"add":' + encode_add(action) + b"}" == encode_action(action)
    assert decode_add(encode_add(action), "x") == action
