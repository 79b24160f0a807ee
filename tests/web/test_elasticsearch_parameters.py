"""URL parameters, scrolls and texts inside filters, asked by the official Python clients."""

import elasticsearch
import httpx
import pyarrow as pa
import pytest
from elasticsearch import helpers

import indextables as it
from indextables.web.elastic.scrolls import MissingScrollError, Scrolls
from support.served import TOKEN, events, make_events, serving

EVERY = range(2880)
TIMEOUTS = [f"upstream timeout n{n}" for n in EVERY if n % 10 == 0]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("parameters") / "events"
    make_events(path, days=2)
    with serving(str(path)) as address:
        yield address


@pytest.fixture(scope="module")
def client(place):
    made = elasticsearch.Elasticsearch(f"{place}/elastic", basic_auth=("anyone", TOKEN), request_timeout=60)
    yield made
    made.close()


@pytest.fixture(scope="module")
def plain(place):
    with httpx.Client(
        base_url=f"{place}/elastic", headers={"authorization": f"Bearer {TOKEN}"}, timeout=60
    ) as made:
        yield made


def messages(answer):
    return [hit["_source"]["message"] for hit in answer["hits"]["hits"]]


@pytest.mark.parametrize("size", [7, 1000, 2880, 10_000])
def test_scan_gives_every_row_once(client, size):
    rows = [hit["_source"]["message"] for hit in helpers.scan(client, index="events", size=size)]
    assert sorted(rows) == sorted(events(0, 2880)["message"].to_pylist())


def test_scan_gives_every_row_a_query_finds(client):
    query = {"query": {"match": {"message": "timeout"}}, "_source": ["message"]}
    rows = [hit["_source"] for hit in helpers.scan(client, index="events", query=query, size=100)]
    assert sorted(row["message"] for row in rows) == sorted(TIMEOUTS)
    ordered = {**query, "sort": [{"ts": {"order": "desc"}}]}
    found = helpers.scan(client, index="events", query=ordered, size=100, preserve_order=True)
    assert [hit["_source"]["message"] for hit in found] == TIMEOUTS[::-1]


def test_opensearch_scans_every_row_too(place):
    opensearch = pytest.importorskip("opensearchpy")
    made = opensearch.OpenSearch(f"{place}/elastic", http_auth=("anyone", TOKEN))
    query = {"query": {"match": {"message": "timeout"}}}
    rows = list(opensearch.helpers.scan(made, index="events", query=query, size=100))
    made.close()
    assert sorted(hit["_source"]["message"] for hit in rows) == sorted(TIMEOUTS)


def test_a_scroll_is_of_one_version_and_repeats_a_page_that_was_lost(tmp_path):
    table = make_events(tmp_path / "events", days=1)
    with serving(str(tmp_path / "events")) as address:
        made = elasticsearch.Elasticsearch(f"{address}/elastic", basic_auth=("anyone", TOKEN))
        first = made.search(index="events", scroll="1m", size=1000, sort="_doc")
        table.append(events(1440, 100))
        second = made.scroll(scroll_id=first["_scroll_id"], scroll="1m")
        again = made.scroll(scroll_id=first["_scroll_id"], scroll="1m")
        last = made.scroll(scroll_id=second["_scroll_id"])
        assert made.clear_scroll(scroll_id=first["_scroll_id"])["num_freed"] == 1
        with pytest.raises(elasticsearch.NotFoundError, match="search_context_missing"):
            made.scroll(scroll_id=last["_scroll_id"])
        made.close()
    assert messages(second) == messages(again)
    assert len(messages(first) + messages(second)) == 1440
    assert messages(last) == []


def test_a_scroll_nobody_asks_for_is_let_go():
    now = [0.0]
    scrolls = Scrolls(lambda: now[0])
    first = scrolls.begin(iter([{"page": 1}, {"page": 2}, {"page": 3}]), "1m")
    now[0] = 59.0
    second = scrolls.following(first["_scroll_id"], "1m")
    now[0] = 118.0
    assert scrolls.following(second["_scroll_id"], None)["page"] == 3
    now[0] = 119.1
    with pytest.raises(MissingScrollError):
        scrolls.following(second["_scroll_id"], "1m")


