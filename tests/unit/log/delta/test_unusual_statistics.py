"""Statistics of other writers that are broken, rounded or silent: a file that may match is kept."""

from __future__ import annotations

import json
import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import WriterProperties, write_deltalake

import indextables as it
from indextables.log.delta.snapshot import open_snapshot
from indextables.ops.delta.row_groups import groups_to_read
from indextables.options import Options
from indextables.predicate.build.from_sql import as_node
from indextables.storage.store import open_store
from support.deltatables import DeltaLog, add, schema_string

OPTIONS = Options.of(None)
BROKEN = {
    "empty": "",
    "null": "null",
    "cut off": '{"numRecords": 1, "minValues": {"n": 9',
    "a bare NaN": '{"numRecords": 1, "minValues": {"n": NaN}, "maxValues": {"n": 9}}',
    "half a surrogate pair": '{"numRecords": 1, "minValues": {"s": "a\\ud800"}, "maxValues": {"s": "a\\ud800"}}',
    "a list": "[1]",
    "a number": "5",
    "a wrong shape": '{"numRecords": 1, "minValues": 7, "maxValues": {"n": "x"}}',
}


NO_NAN = Options.of({"read.noNaN": "true"})


def kept(log, where, engine="columnar", options=OPTIONS):
    found = open_snapshot(log.store.uri, options=options).plan(where, engine=engine).files
    return sorted(found.column("path").to_pylist())


def new_log(**columns):
    return DeltaLog(open_store(f"memory://{uuid.uuid4()}"), schema_string(**columns))


@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize("stats", BROKEN.values(), ids=BROKEN)
def test_one_document_that_cannot_be_read_is_not_known_and_the_others_still_prune(stats, checkpointed):
    log = new_log(n="long", s="string")
    odd = add("odd")
    odd["add"]["stats"] = stats
    low = {"numRecords": 1, "minValues": {"n": 1, "s": "a"}, "maxValues": {"n": 2, "s": "b"}}
    log.commit(odd, add("low", stats=low))
    if checkpointed:
        log.checkpoint("classic")
        log.drop_commits(log.version)
    for engine in ("columnar", "reference"):
        assert kept(log, None, engine) == ["low", "odd"]
        assert kept(log, "n > 5 AND s > 'c'", engine) == ["odd"]


def test_statistics_that_are_no_text_at_all_are_not_known():
    """A lone surrogate written into the commit itself, and a number where the document belongs."""
    log = new_log(s="string")
    line = '{"add": {"path": "odd", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": true, "stats": %s}}'
    for version, stats in ((1, '"{\\"minValues\\": {\\"s\\": \\"\\ud800\\"}}"'), (2, "17")):
        log.store.put(
            f"_delta_log/{version:020d}.json", (line % stats).replace("odd", f"odd{version}").encode()
        )
    assert kept(log, "s = 'x'") == ["odd1", "odd2"]


def test_a_broken_document_among_many_costs_no_more_than_itself(tmp_path):
    """Above fifty thousand files statistics are cut out by DuckDB, which refuses what is no JSON."""
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(n="long"))
    for number in range(60_000):
        stats = {"numRecords": 1, "minValues": {"n": number}, "maxValues": {"n": number}}
        log.live[f"f{number}", None] = add(f"f{number}", stats=stats)["add"]
    log.live["f7", None]["stats"] = '{"numRecords": 1,'
    log.checkpoint("classic")
    assert kept(log, "n = 40000") == ["f40000", "f7"]


SPARK = {"commitInfo": {"engineInfo": "Apache-Spark/3.5.0 Delta-Lake/3.0.0"}}
RUST = {"commitInfo": {"engineInfo": "delta-rs:py-1.0.0"}}


