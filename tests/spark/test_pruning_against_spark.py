"""Random predicates over random rows: Spark over all files, Spark over the kept files and the exact filter agree."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from indextables.errors import PredicateError
from indextables.model.stats import collect, truncate_statistics
from indextables.predicate.build.from_sql import parse
from indextables.predicate.evaluate.rows import mask
from indextables.predicate.prune.rule import prune_table
from support.file_tables import files_table

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("ansi_rules")]

NEW_YORK = "America/New_York"
ZONES = ["UTC", "+14:00", "-11:00", NEW_YORK]
PREDICATES_PER_ZONE = 60
FILES, ROWS = 16, 24
HOUR = 3_600_000_000
FOLD = 1_730_611_800_000_000  # 2024-11-03T05:30Z: 01:30 in New York, and again one hour later
GAP = 1_710_055_800_000_000  # 2024-03-10T07:30Z: 03:30 in New York, where 02:30 never was

SCHEMA = pa.schema(
    [
        ("id", pa.int64()), ("b", pa.bool_()), ("i8", pa.int8()), ("i", pa.int32()), ("l", pa.int64()),
        ("f", pa.float32()), ("d", pa.float64()), ("dec", pa.decimal128(10, 2)), ("s", pa.string()),
        ("n", pa.string()), ("bin", pa.binary()), ("dt", pa.date32()), ("ts", pa.timestamp("us", "UTC")),
        ("ntz", pa.timestamp("us")), ("st", pa.struct([("x", pa.int32()), ("y", pa.string())])),
    ]
)  # fmt: skip
NUMBERS = [-3.4, -2.5, -1.0, -0.0, 0.0, 0.1, 2.5, 3.0, 10.0, math.inf, -math.inf, math.nan]
TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "abc",
    "b_c",
    "b%c",
    "it's",
    "é",
    "z\u00e9",
    "\ud7ff",
    "\ue000",
    "\U0001f600",
    "\U0010ffff",
    "a\nb",
    "x" * 20,
    "x" * 30,
]
TIMES = [
    FOLD - HOUR,
    FOLD,
    FOLD + HOUR,
    FOLD + 2 * HOUR,
    GAP - HOUR,
    GAP,
    GAP + 1,
    0,
    -1,
    -86_400_000_000,
    1_704_067_200_000_000,
    1_704_081_600_000_000,
]
DAYS = [-1, 0, 1, 19722, 19723, 19792, 19793, 20029, 20030, 20031]


def value(chooser, kind, centre):
    """A random cell; most lie near the file's own centre, so that files differ and can be skipped."""
    is_ = pa.types
    if chooser.random() < 0.15:
        return None
    if is_.is_boolean(kind):
        return chooser.random() < centre
    if is_.is_integer(kind):
        return chooser.choice(
            [int(centre * 20) - 10 + chooser.randint(-1, 1), chooser.choice([-128, 0, 5, 127])]
        )
    if is_.is_decimal(kind):
        return Decimal(int(centre * 2000) - 1000 + chooser.randint(-60, 60)).scaleb(-2)
    pools = [
        (is_.is_floating, NUMBERS),
        (is_.is_string, TEXTS),
        (is_.is_date, DAYS),
        (is_.is_timestamp, TIMES),
    ]
    for test, pool in pools:
        if test(kind):
            position = int(centre * (len(pool) - 1)) + chooser.choice([-1, 0, 0, 1])
            return pool[max(0, min(position, len(pool) - 1))]
    return chooser.choice([b"", b"a", b"\x00\xff"])


def rows_of(chooser, number):
    columns = {"id": list(range(number * ROWS, (number + 1) * ROWS))}
    centre = chooser.random()
    for field in SCHEMA:
        if field.name == "st":
            parts = [
                {"x": value(chooser, pa.int32(), centre), "y": value(chooser, pa.string(), centre)}
                for _ in range(ROWS)
            ]
            columns["st"] = [None if chooser.random() < 0.1 else part for part in parts]
        elif field.name == "n":
            columns["n"] = [chooser.choice([" 5 ", "-7", "0", "+12", None]) for _ in range(ROWS)]
        elif field.name != "id":
            columns[field.name] = [value(chooser, field.type, centre) for _ in range(ROWS)]
    return pa.table([pa.array(columns[field.name], field.type) for field in SCHEMA], schema=SCHEMA)