def test_a_scroll_that_failed_does_not_end_early():
    def pages():
        yield {"page": 1}
        raise ZeroDivisionError

    scrolls = Scrolls()
    first = scrolls.begin(pages(), "1m")
    with pytest.raises(ZeroDivisionError):
        scrolls.following(first["_scroll_id"], "1m")
    with pytest.raises(MissingScrollError):
        scrolls.following(first["_scroll_id"], "1m")


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ("sort=ts:desc&size=2", ["request served n2879", "request served n2878"]),
        ("sort=TS&size=1&from=3", ["request served n3"]),
        ("q=timeout&sort=ts:desc&size=1", TIMEOUTS[-1:]),
        ("q=upstream+n20&default_operator=AND", ["upstream timeout n20"]),
        ("q=n20&df=message&analyze_wildcard=true&lenient=true", ["upstream timeout n20"]),
        ("q=n20&search_type=query_then_fetch&preference=_local&ignore_unavailable=true&pretty&explain=false", ["upstream timeout n20"]),
    ],
)  # fmt: skip
def test_a_parameter_is_obeyed(plain, params, expected):
    answer = plain.get(f"/events/_search?{params}")
    assert answer.status_code == 200, answer.text
    assert messages(answer.json()) == expected


def test_parameters_say_which_fields_and_totals_are_wanted(plain):
    def hits(params):
        return plain.get(f"/events/_search?size=1&sort=ts&{params}").json()["hits"]

    assert set(hits("_source=ts,level")["hits"][0]["_source"]) == {"ts", "level"}
    assert hits("_source=false")["hits"][0]["_source"] == {}
    assert set(hits("_source_excludes=m*,t*")["hits"][0]["_source"]) == {"level", "status"}
    assert "total" not in hits("track_total_hits=false")
    assert hits("track_total_hits=10")["total"] == {"value": 2880, "relation": "eq"}
    assert hits("rest_total_hits_as_int=true")["total"] == 2880
    assert hits("version=true")["hits"][0]["_version"] == 1


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("/events/_search?srot=ts:desc", "srot"),
        ("/events/_search?explain=true", "explain"),
        ("/events/_search?filter_path=hits", "filter_path"),
        ("/events/_search?terminate_after=1", "terminate_after"),
        ("/events/_search?sort=ts:down", "order"),
        ("/events/_search?sort=ts&sort=level", "sort"),
        ("/events/_search?size=x", "size"),
        ("/events/_search?df=message", "df"),
        ("/events/_search?scroll=forever", "scroll"),
        ("/events/_search?scroll=1m&size=0", "scroll"),
        ("/events/_search?search_type=scan", "search_type"),
        ("/events/_search?search_after=1", "search_after"),
        ("/events/_field_caps?filters=x", "filters"),
        ("/events/_mapping?other=1", "other"),
        ("/_msearch?other=1", "other"),
        ("/?other=1", "other"),
    ],
)
def test_any_other_parameter_is_refused_by_name(plain, address, name):
    answer = plain.get(address)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["type"] == "illegal_argument_exception"
    assert name in error["reason"]


def test_a_header_of_several_searches_is_checked_too(client):
    found = client.msearch(
        searches=[
            {"index": "events", "search_type": "query_then_fetch", "ignore_unavailable": True}, {"size": 0},
            {"index": "events", "sort": "ts"}, {"size": 0},
        ]
    )["responses"]  # fmt: skip
    assert [item["status"] for item in found] == [200, 400]


