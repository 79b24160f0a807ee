"""A part of Elasticsearch's interface, asked by its official Python client."""

import elasticsearch
import elasticsearch.helpers
import pyarrow as pa
import pytest

import indextables as it
from support.served import FIRST_US, LEVELS, TOKEN, make_events, serving

EVERY = range(2880)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    path = tmp_path_factory.mktemp("elastic") / "events"
    make_events(path, days=2)
    with serving(str(path)) as address:
        made = elasticsearch.Elasticsearch(
            f"{address}/elastic", basic_auth=("anyone", TOKEN), request_timeout=60
        )
        yield made
        made.close()


def total(client, query):
    return client.search(index="events", query=query, size=0)["hits"]["total"]["value"]


def at(n):
    return FIRST_US // 1000 + n * 60_000


def test_the_client_accepts_the_server(client):
    assert client.info()["version"]["number"]
    with pytest.raises(elasticsearch.AuthenticationException):
        client.options(basic_auth=("anyone", "wrong")).search(index="events")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"match_all": {}}, lambda n: True),
        ({"match": {"message": "timeout"}}, lambda n: n % 10 == 0),
        ({"match": {"message": {"query": "timeout served", "operator": "and"}}}, lambda n: False),
        ({"match": {"message": "timeout served"}}, lambda n: True),
        ({"match_phrase": {"message": "upstream timeout"}}, lambda n: n % 10 == 0),
        ({"match_phrase": {"message": 'a "quote\\'}}, lambda n: False),
        ({"multi_match": {"query": "n7", "fields": ["message"]}}, lambda n: n == 7),
        ({"query_string": {"query": "message:timeout AND level:ERROR"}}, lambda n: n % 10 == 0 and n % 3 == 2),
        ({"query_string": {"query": "*", "analyze_wildcard": True}}, lambda n: True),
        ({"term": {"level": "WARN"}}, lambda n: n % 3 == 1),
        ({"term": {"level.keyword": {"value": "WARN"}}}, lambda n: n % 3 == 1),
        ({"terms": {"level": ["WARN", "ERROR"]}}, lambda n: n % 3),
        ({"range": {"status": {"gte": 300, "lt": 501}}}, lambda n: n % 10 == 0),
        ({"range": {"ts": {"gte": at(100), "lt": at(200), "format": "epoch_millis"}}}, lambda n: 100 <= n < 200),
        ({"range": {"ts": {"gt": "2024-05-01T01:00:00Z", "lte": "2024-05-01T02:00:00Z"}}}, lambda n: 60 < n <= 120),
        ({"range": {"ts": {"gte": "now-1h"}}}, lambda n: False),
        ({"exists": {"field": "took"}}, lambda n: True),
        ({"prefix": {"level": "W"}}, lambda n: n % 3 == 1),
        ({"wildcard": {"level": "?AR*"}}, lambda n: n % 3 == 1),
        ({"bool": {"must": [{"match": {"message": "timeout"}}], "filter": [{"term": {"level": "INFO"}}]}}, lambda n: n % 10 == 0 and n % 3 == 0),
        ({"bool": {"must_not": [{"term": {"level": "INFO"}}]}}, lambda n: n % 3),
        ({"bool": {"must_not": {"match": {"message": "timeout"}}}}, lambda n: n % 10),
        ({"bool": {"should": [{"term": {"level": "INFO"}}, {"term": {"status": 500}}]}}, lambda n: n % 3 == 0 or n % 10 == 0),
        ({"bool": {"filter": {"term": {"level": "INFO"}}, "should": [{"term": {"status": 500}}]}}, lambda n: n % 3 == 0),
        ({"bool": {"must_not": {"match_all": {}}}}, lambda n: False),
    ],
)  # fmt: skip
def test_a_query_counts_the_rows_it_means(client, query, expected):
    assert total(client, query) == sum(1 for n in EVERY if expected(n))


@pytest.mark.parametrize(
    "query",
    [
        {"fuzzy": {"message": "timeuot"}},
        {"term": {"nowhere": 1}},
        {"bool": {"should": [{"match": {"message": "timeout"}}, {"term": {"status": 200}}]}},
        {"bool": {"must_not": [{"bool": {"must": [{"match": {"message": "x"}}, {"term": {"status": 1}}]}}]}},
        {"match": {"message": {"query": "x", "fuzziness": "AUTO"}}},
        {"query_string": {"query": "message:("}},
    ],
)
def test_what_cannot_be_answered_exactly_is_refused(client, query):
    with pytest.raises(elasticsearch.BadRequestError):
        client.search(index="events", query=query)


def test_rows_come_sorted_in_pages_with_the_columns_asked_for(client):
    found = client.search(
        index="events",
        query={"match": {"message": "timeout"}},
        sort=[{"ts": {"order": "desc"}}],
        source=["message", "s*"],
        size=2,
        from_=1,
    )
    assert [hit["_source"] for hit in found["hits"]["hits"]] == [
        {"message": f"upstream timeout n{n}", "status": 500} for n in (2860, 2850)
    ]
    assert found["hits"]["total"] == {"value": 288, "relation": "eq"}


def test_without_a_sort_the_best_match_comes_first(client):
    found = client.search(index="events", query={"match": {"message": "timeout n70"}}, size=1)
    assert found["hits"]["hits"][0]["_source"]["message"] == "upstream timeout n70"
    assert found["hits"]["max_score"] == found["hits"]["hits"][0]["_score"] > 0