@pytest.mark.parametrize(("writer", "name", "expected"), [
    (SPARK, "part-00000-x-c000.snappy.parquet", []),
    (RUST, "part-00000-x-c000.snappy.parquet", ["part-00000-x-c000.snappy.parquet"]),
    (None, "f.parquet", ["f.parquet"]),
    (None, "part-00000-x.c000.snappy.parquet", []),
])  # fmt: skip
def test_a_maximum_excludes_nan_only_if_its_writer_would_have_counted_it(writer, name, expected):
    """NaN is above every number, and writers other than Spark leave it out of the maximum."""
    log = new_log(d="double")
    stats = {"numRecords": 2, "minValues": {"d": 1.0}, "maxValues": {"d": 2.0}, "nullCount": {"d": 0}}
    log.commit(add(name, stats=stats), *([] if writer is None else [writer]))
    for where in (
        "d > 5",
        "d = double('NaN')",
        "d IN (7, double('NaN'))",
        "NOT d <= 5",
        "d >= 3",
        "d <=> double('NaN')",
    ):
        assert kept(log, where) == expected, where
    for where in ("d NOT IN (1.5)", "d <> 1.5", "d <= double('NaN')"):
        assert kept(log, where) == [name], where
    assert kept(log, "d < 1") == []


@pytest.mark.parametrize("checkpointed", ["no", "text", "typed"])
def test_nan_matters_only_where_it_could_match(checkpointed):
    """Of a hundred disjoint files, a filter that NaN cannot meet leaves those that can hold the number."""
    log = new_log(d="double", f="float")
    for number in range(100):
        low, high = {"d": number, "f": number}, {"d": number + 0.75, "f": number + 0.75}
        stats = {"numRecords": 2, "minValues": low, "maxValues": high, "nullCount": {"d": 0, "f": 0}}
        log.commit(add(f"f{number:02d}.parquet", stats=stats), RUST)
    if checkpointed != "no":
        bounds = pa.struct([("d", pa.float64()), ("f", pa.float32())])
        counts = pa.struct([("d", pa.int64()), ("f", pa.int64())])
        parsed = pa.struct(
            [("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)]
        )
        log.checkpoint("classic", parsed=parsed if checkpointed == "typed" else None)
        log.drop_commits(log.version)
    files = {
        "{c} = 50.5": 1,
        "{c} <=> 50.5": 1,
        "{c} IN (3.5, 50.5)": 2,
        "{c} IN (1.5, 2.5, 3.5, 4.5, 5.5, 6.9)": 5,
        "{c} BETWEEN 50.5 AND 51.5": 2,
        "{c} > 50.5 AND {c} < 51.5": 2,
        "{c} > 50.5 AND ({c} >= 52.5 AND {c} <= 53.5)": 2,
        "NOT ({c} < 50.5 OR {c} > 51.5)": 2,
        "NOT ({c} < 50.5) AND {c} = 50.5": 1,
        "{c} > 50.5 AND {c} < double('NaN')": 50,
        "{c} < 1": 1,
        "{c} <= 1": 2,
        "{c} > 98.5": 100,
        "{c} >= 98.5": 100,
        "{c} > 98.5 AND {c} <= double('NaN')": 100,
        "{c} > 98.5 OR {c} < 1": 100,
        "NOT ({c} < 98.5)": 100,
        "{c} <> 50.5": 100,
        "{c} = double('NaN')": 100,
        "{c} IN (50.5, double('NaN'))": 100,
    }
    for column in ("d", "f"):
        for where, expected in files.items():
            for engine in ("columnar", "reference"):
                found = kept(log, where.format(c=column), engine)
                assert len(found) == expected, (where, column, engine)
    alone = {"> 98.5": 2, ">= 98.75": 2, "> 98.5 AND {c} <= double('NaN')": 2, "= double('NaN')": 0}
    for column in ("d", "f"):
        for where, expected in alone.items():
            for engine in ("columnar", "reference"):
                text = f"{column} {where.format(c=column)}"
                assert len(kept(log, text, engine, NO_NAN)) == expected, (text, engine)


def test_row_groups_without_nan_are_left_out_by_their_maxima(tmp_path):
    """Parquet's statistics leave NaN out, so that a lone `>` reads every row group unless the option says more."""
    numbers = pa.table({"x": pa.array([float(number) for number in range(100)])})
    write_deltalake(str(tmp_path / "t"), numbers, writer_properties=WriterProperties(max_row_group_size=10))
    for options, groups in ((None, 10), ({"read.noNaN": "true"}, 1)):
        table = it.DeltaTable.open(tmp_path / "t", options=options)
        assert table.scan("x > 94.5").read_all()["x"].to_pylist() == [95.0, 96.0, 97.0, 98.0, 99.0]
        file = tmp_path / "t" / table.files()["path"][0].as_py()
        columns = table.snapshot.columns
        where = as_node("x > 94.5", table.schema, "UTC")
        assert len(groups_to_read(pq.ParquetFile(file), where, columns, None)) == groups


LETTERS = "x" * 32
ABOVE = {
    "whole": (LETTERS + "\U0001f600", LETTERS + "\ufffd"),
    "in two halves": (LETTERS[1:] + "\U0001f600", LETTERS[1:] + "?\ufffd"),
    "after the greatest": (LETTERS + "\uffff\U0001f600", LETTERS + "\uffff\ufffd"),
}


@pytest.mark.parametrize("checkpointed", ["no", "text", "typed", "large"])
@pytest.mark.parametrize(("value", "greatest"), ABOVE.values(), ids=ABOVE)
def test_a_maximum_that_ends_with_the_replacement_character_is_a_prefix(
    tmp_path, value, greatest, checkpointed
):
    """Delta Lake 1.2 to 3.2 cut a maximum to 32 UTF-16 units and compared U+FFFD with the next of them."""
    log = DeltaLog(open_store(tmp_path / "t"), schema_string(s="string"))
    stats = {"numRecords": 1, "minValues": {"s": "a"}, "maxValues": {"s": greatest}, "nullCount": {"s": 0}}
    others = {"numRecords": 1, "minValues": {"s": "a"}, "maxValues": {"s": "b"}, "nullCount": {"s": 0}}
    log.commit(add("cut", stats=stats), add("low", stats=others))
    if checkpointed == "large":
        body = add("low", stats=others)["add"]
        log.live |= {(f"low{number}", None): {**body, "path": f"low{number}"} for number in range(60_000)}
    if checkpointed != "no":
        bounds, counts = pa.struct([("s", pa.string())]), pa.struct([("s", pa.int64())])
        parsed = pa.struct(
            [("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)]
        )
        log.checkpoint("classic", parsed=parsed if checkpointed == "typed" else None)
        log.drop_commits(log.version)
    engines = ("columnar",) if checkpointed == "large" else ("columnar", "reference")
    for engine in engines:
        for where in ("= '{}'", ">= '{}'", "LIKE '{}%'", "IN ('{}', 'zz')", "NOT IN ('a')", "<=> '{}'"):
            found = kept(log, f"s {where.format(value)}", engine)
            assert "cut" in found, (where, engine)
        assert kept(log, "s > 'y'", engine) == kept(log, "s = 'xy'", engine) == []


@pytest.mark.parametrize("checkpointed", ["no", "text", "typed"])
def test_a_minimum_above_its_maximum_says_nothing(checkpointed):
    log = new_log(n="long", s="string", d="double")
    crossed = {"n": 9, "s": "m", "d": 9.5}, {"n": 1, "s": "b", "d": 1.5}
    cut = {"n": 3, "s": "cc", "d": 3.5}, {"n": 3, "s": "c [TRUNCATED]", "d": 3.5}
    for name, (low, high) in {"crossed": crossed, "sound": cut}.items():
        zeros = dict.fromkeys("nsd", 0)
        log.commit(
            add(name, stats={"numRecords": 1, "minValues": low, "maxValues": high, "nullCount": zeros}), RUST
        )
    if checkpointed != "no":
        bounds = pa.struct([("n", pa.int64()), ("s", pa.string()), ("d", pa.float64())])
        counts = pa.struct([(name, pa.int64()) for name in "nsd"])
        parsed = pa.struct(
            [("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)]
        )
        log.checkpoint("classic", parsed=parsed if checkpointed == "typed" else None)
        log.drop_commits(log.version)
    for engine in ("columnar", "reference"):
        for where in ("n = 5", "n > 100", "n < 0", "n IN (5, 6, 7, 8, 10, 11)", "n IS NULL", "s = 'f'", "s LIKE 'f%'",
                      "d = 5", "d BETWEEN 100 AND 200", "d < 0"):  # fmt: skip
            assert kept(log, where, engine) == ["crossed"], (where, engine)
        assert kept(log, "n = 3 AND s = 'cd' AND d = 3.5", engine) == ["crossed", "sound"]


def test_rows_with_nan_that_delta_rs_wrote_are_found(tmp_path):
    import deltalake

    table = pa.table({"d": [1.0, float("nan"), 2.0], "f": pa.array([1, float("nan"), 2], pa.float32())})
    deltalake.write_deltalake(str(tmp_path / "t"), table)
    for where in ("d > 100", "f >= 1e30", "d = double('NaN')"):
        assert it.delta.files(tmp_path / "t", where).num_rows == 1
    deltalake.DeltaTable(str(tmp_path / "t")).create_checkpoint()
    assert it.delta.files(tmp_path / "t", "d > 100").num_rows == 1


@pytest.mark.parametrize("checkpointed", [False, True])
def test_decimals_that_went_through_a_double_are_found(tmp_path, checkpointed):
    import deltalake

    values = [Decimal("123456789012345678.123"), Decimal("5.001"), Decimal("-98765432109876543.211")]
    deltalake.write_deltalake(str(tmp_path / "t"), pa.table({"c": pa.array(values, pa.decimal128(21, 3))}))
    if checkpointed:
        deltalake.DeltaTable(str(tmp_path / "t")).create_checkpoint()
    for value in values:
        for where in (f"c = {value}", f"c >= {value} AND c <= {value}", f"c <=> {value}"):
            assert it.delta.files(tmp_path / "t", where).num_rows == 1, where
    assert it.delta.files(tmp_path / "t", "c > 123456789012346678").num_rows == 0


@pytest.mark.parametrize("digits", ["5.001", "999999999999.999"])
def test_decimals_that_a_double_holds_exactly_still_prune_to_the_last_digit(digits):
    log = new_log(c="decimal(21,3)")
    text = json.dumps({"numRecords": 1, "minValues": {"c": 0}, "maxValues": {"c": 0}}).replace(
        ": 0", f": {digits}"
    )
    body = add("f")
    body["add"]["stats"] = text
    log.commit(body)
    assert kept(log, f"c = {digits}") == ["f"]
    assert kept(log, f"c > {digits}") == kept(log, f"c < {digits}") == []


def test_a_float_widened_to_double_keeps_the_bounds_of_the_float():
    """The text 3.4 of a float stands for 3.4000000953674316, that of a double for itself."""
    widened = {"delta.typeChanges": [{"toType": "double", "fromType": "float"}]}
    fields = [{"name": "d", "type": "double", "nullable": True, "metadata": widened}]
    schema = json.dumps({"type": "struct", "fields": fields})
    log = DeltaLog(open_store(f"memory://{uuid.uuid4()}"), schema, features=("typeWidening",))
    stats = {"numRecords": 1, "minValues": {"d": 3.4}, "maxValues": {"d": 3.4}, "nullCount": {"d": 0}}
    name = "part-00000-x.c000.snappy.parquet"
    log.commit(add(name, stats=stats))
    assert (
        kept(log, "d > 3.40000001") == kept(log, "d = double(float('3.4'))") == kept(log, "d = 3.4") == [name]
    )
    assert kept(log, "d > 3.4000002") == kept(log, "d < 3.4") == []


def test_a_field_of_a_struct_is_no_partition_column_whatever_its_name():
    """`a.b` may be a partition column beside a struct `a` with a field `b`."""
    inner = {"type": "struct", "fields": [{"name": "b", "type": "long", "nullable": True, "metadata": {}}]}
    fields = [
        {"name": "a", "type": inner, "nullable": True, "metadata": {}},
        {"name": "a.b", "type": "long", "nullable": True, "metadata": {}},
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    log = DeltaLog(open_store(f"memory://{uuid.uuid4()}"), schema, ("a.b",))
    log.commit(add("f", partitionValues={"a.b": "1"}))
    assert kept(log, "a.b = 5") == ["f"]
    assert kept(log, "`a.b` = 5") == []