LITERALS = {
    "b": ["TRUE", "FALSE", "'true'", "' no '"],
    "i8": ["5", "-3Y", "2.5", "'5'", "300", "-129L", "0.0D", "CAST('NaN' AS DOUBLE)"],
    "i": ["5", "-3", "2.5", "-2.5D", "'5'", "99999999999", "CAST('-Infinity' AS DOUBLE)", "1.5F"],
    "l": ["5L", "-3", "2.5", "2.5D", "'-7'", "9223372036854775807", "99999999999999999999999"],
    "f": ["0.1", "0.1F", "0.1D", "2.5", "3", "'NaN'", "CAST('NaN' AS FLOAT)", "-0.0D", "CAST('Infinity' AS DOUBLE)"],
    "d": ["0.1", "-0.0D", "0", "2.5", "'NaN'", "CAST('NaN' AS DOUBLE)", "CAST('inf' AS DOUBLE)", "-3.4D", "10L"],
    "dec": ["2.5", "-2.505", "3", "'0.5'", "0.1D", "-9.99BD", "12345678901234567890.5"],
    "s": ["'a'", "'abc'", "'it\\'s'", '"it\'s"', "'b_c'", "'\\u00e9'", "'\U0001f600'", "'\ue000'", "'xxxxxxxxxxxxxxxxxxxxy'", "''", "r'a\\nb'"],
    "n": ["5", "'-7'", "0.0D", "12L", "1.5"],
    "bin": ["X'61'", "'a'", "X''"],
    "dt": ["DATE '2024-01-01'", "'2024-11-03'", "TIMESTAMP '2024-03-10 02:30:00'", "TIMESTAMP_NTZ '2024-01-01 00:00:00'", "DATE '1969-12-31'", "TIMESTAMP '2024-11-03 04:00:00Z'", "'2024-3-10'"],
    "ts": ["TIMESTAMP '2024-11-03 01:30:00'", "TIMESTAMP '2024-11-03 01:30:00-05:00'", "'2024-11-03 01:30:00'", "TIMESTAMP '2024-03-10 02:30:00'", "DATE '2024-01-01'", "TIMESTAMP '2024-11-03T05:30:00Z'", "TIMESTAMP_NTZ '2024-11-03 01:30:00'", "TIMESTAMP '1970-01-01 00:00:00 UTC'", "'2024'"],
    "ntz": ["TIMESTAMP_NTZ '2024-11-03 05:30:00'", "'2024-11-03 05:30:00'", "TIMESTAMP '2024-11-03 05:30:00'", "DATE '2024-01-01'", "TIMESTAMP '2024-03-10 02:30:00'", "'2024-03-10T07:30:00.000001'"],
    "st.x": ["5", "-3", "'4'", "2.5"],
    "St.Y": ["'a'", "'b%c'", "'\U0010ffff'"],
    "CAST(ts AS DATE)": ["DATE '2024-11-03'", "'2024-01-01'", "DATE '1970-01-01'"],
    "CAST(ntz AS DATE)": ["DATE '2024-11-03'", "'2024-03-10'"],
    "CAST(l AS DOUBLE)": ["2.5D", "-3"],
    "CAST(n AS INT)": ["5", "-7"],
}  # fmt: skip


def leaf(chooser):
    operand = chooser.choice(list(LITERALS))
    pool = LITERALS[operand]
    shape = chooser.randrange(10)
    if shape == 0 and "(" not in operand:
        return f"{operand} IS {chooser.choice(['', 'NOT '])}NULL"
    if shape <= 2:
        items = chooser.sample(pool, min(len(pool), chooser.randint(1, 4))) + chooser.choice([[], ["NULL"]])
        return f"{operand} {chooser.choice(['', 'NOT '])}IN ({', '.join(items)})"
    if shape == 3:
        return f"{operand} {chooser.choice(['', 'NOT '])}BETWEEN {chooser.choice(pool)} AND {chooser.choice(pool)}"
    if shape == 4:
        text = chooser.choice(["s", "st.y"])
        pattern = chooser.choice(
            [
                "'a%'",
                "'%c'",
                "'%b%'",
                "'b\\\\_c'",
                "'b!_c' ESCAPE '!'",
                "'_'",
                "'a%b'",
                "''",
                "'\U0001f600%'",
                "'x%y'",
                "'%'",
            ]
        )
        return chooser.choice([f"{text} LIKE {pattern}", f"{text} NOT LIKE {pattern}", f"startswith({text}, {chooser.choice(LITERALS['s'])})",
                               f"endswith({text}, 'c')", f"contains({text}, '_')"])  # fmt: skip
    if shape == 5:
        return chooser.choice(
            ["b", "NOT b", "B IS TRUE", "b IS NOT FALSE", "(i > 3) IS NOT TRUE", "(s = 'a') IS FALSE"]
        )
    sides = [
        operand,
        chooser.choice(["=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"]),
        chooser.choice(pool),
    ]
    if chooser.random() < 0.2 and sides[1] != "==":
        sides.reverse()
    return " ".join(sides)


def predicate(chooser, depth=2):
    shape = chooser.randrange(6) if depth else 0
    if shape < 3:
        return leaf(chooser)
    if shape == 3:
        return f"NOT ({predicate(chooser, depth - 1)})"
    joint = chooser.choice([" AND ", " OR "])
    return joint.join(f"({predicate(chooser, depth - 1)})" for _ in range(2))


