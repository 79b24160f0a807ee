"""The law of data skipping: whatever the rows, statistics and predicate, a row that matches is in a kept file."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.model.fields import encode_partition
from indextables.model.stats import MARKER, collect, truncate_statistics
from indextables.options import Options
from indextables.predicate import coerce
from indextables.predicate.evaluate.rows import mask
from indextables.predicate.prune.rule import Verdict, prune_each, prune_file, prune_table
from indextables.predicate.tree import (
    And,
    Column,
    Constant,
    IsNull,
    IsTrue,
    IsUndecided,
    Literal,
    Not,
    Or,
    Unknown,
)
from support.file_tables import files_table
from support.spark_meaning import truth

NAN, INF = math.nan, math.inf
CHARS = ["a", "b", " ", "?", "é", "\ud7ff", "\ue000", "\ufffd", "\U0001f600", "\U0010ffff"]
LAST = "\U0010ffff"
DAY = 86_400_000_000
FLOATS = [-INF, -(2.0**100), -2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 2.5, 9.0, 10.0, 2.0**100, INF, NAN]
DECIMALS = [
    "-9999999999.99",
    "-10.00",
    "-9.50",
    "-0.01",
    "0.00",
    "0.01",
    "9.00",
    "9.99",
    "10.00",
    "9999999999.99",
]
TIMES = [-(1 << 62), -DAY, -1, 0, 1, 999, 1000, DAY, 1 << 62]


def whole(bits):
    half = 1 << (bits - 1)
    return [-half, -half + 1, -10, -9, -1, 0, 1, 2, 9, 10, 11, half - 2, half - 1]


def text(random, size=4):
    return "".join(random.choices(CHARS, k=random.randint(0, size)))


def long_text(random):
    """Texts that meet where a statistic would be cut, at the edges of the code points, and at the marker itself."""
    kind = random.randrange(5)
    if kind == 0:
        return text(random)
    if kind == 1:
        return random.choice(CHARS) * random.choice([4, 12]) + text(random)
    if kind == 2:
        return random.choice(["", LAST * 14, "a" + LAST * 13, "abc" + MARKER, "abcdefghijklm" + MARKER])
    return "abcdefghijklm"[: random.choice([2, 9, 12, 13, 13])] + random.choice(CHARS) + text(random)


TYPES = {
    "boolean": (pa.bool_(), [False, True]),
    "tinyint": (pa.int8(), whole(8)),
    "smallint": (pa.int16(), whole(16)),
    "int": (pa.int32(), whole(32)),
    "bigint": (pa.int64(), whole(64)),
    "float": (pa.float32(), FLOATS),
    "double": (pa.float64(), FLOATS),
    "decimal": (pa.decimal128(12, 2), [Decimal(value) for value in DECIMALS]),
    "string": (pa.string(), None),
    "date": (pa.date32(), [-719162, -25567, -1, 0, 1, 19787, 19788, 2932896, 2932897, 5000000]),
    "timestamp": (pa.timestamp("us", "UTC"), TIMES),
    "timestamp_ntz": (pa.timestamp("us"), TIMES),
}
NUMBERS = [
    Literal(Decimal("9.5"), pa.decimal128(2, 1)), Literal(Decimal("-0.005"), pa.decimal128(3, 3)),
    Literal(9.5, pa.float64()), Literal(-0.0, pa.float64()), Literal(NAN, pa.float64()), Literal(-INF, pa.float64()),
    Literal(Decimal(10**25), pa.decimal128(26, 0)), Literal(10, pa.int32()), Literal(9, pa.int64()),
    Literal(1 << 53, pa.int64()),
]  # fmt: skip
EXAMPLES_PER_TYPE = 1000
seen: Counter[str] = Counter()


class Case:
    """Rows in files with their statistics as some writer would leave them, a few lost or damaged, and a predicate.

    Hypothesis chooses the seed and a plain generator does the rest: drawing every cell through hypothesis
    costs a hundred times as much, and the law wants many examples.
    """

    def __init__(self, name, seed):
        self.random = Random(seed)
        self.kind, self.pool = TYPES[name]
        self.schema = pa.schema([("x", self.kind), ("s", pa.string()), ("p", self.kind)])
        self.columns = {field.name: Column((field.name,), field.type) for field in self.schema}
        self.has_nulls = self.random.randrange(3) == 0
        truncation = self.random.choice(["truncate", "truncate", "truncate", "drop", "off"])
        self.options = Options.of({"stats.truncation.enabled": truncation != "off",
                                   "stats.truncation.strategy": "drop" if truncation == "off" else truncation,
                                   "stats.truncation.maxLength": self.random.randint(12, 16)})  # fmt: skip
        self.files, self.stats, self.partitions = [], [], []
        for _ in range(self.random.randint(1, 4)):
            part = None if self.random.randrange(5) == 0 else self.value(self.kind)
            rows = [
                {"x": self.cell(self.kind), "s": self.cell(pa.string()), "p": part}
                for _ in range(self.random.choice([0, 1, 1, 2, 3, 4]))
            ]
            self.files.append(rows)
            self.stats.append(self.written(rows))
            self.partitions.append({"p": encode_partition(part, self.kind)})
        self.node = self.predicate(2)

    def value(self, kind):
        return long_text(self.random) if pa.types.is_string(kind) else self.random.choice(self.pool)

    def cell(self, kind):
        return None if self.has_nulls and self.random.randrange(3) == 0 else self.value(kind)

    def written(self, rows):
        whole_stats = collect(arrow(rows, self.schema), self.schema, self.options, ["p"])
        lower, upper = truncate_statistics(
            whole_stats.min_values, whole_stats.max_values, self.schema, self.options, ["p"]
        )
        nulls, count = dict(whole_stats.null_count), whole_stats.num_records
        damage = self.random.randrange(12)
        if damage == 0:
            count = None
        elif damage in {1, 2}:
            for values in (lower, upper, nulls):
                values.pop(self.random.choice("xs"), None)
        elif damage == 3 and not pa.types.is_string(self.kind):
            self.random.choice([lower, upper])["x"] = self.random.choice(
                ["", "zz", "NaN", "0x10", "1e999", "2024-13-01"]
            )
        elif damage == 4:
            lower, upper = {}, {}
        elif damage == 5 and "x" in lower and "x" in upper and not pa.types.is_string(self.kind):
            lower["x"], upper["x"] = upper["x"], lower["x"]
        return replace(whole_stats, min_values=lower, max_values=upper, null_count=nulls, num_records=count)

    def literal(self, column):
        """A literal of the column's type, or of one that Spark would bring together with it."""
        is_ = pa.types
        number = is_.is_integer(column.type) or is_.is_decimal(column.type) or is_.is_floating(column.type)
        if number and self.random.randrange(3) == 0:
            return self.random.choice(NUMBERS)
        return Literal(self.value(column.type), column.type)

    def leaf(self):
        random = self.random
        column = self.columns[random.choice("xxsp")]
        shape = random.randrange(10)
        if shape == 0:
            return IsNull(column)
        if shape <= 2:
            items = [self.literal(column) for _ in range(random.choice([1, 2, 3, 7, 80]))]
            if random.randrange(4) == 0:
                items.append(Literal(None, column.type))
            return coerce.in_list(column, items, "UTC")
        if shape <= 5 and pa.types.is_string(column.type):
            words = long_text(random)[: random.randint(0, 16)]
            if shape == 5:
                return coerce.like(
                    column,
                    Literal(words + random.choice(["%", "_", "%_%"]) + random.choice(CHARS), pa.string()),
                )
            return coerce.match(
                random.choice(["startswith", "startswith", "endswith", "contains"]),
                column,
                Literal(words, pa.string()),
            )
        return coerce.compare(
            random.choice(["=", "<", "<=", ">", ">=", "<=>"]), column, self.literal(column), "UTC"
        )

    def predicate(self, depth):
        shape = self.random.randrange(10) if depth else 0
        if shape < 4:
            constant = self.random.randrange(25) == 0
            return Constant(self.random.choice([True, False, None])) if constant else self.leaf()
        if shape < 6:
            return Not(self.predicate(depth - 1))
        if shape == 6:
            return self.random.choice([IsTrue, IsUndecided])(self.predicate(depth - 1))
        children = tuple(self.predicate(depth - 1) for _ in range(self.random.randint(2, 3)))
        return And(children) if shape < 8 else Or(children)


