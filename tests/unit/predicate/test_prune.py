"""Which files a predicate keeps, from their statistics and partition values."""

from __future__ import annotations

import dataclasses
import math

import pyarrow as pa
import pytest

from indextables.model.stats import FileStats
from indextables.predicate.build.from_sql import parse
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.predicate.prune.rule import (
    Needs,
    Verdict,
    columns_needed,
    prune_file,
    prune_table,
)
from support.file_tables import files_table

SCHEMA = pa.schema([("n", pa.int64()), ("d", pa.float64()), ("s", pa.string()), ("t", pa.timestamp("us", "UTC")), ("b", pa.bool_()), ("dec", pa.decimal128(10, 2)),
                    ("st", pa.struct([("x", pa.int32())])), pa.field("pad", pa.string(), metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})])  # fmt: skip
KEEP, DROP, UNKNOWN = Verdict.KEEP, Verdict.DROP, Verdict.UNKNOWN
CUT = " [TRUNCATED]"


def verdict(text, lower, upper, *, nulls=0, rows=10, column="n"):
    """Ask both pruners about a file with one column's statistics; they must agree."""
    stats = FileStats(
        rows,
        {} if lower is None else {column: lower},
        {} if upper is None else {column: upper},
        {} if nulls is None else {column: nulls},
    )
    node = parse(text, SCHEMA)
    one = prune_file(node, stats, {}, SCHEMA, ())
    many = prune_table(node, files_table([stats], [{}], SCHEMA), SCHEMA, ())
    assert many.mask.to_pylist() == [one is not DROP], text
    return one


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n = 9", KEEP), ("n = 10", KEEP), ("n = 8", DROP), ("n = 101", DROP), ("n < 9", DROP), ("n < 10", KEEP), ("n <= 9", KEEP), ("n <= 8", DROP), ("n > 100", DROP), ("n > 99", KEEP), ("n >= 100", KEEP), ("n >= 101", DROP),
        ("n <> 9", KEEP), ("NOT n < 101", DROP), ("NOT n <= 100", DROP), ("NOT n > 8", DROP), ("NOT n >= 9", DROP), ("NOT n >= 10", KEEP), ("n BETWEEN 1 AND 8", DROP), ("n NOT BETWEEN 9 AND 100", DROP), ("n BETWEEN 50 AND 60", KEEP),
        ("n IN (1, 2, 8)", DROP), ("n IN (1, 50)", KEEP), ("n IN (1, 2, 3, 4, 5, 6, 7, 8, 101)", DROP), ("n IN (1, 2, 3, 4, 5, 6, 7, 100)", KEEP), ("n NOT IN (9, NULL)", DROP), ("n IN (9, NULL)", KEEP), ("n IN (9, 201, 202, 203, 204)", KEEP), ("n IN (1, 2, 3, 4, 100)", KEEP), ("n IS NULL", DROP), ("n IS NOT NULL", KEEP), ("n <=> 8", DROP), ("n <=> NULL", DROP), ("NOT n <=> NULL", KEEP), ("n = NULL", DROP),
        ("n > 2.5", KEEP), ("n > 100.5", DROP), ("n = 9.5", DROP), ("n > 1e2", DROP), ("n >= 1e2", KEEP), ("TRUE", KEEP), ("FALSE", DROP), ("n = 8 OR n = 101", DROP), ("n = 8 OR n = 9", KEEP), ("n = 9 AND n = 101", DROP), ("(n = 8) IS TRUE", DROP), ("(n = 8) IS NOT TRUE", KEEP),
    ],
)  # fmt: skip
def test_numbers_are_compared_as_numbers_at_both_bounds(text, expected):
    """H5, H6: "9" < "10" < "100"; every operator at its edge, and under NOT."""
    assert verdict(text, "9", "100") is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NOT (n >= 9 AND n <= 100)", DROP), ("NOT (n >= 10 AND n <= 100)", KEEP), ("NOT (n >= 9 AND s = 'a')", UNKNOWN),
        ("NOT (n < 101 OR s = 'a')", DROP), ("NOT (n < 100 OR n > 100)", KEEP), ("NOT (NOT n = 8)", DROP),
        ("NOT (n IS NULL OR n < 9)", KEEP), ("NOT (n IS NOT NULL)", DROP), ("NOT (TRUE AND n IS NOT NULL)", DROP), ("NOT NULL", DROP),
    ],
)  # fmt: skip
def test_not_turns_and_and_or_round(text, expected):
    """H6: NOT only where sound: a conjunction is false where one part is, a disjunction where all are."""
    assert verdict(text, "9", "100") is expected