@pytest.mark.parametrize("text", ["n20) OR (*", "n20 OR *", 'n20") OR ("served', "n20) AND NOT (n30", "-n20"])
@pytest.mark.parametrize("clause", ["filter", "must", "must_not", "should"])
@pytest.mark.parametrize("field", [{}, {"default_field": "message"}])
def test_a_text_cannot_leave_its_clause(client, text, clause, field):
    """Whatever it says, the rows are at most those that the other clause allows."""
    held = {"match": {"message": "timeout"}}
    body = {"query_string": {"query": text, **field}}
    query = {"bool": {"must": held, clause: [held, body] if clause == "must" else body}}
    if clause == "should":
        query["bool"]["minimum_should_match"] = 1
    try:
        total = client.search(index="events", query=query, size=0)["hits"]["total"]["value"]
    except elasticsearch.BadRequestError:
        return
    assert total <= len(TIMEOUTS)


def test_the_counts_of_a_histogram_are_all_there_whatever_its_interval(client):
    """Adding up 0.1 again and again misses the buckets by a rounding."""
    asked = {"a": {"histogram": {"field": "took", "interval": 0.1}}}
    query = {"range": {"took": {"lt": 90}}}
    found = client.search(index="events", size=0, query=query, aggs=asked)
    assert (
        sum(one["doc_count"] for one in found["aggregations"]["a"]["buckets"])
        == found["hits"]["total"]["value"]
    )


def test_times_in_seconds_are_not_read_as_milliseconds(client):
    bounds = {"gte": 1_714_521_600, "lt": 1_714_521_600 + 600, "format": "epoch_second"}
    assert (
        client.search(index="events", query={"range": {"ts": bounds}}, size=0)["hits"]["total"]["value"] == 10
    )


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("missing", [None, "_first", "_last"])
@pytest.mark.parametrize("size", [1, 3, 4, 9])
def test_rows_without_a_value_come_where_elasticsearch_has_them(tmp_path, order, missing, size):
    schema = pa.schema([("n", pa.int64()), ("k", pa.int64())])
    table = it.Table.create(tmp_path / "t", schema)
    values = [3, None, 1, None, 2, 5]
    for n, value in enumerate(values):
        table.append(pa.table({"n": [n], "k": [value]}, schema))
    sort = {"order": order, **({"missing": missing} if missing else {})}
    with serving(str(tmp_path / "t")) as address:
        made = elasticsearch.Elasticsearch(f"{address}/elastic", basic_auth=("anyone", TOKEN))
        found = made.search(index="t", sort=[{"k": sort}], size=size)["hits"]["hits"]
        made.close()
    known = sorted((value for value in values if value is not None), reverse=order == "desc")
    expected = [None, None, *known] if missing == "_first" else [*known, None, None]
    assert [hit["sort"] for hit in found] == [[value] for value in expected[:size]]


def test_what_the_author_of_a_query_should_know_is_a_warning_header(client, plain):
    with pytest.warns(elasticsearch.ElasticsearchWarning, match="`and` is searched as a word; write AND"):
        answer = client.search(index="events", q="upstream and n20", size=1)
    assert "_notes" not in answer.body
    lines = '{"index": "events"}\n{"query": {"query_string": {"query": "é or x"}}}\n'
    several = plain.post("/_msearch", content=lines * 2, headers={"content-type": "application/x-ndjson"})
    assert "_notes" not in several.text
    assert several.headers["warning"].count("`or` is searched as a word") == 1
    assert "warning" not in plain.get("/events/_search?q=timeout").headers


def test_an_option_of_the_server_keeps_operators_in_lower_case(tmp_path):
    path = tmp_path / "t"
    rows = pa.table({"id": [1, 2], "message": ["disk full", "disk ok"]})
    it.Table.create(path, rows.schema, options={"indexing.typemap.message": "text"}).append(rows)
    for options, found in (({}, 2), ({"search.lowercaseOperators": "true"}, 1)):
        with serving(str(path), options=options) as address:
            asked = {"headers": {"authorization": f"Bearer {TOKEN}"}, "timeout": 60}
            answer = httpx.get(f"{address}/elastic/t/_search?q=disk+and+full", **asked).json()
            assert answer["hits"]["total"]["value"] == found
            answer = httpx.get(f"{address}/api/tables/t/count?q=disk+and+full", **asked).json()
            assert answer["total"] == found
            assert len(answer["found"]["notes"]) == 1
