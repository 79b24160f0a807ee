"""Search in scripts without spaces, and the version of a table's tokenizer."""

from __future__ import annotations

import gzip
import json
import random

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import OptionError, QueryError
from indextables.index.build.builder import IndexBuilder
from indextables.index.letters import folded, pieces_of
from indextables.index.query.evaluate import IndexSearch
from indextables.index.query.syntax import parse_query
from indextables.index.read.cache import BlockCache
from indextables.index.read.lookup import BytesRanges, Index
from indextables.index.settings import IndexField, IndexSpec
from support.sampled import first_of
from support.shared import shared

TOKENIZER = "spark.indextables.indexing.tokenizer.message"
TEXTS = [
    "古代文明的研究",
    "研究古代",
    "人工智能正在改变世界",
    "リアルタイムで監視する",
    "監視はリアルタイム",
    "서버를 재시작했습니다",
    "ระบบฐานข้อมูลล่ม",
    "error in ＡＢＣ server",
    None,
]


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def table_of(path, tokenizer="default", texts=TEXTS, kind="text"):
    options = {"indexing.typemap.message": kind, "indexing.tokenizer.message": tokenizer}
    table = it.Table.create(path, pa.schema([("id", pa.int64()), ("message", pa.string())]), options=options)
    rows = pa.table({"id": range(len(texts)), "message": pa.array(texts, pa.string())})
    table.append(rows.slice(0, 4))
    table.append(rows.slice(4))
    return it.Table.open(path)


def properties(table):
    return table._log.snapshot().metadata.configuration


def ids(table, query, **arguments):
    return sorted(table.search(query, columns=["id"], **arguments).read_all()["id"].to_pylist())


QUERIES = {
    "古代": [0, 1], "人工智能": [2], "リアルタイム": [3, 4], "서버": [5], "재시작": [5], "ฐานข้อมูล": [6],
    "究": [0, 1], "代": [0, 1], "視": [3, 4], "ム": [3, 4], "abc": [7], "ABC": [7], "古代 AND 文明": [0],
    "古代*": [0, 1], "*智能*": [2], "古文": [], "error AND NOT 人工": [7], "(人工 OR 古代) AND 研究": [0, 1],
}  # fmt: skip


@pytest.mark.parametrize("tokenizer", ["default", "en_stem", "compact_ids", "default+fold"])
def test_words_inside_sentences_are_found_by_the_index_and_by_scanning(tmp_path, tokenizer):
    indexed = table_of(tmp_path / "indexed", tokenizer)
    scanned = table_of(tmp_path / "scanned", "whitespace")
    scanned.update_properties({TOKENIZER: tokenizer})
    for query, expected in QUERIES.items():
        assert ids(indexed, query) == expected, query
        assert indexed.last_scan.search.scanned == 0
        assert ids(scanned, query) == expected, query
        assert scanned.last_scan.search.by_index == 0
        assert indexed.count(query=query) == len(expected)


def test_whitespace_and_raw_make_no_pairs(tmp_path):
    assert ids(table_of(tmp_path / "a", "whitespace"), "古代") == []
    assert ids(table_of(tmp_path / "b", "raw"), "研究古代") == [1]


def test_json_documents_hold_pairs_too(tmp_path):
    table = table_of(
        tmp_path / "t", texts=['{"a": "人工智能", "b": {"c": "서버를"}}', "{}", None], kind="json"
    )
    assert ids(table, "message.a:智能") == ids(table, "message.b.c:서버") == ids(table, "工") == [0]
    assert ids(table, "message.b:智能") == []


def test_a_pattern_inside_such_text_is_refused_with_what_to_write(tmp_path):
    with pytest.raises(QueryError, match="joined by AND"):
        table_of(tmp_path / "t").count(query="人?智")


def test_marks_are_put_around_what_was_asked_for(tmp_path):
    table = table_of(tmp_path / "t", texts=["正在人工智能", "ｶﾞス ガス", "人人人"])

    def marked(query):
        rows = table.search(query, highlight=("[", "]")).read_all()["_highlight"].to_pylist()
        return [row["message"] for row in rows]

    assert marked("人工智能") == ["正在[人工智能]"]
    assert marked("ガス") == ["[ｶﾞス] [ガス]"]
    assert marked("人") == ["正在[人]工智能", "[人][人][人]"]
    assert marked("工智*") == ["正在人[工智]能"]


def test_a_query_on_version_1_says_how_to_move(tmp_path):
    table = table_of(tmp_path / "t", "default@1")
    assert ids(table, "古代") == []
    (note,) = (
        table.last_scan.search.notes if hasattr(table.last_scan.search, "notes") else table.last_scan.notes
    )
    assert "default@1" in note
    assert f"{TOKENIZER} to default with update_properties" in note
    assert ids(table, "error") == [7]


