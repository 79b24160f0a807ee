"""Logs that other readers accept although no writer should make them: paths, lines and documents."""

from __future__ import annotations

import json
import uuid

import pyarrow as pa
import pytest

import indextables as it
from indextables.log.delta.dialect import DELTA
from indextables.log.delta.files.text import _texts_by_duckdb, texts_by_msgspec
from indextables.log.delta.long_tail import scan_commit
from indextables.log.delta.snapshot import open_snapshot
from indextables.model.actions import AddAction, CommitInfo, MetadataAction, RemoveAction
from indextables.options import Options
from indextables.storage.store import open_store
from support.deltarows import put_file
from support.deltatables import DeltaLog, add, remove, schema_string

OPTIONS = Options.of(None)


def new_log(**columns):
    return DeltaLog(open_store(f"memory://{uuid.uuid4()}"), schema_string(**columns))


def kept(log, where, engine="columnar"):
    found = open_snapshot(log.store.uri, options=OPTIONS).plan(where, engine=engine).files
    return sorted(found.column("path").to_pylist())


def dotted(action, path):
    (kind,) = action
    return {kind: {**action[kind], "path": path}}


@pytest.mark.parametrize("checkpointed", [False, True])
def test_the_folder_that_is_a_dot_is_no_part_of_a_path(checkpointed):
    log = new_log(id="long")
    for name, written in {"a": "./a", "b": "p/./b", "c": "././c%20d", "e": "e"}.items():
        path = {"b": "p/b", "c": "c d"}.get(name, name)
        log.commit(dotted(put_file(log, path, pa.table({"id": [ord(name)]})), written))
    if checkpointed:
        log.checkpoint("classic")
        log.drop_commits(log.version)
    assert kept(log, None) == kept(log, None, "reference") == ["a", "c d", "e", "p/b"]
    table = it.DeltaTable.open(log.store.uri)
    assert sorted(table.scan().read_all().column("id").to_pylist()) == [ord(name) for name in "abce"]
    log.commit(remove("a"), dotted(remove("e"), "./e"))
    assert kept(log, None) == kept(log, None, "reference") == ["c d", "p/b"]


@pytest.mark.parametrize("unusual", [False, True], ids=["plain", "beside an unusual line"])
def test_a_line_with_several_actions_keeps_them_all(unusual):
    log = new_log(id="long")
    log.commit(add("old"))
    metadata = {**log.metadata, "configuration": {"x": "y"}}
    line = {**add("new"), **remove("old"), "metaData": metadata, "commitInfo": {"operation": "ODD"}}
    # A number where statistics belong is read by the general decoder.
    rest = [dotted(add("third"), "third")] if not unusual else [{"add": {**add("third")["add"], "stats": 17}}]
    lines = "".join(json.dumps(item) + "\n" for item in (line, *rest))
    log.store.put(f"_delta_log/{2:020d}.json", lines.encode())
    assert kept(log, None) == kept(log, None, "reference") == ["new", "third"]
    table = it.DeltaTable.open(log.store.uri)
    assert table.metadata.configuration == {"x": "y"}
    assert table.history().column("operation").to_pylist()[0] == "ODD"


def test_a_line_with_several_actions_is_counted_whole_where_lines_are_not_decoded():
    log = new_log(id="long")
    line = {**add("new"), **remove("old"), "metaData": log.metadata, "commitInfo": {"operation": "ODD"}}
    log.store.put(f"_delta_log/{1:020d}.json", (json.dumps(line) + "\n").encode())
    scanned = scan_commit(log.store, DELTA.commit_file(log.store, 1))
    assert (scanned.adds, scanned.removes) == (1, 1)
    assert {MetadataAction, CommitInfo} <= {type(action) for action in scanned.heads}
    kinds = [action for piece in scanned.pieces for action in piece.actions(log.store)]
    assert [isinstance(action, (AddAction, RemoveAction)) for action in kinds].count(True) == 2


DOCUMENTS = {
    "json text": '{"numRecords":1,"minValues":{"s":"{\\"a\\":1}"},"maxValues":{"s":"{\\"a\\":3}"},"nullCount":{"s":0}}',
    "list text": '{"numRecords":1,"minValues":{"s":"[1]"},"maxValues":{"s":"[3]"},"nullCount":{"s":0}}',
    "an object": '{"numRecords":1,"minValues":{"s":{"a":1}},"maxValues":{"s":{"a":3}},"nullCount":{"s":0}}',
    "a list": '{"numRecords":1,"minValues":{"s":[1]},"maxValues":{"s":[3]},"nullCount":{"s":0}}',
    "equal keys": '{"numRecords":1,"minValues":{"s":"a","s":"p"},"maxValues":{"s":"b","s":"q"},"nullCount":{"s":0}}',
    "equal groups": '{"numRecords":1,"minValues":{"s":"a"},"maxValues":{"s":"b"},"maxValues":{"s":"q"},"nullCount":{"s":0}}',
    "a trailing comma": '{"numRecords":1,"minValues":{"s":"a",},"maxValues":{"s":"b"} , }',
    "not a number": '{"numRecords":1,"minValues":{"s":"a"},"maxValues":{"s":"b"},"x":NaN}',
    "half a pair": '{"numRecords":1,"minValues":{"s":"a\\ud800"},"maxValues":{"s":"b"}}',
    "plain": '{"numRecords":1,"minValues":{"s":"a"},"maxValues":{"s":"b"},"nullCount":{"s":0}}',
}
FILTERS = (
    "s = '{\"a\":2}'",
    "s = '[2]'",
    "s = 'pp'",
    "s = 'aa'",
    "s > 'zz'",
    "s < '!'",
    "s IS NULL",
    "s LIKE '{%'",
)


def test_both_readers_of_documents_give_odd_ones_the_same_meaning():
    """Above twenty thousand documents DuckDB reads them."""
    documents = pa.array([None, *DOCUMENTS.values()])
    paths = [("numRecords",), ("minValues", "s"), ("maxValues", "s"), ("nullCount", "s")]
    few = [texts.to_pylist() for texts in texts_by_msgspec(documents, paths)]
    assert [texts.to_pylist() for texts in _texts_by_duckdb(documents, paths)] == few


def test_an_odd_document_means_the_same_however_many_files_there_are(tmp_path):
    """Above fifty thousand files DuckDB cuts statistics out of the file of a checkpoint."""
    small, large = (DeltaLog(open_store(tmp_path / name), schema_string(s="string")) for name in ("s", "l"))
    for log, count in ((small, 0), (large, 60_000)):
        for name, text in DOCUMENTS.items():
            log.live[name, None] = {**add(name)["add"], "stats": text}
        filler = add("x", stats={"numRecords": 1, "minValues": {"s": "~"}, "maxValues": {"s": "~"}})["add"]
        log.live |= {(f"x{at}", None): {**filler, "path": f"x{at}"} for at in range(count)}
        log.checkpoint("classic")
    for where in FILTERS:
        few = kept(small, where)
        many = [path for path in kept(large, where) if not path.startswith("x")]
        assert few == many == kept(small, where, "reference"), where
    unknown = {"an object", "a list", "a trailing comma", "not a number", "half a pair"}
    assert set(kept(small, FILTERS[0])) == unknown | {"json text"}
    assert set(kept(large, FILTERS[2])) == unknown | {"equal keys", "equal groups"}
