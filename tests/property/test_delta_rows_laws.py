"""Laws of reading Delta rows without Spark: whatever is pruned, the rows are those of a plain look at all of them."""

from __future__ import annotations

import datetime as dt
import uuid

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import indextables as it
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.evaluate.rows import mask
from indextables.storage.store import open_store
from support.deltarows import inline_vector, put_file
from support.deltatables import DeltaLog, schema_string

KINDS = {"i": pa.int64(), "x": pa.float64(), "s": pa.string(), "d": pa.date32()}
NUMBERS = st.one_of(st.none(), st.integers(-5, 5))
FLOATS = st.one_of(st.none(), st.sampled_from([float("nan"), float("inf"), -0.0, 0.0, 1.5, -2.0]))
TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "ab", "b", "é", "z" * 40, "\U0001f600"]))
DAYS = st.one_of(st.none(), st.sampled_from([dt.date(2024, 1, day) for day in (1, 2, 3, 31)]))
ROWS = st.lists(st.tuples(NUMBERS, FLOATS, TEXTS, DAYS), min_size=1, max_size=25)
FILES = st.lists(
    st.tuples(
        ROWS, st.one_of(st.none(), st.integers(0, 2)), st.sets(st.integers(0, 24), max_size=4), st.booleans()
    ),
    min_size=1,
    max_size=4,
)
ATOMS = st.one_of(
    st.tuples(st.just("i"), st.sampled_from(["=", "<", ">=", "<=>"]), st.integers(-6, 6).map(str)),
    st.tuples(
        st.just("x"),
        st.sampled_from(["=", "<", ">", ">="]),
        st.sampled_from(["0.0", "1.5", "double('NaN')", "-9.0"]),
    ),
    st.tuples(
        st.just("s"), st.sampled_from(["=", "<", ">", "LIKE"]), st.sampled_from(["''", "'a%'", "'b'", "'zz'"])
    ),
    st.tuples(
        st.just("d"),
        st.sampled_from(["=", "<", ">="]),
        st.sampled_from(["DATE '2024-01-02'", "DATE '2025-01-01'"]),
    ),
    st.tuples(st.just("p"), st.sampled_from(["=", "<", "<=>"]), st.sampled_from(["0", "1", "9"])),
    st.tuples(st.sampled_from("ixsdp"), st.sampled_from(["IS NULL", "IS NOT NULL"]), st.just("")),
).map(lambda parts: " ".join(parts).replace("double('NaN')", "CAST('NaN' AS DOUBLE)"))
FILTERS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda part: f"(NOT {part})"),
    ),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(files=FILES, filters=st.lists(FILTERS, min_size=1, max_size=4), group_rows=st.integers(1, 9))
def test_rows_and_counts_are_those_of_a_plain_look(files, filters, group_rows):
    log = DeltaLog(
        open_store(f"memory://{uuid.uuid4()}"),
        schema_string(i="long", x="double", s="string", d="date", p="integer"),
        ("p",),
    )
    parts = []
    for number, (rows, partition, gone, told) in enumerate(files):
        columns = list(zip(*rows, strict=True))
        table = pa.table({name: pa.array(columns[at], kind) for at, (name, kind) in enumerate(KINDS.items())})
        deleted = sorted(at for at in gone if at < table.num_rows)
        value = None if partition is None else str(partition)
        log.commit(
            put_file(
                log,
                f"f{number}",
                table,
                statistics=told,
                group_rows=group_rows,
                partitionValues={"p": value},
                dv=inline_vector(deleted) if deleted else None,
            )  # fmt: skip
        )
        whole = table.append_column("p", pa.array([partition] * table.num_rows, pa.int32()))
        left = [at for at in range(table.num_rows) if at not in deleted]
        parts.append(whole.take(pa.array(left, pa.int64())))
    live = pa.concat_tables(parts)
    opened = it.DeltaTable.open(log.store.uri)
    assert str(opened.scan().read_all().to_pylist()) == str(live.to_pylist())
    for text in filters:
        node = as_node(text, opened.schema)
        wanted = live.filter(mask(node, live, opened.schema))
        assert str(opened.scan(text).read_all().to_pylist()) == str(wanted.to_pylist()), text
        assert opened.count(text) == wanted.num_rows, text
