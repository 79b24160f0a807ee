"""The index equals tantivy's own on real text: words, frequencies, rows, phrases and scores."""

from __future__ import annotations

import csv
import gzip
import io
import random
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
import tantivy

from benchmarks.log_lines import log_lines
from indextables.index.query.evaluate import IndexSearch
from indextables.index.query.tree import Boolean, Boosted, Words
from indextables.index.read.ranking import Statistics
from indextables.index.settings import IndexField, IndexSpec
from indextables.index.tokens import analyzer
from support.indexes import build, opened
from support.shared import shared

pytestmark = pytest.mark.slow
MOST_LINES = 40_000


def benchmark_lines():
    return [line for batch in log_lines(MOST_LINES) for line in batch["message"].to_pylist()]


def loghub_lines():
    with gzip.open(shared("logs", "loghub.tsv.gz")) as packed:
        rows = csv.reader(
            io.TextIOWrapper(packed, "utf-8", errors="replace"), delimiter="\t", quoting=csv.QUOTE_NONE
        )
        return [" ".join(row) for row, _ in zip(rows, range(MOST_LINES), strict=False)]


def documentation():
    """Paragraphs of the documentation that installed packages carry."""
    found = []
    for path in sorted(Path(pa.__file__).parents[1].rglob("*.py")):
        found += [part for part in path.read_text("utf-8", errors="replace").split("\n\n") if part.strip()]
        if len(found) > MOST_LINES:
            return found[:MOST_LINES]
    if len(found) < 1000:
        pytest.skip("no documentation of installed packages was found")
    return found


class Both:
    """The same texts in both indexes."""

    def __init__(self, texts, tokenizer):
        self.texts = texts
        self.spec = IndexSpec((IndexField("c", "text", tokenizer, "position"),))
        table = pa.table({"c": pa.array(texts, pa.string())})
        self.index = opened(build(table, self.spec, 9000))
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("c", tokenizer_name="words", index_option="position")
        self.schema = schema.build()
        self.directory = tempfile.TemporaryDirectory()
        other = tantivy.Index(self.schema, path=self.directory.name)
        other.register_tokenizer("words", analyzer(tokenizer))
        writer = other.writer(1_000_000_000, 1)
        for text in texts:
            document = tantivy.Document()
            document.add_text("c", text)
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        other.reload()
        self.searcher = other.searcher()
        assert self.searcher.num_segments == 1
        self.words = [word for word, _ in self.searcher.terms_with_prefix("c", "", limit=10_000_000)]
        self.tokenize = analyzer(tokenizer).analyze

    def theirs(self, node):
        make = tantivy.Query
        if isinstance(node, Boosted):
            return make.boost_query(self.theirs(node.node), node.factor)
        if isinstance(node, Words):
            if len(node.words) > 1:
                return make.phrase_query(self.schema, "c", list(node.words))
            return make.term_query(self.schema, "c", node.words[0], "position")
        occur = tantivy.Occur
        clauses = [(occur.Must, self.theirs(part)) for part in node.must]
        clauses += [(occur.Should, self.theirs(part)) for part in node.should]
        clauses += [(occur.MustNot, self.theirs(part)) for part in node.must_not]
        return make.boolean_query(clauses)

    def rows_of_tantivy(self, node):
        query = tantivy.Query.const_score_query(self.theirs(node), 1.0)
        return [
            place.doc for _, place in self.searcher.search(query, limit=len(self.texts), count=False).hits
        ]

    def check_rows(self, node):
        for _ in range(3):
            assert IndexSearch(self.index, node).rows().tolist() == self.rows_of_tantivy(node), node

    def check_best(self, node, limit=10):
        wanted = self.searcher.search(self.theirs(node), limit=limit, count=False).hits
        for _ in range(3):
            scores, rows = IndexSearch(self.index, node).best(limit)
            assert scores.tolist() == pytest.approx([score for score, _ in wanted], rel=3e-6), node
            # Scores that differ by a rounding may change places.
            close = {round(score, 3) for score in scores.tolist()}
            if len(close) == len(scores):
                assert rows.tolist() == [place.doc for _, place in wanted], node


CORPORA = {"benchmark lines": benchmark_lines, "loghub": loghub_lines, "documentation": documentation}


@pytest.fixture(scope="module", params=CORPORA, ids=str)
def both(request):
    return Both(CORPORA[request.param](), "default")


