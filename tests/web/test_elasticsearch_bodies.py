"""Bodies of every form: a request is answered or refused as Elasticsearch refuses, never with status 500."""

import copy
import json
from decimal import Decimal

import httpx
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import indextables as it
from support.served import FIRST_US, TOKEN, serving

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
        ("level", pa.string()),
        ("status", pa.int64()),
        ("small", pa.int8()),
        ("took", pa.float64()),
        ("price", pa.decimal128(10, 2)),
        ("ok", pa.bool_()),
        ("raw", pa.binary()),
        ("message", pa.string()),
        ("fields", pa.string()),
        ("ip", pa.string()),
        ("inner", pa.struct([("a", pa.int64())])),
    ]
)
OPTIONS = {
    "indexing.typemap.message": "text",
    "indexing.typemap.level": "string",
    "indexing.typemap.fields": "json",
    "indexing.typemap.ip": "ip",
}
ROWS = [
    {
        "ts": FIRST_US + n, "local": FIRST_US + n, "day": 19_000 + n, "level": "INFO", "status": n, "small": n,
        "took": [n / 10, float("nan"), float("inf")][n % 3], "price": Decimal(n) / 10, "ok": n % 2 == 0, "raw": b"\xff",
        "message": f"upstream timeout n{n}", "fields": json.dumps({"a": {"b": n}}), "ip": "10.0.0.1",
        "inner": {"a": n},
    }
    for n in range(12)
]  # fmt: skip

CLAUSES = [
    {"match_all": {}},
    {"match_none": {}},
    {"match": {"message": "timeout"}},
    {"match": {"message": {"query": "timeout served", "operator": "and", "boost": 2}}},
    {"match": {"took": 0.5}},
    {"match_phrase": {"message": {"query": "upstream timeout", "slop": 1}}},
    {"multi_match": {"query": "n7", "fields": ["message^2"], "type": "phrase"}},
    {"query_string": {"query": "message:timeout", "default_field": "message", "default_operator": "AND"}},
    {"query_string": {"query": "timeout", "fields": ["message", "fields.a"], "lenient": True}},
    {"term": {"level": {"value": "WARN"}}},
    {"term": {"fields.a.b": 3}},
    {"term": {"ip": "10.0.0.0/8"}},
    {"terms": {"status": [1, 2], "boost": 1}},
    {"terms": {"ok": [True]}},
    {"range": {"status": {"gte": 300, "lt": 501, "boost": 1}}},
    {"range": {"small": {"gte": 3}}},
    {"range": {"price": {"gte": 3}}},
    {"range": {"ts": {"gte": 1714521600000, "lte": "now+1d", "format": "epoch_millis", "time_zone": "UTC"}}},
    {"range": {"local": {"gt": "2024-05-01"}}},
    {"range": {"day": {"lt": "2024-05-01"}}},
    {"exists": {"field": "took"}},
    {"prefix": {"level": {"value": "W"}}},
    {"wildcard": {"level": {"wildcard": "?AR*"}}},
    {"bool": {
        "must": [{"term": {"status": 1}}], "filter": {"match_all": {}}, "should": [{"term": {"status": 1}}],
        "must_not": [{"match": {"message": "x"}}], "minimum_should_match": 1, "boost": 1.0,
    }},
]  # fmt: skip
AGGREGATIONS = [
    {"a": {"terms": {"field": "level", "size": 3, "order": {"_key": "asc"}, "min_doc_count": 1}}},
    {"a": {"terms": {"field": "took", "order": [{"_count": "asc"}]}, "aggs": {"b": {"sum": {"field": "status"}}}}},
    {"a": {"date_histogram": {
        "field": "ts", "fixed_interval": "12h", "time_zone": "Europe/Berlin", "offset": "1h", "min_doc_count": 0,
        "extended_bounds": {"min": 1714521600000, "max": 1714529600000}, "format": "epoch_millis",
    }, "meta": {}}},
    {"a": {"date_histogram": {"field": "day", "calendar_interval": "1M"}}},
    {"a": {"histogram": {"field": "took", "interval": 0.1, "offset": 0.05, "min_doc_count": 0}}},
    {"a": {"histogram": {"field": "price", "interval": 0.1, "offset": 0.05}}},
    {"a": {"histogram": {"field": "status", "interval": 2.5}}},
    {"a": {"cardinality": {"field": "level", "precision_threshold": 10}}, "b": {"avg": {"field": "took"}}},
]  # fmt: skip
BODIES = [
    {"size": 2, "from": 1, "sort": [{"ts": {"order": "desc", "missing": "_last", "unmapped_type": "long"}}]},
    {"sort": ["_doc"], "_source": ["ts", "l*"], "track_total_hits": True, "version": True, "timeout": "1s"},
    {"sort": {"took": "asc"}, "_source": {"includes": ["ts"], "excludes": "x"}, "track_total_hits": 100},
    {
        "query": {"match_all": {}},
        "script_fields": {},
        "docvalue_fields": [],
        "stored_fields": [],
        "fields": [],
    },
    *({"query": clause, "size": 1} for clause in CLAUSES),
    *({"aggs": body, "size": 0} for body in AGGREGATIONS),
]


