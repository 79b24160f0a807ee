"""What reading an index costs: one read to open it, a block per word, and nothing that is not needed."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading

import numpy as np
import pyarrow as pa
import pytest

from indextables.errors import DamagedIndexError
from indextables.index.build.builder import IndexBuilder
from indextables.index.query.evaluate import IndexSearch, scored_terms, statistics_of
from indextables.index.query.patterns import Gap, Wildcard
from indextables.index.query.tree import NOTHING, Boolean, Boosted, Everything, Exists, Matching, Words
from indextables.index.read.cache import BlockCache, DiskRanges
from indextables.index.read.lookup import SMALL_INDEX, BytesRanges, Index
from indextables.index.settings import IndexField, IndexSpec
from support.indexes import CountingRanges, build, opened

SPEC = IndexSpec((IndexField("c", "text", "default", "position"),))


def lines(count):
    """Every line has a number of its own; some words are common, one is in three lines."""
    return pa.table({
        "c": pa.array(
            [
                f"request {number * 7919 % 1_000_003} from host{number % 97} timed out after {number % 13} ms"
                + (" kaboom" if number % (count // 3 or 1) == 5 else "")
                for number in range(count)
            ]
        )
    })  # fmt: skip


@pytest.fixture(scope="module")
def built():
    return build(lines(150_000), SPEC, 50_000)


def cold(built, **options):
    ranges = CountingRanges(built.to_bytes())
    index = Index.open(ranges, built.length, built.root_length, cache=BlockCache(), **options)
    return ranges, index


def word(text):
    return Words("c", (text,))


def test_one_read_of_the_root_opens_an_index(built):
    ranges, index = cold(built)
    assert ranges.read == [(built.length - built.root_length, built.root_length)]
    assert (index.rows, index.spec) == (150_000, SPEC)
    assert index.sizes == {name: size for name, size in built.sizes.items() if name != "root"}
    assert index.tokens == built.tokens


def test_a_small_index_is_read_whole_by_opening_it():
    small = build(lines(300), SPEC)
    assert small.length < SMALL_INDEX
    ranges, index = cold(small)
    assert IndexSearch(index, Words("c", ("timed", "out"))).count() == 300
    assert IndexSearch(index, word("kaboom")).rows().tolist() == [5, 105, 205]
    assert IndexSearch(index, word("kaboom")).best(2)[1].tolist() == [5, 105]
    assert ranges.trips == 1


def test_a_word_that_is_nowhere_costs_one_block(built):
    ranges, index = cold(built)
    ranges.reset()
    assert IndexSearch(index, word("nowhere")).count() == 0
    assert ranges.trips == 1
    assert ranges.bytes < 16_000


def test_a_rare_word_costs_one_block_with_its_rows(built):
    ranges, index = cold(built)
    ranges.reset()
    assert IndexSearch(index, word("kaboom")).rows().tolist() == [5, 50_005, 100_005]
    assert ranges.trips == 1


def test_counting_a_common_word_reads_no_list(built):
    ranges, index = cold(built)
    ranges.reset()
    assert IndexSearch(index, word("timed")).count() == 150_000
    assert IndexSearch(index, Boolean(must_not=(word("host1"),))).count() == 150_000 - len(
        range(1, 150_000, 97)
    )
    assert IndexSearch(index, Exists("c")).count() == 150_000
    assert IndexSearch(index, Everything()).count() == 150_000
    assert ranges.trips <= 2
    assert ranges.bytes < 32_000


def test_a_rare_and_a_common_word_read_only_the_pages_that_matter(built):
    ranges, index = cold(built)
    ranges.reset()
    assert IndexSearch(index, Boolean(must=(word("kaboom"), word("host5")))).rows().tolist() == [5]
    assert ranges.bytes < 40_000


def test_a_phrase_reads_the_dictionary_then_lists_then_positions(built):
    ranges, index = cold(built)
    ranges.reset()
    assert IndexSearch(index, Words("c", ("host5", "timed", "out"))).count() == len(range(5, 150_000, 97))
    assert ranges.trips == 3


def test_a_phrase_with_a_prefix_reads_the_positions_of_thousands_of_words_in_few_round_trips(built):
    ranges, index = cold(built)
    ranges.reset()
    numbers = [number for number in range(150_000) if str(number * 7919 % 1_000_003).startswith("1")]
    assert IndexSearch(index, Words("c", ("request",), prefix="1")).rows().tolist() == numbers
    assert len(numbers) > 10_000
    assert ranges.trips <= 5


def test_a_phrase_with_a_prefix_reads_positions_only_of_blocks_with_its_rows(built):
    ranges, index = cold(built)
    ranges.reset()
    assert IndexSearch(index, Words("c", ("kaboom",), prefix="3")).count() == 0
    begin, size = index.root.piece_at("positions"), built.sizes["positions"]
    assert 0 < sum(begin <= offset < begin + size for offset, _ in ranges.read) <= 6


def test_the_words_of_many_blocks_are_those_of_each(built):
    _, index = cold(built)
    blocks = index.blocks(range(len(index.root.block_ranges)))
    each = [word for number in sorted(blocks) for word in blocks[number].words()]
    words = index.word_list(range(len(blocks)))
    assert words.words.to_pylist() == each
    low, high = each[100], each[900]
    assert words.between(low, high) == (each.index(low), each.index(high))
    chosen = np.array([0, 1, 700, len(each) - 1])
    assert [
        blocks[number].words()[at] for number, numbers in words.by_block(chosen) for at in numbers.tolist()
    ] == [each[number] for number in chosen.tolist()]


def test_words_that_share_much_and_little_are_put_together_again():
    dice = np.random.default_rng(8)
    texts = [
        " ".join("é" * int(n) + chr(97 + int(m)) for n, m in dice.integers(0, 26, (12, 2)))
        for _ in range(400)
    ]
    index = opened(build(pa.table({"c": [*texts, "x" * 30, "x" * 3000, "x" * 3001 + "y"]}), SPEC))
    blocks = index.blocks(range(len(index.root.block_ranges)))
    each = [word for number in sorted(blocks) for word in blocks[number].words()]
    assert index.word_list(range(len(blocks))).words.to_pylist() == each


def test_patterns_pass_over_the_marks_behind_the_words():
    """A row without a text has a mark in the dictionary that is no text itself."""
    index = opened(build(pa.table({"c": ["an error", None, "quiet"]}), SPEC))
    query = Matching("c", Wildcard((Gap.MANY, "rror")))
    assert IndexSearch(index, query).rows().tolist() == [0]
    assert IndexSearch(index, Matching("c", Wildcard((Gap.MANY,)))).rows().tolist() == [0, 2]
    assert IndexSearch(index, Matching("c", Wildcard((Gap.MANY, "nowhere")))).rows().tolist() == []


def test_a_second_search_reads_nothing(built):
    ranges, index = cold(built)
    for node in (word("timed"), Words("c", ("timed", "out")), Boolean(should=(word("host5"), word("host6")))):
        IndexSearch(index, node).best(5)
        IndexSearch(index, node).best(5)
        ranges.reset()
        IndexSearch(index, node).rows()
        IndexSearch(index, node).best(5)
        assert ranges.trips == 0


def test_the_cache_stays_within_its_bytes(built):
    cache = BlockCache(200_000)
    index = opened(built, cache)
    for number in range(60):
        IndexSearch(index, word(f"host{number}")).rows()
        assert cache.used <= 200_000
    assert len(cache) > 0
    cache.forget(index.identity)
    assert (cache.used, len(cache)) == (0, 0)


def test_threads_that_share_an_index_and_a_small_cache_get_right_answers(built):
    index = opened(built, BlockCache(300_000))
    wrong = []

    def ask(seed):
        for number in range(seed, seed + 40):
            host = number % 97
            if len(IndexSearch(index, word(f"host{host}")).rows()) != len(range(host, 150_000, 97)):
                wrong.append(host)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in (0, 20, 40, 60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_ranges_kept_on_disk_are_used_again_and_checked_when_read_back(built, tmp_path):
    _, index = cold(built)
    inner = CountingRanges(built.to_bytes())

    def ask():
        kept = DiskRanges(inner, str(tmp_path), index.identity, 10 << 20)
        again = Index.open(kept, built.length, built.root_length, cache=BlockCache())
        return IndexSearch(again, Words("c", ("host5", "timed"))).count()

    first = ask()
    assert inner.trips > 0
    inner.reset()
    assert ask() == first
    assert inner.trips == 0
    for path in tmp_path.iterdir():
        held = bytearray(path.read_bytes())
        held[len(held) // 2] ^= 1
        path.write_bytes(held)
    assert ask() == first
    assert inner.trips > 0


def test_ranges_on_disk_stay_within_their_bytes(built, tmp_path):
    _, index = cold(built)
    kept = DiskRanges(BytesRanges(built.to_bytes()), str(tmp_path), index.identity, 100_000)
    for start in range(0, 600_000, 30_000):
        assert len(kept.many([(start, 30_000)])[0]) == 30_000
    assert 0 < sum(path.stat().st_size for path in tmp_path.iterdir()) <= 100_000


def test_the_identity_tells_one_content_from_another():
    one, same, other = (opened(build(lines(count), SPEC)) for count in (20, 20, 21))
    assert one.identity == same.identity != other.identity


def test_wrong_lengths_are_damage(built):
    data = built.to_bytes()
    for length, root in (
        (len(data), built.root_length + 1),
        (len(data) - 1, built.root_length),
        (len(data), 0),
    ):
        with pytest.raises(DamagedIndexError):
            Index.open(BytesRanges(data), length, root)
    with pytest.raises(DamagedIndexError):
        Index.open(BytesRanges(data[:-5]), len(data), built.root_length)


def test_verify_finds_a_flipped_bit_in_every_piece(built):
    data = built.to_bytes()
    index = Index.open(BytesRanges(data), len(data), built.root_length, cache=BlockCache())
    index.verify()
    for piece in ("lists", "positions", "norms", "words"):
        changed = bytearray(data)
        changed[index.root.piece_at(piece) + built.sizes[piece] // 2] ^= 4
        other = Index.open(BytesRanges(bytes(changed)), len(data), built.root_length, cache=BlockCache())
        with pytest.raises(DamagedIndexError, match=piece):
            other.verify()


def test_an_index_of_no_rows_and_one_without_words_answer():
    for texts in ([], [None, None], [""]):
        table = pa.table({"c": pa.array(texts, pa.string())})
        index = opened(build(table, SPEC))
        assert IndexSearch(index, word("x")).rows().tolist() == []
        assert IndexSearch(index, Words("c", ("x", "y"))).rows().tolist() == []
        assert IndexSearch(index, Words("c", (), prefix="x")).rows().tolist() == []
        assert IndexSearch(index, Everything()).rows().tolist() == list(range(len(texts)))
        assert IndexSearch(index, Exists("c")).count() == sum(text is not None for text in texts)
        assert IndexSearch(index, NOTHING).count() == 0
        assert len(IndexSearch(index, word("x")).best(3)[0]) == 0


def test_a_column_without_a_field_may_match_everywhere(built):
    index = opened(build(lines(30), SPEC))
    search = IndexSearch(index, Words("other", ("x",)))
    assert not search.exact
    assert len(search.candidates()) == 30
    assert len(search.certain()) == 0
    without = IndexSearch(index, word("timed"), unknown=frozenset({"c"}))
    assert (without.exact, len(without.candidates())) == (False, 30)


def test_scores_need_the_words_that_the_query_names():
    node = Boolean(
        must=(word("timed"), Words("c", ("out", "after"))),
        should=(Boosted(word("ms"), 2.0), Words("c", (), prefix="ho")),
        must_not=(word("debug"),),
    )
    terms = scored_terms(node, SPEC)
    assert terms == (("c", b"timed"), ("c", b"out"), ("c", b"after"), ("c", b"ms"))
    index = opened(build(lines(50), SPEC))
    assert statistics_of(index, node).frequencies == dict.fromkeys(terms, 50)


def test_prefixes_ranges_and_everything_score_one_times_their_boost():
    index = opened(build(lines(50), SPEC))
    for node in (
        Words("c", (), prefix="tim"),
        Everything(),
        Exists("c"),
        Boolean(must_not=(word("nowhere"),)),
    ):
        scores, rows = IndexSearch(index, Boosted(node, 3.0)).best(2)
        assert (scores.tolist(), rows.tolist()) == ([3.0, 3.0], [0, 1])


@pytest.mark.slow
def test_building_stays_within_its_memory():
    """3.5 times the text and 256 MiB, with positions; measured in a process of its own."""
    script = """
        import resource
        import pyarrow as pa
        from indextables.index.build.builder import IndexBuilder
        from indextables.index.settings import IndexField, IndexSpec
        from benchmarks.log_lines import log_lines
        spec = IndexSpec((IndexField("message", "text", "default", "position"),))
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        builder = None
        for batch in log_lines(300_000):
            builder = builder or IndexBuilder(spec, batch.schema)
            builder.add(batch)
        builder.finish()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base
        print(peak * 1024, builder.text_bytes)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    peak, text = map(int, done.stdout.split())
    assert peak <= 3.5 * text + (256 << 20)


def test_rows_of_one_batch_or_of_many_make_the_same_bytes():
    table = lines(3000)
    whole = build(table, SPEC).to_bytes()
    builder = IndexBuilder(SPEC, table.schema)
    for start in range(0, 3000, 7):
        builder.add(table.slice(start, 7).to_batches()[0])
    assert builder.finish().to_bytes() == whole
    assert np.array_equal(builder.rows, 3000)


def test_words_of_json_come_in_the_same_order_in_every_process():
    """Those with their path first, then those without: otherwise the same rows would have other bytes elsewhere."""
    from indextables.index.tokens import json_text

    assert json_text({"a": "x y"}, str.split) == "a\x1fx a\x1fy \x1d \x1fx \x1fy \x1d a\x1e"
