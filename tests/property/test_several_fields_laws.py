"""One column with several indexes: every form of question has the answer of the rows, in every layout of splits.

Words go by the rules of the query language, `=` and IN by whole values, LIKE, contains, instr and their like
by characters. The answers are compared with plain Python over the rows.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter

import pyarrow as pa
import pytest

import indextables as it
from indextables.index.settings import KINDS
from indextables.split.open_splits import forget_splits
from support.index_merging import indexes_of_any_size  # noqa: F401 - a fixture
from support.splits import flip

SCHEMA = pa.schema([("id", pa.int64()), ("m", pa.string())])
TYPEMAP = "spark.indextables.indexing.typemap.m"
COMBINATIONS = [
    "text,substring",
    "text,string",
    "string,substring",
    "substring,text,string",
    "json,string",
    "ip,substring",
    "text",
    "string",
    "substring",
]
LAYOUTS = ["one split", "many splits", "merged", "changed", "changed and merged", "damaged", "filters"]
WORDS = [
    "disk",
    "Disk",
    "error",
    "timeout",
    "10.0.0.1",
    "node-7",
    "a",
    "",
    "日本語",
    "é",
    "it's",
    "50%",
    "x_y",
]


def values(seed: int, count: int) -> list[str | None]:
    chance = random.Random(seed)
    return [
        None if chance.random() < 0.08 else " ".join(chance.choices(WORDS, k=chance.randrange(4)))
        for _ in range(count)
    ]


def made(path, kinds, layout, rows):
    """A table with these rows in one of the layouts."""
    before = {"text,substring": "string", "string": "text,string"}.get(kinds, "text")
    options = {"indexing.typemap.m": before if "changed" in layout else kinds}
    if layout == "filters":
        options["indexFilters.enabled"] = "true"
    table = it.Table.create(path, SCHEMA, options=options)
    parts = 1 if layout == "one split" else 4
    size = len(rows) // parts
    for part in range(parts):
        if "changed" in layout and part == 2:
            table.update_properties({TYPEMAP: kinds})
            table = it.Table.open(path)
        numbers = range(part * size, (part + 1) * size)
        table.append(pa.table([numbers, rows[numbers.start : numbers.stop]], schema=SCHEMA))
    if "merged" in layout:
        table.merge_splits()
        assert table.files().num_rows == 1
    if layout == "filters":
        table.checkpoint()
    if layout == "damaged":
        add = table._snapshot.adds()[1]
        # A byte in the middle of the dictionaries: some questions meet it, others do not.
        flip(path / add.path, add.hotcache_start_offset + add.hotcache_length // 2)
        forget_splits()
    return it.Table.open(path)


def like(pattern):
    wild = {"%": ".*", "_": "."}
    return re.compile("".join(wild.get(one) or re.escape(one) for one in pattern), re.DOTALL).fullmatch


def conditions(chance, rows):
    """SQL text and what it means for one value; a null value gives null."""
    texts = [text for text in rows if text is not None]
    value, other = chance.choice(texts), chance.choice([*texts, "no such value"])
    start = chance.randrange(len(value) + 1)
    piece = value[start : start + chance.randrange(1, 7)]
    quoted, second, part = (text.replace("'", "''") for text in (value, other, piece))
    pattern = "%" + re.sub("[%_\\\\]", "_", piece) + "%"
    place = chance.randrange(1, 4)
    return [
        (f"m = '{quoted}'", lambda text: text == value),
        (f"m <=> '{quoted}'", lambda text: text == value),
        (f"m IN ('{quoted}', '{second}')", lambda text: text in (value, other)),
        (f"m LIKE '{pattern.replace(chr(39), chr(39) * 2)}'", lambda text: bool(like(pattern)(text))),
        (f"contains(m, '{part}')", lambda text: piece in text),
        (f"instr(m, '{part}') > 0", lambda text: piece in text),
        (f"instr(m, '{part}') = {place}", lambda text: text.find(piece) + 1 == place),
        (f"instr(m, '{part}') = 0", lambda text: piece not in text),
        (f"locate('{part}', m) >= 1", lambda text: piece in text),
        (f"startswith(m, '{part}')", lambda text: text.startswith(piece)),
        (f"endswith(m, '{part}')", lambda text: text.endswith(piece)),
        ("m RLIKE 'err|it.s'", lambda text: "err" in text or bool(re.search("it.s", text))),
        (f"m >= '{quoted}'", lambda text: text.encode() >= value.encode()),
        (f"m != '{quoted}'", lambda text: text != value),
    ]


def ids(reader):
    return sorted(reader.read_all()["id"].to_pylist())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kinds", COMBINATIONS)
def test_every_condition_has_the_answer_of_the_rows(tmp_path, kinds, layout):
    chance = random.Random(f"{kinds} {layout}")
    rows = values(chance.randrange(1 << 30), 400)
    table = made(tmp_path / "t", kinds, layout, rows)
    asked = conditions(chance, rows)
    for where, test in asked:
        expected = [at for at, text in enumerate(rows) if text is not None and test(text)]
        assert ids(table.scan(where, ["id"])) == expected, where
        assert table.count(where) == len(expected), where
        first = table.scan(where, ["id"], sort="id", limit=3).read_all()["id"].to_pylist()
        assert first == expected[:3], where
    for (one, first), (two, second) in itertools.pairwise(chance.sample(asked, 4)):
        both = [at for at, text in enumerate(rows) if text is not None and first(text) and second(text)]
        either = [at for at, text in enumerate(rows) if text is not None and (first(text) or second(text))]
        assert ids(table.scan(f"{one} AND {two}", ["id"])) == both, (one, two)
        assert ids(table.scan(f"{one} OR {two}", ["id"])) == either, (one, two)
        neither = [
            at for at, text in enumerate(rows) if (not first(text) if text is not None else "<=>" in one)
        ]
        assert table.count(f"NOT ({one})") == len(neither), one


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kinds", [one for one in COMBINATIONS if one.startswith(("text", "substring,text"))])
def test_words_are_words_beside_other_fields(tmp_path, kinds, layout):
    """Queries, counts, scores, facets and highlights are those of a table whose column has its words alone."""
    chance = random.Random(f"{kinds} {layout}")
    rows = values(chance.randrange(1 << 30), 400)
    table = made(tmp_path / "t", kinds, layout, rows)
    plain = made(tmp_path / "plain", "text", "one split", rows)
    for query in [
        "disk",
        "disk AND error",
        '"disk error"',
        "err*",
        "m:*",
        "NOT disk",
        "日本",
        "m:/d.sk/",
        "tim?out",
    ]:
        assert ids(table.search(query, columns=["id"])) == ids(plain.search(query, columns=["id"])), query
        assert table.count(query=query) == plain.count(query=query)
        best, expected = (
            dict(zip(*found.read_all().select(["id", "_score"]).to_pydict().values(), strict=True))
            for found in (
                table.search(query, columns=["id"], score=True),
                plain.search(query, columns=["id"], score=True),
            )
        )
        assert best == pytest.approx(expected), query
        for where, test in conditions(chance, rows)[::3]:
            found = set(plain.search(query, columns=["id"]).read_all()["id"].to_pylist())
            both = [at for at in sorted(found) if rows[at] is not None and test(rows[at])]
            assert ids(table.search(query, where=where, columns=["id"])) == both, (query, where)
    marked, expected = (
        one.search("disk", columns=["id", "m"], highlight=True).read_all().sort_by("id")
        for one in (table, plain)
    )
    assert marked.equals(expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kinds", [one for one in COMBINATIONS if "string" in one.split(",")])
def test_groups_are_those_of_the_rows(tmp_path, kinds, layout):
    rows = values(5, 400)
    table = made(tmp_path / "t", kinds, layout, rows)
    counted = table.aggregate("m", {"rows": "count(*)"})
    found = dict(zip(counted["m"].to_pylist(), counted["rows"].to_pylist(), strict=True))
    assert found == dict(Counter(rows))


def test_every_kind_is_in_some_combination():
    assert {kind for one in COMBINATIONS for kind in one.split(",")} == set(KINDS)
