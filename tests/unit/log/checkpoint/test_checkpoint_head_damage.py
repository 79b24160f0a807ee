"""Every changed byte of a checkpoint's head is noticed, or changes nothing, even where the hint is gone."""

from __future__ import annotations

import logging

import pytest

from indextables.errors import CorruptLogError
from indextables.log.format.dialect import NATIVE
from indextables.storage.envelope import pack
from support.builder import HINT, LogBuilder, checkpoint_path

FORMS = {
    "compressed": ("json", {}),
    "Parquet": ("parquet", {"checkpoint.format": "parquet"}),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_changed_byte_of_the_head_leads_to_what_is_older(form, caplog):
    """C6: the schema, the properties and the protocol are as much the table as its files."""
    kind, options = FORMS[form]
    caplog.set_level(logging.CRITICAL)
    table = (
        LogBuilder(options={"checkpoint.enabled": "false", **options}).create().append("a", "b").checkpoint()
    )
    path = checkpoint_path(1, kind)
    sound, truth = table.store.get(path), table.log().snapshot()
    table.lose(HINT)
    places = [at for at in range(len(sound)) if at % 7 == 0 or sound[at - 4 : at] == b"type"]
    for at in places:
        table.store.put(path, sound[:at] + bytes([sound[at] ^ 0x81]) + sound[at + 1 :])
        found = table.log().snapshot()
        assert (found.metadata, found.protocol, found.adds()) == (
            truth.metadata,
            truth.protocol,
            truth.adds(),
        )


def test_a_schema_that_is_no_longer_one_is_damage_of_the_checkpoint():
    """C6: uncompressed and without a hint, nothing but the text itself can tell."""
    options = {"checkpoint.enabled": "false", "transaction.compression.enabled": "false"}
    table = LogBuilder(options=options).create().append("a").checkpoint().hint(None)
    text = table.store.get(checkpoint_path(1))
    table.store.put(
        checkpoint_path(1), text.replace(b'\\"type\\":\\"struct\\"', b'\\"tYpe\\":\\"struct\\"', 1)
    )
    assert [add.path for add in table.log().list_files()] == ["a"]
    table.store.put(checkpoint_path(1), text.replace(b"nullable", b"null\xffble", 1))
    assert [add.path for add in table.log().list_files()] == ["a"]


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\n", b"\xef\xbb\xbf\n"])
def test_a_compressed_commit_without_content_is_no_commit_without_changes(content):
    """A10: a file that lost its lines is damaged, as an empty file is."""
    from indextables.options import Options

    name = NATIVE.commit_name(1)
    with pytest.raises(CorruptLogError, match=r"0001\.json \(version 1\) holds no action"):
        NATIVE.decode_commit(pack(content, Options.of().compression), name=name, version=1)