def test_a_file_with_one_value_has_no_other():
    """H6: NOT of an equality, and NOT IN, drop exactly the file that holds nothing else."""
    assert verdict("n <> 5", "5", "5") is DROP
    assert verdict("n NOT IN (4, 5)", "5", "5") is DROP
    assert verdict("NOT n <=> 5", "5", "5") is DROP
    assert verdict("NOT n <=> 5", "5", "5", nulls=1) is KEEP
    assert verdict("n NOT IN (4, 6)", "5", "5") is KEEP
    assert verdict("n <> 5", "5", "6") is KEEP


@pytest.mark.parametrize(
    "text",
    [
        "n = 1",
        "n <> 1",
        "n < 1",
        "NOT n < 1",
        "n IN (1)",
        "n NOT IN (1)",
        "s LIKE 'a%'",
        "s NOT LIKE '%a%'",
        "s LIKE '_'",
    ],
)
def test_a_column_of_nulls_matches_no_comparison(text):
    """H6: skipped only when nullCount == numRecords is known."""
    column = text.split(maxsplit=1)[0]
    column = "n" if column == "NOT" else column
    assert verdict(text, None, None, nulls=10, column=column) is DROP
    for known in ({"nulls": None}, {"rows": None, "nulls": 10}, {"nulls": 9}):
        assert verdict(text, None, None, column=column, **known) is UNKNOWN


def test_nulls_are_found_by_their_count():
    """H6: kept for IS NULL; a known count of none drops; fewer nulls than rows mean a value."""
    assert verdict("n IS NULL", None, None, nulls=10) is KEEP
    assert verdict("n IS NULL", "1", "2", nulls=0) is DROP
    assert verdict("n IS NULL", "1", "2", nulls=None) is UNKNOWN
    assert verdict("n IS NOT NULL", None, None, nulls=10) is DROP
    assert verdict("n IS NOT NULL", "1", None, nulls=10) is KEEP, (
        "a bound proves a value, whatever the counts say"
    )


@pytest.mark.parametrize(
    "text", ["n = 1", "n < 1", "n >= 1", "n IN (1, 2)", "NOT n = 1", "n IS NULL", "s LIKE 'a%'", "st.x = 1"]
)
def test_missing_statistics_keep_the_file(text):
    """H6, K3: a file without statistics is kept by every data filter."""
    node = parse(text, SCHEMA)
    assert prune_file(node, FileStats(), {}, SCHEMA, ()) is UNKNOWN
    bare = pa.table({"path": ["a", "b"]})
    assert prune_table(node, bare, SCHEMA, ()).mask.to_pylist() == [True, True]


def test_half_of_the_statistics_is_half_of_the_knowledge():
    """H6: a missing maximum is no bound, and the minimum still is."""
    assert verdict("n = 1", "5", None) is DROP
    assert verdict("n = 9", "5", None) is UNKNOWN
    assert verdict("n > 1", "5", None) is UNKNOWN
    assert verdict("n > 9", None, "5") is DROP
    assert verdict("n IN (1, 2, 3, 4, 5, 9)", "6", None) is UNKNOWN
    assert verdict("n IN (6, 7, 8, 9, 10, 11)", None, "5") is DROP


