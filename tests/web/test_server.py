"""The server of the page: who is let in, what it answers, what it refuses, and how work ends early."""

import base64
import json
import threading

import httpx
import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import CancelledError
from indextables.ops.read.in_order import in_order
from indextables.runtime import cancellable
from support.served import TOKEN, events, make_events, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "events"
    make_events(path)
    with serving(str(path)) as address:
        yield address


@pytest.fixture(scope="module")
def client(served):
    with httpx.Client(base_url=served, headers={"authorization": f"Bearer {TOKEN}"}, timeout=30) as made:
        yield made


def asked(client, what, **params):
    answer = client.get(f"/api/tables/events/{what}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def basic(text):
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("path", ["/", "/api/tables", "/static/app.js", "/elastic/events/_search"])
def test_nothing_is_answered_without_the_token(served, path):
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": basic("x:wrong")},
        {"cookie": "indextables_token=x"},
    ):
        assert httpx.get(served + path, headers=headers).status_code == 401


@pytest.mark.parametrize(
    "given",
    [
        f"Bearer {TOKEN}",
        basic(f"anyone:{TOKEN}"),
        f"ApiKey {base64.b64encode(f'id:{TOKEN}'.encode()).decode()}",
    ],
)
def test_the_token_is_taken_in_every_usual_form(served, given):
    assert httpx.get(f"{served}/api/tables", headers={"authorization": given}).status_code == 200


def test_the_printed_address_sets_a_cookie_that_scripts_and_other_sites_do_not_get(served):
    answer = httpx.get(f"{served}/", params={"token": TOKEN, "q": "timeout"})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/?q=timeout"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    page = httpx.get(f"{served}/", cookies={"indextables_token": TOKEN})
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]


def test_a_foreign_name_for_this_machine_is_refused(served):
    headers = {"authorization": f"Bearer {TOKEN}", "host": "attacker.example"}
    assert httpx.get(f"{served}/api/tables", headers=headers).status_code == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_the_page_only_reads(client, method):
    assert client.request(method, "/api/tables/events/rows").status_code == 405


def test_a_table_says_what_its_columns_are_for(client):
    (table,) = client.get("/api/tables").json()["tables"]
    assert (table["name"], table["time"], table["rows"]) == ("events", "ts", 4320)
    kinds = {column["name"]: column for column in table["columns"]}
    assert kinds["message"]["index"] == "text"
    assert not kinds["message"]["facet"]
    assert kinds["level"]["facet"]


def test_rows_come_in_pages_in_the_order_that_is_asked_for(client):
    first = asked(client, "rows", q="timeout", sort="ts", order="desc", limit=3)
    second = asked(client, "rows", q="timeout", sort="ts", order="desc", limit=3, offset=3)
    names = [column["name"] for column in first["columns"]]
    numbers = [row[names.index("message")] for row in first["rows"] + second["rows"]]
    assert numbers == [f"upstream timeout n{n}" for n in range(4310, 4250, -10)]
    assert first["more"]
    assert not asked(client, "rows", q="timeout", offset=431)["more"]


def test_the_words_that_were_found_are_marked(client):
    found = asked(client, "rows", q='"upstream timeout" AND n30', limit=1)
    assert found["marks"] == [
        {"message": [["upstream", True], [" ", False], ["timeout", True], [" ", False], ["n30", True]]}
    ]


def test_filters_of_every_kind_narrow_the_same_rows(client):
    chosen = json.dumps(
        [{"column": "level", "values": ["ERROR", "WARN"]}, {"column": "status", "values": [500], "not": True}]
    )
    span = {"time": "ts", "from": "2024-05-02T00:00:00Z", "to": "2024-05-02T01:00:00Z"}
    found = asked(client, "count", filters=chosen, **span)
    expected = [n for n in range(1440, 1500) if n % 3 and n % 10]
    assert found["total"] == len(expected)
    assert found["found"]["skipped_by_statistics"] == 2
    where = asked(client, "count", where="level <> 'INFO' AND status <> 500", **span)
    assert where["total"] == len(expected)


