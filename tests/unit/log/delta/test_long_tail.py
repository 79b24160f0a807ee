"""Commits too large for this process: passed over for their heads, cut into pieces, decoded elsewhere."""

from __future__ import annotations

import json
import random
import re
import uuid

import pytest

from indextables.errors import CorruptLogError
from indextables.log.delta.commits import counts_nan, key_of
from indextables.log.delta.dialect import DELTA
from indextables.log.delta.long_tail import scan_commit
from indextables.log.format.dialect import LogFile
from indextables.log.replay.rule import reduce_tail
from indextables.model.actions import AddAction, RemoveAction
from indextables.storage.store import open_store
from support.deltahistories import random_log
from support.deltatables import LOG, DeltaLog, add, remove, schema_string


def commits_of(log):
    store = log.store
    metas = {meta.path.rpartition("/")[2]: meta for meta in store.list_level(LOG)}
    return [
        LogFile(name, int(name[:20]), "commit", meta.size)
        for name, meta in sorted(metas.items())
        if re.fullmatch(r"[0-9]{20}\.json", name)
    ]


@pytest.mark.parametrize("seed", [4, 6, 7, 13, 25, 34])
def test_the_pieces_of_commits_reduce_to_what_the_commits_reduce_to(seed):
    """Cut at any line: what a later piece says of a file counts, and in a piece what comes last."""
    log = random_log(open_store(f"memory://{uuid.uuid4()}"), random.Random(seed), 12)
    files = commits_of(log)
    assert len(files) > 1
    plain = [
        (
            file.version,
            DELTA.decode_commit(log.store.get(f"{LOG}/{file.name}"), name=file.name, version=file.version),
        )
        for file in files
    ]
    near = reduce_tail(plain, DELTA)
    scanned = [(file, scan_commit(log.store, file, read_bytes=700, piece_bytes=900)) for file in files]
    newest = {}
    for _, found in scanned:
        for piece in found.pieces:
            files = [item for item in piece.actions(log.store) if isinstance(item, AddAction | RemoveAction)]
            newest |= {key_of(action): action for action in files}
    live = {key: action for key, action in newest.items() if isinstance(action, AddAction)}
    assert live.keys() == near.adds.keys()
    assert all(live[key].size == near.adds[key].size for key in live)
    assert newest.keys() - live.keys() == near.removed
    heads = reduce_tail([(file.version, found.heads) for file, found in scanned], DELTA)
    assert (heads.protocol, heads.metadata, heads.txns) == (near.protocol, near.metadata, near.txns)
    assert sum(found.adds for _, found in scanned) == sum(
        isinstance(action, AddAction) for _, actions in plain for action in actions
    )


def test_heads_are_found_however_the_line_is_written():
    """Spaces, actions written as null beside the one that counts, names of files that look like actions."""
    log = DeltaLog(open_store(f"memory://{uuid.uuid4()}"), schema_string(n="long"))
    metadata = {**log.metadata, "configuration": {"k": "v"}}
    lines = [
        json.dumps({"add": None, "metaData": metadata}), ' { "add" : ' + json.dumps(add("add")["add"]) + "}",
        json.dumps({"txn": {"appId": "add", "version": 3}}), json.dumps(remove("x")), "",
        json.dumps({"commitInfo": {"engineInfo": "Apache-Spark/4.0.0 Delta-Lake/4.0.0"}}),
    ]  # fmt: skip
    log.store.put(f"{LOG}/{1:020d}.json", "\n".join(lines).encode())
    scanned = scan_commit(log.store, commits_of(log)[1])
    tail = reduce_tail([(1, scanned.heads)], DELTA)
    assert (scanned.adds, scanned.removes) == (1, 1)
    assert tail.metadata.configuration == {"k": "v"}
    assert tail.txns["add"].version == 3
    (piece,) = scanned.pieces
    adds = [action for action in piece.actions(log.store) if isinstance(action, AddAction)]
    assert [counts_nan(action) for action in adds] == [True]


def test_in_a_compaction_file_the_first_line_about_a_file_counts_however_it_is_cut():
    log = DeltaLog(open_store(f"memory://{uuid.uuid4()}"), schema_string(n="long"))
    lines = [
        add("f", size=2),
        remove("g"),
        *(add(f"h{number}") for number in range(5)),
        add("f", size=1),
        add("g"),
    ]
    name = f"{0:020d}.{1:020d}.compacted.json"
    log.store.put(f"{LOG}/{name}", "".join(json.dumps(line) + "\n" for line in lines).encode())
    size = log.store.head(f"{LOG}/{name}").size
    scanned = scan_commit(log.store, LogFile(name, 0, "compacted", size, last_version=1), 100, 100)
    assert len(scanned.pieces) > 2
    newest = {action.path: action for piece in scanned.pieces for action in piece.actions(log.store)}
    assert newest["f"].size == 2
    assert isinstance(newest["g"], RemoveAction)


def test_an_empty_commit_is_still_an_error():
    """K5: a lost commit is never passed over."""
    log = DeltaLog(open_store(f"memory://{uuid.uuid4()}"), schema_string(n="long"))
    log.store.put(f"{LOG}/{1:020d}.json", b"\n")
    with pytest.raises(CorruptLogError, match="empty"):
        scan_commit(log.store, commits_of(log)[1])
