"""What this library could not read back is never written: one such line would take the whole table with it."""

from __future__ import annotations

import pytest

from indextables.errors import CommitError, ProtocolError
from indextables.model.actions import AddAction, TxnAction
from support.builder import LogBuilder, add, paths_of

UNREADABLE = {
    "no path": lambda log: log.add_files([add(None)]),
    "a path that is no text": lambda log: log.add_files([add(5)]),
    "a path that is no Unicode": lambda log: log.add_files([add("a\ud800")]),
    "a size that is no number": lambda log: log.add_files([add("a", size="large")]),
    "half a byte": lambda log: log.add_files([add("a", size=1.5)]),
    "more rows than 64 bits count": lambda log: log.add_files([add("a", num_records=1 << 70)]),
    "an extra field in the place of the path": lambda log: log.add_files([add("a", extra={"path": "b"})]),
    "an extra field that is no JSON": lambda log: log.add_files([add("a", extra={"x": object()})]),
    "user metadata that is no text": lambda log: log.add_files([add("a")], user_metadata=5),
    "a transaction of nobody": lambda log: log.add_files([add("a")], txn=TxnAction(app_id=None, version=1)),
    "a skip of no file": lambda log: log.record_skipped_file(None, "reason", "merge"),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_an_action_that_could_not_be_read_back_is_refused(what):
    """A10 begins at the writer: nothing is written and the table stays as it was."""
    table = LogBuilder().create().append("kept")
    before = table.names()
    with pytest.raises(CommitError, match="cannot be written"):
        UNREADABLE[what](table.log())
    assert table.names() == before
    assert paths_of(table.append("next").log()) == ["kept", "next"]


@pytest.mark.parametrize(("reader", "writer", "features"), [(999, 999, ()), (2, 999, ()), (3, 3, ("foo",))])
def test_a_protocol_beyond_this_version_is_refused(reader, writer, features):
    """B3: upwards, but not out of reach."""
    table = LogBuilder().create().append("kept")
    with pytest.raises(ProtocolError, match="lock itself out"):
        table.log().upgrade_protocol(reader, writer, features)
    assert paths_of(table.append("next").log()) == ["kept", "next"]


def test_numbers_and_flags_in_other_clothes_are_still_written():
    """A12: what a reader understands a writer may write."""
    table = LogBuilder().create()
    table.log().add_files([AddAction(path="a", size="7", num_records=3.0, tags={"a": 1})])
    (found,) = table.log().list_files()
    assert (found.size, found.num_records, found.tags) == (7, 3, {"a": "1"})
