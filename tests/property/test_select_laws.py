"""SELECT without Spark answers what DuckDB answers over all rows, and edits a statement only where it must."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import indextables as it
from indextables.sql.select.mentions import DUCKDB
from indextables.sql.select.pushdown import pushed_down
from indextables.sql.select.rewrite import rewrite
from indextables.sql.select.run import run_select

NAN, INF = float("nan"), float("inf")
NULL = None
VALUES = {
    "i": (pa.int32(), [NULL, -(2**31), -1, 0, 1, 5, 2**31 - 1]),
    "l": (pa.int64(), [NULL, -(2**63), 0, 2**53 + 1, 2**63 - 1]),
    "d": (pa.float64(), [NULL, NAN, -INF, INF, -0.0, 0.0, 0.1, 1.5, 2.0**53]),
    "f": (pa.float32(), [NULL, NAN, 0.1, 1.5, -0.0]),
    "n": (pa.decimal128(10, 2), [NULL, *map(Decimal, ("-1.50", "0.00", "1.55", "99999999.99"))]),
    "s": (pa.string(), [NULL, "", "a", "A", "ab%c", "a_b", "a\\b", "é", "\U0001f600", "it's", "2024-01-01"]),
    "b": (pa.bool_(), [NULL, True, False]),
    "day": (pa.date32(), [NULL, date(1969, 12, 31), date(2024, 1, 1), date(2024, 11, 3)]),
    "ts": (
        pa.timestamp("us", "UTC"),
        [NULL, *(datetime(2024, 11, 3, hour, 30, tzinfo=UTC) for hour in range(4, 8)), datetime(2024, 1, 1, tzinfo=UTC)],
    ),
    "local": (
        pa.timestamp("us"),
        [NULL, datetime(2024, 11, 3, 1, 30), datetime(2024, 1, 1), datetime(2024, 3, 10, 2, 30)],
    ),
}  # fmt: skip
SCHEMA = pa.schema([("id", pa.int64()), *((name, kind) for name, (kind, _) in VALUES.items())])
NUMBERS = ["0", "-0", "1", "-1", "5", "1.5", "0.1", "-1.50", "1.555", "2147483648", "9007199254740993", "1e3",
           "9223372036854775807", "9223372036854775808", "99999999999999999999", "0.1000000000000000055511151231257827",
           "'5'", "NULL", "CAST(1 AS TINYINT)"]  # fmt: skip
TEXTS = ["''", "'a'", "'A'", "'ab%c'", "'é'", "'\U0001f600'", "'it''s'", "'a\\b'", "E'a\\\\b'", "NULL"]
# No time that happened twice: DuckDB alone takes the second, and here the first is meant.
MOMENTS = [f"{kind}'{text}'" for kind in ("", "DATE ", "TIMESTAMP ", "TIMESTAMPTZ ") for text in (
    "2024-01-01", "2024-11-03", "2024-11-03 03:30:00", "2024-11-03T05:30:00Z", "2024-11-03 01:30:00+05",
    "2024-03-10 02:30:00", "2024-11-03 05:30:00.5",
)]  # fmt: skip
LITERALS = {
    **dict.fromkeys(["i", "l", "d", "f", "n"], NUMBERS),
    "s": TEXTS,
    "b": ["true", "false", "NULL"],
    **dict.fromkeys(["day", "ts", "local"], MOMENTS),
}
PATTERNS = ["'a%'", "'%b%'", "'%c'", "'a_b'", "'a\\_b'", "'%'", "''", "'ab!%%' ESCAPE '!'"]


@st.composite
def atoms(draw):
    name = draw(st.sampled_from(sorted(VALUES)))
    written = draw(st.sampled_from([name, f"t.{name}", f'"{name}"', name.upper()]))
    literal = st.sampled_from(LITERALS[name])
    shapes = ["{c} {op} {a}", "{a} {op} {c}", "{c} IN ({a}, {b})", "{c} NOT IN ({a})", "{c} IS NULL", "{c} IS NOT NULL",
              "{c} BETWEEN {a} AND {b}", "{c} NOT BETWEEN {a} AND {b}", "{c} IS NOT DISTINCT FROM {a}"]  # fmt: skip
    if name == "s":
        shapes += [
            "{c} LIKE {p}",
            "{c} NOT LIKE {p}",
            "starts_with({c}, {a})",
            "contains({c}, {a})",
            "suffix({c}, {a})",
        ]
    if name == "b":
        shapes += ["{c}", "NOT {c}"]
    if name in "il":
        shapes += ["{c} % 2 = 0", "{c} / 2 > {a}"]
    shape = draw(st.sampled_from(shapes))
    operator = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "!=", "=="]))
    pattern = draw(st.sampled_from(PATTERNS))
    return shape.format(c=written, op=operator, a=draw(literal), b=draw(literal), p=pattern)


def conditions():
    return st.recursive(
        atoms(),
        lambda inner: st.one_of(
            st.builds("({} AND {})".format, inner, inner),
            st.builds("({} OR {})".format, inner, inner),
            st.builds("NOT ({})".format, inner),
        ),
        max_leaves=5,
    )


ZONES = ["UTC", "America/New_York", "Asia/Tokyo"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Every value of every column in some split, beside the others in turn."""
    made = it.Table.create(str(tmp_path_factory.mktemp("laws") / "t"), SCHEMA)
    longest = max(len(values) for _, values in VALUES.values())
    numbers = itertools.count()
    for at in range(longest):
        rows = {
            name: [values[(at + more) % len(values)] for more in (0, 3)]
            for name, (_, values) in VALUES.items()
        }
        made.append(pa.table({"id": [next(numbers), next(numbers)], **rows}, SCHEMA))
    return made


