"""Real text: a few hundred thousand log lines and the documentation on this machine, written, searched, checked."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.log_lines import COMMON, RARE, SCHEMA, log_lines
from indextables.table import Table

LINES = 300_000


def words(text):
    return re.findall(r"[0-9a-z]+", text.lower())


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    options = {
        "indexing.typemap.message": "text", "indexing.tokenizer.message": "compact_ids",
        "indexing.typemap.service": "string", "indexing.fastfields": "status", "write.maxRowsPerSplit": "120000",
    }  # fmt: skip
    made = Table.create(tmp_path_factory.mktemp("corpus") / "t", SCHEMA, options=options)
    made.append(log_lines(LINES))
    return made


@pytest.fixture(scope="module")
def lines(table):
    return table.scan(columns=["id", "message", "status", "service"]).read_all().sort_by("id")


def matching(lines, test):
    return [
        at
        for at, text in zip(lines["id"].to_pylist(), lines["message"].to_pylist(), strict=True)
        if test(text)
    ]


@pytest.mark.slow
def test_a_large_log_is_searched_exactly(table, lines):
    assert table.count() == lines.num_rows == LINES
    assert table.files().num_rows == 3

    def check(query, test):
        expected = matching(lines, test)
        assert table.count(query=query) == len(expected)
        assert sorted(table.search(query, columns=["id"]).read_all()["id"].to_pylist()) == expected

    check(RARE, lambda text: RARE in text)
    check(COMMON, lambda text: COMMON in text)
    check('"timed out after"', lambda text: "timed out after" in text)
    check("garbage AND NOT generation", lambda text: False)
    check("IllegalStateException", lambda text: "IllegalStateException" in text)
    check("alice1*", lambda text: any(word.startswith("alice1") for word in words(text)))
    check(f"{RARE} OR (expired AND refunds)", lambda t: RARE in t or {"expired", "refunds"} <= set(words(t)))


@pytest.mark.slow
def test_every_request_id_is_found_although_none_is_in_the_dictionary(table, lines):
    uuids = [
        found
        for text in lines["message"].to_pylist()
        if (found := re.search(r"[0-9a-f]{8}-[0-9a-f-]{27}", text))
    ]
    assert len(uuids) > LINES // 50
    for match in uuids[:: len(uuids) // 15]:
        found = table.search(f'"{match[0]}"', columns=["message"]).read_all()["message"].to_pylist()
        assert found
        assert all(match[0] in text for text in found)


@pytest.mark.slow
def test_text_and_values_are_searched_together(table, lines):
    wanted = pc.and_(pc.greater_equal(lines["status"], 500), pc.equal(lines["service"], "billing"))
    expected = [at for at in lines.filter(wanted)["id"].to_pylist()]
    found = table.search("status:[500 TO *] AND service:billing", columns=["id"]).read_all()
    assert sorted(found["id"].to_pylist()) == expected


@pytest.mark.slow
def test_the_documentation_on_this_machine_is_searched_exactly(tmp_path):
    """Source and documentation of the installed packages: long lines, other scripts, odd characters."""
    texts = []
    for path in sorted(Path(sys.prefix).rglob("*")):
        if path.suffix in {".md", ".rst", ".txt", ".py"} and path.is_file() and path.stat().st_size < 200_000:
            texts.extend(line for line in path.read_text("utf-8", "replace").splitlines() if line.strip())
        if len(texts) > 200_000:
            break
    if len(texts) < 10_000:
        pytest.skip("there is too little text on this machine")
    schema = pa.schema([("n", pa.int64()), ("text", pa.string())])
    table = Table.create(tmp_path / "t", schema, options={"indexing.typemap.text": "text"})
    table.append(pa.table({"n": range(len(texts)), "text": texts}, schema=schema))
    for word in ("license", "deprecated", "utf", "zwölf", "naïve"):
        expected = [
            at for at, text in enumerate(texts)
            if word in "".join(char.lower() if char.isalnum() else " " for char in text).split()
        ]  # fmt: skip
        assert table.search(word, columns=["n"]).read_all()["n"].to_pylist() == expected
