"""The search index by itself beside raw tantivy: bytes, build, and phrases, ANDs and ranked queries.

    python -m benchmarks.index [--rows 1000000] [--random 1000] [--corpus lines|documentation]

The goals are in what a user feels: the median and the 99th percentile of a query whose words are cached
("warm"), and the median CPU of one of which only the root is in memory ("cold"). tantivy answers the same
queries, how many rows a phrase or an AND matches or the ten best scores, and every answer is compared with its.

Times are of the calling thread, the best of some repetitions: on a busy machine they say more than the
clock. The sides take turns, and in each turn a query that takes microseconds is repeated until 2 ms are spent
on it: of three repetitions, all may be disturbed.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import tantivy

from benchmarks.log_lines import log_lines
from indextables.index.build.builder import IndexBuilder
from indextables.index.query.evaluate import IndexSearch
from indextables.index.query.tree import Boolean, Node, Words
from indextables.index.read.cache import BlockCache
from indextables.index.read.lookup import BytesRanges, Index
from indextables.index.settings import IndexField, IndexSpec
from indextables.index.tokens import analyzer

COLUMN = "text"
SPENT, MOST_REPEATS = 0.002, 60
"""Seconds for which a short question is repeated in each turn, and how often at most."""
SPEC = IndexSpec((IndexField(COLUMN, "text", "default", "position"),))

PHRASES = {
    "lines": [
        "timed out after", "garbage collection of generation", "worker 1 picked up", "user alice0 logged in", "ms throttled",
        "in 3 ms", "connection to orders", "from queue orders", "not in state fetch", "failed to merge", "status 200", "returned 200 in 3",
    ],
    "documentation": [
        "of the", "in order to", "permission is hereby granted", "the same", "is not", "to be used in", "as well as", "can be used to",
        "the following", "in the case of", "return value", "a list of",
    ],
}  # fmt: skip
WORDS = {
    "lines": [
        "user in ms", "timed throttled connection", "kaboom ms in", "orders fetch 500", "ms user throttled", "the lease expired alice0",
        "kaboom", "ms", "orders carts payments", "connection internal 5432", "retrying because expired", "disk usage percent",
        "java handler state", "request rows finished",
    ],
    "documentation": [
        "the of in", "file name path", "return value the", "permission granted copy", "the of in to", "permission hereby granted",
        "return value", "the", "class method object", "array shape dtype", "error raised when", "default none optional", "license copyright", "see also",
    ],
}  # fmt: skip


def corpus(name: str, rows: int) -> pa.Table:
    """Log lines, or paragraphs of the documentation that installed packages carry."""
    if name == "lines":
        texts = pa.chunked_array([batch["message"] for batch in log_lines(rows)])
        return pa.table({COLUMN: texts})
    found: list[str] = []
    for path in sorted(Path(pa.__file__).parents[1].rglob("*.py")):
        found += [part for part in path.read_text("utf-8", errors="replace").split("\n\n") if part.strip()]
        if len(found) >= rows:
            break
    return pa.table({COLUMN: pa.array(found[:rows], pa.string())})


def fixed(name: str) -> list[tuple[str, Node]]:
    """The fixed questions: 12 phrases, 14 ANDs and 14 rankings."""
    asked: list[tuple[str, Node]] = [("count", Words(COLUMN, tuple(text.split()))) for text in PHRASES[name]]
    for text in WORDS[name]:
        words = tuple(Words(COLUMN, (word,)) for word in text.split())
        asked.append(("count", Boolean(must=words)))
        asked.append(("best", Boolean(should=words)))
    return asked


def drawn(table: pa.Table, count: int) -> list[tuple[str, Node]]:
    """Random questions whose words are taken from random rows."""
    dice, tokenize = random.Random(11), analyzer("default").analyze
    asked: list[tuple[str, Node]] = []
    while len(asked) < count:
        words = tokenize(table[COLUMN][dice.randrange(table.num_rows)].as_py())
        size = dice.randrange(1, 5)
        if len(words) < size:
            continue
        at = dice.randrange(len(words) - size + 1)
        some = tuple(Words(COLUMN, (word,)) for word in dice.sample(words, size))
        phrase = Words(COLUMN, tuple(words[at : at + max(2, size)]))
        asked.append(
            dice.choice([("count", phrase), ("count", Boolean(must=some)), ("best", Boolean(should=some))])
        )
    return asked


def cpu(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return work(), time.process_time() - start


def build(table: pa.Table) -> Any:
    builder = IndexBuilder(SPEC, table.schema)
    for batch in table.to_batches(32_768):
        builder.add(batch)
    return builder.finish()


class Tantivy:
    """Raw tantivy over the same rows."""

    def __init__(self, table: pa.Table, directory: str) -> None:
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("c", tokenizer_name="words", index_option="position")
        self.schema = schema.build()
        index = tantivy.Index(self.schema, path=directory)
        index.register_tokenizer("words", analyzer("default"))
        writer = index.writer(4_000_000_000, 1)
        for batch in table.to_batches(32_768):
            for text in batch[COLUMN].to_pylist():
                document = tantivy.Document()
                document.add_text("c", text)
                writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        self.searcher = index.searcher()
        self.size = sum(path.stat().st_size for path in Path(directory).iterdir())

    def query(self, node: Node) -> Any:
        make, occur = tantivy.Query, tantivy.Occur
        if isinstance(node, Words):
            if len(node.words) > 1:
                return make.phrase_query(self.schema, "c", list(node.words))
            return make.term_query(self.schema, "c", node.words[0], "position")
        assert isinstance(node, Boolean)
        clauses = [(occur.Must, self.query(part)) for part in node.must]
        return make.boolean_query(clauses + [(occur.Should, self.query(part)) for part in node.should])

    def ask(self, kind: str, node: Node) -> Callable[[], Any]:
        query = self.query(node)
        if kind == "best":
            return lambda: [score for score, _ in self.searcher.search(query, limit=10, count=False).hits]
        plain = tantivy.Query.const_score_query(query, 1.0)
        return lambda: self.searcher.search(plain, limit=1, count=True).count


def ours(index: Index, kind: str, node: Node) -> Callable[[], Any]:
    if kind == "best":
        return lambda: IndexSearch(index, node).best(10)[0].tolist()
    return lambda: IndexSearch(index, node).count()


def best_us(work: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    found, least, spent, done = None, math.inf, 0.0, 0
    while done < repeats or (spent < SPENT and done < MOST_REPEATS):
        start = time.thread_time()
        found = work()
        took = time.thread_time() - start
        least, spent, done = min(least, took), spent + took, done + 1
    return found, least * 1e6


def same(kind: str, one: Any, other: Any) -> bool:
    if kind == "count":
        return bool(one == other)
    return len(one) == len(other) and all(abs(a - b) <= 3e-6 * max(1.0, a) for a, b in zip(one, other))


def percentile(numbers: list[float], share: float) -> float:
    """The number below which this share of the others lies."""
    return sorted(numbers)[min(len(numbers) - 1, int(len(numbers) * share))]


def compare(
    asked: list[tuple[str, Node]], rival: Tantivy, warm: Index, cold: Index, repeats: int
) -> dict[str, Any]:
    """What every query takes, warm and cold, and how many answers differ from tantivy's."""
    times: dict[str, list[float]] = {"tantivy": [], "warm": [], "cold": []}
    wrong, slowest = 0, []
    for kind, node in asked:
        sides = {
            "tantivy": rival.ask(kind, node),
            "warm": ours(warm, kind, node),
            "cold": ours(cold, kind, node),
        }
        sides["warm"](), sides["warm"]()
        answers: dict[str, Any] = {}
        least = dict.fromkeys(sides, math.inf)
        for _ in range(repeats):
            for name, work in sides.items():
                answers[name], took = best_us(work, 1)
                least[name] = min(least[name], took)
        for name, took in least.items():
            wrong += not same(kind, answers["tantivy"], answers[name])
            times[name].append(took / 1000)
        slowest.append((round(times["warm"][-1], 3), round(times["cold"][-1], 3), f"{kind} {node}"))
    return {
        "queries": len(asked), "wrong": wrong,
        **{f"{name} ms": {"median": percentile(some, 0.5), "p99": percentile(some, 0.99)} for name, some in times.items()},
        "slowest": sorted(slowest, reverse=True)[:3],
    }  # fmt: skip