@pytest.fixture(scope="module")
def doors(table):
    """For every zone the table opened in it, and DuckDB over all rows of it."""
    made = {}
    for zone in ZONES:
        connection = duckdb.connect()
        connection.execute(f"SET TimeZone = '{zone}'")
        connection.register("t", table.scan().to_arrow())
        made[zone] = it.Table.open(table.uri, options={"timeZone": zone}), connection
    return made


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conditions(), st.sampled_from(ZONES))
def test_what_is_handed_to_the_scan_changes_no_answer(doors, condition, zone):
    opened, alone = doors[zone]
    text = f"SELECT id FROM t WHERE {condition} ORDER BY id"
    try:
        expected = alone.sql(text).fetchall()
    except duckdb.Error:
        return
    assert [tuple(row.values()) for row in run_select(text, {"t": opened}).to_pylist()] == expected


PLAIN = ["{}.i = 5", "{}.i > 0", "{}.s = 'a'", "{}.s IS NULL", "{}.i IS NULL", "NOT {}.b", "{}.day >= '2024-01-01'",
         "({}.i = 1 OR {}.s IS NULL)", "{}.id % 2 = 0", "coalesce({}.i, 5) = 5"]  # fmt: skip
JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "POSITIONAL JOIN", "SEMI JOIN", "ANTI JOIN",
         "ASOF JOIN", "ASOF LEFT JOIN"]  # fmt: skip
SHAPES = [
    "SELECT a.id, b.id AS other FROM t a {join} t b {on}{where}",
    "SELECT count(*) FROM t a {join} t b {on}{where}",
    "SELECT a.id, (SELECT count(*) FROM t b WHERE b.id = a.id AND {bs}) AS n FROM t a WHERE {as_}",
    "SELECT a.id FROM t a WHERE {as_} AND EXISTS (FROM t b WHERE b.id > a.id AND {bs})",
    "SELECT a.id FROM t a WHERE {as_} UNION ALL SELECT b.id FROM t b WHERE {bs}",
    "WITH c AS (SELECT * FROM t a WHERE {as_}) SELECT c.id, b.id AS other FROM c LEFT JOIN t b ON c.id = b.id AND {bs}",
    "SELECT count(*) FILTER (WHERE {as_}) AS n FROM t a WHERE a.id > 3",
    "SELECT a.id, count(b.id) AS n FROM t a LEFT JOIN (SELECT * FROM t b WHERE {bs}) b USING (id) WHERE {as_} GROUP BY ALL",
]


