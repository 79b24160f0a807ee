"""DELETE, UPDATE and MERGE are recognised by their words, never by words inside strings or names."""

from __future__ import annotations

import pytest

from indextables.sql.recogniser import Change, OtherStatement, recognise


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DELETE FROM v WHERE id = 1", Change("DELETE", ("v",))),
        ("/* why */ delete from `my view`", Change("DELETE", ("my view",))),
        ("UPDATE global_temp.v SET a = 1", Change("UPDATE", ("global_temp", "v"))),
        ("MERGE INTO v USING s ON v.a = s.a WHEN MATCHED THEN DELETE", Change("MERGE", ("v",))),
        ("WITH x AS (SELECT 1) MERGE WITH SCHEMA EVOLUTION INTO v USING x ON true", Change("MERGE", ("v",))),
        ("WITH delete AS (SELECT 1) DELETE FROM v", Change("DELETE", ("v",))),
        ("DELETE FROM indextables.`/a b` WHERE x", Change("DELETE", ("indextables", "/a b"))),
        ("WITH update AS (SELECT 1) SELECT * FROM update", None),
        ("SELECT 'DELETE FROM v'", None),
        ("-- DELETE FROM v\nSELECT 1", None),
        ("SELECT 'never closed; DELETE FROM v", None),
        ("UPDATE", None),
    ],
)
def test_a_change_is_found_where_the_statement_begins(text: str, expected: Change | None) -> None:
    assert recognise(text).form == (expected or OtherStatement())
