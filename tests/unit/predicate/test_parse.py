"""Filters as SQL text, as Python expressions and as Spark sends them: one tree, with Spark's meaning."""

from __future__ import annotations

import datetime as dt
import pickle
import time
from decimal import Decimal

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import PredicateError
from indextables.predicate.build.from_spark import from_typed
from indextables.predicate.build.from_sql import as_node, parse
from indextables.predicate.tree import (
    And,
    Column,
    Compare,
    Constant,
    IsNull,
    Literal,
    Not,
    Unknown,
    columns_of,
)
from indextables.predicate.zones import start_of_day, to_instant, to_local, zone_of

UTC = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("b", pa.bool_()), ("i8", pa.int8()), ("i", pa.int32()), ("l", pa.int64()), ("f", pa.float32()), ("d", pa.float64()),
        ("dec", pa.decimal128(10, 2)), ("s", pa.string()), ("bin", pa.binary()), ("dt", pa.date32()), ("ts", UTC),
        ("ntz", pa.timestamp("us")), ("st", pa.struct([("x", pa.int32()), ("in ner", pa.struct([("y", pa.string())]))])),
        ("a.b", pa.int32()), ("arr", pa.list_(pa.int32())),
        pa.field("pad", pa.string(), metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}),
        pa.field("ci", pa.string(), metadata={"json:__COLLATIONS": '{"ci":"spark.UTF8_LCASE"}'}),
    ]
)  # fmt: skip
NEW_YORK = "America/New_York"


def said(text, zone="UTC"):
    return str(parse(text, SCHEMA, zone))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("i = 150L", "i = 150"), ("I > -5", "i > -5"), ("5 < i", "i > 5"), ("i == 5 and l <> 6", "i = 5 AND (NOT l = 6)"),
        ("i8 = -128Y", "i8 = -128"), ("dec = 1.5BD", "dec = 1.50"), ("d = 1.5", "d = 1.5"), ("d < 1e3", "d < 1000.0"),
        ("s = 'it''s'", "s = 'it''s'"), ("s = 'it' 's'", "s = 'its'"), (r"s = 'it\'s'", "s = 'it''s'"), ('s = "dq"', "s = 'dq'"),
        (r"s = r'a\n'", r"s = 'a\n'"), (r"s = '\u00e9'", "s = 'é'"), ("bin = X'1f'", "bin = X'1F'"), ("bin = 'a'", "bin = X'61'"),
        ("dt = DATE '2024-01-05'", "dt = DATE '2024-01-05'"), ("dt = '2024-1-5 10:00'", "dt = DATE '2024-01-05'"), ("dt > '2024'", "dt > DATE '2024-01-01'"),
        ("b", "b = TRUE"), ("NOT b", "NOT b = TRUE"), ("b IS NOT TRUE", "NOT b <=> TRUE"), ("(i > 1) IS TRUE", "i > 1 IS TRUE"), ("(i > 1) = false", "NOT i > 1"),
        ("i IN (1, 2, NULL)", "i IN (1, 2, NULL)"), ("i NOT IN (1)", "NOT i IN (1)"), ("i BETWEEN 1 AND '7'", "i >= 1 AND i <= 7"),
        ("i <=> NULL", "i IS NULL"), ("i IS DISTINCT FROM 3", "NOT i <=> 3"), ("i IS NOT NULL", "NOT i IS NULL"), ("isnotnull(i)", "NOT i IS NULL"),
        ("i = NULL", "NULL"), ("1 = 1", "TRUE"), ("TRUE", "TRUE"), ("NULL IS NULL", "TRUE"),
        ("s LIKE 'a%'", "startswith(s, 'a')"), ("s LIKE '%a'", "endswith(s, 'a')"), ("s LIKE '%a%'", "contains(s, 'a')"), ("s LIKE 'a'", "s = 'a'"),
        ("s NOT LIKE 'a_'", "NOT s LIKE 'a_'"), ("s LIKE 'a!_%' ESCAPE '!'", "startswith(s, 'a_')"), ("contains(s, 'x')", "contains(s, 'x')"),
        ("st.x = 1", "st.x = 1"), ("ST.`in ner`.Y = 'q'", "st.in ner.y = 'q'"), ("`a.b` = 1", "a.b = 1"), ("st IS NULL", "st IS NULL"),
        ("ts = TIMESTAMP '2024-01-01 00:00:00+02:00'", "ts = TIMESTAMP '2023-12-31T22:00:00.000000Z'"), ("i = -(-5)", "i = 5"), ("CAST('7' AS INT) = i", "i = 7"),
        ("i = 1 -- comment", "i = 1"), ("pad = 'a'", "pad = 'a'"),
    ],
)  # fmt: skip
def test_sql_text_becomes_the_tree(text, meaning):
    assert said(text) == meaning


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("i < 2.5", "i <= 2"), ("i >= 2.5", "i > 2"), ("i = 2.5", "i IN ()"), ("i <=> 2.5", "FALSE"), ("i > 2.5D", "i > 2"), ("i8 > 300", "i8 IN ()"), ("i8 < 300", "i8 >= -128"),
        ("i = '10'", "i = 10"), ("dec < 2.555", "dec <= 2.55"), ("dec IN (1, 2.555)", "dec IN (1.00)"), ("dec > '2.5'", "CAST(dec AS DOUBLE) > 2.5"), ("i IN ('1', 2.5)", "i IN (1)"),
        ("l > 2.5D", "CAST(l AS DOUBLE) > 2.5"), ("f = 0.1", "CAST(f AS DOUBLE) = 0.1"), ("f = 0.5F", "f = 0.5"), ("s = 1", "CAST(s AS BIGINT) = 1"), ("s > 1.5", "CAST(s AS DOUBLE) > 1.5"),
        ("s = DATE '2024-01-01'", "CAST(s AS DATE) = DATE '2024-01-01'"), ("b = 'yes'", "b = TRUE"), ("i < CAST('NaN' AS DOUBLE)", "i >= -2147483648"), ("l = 99999999999999999999999", "l IN ()"),
        ("CAST(i AS BIGINT) = 5", "i = 5"), ("dt >= TIMESTAMP '2024-01-01 00:00:01'", "dt > DATE '2024-01-01'"), ("dt >= TIMESTAMP '2024-01-01 00:00:00'", "dt >= DATE '2024-01-01'"),
    ],
)  # fmt: skip
def test_types_meet_as_they_do_in_spark(text, meaning):
    """H7, H11: ANSI coercion; where the column's cast can be undone the comparison is in its own type."""
    assert said(text) == meaning


