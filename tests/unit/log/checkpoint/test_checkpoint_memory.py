"""Writing a checkpoint takes memory for some chunks of lines, not for the table."""

from __future__ import annotations

import hashlib
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest

from indextables.log.adds.lines import CHUNK_LINES, join_lines, line_array
from indextables.log.checkpoint.json_document import PART_OPENING, encode_manifest
from indextables.log.checkpoint.parts import JsonParts
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import action_to_wire
from indextables.options import CompressionOptions
from indextables.storage.envelope import pack
from support.builder import SCHEMA

FILES = 120_000
NOTE = "n" * 200


def lines(begin: int, end: int) -> list[bytes]:
    return [
        f'{{"path":"{at:07d}.split","size":{at},"numRecords":1,"minValues":{{"name":"{NOTE}"}}}}'.encode()
        for at in range(begin, end)
    ]


def write_base(directory: Path) -> TransactionLog:
    """A table whose checkpoint of many files was written by somebody else, in one part."""
    log = TransactionLog.open(str(directory), {"checkpoint.enabled": "false"})
    log.initialize(SCHEMA)
    where = directory / "_transaction_log"
    chunks = (join_lines(lines(at, min(at + CHUNK_LINES, FILES))) for at in range(0, FILES, CHUNK_LINES))
    part = where / f"{0:020d}.checkpoint.base.00001of00001.json"
    parts = JsonParts(where, FILES, {}, CompressionOptions())
    parts.write_all(pa.record_batch([line_array(chunk, part.name)], ["line"]) for chunk in chunks)
    data = pack(PART_OPENING, CompressionOptions()) + parts.files[0].path.read_bytes()
    parts.files[0].path.unlink()
    part.write_bytes(data)
    entry = {
        "path": part.name,
        "sha256": hashlib.sha256(data).hexdigest(),
        "actions": FILES,
        "sizeInBytes": len(data),
    }
    head = {"manifest": 1, "version": 0, "parts": [entry]}
    head |= {"protocol": action_to_wire(log.protocol())[1], "metaData": action_to_wire(log.metadata())[1]}
    (where / f"{0:020d}.checkpoint.json").write_bytes(encode_manifest(head))
    return TransactionLog.open(
        str(directory),
        {"checkpoint.enabled": "false", "checkpoint.format": "json", "checkpoint.actionsPerPart": "50000"},
    )


@pytest.mark.slow
def test_writing_a_checkpoint_never_holds_the_table(tmp_path):
    """C11: the most that is held at a time is a fraction of the text that flows through."""
    log = write_base(tmp_path)
    log.update_properties({"owner": "me"})
    text = FILES * len(lines(0, 1)[0])
    tracemalloc.start()
    try:
        assert log.checkpoint() == 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert log.snapshot(max_staleness_s=0).num_files == FILES
    assert len(list((tmp_path / "_transaction_log").glob(f"{1:020d}.checkpoint.*of00003.json"))) == 3
    assert peak < text / 2, f"{peak} bytes held for {text} bytes of adds"