def test_a_facet_is_not_narrowed_by_what_is_chosen_of_it(client):
    chosen = json.dumps([{"column": "level", "values": ["ERROR"]}])
    found = asked(client, "facets", column="level", filters=chosen)
    assert {item["value"] for item in found["values"]} == {"INFO", "WARN", "ERROR"}
    other = asked(client, "facets", column="status", filters=chosen)
    assert sum(item["count"] for item in other["values"]) == 1440


def test_a_histogram_counts_every_row_in_bars_of_a_round_width(client):
    found = asked(client, "histogram", column="ts", q="timeout")
    assert found["interval"] == "1h"
    assert found["total"] == sum(count for _, count in found["bars"]) == 432
    day = asked(
        client,
        "histogram",
        column="ts",
        time="ts",
        **{"from": "2024-05-02T00:00:00Z", "to": "2024-05-02T01:00:00Z"},
    )
    assert (day["interval"], day["total"]) == ("1m", 60)


def test_an_older_version_is_answered_as_it_was(client):
    assert asked(client, "count", version=1)["total"] == 1440
    assert asked(client, "rows", version=1, limit=1)["version"] == 1


@pytest.mark.parametrize(
    ("params", "kind", "said"),
    [
        ({"where": "status >"}, "where", "not valid SQL"),
        ({"limit": "x"}, "other", "whole number"),
        ({"filters": "{"}, "other", "filters is not JSON"),
        ({"time": "ts", "from": "yesterday"}, "where", "not a time"),
    ],
)
def test_a_mistake_is_told_with_its_reason(client, params, kind, said):
    answer = client.get("/api/tables/events/rows", params=params)
    assert answer.status_code == 400
    assert answer.json()["error"]["kind"] == kind
    assert said in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(upstream timeout] n20:", "right after a word"),
        ("upstream: timeout/n20", "no column 'upstream'"),
        ('"n20 timeout', "is not closed"),
    ],
)
def test_a_text_that_is_no_query_is_searched_by_its_words_and_the_page_says_so(client, text, reason):
    found = asked(client, "rows", q=text)
    assert [row[-1] for row in found["rows"]] == ["upstream timeout n20"]
    assert found["marks"][0]["message"]
    assert "rows with all of its words are shown" in found["found"]["notes"][0]
    assert reason in found["found"]["notes"][0]
    assert asked(client, "count", q=text)["total"] == 1
    assert asked(client, "facets", q=text, column="level")["values"][0]["count"] == 1
    assert asked(client, "histogram", q=text, column="ts")["total"] == 1
    export = client.get("/api/tables/events/download", params={"q": text, "format": "jsonl"})
    assert export.text.count("\n") == 1


def test_a_text_without_a_row_has_a_note_about_its_missing_word(client):
    notes = asked(client, "rows", q="(upstream zebra]")["found"]["notes"]
    assert notes[1] == "no row has all words of the text: none holds 'zebra]'"


def test_an_unknown_table_or_version_is_not_found(client):
    assert client.get("/api/tables/other/rows").status_code == 404
    assert client.get("/api/tables/events/rows", params={"version": 99}).status_code == 404


def test_downloads_hold_every_row_of_the_answer(client):
    params = {"q": "timeout", "columns": json.dumps(["message", "status"])}
    expected = [{"message": f"upstream timeout n{n}", "status": 500} for n in range(0, 4320, 10)]
    csv = client.get("/api/tables/events/download", params={**params, "format": "csv"})
    assert "attachment" in csv.headers["content-disposition"]
    assert len(csv.text.splitlines()) == 1 + len(expected)
    lines = client.get("/api/tables/events/download", params={**params, "format": "jsonl"}).text.splitlines()
    key = lambda row: int(row["message"].rpartition("n")[2])
    assert sorted(map(json.loads, lines), key=key) == expected
    arrow = client.get("/api/tables/events/download", params={**params, "format": "arrow"}).content
    assert sorted(pa.ipc.open_stream(arrow).read_all().to_pylist(), key=key) == expected


def test_a_download_never_hands_a_spreadsheet_a_formula(tmp_path):
    schema = pa.schema([("note", pa.string())])
    it.Table.create(tmp_path / "t", schema).append(
        pa.table({"note": ["=HYPERLINK(1)", "plain, text"]}, schema)
    )
    with serving(str(tmp_path / "t")) as address:
        answer = httpx.get(
            f"{address}/api/tables/t/download?format=csv", headers={"authorization": f"Bearer {TOKEN}"}
        )
    assert answer.text == 'note\r\n\'=HYPERLINK(1)\r\n"plain, text"\r\n'