@pytest.mark.parametrize("damaged", ["", "ten", "0x10", "1.5", str(1 << 70)])
def test_a_statistic_that_cannot_be_read_is_no_bound(damaged):
    assert verdict("n = 1", damaged, damaged) is UNKNOWN


@pytest.mark.parametrize(
    ("text", "lower", "upper", "expected"),
    [
        ("d > 5", "1.0", None, UNKNOWN), ("d > 5", "1.0", "NaN", UNKNOWN), ("d < 0", "NaN", "1.0", UNKNOWN), ("d = CAST('NaN' AS DOUBLE)", "1.0", "Infinity", DROP), ("d = CAST('NaN' AS DOUBLE)", "1.0", None, UNKNOWN), ("d < CAST('NaN' AS DOUBLE)", "1.0", "2.0", KEEP),
        ("d >= CAST('NaN' AS DOUBLE)", "1.0", "2.0", DROP), ("d = 0.0D", "-0.0", "-0.0", KEEP), ("d = -0.0D", "0.0", "0.0", KEEP), ("d < 0.0D", "-0.0", "0.0", DROP), ("d > 1e308", "0.0", "Infinity", KEEP), ("d < -1e308", "-Infinity", "0.0", KEEP), ("NOT d > 5", "6.0", None, DROP),
    ],
)  # fmt: skip
def test_special_numbers_are_never_a_harmful_bound(text, lower, upper, expected):
    """H5, H11: NaN is above everything and recorded NaN is no bound; infinities are; zero has one value."""
    assert verdict(text, lower, upper, column="d") is expected


def test_timestamps_decimals_and_booleans_are_compared_by_their_type():
    """H5: microseconds, also before 1970; digits as numbers."""
    assert verdict("t < TIMESTAMP '1969-12-31 23:59:59.999999Z'", "-1", "5", column="t") is DROP
    assert verdict("t <= TIMESTAMP '1969-12-31 23:59:59.999999Z'", "-1", "5", column="t") is KEEP
    assert verdict("dec > 9.99", "1.00", "9.99", column="dec") is DROP
    assert verdict("dec > 9.985", "1.00", "9.99", column="dec") is KEEP
    assert verdict("b", "false", "false", column="b") is DROP
    assert verdict("NOT b", "false", "true", column="b") is KEEP


@pytest.mark.parametrize(
    ("text", "lower", "upper", "expected"),
    [
        ("s = 'abz'", "a", "ab" + CUT, KEEP), ("s = 'ac'", "a", "ab" + CUT, DROP), ("s > 'ab'", "a", "ab" + CUT, KEEP), ("s > 'abzzzz'", "a", "ab" + CUT, KEEP), ("s >= 'ac'", "a", "ab" + CUT, DROP), ("s > 'ac'", "a", "ab" + CUT, DROP), ("s < 'ab'", "ab" + CUT, "z", DROP), ("s <= 'ab'", "ab" + CUT, "z", KEEP),
        ("s < 'ab '", "ab" + CUT, "z", KEEP), ("s = 'ab!'", "ab" + CUT, "b", KEEP), ("s IN ('aa', 'ac')", "ab" + CUT, "ab" + CUT, DROP), ("s IN ('aa', 'abq')", "ab" + CUT, "ab" + CUT, KEEP), ("s IN ('1', '2', '3', '4', 'ac', 'ad')", "ab" + CUT, "ab" + CUT, DROP), ("s IN ('1', '2', '3', '4', 'abx', 'ad')", "ab" + CUT, "ab" + CUT, KEEP),
        ("s LIKE 'abc%'", "a", "ab" + CUT, KEEP), ("s LIKE 'ac%'", "a", "ab" + CUT, DROP), ("s LIKE 'a%z'", "b" + CUT, "c", DROP), ("s NOT LIKE 'ab%'", "ab" + CUT, "ab" + CUT, DROP), ("s NOT LIKE 'abc%'", "ab" + CUT, "ab" + CUT, KEEP), ("s <> 'ab'", "ab" + CUT, "ab" + CUT, KEEP), ("s <=> 'ac'", "a", "ab" + CUT, DROP), ("s BETWEEN 'ac' AND 'z'", "a", "ab" + CUT, DROP),
        ("s > 'zzz'", "a", "\U0010ffff" + CUT, UNKNOWN), ("s > '\ud7ff'", "a", "\ud7ff" + CUT, KEEP), ("s >= '\ue000'", "a", "\ud7ff" + CUT, DROP), ("s NOT IN ('ab')", "ab" + CUT, "ab" + CUT, UNKNOWN),
    ],
)  # fmt: skip
def test_a_truncated_value_is_only_a_prefix(text, lower, upper, expected):
    """H3: the lower bound is the prefix, the upper one lies above everything that begins with it."""
    assert verdict(text, lower, upper, column="s") is expected


