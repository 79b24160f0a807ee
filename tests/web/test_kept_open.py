"""A served table stays open between requests: what that costs, and that nothing outdated is answered."""

import shutil
import subprocess
import sys

import httpx
import pyarrow as pa
import pytest

import indextables as it
from indextables.storage.store import open_store
from indextables.web.tables import ServedTable
from support.faults import CountingStore
from support.served import SCHEMA, TOKEN, events, make_events, serving

QUESTIONS = {
    "rows": {"sort": "ts", "order": "desc"},
    "rows found": {"q": "timeout", "sort": "ts", "order": "desc"},
    "count": {"q": "timeout"},
    "facets": {"column": "level"},
    "histogram": {"column": "ts"},
}


@pytest.fixture
def place(tmp_path):
    make_events(tmp_path / "events", days=2)
    return tmp_path / "events"


@pytest.fixture
def store(place):
    return CountingStore(open_store(place))


@pytest.fixture
def client(place, store):
    log = it.TransactionLog.open(str(place), store=store)
    with (
        serving(ServedTable("events", str(place), log=log)) as address,
        httpx.Client(base_url=address, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60) as made,
    ):
        yield made


def of_the_log(store):
    """The operations on files that are no splits; a local path is a name and asks for nothing."""
    found = [one for one, path in store.opens if one != "local_path" and not path.endswith(".split")]
    return found + [path for one, path in store.opens if one == "local_path" and "_transaction_log" in path]


def asked(client, what, **params):
    answer = client.get(f"/api/tables/events/{what.split()[0]}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("what", QUESTIONS)
def test_a_question_about_an_unchanged_log_asks_the_store_for_one_listing(client, store, what):
    first = asked(client, what, **QUESTIONS[what])
    store.clear()
    again = asked(client, what, **QUESTIONS[what])
    assert of_the_log(store) == ["list_level"]
    assert [first.get("rows"), first.get("total")] == [again.get("rows"), again.get("total")]


def test_a_search_of_elasticsearch_asks_for_one_listing_too(client, store):
    body = {"query": {"match": {"message": "timeout"}}, "sort": [{"ts": "desc"}], "size": 3}
    first = client.post("/elastic/events/_search", json=body).json()
    store.clear()
    assert client.post("/elastic/events/_search", json=body).json()["hits"] == first["hits"]
    assert of_the_log(store) == ["list_level"]


def test_a_commit_of_another_process_is_seen(client, place):
    assert asked(client, "count")["total"] == 2880
    code = "import sys, indextables as it; it.Table.open(sys.argv[1]).delete(\"level = 'INFO'\")"
    subprocess.run([sys.executable, "-c", code, str(place)], check=True)
    assert asked(client, "count")["total"] == 1920


def test_a_table_that_was_dropped_and_made_again_is_seen(client, place):
    assert asked(client, "count", q="timeout")["total"] == 288
    shutil.rmtree(place)
    made = it.Table.create(place, SCHEMA, options={"indexing.typemap.message": "text"})
    made.append(events(0, 20))
    made.append(events(20, 20))
    assert asked(client, "count", q="timeout")["total"] == 4
    assert [row[4] for row in asked(client, "rows", q="n39")["rows"]] == ["request served n39"]


def test_a_table_that_was_dropped_is_gone_and_a_delta_table_may_take_its_place(client, place):
    deltalake = pytest.importorskip("deltalake")
    assert asked(client, "count")["total"] == 2880
    shutil.rmtree(place)
    assert client.get("/api/tables/events/count").status_code == 404
    deltalake.write_deltalake(str(place), pa.table({"id": [1, 2, 3]}))
    assert asked(client, "count")["total"] == 3
    shutil.rmtree(place)
    make_events(place, days=1)
    assert asked(client, "count")["total"] == 1440


def test_an_older_version_is_answered_beside_the_newest(client):
    assert [asked(client, "count", version=number)["total"] for number in (1, 2, 1)] == [1440, 2880, 1440]
    assert asked(client, "count")["total"] == 2880
