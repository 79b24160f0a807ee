"""A filter that computes chooses the same rows in Python and in Spark, or is an error in both."""

from __future__ import annotations

import datetime as dt
import random
import re
import unicodedata
from contextlib import suppress
from decimal import Decimal

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import PredicateError
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.evaluate.rows import mask
from indextables.spark.versions import installed
from support.alike import session_zone

pytestmark = pytest.mark.usefixtures("ansi_rules")
UTC = dt.UTC
NEW_YORK = "America/New_York"
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("tiny", pa.int8()),
        ("i", pa.int32()),
        ("j", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("e", pa.float64()),
        ("dec", pa.decimal128(10, 2)),
        ("wide", pa.decimal128(38, 10)),
        ("s", pa.string()),
        ("odd `name`", pa.string()),
        ("n", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("ntz", pa.timestamp("us")),
    ]
)
TEXTS = [
    "",
    " ",
    "Error",
    "ERROR ",
    "straße",
    "İstanbul",
    "ΟΔΥΣΣΕΥΣ",
    "Σ",
    "ǅ",
    "a%b_c",
    "naïve",
    "𝒳😀",
    "ﬁn",
    "ŉ",
    "x" * 40,
]
NUMBERS = ["0", "1", " 7 ", "-12", "99", "3"]
INTS = [0, 1, -1, 2, 7, 100, -(2**31), 2**31 - 1]
LONGS = [0, 1, -1, 7, 10**12, -(2**63), 2**63 - 1, 2**53 + 1]
DOUBLES = [
    0.0,
    -0.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    1.005,
    1e300,
    -1e19,
    1e19,
    float("nan"),
    float("inf"),
    -float("inf"),
    9223372036854774784.0,
]
DECIMALS = [Decimal(text) for text in ("0.00", "1.50", "-2.25", "99999999.99", "0.01", "-0.50", "3.00")]
TIMES = [
    dt.datetime(1970, 1, 1, tzinfo=UTC),
    dt.datetime(2024, 3, 10, 6, 30, 15, 123456, tzinfo=UTC),
    dt.datetime(2024, 11, 3, 5, 30, tzinfo=UTC),
    dt.datetime(2024, 11, 3, 6, 30, tzinfo=UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    dt.datetime(2024, 2, 29, 12, tzinfo=UTC),
    dt.datetime(2024, 12, 31, 23, 59, 59, tzinfo=UTC),
]


def rows(rng: random.Random, count: int, *, extremes: bool) -> pa.Table:
    """Random rows; without extremes nothing overflows, so that more of the texts have an answer."""

    def some(values):
        if not extremes:
            values = [item for item in values if not isinstance(item, (int, float)) or -1000 < item < 1000 and item or item != item]  # fmt: skip
        return [None if rng.random() < 0.15 else rng.choice(values) for _ in range(count)]

    columns = {
        "id": list(range(count)),
        "tiny": some([0, 1, -1, 127, -128]),
        "i": some(INTS),
        "j": some(INTS),
        "l": some(LONGS),
        "f": some([0.0, -0.0, 0.1, 1.5, float("nan"), 1e30]),
        "d": some(DOUBLES),
        "e": some(DOUBLES),
        "dec": some(DECIMALS),
        "wide": some([Decimal("1.0000000001"), Decimal("-9999999999999999999999999999.9999999999"), Decimal("12345678901234567890.5")]),
        "s": some(TEXTS),
        "odd `name`": some(TEXTS),
        "n": some(NUMBERS),
        "b": some([True, False]),
        "day": some([moment.date() for moment in TIMES]),
        "ts": some(TIMES),
        "ntz": some([moment.replace(tzinfo=None) for moment in TIMES]),
    }  # fmt: skip
    return pa.table({name: pa.array(columns[name], SCHEMA.field(name).type) for name in SCHEMA.names})


FIXED = [
    "id % 10 = 7", "id % 10 = -7", "i % 7 = -1", "i % 0 = 1", "l % i = 0", "d % 1 = 0.5", "d % e > 0", "i + j > 0", "i - j = 0", "i * 2 > j",
    "id + 1 = 5", "tiny + tiny = 2", "-tiny = 1", "-i = 1", "abs(i) = 1", "abs(l) > 5", "i / 2 = 0.5", "i / j > 1", "i / 0 = 1", "d / e = 1", "i div 2 = 3",
    "l div -1 = 1", "id div 3 = 2", "i < j", "i <= l", "i <=> j", "d = e", "d < e", "d >= e", "NOT (d < e)", "f = d", "f < 0.1", "s < `odd ``name```", "s <> `odd ``name```", "dec < i",
    "dec * 2 = 3", "dec + 1.5 > 0", "dec - i = 1", "dec / 3 > 0.5", "dec % 1 = 0.5", "dec * dec > 2", "wide * 2 > 0", "wide / 7 < 0", "dec * wide > 0", "dec > wide", "i * 1.5 > 2", "d * 1.1 > 0",
    "lower(s) = 'error'", "upper(s) = 'STRASSE'", "lower(s) = 'i̇stanbul'", "lower(s) = 'οδυσσευς'", "lower(s) = 'σ'", "upper(s) = 'FIN'", "upper(s) = 'ʼN'", "length(s) = 2", "length(s) > 5",
    "trim(s) = 'ERROR'", "ltrim(s) = ''", "rtrim(s) = 'ERROR'", "substring(s, 2, 3) = 'rro'", "substring(s, -3) = 'ror'", "substr(s, 0, 2) = 'Er'", "substring(s, -9, 6) = 'E'", "substring(s, i, 2) = 's'",
    "left(s, 2) = 'Er'", "right(s, 2) = 'or'", "left(s, -1) = ''", "right(s, 0) = ''", "concat(s, n) = '1'", "s || `odd ``name``` = 'ErrorError'", "concat(id, '-', i) = '3-1'", "replace(s, 'r', '') = 'Eo'",
    "replace(s, '', 'x') = s", "startswith(s, left(`odd ``name```, 1))", "endswith(s, 'e')", "contains(s, substring(s, 2))", "lower(s) LIKE 'err%'", "lower(s) RLIKE 'r+o'", "s LIKE '%\\\\%%'",
    "coalesce(i, j, 5) = 5", "coalesce(d, i) >= 1", "ifnull(s, 'none') = 'none'", "nvl(b, true)", "nullif(i, 1) IS NULL", "nullif(s, '') IS NOT NULL", "nvl2(i, 'a', 'b') = 'b'",
    "round(d) = 2", "round(d, 2) = 1.01", "round(d, 1) = -2.5", "round(dec) = 2", "round(dec, 1) = -0.5", "round(i) = 7", "floor(d) = -3", "ceil(d) = 1", "ceiling(dec) = 2", "floor(dec) = -3", "floor(i) = 7", "floor(d) = 9223372036854775807",
    "greatest(i, j) = 7", "least(i, l, 5) = 5", "greatest(d, e) > 1e18", "least(d, e) = -0.0", "greatest(s, 'F') = 'F'", "if(i > j, i, j) = 7", "if(b, 1, 0) = 1", "CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'm' END = 'm'",
    "CASE i WHEN 1 THEN 'one' WHEN 7 THEN s ELSE 'x' END <> 'x'", "CASE WHEN i <> 0 THEN 100 / i ELSE 0 END > 10", "i <> 0 AND 100 / i > 10", "i = 0 OR 100 / i > 10", "coalesce(i, 1 / 0) = 7",
    "year(day) = 2024", "month(ts) = 12", "day(ts) = 31", "year(ntz) = 1969", "dayofmonth(day) = 29", "hour(ts) = 1", "minute(ts) = 30", "second(ts) = 59", "hour(ntz) = 6", "hour(day) = 0",
    "date_trunc('HOUR', ts) = TIMESTAMP '2024-11-03 05:00:00Z'", "date_trunc('hour', ts) = TIMESTAMP '2024-11-03 06:00:00Z'", "date_trunc('DAY', ts) = TIMESTAMP '2024-11-03 00:00:00'", "date_trunc('week', ts) < ts", "date_trunc('QUARTER', ts) = TIMESTAMP '2024-10-01 00:00:00'",
    "date_trunc('YEAR', ts) = TIMESTAMP '2024-01-01 00:00:00'", "date_trunc('month', ntz) < ntz", "date_trunc('fortnight', ts) IS NULL", "to_date(ts) = day", "date(ts) < day", "to_date(ntz) = day", "ts = ntz", "ts > day", "ntz >= day",
    "cast(n AS INT) = 7", "cast(n AS INT) % 2 = 1", "int(n) + 1 = 2", "cast(s AS INT) = 1", "cast(i AS STRING) = '7'", "cast(dec AS STRING) = '1.50'", "cast(d AS INT) = 1", "cast(d AS BIGINT) > 0", "cast(dec AS INT) = -2", "cast(i AS TINYINT) = 1", "cast(b AS INT) = 1", "cast(i AS BOOLEAN)", "cast(ts AS STRING) LIKE '2024%30:15.123456'", "cast(ntz AS STRING) = '2024-02-29 12:00:00'", "cast(day AS STRING) = '2024-02-29'",
    "cast(i AS DECIMAL(5, 1)) = 7", "cast(d AS DECIMAL(10, 1)) = 2.5", "n = 7", "n > i", "i IN (j, 7)", "i + 0 IN (1, 7, NULL)", "i NOT IN (j, NULL)", "lower(s) IN ('error', 'σ')", "i BETWEEN j AND 100", "id BETWEEN 1 + 1 AND 10 div 2",
    "(i < j) IS NULL", "(i < j) IS NOT TRUE", "(i < j) = (d < e)", "(i + j) IS NULL", "lower(s) IS NULL", "i = 3 + 4", "1 + 1 = 2", "b = (i > 0)", "mod(i, 7) = 1", "length(concat(s, NULL)) > 0", "d + 1 = 1.5", "f * 2 = 3", "f + d > 1",
]  # fmt: skip


# A double that no bigint holds: Spark before 4.3 rounds it to the largest or the smallest, by ANSI rules too.
ROUNDING_FAILS = re.compile(r"(floor|ceil)\(.*\) fails for row")


def drawn(rng: random.Random) -> str:
    """A condition with a computed value on each side."""

    def number(depth: int) -> str:
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(["i", "j", "tiny", "id", "d", "e", "f", "dec", "2", "-3", "0.5", "7L", "1.5D"])
        shape = rng.randrange(9)
        left, right = number(depth - 1), number(depth - 1)
        if shape < 4:
            return f"({left} {rng.choice(['+', '-', '*', '%', '/'])} {right})"
        if shape == 4:
            return f"{rng.choice(['abs', 'floor', 'ceil', '-'])}({left})"
        if shape == 5:
            return f"{rng.choice(['coalesce', 'greatest', 'least'])}({left}, {right})"
        if shape == 6:
            return f"if({left} < {right}, {left}, {right})"
        return (
            f"length({text(depth - 1)})"
            if shape == 7
            else rng.choice(["year(ts)", "month(day)", "hour(ts)", "second(ntz)"])
        )

    def text(depth: int) -> str:
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(["s", "`odd ``name```", "n", "'Er'", "'σ'", "''"])
        inner = text(depth - 1)
        return rng.choice([f"lower({inner})", f"upper({inner})", f"trim({inner})", f"substring({inner}, {rng.randint(-3, 3)}, {rng.randint(-1, 4)})",
                           f"concat({inner}, {text(depth - 1)})", f"left({inner}, 2)", f"right({inner}, 3)", f"replace({inner}, 'r', 'ss')", f"coalesce({inner}, 'x')"])  # fmt: skip

    value = rng.choice([number, text])
    test = f"{value(2)} {rng.choice(['=', '<', '>=', '<=>', '<>'])} {value(2)}"
    return rng.choice(
        [test, test, f"NOT ({test})", f"({test}) IS NULL", f"({test}) OR i = 7", f"id > 20 AND {test}"]
    )


@pytest.mark.parametrize("zone", ["UTC", NEW_YORK])
def test_a_computed_filter_means_the_same_in_python_and_in_spark(spark, tmp_path, zone):
    """H11: for texts that are written out and texts that are drawn; what fails, fails in both."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from indextables.spark.read.filters import condition

    failures = (PySparkException, Py4JJavaError)  # the second is how 3.5 says that a task failed
    rng = random.Random(f"computed {zone}")
    data = rows(rng, 120, extremes=zone == "UTC")
    table = it.Table.create(tmp_path / "t", SCHEMA)
    table.append(data.slice(0, 60))
    table.append(data.slice(60))
    table = it.Table.open(tmp_path / "t", options={"timeZone": zone})
    texts = FIXED + [drawn(rng) for _ in range(60)]
    differences, refused = [], []
    with session_zone(spark, zone):
        frame = spark.read.format("indextables").load(str(tmp_path / "t")).select(*(f"`{name.replace('`', '``')}`" for name in SCHEMA.names)).cache()  # fmt: skip
        for text in texts:
            try:
                theirs = sorted(row.id for row in frame.filter(text).select("id").collect())
            except failures as error:
                theirs = type(error).__name__
            try:
                ours = sorted(table.scan(text, columns=["id"]).read_all()["id"].to_pylist())
            except PredicateError as error:
                ours = str(error)
            if isinstance(ours, str) and "cannot be applied exactly" in ours:
                refused.append(text)
            elif isinstance(ours, str) and "IS NULL" in text:
                continue  # Spark leaves out what it knows not to be null, and its failures with it
            elif isinstance(ours, str) and installed() < (4, 3) and ROUNDING_FAILS.match(ours):
                continue
            elif isinstance(ours, str) != isinstance(theirs, str) or (
                isinstance(ours, list) and ours != theirs
            ):
                differences.append((text, ours, theirs))
        for text in FIXED[::4]:
            # The tree as a condition of Spark, as `to_df(where=...)` makes it of an expression.
            with suppress(*failures, PredicateError):
                theirs = frame.filter(text).count()
                ours = frame.filter(condition(as_node(text, SCHEMA, zone))).count()
                if ours != theirs:
                    differences.append((text, ours, theirs))
    assert differences == []
    assert [text for text in refused if text in FIXED] == []
    assert len(refused) < len(texts) // 20


def test_upper_and_lower_case_are_those_of_spark_for_every_character(spark, tmp_path):
    """H11: alone, and after a letter, where a sigma is a final one."""
    import pyarrow.parquet as pq

    letters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    letters = [letter for letter in letters if unicodedata.category(letter) != "Cn"]
    texts = [
        *letters,
        *(f"A{letter}" for letter in letters if letter.isalpha()),
        "ΑΣ",
        "ΑΣ.",
        "ΑΣΑ",
        "ΑΣ'Α",
        "Σ",
    ]
    pq.write_table(pa.table({"s": texts}), tmp_path / "cases.parquet")
    theirs = spark.read.parquet(str(tmp_path / "cases.parquet")).selectExpr(
        "s", "lower(s) low", "upper(s) up"
    )
    theirs.write.parquet(str(tmp_path / "cased"))
    rows = pq.read_table(tmp_path / "cased")
    assert rows.num_rows == len(texts)
    node = as_node("lower(s) <> low OR upper(s) <> up", rows.schema)
    different = rows.filter(mask(node, rows, rows.schema)).to_pylist()
    if installed() < (4, 2):
        # Its Unicode is older: letters that came later keep their case in Spark.
        different = [row for row in different if len({row[name][-1] for name in ("s", "low", "up")}) > 1]
    assert different == []