def test_files_versions_and_facts_are_those_of_the_log(client):
    files = asked(client, "files", time="ts", **{"from": "2024-05-03T00:00:00Z"})
    assert (files["total"], files["considered"]) == (1, 3)
    assert [item["version"] for item in asked(client, "versions")["versions"]] == [3, 2, 1, 0]
    about = asked(client, "about")
    assert (about["rows"], about["files"]) == (4320, 3)
    assert any("MERGE SPLITS" in (item["statement"] or "") for item in about["advice"])


def test_rows_that_are_appended_reach_who_follows(tmp_path):
    table = make_events(tmp_path / "events", days=1)
    with serving(str(tmp_path / "events")) as address, httpx.Client(timeout=30) as client:
        params = {"q": "timeout", "columns": '["message"]'}
        headers = {"authorization": f"Bearer {TOKEN}"}
        with client.stream(
            "GET", f"{address}/api/tables/events/tail", params=params, headers=headers
        ) as answer:
            lines = answer.iter_lines()
            assert next(line for line in lines if line)[0] == ":"
            table.append(events(1440, 20))
            data = next(line for line in lines if line.startswith("data: "))
    found = json.loads(data.removeprefix("data: "))
    assert found["rows"] == [["upstream timeout n1440"], ["upstream timeout n1450"]]
    assert found["version"] == table.version


def test_a_page_that_connects_again_gets_the_rows_that_came_in_between(tmp_path):
    table = make_events(tmp_path / "events", days=1)
    with serving(str(tmp_path / "events")) as address, httpx.Client(timeout=30) as client:
        where, headers = f"{address}/api/tables/events/tail", {"authorization": f"Bearer {TOKEN}"}
        params = {"q": "timeout", "columns": '["message"]'}
        with client.stream("GET", where, params=params, headers=headers) as answer:
            place = next(line for line in answer.iter_lines() if line.startswith("id: ")).removeprefix("id: ")
        table.append(events(1440, 20))
        for again in (
            {"headers": {**headers, "last-event-id": place}},
            {"params": {**params, "after": place}},
        ):
            asked_again = {"params": params, "headers": headers, **again}
            with client.stream("GET", where, **asked_again) as answer:
                data = next(line for line in answer.iter_lines() if line.startswith("data: "))
            assert json.loads(data.removeprefix("data: "))["rows"] == [
                ["upstream timeout n1440"],
                ["upstream timeout n1450"],
            ]


def test_rows_reach_who_follows_though_the_store_failed_meanwhile(tmp_path):
    table = make_events(tmp_path / "events", days=1)
    with serving(str(tmp_path / "events")) as address, httpx.Client(timeout=30) as client:
        where, headers = f"{address}/api/tables/events/tail", {"authorization": f"Bearer {TOKEN}"}
        log = tmp_path / "events" / "_transaction_log"
        away = tmp_path / "away"
        with client.stream(
            "GET", where, params={"q": "timeout", "columns": '["message"]'}, headers=headers
        ) as answer:
            lines = answer.iter_lines()
            assert next(line for line in lines if line)[0] == ":"
            log.rename(away)
            log.symlink_to(log)  # a directory that cannot be listed
            assert next(line for line in lines if line.startswith("event: ")) == "event: waiting"
            log.unlink()
            away.rename(log)
            table.append(events(1440, 20))
            next(line for line in lines if line == "event: message")
            data = next(line for line in lines if line.startswith("data: "))
    assert json.loads(data.removeprefix("data: "))["rows"] == [
        ["upstream timeout n1440"],
        ["upstream timeout n1450"],
    ]


def test_work_ends_when_whoever_asked_has_gone():
    stop, begun = threading.Event(), []

    def piece(number):
        begun.append(number)
        yield number
        stop.set()
        yield number

    with cancellable(stop), pytest.raises(CancelledError):
        list(in_order([lambda n=n: piece(n) for n in range(100)], 2))
    assert len(begun) < 100


