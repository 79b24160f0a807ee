"""Structs, arrays, maps and variants, indexed as text or json: every query finds what plain Python finds."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import OptionError, QueryError
from indextables.model.types import VARIANT
from indextables.model.variants import variant_value

WORDS = ("ann", "Bob", "carl", "disk", "full", "red")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        (
            "attributes",
            pa.struct([("user", pa.string()), ("n", pa.int64()), ("in", pa.struct([("city", pa.string())]))]),
        ),
        ("labels", pa.map_(pa.string(), pa.string())),
        ("tags", pa.list_(pa.string())),
        ("events", pa.list_(pa.struct([("kind", pa.string()), ("ok", pa.bool_())]))),
    ]
)
NESTED = SCHEMA.names[1:]


def rows(count=60):
    chance = random.Random(2)

    def some(make):
        return None if chance.random() < 0.15 else make()

    def text():
        return some(lambda: " ".join(chance.choices(WORDS, k=chance.randrange(3))))

    return pa.Table.from_pylist(
        [
            {
                "id": at,
                "attributes": some(lambda: {"user": text(), "n": chance.randrange(3), "in": some(lambda: {"city": text()})}),
                "labels": some(lambda: [(key, text()) for key in chance.sample(["user", "host", "a b"], chance.randrange(3))]),
                "tags": some(lambda: [text() for _ in range(chance.randrange(3))]),
                "events": some(lambda: [some(lambda: {"kind": text(), "ok": chance.random() < 0.5}) for _ in range(chance.randrange(3))]),
            }
            for at in range(count)
        ],
        SCHEMA,
    )  # fmt: skip


def leaves(value, path=""):
    """The values inside a value, with their paths."""
    if value is None:
        return
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and all(isinstance(one, tuple) for one in value):
        yield from leaves(dict(value), path)
    elif isinstance(value, list):
        for one in value:
            yield from leaves(one, path)
    else:
        yield path, str(value).lower() if isinstance(value, bool) else value


def has(row, column, path, *words):
    """Whether a value at a path has words side by side."""
    for at, leaf in leaves(row[column]):
        if path is None or at == path:
            spelled = str(leaf).lower().split()
            if any(tuple(spelled[start : start + len(words)]) == words for start in range(len(spelled))):
                return True
    return False


def cases(kind):
    """Queries, and for a row whether each finds it."""
    for column in NESTED:
        for word in ("ann", "bob", "disk", "true", "1", "nothing"):
            yield f"{column}:{word}", lambda row, c=column, w=word: has(row, c, None, w)
        yield f'{column}:"ann bob"', lambda row, c=column: has(row, c, None, "ann", "bob")
        yield f"{column}:*", lambda row, c=column: row[c] is not None
        yield f"NOT {column}:red", lambda row, c=column: not has(row, c, None, "red")
        yield (
            f"{column}:fu*",
            lambda row, c=column: any(
                word.startswith("fu") for _, leaf in leaves(row[c]) for word in str(leaf).lower().split()
            ),
        )
    yield "disk", lambda row: any(has(row, column, None, "disk") for column in NESTED)
    if kind == "json":
        for column, path in (
            ("attributes", "user"), ("attributes", "in.city"), ("labels", "user"), ("labels", "host"), ("events", "kind"),
        ):  # fmt: skip
            for word in ("ann", "disk"):
                yield f"{column}.{path}:{word}", lambda row, c=column, p=path, w=word: has(row, c, p, w)
            yield f'{column}.{path}:"ann bob"', lambda row, c=column, p=path: has(row, c, p, "ann", "bob")
        yield (
            "attributes.n:>=1",
            lambda row: any(at == "n" and leaf >= 1 for at, leaf in leaves(row["attributes"])),
        )
        yield "labels.user:*", lambda row: any(at == "user" for at, _ in leaves(row["labels"]))


@pytest.fixture(scope="module", params=["text", "json", "json, merged", "json, set later"])
def table(request, tmp_path_factory):
    """A table of several splits: indexed, indexed and merged, and with splits that have to be scanned."""
    kind = request.param.split(",")[0]
    settings = {f"indexing.typemap.{name}": kind for name in NESTED}
    later = request.param == "json, set later"
    made = it.Table.create(tmp_path_factory.mktemp("nested") / "t", SCHEMA, options={} if later else settings)
    data = rows()
    for start in (0, 20, 40):
        made.append(data.slice(start, 20))
    if request.param == "json, set later":
        made.update_properties(settings)
    if request.param == "json, merged":
        made.merge_splits()
    return it.open(made.uri), kind


def test_queries_find_what_plain_python_finds(table):
    opened, kind = table
    data = rows().to_pylist()
    for query, holds in cases(kind):
        expected = [row["id"] for row in data if holds(row)]
        found = sorted(opened.search(query, columns=["id"]).read_all()["id"].to_pylist())
        assert found == expected, query
        assert opened.count(query=query) == len(expected), query
        scored = opened.search(query, columns=["id"], score=True, limit=100).read_all()["id"].to_pylist()
        assert sorted(scored) == expected, query


def test_a_path_in_a_column_of_words_says_what_to_do(tmp_path):
    table = it.Table.create(tmp_path / "t", SCHEMA, options={"indexing.typemap.attributes": "text"})
    with pytest.raises(QueryError, match=r"set indexing.typemap.attributes to json"):
        table.count(query="attributes.user:ann")


def test_a_number_is_no_nested_text(tmp_path):
    with pytest.raises(OptionError, match="needs text or a nested type"):
        it.Table.create(tmp_path / "t", SCHEMA, options={"indexing.typemap.id": "text"})


def test_matches_inside_nested_values_are_highlighted(tmp_path):
    table = it.Table.create(tmp_path / "t", SCHEMA, options={"indexing.typemap.attributes": "text"})
    table.append(pa.Table.from_pylist([{"id": 1, "attributes": {"user": "Ann Lee", "n": 3}}], SCHEMA))
    found = table.search("ann", columns=["id"], highlight=True).read_all()
    assert found["_highlight"].to_pylist() == [{"attributes": ["<em>Ann</em> Lee", "3"]}]


def test_maps_of_a_table_of_the_first_rules_are_searched_as_before(tmp_path):
    options = {"indexing.typemap.labels": "json", "indexing.tokenizer.labels": "default@1"}
    table = it.Table.create(tmp_path / "t", SCHEMA, options=options)
    table.append(pa.Table.from_pylist([{"id": 1, "labels": [("user", "ann")]}], SCHEMA))
    assert table.count(query="labels:user") == 1
    assert table.count(query="labels.user:ann") == 0
    table.update_properties({"indexing.tokenizer.labels": "default"})
    table = it.open(tmp_path / "t")
    for _ in range(2):
        assert table.count(query="labels:user") == 0
        assert table.count(query="labels.user:ann") == 1
        table.merge_splits()


NAMES = bytes.fromhex("01020001056e75736572")


def test_variants_are_documents(tmp_path):
    object_value = bytes([0x02, 2, 0, 1, 0, 10, 14, 0x03, 3, 0, 2, 3, 4, 0x0C, 1, 0x00, 0x04, 0x0D]) + b"ann"
    assert variant_value(object_value, NAMES) == {"n": [1, None, True], "user": "ann"}
    schema = pa.schema([("id", pa.int64()), ("v", VARIANT)])
    for kind in ("text", "json", "scanned", "compared"):
        settings = {"indexing.typemap.v": "text" if kind == "text" else "json"}
        table = it.Table.create(tmp_path / kind, schema, options=settings if kind in ("text", "json") else {})
        values = [
            {"value": object_value, "metadata": NAMES},
            {"value": b"\x0dann", "metadata": b"\x01\x00\x00"},
            None,
        ]
        table.append(pa.Table.from_pylist([{"id": at, "v": one} for at, one in enumerate(values)], schema))
        if kind == "scanned":
            table.update_properties(settings)
        table = it.open(tmp_path / kind)
        assert table.count(query="v:ann") == 2
        assert table.count("search(v, 'an')") == 2
        assert table.count(query="v:true") == 1
        if kind != "text":
            assert table.search("v.user:ann", columns=["id"]).read_all()["id"].to_pylist() == [0]