def some_words(both, dice, count):
    """Words as they occur in texts, so that common ones are common here too."""
    found = []
    while len(found) < count:
        words = both.tokenize(dice.choice(both.texts))
        if words:
            found.append(dice.choice(words))
    return found


def test_every_word_has_the_same_frequency(both):
    terms = [("c", word.encode()) for word in both.words]
    ours = [
        count for at in range(0, len(terms), 5000) for count in both.index.frequencies(terms[at : at + 5000])
    ]
    theirs = [count for _, count in both.searcher.terms_with_prefix("c", "", limit=10_000_000)]
    assert ours == theirs
    assert both.index.root.fields[0].words == len(both.words)


def test_words_have_the_same_rows(both):
    for word in some_words(both, random.Random(1), 150):
        both.check_rows(Words("c", (word,)))


def test_and_or_not_have_the_same_rows(both):
    dice = random.Random(2)
    for _ in range(60):
        words = tuple(Words("c", (word,)) for word in some_words(both, dice, dice.randrange(2, 5)))
        both.check_rows(Boolean(must=words))
        both.check_rows(Boolean(should=words))
        both.check_rows(Boolean(must=words[:1], must_not=words[1:]))


def test_phrases_have_the_same_rows(both):
    dice = random.Random(3)
    for _ in range(150):
        words = both.tokenize(dice.choice(both.texts))
        size = dice.randrange(2, 5)
        if len(words) >= size:
            at = dice.randrange(len(words) - size + 1)
            phrase = words[at : at + size]
            if dice.random() < 0.3:
                dice.shuffle(phrase)
            both.check_rows(Words("c", tuple(phrase)))


def test_the_best_rows_have_the_same_scores(both):
    dice = random.Random(4)
    for _ in range(60):
        words = [Words("c", (word,)) for word in some_words(both, dice, dice.randrange(1, 5))]
        both.check_best(words[0])
        both.check_best(Boolean(should=tuple(words)))
        both.check_best(Boolean(should=(Boosted(words[0], 2.5), *words[1:])), limit=100)
        both.check_best(Boolean(must=tuple(words[:2]), should=tuple(words[2:])))
        pair = both.tokenize(dice.choice(both.texts))[:2]
        if len(pair) == 2:
            both.check_best(Words("c", tuple(pair)))


def test_scores_by_the_statistics_of_a_whole_table_are_those_of_one_index(both):
    """Two halves, ranked with the statistics of both, score as the whole does."""
    half = len(both.texts) // 2
    parts = [
        opened(build(pa.table({"c": pa.array(texts, pa.string())}), both.spec))
        for texts in (both.texts[:half], both.texts[half:])
    ]
    dice = random.Random(5)
    for _ in range(20):
        words = some_words(both, dice, 3)
        node = Boolean(should=tuple(Words("c", (word,)) for word in words))
        terms = [("c", word.encode()) for word in dict.fromkeys(words)]
        total = Statistics(0)
        for part in parts:
            held = dict(zip(terms, part.frequencies(terms), strict=True))
            total = total.plus(Statistics(part.rows, part.tokens, held))
        found = []
        for first, part in zip((0, half), parts, strict=True):
            scores, rows = IndexSearch(part, node).best(10, total)
            found += [
                (-score, row + first) for score, row in zip(scores.tolist(), rows.tolist(), strict=True)
            ]
            again = IndexSearch(part, node).scores(rows[rows.argsort()], total)
            assert sorted(again.tolist()) == pytest.approx(sorted(scores.tolist()), rel=1e-5)
        scores, rows = IndexSearch(both.index, node).best(10)
        assert [-score for score, _ in sorted(found)[:10]] == pytest.approx(scores.tolist(), rel=1e-6)


@pytest.mark.parametrize("tokenizer", ["en_stem", "whitespace"])
def test_other_tokenizers_have_the_same_words_and_rows(tokenizer):
    both = Both(benchmark_lines()[:8000], tokenizer)
    terms = [("c", word.encode()) for word in both.words]
    assert both.index.frequencies(terms) == [
        count for _, count in both.searcher.terms_with_prefix("c", "", limit=10**7)
    ]
    for word in random.Random(6).sample(both.words, 60):
        both.check_rows(Words("c", (word,)))