def test_two_tables_of_one_name_are_refused_and_can_be_named(tmp_path):
    from indextables.errors import OptionError
    from indextables.web.tables import Catalog

    for place in ("a", "b"):
        make_events(tmp_path / place / "events", days=1)
    both = [str(tmp_path / "a" / "events"), str(tmp_path / "b" / "events")]
    with pytest.raises(OptionError, match="NAME=PATH"):
        Catalog.of(both)
    assert [one.name for one in Catalog.of([both[0], f"other={both[1]}"])] == ["events", "other"]


def test_a_delta_table_is_searched_and_looked_at_too(tmp_path):
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "d"), pa.table({"id": [1, 2, 3], "message": ["a", "b timeout", "c"]}))
    with (
        serving(str(tmp_path / "d")) as address,
        httpx.Client(base_url=address, headers={"authorization": f"Bearer {TOKEN}"}) as client,
    ):
        assert client.get("/api/tables").json()["tables"][0]["delta"]
        rows = client.get("/api/tables/d/rows", params={"where": "id > 1"}).json()["rows"]
        assert sorted(rows) == [[2, "b timeout"], [3, "c"]]
        assert client.get("/api/tables/d/about").json()["rows"] == 3
        assert client.get("/api/tables/d/facets", params={"column": "id"}).status_code == 400


def test_an_answer_says_how_many_bytes_of_the_splits_it_read(tmp_path):
    """Counted in the threads that read, and nothing where a cache still had it.

    All hits are asked for: how far ahead splits are read before a limit is reached is a matter of chance.
    """
    make_events(tmp_path / "fresh", days=4)
    size = it.Table.open(tmp_path / "fresh").describe().size_bytes
    with serving(str(tmp_path / "fresh")) as address:
        rows, question = f"{address}/api/tables/fresh/rows", {"q": "timeout", "limit": "500"}
        headers = {"authorization": f"Bearer {TOKEN}"}
        first, again = (httpx.get(rows, params=question, headers=headers).json()["found"] for _ in range(2))
    assert 0 < first["bytes_read"] < size
    assert again["bytes_read"] < first["bytes_read"]


def test_the_newest_rows_are_looked_for_in_the_newest_splits(tmp_path):
    make_events(tmp_path / "days", days=8)
    with serving(str(tmp_path / "days")) as address:
        rows, question = f"{address}/api/tables/days/rows", {"q": "timeout", "sort": "ts", "order": "desc"}
        answer = httpx.get(rows, params=question, headers={"authorization": f"Bearer {TOKEN}"}).json()
    assert len(answer["rows"]) == 50
    assert "n11510" in answer["rows"][0][-1]
    assert answer["found"]["skipped_by_statistics"] == 7


def test_every_parameter_finds_a_column_whatever_the_case_of_its_name(client):
    span = {"time": "TS", "from": "2024-05-02T00:00:00Z", "to": "2024-05-02T01:00:00Z"}
    chosen = json.dumps([{"column": "Level", "values": ["ERROR"]}])
    assert asked(client, "count", **span)["total"] == 60
    assert asked(client, "count", where="TS >= '2024-05-03'")["total"] == 1440
    assert asked(client, "count", filters=chosen)["total"] == 1440
    rows = asked(client, "rows", sort="Ts", order="desc", columns='["MESSAGE"]', limit=1, **span)
    assert [column["name"] for column in rows["columns"]] == ["message"]
    assert rows["rows"] == [["request served n1499"]]
    facets = asked(client, "facets", column="LEVEL", filters=chosen)
    assert {item["value"] for item in facets["values"]} == {"INFO", "WARN", "ERROR"}
    bars = asked(client, "histogram", column="Ts", **span)
    assert (bars["column"], bars["interval"], bars["total"]) == ("ts", "1m", 60)


@pytest.mark.parametrize(
    ("what", "params"),
    [
        ("rows", {"sort": "nowhere"}),
        ("rows", {"columns": '["nowhere"]'}),
        ("rows", {"columns": "1"}),
        ("rows", {"time": "nowhere", "from": "2024-05-02"}),
        ("rows", {"filters": '[{"column": "nowhere", "values": [1]}]'}),
        ("facets", {"column": "nowhere"}),
        ("facets", {}),
        ("histogram", {"column": "nowhere"}),
        ("histogram", {"column": "message"}),
    ],
)
def test_a_column_that_is_not_there_is_refused_by_every_parameter(client, what, params):
    answer = client.get(f"/api/tables/events/{what}", params=params)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["message"]