@st.composite
def queries(draw):
    of = {side: draw(st.sampled_from(PLAIN)).replace("{}", side) for side in ("a", "b")}
    join = draw(st.sampled_from(JOINS))
    hidden = join.startswith(("SEMI", "ANTI"))
    more = draw(st.sampled_from(["", f" AND {of['a']}", f" AND {of['b']}"]))
    on = "" if join.startswith(("CROSS", "POSITIONAL")) else f"ON a.id {'>=' if 'ASOF' in join else '='} b.id"
    on += more if on and "ASOF" not in join else ""
    sides = [
        draw(st.sampled_from(PLAIN)).replace("{}", side)
        for side in draw(st.sets(st.sampled_from("a" if hidden else "ab")))
    ]
    where = f" WHERE {' AND '.join(sides)}" if sides else ""
    shape = draw(st.sampled_from(SHAPES))
    shape = shape.replace("b.id AS other", "a.i") if hidden and "{join}" in shape else shape
    return shape.format(join=join, on=on, where=where, as_=of["a"], bs=of["b"])


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(queries())
def test_joins_and_queries_inside_others_keep_every_row_that_counts(doors, text):
    opened, alone = doors["UTC"]
    found = run_select(text, {"t": opened}).to_pylist()
    assert sorted(map(repr, (tuple(row.values()) for row in found))) == sorted(
        map(repr, alone.sql(text).fetchall())
    )


def filter_for(condition, zone="UTC"):
    """What the scan is given for a WHERE."""
    found = rewrite(f"SELECT id FROM t WHERE {condition}", lambda _: SCHEMA.names, engine=DUCKDB)
    return pushed_down(found.conditions[0][1], SCHEMA, zone) if found.conditions else None


@pytest.mark.parametrize(
    "condition",
    ["i = 5", "5 < l", "d >= 0.1", "n <> 1.5", "s = 'a'", "b", "NOT b", "day < '2024-01-01'", "s LIKE 'a%'",
     "ts >= '2024-11-03 01:30:00'", "ts = TIMESTAMPTZ '2024-11-03 05:30:00Z'", "local > TIMESTAMP '2024-01-01'",
     "i IN (1, -1)", "s IS NULL", "i BETWEEN 1 AND 5", "NOT (i = 1 OR s = 'a')"],
)  # fmt: skip
def test_these_conditions_are_exactly_what_the_scan_is_given(condition):
    assert filter_for(condition).exact


@pytest.mark.parametrize(
    "condition", ["ts >= '2024-11-03 01:30:00'", "ts = DATE '2024-11-03'", "(i = 1 AND i % 2 = 0) OR i = 2"]
)
def test_these_conditions_give_the_scan_less_than_they_say(condition):
    assert not filter_for(condition, "America/New_York").exact


@pytest.mark.parametrize(
    "condition",
    ["i = 1.5", "f = 0.1", "l = 99999999999999999999", "s LIKE 'a_b'", "s > 5", "i = '5'", "upper(s) = 'A'",
     "local = TIMESTAMPTZ '2024-11-03 05:30:00Z'", "ts = TIMESTAMP '2024-11-03 05:30:00Z'", "d = 0.1000000000000000055",
     "NOT (i = 1 AND i % 2 = 0)", "i = 1 OR i % 2 = 0", "s ILIKE 'a'", "i BETWEEN SYMMETRIC 5 AND 1"],
)  # fmt: skip
def test_these_conditions_are_left_to_duckdb(condition):
    assert filter_for(condition) is None


