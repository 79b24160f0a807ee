"""DELETE by search removes exactly the rows that the search finds, in Python and as a command."""

from __future__ import annotations

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import CommandError, QueryError

SCHEMA = pa.schema(
    [("id", pa.int64()), ("message", pa.string()), ("level", pa.string()), ("day", pa.string())]
)
OPTIONS = {"indexing.typemap.message": "text", "indexing.typemap.level": "string"}
MESSAGES = ["kafka down", "kafka up", "broker down", None, "all fine", "kafka kafka", "down again", "quiet"]


@pytest.fixture
def table(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA, options=OPTIONS)
    for start in range(0, 8, 3):
        ids = list(range(start, min(start + 3, 8)))
        rows = {"id": ids, "message": [MESSAGES[i] for i in ids], "level": ["E" if i % 2 else "I" for i in ids],
                "day": [f"d{i // 4}" for i in ids]}  # fmt: skip
        made.append(pa.table(rows, SCHEMA))
    return made


def ids(table):
    return sorted(table.refresh().scan(columns=["id"]).read_all()["id"].to_pylist())


def test_a_query_decides_which_rows_go(table):
    done = table.delete(query="kafka -up")
    assert (done.rows_deleted, ids(table)) == (2, [1, 2, 3, 4, 6, 7])
    assert table.count(query="kafka") == 1


def test_a_filter_and_a_query_have_to_agree(table):
    assert table.delete("day = 'd0'", query="down").rows_deleted == 2
    assert ids(table) == [1, 3, 4, 5, 6, 7]
    assert table.delete(query="kafka down", operator="and").rows_deleted == 0


def test_splits_without_a_hit_are_left_alone(table):
    before = set(table.files()["path"].to_pylist())
    done = table.delete(query="quiet")
    assert (done.files_rewritten, done.files_added) == (1, 1)
    assert len(before & set(table.files()["path"].to_pylist())) == 2


def test_a_split_of_hits_only_leaves_the_log(table):
    table.delete(query="message:(kafka broker)")
    assert ids(table) == [3, 4, 6, 7]
    assert table.files().num_rows == 2


def test_the_command_takes_searches_beside_other_conditions(table):
    uri = table.uri
    found = it.sql(f"DELETE FROM INDEXTABLES '{uri}' WHERE message indexquery 'down' AND day = 'd0'")
    assert found["rows_deleted"].to_pylist() == [2]
    assert ids(table) == [1, 3, 4, 5, 6, 7]
    it.sql(f"DELETE FROM INDEXTABLES '{uri}' WHERE _indexall indexquery 'kafka' AND (level indexquery 'E')")
    assert ids(table) == [3, 4, 6, 7]
    assert "indexquery 'kafka'" in str(table.history(1)["operation_parameters"][0])


def test_a_row_without_text_is_not_deleted_by_what_it_does_not_say(table):
    """In SQL a search of a null text is null, whatever it excludes."""
    it.sql(f"DELETE FROM INDEXTABLES '{table.uri}' WHERE message indexquery 'NOT kafka'")
    assert ids(table) == [0, 1, 3, 5]


def test_a_search_that_need_not_hold_is_refused_before_anything_is_read(table):
    with pytest.raises(CommandError, match="combined with other conditions by AND only"):
        it.sql(f"DELETE FROM INDEXTABLES '{table.uri}' WHERE message indexquery 'down' OR day = 'd0'")
    with pytest.raises(CommandError, match="combined with other conditions by AND only"):
        it.sql(f"DELETE FROM INDEXTABLES '{table.uri}' WHERE NOT message indexquery 'down'")
    with pytest.raises(QueryError, match="a single '&'"):
        table.delete(query="a & b")
    assert ids(table) == list(range(8))