def test_timestamps_without_an_offset_are_read_in_the_time_zone():
    """H7, H11: an offset in the literal wins; a skipped hour moves on, a repeated one is the first."""
    assert said("ts = '2024-03-10 02:30:00'", NEW_YORK) == "ts = TIMESTAMP '2024-03-10T07:30:00.000000Z'"
    assert said("ts = '2024-11-03 01:30:00'", NEW_YORK) == "ts = TIMESTAMP '2024-11-03T05:30:00.000000Z'"
    assert (
        said("ts = '2024-11-03 01:30:00-05:00'", NEW_YORK) == "ts = TIMESTAMP '2024-11-03T06:30:00.000000Z'"
    )
    assert said("ts = '2024-01-01'", "+14:00") == "ts = TIMESTAMP '2023-12-31T10:00:00.000000Z'"
    assert said("ts >= DATE '2024-01-01'", "-11:00") == "ts >= TIMESTAMP '2024-01-01T11:00:00.000000Z'"
    assert (
        said("ntz = '2024-01-01 00:00:00+05:00'", NEW_YORK)
        == "ntz = TIMESTAMP_NTZ '2024-01-01T00:00:00.000000'"
    )
    assert said("ts = '2024-01-01 00:00:00 Asia/Tokyo'") == "ts = TIMESTAMP '2023-12-31T15:00:00.000000Z'"


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2024", 1704067200000000), ("2024-1", 1704067200000000), ("2024-1-2 3:4:5.6", 1704164645600000), ("2024-01-02T03:04", 1704164640000000), ("2024-01-02 03", 1704164400000000),
        ("2024-01-02 03:04:05.1234567", 1704164645123456), ("2024-01-02 03:04:05 +05:30", 1704144845000000), ("2024-01-02 03:04:05UTC+1", 1704161045000000), (" 2024-01-02 ", 1704153600000000),
    ],
)  # fmt: skip
def test_timestamps_are_read_in_all_forms_that_spark_reads(text, micros):
    """H11: each was compared with Spark's own reading."""
    assert parse(f"ts = '{text}'", SCHEMA).literal.value == micros


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-02T",
        "2024-01-02 03Z",
        "2024-01-02 03:04Z",
        "2024-01-02 24:00:00",
        "2024-01-02Z",
        "2024-01-02 03:04:",
        "24-01-02",
        "2024-01-02 03:04:05-19:00",
        "10:00:00",
    ],
)
def test_forms_that_spark_refuses_are_refused(text):
    """H11: ANSI casts."""
    with pytest.raises(PredicateError):
        parse(f"ts = '{text}'", SCHEMA)


