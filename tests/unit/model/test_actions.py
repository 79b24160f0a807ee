"""Actions and their wire form."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import CorruptLogError
from indextables.model.actions import (
    AddAction,
    CommitInfo,
    MetadataAction,
    ProtocolAction,
    RemoveAction,
    SkipAction,
    TxnAction,
    action_to_wire,
    decode_line,
    encode_action,
)

FULL_ADD = AddAction(
    path="date=2024-01-01/a.split",
    partition_values={"date": "2024-01-01", "hour": None},
    size=104857600,
    modification_time=1704067200000,
    data_change=False,
    stats='{"nullCount":{"a":1}}',
    tags={"k": "v"},
    min_values={"a": "1"},
    max_values={"a": "9"},
    num_records=100000,
    footer_start_offset=1,
    footer_end_offset=2,
    hotcache_start_offset=3,
    hotcache_length=4,
    has_footer_offsets=True,
    time_range_start="a",
    time_range_end="b",
    split_tags=("x", "y"),
    delete_opstamp=5,
    num_merge_ops=6,
    doc_mapping_json="{}",
    uncompressed_size_bytes=7,
    extra={"futureField": {"nested": [1, 2]}},
)
EXAMPLES = [
    FULL_ADD,
    AddAction(path="a.split"),
    ProtocolAction(
        min_reader_version=3, min_writer_version=3, reader_features=("parquetCheckpoint",), writer_features=()
    ),
    MetadataAction(
        id="t", schema_string="{}", partition_columns=("b", "a"), configuration={"k": "v"}, created_time=1
    ),
    RemoveAction(path="a.split", deletion_timestamp=3, partition_values={"p": None}, size=9),
    SkipAction(
        path="a.split", skip_timestamp=1, reason="bad footer", operation="merge", retry_after=2, skip_count=2
    ),
    TxnAction(app_id="stream", version=7, last_updated=1),
    CommitInfo(
        timestamp=1, operation="WRITE", operation_metrics={"numFiles": 1}, user_metadata="why", commit_id="u"
    ),
]


@pytest.mark.parametrize("action", EXAMPLES, ids=lambda action: type(action).__name__)
def test_every_field_comes_back_equal(action):
    """A4."""
    assert decode_line(encode_action(action)) == action


def test_the_wire_names_are_those_of_the_specification():
    key, body = action_to_wire(FULL_ADD)
    assert key == "add"
    assert set(body) == {
        "path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "tags", "minValues", "maxValues",
        "numRecords", "footerStartOffset", "footerEndOffset", "hotcacheStartOffset", "hotcacheLength",
        "hasFooterOffsets", "timeRangeStart", "timeRangeEnd", "splitTags", "deleteOpstamp", "numMergeOps",
        "docMappingJson", "uncompressedSizeBytes", "futureField",
    }  # fmt: skip


def test_a_field_of_a_newer_writer_survives_a_rewrite():
    line = b'{"add":{"path":"a","size":1,"newThing":{"deep":[1,null]},"other":"x"}}'
    action = decode_line(line)
    again = json.loads(encode_action(dataclasses.replace(action, size=2)))["add"]
    assert (again["newThing"], again["other"], again["size"]) == ({"deep": [1, None]}, "x", 2)


@pytest.mark.parametrize("count", ["3", "3.0", '"3"', '"3.0"'])
def test_a_record_count_is_an_int_however_it_was_written(count):
    """A12."""
    action = decode_line(b'{"add":{"path":"a","numRecords":%s}}' % count.encode())
    assert action.num_records == 3
    assert type(action.num_records) is int


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_large_counts_lose_no_digit(count):
    assert decode_line(b'{"add":{"path":"a","numRecords":"%d"}}' % count).num_records == count


def test_statistics_written_as_an_object_are_read_as_text():
    action = decode_line(b'{"add":{"path":"a","stats":{"minValues":{"a":1}}}}')
    assert json.loads(action.stats) == {"minValues": {"a": 1}}


def test_an_unknown_kind_of_action_is_none():
    """A10."""
    assert decode_line(b'{"cdc":{"path":"a"}}') is None
    assert decode_line(b'{"domainMetadata":{"domain":"d"}}') is None


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b'{"add":{"path":"a"', "JSON"),
        (b"[1]", "not an object"),
        (b"{}", "no action"),
        (b'{"add":null}', "no action"),
        (b'{"add":[1]}', "not an object"),
        (b'{"add":{"path":"a"},"remove":{"path":"b"}}', "holds 2 actions"),
        (b'{"add":{"size":1}}', "lacks path"),
        (b'{"add":{"path":"a","size":1.5}}', "size"),
        (b'{"add":{"path":"a","dataChange":3}}', "dataChange"),
        (b'{"txn":{"appId":"a"}}', "lacks version"),
        (b'{"add":{"path":"\xff"}}', "JSON"),
    ],
)
def test_a_malformed_line_is_an_error_that_says_what_is_wrong(line, what):
    """A10."""
    with pytest.raises(CorruptLogError, match=what):
        decode_line(line)
