"""LIKE, RLIKE, contains and their like over a column with trigrams: the same answer, with less read."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import OptionError, PredicateError
from indextables.index.read.cache import MEMORY
from indextables.index.read.words import WordPostings
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.regex import NotUnderstoodError, required_texts, translated
from indextables.split.layout import SplitRef
from indextables.split.open_splits import forget_splits, open_index
from indextables.split.read import rows as readers
from indextables.split.search.narrowing import rows_left
from support.index_merging import indexes_of_any_size  # noqa: F401 - a fixture

SCHEMA = pa.schema([("id", pa.int64()), ("path", pa.string()), ("note", pa.string())])
OPTIONS = {"indexing.typemap.path": "substring", "indexing.typemap.note": "text"}
ALPHABET = "abcABC%_.é日\n 1"


def texts(seed, count):
    chance = random.Random(seed)
    return [
        None if chance.random() < 0.05 else "".join(chance.choices(ALPHABET, k=chance.randrange(12)))
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def values():
    return texts(1, 3000)


@pytest.fixture(scope="module", params=["trigrams", "merged", "plain"])
def table(request, tmp_path_factory, values):
    options = {"indexing.typemap.note": "text"} if request.param == "plain" else OPTIONS
    made = it.Table.create(tmp_path_factory.mktemp("substring") / "t", SCHEMA, (), options)
    for start in range(0, 3000, 1000):
        numbers = range(start, start + 1000)
        made.append(
            pa.table({"id": numbers, "path": values[start : start + 1000], "note": ["a word"] * 1000}, SCHEMA)
        )
    if request.param == "merged":
        made.merge_splits()
        assert made.files().num_rows == 1
    return made


def like(pattern):
    parts = re.split(r"(%|_|\\.)", pattern)
    wild = {"%": ".*", "_": "."}
    return re.compile(
        "".join(wild.get(p) or re.escape(p[1:] if p[:1] == "\\" else p) for p in parts if p), re.DOTALL
    )


def test_random_patterns_find_what_they_mean(table, values):
    chance = random.Random(9)
    for _ in range(250):
        text = "".join(chance.choices(ALPHABET.replace("%", "").replace("_", ""), k=chance.randrange(1, 5)))
        kind = chance.choice(["contains", "startswith", "endswith", "like"])
        if kind == "like":
            pattern = "".join(
                chance.choice(["%", "_", text, "%" + text]) for _ in range(chance.randrange(1, 4))
            )
            found, test = table.scan(it.col("path").like(pattern), ["id"]), like(pattern).fullmatch
        else:
            found = table.scan(getattr(it.col("path"), kind)(text), ["id"])
            test = {
                "contains": lambda v, t=text: t in v,
                "startswith": lambda v, t=text: v.startswith(t),
                "endswith": lambda v, t=text: v.endswith(t),
            }[kind]
        wanted = [at for at, value in enumerate(values) if value is not None and test(value)]
        assert sorted(found.read_all()["id"].to_pylist()) == wanted, (kind, text)


def test_filters_around_it_keep_their_meaning(table, values):
    def ids(where):
        return set(table.scan(where, ["id"]).read_all()["id"].to_pylist())

    has = {at for at, value in enumerate(values) if value is not None and "abc" in value}
    known = {at for at, value in enumerate(values) if value is not None}
    assert ids("path LIKE '%abc%'") == has
    assert ids("NOT (path LIKE '%abc%')") == known - has
    assert ids("path LIKE '%abc%' OR id < 10") == has | set(range(10))
    assert ids("path LIKE '%abc%' AND id < 1500") == {at for at in has if at < 1500}
    assert ids("path LIKE '%abc%' OR path LIKE '%ABC%'") == has | {a for a in known if "ABC" in values[a]}
    one = next(value for value in values if value is not None and len(value) > 4 and "'" not in value)
    assert ids(it.col("path") == one) == {at for at in known if values[at] == one}
    assert ids(it.col("path").isin(one, "no such value")) == {at for at in known if values[at] == one}
    assert table.count("path LIKE '%abc%'", query="word") == len(has)
    assert ids("path RLIKE 'a[bB]c|1{2,}é?\\\\.'") == {
        at for at in known if re.search(r"a[bB]c|1{2,}é?\.", values[at])
    }


def test_lists_that_rule_out_little_are_not_followed_by_more(tmp_path):
    """All pages are read for a tenth of the rows; of few rows, every one that is ruled out is worth a list."""
    rows = ["abcdefgh" if at % 10 == 0 else "abcd" if at < 2 else f"x{at}" for at in range(3000)]
    rows[7], rows[11] = "qrst rstu", "qrstu"
    made = it.Table.create(tmp_path / "t", SCHEMA, (), OPTIONS)
    made.append(pa.table({"id": range(3000), "path": rows, "note": ["x"] * 3000}, SCHEMA))
    (add,) = made._snapshot.adds()
    index = open_index(made._snapshot.reading, SplitRef.of(add), with_rows=False)

    def lists_read(where):
        asked = []
        test = WordPostings.test
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(WordPostings, "test", lambda self, some: asked.append(self) or test(self, some))
            found = rows_left(index, as_node(where, SCHEMA))
        return len(found), len(asked)

    assert lists_read("path LIKE '%abcdefgh%'") == (300, 1)
    assert made.count("path LIKE '%abcdefgh%'") == 300
    assert made.count("path LIKE '%qrstu%'") == 1


def test_rows_that_trigrams_leave_all_over_a_file_are_decoded_alone(tmp_path, monkeypatch):
    """A tenth of the rows, on every page; those that have all the trigrams and not the text are told apart."""
    decoded = []
    decode = readers.decode_rows
    monkeypatch.setattr(
        readers, "decode_rows", lambda *given: decoded.append(len(given[3])) or decode(*given)
    )
    monkeypatch.setattr(readers, "SPARSE_BYTES", 0)
    odd = {1: "a needle", 2: "need eedl edle", 3: None}
    texts = [odd.get(at % 20, "plain") for at in range(9000)]
    made = it.Table.create(tmp_path / "t", SCHEMA, (), OPTIONS)
    made.append(pa.table({"id": range(9000), "path": texts, "note": ["x"] * 9000}, SCHEMA))
    assert made.count("path LIKE '%needle%'") == 450
    assert decoded == [900]
    assert made.count("path RLIKE 'ne+dle'") == 450
    found = made.scan("path LIKE '%needle%' AND id >= 100", ["id"]).read_all()
    assert found["id"].to_pylist() == list(range(101, 9000, 20))


def test_an_index_leaves_only_rows_with_all_trigrams(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA, (), OPTIONS)
    rows = [f"/var/log/service-{at}/file" for at in range(500)] + [None, "ab", ""]
    made.append(pa.table({"id": range(503), "path": rows, "note": ["x"] * 503}, SCHEMA))
    (add,) = made._snapshot.adds()
    index = open_index(made._snapshot.reading, SplitRef.of(add), with_rows=False)

    def left(where):
        found = rows_left(index, as_node(where, SCHEMA))
        return None if found is None else found.tolist()

    assert left("path LIKE '%service-499%'") == [499]
    assert left("path LIKE '%service-49%' AND id > 3") == [49, *range(490, 500)]
    assert left("contains(path, 'nowhere')") == []
    assert left("path RLIKE '(177|499)/'") == [177, 499]
    assert left("path LIKE '%/var%'") is None
    assert left("path LIKE '%er%'") is None
    assert left("NOT (path LIKE '%service-499%')") is None
    assert left("path LIKE '%service-499%' OR id = 3") is None


def test_a_split_without_a_trigram_is_asked_for_its_dictionary_only(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA, (), OPTIONS)
    for day in range(4):
        made.append(pa.table({"id": range(9), "path": [f"part{day}x"] * 9, "note": ["x"] * 9}, SCHEMA))
    forget_splits()
    MEMORY.clear()
    assert made.scan("path LIKE '%art2%'").read_all().num_rows == 9
    assert made.count("path LIKE '%art7%'") == 0


def test_a_damaged_index_changes_no_answer(tmp_path, values):
    made = it.Table.create(tmp_path / "t", SCHEMA, (), OPTIONS)
    made.append(pa.table({"id": range(3000), "path": values, "note": ["x"] * 3000}, SCHEMA))
    right = made.scan("path LIKE '%abc%'", ["id"]).read_all()
    assert right.num_rows
    (file,) = made.files().to_pylist()
    tags = dict(file["tags"])
    kept = sum(int(tags[name].partition(":")[0]) for name in ("indexRoot", "rowMap"))
    (split,) = (tmp_path / "t").glob("*.split")
    data = bytearray(split.read_bytes())
    start, end = file["index_offset"], file["index_offset"] + file["index_length"] - kept
    data[start:end] = bytes(end - start)
    split.write_bytes(data)
    forget_splits()
    MEMORY.clear()
    assert it.Table.open(tmp_path / "t").scan("path LIKE '%abc%'", ["id"]).read_all().equals(right)


def test_words_are_not_looked_for_in_trigrams(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA, (), OPTIONS)
    made.append(pa.table({"id": [1], "path": ["abc"], "note": ["other"]}, SCHEMA))
    assert made.count(query="abc") == 0
    assert made.count(query="other") == 1
    assert made.count(query="path:abc") == 1
    assert made.count(query="path:ab") == 0
    with pytest.raises(OptionError, match="needs text"):
        it.Table.create(tmp_path / "u", SCHEMA, (), {"indexing.typemap.id": "substring"})


@pytest.mark.parametrize(
    ("pattern", "required"),
    [
        ("abc", [["abc"]]),
        ("a.c+d", [["a", "c", "d"]]),
        ("foo|bar+", [["foo"], ["bar"]]),
        ("(?:ab|cd)ef", [["ab", "ef"], ["cd", "ef"]]),
        ("x?yz*w", [["y", "w"]]),
        ("^GET /v[12]/\\d+$", [["GET /v", "/"]]),
        ("[abc]*", [[]]),
    ],
)
def test_a_regular_expression_says_what_it_needs(pattern, required):
    assert [list(choice) for choice in required_texts(pattern)] == required


@pytest.mark.parametrize(
    "pattern",
    ["(?i)a", "a(?=b)", "(a)\\1", "\\bword", "a++", "[a&&b]", "\\p{L}", "(a$)b", "a{2001}", "(", "*a"],
)
def test_what_may_mean_something_else_in_java_is_not_understood(table, pattern):
    with pytest.raises(NotUnderstoodError):
        translated(pattern)
    with pytest.raises(PredicateError, match="cannot be applied exactly"):
        table.count(it.col("path").rlike(pattern))