def measure(name: str, rows: int, draws: int, repeats: int) -> dict[str, Any]:
    """Bytes, build and queries over one corpus, beside tantivy in the same process."""
    table = corpus(name, rows)
    built, ours_cpu = cpu(lambda: build(table))
    with tempfile.TemporaryDirectory() as directory:
        rival, theirs_cpu = cpu(lambda: Tantivy(table, directory))
        data = built.to_bytes()
        warm, cold = (
            Index.open(BytesRanges(data), len(data), built.root_length, cache=BlockCache(size))
            for size in (256 << 20, 0)
        )
        one = Words(COLUMN, (WORDS[name][0].split()[0],))
        return {
            "rows": table.num_rows, "text": table.nbytes, "tantivy": tantivy.__version__,
            "bytes": {"here": built.length, "tantivy": rival.size, "ratio": built.length / rival.size, **built.sizes},
            "build cpu s": {"here": ours_cpu, "tantivy": theirs_cpu},
            "warm count us": best_us(lambda: IndexSearch(warm, one).count(), 200)[1],
            "warm rows us": best_us(lambda: IndexSearch(warm, one).rows(), 200)[1],
            **compare(fixed(name) + drawn(table, draws), rival, warm, cold, repeats),
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--random", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--corpus", choices=["lines", "documentation"], default="lines")
    given = parser.parse_args()
    print(json.dumps(measure(given.corpus, given.rows, given.random, given.repeats), indent=1))


if __name__ == "__main__":
    main()
