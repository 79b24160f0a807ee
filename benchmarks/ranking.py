"""How good the ten best rows are: nDCG@10 on judged collections, by how a table was written, beside rivals.

    python -m benchmarks.run ranking

The collections (SciFact, Vaswani) lie beside the repository, in `shared/ranking`, or where INDEXTABLES_SHARED
says; without them nothing is measured. Every system stems English words; queries are their plain words.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import re
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow as pa

import indextables as it
from benchmarks.harness import commit

HERE = Path(__file__).parent
COLLECTIONS = ("scifact", "vaswani")
SPLITS = (1, 10, 100)
SCHEMA = pa.schema([("id", pa.string()), ("text", pa.string())])
BEST = 10

Rank = Callable[[str], Sequence[str]]
"""The ids of the best documents for a query."""


@dataclass(frozen=True)
class Collection:
    """Documents, queries, and which documents answer which."""

    name: str
    documents: list[tuple[str, str]]
    queries: dict[str, str]
    relevant: dict[str, dict[str, int]]


def directory() -> Path:
    """Where the collections lie."""
    named = os.environ.get("INDEXTABLES_SHARED")
    return (Path(named) if named else HERE.resolve().parents[1] / "shared") / "ranking"


def read(name: str) -> Collection:
    """One collection."""
    place = directory() / name
    with gzip.open(place / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = [(one["id"], one["text"]) for one in map(json.loads, lines)]
    queries = dict(line.split("\t", 1) for line in (place / "queries.tsv").read_text("utf-8").splitlines())
    relevant: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (place / "qrels.tsv").read_text("utf-8").splitlines():
        query, document, grade = line.split("\t")
        relevant[query][document] = int(grade)
    return Collection(name, documents, queries, dict(relevant))


def ndcg(found: Sequence[str], relevant: dict[str, int]) -> float:
    """How near the best ten are to the ideal ten."""
    gained = sum(relevant.get(document, 0) / math.log2(at + 2) for at, document in enumerate(found[:BEST]))
    ideal = sum(
        grade / math.log2(at + 2) for at, grade in enumerate(sorted(relevant.values(), reverse=True)[:BEST])
    )
    return gained / ideal if ideal else 0.0


def mean_ndcg(collection: Collection, rank: Rank) -> float:
    """The mean over all judged queries."""
    judged = [query for query in collection.queries if collection.relevant.get(query)]
    return sum(ndcg(rank(collection.queries[query]), collection.relevant[query]) for query in judged) / len(
        judged
    )


def ours(documents: Sequence[tuple[str, str]], splits: int, place: Path) -> Rank:
    """A table of so many splits."""
    options = {
        "indexing.typemap.text": "text",
        "indexing.tokenizer.text": "en_stem",
        "checkpoint.interval": "1000",
    }
    table = it.Table.create(place, SCHEMA, options=options)
    step = -(-len(documents) // splits)
    for start in range(0, len(documents), step):
        ids, texts = zip(*documents[start : start + step], strict=True)
        table.append(pa.table([ids, texts], schema=SCHEMA))

    def rank(query: str) -> Sequence[str]:
        found = table.search(it.plain_query(query), columns=["id"], limit=BEST, score=True).read_all()
        return found["id"].to_pylist()

    return rank


def plain(query: str) -> str:
    """The words of a query, each once, and nothing that another language might read as an operator."""
    return " ".join(dict.fromkeys(word.lower() for word in re.findall(r"\w+", query)))


def tantivy_rank(documents: Sequence[tuple[str, str]], place: Path) -> Rank:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw")
    builder.add_text_field("text", tokenizer_name="en_stem")
    index = tantivy.Index(builder.build(), str(place))
    writer = index.writer(heap_size=64 << 20, num_threads=1)
    for name, text in documents:
        writer.add_document(tantivy.Document(id=name, text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def rank(query: str) -> Sequence[str]:
        asked = index.parse_query(" ".join(f'"{word}"' for word in plain(query).split()), ["text"])
        return [searcher.doc(at)["id"][0] for _, at in searcher.search(asked, BEST).hits]

    return rank


def lancedb_rank(documents: Sequence[tuple[str, str]], place: Path) -> Rank:
    import lancedb

    ids, texts = zip(*documents, strict=True)
    table = lancedb.connect(str(place)).create_table("t", pa.table([ids, texts], schema=SCHEMA))
    table.create_fts_index("text", stem=True, language="English", remove_stop_words=False, replace=True)

    def rank(query: str) -> Sequence[str]:
        return [row["id"] for row in table.search(plain(query), query_type="fts").limit(BEST).to_list()]

    return rank


def infino_rank(documents: Sequence[tuple[str, str]], place: Path) -> Rank:
    import infino

    ids, texts = zip(*documents, strict=True)
    connection = infino.connect(str(place))
    kind = pa.schema([("id", pa.large_string()), ("text", pa.large_string())])
    table = connection.create_table("t", kind, infino.IndexSpec().fts("text", stemmer="english"))
    table.append(pa.table([ids, texts], schema=kind))

    def rank(query: str) -> Sequence[str]:
        return table.bm25_search("text", plain(query), BEST, projection=["id", "score"])["id"].to_pylist()

    return rank


def sqlite_rank(documents: Sequence[tuple[str, str]], place: Path) -> Rank:
    database = sqlite3.connect(place / "fts.db")
    database.execute("CREATE VIRTUAL TABLE t USING fts5(id UNINDEXED, text, tokenize = 'porter unicode61')")
    database.executemany("INSERT INTO t VALUES (?, ?)", documents)

    def rank(query: str) -> Sequence[str]:
        asked = " OR ".join(f'"{word}"' for word in plain(query).split())
        rows = database.execute("SELECT id FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT ?", (asked, BEST))
        return [row[0] for row in rows]

    return rank


RIVALS: dict[str, tuple[str, Callable[[Sequence[tuple[str, str]], Path], Rank]]] = {
    "tantivy": ("tantivy", tantivy_rank),
    "LanceDB": ("lancedb", lancedb_rank),
    "Infino": ("infino", infino_rank),
    "SQLite FTS5": ("", sqlite_rank),
}


def orders(collection: Collection) -> dict[str, list[tuple[str, str]]]:
    """The documents in the orders they are written in."""
    shuffled = list(collection.documents)
    random.Random(7).shuffle(shuffled)
    return {"random": shuffled, "sorted": sorted(collection.documents, key=lambda document: document[1])}


def measured(collection: Collection, note: Callable[[str], None]) -> dict[str, float | str]:
    """nDCG@10 of every way to write the table, and of every rival in one index."""
    return {**of_ours(collection, note), **of_rivals(collection, note)}


def of_ours(collection: Collection, note: Callable[[str], None]) -> dict[str, float | str]:
    """nDCG@10 of every way to write the table."""
    found: dict[str, float | str] = {}
    for order, documents in orders(collection).items():
        for splits in SPLITS:
            with tempfile.TemporaryDirectory() as place:
                name = (
                    f"IndexTables {it.__version__}, {splits} {'split' if splits == 1 else 'splits'}, {order}"
                )
                found[name] = mean_ndcg(collection, ours(documents, splits, Path(place) / "t"))
                note(f"{collection.name}: {name}: {found[name]:.4f}")
    return found


def of_rivals(collection: Collection, note: Callable[[str], None]) -> dict[str, float | str]:
    """nDCG@10 of every rival that is installed."""
    found: dict[str, float | str] = {}
    for rival, (package, rank) in RIVALS.items():
        try:
            name = f"{rival} {version(package) if package else sqlite3.sqlite_version}"
            with tempfile.TemporaryDirectory() as place:
                found[name] = mean_ndcg(collection, rank(collection.documents, Path(place)))
                note(f"{collection.name}: {name}: {found[name]:.4f}")
        except (ImportError, PackageNotFoundError) as missing:
            found[rival] = f"left out: {missing}"
        except Exception as failed:  # a rival that fails is reported, not hidden
            found[rival] = f"left out: {type(failed).__name__}: {failed}"
        if isinstance(found.get(rival), str):
            note(f"{collection.name}: {rival}: {found[rival]}")
    return found


def page(results: dict[str, dict[str, float | str]], commit: str) -> str:
    """The results as a page."""
    lines = [
        "# Ranking",
        "",
        "nDCG@10, larger is better: `python -m benchmarks.run ranking`. Every system stems English words; queries are plain",
        "words, joined by OR. The table is written in so many splits, in random order or sorted by text; rivals have one index.",
        f"Commit {commit}.",
        "",
        "| system | " + " | ".join(results) + " |",
        "| --- |" + " ---: |" * len(results),
    ]
    for system in dict.fromkeys(name for found in results.values() for name in found):
        cells = [found.get(system, "") for found in results.values()]
        lines.append(
            f"| {system} | "
            + " | ".join(f"{cell:.3f}" if isinstance(cell, float) else cell for cell in cells)
            + " |"
        )
    return "\n".join(lines) + "\n"


def main(results: Path, note: Callable[[str], None] = print) -> dict[str, Any] | None:
    """Measure what can be measured, and keep it under `results`."""
    if not directory().is_dir():
        note(f"ranking: left out, {directory()} is not there; set INDEXTABLES_SHARED to the shared material")
        return None
    found = {name: measured(read(name), note) for name in COLLECTIONS}
    at = commit()
    (results / "ranking.json").write_text(json.dumps({"commit": at, "collections": found}, indent=1) + "\n")
    (results / "ranking.md").write_text(page(found, at))
    note(page(found, at))
    return found
