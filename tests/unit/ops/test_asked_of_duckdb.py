"""Counts and groups of many rows are DuckDB's work where it says exactly what reading the rows says."""

from __future__ import annotations

import random
import threading
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import indextables as it
from indextables.duck import database
from indextables.errors import CancelledError, DamagedSplitError
from indextables.ops.read import pushdown
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.evaluate.rows import mask
from indextables.runtime import cancellable
from indextables.split.layout import SplitRef, read_footer
from indextables.split.open_splits import forget_splits, open_split
from indextables.split.source import SplitFile
from support.splits import flip

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int8()),
        ("note", pa.string()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("price", pa.float64()),
        ("amount", pa.decimal128(10, 2)),
    ]
)
NOTES = [
    "",
    "a",
    "A",
    "a%b",
    "a_b",
    "a!b",
    "it's",
    "back\\slash",
    "é日本",
    "a\nb",
    "null\0byte",
    "ab" * 9,
    None,
]
PRICES = [0.0, -0.0, 1.5, -7.25, float("nan"), float("inf"), -float("inf"), None]
MOMENT = datetime(1969, 12, 31, 23, 59, tzinfo=UTC)


def rows(seed, count=300):
    chance = random.Random(seed)
    moments = [None if chance.random() < 0.1 else MOMENT + timedelta(seconds=7 * n) for n in range(count)]
    return pa.table(
        {
            "id": [chance.choice([None, n, -n, n << 40]) for n in range(count)],
            "small": chance.choices([-128, -1, 0, 1, 127, None], k=count),
            "note": chance.choices(NOTES, k=count),
            "flag": chance.choices([True, False, None], k=count),
            "day": chance.choices([date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), None], k=count),
            "at": moments,
            "local": [moment and moment.replace(tzinfo=None) for moment in reversed(moments)],
            "price": chance.choices(PRICES, k=count),
            "amount": chance.choices([Decimal("1.10"), Decimal("-2.35"), None], k=count),
        },
        schema=SCHEMA,
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    made = it.Table.create(tmp_path_factory.mktemp("asked") / "it's [a] table", SCHEMA)
    for seed in range(3):
        made.append(rows(seed))
    return made


@pytest.fixture(scope="module")
def everything(table):
    return table.scan().read_all()


@pytest.fixture
def asked(monkeypatch):
    """The queries that were put to DuckDB; no table is too small for one."""
    queries = []

    def spy(query, *values):
        queries.append(query)
        return run(query, *values)

    run = database.run
    monkeypatch.setattr(database, "run", spy)
    monkeypatch.setattr(pushdown, "WORTH_A_QUERY", 0)
    return queries