def test_a_filter_means_here_what_it_means_to_the_table(tmp_path):
    """Times without an offset are read in the zone of the table."""
    schema = pa.schema([("n", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
    table = it.Table.create(tmp_path / "zoned", schema)
    table.update_properties({"spark.indextables.timeZone": "America/New_York"})
    hours = pa.array([1_704_067_200_000_000 + n * 3_600_000_000 for n in range(12)], pa.int64())
    table.append(pa.table({"n": range(12), "ts": hours.cast(schema.field("ts").type)}, schema))
    where = "ts >= TIMESTAMP'2024-01-01 02:00:00'"
    with (
        serving(str(tmp_path / "zoned")) as address,
        httpx.Client(base_url=address, headers={"authorization": f"Bearer {TOKEN}"}) as client,
    ):
        count = client.get("/api/tables/zoned/count", params={"where": where}).json()["total"]
    assert count == it.Table.open(tmp_path / "zoned").count(where) == 5


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("query", [None, "word"])
def test_the_page_orders_nulls_nan_and_zeros_as_the_table_does(tmp_path, order, query):
    schema = pa.schema([("n", pa.int64()), ("f", pa.float64()), ("text", pa.string())])
    table = it.Table.create(tmp_path / "t", schema, options={"indexing.typemap.text": "text"})
    values = [1.0, None, float("nan"), 0.0, float("-inf"), -0.0, None, float("inf"), float("nan")]
    for at in range(0, 9, 3):
        numbers = range(at, at + 3)
        table.append(pa.table({"n": numbers, "f": values[at : at + 3], "text": ["word"] * 3}, schema))
    params = {"sort": "F", "order": order, "columns": '["n"]', **({"q": query} if query else {})}
    with serving(str(tmp_path / "t")) as address:
        answer = httpx.get(
            f"{address}/api/tables/t/rows", params=params, headers={"authorization": f"Bearer {TOKEN}"}
        ).json()
    shown = [row[0] for row in answer["rows"]]
    assert shown == table.search("word", sort=f"f {order}").to_arrow()["n"].to_pylist()
    assert [values[n] is None for n in shown] == [n < 2 if order == "asc" else n > 6 for n in range(9)]


def test_a_companion_is_served_with_the_rows_of_its_source(tmp_path):
    import pyarrow.parquet as pq

    source, index = tmp_path / "source", tmp_path / "index"
    source.mkdir()
    for name, text in (("a", "disk full"), ("b", "quiet night")):
        pq.write_table(
            pa.table({"id": [1, 2], "level": ["ERROR", "INFO"], "message": [text, text]}),
            source / f"{name}.parquet",
        )
    it.companion(str(source), str(index), ["message"])
    (source / "b.parquet").unlink()
    pq.write_table(pa.table({"id": [3], "level": ["WARN"], "message": ["a late disk"]}), source / "c.parquet")
    with (
        serving(str(index)) as address,
        httpx.Client(base_url=address, headers={"authorization": f"Bearer {TOKEN}"}, timeout=30) as own,
    ):

        def ask(what, **params):
            answer = own.get(f"/api/tables/index/{what}", params=params)
            assert answer.status_code == 200, answer.text
            return answer.json()

        found = ask("rows", q="disk", sort="id", order="desc")
        names = [column["name"] for column in found["columns"]]
        assert [row[names.index("id")] for row in found["rows"]] == [3, 2, 1]
        assert found["marks"][0] == {"message": [["a late ", False], ["disk", True]]}
        assert ask("count", q="disk")["total"] == 3
        assert found["found"]["coverage"] == {"indexed": 1, "scanned": 1, "masked": 1}
        query = {"query": {"match": {"message": "disk"}}, "aggs": {"levels": {"terms": {"field": "level"}}}}
        hits = own.post("/elastic/index/_search", json=query).json()
        assert hits["hits"]["total"]["value"] == 3
        assert {one["key"]: one["doc_count"] for one in hits["aggregations"]["levels"]["buckets"]} == {
            "ERROR": 1, "INFO": 1, "WARN": 1,
        }  # fmt: skip