def arrow(rows, schema):
    return pa.table(
        [pa.array([row[field.name] for row in rows], field.type) for field in schema], schema=schema
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPES)
def test_a_row_that_matches_is_always_in_a_kept_file(name):
    """H3, H5, H6, H7, H11: the exact filter agrees with Spark's meaning, both pruners agree, and none loses a row."""

    @settings(max_examples=EXAMPLES_PER_TYPE, database=None)
    @given(st.integers(0, 2**64))
    def law(seed):
        case = Case(name, seed)
        node, schema, files, stats = case.node, case.schema, case.files, case.stats
        seen[name] += 1
        texts = [text for item in stats for text in (*item.min_values.values(), *item.max_values.values())]
        seen["truncated"] += any(text.endswith(MARKER) for text in texts)
        seen["nulls"] += any(row["x"] is None or row["s"] is None for rows in files for row in rows)
        everything = [row for rows in files for row in rows]
        matches = [truth(node, row) is True for row in everything]
        assert mask(node, arrow(everything, schema), schema).to_pylist() == matches, str(node)
        pruned = prune_table(node, files_table(stats, case.partitions, schema, ["p"]), schema, ["p"])
        kept = pruned.mask.to_pylist()
        verdicts = [prune_file(node, *file, schema, ["p"]) for file in zip(stats, case.partitions)]
        assert kept == [verdict is not Verdict.DROP for verdict in verdicts], (
            str(node),
            stats,
            case.partitions,
        )
        one_by_one, counts = prune_each(node, zip(stats, case.partitions), ["p"])
        assert (one_by_one, counts) == (kept, pruned.metrics), (str(node), stats, case.partitions)
        start = 0
        for number, rows in enumerate(files):
            assert kept[number] or not any(matches[start : start + len(rows)]), (
                str(node),
                rows,
                stats[number],
            )
            start += len(rows)
        seen["dropped"] += kept.count(False)
        found = pruned.metrics
        assert (found.considered, found.kept) == (len(files), kept.count(True))
        assert found.pruned_by_partition + found.skipped_by_statistics + found.kept == found.considered

    law()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["float", "double"])