def test_a_very_long_literal_is_compared_with_cut_values_at_their_length():
    """H3: and costs no more than the statistics are long."""
    assert verdict("s > 'ab" + "z" * 200_000 + "'", "a", "ab" + CUT, column="s") is KEEP
    assert verdict("s > 'ac" + "z" * 200_000 + "'", "a", "ab" + CUT, column="s") is DROP


def test_texts_with_a_prefix_lie_between_it_and_its_successor():
    """H6: the expansion of startsWith, both ways."""
    assert verdict("s LIKE 'b%'", "a", "az", column="s") is DROP
    assert verdict("s LIKE 'b%'", "c", "d", column="s") is DROP
    assert verdict("s LIKE 'b%'", "bz", "d", column="s") is KEEP
    assert verdict("s LIKE 'b%'", "a", "b", column="s") is KEEP
    assert verdict("s NOT LIKE 'b%'", "b", "bz", column="s") is DROP
    assert verdict("s NOT LIKE 'b%'", "b", "c", column="s") is KEEP
    assert verdict("s LIKE '%'", "a", "b", column="s") is KEEP
    assert verdict("s LIKE '%x'", "a", "b", column="s") is UNKNOWN


def test_padded_strings_never_prune():
    """H6: char(n) is compared with blanks that the statistics may lack."""
    assert verdict("pad = 'z'", "a", "b", column="pad") is UNKNOWN
    assert verdict("pad = 'z'", None, None, nulls=10, column="pad") is DROP


def test_fields_of_structs_have_statistics_by_dotted_name():
    assert verdict("ST.X = 9", "1", "5", column="st.x") is DROP
    assert verdict("st.x = 3", "1", "5", column="st.x") is KEEP