ITEMS = [
    "id", "'a\\' AS back", "$$it's$$ AS dollar", "extract(year FROM DATE '2024-01-01') AS y", "trim(BOTH FROM ' x ') AS tr",
    "[n FOR n IN [1, 2] IF n > 1] AS l1", "{'a': 1, 'b': 'indexquery'} AS st", "7 // 2 AS fl", "id::VARCHAR AS v",
    '"id" AS "odd ""name"', "CASE WHEN id > 1 THEN 'from' ELSE 'join' END AS c", "'x' AS indexquery_", "count(*) OVER () AS w",
    "'indexquery' AS q", "/* message indexquery 'x' */ 1 AS one", "substring('abc' FROM 1 FOR 2) AS sub", "E'a\\'b' AS e",
    "id IS DISTINCT FROM 3 AS di", "list_filter([1, 2], x -> x > 1) AS lf", "('(' || ')') AS brackets", "1_000 AS k",
    "(SELECT max(n) FROM (VALUES (1), (2)) AS vals(n)) AS m", "{}message IS NOT DISTINCT FROM 'from' AS nd",
]  # fmt: skip
TAILS = ["", " ORDER BY 1", " LIMIT 3", " ORDER BY ALL LIMIT 2 OFFSET 1", "\n-- message indexquery 'x'", " USING SAMPLE 10 ROWS",
         " QUALIFY row_number() OVER () < 3", " ; "]  # fmt: skip
TABLES = ["logs", "'/a b/it''s'", "indextables.`/a b`", "indextables.`/c` VERSION AS OF 3"]
SEARCHES = [
    "{}message indexquery 'x y'",
    "{}message NOT indexquery 'x'",
    "indexquery({}message, '(')",
    "NOT indexqueryall('q')",
]
OURS = r"(?:true|NOT true|(?:NOT )?[\w.]+|__indextables_\d+(?: AS \w+)?)"


@st.composite
def statements(draw):
    """Pieces of a statement of DuckDB, each with whether it is ours to replace."""
    aliased = draw(st.booleans())
    dot = "l." if aliased else ""
    pieces = [(draw(st.sampled_from(["SELECT ", "select\n\t", "/* a */ SELECT DISTINCT "])), False)]
    for at, item in enumerate(
        draw(st.lists(st.sampled_from([*ITEMS, "*", "{}*", *SEARCHES]), min_size=1, max_size=5))
    ):
        ours = item in SEARCHES or item.endswith("*")
        pieces += [(", " if at else "", False), (item.replace("{}", dot), ours)]
        pieces += [(f" AS hit{at}", False)] if item in SEARCHES else []
    table = draw(st.sampled_from(TABLES))
    pieces += [(draw(st.sampled_from([" FROM ", "\nfrom  "])), False), (table, True)]
    pieces += [(draw(st.sampled_from([" l", " AS l"])), False)] if aliased else []
    if aliased and draw(st.booleans()):
        joined = [" JOIN ", " LEFT JOIN ", ",", " CROSS JOIN ", " ASOF JOIN "]
        join = draw(st.sampled_from(joined))
        other = (
            "(SELECT 1 AS other) o"
            if join == ","
            else draw(st.sampled_from(["(SELECT 1 AS other) o", "(VALUES (1)) o(other)"]))
        )
        on = {
            " JOIN ": " ON l.id = o.other",
            " LEFT JOIN ": " ON l.id = o.other",
            " ASOF JOIN ": " ON l.id >= o.other",
        }
        pieces += [(join + other + on.get(join, ""), False)]
    joint = " WHERE "
    for condition in draw(
        st.lists(st.sampled_from(["{}id > 1", "'indexquery' = 'x'", *SEARCHES]), max_size=3)
    ):
        pieces += [(joint, False), (condition.replace("{}", dot), condition in SEARCHES)]
        joint = draw(st.sampled_from([" AND ", "  OR\n"]))
    # sqlglot takes USING after a join for the columns of that join.
    tails = [tail for tail in TAILS if "USING" not in tail or not any("JOIN" in piece for piece, _ in pieces)]
    return [*pieces, (draw(st.sampled_from(tails)), False)]


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(statements())
def test_a_statement_is_the_same_to_the_byte_outside_of_what_is_ours(pieces):
    text = "".join(piece for piece, _ in pieces)
    found = rewrite(text, lambda _: ("id", "message"), engine=DUCKDB)
    expected = "".join(
        re.escape(piece) + (r"(?: EXCLUDE \([\w, ]+\))?" if piece.endswith("*") else "")
        if not ours or piece.endswith("*")
        else OURS
        for piece, ours in pieces
    )
    assert re.fullmatch(expected, found.text), found.text
    assert len(duckdb.extract_statements(found.text)) == 1