def test_rows_with_nan_are_kept_though_the_writer_left_nan_out_of_its_maxima(name):
    """Such a maximum bounds the numbers of the file, and only filters that no NaN meets may use it."""
    dropped = Counter()

    @settings(max_examples=2 * EXAMPLES_PER_TYPE, database=None)
    @given(st.integers(0, 2**64))
    def law(seed):
        case = Case(name, seed)
        files = files_table(case.stats, case.partitions, case.schema, ["p"])
        numbers = [
            [row["x"] for row in rows if row["x"] is not None and not math.isnan(row["x"])]
            for rows in case.files
        ]
        least, greatest = (
            pa.array([end(values, default=None) for values in numbers], case.kind) for end in (min, max)
        )
        for bound, values in {"min": least, "max": pa.nulls(len(numbers), case.kind)}.items():
            others = files.column(bound).combine_chunks().field("s")
            bounds = pa.StructArray.from_arrays([values, others], ["x", "s"])
            files = files.set_column(files.column_names.index(bound), bound, bounds)
        files = files.append_column("max_number", pa.StructArray.from_arrays([greatest], ["x"]))
        kept = prune_table(case.node, files, case.schema, ["p"]).mask.to_pylist()
        for keep, rows in zip(kept, case.files, strict=True):
            assert keep or not any(truth(case.node, row) is True for row in rows), (str(case.node), rows)
        without = prune_table(case.node, files.drop_columns(["max_number"]), case.schema, ["p"]).mask
        dropped["with"] += kept.count(False)
        dropped["without"] += without.to_pylist().count(False)

    law()
    assert dropped["with"] > dropped["without"] > 0


@pytest.mark.slow
def test_the_examples_had_the_mix_they_claim():
    """At least 10,000 examples, 1,000 of each type, about a third with truncated statistics and a third with nulls."""
    total = sum(seen[name] for name in TYPES)
    if total == 0:
        pytest.skip("the laws did not run in this process")
    ran = [name for name in TYPES if seen[name]]
    assert all(seen[name] >= EXAMPLES_PER_TYPE for name in ran)
    assert len(ran) < len(TYPES) or total >= 10_000
    assert 0.25 <= seen["truncated"] / total <= 0.5, seen
    assert 0.2 <= seen["nulls"] / total <= 0.5, seen
    assert seen["dropped"] / total > 0.5, seen


def test_a_part_that_is_not_understood_keeps_every_file():
    """H6: an unknown node under NOT, AND and OR never drops a file."""
    schema = pa.schema([("x", pa.int32())])
    stats = [collect(arrow([{"x": 1}], schema), schema)]
    files = files_table(stats, [{}], schema)
    for node in (
        Unknown("f(x)"),
        Not(Unknown("f(x)")),
        Or((Unknown("f(x)"), Constant(False))),
        And((Unknown("f(x)"), IsTrue(Unknown("g")))),
    ):
        assert prune_table(node, files, schema, []).mask.to_pylist() == [True]
        assert prune_file(node, stats[0], {}, schema, []) is Verdict.UNKNOWN
