"""Patterns that any word may match: similar words, `*x`, `?x*` and regular expressions, counted beside tantivy.

    python -m benchmarks.run fuzzy --sizes 100k,1M

SIZES counts rows of log lines; of longer texts there are fewer. The words are drawn from the texts, and no question
is asked twice: the first makes the list of all words, the others find it in memory.
"""

from __future__ import annotations

import random
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.build import CORPORA
from benchmarks.harness import Case, Operation, Target, count_of

OURS, TANTIVY = "indextables", "tantivy"
SIDES = {"ours": OURS, "tantivy": TANTIVY}
TEXTS = tuple(name for name in CORPORA if name != "wide")
WARM_MS = 20.0
"""The goal: CPU milliseconds of a question once the words are in memory."""
QUESTIONS = 9
SHORTEST_WORD = 5
MEMORY_OF_TANTIVY = 256 << 20

Count = Callable[[str, str], int]
"""How many rows have a word that a kind of pattern, made of this word, matches."""

PATTERNS: Mapping[str, Callable[[str], str]] = {
    "similar": lambda word: f"{word}~1",
    "ending": lambda word: f"*{word[2:]}",
    "middle": lambda word: f"?{word[1:4]}*",
    "regex": lambda word: f"/.*{word[1:4]}/",
}


def prepare(directory: Path, size: str) -> None:
    """The texts of every corpus that is there, a table and an index of tantivy of each."""
    import tantivy

    import indextables as it

    for name in TEXTS:
        texts = CORPORA[name](count_of(size)).get("text", ())
        if not texts:
            continue
        rows = pa.table({"text": pa.array(texts, pa.string())})
        pq.write_table(rows, directory / f"{name}.parquet")
        it.write(directory / f"ours-{name}", rows, text="text")
        place = directory / f"tantivy-{name}"
        place.mkdir(exist_ok=True)
        schema = tantivy.SchemaBuilder().add_text_field("text", stored=False).build()
        index = tantivy.Index(schema, str(place), reuse=False)
        writer = index.writer(MEMORY_OF_TANTIVY, 1)
        for text in texts:
            writer.add_document(tantivy.Document(text=text))
        writer.commit()
        writer.wait_merging_threads()


def words_of(source: Path) -> list[str]:
    """Words of ASCII letters that the texts have, drawn with one seed."""
    texts = pq.read_table(source)["text"].slice(0, 20_000).to_pylist()
    words = sorted({word for text in texts for word in re.findall(rf"\b[a-z]{{{SHORTEST_WORD},}}\b", text)})
    return random.Random(29).sample(words, min(QUESTIONS, len(words)))


def _ours(directory: Path, text: str) -> Count:
    import indextables as it

    table = it.open(directory / f"ours-{text}")
    # One word loads the libraries, and a single block of the dictionary.
    table.count(query="a")
    return lambda kind, word: table.count(query=PATTERNS[kind](word))


def _tantivy(directory: Path, text: str) -> Count:
    import tantivy

    index = tantivy.Index.open(str(directory / f"tantivy-{text}"))
    schema, searcher = index.schema, index.searcher()

    def count(kind: str, word: str) -> int:
        if kind == "similar":
            query = tantivy.Query.fuzzy_term_query(schema, "text", word)
        else:
            expression = {"ending": f".*{word[2:]}", "middle": f".{word[1:4]}.*", "regex": f".*{word[1:4]}"}
            query = tantivy.Query.regex_query(schema, "text", expression[kind])
        return int(searcher.search(query, 1, count=True).count)

    return count


OPEN = {"ours": _ours, "tantivy": _tantivy}


def _measured(directory: Path, side: str, text: str, kind: str) -> Operation:
    source = directory / f"{text}.parquet"
    words = words_of(source) if source.exists() else []
    if len(words) < QUESTIONS:
        return lambda: {"left_out": "the texts are not there, or have too few words"}
    count = OPEN[side](directory, text)

    def operation() -> Mapping[str, Any]:
        milliseconds, rows = [], []
        for word in words:
            began = time.process_time()
            rows.append(count(kind, word))
            milliseconds.append((time.process_time() - began) * 1e3)
        return {
            "rows": sum(rows),
            "first_ms": round(milliseconds[0], 2),
            "warm_ms": round(statistics.median(milliseconds[1:]), 2),
        }

    return operation


def __getattr__(name: str) -> Callable[[Path], Operation]:
    """The function of a case: `ours_prose_similar` counts the rows with words similar to some of the prose."""
    side, text, kind = (*name.split("_"), "", "", "")[:3]
    if side not in SIDES or text not in TEXTS or kind not in PATTERNS:
        raise AttributeError(name)
    return lambda directory: _measured(directory, side, text, kind)


def _cases() -> Iterator[Case]:
    for text in TEXTS:
        for kind in PATTERNS:
            for side, system in SIDES.items():
                yield Case(f"{kind} words of {text}", system, f"{side}_{text}_{kind}", repeat=1)


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Questions with all words in memory against the goal, and beside tantivy's."""
    lines = []
    for case, size in dict.fromkeys((row["case"], row["size"]) for row in rows):
        by_system = {
            row["system"]: row["facts"]
            for row in rows
            if (row["case"], row["size"]) == (case, size) and "left_out" not in row["facts"]
        }
        if OURS not in by_system:
            continue
        ours, tantivy = by_system[OURS], by_system.get(TANTIVY)
        beside = f" (tantivy {tantivy['warm_ms']} ms, {tantivy['rows']} rows)" if tantivy else ""
        verdict = "met" if ours["warm_ms"] <= WARM_MS else "missed"
        lines.append(
            f"{case}, {size}: first {ours['first_ms']} ms, then {ours['warm_ms']}, at most {WARM_MS}: {verdict}; "
            f"{ours['rows']} rows{beside}"
        )
    return lines


TARGET = Target(
    "fuzzy", prepare, list(_cases()), rival=TANTIVY, packages=("indextables", "tantivy"), goals=goals
)