def test_the_date_of_an_instant_is_a_range_of_instants():
    """H7: the day begins at the zone's midnight, 23 hours before the next where clocks go forward."""
    found = parse("CAST(ts AS DATE) = '2024-03-10'", SCHEMA, NEW_YORK)
    low, high = (child.literal.value for child in found.children)
    assert high - low == 23 * 3_600_000_000
    assert said("date(ntz) > '2024-01-01'", NEW_YORK) == "ntz >= TIMESTAMP_NTZ '2024-01-02T00:00:00.000000'"


@pytest.mark.parametrize("text", ["s + 1 = 2", "soundex(s) = 'A'", "s RLIKE '(?i)x'", "i IN (SELECT 1)", "upper(ci) = 'A'", "arr[0] = 1", "try_cast(s AS INT) = 1", "s ILIKE 'a'", "i BETWEEN SYMMETRIC 2 AND 1", "ci = 'x'", "ts > current_timestamp()", "s LIKE ANY ('a', 'b')", "d LIKE '1%'"])  # fmt: skip
def test_a_part_the_tree_cannot_hold_is_unknown_in_its_own_words(text):
    """H6: and the parts around it are understood."""
    found = parse(f"l = 7 AND ({text})", SCHEMA)
    assert isinstance(found, And)
    assert str(found.children[0]) == "l = 7"
    assert isinstance(found.children[1], Unknown)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("i = ", "not valid SQL"), ("i = 'x", "not valid SQL"), ("i = 1; l = 2", "not"), ("", "not one condition"), ("nope = 1", "no column 'nope'"), ("st.q = 1", "'st' has no column 'q'"), ("i.x = 1", "'i' is int "),
        ("i", "not a condition"), ("i = 'x'", "'x'"), ("dt = 'soon'", "soon"), ("ts = '2024-99-01'", "2024-99-01"), ("b = 5", "cannot be compared"), ("dt = 5", "cannot be compared"), ("b IN (1, 2)", "cannot be compared"),
        ("i = 1e999", "range"), ("dec = 123456789012345678901234567890123456789.5", "38"), ("s LIKE 'a\\\\'", "escape"), ("ts = '2024-01-01 00:00:00 Mars/Olympus'", "Mars"), ("ntz = TIMESTAMP_NTZ '2024-01-01 00:00:00Z'", "no zone"),
    ],
)  # fmt: skip
def test_a_text_spark_would_refuse_is_an_error_that_names_the_part(text, words):
    """H11: with the part in the error's fields."""
    with pytest.raises(PredicateError, match=words) as caught:
        parse(text, SCHEMA)
    assert "part" in caught.value.fields


def test_an_unknown_zone_is_an_error():
    with pytest.raises(PredicateError, match="time zone"):
        parse("ts = '2024-01-01'", SCHEMA, "Nowhere/Land")


def test_parsing_takes_less_than_five_milliseconds():
    text = "i = 150 AND s LIKE 'x%' AND dt BETWEEN DATE '2024-01-01' AND DATE '2024-02-01'"
    parse(text, SCHEMA)
    best = min(_timed(text) for _ in range(20))
    assert best < 0.005


def _timed(text):
    start = time.perf_counter()
    parse(text, SCHEMA)
    return time.perf_counter() - start