def without_duckdb(ask):
    """The same answer from the rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pushdown, "WORTH_A_QUERY", 1 << 60)
        return ask()


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def compared(column, literals):
    return st.one_of(
        st.builds(
            "{} {} {}".format,
            st.just(column),
            st.sampled_from(["=", "<=>", "<", "<=", ">", ">=", "<>"]),
            literals,
        ),
        st.lists(st.one_of(literals, st.just("NULL")), min_size=1, max_size=4).map(
            lambda some: f"{column} IN ({', '.join(some)})"
        ),
        st.sampled_from([f"{column} IS NULL", f"{column} IS NOT NULL"]),
    )


TEXTS = st.sampled_from([note for note in NOTES if note is not None and "\0" not in note])
PATTERNS = st.lists(st.sampled_from(["%", "a", "b", "A", "!", "\\\\%", "\\\\_", "é", "'"]), max_size=5).map(
    lambda parts: "'" + "".join(parts).replace("'", "\\'") + "'"
)
MOMENTS = st.sampled_from(
    ["1969-12-31 23:59:59", "1970-01-01 00:00:07", "0044-03-15 12:00:00", "9999-12-31 23:59:59.999999"]
)
LEAVES = st.one_of(
    compared("id", st.integers(-(1 << 50), 1 << 50).map(str) | st.sampled_from(["0", "5", "-7"])),
    compared("small", st.sampled_from(["-128", "0", "127", "300"])),
    compared("note", TEXTS.map(quoted)),
    compared("flag", st.sampled_from(["TRUE", "FALSE"])),
    compared("day", st.sampled_from(["DATE '1969-12-31'", "DATE '0001-01-01'", "DATE '2024-02-29'"])),
    compared("at", MOMENTS.map(lambda text: f"TIMESTAMP '{text} UTC'")),
    compared("local", MOMENTS.map(lambda text: f"TIMESTAMP_NTZ '{text}'")),
    st.builds("note {} {}".format, st.sampled_from(["LIKE", "NOT LIKE"]), PATTERNS),
    st.builds(
        "{}(note, {})".format, st.sampled_from(["contains", "startswith", "endswith"]), TEXTS.map(quoted)
    ),
)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=5,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=FILTERS)
def test_any_filter_keeps_the_rows_it_keeps_when_they_are_read(table, everything, asked, where):
    node = as_node(where, SCHEMA)
    assert table.count(where) == mask(node, everything, SCHEMA).true_count


KEYS = ["id", "small", "note", "flag", "day", "at", "local"]
AGGREGATES = [
    "count(*)", "count(note)", "sum(small)", "sum(id)", "avg(small)", "min(note)", "max(note)", "min(id)", "max(at)",
    "min(local)", "max(day)", "min(flag)", "sum(price)", "max(price)", "sum(amount)", "count(distinct note)",
]  # fmt: skip


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    keys=st.lists(st.sampled_from([*KEYS, "price", "amount"]), max_size=2, unique=True),
    wanted=st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3, unique=True),
    where=st.none() | LEAVES,
)
def test_groups_are_those_of_the_rows(table, asked, keys, wanted, where):
    def ask():
        return [
            {name: repr(value) for name, value in row.items()}
            for row in table.aggregate(keys, wanted, where=where).to_pylist()
        ]

    assert ask() == without_duckdb(ask)


def test_a_filter_that_keeps_nothing_leaves_no_group(table, asked):
    where = "at = TIMESTAMP '1969-12-31 23:59:59 UTC' AND small = 3"
    assert table.facets("note", where="small = 3").num_rows == 0
    assert table.aggregate(None, ["count(*)", "sum(id)"], where=where).to_pylist() == [
        {"count(*)": 0, "sum(id)": None}
    ]
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("column", "interval", "more"),
    [
        ("small", 7, {}),
        ("small", 7, {"offset": 3}),
        ("id", 1 << 42, {}),
        ("price", 2, {}),
        ("price", 0.1, {"offset": 0.05}),
        ("day", "month", {}),
        ("at", "15m", {}),
        ("at", "week", {"offset": "6h"}),
        ("at", "day", {"time_zone": "+05:30"}),
        ("local", "year", {}),
    ],
)
def test_histograms_are_those_of_the_rows(table, asked, column, interval, more):
    def ask():
        found = table.histogram(column, interval, where="small <> 1 OR small IS NULL", **more)
        return [{name: repr(value) for name, value in row.items()} for row in found.to_pylist()]

    found = ask()
    assert len(asked) == 1
    assert found == without_duckdb(ask)
    assert len(asked) == 1


def test_many_files_take_one_query_and_are_noted_as_read(table, everything, asked):
    assert table.count("small > 0") == pc.sum(pc.greater(everything["small"], 0)).as_py()
    assert len(asked) == 1
    assert table.last_scan.files_read == 3
    table.facets("note", top=None, where="small > 0")
    assert len(asked) == 2
    assert table.last_scan.files_read == 3


def test_very_many_rows_take_several_queries_between_which_a_caller_may_give_up(
    table, everything, asked, monkeypatch
):
    monkeypatch.setattr(pushdown, "VALUES_AT_ONCE", 1)
    assert table.count("small > 0") == pc.sum(pc.greater(everything["small"], 0)).as_py()
    facets = table.facets("note", top=None)
    assert len(asked) == 6
    assert facets.equals(without_duckdb(lambda: table.facets("note", top=None)))
    stop = threading.Event()
    stop.set()
    with cancellable(stop), pytest.raises(CancelledError):
        table.count("small > 0")
    assert len(asked) == 6


@pytest.mark.parametrize(
    "where",
    [
        "price > 1",
        "price IS NULL AND amount = 1.10",
        "note LIKE 'a_b'",
        "note RLIKE '^a.b'",
    ],
)
def test_what_duckdb_may_decide_otherwise_is_decided_here(table, everything, asked, where):
    assert table.count(where) == mask(as_node(where, SCHEMA), everything, SCHEMA).true_count
    assert not asked


@pytest.mark.parametrize(
    "where",
    [
        "id = 5",
        "small IN (0, 1, NULL)",
        "note < 'b' AND note LIKE '%a%b'",
        r"note LIKE 'a\\%%b'",
        r"note LIKE 'a\\_%b'",
        "note LIKE 'a!%b'",
        "NOT contains(note, 'a')",
        "flag",
        "day > DATE '1969-12-31'",
        "at <= TIMESTAMP '1970-01-01 00:00:00 UTC'",
        "local <=> TIMESTAMP_NTZ '1970-01-01 00:00:00'",
        "price IS NULL OR amount IS NOT NULL",
    ],
)
def test_filters_of_every_plain_type_are_asked_of_duckdb(table, everything, asked, where):
    assert table.count(where) == mask(as_node(where, SCHEMA), everything, SCHEMA).true_count
    assert len(asked) == 1


def test_a_small_table_is_not_worth_a_query(table, monkeypatch):
    monkeypatch.setattr(database, "run", lambda *_: pytest.fail("DuckDB was asked"))
    assert table.count("small > 0") > 0


def test_columns_that_files_store_otherwise_are_read(tmp_path, asked):
    """A partition column has the log's value, a later one is null, a wider type needs a cast."""
    first = pa.schema([("id", pa.int32()), ("place", pa.string())])
    made = it.Table.create(tmp_path / "t", first, ["place"])
    made.append(pa.table({"id": [1, 2, 3], "place": ["x", "x", "y"]}, schema=first))
    later = pa.table({"id": [4, 5], "place": ["x", None], "added": [1, None]})
    made.append(later, merge_schema=True)
    assert made.count("place = 'x' AND id > 1") == 2
    assert made.count("added IS NULL") == 4
    assert made.count("id >= 2") == 4
    assert made.aggregate("place", "sum(id)")["sum(id)"].to_pylist() == [5, 7, 3]