def test_a_table_moves_when_its_properties_say_so_and_a_merge_changes_no_answer(tmp_path):
    table = table_of(tmp_path / "t", "default@1")
    assert TOKENIZER not in properties(table)
    table.update_properties({"comment": "other properties move nothing"})
    table.update_properties({"spark.indextables.indexing.typemap.message": "text"})
    assert ids(table, "古代") == []
    table.update_properties({TOKENIZER: "default"})
    assert properties(table)[TOKENIZER] == "default@2"
    before = {query: ids(table, query) for query in QUERIES}
    assert (table.last_scan.search.scanned, table.last_scan.search.by_index) == (2, 0)
    table.append(pa.table({"id": [100], "message": ["新古代"]}))
    assert ids(table, "古代") == [0, 1, 100]
    assert (table.last_scan.search.scanned, table.last_scan.search.by_index) == (2, 1)
    scores = table.search("古代 OR error", score=True).read_all()
    table.merge_splits()
    assert ids(table, "古代") == [0, 1, 100]
    assert table.last_scan.search.scanned == 0
    table.delete("id = 100")
    assert {query: ids(table, query) for query in QUERIES} == before == QUERIES
    assert scores.num_rows == 4


def test_versions_are_kept_by_writes_and_named_when_they_contradict(tmp_path):
    table = table_of(tmp_path / "t", "en_stem@1")
    assert properties(table)[TOKENIZER] == "en_stem"
    row = pa.table({"id": [50], "message": ["一行"]})
    table.append(row, options={"indexing.typemap.message": "text", "indexing.tokenizer.message": "en_stem"})
    assert properties(table)[TOKENIZER] == "en_stem"
    it.Table.create(
        tmp_path / "t",
        table.schema,
        options={"indexing.typemap.message": "text", "indexing.tokenizer.message": "en_stem"},
    )
    with pytest.raises(OptionError, match=r"en_stem@1.*asks for.*en_stem@2"):
        table.append(row, options={"indexing.tokenizer.message": "en_stem@2"})
    table.update_properties({TOKENIZER: None})
    assert properties(table)[TOKENIZER] == "default@2"
    for wrong in ("default@3", "default@0", "raw@2", "default+fold@1", "klingon@2"):
        with pytest.raises(OptionError, match="expected one of default"):
            table.update_properties({TOKENIZER: wrong})


def test_a_column_gets_another_kind_of_index_without_its_tokenizer(tmp_path):
    table = table_of(tmp_path / "t")
    table.update_properties({"spark.indextables.indexing.typemap.message": "string"})
    assert TOKENIZER not in properties(table)
    assert ids(table, '"研究古代"') == [1]
    table.update_properties({"indexing.typemap.message": "text"})
    assert properties(table)[TOKENIZER] == "default@2"
    assert ids(table, "古代") == [0, 1]


def test_settings_given_as_lists_have_versions_too(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("message", pa.string()), ("title", pa.string())])
    options = {"indexing.typemap.text": "message, title", "indexing.tokenizer.en_stem": "title"}
    table = it.Table.create(tmp_path / "t", schema, options=options)
    assert (properties(table)[TOKENIZER], properties(table)[TOKENIZER.replace("message", "title")]) == (
        "default@2",
        "en_stem@2",
    )
    table.update_properties({"spark.indextables.indexing.tokenizer.default+fold": "message,title"})
    table = it.Table.open(tmp_path / "t")
    table.append(pa.table({"id": [1], "message": ["Crème"], "title": ["Übung"]}))
    assert ids(table, "message:creme AND title:ubung") == [1]


def containment(texts, chosen, longest):
    """Compare every substring of some texts with the rows that hold it, by the folded text."""
    item = IndexField("m", "text", "default@2", "position")
    rows = pa.table({"m": pa.array(texts, pa.string())})
    builder = IndexBuilder(IndexSpec((item,)), rows.schema)
    builder.add(rows)
    data = (built := builder.finish()).to_bytes()
    index = Index.open(BytesRanges(data), len(data), built.root_length, cache=BlockCache(64 << 20))
    plain = [folded(text) for text in texts]
    holders = {text: set() for row in chosen for text in windows(plain[row], longest) if _in_one_run(text)}
    for row, text in enumerate(plain):
        for window in holders.keys() & set(windows(text, longest)):
            holders[window].add(row)
    for text, expected in holders.items():
        query = parse_query(quoted(text), index.spec, rows.schema)
        assert IndexSearch(index, query).rows().tolist() == sorted(expected), text
    return len(holders)


def windows(text, longest):
    return (text[at : at + size] for at in range(len(text)) for size in range(1, longest + 1))


def _in_one_run(text):
    """Whether a text is characters of scripts without spaces from its first to its last."""
    pieces = pieces_of(text)
    whole = pieces and all(one.end >= other.start for one, other in zip(pieces, pieces[1:], strict=False))
    return (
        whole
        and all(piece.kind == 2 for piece in pieces)
        and pieces[0].start == 0
        and pieces[-1].end == len(text)
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", first_of(3, [(lang, n) for n in (4, 200) for lang in ("ja", "zh_CN", "ko")]))
def test_every_piece_of_real_descriptions_is_found_where_it_occurs(case):
    """Recall and precision by containment over all rows of a language."""
    language, count = case
    with gzip.open(shared("languages", "descriptions.jsonl.gz"), "rt", encoding="utf-8") as lines:
        texts = [row["text"] for row in map(json.loads, lines) if row["lang"] == language]
    chosen = random.Random(7).sample(range(len(texts)), min(count, len(texts)))
    # A description in Korean has about fifty different pieces, those in Japanese and Chinese twice as many.
    assert containment(texts, chosen, 6) > 50 * count


def test_every_piece_of_drawn_texts_is_found_where_it_occurs():
    chance = random.Random(3)
    texts = ["".join(chance.choices("人工智能ガギ서버กข a,", k=12)) for _ in range(60)]
    assert containment(texts, range(60), 5) > 500