COL = it.col


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (COL("i") > 5, "i > 5"), (COL("I") == 5, "i = 5"), (COL("i") != 5, "i <> 5"), ((COL("i") < 2.5) & (COL("s") == "x"), "i < 2.5D AND s = 'x'"),
        ((COL("i") <= 1) | ~(COL("i") >= 9), "i <= 1 OR NOT i >= 9"), (COL("i").isin(1, 2), "i IN (1, 2)"), (COL("i").isin([1, None]), "i IN (1, NULL)"),
        (COL("i").between(1, 3), "i BETWEEN 1 AND 3"), (COL("st.x").is_null(), "st.x IS NULL"), (COL("`a.b`").is_not_null(), "`a.b` IS NOT NULL"),
        (COL("s").startswith("a"), "startswith(s, 'a')"), (COL("s").endswith("a"), "endswith(s, 'a')"), (COL("s").contains("a"), "contains(s, 'a')"),
        (COL("s").like("a_%"), "s LIKE 'a_%'"), (COL("i").eq_null_safe(None), "i <=> NULL"), (COL("b"), "b"), (COL("dec") > Decimal("1.5"), "dec > 1.5"),
        (COL("dt") == dt.date(2024, 1, 1), "dt = DATE '2024-01-01'"), (COL("ts") > dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "ts > TIMESTAMP '2024-01-01 00:00:00Z'"),
        (COL("ts").cast("date") == dt.date(2024, 1, 1), "CAST(ts AS DATE) = DATE '2024-01-01'"), (COL("bin") == b"\x1f", "bin = X'1F'"), (COL("l") == 1 << 70, f"l = {1 << 70}"),
        ((COL("i") > 1).eq_null_safe(True), "(i > 1) IS TRUE"),
    ],
)  # fmt: skip
def test_python_expressions_mean_what_the_same_sql_means(expression, text):
    assert as_node(expression, SCHEMA, "UTC") == parse(text, SCHEMA)


def test_a_local_datetime_is_read_in_the_time_zone():
    node = as_node(COL("ts") == dt.datetime(2024, 11, 3, 1, 30), SCHEMA, NEW_YORK)
    assert str(node) == "ts = TIMESTAMP '2024-11-03T05:30:00.000000Z'"


def test_conditions_cannot_be_used_as_python_truths():
    with pytest.raises(TypeError, match="combine conditions with &"):
        bool(COL("i") > 5)
    with pytest.raises(PredicateError, match="col"):
        as_node(42, SCHEMA)
    with pytest.raises(PredicateError, match="SQL type"):
        as_node(COL("i") == object(), SCHEMA)
    assert str(as_node(COL("i") == COL("l"), SCHEMA)) == "CAST(i AS BIGINT) = l"


def test_trees_pass_through_and_survive_pickling():
    node = parse("i IN (1, 2) AND s LIKE 'a%b' AND if(d > 1, l, i + 1) = length(st.`in ner`.y)", SCHEMA)
    assert as_node(node, SCHEMA) is node
    assert pickle.loads(pickle.dumps(node)) == node
    assert as_node(None, SCHEMA) is None
    assert {column.name for column in columns_of(node)} == {"i", "s", "d", "l", "st.in ner.y"}


def column(name, kind):
    return {"node": "column", "path": name.split("."), "type": kind}


def literal(value, kind):
    return {"node": "literal", "type": kind, "value": value}


def typed(node, *children, **more):
    return from_typed({"node": node, "type": "boolean", "children": list(children), **more}, SCHEMA)


@pytest.mark.parametrize(
    ("tree", "meaning"),
    [
        (("EqualTo", column("i", "int"), literal(5, "int")), "i = 5"), (("LessThan", literal(5, "int"), column("I", "int")), "i > 5"),
        (("EqualNullSafe", column("s", "string"), literal("x", "string")), "s <=> 'x'"), (("GreaterThanOrEqual", column("dt", "date"), literal(19723, "date")), "dt >= DATE '2024-01-01'"),
        (("LessThanOrEqual", column("ts", "timestamp"), literal(-1, "timestamp")), "ts <= TIMESTAMP '1969-12-31T23:59:59.999999Z'"), (("EqualTo", column("dec", "decimal(10,2)"), literal("1.50", "decimal(10,2)")), "dec = 1.50"),
        (("EqualTo", column("d", "double"), literal("NaN", "double")), "d = nan"), (("EqualTo", column("bin", "binary"), literal("Hw==", "binary")), "bin = X'1F'"), (("IsNull", column("st.x", "int")), "st.x IS NULL"),
        (("In", column("i", "int"), literal(1, "int"), literal(None, "int")), "i IN (1, NULL)"), (("StartsWith", column("s", "string"), literal("a", "string")), "startswith(s, 'a')"), (("GreaterThan", {"node": "Cast", "type": "double", "children": [column("l", "bigint")]}, literal(2.5, "double")), "CAST(l AS DOUBLE) > 2.5"), (("IsNotNull", column("i", "int")), "NOT i IS NULL"),
    ],
)  # fmt: skip
def test_filters_from_spark_become_the_tree(tree, meaning):
    assert str(typed(*tree)) == meaning