def nested(depth):
    made = {"match_all": {}}
    for _ in range(depth):
        made = {"bool": {"must": [made]}}
    return made


ODD = [
    None, True, False, 0, -1, 1.5, 1e308, -1e300, 10**30, -(10**30), 2**63, "", " ", "x", "*", "nowhere", "ts", "inner", "raw",
    "message", "fields.a", "\x00", "\\", '"', "é" * 50, "9" * 400, "-99999999999999", "now-999999999w", "now+9d", "1M", "99999999999999d",
    "9e999", "nan", "2024-13-45", "0001-01-01", [], [[]], [None], [1, "a", {}], {}, {"a": 1}, {"": {}}, {"a": {"b": {"c": []}}},
    {"query": None}, {"value": [1]}, nested(20), nested(60), [[[[[[[["deep"]]]]]]]],
]  # fmt: skip


def places(value, path=()):
    """Every place in a body."""
    yield path
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def replaced(body, path, odd):
    if not path:
        return odd
    made = copy.deepcopy(body)
    at = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = odd
    return made


def renamed(body, path, name):
    """The body with one key called otherwise."""
    made = copy.deepcopy(body)
    at = made
    for key in path[:-1]:
        at = at[key]
    at[name] = at.pop(path[-1])
    return made


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    path = tmp_path_factory.mktemp("bodies") / "odd"
    it.Table.create(path, SCHEMA, options=OPTIONS).append(pa.Table.from_pylist(ROWS, SCHEMA))
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    with serving(str(path)) as address, httpx.Client(base_url=address, headers=headers, timeout=60) as made:
        yield made


def check(client, text):
    answer = client.post("/elastic/odd/_search", content=text)
    assert answer.status_code in (200, 400), (text[:500], answer.text[:500])
    if answer.status_code == 400:
        error = answer.json()["error"]
        assert error["type"] == "illegal_argument_exception"
        assert error["reason"]
        assert error["root_cause"] == [{"type": error["type"], "reason": error["reason"]}]
    return answer


def test_the_bodies_that_are_bent_are_answered_when_they_are_straight(client):
    for body in BODIES:
        assert check(client, json.dumps(body)).status_code == 200, body


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_odd_value_anywhere_is_answered_or_refused_by_name(client, data):
    body = data.draw(st.sampled_from(BODIES))
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(places(body))))
        odd = data.draw(st.sampled_from(ODD) | st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=5,
        ))  # fmt: skip
        if path and isinstance(path[-1], str) and isinstance(odd, str) and data.draw(st.booleans()):
            body = renamed(body, path, odd)
        else:
            body = replaced(body, path, odd)
        if not isinstance(body, (dict, list)):
            break
    check(client, json.dumps(body))


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "[]", "null", "1", '"x"', "{", "{}{}", "NaN", '{"size": NaN}', '{"size": 1e999}', "\ufeff{}", "\x00",
        "[" * 100_000, '{"query":' * 100_000, '{"query": {"match": {"message": "\\ud800"}}}', '{"\\ud800": 1}',
        '{"size": ' + "9" * 5000 + "}", '{"size": -0}', '{"size": 1, "size": 2}',
    ],
)  # fmt: skip
def test_a_text_that_is_no_body_is_refused(client, text):
    check(client, text.encode())


def test_bytes_that_are_no_text_are_refused(client):
    assert check(client, b'{"query": "\xff"}').status_code == 400