@dataclass(frozen=True)
class Files:
    paths: list[str]
    tables: list[pa.Table]
    form: pa.Table
    frame: object

    def kept(self, node):
        keep = prune_table(node, self.form, SCHEMA, []).mask.to_pylist()
        return [number for number, stays in enumerate(keep) if stays]

    def matching(self, node):
        chosen = mask(node, pa.concat_tables(self.tables), SCHEMA)
        return [number for number, stays in enumerate(chosen.to_pylist()) if stays]


@pytest.fixture(scope="module")
def files(spark, tmp_path_factory):
    """Parquet files with statistics, loaded while the session's zone is UTC."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    root, chooser = tmp_path_factory.mktemp("files"), random.Random(7)
    tables = [rows_of(chooser, number) for number in range(FILES)]
    paths, stats = [], []
    settings = {"stats.truncation.strategy": "truncate", "stats.truncation.maxLength": "18"}
    for number, table in enumerate(tables):
        paths.append(str(root / f"{number}.parquet"))
        pq.write_table(table, paths[-1])
        whole = collect(table, SCHEMA)
        lower, upper = truncate_statistics(whole.min_values, whole.max_values, SCHEMA, settings)
        stats.append(type(whole)(whole.num_records, lower, upper, whole.null_count))
    yield Files(paths, tables, files_table(stats, [{}] * FILES, SCHEMA), spark.read.parquet(*paths))
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def answers(frame, texts):
    """Ask Spark many predicates in one job: the ids that match each."""
    columns = [f"coalesce(({text}), false) AS p{number}" for number, text in enumerate(texts)]
    found = frame.selectExpr("id", *columns).collect()
    return [sorted(row["id"] for row in found if row[number + 1]) for number in range(len(texts))]


@pytest.mark.parametrize("zone", ZONES)
def test_spark_and_the_exact_filter_agree_and_no_match_is_skipped(spark, files, zone):
    """H5, H6, H7, H11: the zone was changed after the files were loaded; pruning and filtering follow the query's."""
    chooser = random.Random(f"predicates in {zone}")
    texts = [predicate(chooser) for _ in range(PREDICATES_PER_ZONE)]
    spark.conf.set("spark.sql.session.timeZone", zone)
    expected = answers(files.frame, texts)
    skipped = 0
    for text, ids in zip(texts, expected):
        node = parse(text, SCHEMA, zone)
        assert files.matching(node) == ids, text
        kept = files.kept(node)
        assert {number // ROWS for number in ids} <= set(kept), text
        skipped += FILES - len(kept)
    assert skipped > PREDICATES_PER_ZONE, "statistics should spare some files"


@pytest.mark.parametrize("zone", ZONES)
def test_spark_gives_the_same_rows_over_the_kept_files_only(spark, files, zone):
    """H6: the rows of a filter over all files are those of the same filter over the files that pruning keeps."""
    chooser = random.Random(f"kept in {zone}")
    spark.conf.set("spark.sql.session.timeZone", zone)
    tried = 0
    while tried < 8:
        text = predicate(chooser, 1)
        kept = files.kept(parse(text, SCHEMA, zone))
        if not 0 < len(kept) < FILES:
            continue
        tried += 1
        whole = sorted(row["id"] for row in files.frame.filter(text).select("id").collect())
        partly = spark.read.schema(files.frame.schema).parquet(*[files.paths[number] for number in kept])
        assert sorted(row["id"] for row in partly.filter(text).select("id").collect()) == whole, text


def test_both_sides_of_a_fold_are_told_apart(spark, files):
    """H7: 01:30 happened twice in New York; without an offset the first is meant, with one either."""
    spark.conf.set("spark.sql.session.timeZone", NEW_YORK)
    texts = [
        "ts = TIMESTAMP '2024-11-03 01:30:00'",
        "ts = TIMESTAMP '2024-11-03 01:30:00-04:00'",
        "ts = TIMESTAMP '2024-11-03 01:30:00-05:00'",
    ]
    first, named, second = answers(files.frame, texts)
    assert first == named != second
    assert [files.matching(parse(text, SCHEMA, NEW_YORK)) for text in texts] == [first, named, second]
    assert parse(texts[0], SCHEMA, NEW_YORK).literal.value == FOLD
    assert parse(texts[2], SCHEMA, NEW_YORK).literal.value == FOLD + HOUR


def test_a_cast_that_fails_in_spark_fails_here_unless_it_is_never_reached(spark, files):
    """H11: ANSI casts refuse a text that is no number, and AND does not look where its left side is false."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        files.frame.filter("s = 1").count()
    with pytest.raises(PredicateError, match="CAST"):
        files.matching(parse("s = 1", SCHEMA))
    guarded = "id < 0 AND s = 1"
    assert files.frame.filter(guarded).count() == 0
    assert files.matching(parse(guarded, SCHEMA)) == []