def test_the_largest_times_are_not_taken_for_infinite(tmp_path, asked):
    end = (1 << 63) - 1
    stored = pa.array([0, end, -end, -end - 1, None], pa.int64())
    made = it.Table.create(tmp_path / "t", pa.schema([("n", pa.int64()), ("at", pa.timestamp("us"))]))
    made.append(pa.table({"n": range(5), "at": stored.view(pa.timestamp("us"))}))
    zero = "at >= TIMESTAMP_NTZ '1970-01-01'"
    assert (made.count(zero), made.count(f"NOT {zero}")) == (2, 2)
    bounds = made.aggregate(None, ["min(at)", "max(at)", "count(*)"], where="n < 9 OR at IS NULL")
    assert [bounds.column(at).combine_chunks().view(pa.int64())[0].as_py() for at in range(2)] == [
        -end - 1,
        end,
    ]
    assert asked

    def ask():
        return made.aggregate("at", "count(*)").column(1).to_pylist()

    assert ask() == without_duckdb(ask) == [1] * 5


def test_text_that_is_no_text_is_counted_all_the_same(tmp_path, asked):
    raw = pa.array([b"\xff\xfe", b"fine", b"fine"], pa.binary())
    made = it.Table.create(tmp_path / "t", pa.schema([("text", pa.string())]))
    made.append(pa.table({"text": pa.Array.from_buffers(pa.string(), 3, raw.buffers())}))
    assert made.count("contains(text, 'ine')") == 2
    assert len(asked) == 1


def damaged(tmp_path, where_of):
    """A table of one split, a byte of which is changed at the offset that `where_of` chooses."""
    made = it.Table.create(tmp_path / "t", SCHEMA)
    made.append(rows(5))
    snapshot = made._log.snapshot()
    (add,) = snapshot.adds()
    ref = SplitRef.of(add)
    path = Path(SplitFile.of(snapshot.store, add.path).local)
    offset = where_of(
        open_split(snapshot.store, ref), read_footer(SplitFile.of(snapshot.store, add.path), ref), path
    )
    flip(path, offset, 7)
    forget_splits()
    return made


def test_a_damaged_page_is_an_error_before_duckdb_is_asked(tmp_path, asked):
    made = damaged(tmp_path, lambda reader, *_: reader._map.pages.stretches(0, 2)[0][0] + 20)
    with pytest.raises(DamagedSplitError, match="not what was written"):
        made.count("note = 'a'")
    with pytest.raises(DamagedSplitError, match="not what was written"):
        made.facets("note")
    assert not asked
    assert made.count("small > 0") == pc.sum(pc.greater(rows(5)["small"], 0)).as_py()
    assert asked


def test_a_damaged_footer_hides_no_row(tmp_path, asked):
    """DuckDB skips row groups by the statistics there; rows are found without it."""

    def in_statistics(_, footer, path):
        start = path.stat().st_size - 8 - len(footer.body)
        return start + footer.body.index("é日本".encode())

    made = damaged(tmp_path, in_statistics)
    assert made.count("note >= 'm'") == sum(
        note is not None and note >= "m" for note in rows(5)["note"].to_pylist()
    )
    assert not asked
