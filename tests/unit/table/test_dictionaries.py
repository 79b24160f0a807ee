"""Tokenizers that cut scripts without spaces by a dictionary: jieba and ICU, where they are installed."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import OptionError
from support.dictionaries import dictionary_tokenizers

TEXTS = ["他来到了网易杭研大厦", "人工智能正在改变世界", "智能手机 and Server", "世界", None, "error only"]
TOKENIZER = "spark.indextables.indexing.tokenizer.message"


def table_of(path, tokenizer, kind="text"):
    options = {"indexing.typemap.message": kind, "indexing.tokenizer.message": tokenizer}
    rows = pa.table({"id": range(len(TEXTS)), "message": pa.array(TEXTS, pa.string())})
    table = it.Table.create(path, rows.schema, options=options)
    table.append(rows)
    return it.Table.open(path)


def ids(table, query):
    return sorted(table.search(query, columns=["id"]).read_all()["id"].to_pylist())


@pytest.mark.parametrize("tokenizer", dictionary_tokenizers())
def test_words_are_those_of_the_dictionary(tmp_path, tokenizer):
    name = tokenizer.partition("@")[0]
    table = table_of(tmp_path / "t", name, "text,substring")
    assert table.metadata.configuration[TOKENIZER] == tokenizer
    assert ids(table, "世界") == [1, 3]
    assert ids(table, "改变世界") == [1]
    assert ids(table, "SERVER") == [2]
    assert ids(table, "界") == []
    assert table.last_scan.search.scanned == 0
    marked = table.search("世界", highlight=("[", "]")).read_all()["_highlight"].to_pylist()
    assert sorted(one["message"] for one in marked) == ["[世界]", "人工智能正在改变[世界]"]
    before = {
        query: ids(table, query) for query in ("智能", "人工智能", "改变*", "世界 OR error", "NOT 世界")
    }
    table.append(pa.table({"id": [9], "message": ["新世界"]}))
    table.merge_splits()
    after = {query: [one for one in ids(table, query) if one != 9] for query in before}
    assert after == before
    # Rows that are scanned are cut in the same way.
    table.update_properties({TOKENIZER: "default"})
    table.update_properties({TOKENIZER: name})
    assert {query: [one for one in ids(table, query) if one != 9] for query in before} == before


@pytest.mark.parametrize("tokenizer", dictionary_tokenizers())
def test_another_edition_is_refused_rather_than_cut_otherwise(tmp_path, tokenizer):
    name, _, edition = tokenizer.partition("@")
    other = f"{name}@{int(edition) + 1}"
    with pytest.raises(OptionError, match=rf"{other}.*{tokenizer} is installed.*update_properties"):
        table_of(tmp_path / "t", other)


def test_a_missing_dictionary_is_named_with_what_installs_it(tmp_path):
    """In a Python of its own, which has neither; a table of other words is searched there as ever."""
    code = f"""
import sys
sys.modules["jieba"] = sys.modules["icu"] = None
import indextables as it, pyarrow as pa
rows = pa.table({{"message": ["disk error"]}})
for name in ("jieba", "icu"):
    try:
        it.Table.create({str(tmp_path)!r} + "/" + name, rows.schema, options={{
            "indexing.typemap.message": "text", "indexing.tokenizer.message": name}})
    except it.errors.MissingPackageError as missing:
        print(missing)
table = it.Table.create({str(tmp_path)!r} + "/t", rows.schema, options={{"indexing.typemap.message": "text"}})
table.append(rows)
print(table.count(query="disk"))
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "the tokenizer jieba needs the package jieba" in shown
    assert "pip install 'indextables[icu]'" in shown
    assert shown.endswith("1\n")
