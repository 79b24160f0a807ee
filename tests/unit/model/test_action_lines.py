"""Lines read many at once are the same actions as lines read one by one."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from indextables.errors import CorruptLogError
from indextables.log.format.dialect import decode_lines
from indextables.model.actions import (
    AddAction,
    CommitInfo,
    ProtocolAction,
    RemoveAction,
    TxnAction,
    encode_action,
)
from indextables.model.lines import decode_many, source_of

ADD = AddAction(
    path="a=1/x.split",
    partition_values={"a": "1", "b": None},
    size=5,
    stats='{"nullCount":{"a":0}}',
    min_values={"id": "1"},
    split_tags=("x", "y"),
    num_records=3,
)
ACTIONS = [
    ProtocolAction(min_reader_version=2, min_writer_version=2),
    ADD,
    RemoveAction(path="old.split", deletion_timestamp=7, partition_values={"a": "2"}),
    TxnAction(app_id="app", version=3),
    CommitInfo(timestamp=5, operation="WRITE", operation_parameters={"mode": "Append"}),
]


def text_of(*actions) -> bytes:
    return b"".join(encode_action(action) + b"\n" for action in actions)


def one() -> AddAction:
    """An add nobody has looked at yet."""
    found = decode_many(text_of(ADD), name="x", version=1)
    assert found is not None
    return found[0]


def test_the_quick_reader_gives_the_actions_that_were_written():
    """A4: every field comes back equal, in order."""
    assert decode_many(text_of(*ACTIONS), name="x", version=1) == ACTIONS
    assert decode_many(text_of(*ACTIONS), name="x", version=1) == decode_lines(
        text_of(*ACTIONS), name="x", version=1
    )


@pytest.mark.parametrize(
    "line",
    [
        b'{"cdc":{"path":"a"}}',
        b'{"txn":{"appId":"a","version":1},"commitInfo":{}}',
        b'{"add":{"path":"a"},"remove":{"path":"b"}}',
        b'{"add":{"path":"a"},"txn":{"appId":"a","version":1}}',
        b'{"add":{"path":"a"',
        b"[]",
        b'{"add":{}}',
    ],
)
def test_lines_of_another_form_are_left_to_the_careful_reader(line):
    """A10, A12: the quick reader never guesses."""
    assert decode_many(line + b"\n", name="x", version=1) is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"add":{"path":"a","numRecords":"3"}}',
        b'{"add":{"path":"a","size":null}}',
        b'{"add":{"path":"a","newField":1}}',
        b'{"add":{"path":"a","stats":{"numRecords":1}}}',
        b'{"add":{"path":"a","minValues":{"id":1}}}',
    ],
)
def test_fields_in_unusual_forms_are_read_as_the_careful_reader_reads_them(line):
    """A12: the same reader reads them, later."""
    text = line + b"\n"
    assert decode_many(text, name="x", version=1) == decode_lines(text, name="x", version=1)


def test_a_field_that_cannot_be_read_is_an_error_that_names_file_version_and_line():
    """A10: at the first look at it."""
    text = text_of(ADD) + b'{"add":{"path":"a","size":"big"}}\n'
    found = decode_many(text, name="7.json", version=7)
    assert found is not None
    with pytest.raises(CorruptLogError, match=r"line 2 of 7\.json \(version 7\).*'size'"):
        _ = found[1].size


def test_blank_lines_and_line_ends_of_other_systems_are_fine():
    """A10: what the careful reader tolerates is read alike, by whichever of the two."""
    text = text_of(ADD).replace(b"\n", b"\r\n\n") + text_of(ADD)
    assert (decode_many(text, name="x", version=1) or decode_lines(text, name="x", version=1)) == [ADD, ADD]


def test_an_add_not_looked_at_yet_behaves_like_any_add():
    """It is equal, copied, pickled, changed and written as if it had been read at once."""
    assert one() == ADD
    assert ADD == one()
    assert one() != dataclasses.replace(ADD, size=6)
    assert pickle.loads(pickle.dumps(one())) == ADD
    assert copy.copy(one()) == ADD
    assert dataclasses.replace(one(), size=6).size == 6
    assert encode_action(one()) == encode_action(ADD)
    assert repr(one()) == repr(ADD)
    assert one().extra == {}
    assert isinstance(one(), AddAction)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one().size = 1
    with pytest.raises(AttributeError):
        _ = one().nothing


def test_an_add_is_read_at_the_first_look_at_anything_but_its_path():
    add = one()
    assert add.path == ADD.path
    assert source_of(add) is not None
    assert add.size == 5
    assert source_of(add) is None
