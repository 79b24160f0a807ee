"""What a log handle does at its edges: deep nesting, other processes, versions that cleanup removed."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from indextables import TransactionLog, col
from indextables.errors import CorruptLogError, PredicateError, VersionNotFoundError
from indextables.predicate.build.from_sql import as_node
from support.builder import LogBuilder, checkpoint_path, commit_path, paths_of

SCHEMA = pa.schema([("id", pa.int64())])
DEEP = 5000


def negated(times):
    found = col("id") == 1
    for _ in range(times):
        found = ~found
    return found


@pytest.mark.parametrize(
    "where",
    ["(" * DEEP + "id = 1" + ")" * DEEP, "NOT " * DEEP + "id = 1", negated(DEEP)],
    ids=["brackets", "negations", "expression"],
)
def test_a_filter_that_is_nested_too_deeply_says_so(where):
    """G2: a named error, not one of the interpreter."""
    with pytest.raises(PredicateError, match="nested too deeply"):
        as_node(where, SCHEMA)


NESTED = b"[" * DEEP + b"]" * DEEP


@pytest.mark.parametrize("line", [NESTED, b'{"add":{"path":"x","y":' + NESTED + b"}}"], ids=["line", "field"])
def test_a_version_that_is_nested_too_deeply_is_a_damaged_one(line):
    """A10."""
    builder = LogBuilder().create().appends(1)
    builder.damage(commit_path(1), line + b"\n")
    with pytest.raises(CorruptLogError, match="00000000000000000001"):
        builder.log().snapshot().adds()


def test_a_handle_can_be_sent_to_another_process(tmp_path):
    """It opens the same log there, with the same options."""
    log = TransactionLog.open(str(tmp_path), {"checkpoint.interval": 7})
    log.initialize(SCHEMA)
    other = pickle.loads(pickle.dumps(log))
    assert (type(other), other.uri, other.latest_version()) == (TransactionLog, log.uri, 0)
    assert other.options.checkpoint.interval == 7


def test_a_reader_whose_version_cleanup_removed_is_told_so():
    """D2: not that the log is damaged, for the newer versions are sound."""
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().appends(3).checkpoint().appends(1)
    reader = builder.log().snapshot()
    builder.appends(2).checkpoint()
    builder.lose(checkpoint_path(3), *(commit_path(version) for version in range(6)))
    with pytest.raises(VersionNotFoundError, match=r"removed by cleanup.*open the table again"):
        reader.files()
    assert len(paths_of(builder.log())) == 6