def test_lists_conjunctions_and_bare_columns_come_through():
    equal = {"node": "EqualTo", "type": "boolean", "children": [column("i", "int"), literal(5, "int")]}
    assert (
        str(typed("And", equal, {"node": "Not", "type": "boolean", "children": [equal]}))
        == "i = 5 AND (NOT i = 5)"
    )
    assert str(typed("Or", equal, column("b", "boolean"))) == "i = 5 OR b = TRUE"
    assert (
        str(typed("InSet", column("i", "int"), values=[literal(1, "int"), literal(2, "int")]))
        == "i IN (1, 2)"
    )
    assert from_typed(literal(False, "boolean"), SCHEMA) == Constant(False)


def test_a_pattern_from_spark_needs_its_escape_character():
    children = (column("s", "string"), literal("a!%b%", "string"))
    assert str(typed("Like", *children, escape="!")) == "startswith(s, 'a%b')"
    assert str(typed("Like", *children, escape="\\")) == "s LIKE 'a!%b%'"
    assert isinstance(typed("Like", *children), Unknown)


def test_a_float_literal_is_the_float_that_its_digits_name():
    node = typed("EqualTo", column("f", "float"), literal(0.1, "float"))
    assert node.literal.value == 0.10000000149011612


@pytest.mark.parametrize(
    "tree",
    [
        {"node": "ScalaUDF", "type": "boolean", "children": []}, {"node": "EqualTo", "type": "boolean", "children": [column("i", "int"), column("l", "bigint")]},
        {"node": "EqualTo", "type": "boolean", "children": [column("ci", "string collate utf8_lcase"), literal("x", "string collate utf8_lcase")]},
        {"node": "EqualTo", "type": "boolean", "children": [column("pad", "char(3)"), literal("x", "string")]}, {"node": "EqualTo", "type": "boolean", "children": [column("pad", "string"), literal("x", "string")]},
        {"node": "EqualTo", "type": "boolean", "children": [column("i", "bigint"), literal(5, "bigint")]}, {"node": "EqualTo", "type": "boolean", "children": [column("i", "int"), literal(5, "bigint")]},
        {"node": "EqualTo", "type": "boolean", "children": [{"node": "Cast", "type": "date", "children": [column("ts", "timestamp")]}, literal(5, "date")]}, {"node": "EqualTo", "type": "boolean", "children": [{"node": "Cast", "type": "int", "children": [column("s", "string")]}, literal(5, "int")]},
        {"node": "EqualTo", "type": "boolean", "children": [column("gone", "int"), literal(5, "int")]}, {"node": "EqualTo", "type": "boolean", "children": [column("i", "int"), literal("5", "int")]}, {"node": "In", "type": "boolean", "children": [column("i", "int"), column("l", "bigint")]}, {"nonsense": 1}, {"node": "EqualTo", "children": [1]},
    ],
)  # fmt: skip
def test_what_is_not_certain_to_mean_the_same_is_unknown(tree):
    """H6: collations, char(n), other casts, unknown nodes and columns never prune."""
    assert isinstance(from_typed(tree, SCHEMA), Unknown)


def test_unknown_parts_leave_the_rest_of_a_spark_filter_standing():
    found = typed(
        "And", {"node": "Rand", "children": []}, {"node": "IsNull", "children": [column("i", "int")]}
    )
    assert found == And((Unknown("Rand"), IsNull(Column(("i",), pa.int32()))))
    assert typed("Not", {"node": "Rand", "children": []}) == Not(Unknown("Rand"))


def test_zones_follow_java_at_gaps_folds_and_far_years():
    """H7: DST both ways, midnight gaps, fixed offsets, and years beyond Python's."""
    york = zone_of(NEW_YORK)
    hour, noon = 3_600_000_000, 12 * 3_600_000_000
    assert to_instant(1710037800000000, york) == 1710055800000000
    assert to_local(to_instant(0, york), york) == 0
    assert zone_of("UTC+5") == zone_of("+05:00") == 5 * hour
    assert zone_of("Z") == zone_of("GMT") == 0
    brazil = zone_of("America/Sao_Paulo")
    day = (dt.date(2018, 11, 4) - dt.date(1970, 1, 1)).days
    assert to_local(start_of_day(day, brazil), brazil) == day * 24 * hour + hour
    for far in (-(1 << 62) + noon, 1 << 62):
        assert to_local(to_instant(far, york), york) in {far, far + hour}


def test_comparisons_hold_typed_literals():
    node = parse("i = 5", SCHEMA)
    assert node == Compare("=", Column(("i",), pa.int32()), Literal(5, pa.int32()))
