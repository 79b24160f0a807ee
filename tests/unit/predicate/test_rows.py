"""Exact row filters: what Spark would return, without Spark."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from indextables.errors import PredicateError
from indextables.predicate.build.from_sql import parse
from indextables.predicate.evaluate.rows import mask, require_exact

UTC = pa.timestamp("us", "UTC")


def rows(text, kind, values, zone="UTC"):
    """The values that match a predicate on column `c`."""
    field = kind if isinstance(kind, pa.Field) else pa.field("c", kind)
    schema = pa.schema([field])
    table = pa.table([pa.array(values, field.type)], schema=schema)
    chosen = mask(parse(text, schema, zone), table, schema).to_pylist()
    return [value for value, matches in zip(values, chosen) if matches]


def test_null_is_not_true():
    """H11: for comparisons, their negations, IN with a null, and NOT IN with a null."""
    values = [1, 2, None]
    assert rows("c = 1", pa.int32(), values) == [1]
    assert rows("NOT c = 1", pa.int32(), values) == [2]
    assert rows("c IN (1, NULL)", pa.int32(), values) == [1]
    assert rows("c NOT IN (1, NULL)", pa.int32(), values) == []
    assert rows("c IS NULL OR c = 2", pa.int32(), values) == [2, None]
    assert rows("c <=> NULL", pa.int32(), values) == [None]
    assert rows("NOT c <=> 1", pa.int32(), values) == [2, None]
    assert rows("(c = 1) IS NOT TRUE", pa.int32(), values) == [2, None]
    assert rows("NULL", pa.int32(), values) == []
    assert rows("c = 1 OR NULL", pa.int32(), values) == [1]


def test_nan_equals_nan_and_is_above_everything():
    """H11: for double and float, in every operator and in lists."""
    for kind in (pa.float64(), pa.float32()):
        values = [1.0, math.inf, math.nan, None]
        for text, count in [("c = CAST('NaN' AS DOUBLE)", 1), ("c > 5", 2), ("c >= CAST('NaN' AS DOUBLE)", 1), ("c < CAST('NaN' AS DOUBLE)", 2), ("c <= CAST('NaN' AS DOUBLE)", 3),
                            ("c > CAST('NaN' AS DOUBLE)", 0), ("c IN (1, CAST('NaN' AS DOUBLE))", 2), ("c <> CAST('NaN' AS DOUBLE)", 2), ("c NOT IN (CAST('NaN' AS DOUBLE))", 2)]:  # fmt: skip
            assert len(rows(text, kind, values)) == count, (kind, text)


def test_zero_has_no_sign():
    """H11: -0.0 = 0.0, in comparisons and lists."""
    values = [-0.0, 0.0, 1.0]
    assert len(rows("c = 0", pa.float64(), values)) == 2
    assert len(rows("c IN (-0.0D, 5)", pa.float64(), values)) == 2
    assert rows("c < 0", pa.float64(), values) == []
    assert len(rows("c >= -0.0D", pa.float32(), values)) == 3


def test_strings_compare_by_bytes():
    """H11: upper case before lower case, U+FFFF before U+10000."""
    values = ["Z", "a", "\uffff", "\U00010000", "é"]
    assert rows("c > 'a'", pa.string(), values) == ["\uffff", "\U00010000", "é"]
    assert rows("c > '\uffff'", pa.string(), values) == ["\U00010000"]


def test_a_float_is_compared_as_the_double_it_is():
    tenth = 0.10000000149011612
    assert rows("c = 0.1", pa.float32(), [tenth]) == []
    assert rows("c = 0.1F", pa.float32(), [tenth]) == [tenth]
    assert rows("c > 0.1", pa.float32(), [tenth]) == [tenth]


def test_whole_numbers_meet_doubles_by_rounding():
    """H11: bigint against double is compared in double, as Spark does."""
    values = [9007199254740992, 9007199254740993, 9007199254740994]
    assert rows("c = 9007199254740992.0D", pa.int64(), values) == values[:2]
    assert rows("c = 9007199254740992", pa.int64(), values) == values[:1]


def test_decimals_meet_doubles_with_one_rounding():
    values = [Decimal("0.1000000000"), Decimal("0.3000000000"), Decimal("0.0000001000")]
    assert rows("c IN (0.1D, 0.3D, 1e-7)", pa.decimal128(20, 10), values) == values


def test_texts_are_cast_as_ansi_casts_them():
    """H11: blanks are trimmed; a text that is no number fails the filter and says so."""
    assert rows("c = 5", pa.string(), [" 5 ", "+5", "05", "6", None]) == [" 5 ", "+5", "05"]
    assert rows("c > 1.5", pa.string(), ["2", "NaN", "-Infinity", "1e3"]) == ["2", "NaN", "1e3"]
    assert rows("c = DATE '2024-01-05'", pa.string(), ["2024-1-5", "2024-01-05 10:00", "2024"]) == [
        "2024-1-5",
        "2024-01-05 10:00",
    ]
    assert rows("c = TRUE", pa.string(), ["t", "YES", "0", None]) == ["t", "YES"]
    for bad in ("x", "1.5", "", "0x10"):
        with pytest.raises(PredicateError, match="CAST"):
            rows("c = 5", pa.string(), ["5", bad])


def test_a_cast_fails_only_where_its_answer_is_needed():
    """H11: AND stops at false, OR stops at true, and a null does not stop."""
    assert rows("c <> 'x' AND c = 5", pa.string(), ["5", "x"]) == ["5"]
    assert rows("c = 'x' OR c = 5", pa.string(), ["5", "x"]) == ["5", "x"]
    with pytest.raises(PredicateError):
        rows("c = 5 AND c <> 'x'", pa.string(), ["5", "x"])
    with pytest.raises(PredicateError):
        rows("NULL AND c = 5", pa.string(), ["x"])


def test_patterns_match_whole_texts_across_lines():
    values = ["abc", "a\nc", "a_c", "a%c", "", "\U0001f600", "ABC", "a.c"]
    assert rows("c LIKE 'a_c'", pa.string(), values) == ["abc", "a\nc", "a_c", "a%c", "a.c"]
    assert rows(r"c LIKE 'a\_c' OR c LIKE 'a!%c' ESCAPE '!'", pa.string(), values) == ["a_c", "a%c"]
    assert rows("c LIKE 'a.c'", pa.string(), values) == ["a.c"]
    assert rows("c LIKE '_'", pa.string(), values) == ["\U0001f600"]
    assert rows("c LIKE '%'", pa.string(), values) == values
    assert rows("c NOT LIKE '%c'", pa.string(), values) == ["", "\U0001f600", "ABC"]
    assert rows("startswith(c, 'a') AND contains(c, '_') AND endswith(c, 'c')", pa.string(), values) == [
        "a_c"
    ]


def test_padded_strings_compare_as_if_padded():
    """H11: char(n) on both sides."""
    char = pa.field("c", pa.string(), metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})
    assert rows("c = 'a'", char, ["a", "a  ", "ab"]) == ["a", "a  "]
    assert rows("c IN ('ab', 'a    ')", char, ["a", "a  ", "ab"]) == ["a", "a  ", "ab"]
    assert rows("c LIKE 'a'", char, ["a", "a  "]) == []
    assert rows("c LIKE 'a  '", char, ["a", "a  "]) == ["a", "a  "]


def test_local_times_meet_instants_in_the_zone():
    """H7, H11: at a fold the first, over a gap moved on."""
    local = [
        dt.datetime(2024, 11, 3, 1, 30),
        dt.datetime(2024, 3, 10, 2, 30),
        dt.datetime(2024, 3, 10, 3, 30),
        None,
    ]
    zone = "America/New_York"
    assert rows("c = TIMESTAMP '2024-11-03 05:30:00Z'", pa.timestamp("us"), local, zone) == local[:1]
    assert rows("c = TIMESTAMP '2024-03-10 07:30:00Z'", pa.timestamp("us"), local, zone) == local[1:3]
    assert rows("c = TIMESTAMP '2024-11-03 06:30:00Z'", pa.timestamp("us"), local, zone) == []
    assert rows("c = TIMESTAMP '2024-11-03 01:30:00Z'", pa.timestamp("us"), local, "+00:00") == local[:1]


def test_instants_meet_dates_at_the_zones_midnight():
    moments = [dt.datetime(2024, 1, 1, 4, 59, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, 5, 0, tzinfo=dt.UTC)]
    assert rows("c >= DATE '2024-01-01'", UTC, moments, "America/New_York") == moments[1:]
    assert rows("CAST(c AS DATE) = DATE '2023-12-31'", UTC, moments, "America/New_York") == moments[:1]
    assert (
        rows("CAST(c AS TIMESTAMP_NTZ) = '2024-01-01 00:00:00'", UTC, moments, "America/New_York")
        == moments[1:]
    )


def test_fields_inside_structs_are_null_where_the_struct_is():
    kind = pa.struct([("x", pa.int32())])
    values = [{"x": 1}, {"x": None}, None]
    assert rows("c.x IS NULL", kind, values) == [{"x": None}, None]
    assert rows("C.X = 1", kind, values) == [{"x": 1}]
    assert rows("c IS NULL", kind, values) == [None]


def test_other_encodings_chunks_and_absent_columns_are_fine():
    schema = pa.schema([("c", pa.string()), ("later", pa.int32())])
    encoded = pa.chunked_array(
        [pa.array(["a", None]).dictionary_encode(), pa.array(["b"]).dictionary_encode()]
    )
    table = pa.table({"C": encoded})
    assert mask(parse("c = 'a' AND later IS NULL", schema), table, schema).to_pylist() == [True, False, False]
    assert mask(parse("c = 'b'", schema), table.to_batches()[1], schema).to_pylist() == [True]
    assert mask(None, table, schema).to_pylist() == [True] * 3
    assert mask(parse("TRUE", schema), table, schema).to_pylist() == [True] * 3


def test_a_part_that_cannot_be_decided_is_an_error_before_any_row():
    """H11: naming the part; it never filters less or more."""
    schema = pa.schema([("c", pa.string())])
    node = parse("c = 'a' AND soundex(c) = 'A'", schema)
    empty = pa.table({"c": pa.array([], pa.string())})
    for refuse in (lambda: require_exact(node), lambda: mask(node, empty, schema)):
        with pytest.raises(PredicateError, match=r"SOUNDEX\(c\) = 'A'") as caught:
            refuse()
        assert caught.value.part == "SOUNDEX(c) = 'A'"


def test_binary_compares_by_bytes():
    assert rows("c > X'7f'", pa.binary(), [b"\x7f", b"\x80", b"\x7f\x00", b""]) == [b"\x80", b"\x7f\x00"]
