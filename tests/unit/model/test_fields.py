"""Schemas between Spark, Arrow and JSON, and the text form of single values."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import CorruptLogError, SchemaError
from indextables.model.calendar import (
    date_of,
    days_of,
    format_date,
    format_timestamp,
    parse_date,
    parse_timestamp,
)
from indextables.model.fields import (
    cast_table,
    decode_partition,
    decode_partition_array,
    decode_stat,
    decode_stat_array,
    encode_partition,
    encode_stat,
    find_field,
    leaf_fields,
    normalise_schema,
    schema_from_json,
    schema_to_json,
    string_order,
)

UTC = pa.timestamp("us", "UTC")


def spark_field(kind, *, name="c", nullable=True, metadata=None):
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata or {}}


def spark_schema(*fields):
    return json.dumps({"type": "struct", "fields": list(fields)})


def test_every_spark_type_survives_both_ways():
    kinds = ["boolean", "byte", "short", "integer", "long", "float", "double", "decimal(20,3)", "string", "binary",
             "date", "timestamp", "timestamp_ntz"]  # fmt: skip
    nested = [
        {"type": "array", "elementType": "string", "containsNull": False},
        {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
        {"type": "struct", "fields": [spark_field("date", name="d", nullable=False)]},
        {"type": "array", "elementType": {"type": "map", "keyType": "integer", "valueType": {"type": "struct", "fields": [spark_field("timestamp")]}, "valueContainsNull": False}, "containsNull": True},
    ]  # fmt: skip
    text = spark_schema(
        *[spark_field(kind, name=f"c{number}") for number, kind in enumerate([*kinds, *nested])]
    )
    assert json.loads(schema_to_json(schema_from_json(text))) == json.loads(text)


def test_comments_char_lengths_collations_and_other_metadata_survive():
    metadata = {"comment": "price in €", "__CHAR_VARCHAR_TYPE_STRING": "char(3)", "n": 1, "deep": {"a": [True, None]},
                "json:odd": "kept", "one": "1", "__COLLATIONS": {"c": "icu.UNICODE_CI"}}  # fmt: skip
    text = spark_schema(spark_field("string", nullable=False, metadata=metadata))
    schema = schema_from_json(text)
    assert schema.field("c").metadata[b"comment"] == "price in €".encode()
    assert json.loads(schema_to_json(schema)) == json.loads(text)


def test_a_variant_is_told_from_a_struct_with_its_fields():
    text = spark_schema(spark_field("variant"))
    schema = schema_from_json(text)
    assert json.loads(schema_to_json(schema)) == json.loads(text)
    assert [leaf.name for leaf in leaf_fields(schema)] == ["c"]
    plain = pa.schema(
        [("c", pa.struct([pa.field(f.name, f.type, f.nullable) for f in schema.field("c").type]))]
    )
    assert json.loads(schema_to_json(plain))["fields"][0]["type"]["type"] == "struct"
    assert [leaf.name for leaf in leaf_fields(plain)] == ["c.value", "c.metadata"]


def test_strings_say_how_they_compare():
    schema = schema_from_json(spark_schema(
        spark_field("string", name="plain"), spark_field("varchar(5)", name="varying"), spark_field("char(3)", name="padded"),
        spark_field("string", name="collated", metadata={"__COLLATIONS": {"collated": "spark.UTF8_LCASE"}}),
        spark_field("string", name="binary", metadata={"__COLLATIONS": {"binary": "spark.UTF8_BINARY"}}),
    ))  # fmt: skip
    assert [string_order(field) for field in schema] == ["binary", "binary", "char(3)", "collated", "binary"]


@pytest.mark.parametrize(
    "kind",
    [
        "interval day to second",
        "interval year",
        "void",
        "time(6)",
        "calendarinterval",
        "geometry(4326)",
    ],
)
def test_types_a_table_cannot_store_are_refused_by_name(kind):
    with pytest.raises(SchemaError, match=f"(?s)column c.*{kind.split('(')[0]}"):
        schema_from_json(spark_schema(spark_field(kind)))


def test_user_defined_types_and_broken_documents_are_refused():
    with pytest.raises(SchemaError, match="user-defined"):
        schema_from_json(spark_schema(spark_field({"type": "udt", "class": "X", "sqlType": "string"})))
    for text in (
        "",
        "[]",
        '{"type": "array"}',
        '{"type": "struct", "fields": [1]}',
        '{"type":"struct","fields":[{"name":"a","type":{"type":"array"}}]}',
    ):
        with pytest.raises(SchemaError):
            schema_from_json(text)
    with pytest.raises(SchemaError, match="decimal"):
        schema_from_json(spark_schema(spark_field("decimal(39,2)")))


def test_arrow_types_become_the_arrow_type_of_their_spark_type():
    given_types = {
        pa.large_string(): pa.string(), pa.string_view(): pa.string(), pa.dictionary(pa.int8(), pa.large_string()): pa.string(),
        pa.large_binary(): pa.binary(), pa.binary(4): pa.binary(), pa.uint8(): pa.int16(), pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0), pa.float16(): pa.float32(), pa.date64(): pa.date32(),
        pa.timestamp("s"): pa.timestamp("us"), pa.timestamp("ns", "Asia/Tokyo"): UTC, pa.decimal256(30, 2): pa.decimal128(30, 2),
        pa.large_list(pa.uint8()): pa.list_(pa.field("element", pa.int16())), pa.run_end_encoded(pa.int32(), pa.int64()): pa.int64(),
        pa.list_(pa.float16(), 3): pa.list_(pa.field("element", pa.float32())),
    }  # fmt: skip
    for arrow, expected in given_types.items():
        assert normalise_schema(pa.schema([("c", arrow)])).field("c").type == expected, arrow


@pytest.mark.parametrize(
    "kind",
    [
        pa.time32("s"),
        pa.null(),
        pa.duration("us"),
        pa.month_day_nano_interval(),
        pa.struct([]),
        pa.decimal256(50, 2),
    ],
)
def test_arrow_types_without_a_spark_type_are_refused(kind):
    with pytest.raises(SchemaError):
        normalise_schema(pa.schema([("c", kind)]))


def test_names_that_differ_in_case_only_are_refused_at_every_level():
    with pytest.raises(SchemaError, match="case"):
        normalise_schema(pa.schema([("a", pa.int32()), ("A", pa.int32())]))
    with pytest.raises(SchemaError, match="case"):
        normalise_schema(pa.schema([("s", pa.struct([("x", pa.int32()), ("X", pa.int32())]))]))


def test_a_struct_type_is_taken_by_its_json():
    class StructType:
        def json(self):
            return spark_schema(spark_field("long", nullable=False))

    assert normalise_schema(StructType()) == pa.schema([pa.field("c", pa.int64(), nullable=False)])
    with pytest.raises(SchemaError, match="pyarrow.Schema"):
        normalise_schema(42)


def test_fields_are_found_by_exact_name_then_regardless_of_case():
    schema = pa.schema([("Name", pa.string()), ("ID", pa.int32())])
    assert find_field(schema, "name").name == "Name"
    assert find_field(schema, "nome") is None


def test_leaves_have_dotted_names_and_ambiguous_ones_have_none():
    schema = pa.schema(
        [
            ("a", pa.struct([("b", pa.int32()), ("c", pa.struct([("d", pa.string())]))])),
            ("a.b", pa.int64()),
            ("l", pa.list_(pa.int32())),
        ]
    )
    assert [leaf.name for leaf in leaf_fields(schema)] == ["a.c.d", "l"]


def table(**columns):
    return pa.table(columns)


def test_data_is_cast_to_the_schema_by_name():
    schema = normalise_schema(
        pa.schema([("i", pa.int64()), ("s", pa.string()), ("t", UTC), ("gone", pa.float64())])
    )
    data = table(
        S=pa.array(["a", None]).dictionary_encode(),
        I=pa.array([1, 2], pa.uint16()),
        t=pa.array([1, None], pa.timestamp("ms", "Asia/Tokyo")),
    )
    cast = cast_table(data, schema)
    assert cast.schema == schema
    assert cast.to_pylist()[0] == {
        "i": 1,
        "s": "a",
        "t": dt.datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=dt.UTC),
        "gone": None,
    }
    assert cast_table(data.to_batches()[0], schema).schema == schema


def test_a_null_column_takes_the_type_of_the_table():
    schema = pa.schema([("m", pa.map_(pa.string(), pa.int32()))])
    assert cast_table(table(m=pa.nulls(2)), schema).column("m").type == schema.field("m").type


def test_nanoseconds_are_cut_only_when_asked():
    schema = pa.schema([("t", pa.timestamp("us"))])
    whole, odd = (table(t=pa.array([value], pa.timestamp("ns"))) for value in (1000, -1))
    assert cast_table(whole, schema).column("t").cast(pa.int64()).to_pylist() == [1]
    with pytest.raises(SchemaError, match="timestamps=truncate"):
        cast_table(odd, schema)
    assert cast_table(odd, schema, timestamps="truncate").column("t").cast(pa.int64()).to_pylist() == [-1]


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (pa.array([300]), pa.int8()), (pa.array(["1"]), pa.int32()), (pa.array([1.5]), pa.int64()), (pa.array([0.1]), pa.float32()),
        (pa.array([1], pa.timestamp("us")), UTC), (pa.array([1], UTC), pa.timestamp("us")), (pa.array([True]), pa.int32()),
        (pa.array([Decimal("1.005")]), pa.decimal128(5, 2)), (pa.array([1], pa.time64("us")), pa.int64()), (pa.array([[1]]), pa.struct([("x", pa.int64())])),
    ],
)  # fmt: skip
def test_a_value_the_column_cannot_hold_is_an_error_that_names_it(data, wanted):
    with pytest.raises(SchemaError, match="column 'c'"):
        cast_table(table(c=data), pa.schema([("c", wanted)]))


def test_numbers_may_change_type_when_every_value_survives():
    cases = [(pa.array([5]), pa.int8()), (pa.array([5], pa.uint64()), pa.int64()), (pa.array([5]), pa.float64()),
             (pa.array([5]), pa.decimal128(10, 2)), (pa.array([0.5], pa.float32()), pa.float64()), (pa.array([Decimal("1.50")]), pa.decimal128(4, 1))]  # fmt: skip
    for data, wanted in cases:
        assert cast_table(table(c=data), pa.schema([("c", wanted)])).column("c").type == wanted


def test_nulls_in_not_null_columns_are_refused_at_every_level():
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    fine = pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))
    assert cast_table(table(c=fine), pa.schema([("c", inner)])).column("c").to_pylist() == [{"x": 1}, None]
    bad = pa.array([{"x": None}], pa.struct([("x", pa.int32())]))
    for data, kind in (
        (bad, inner),
        (pa.array([[1, None]]), pa.list_(pa.field("element", pa.int64(), nullable=False))),
    ):
        with pytest.raises(SchemaError, match="NOT NULL"):
            cast_table(table(c=data), pa.schema([("c", kind)]))
    with pytest.raises(SchemaError, match="NOT NULL"):
        cast_table(
            table(c=pa.array([None], pa.int32())), pa.schema([pa.field("c", pa.int32(), nullable=False)])
        )


def test_a_column_the_table_does_not_have_is_refused():
    with pytest.raises(SchemaError, match="no column 'b'"):
        cast_table(table(b=pa.array([1])), pa.schema([("a", pa.int64())]))


def test_nested_columns_are_cast_inside_and_slices_stay_slices():
    schema = normalise_schema(
        pa.schema(
            [
                ("c", pa.large_list(pa.dictionary(pa.int8(), pa.string()))),
                ("m", pa.map_(pa.large_string(), pa.uint8())),
            ]
        )
    )
    data = table(
        c=pa.array([["a"], None, ["b", "c"]], pa.large_list(pa.string())),
        m=pa.array([[("k", 1)], [], None], pa.map_(pa.large_string(), pa.uint8())),
    )
    assert cast_table(data.slice(1), schema).to_pylist() == [
        {"c": None, "m": []},
        {"c": ["b", "c"], "m": None},
    ]


PARTITION_TEXTS = [
    (True, pa.bool_(), "true"), (-5, pa.int8(), "-5"), (10**18, pa.int64(), "1000000000000000000"), (Decimal("1.50"), pa.decimal128(10, 2), "1.50"),
    (Decimal("0.0000001"), pa.decimal128(20, 10), "0.0000001000"), (0.1, pa.float64(), "0.1"), (1e300, pa.float64(), "1e+300"),
    (float("-inf"), pa.float64(), "-Infinity"), ("", pa.string(), ""), ("a/b", pa.string(), "a/b"), (b"\x00\xff", pa.binary(), "AP8="),
    (dt.date(1969, 12, 31), pa.date32(), "1969-12-31"), (dt.datetime(2024, 1, 2, 3, 4, 5, 6, dt.UTC), UTC, "2024-01-02T03:04:05.000006Z"),
    (dt.datetime(1, 1, 1), pa.timestamp("us"), "0001-01-01T00:00:00.000000"), (None, pa.int32(), None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "kind", "text"), PARTITION_TEXTS)
def test_partition_values_have_one_text(value, kind, text):
    """H7: one codec, both ways."""
    assert encode_partition(value, kind) == text
    assert decode_partition(text, kind) == value
    assert decode_partition_array(pa.array([text, None], pa.string()), kind).to_pylist() == [value, None]


def test_an_instant_is_written_in_utc_whatever_its_zone():
    east = dt.timezone(dt.timedelta(hours=14))
    assert encode_partition(dt.datetime(2024, 1, 1, 0, 0, tzinfo=east), UTC) == "2023-12-31T10:00:00.000000Z"


def test_a_float_partition_value_is_as_short_as_a_float_needs():
    assert encode_partition(0.10000000149011612, pa.float32()) == "0.1"
    assert decode_partition("0.1", pa.float32()) == 0.10000000149011612
    assert encode_partition(float("nan"), pa.float32()) == "NaN"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x", pa.int32()),
        ("300", pa.int8()),
        ("2024-13-01", pa.date32()),
        ("yes", pa.bool_()),
        ("*", pa.binary()),
        ("1.005", pa.decimal128(5, 2)),
    ],
)
def test_a_partition_value_of_another_type_is_corruption_not_null(text, kind):
    with pytest.raises(CorruptLogError, match="partition value"):
        decode_partition(text, kind)
    with pytest.raises(CorruptLogError, match="partition value"):
        decode_partition_array(pa.array([text]), kind)


def test_statistics_of_timestamps_are_microseconds():
    """H5: a decimal string, also before 1970."""
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC)
    assert encode_stat(moment, UTC) == "-1"
    assert decode_stat("-1", UTC) == moment
    assert decode_stat("1969-12-31T23:59:59.999999Z", UTC) == moment
    assert decode_stat("1969-12-31T23:59:59", UTC) is None


@pytest.mark.parametrize(
    ("kind", "texts", "values"),
    [
        (pa.int64(), ["10", "9", "-1", "0x10", "1.0", "", None, str(1 << 63)], [10, 9, -1, None, None, None, None, None]),
        (pa.int8(), ["127", "128"], [127, None]),
        (pa.float64(), ["1.5", "1.0E10", "Infinity", "1e999", "abc"], [1.5, 1e10, float("inf"), None, None]),
        (pa.float64(), ["1.5", "Infinity", "1e999"], [1.5, float("inf"), None]),
        (pa.bool_(), ["true", "false", "TRUE", None], [True, False, None, None]),
        (pa.date32(), ["2024-01-01", "0001-01-01", "2024-1-1"], [dt.date(2024, 1, 1), dt.date(1, 1, 1), None]),
        (pa.decimal128(5, 2), ["1.5", "1.005", "99999"], [Decimal("1.50"), None, None]),
        (pa.string(), ["", "x", None], ["", "x", None]),
    ],
)  # fmt: skip
def test_a_statistic_that_cannot_be_read_is_unknown(kind, texts, values):
    """H5: and never an error; one at a time and by column alike."""
    assert decode_stat_array(pa.array(texts, pa.string()), kind).to_pylist() == values
    assert [decode_stat(text, kind) for text in texts] == values


@given(st.integers(-(1 << 31), (1 << 31) - 1))
def test_every_date_has_a_text_that_reads_back(days):
    assert days_of(*date_of(days)) == days
    assert parse_date(format_date(days)) == days


@given(st.dates())
def test_dates_agree_with_the_calendar(date):
    assert days_of(date.year, date.month, date.day) == (date - dt.date(1970, 1, 1)).days
    assert format_date((date - dt.date(1970, 1, 1)).days) == date.isoformat()


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_every_instant_has_a_text_that_reads_back(micros):
    assert parse_timestamp(format_timestamp(micros) + "Z") == (micros, True)
