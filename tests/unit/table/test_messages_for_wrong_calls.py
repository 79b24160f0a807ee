"""Calls that cannot be meant as they stand get an answer that says so, and never a secret back."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from indextables.errors import OptionError, PredicateError, SchemaError, StorageError
from indextables.log.transaction_log import TransactionLog
from indextables.table import Table
from support.builder import LogBuilder


@pytest.mark.parametrize("version", ["1", 1.5, True])
def test_a_version_is_a_number(version):
    """A13."""
    with pytest.raises(OptionError, match="is not the number of a version"):
        LogBuilder().create().append("a").log().snapshot(version)


@pytest.mark.parametrize("hours", [math.inf, math.nan, -1])
def test_a_cooldown_is_a_time_ahead(hours):
    """E8."""
    with pytest.raises(OptionError, match="is not a number of hours"):
        LogBuilder().create().append("a").log().record_skipped_file("a", "why", "merge", cooldown_hours=hours)


def test_schemas_that_differ_in_nullability_are_shown_as_different():
    """A3."""
    table = LogBuilder().create(pa.schema([("id", pa.int64())]))
    with pytest.raises(SchemaError, match="the schema id int64, not id int64 not null"):
        table.log().initialize(pa.schema([pa.field("id", pa.int64(), nullable=False)]))


def test_credentials_in_an_address_are_not_repeated():
    with pytest.raises(StorageError, match="carries credentials") as refused:
        TransactionLog.open("s3://AKIA:hush@bucket/table")
    assert "hush" not in str(refused.value)
    assert "hush" not in repr(refused.value.fields)


def test_who_wants_to_merge_is_not_told_to_delete(tmp_path):
    table = Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("day", pa.string())]), ["day"])
    with pytest.raises(PredicateError, match="id cannot be used to choose partitions") as refused:
        table.merge_splits("id = 1")
    assert "DELETE" not in str(refused.value)
    with pytest.raises(PredicateError, match="DELETE FROM INDEXTABLES takes any condition"):
        table.drop_partitions("id = 1")