PARTITIONED = pa.schema(
    [
        ("month", pa.int32()),
        ("v", pa.int64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("flag", pa.bool_()),
        ("price", pa.decimal128(6, 2)),
        ("ratio", pa.float64()),
        ("name", pa.string()),
    ]
)


def months(text, values, column="month", zone="UTC"):
    """The partition values that stay, by both pruners."""
    node = parse(text, PARTITIONED, zone)
    stats, parts = [FileStats()] * len(values), [{column: value} for value in values]
    found = prune_table(node, files_table(stats, parts, PARTITIONED, [column]), PARTITIONED, [column])
    kept = [value for value, stays in zip(values, found.mask.to_pylist()) if stays]
    alone = [
        part[column]
        for part in parts
        if prune_file(node, FileStats(), part, PARTITIONED, [column]) is not DROP
    ]
    assert kept == alone
    assert found.metrics.skipped_by_statistics == 0
    return kept


def test_partition_pruning_is_typed():
    """H7: month > 9 over 1..12 keeps 10, 11, 12; '10' against an int column; null only where asked for."""
    values = [*map(str, range(1, 13)), None]
    assert months("month > 9", values) == ["10", "11", "12"]
    assert months("month = '10'", values) == ["10"]
    assert months("month IS NULL", values) == [None]
    assert months("month <> 3 AND month < 5", values) == ["1", "2", "4"]
    assert months("NOT month = 3", ["3", None]) == []
    assert months("month <=> NULL OR month IN (2, 99)", values) == ["2", None]
    assert months("NOT month <=> 2", ["2", "3", None]) == ["3", None]


def test_every_type_partitions():
    """H7: boolean, date, timestamp, decimal, double, string."""
    assert months("NOT flag", ["true", "false", None], "flag") == ["false"]
    assert months("day >= '1970-01-01'", ["1969-12-31", "1970-01-01"], "day") == ["1970-01-01"]
    assert months("price > 9.5", ["10.00", "9.50", "9.51"], "price") == ["10.00", "9.51"]
    assert months("ratio > 1", ["0.5", "NaN", "Infinity"], "ratio") == ["NaN", "Infinity"]
    assert months(
        "ratio = CAST('NaN' AS DOUBLE) OR ratio NOT IN (0.5, 1)", ["0.5", "NaN", "1.0"], "ratio"
    ) == ["NaN"]
    assert months("ratio >= CAST('NaN' AS DOUBLE)", ["0.5", "NaN"], "ratio") == ["NaN"]
    assert months("ratio > CAST('NaN' AS DOUBLE)", ["0.5", "NaN"], "ratio") == []
    assert months("NOT ratio < CAST('NaN' AS DOUBLE)", ["0.5", "NaN"], "ratio") == ["NaN"]
    assert months("name LIKE 'a%' OR name = ''", ["a", "", "b", "ab [TRUNCATED]", None], "name") == [
        "a",
        "",
        "ab [TRUNCATED]",
    ]


@pytest.mark.parametrize("zone", ["UTC", "+14:00", "-11:00", "America/New_York"])
def test_instants_prune_alike_in_any_session_zone(zone):
    """H7: the result is the same in any session time zone when the literal names its offset."""
    values = ["2024-11-03T05:30:00.000000Z", "2024-11-03T06:30:00.000000Z"]
    assert months("at = TIMESTAMP '2024-11-03 01:30:00-04:00'", values, "at", zone) == values[:1]
    assert months("at = TIMESTAMP '2024-11-03 01:30:00-05:00'", values, "at", zone) == values[1:]


def test_a_file_without_a_partition_value_at_all_is_kept():
    assert prune_file(parse("month = 3", PARTITIONED), FileStats(), {}, PARTITIONED, ["month"]) is UNKNOWN
    unknown = pa.table(
        {"path": ["a"], "partition_values": pa.array([None], pa.struct([("month", pa.int32())]))}
    )
    assert prune_table(parse("month = 3", PARTITIONED), unknown, PARTITIONED, ["month"]).mask.to_pylist() == [
        True
    ]


def test_metrics_tell_partitions_from_statistics_and_give_reasons():
    """H9: considered, pruned by partition, skipped by statistics, kept; a reason per dropped file."""
    stats = [
        FileStats(1, {"v": low}, {"v": high}, {"v": 0}) for low, high in (("1", "2"), ("1", "2"), ("5", "9"))
    ]
    files = files_table(stats, [{"month": "1"}, {"month": "2"}, {"month": "2"}], PARTITIONED, ["month"])
    found = prune_table(
        parse("month = 2 AND v > 4", PARTITIONED), files, PARTITIONED, ["month"], explain=True
    )
    assert found.mask.to_pylist() == [False, False, True]
    assert (
        found.metrics.considered,
        found.metrics.pruned_by_partition,
        found.metrics.skipped_by_statistics,
        found.metrics.kept,
    ) == (3, 1, 1, 1)
    assert found.metrics.reasons.to_pylist() == ["partition values: month = 2", "statistics: v > 4", None]
    twice = found.metrics.plus(found.metrics)
    assert (twice.considered, len(twice.reasons)) == (6, 6)
    assert found.metrics.plus(PruneMetrics(1, 0, 0, 1)).reasons is None


def test_a_disjunction_over_both_is_decided_by_both():
    """H6: OR drops a file only if both sides do."""
    stats = [FileStats(1, {"v": "1"}, {"v": "2"}, {"v": 0})]
    files = files_table(stats, [{"month": "1"}], PARTITIONED, ["month"])
    for text, kept in (
        ("month = 2 OR v > 4", False),
        ("month = 1 OR v > 4", True),
        ("month = 2 OR v > 1", True),
    ):
        assert prune_table(parse(text, PARTITIONED), files, PARTITIONED, ["month"]).mask.to_pylist() == [kept]


def test_no_predicate_keeps_everything_and_no_file_is_no_problem():
    files = files_table([FileStats(1)], [{}], SCHEMA)
    assert prune_table(None, files, SCHEMA, ()).mask.to_pylist() == [True]
    assert prune_file(None, FileStats(), {}, SCHEMA, ()) is KEEP
    empty = prune_table(parse("n = 1 AND s = 'a' AND TRUE", SCHEMA), files.slice(0, 0), SCHEMA, ())
    assert (empty.mask.to_pylist(), empty.metrics.kept) == ([], 0)


def test_many_chunks_are_one_table():
    stats = [
        FileStats(1, {"s": f"{n}" + (CUT if n % 2 else "")}, {"s": f"{n}" + (CUT if n % 3 else "")}, {"s": 0})
        for n in range(8)
    ]
    whole = files_table(stats, [{}] * 8, SCHEMA)
    parts = pa.concat_tables([whole.slice(n, 2) for n in range(0, 8, 2)])
    node = parse("s >= '3' AND s < '6'", SCHEMA)
    assert (
        prune_table(node, parts, SCHEMA, ()).mask.to_pylist()
        == prune_table(node, whole, SCHEMA, ()).mask.to_pylist()
    )


@pytest.mark.parametrize("times", [1, 6_000], ids=["one chunk", "chunks"])
def test_files_outside_a_choice_are_neither_kept_nor_counted(times):
    stats = [
        FileStats(1, {"v": low}, {"v": high}, {"v": 0}) for low, high in (("1", "2"), ("1", "2"), ("5", "9"))
    ]
    files = files_table(stats, [{"month": "1"}, {"month": "2"}, {"month": "2"}], PARTITIONED, ["month"])
    files = pa.concat_tables([files] * times).combine_chunks()
    files = pa.concat_tables([files, files.slice(1)]) if times > 1 else files
    among = pa.array([number % 2 == 0 for number in range(len(files))])
    node = parse("month = 2 AND v > 4", PARTITIONED)
    first = prune_table(node, files.filter(among), PARTITIONED, ["month"], explain=True)
    found = prune_table(node, files, PARTITIONED, ["month"], among=among, explain=True)
    assert found.mask.filter(among) == first.mask
    assert found.mask.true_count == first.metrics.kept > 0
    assert found.metrics.reasons.to_pylist() == first.metrics.reasons.to_pylist()
    assert dataclasses.replace(found.metrics, reasons=None) == dataclasses.replace(
        first.metrics, reasons=None
    )


def test_a_long_list_is_searched():
    """H6: a thousand values, most of them between the files."""
    stats = [FileStats(1, {"n": str(low)}, {"n": str(low + 5)}, {"n": 0}) for low in (0, 10, 20)]
    wanted = ", ".join(str(value) for value in range(6, 2000, 10))
    found = prune_table(
        parse(f"n IN ({wanted}, 12)", SCHEMA), files_table(stats, [{}] * 3, SCHEMA), SCHEMA, ()
    )
    assert found.mask.to_pylist() == [False, True, False]


def test_long_lists_of_decimals_and_floats_lose_nothing():
    decimals = ", ".join(f"{value}.5" for value in range(100, 300))
    assert verdict(f"dec IN ({decimals})", "150.00", "151.00", column="dec") is KEEP
    assert verdict(f"dec IN ({decimals})", "1.00", "2.00", column="dec") is DROP
    floats = ", ".join(f"{value}.5D" for value in range(100)) + ", CAST('NaN' AS DOUBLE)"
    assert verdict(f"d IN ({floats})", "50.6", "51.4", column="d") is DROP
    assert verdict(f"d IN ({floats})", "50.6", None, column="d") is UNKNOWN


def test_only_the_columns_a_predicate_names_are_needed():
    node = parse("month = 2 AND (v > 4 OR name IS NULL)", PARTITIONED)
    assert columns_needed(node, ["month", "day"]) == Needs(frozenset({"month"}), frozenset({"v", "name"}))
    assert columns_needed(None, ["month"]) == Needs(frozenset(), frozenset())


def test_statistics_of_another_type_are_not_trusted():
    files = pa.table({"num_records": [1], "min": pa.array([{"n": "5"}]), "max": pa.array([{"n": "6"}])})
    assert prune_table(parse("n = 100", SCHEMA), files, SCHEMA, ()).mask.to_pylist() == [True]


def test_nan_is_equal_to_itself_in_long_and_short_lists():
    assert math.isnan(parse("d IN (CAST('NaN' AS DOUBLE))", SCHEMA).values[0].value)
    assert verdict("d IN (CAST('NaN' AS DOUBLE))", "1.0", "2.0", column="d") is DROP


@pytest.mark.parametrize(("where", "expected"), [
    ("(x > 5) IS NULL", "nulls"), ("(x > 5 AND s = 'a') IS NULL", "nulls"), ("(x = 1 OR s LIKE 'a%') IS NULL", "nulls"),
    ("isnull(x <> 3)", "nulls"), ("NOT ((x > 5) IS NULL)", "both"), ("(x > 5) IS NOT NULL", "both"),
    ("(x > 5) <=> NULL", "nulls"), ("(x IN (1, 2)) IS NULL", "nulls"), ("(x IN (1, NULL)) IS NULL", "both"),
    ("(x <=> 5) IS NULL", "none"), ("(x + y) IS NULL", "nulls"), ("upper(s) IS NULL", "nulls"),
    ("(x + y > 5) IS NULL", "nulls"), ("(x > y) IS NULL", "nulls"), ("(x / y) IS NULL", "both"),
    ("(c + c) IS NULL", "both"), ("CAST(x AS DOUBLE) IS NULL", "nulls"), ("CAST(s AS INT) IS NULL", "both"),
    ("(CAST(s AS INT) > 5) IS NULL", "both"), ("((x > 5) IS NULL) IS NULL", "none"),
    ("(x > 100 AND s IS NULL) IS NULL", "nulls"), ("(x < 100 OR s = 'z') IS NULL", "nulls"),
])  # fmt: skip
def test_an_expression_can_be_null_only_where_its_columns_can(where, expected):
    """The IsNull expansion: the NULL-ness of an expression is told by the null counts of its columns."""
    kinds = {"x": pa.int64(), "y": pa.int64(), "s": pa.string(), "c": pa.decimal128(10, 2)}
    schema = pa.schema(list(kinds.items()))
    low = {"x": "1", "y": "1", "s": "a", "c": "1.00"}
    high = {"x": "9", "y": "9", "s": "b", "c": "2.00"}

    def kept(nulls):
        stats = FileStats(
            num_records=5, min_values=low, max_values=high, null_count=dict.fromkeys(kinds, nulls)
        )
        return prune_file(parse(where, schema), stats, {}, schema, ()) is not Verdict.DROP

    found = {(True, True): "both", (True, False): "nulls", (False, False): "none"}[kept(1), kept(0)]
    assert found == expected