def test_aggregations_count_as_a_dashboard_asks_for_them(client):
    inner = {"levels": {"terms": {"field": "level"}, "aggs": {"most": {"max": {"field": "took"}}}}}
    asked = {
        "hours": {
            "date_histogram": {"field": "ts", "fixed_interval": "12h", "min_doc_count": 0},
            "aggs": inner,
        },
        "slowest": {"max": {"field": "took"}},
        "kinds": {"cardinality": {"field": "level"}},
        "taken": {"histogram": {"field": "took", "interval": 200}},
    }
    found = client.search(index="events", size=0, query={"term": {"status": 200}}, aggs=asked)["aggregations"]
    rows = [n for n in EVERY if n % 10]
    assert found["slowest"]["value"] == max(rows) / 7
    assert found["kinds"]["value"] == 3
    assert [(b["key"], b["doc_count"]) for b in found["hours"]["buckets"]] == [
        (at(720 * half), sum(1 for n in rows if n // 720 == half)) for half in range(4)
    ]
    second = {b["key"]: b for b in found["hours"]["buckets"][1]["levels"]["buckets"]}
    for number, level in enumerate(LEVELS):
        mine = [n for n in rows if n // 720 == 1 and n % 3 == number]
        assert second[level]["doc_count"] == len(mine)
        assert second[level]["most"]["value"] == max(mine) / 7
    assert sum(bucket["doc_count"] for bucket in found["taken"]["buckets"]) == len(rows)


def test_a_histogram_shows_the_empty_buckets_between_others(client):
    query = {"terms": {"took": [0, 10]}}
    asked = {"times": {"date_histogram": {"field": "ts", "fixed_interval": "10m"}}}
    found = client.search(index="events", size=0, query=query, aggs=asked)["aggregations"]["times"]["buckets"]
    assert [bucket["doc_count"] for bucket in found] == [1, 0, 0, 0, 0, 0, 0, 1]


def test_several_searches_are_answered_one_by_one(client):
    found = client.msearch(
        searches=[
            {"index": "events"}, {"size": 0, "query": {"term": {"level": "WARN"}}},
            {"index": "events"}, {"size": 0, "query": {"nonsense": {}}},
            {"index": "other"}, {"size": 0},
        ]
    )["responses"]  # fmt: skip
    assert found[0]["hits"]["total"]["value"] == 960
    assert [item["status"] for item in found] == [200, 400, 404]


def test_fields_have_types_that_dashboards_know(client):
    found = client.field_caps(index="events", fields="*")["fields"]
    assert {name: list(kinds) for name, kinds in found.items()} == {
        "ts": ["date"], "level": ["keyword"], "status": ["long"], "took": ["double"], "message": ["text"],
    }  # fmt: skip
    assert not found["message"]["text"]["aggregatable"]
    assert set(client.field_caps(index="events", fields="s*")["fields"]) == {"status"}
    assert client.indices.get_mapping(index="events")["events"]["mappings"]["properties"]["ts"] == {
        "type": "date"
    }


def test_a_search_that_finds_nothing_has_no_hits(client):
    nothing = {"term": {"level": "NOBODY"}}
    found = client.search(index="events", query=nothing, size=100)["hits"]
    assert (found["total"]["value"], found["hits"]) == (0, [])
    assert not list(elasticsearch.helpers.scan(client, index="events", query={"query": nothing}))


def test_keyword_of_a_column_with_words_and_values(tmp_path):
    """`message` finds words, `message.keyword` whole values, as a mapping with `fields.keyword` does."""
    rows = pa.table({"id": [1, 2, 3], "message": ["disk full", "disk", "Disk Full"]})
    table = it.Table.create(
        tmp_path / "t", rows.schema, options={"indexing.typemap.message": "text,string,substring"}
    )
    table.append(rows)
    with serving(str(tmp_path / "t")) as address:
        client = elasticsearch.Elasticsearch(
            f"{address}/elastic", basic_auth=("anyone", TOKEN), request_timeout=60
        )

        def ids(query):
            return sorted(
                hit["_source"]["id"] for hit in client.search(index="t", query=query)["hits"]["hits"]
            )

        assert ids({"term": {"message": "disk"}}) == [1, 2, 3]
        assert ids({"term": {"message.keyword": "disk"}}) == [2]
        assert ids({"terms": {"message.keyword": ["disk", "Disk Full"]}}) == [2, 3]
        assert ids({"match": {"message.keyword": "disk full"}}) == [1]
        assert ids({"wildcard": {"message.keyword": "*isk f*"}}) == [1]
        assert ids({"prefix": {"message.keyword": "Di"}}) == [3]
        properties = client.indices.get_mapping(index="t")["t"]["mappings"]["properties"]
        assert properties["message"] == {"type": "text", "fields": {"keyword": {"type": "keyword"}}}
        caps = client.field_caps(index="t", fields="*")["fields"]
        assert caps["message.keyword"]["keyword"]["aggregatable"]
        buckets = client.search(index="t", size=0, aggs={"v": {"terms": {"field": "message.keyword"}}})[
            "aggregations"
        ]["v"]
        assert sorted(bucket["key"] for bucket in buckets["buckets"]) == ["Disk Full", "disk", "disk full"]
        client.close()


def test_values_inside_nested_columns_are_fields(tmp_path):
    rows = [
        {"id": 1, "attributes": {"user": "ann lee"}, "labels": {"host": "web"}},
        {"id": 2, "attributes": {"user": "bob"}, "labels": {"host": "db"}},
    ]
    it.write(tmp_path / "events", rows, options={"indexing.typemap.attributes": "json"})
    with serving(str(tmp_path / "events")) as address:
        asked = elasticsearch.Elasticsearch(
            f"{address}/elastic", basic_auth=("anyone", TOKEN), request_timeout=60
        )
        assert total(asked, {"match": {"attributes.user": "ann"}}) == 1
        assert total(asked, {"query_string": {"query": "attributes.user:bob"}}) == 1
        assert total(asked, {"query_string": {"query": "labels.host:web"}}) == 1
        asked.close()
