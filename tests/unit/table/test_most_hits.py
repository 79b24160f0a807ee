"""`search.maxHits` limits a search in whatever order its rows come, as an option or a table property."""

from __future__ import annotations

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import TableError

ORDERS = [{}, {"score": True}, {"sort": "id DESC"}]


@pytest.fixture
def uri(tmp_path):
    rows = pa.table({"id": range(20), "text": ["often rarely" if at == 7 else "often" for at in range(20)]})
    options = {"indexing.typemap.text": "text"}
    it.Table.create(str(tmp_path / "t"), rows.schema, options=options).append(rows)
    return str(tmp_path / "t")


@pytest.fixture(params=["option", "property"])
def table(uri, request):
    if request.param == "option":
        return it.Table.open(uri, options={"search.maxHits": "5"})
    it.Table.open(uri).update_properties({"search.maxHits": "5"})
    return it.Table.open(uri)


@pytest.mark.parametrize("order", ORDERS)
def test_a_search_that_finds_too_many_rows_is_refused(table, order):
    with pytest.raises(TableError, match=r"finds 20 rows in .* more than search.maxHits = 5"):
        table.search("often", **order).read_all()


@pytest.mark.parametrize("order", ORDERS)
def test_a_search_with_a_limit_or_few_hits_is_not(table, order):
    assert table.search("often", limit=6, **order).read_all().num_rows == 6
    assert table.search("rarely", **order).read_all()["id"].to_pylist() == [7]


def test_what_returns_no_rows_of_the_search_is_not_refused(table):
    assert table.count(query="often") == 20
    assert table.facets("id", query="often", top=None).num_rows == 20
    assert table.aggregate(None, {"n": "count(*)", "last": "max(id)"}, query="often").to_pylist() == [
        {"n": 20, "last": 19}
    ]
    assert table.histogram("id", 10, query="often")["count"].to_pylist() == [10, 10]
