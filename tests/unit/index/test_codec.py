"""Every encoding of the index gives back what went in, and says so when its bytes were changed."""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.errors import DamagedIndexError
from indextables.index.build.runs import sort_words
from indextables.index.codec.lengths import LENGTHS, length_classes
from indextables.index.codec.lists import (
    counts_of,
    encode_page,
    exceptions,
    has,
    pack,
    page_bits,
    page_rows,
    pages_repeats,
    pages_rows,
    ranks,
    unpack,
)
from indextables.index.codec.numbers import (
    Planes,
    few_varints,
    frame,
    gather,
    part_of_planes,
    planes,
    read_columns,
    starts_of,
    unframe,
    unplanes,
    unvarints,
    varints,
    write_columns,
)
from indextables.index.codec.root import FieldRoot, Root, decode_root
from indextables.index.read.rowset import RowSet, difference, everything, intersection, union
from indextables.index.settings import IndexField, IndexSpec
from indextables.index.tokenise import GAPS, NULLS, tokens_of
from indextables.index.tokens import json_text, without_ids, words_of

numbers32 = st.integers(0, 2**32 - 1) | st.integers(0, 300)
row_sets = st.integers(1, 400).flatmap(
    lambda span: st.tuples(st.just(span), st.sets(st.integers(0, span - 1), min_size=1))
)


@given(st.lists(numbers32))
def test_varints_give_back_their_numbers(values):
    body, at = varints(np.array(values, np.uint32))
    # Few bytes are decoded by a loop, an array by array operations.
    assert unvarints(body.tobytes()).tolist() == unvarints(body).tolist() == values
    assert at[-1] == len(body)


@given(st.lists(numbers32 | st.just(0), max_size=30), st.data())
def test_varints_of_which_most_are_short_give_back_their_numbers(values, data):
    spread = [number for value in values for number in [*[data.draw(st.integers(0, 127))] * 45, value]]
    assert unvarints(varints(np.array(spread, np.uint32))[0].tobytes()).tolist() == spread


@pytest.mark.parametrize("few", [0, 100], ids=["alone", "among short ones"])
@pytest.mark.parametrize(("tail", "said"), [(b"\x80", "cut off"), (b"\xff" * 5 + b"\x01", "too long")])
def test_varints_that_cannot_be_numbers_are_refused(few, tail, said):
    with pytest.raises(DamagedIndexError, match=said):
        unvarints(b"\x05" * few + tail)


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 70_000)))
def test_planes_give_back_their_numbers(values):
    assert unplanes(planes(np.array(values, np.uint64))).tolist() == values


@given(st.lists(numbers32 | st.just(0), min_size=1), st.data())
def test_a_part_of_planes_has_a_part_of_the_numbers(values, data):
    first = data.draw(st.integers(0, len(values) - 1))
    count = data.draw(st.integers(1, len(values) - first))
    raw = planes(np.array(values, np.uint64))
    wanted = values[first : first + count]
    assert unplanes(part_of_planes(raw, first, count)).tolist() == wanted
    with pytest.raises(DamagedIndexError, match="fewer numbers"):
        part_of_planes(raw, first, len(values) - first + 1)


@given(
    st.lists(st.lists(numbers32, max_size=20).map(lambda v: np.array(v, np.uint64)) | st.binary(), max_size=9)
)
def test_columns_give_back_numbers_and_bytes(columns):
    found = read_columns(write_columns(columns))
    assert [c if isinstance(c, bytes) else c.tolist() for c in found] == [
        c if isinstance(c, bytes) else c.tolist() for c in columns
    ]


@given(st.binary(max_size=300), st.integers(0, 2**40), st.integers(0, 10**6), st.integers(0, 7))
def test_a_frame_notices_any_flipped_bit_any_cut_and_another_place(raw, offset, where, bit):
    held = frame(raw, offset)
    assert unframe(held, offset, "x") == raw
    changed = bytearray(held)
    changed[where % len(held)] ^= 1 << bit
    for wrong, at in ((bytes(changed), offset), (held[: where % len(held)], offset), (held, offset + 1)):
        with pytest.raises(DamagedIndexError):
            unframe(wrong, at, "x")


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 6)), max_size=20))
def test_gather_lists_the_numbers_of_slices(slices):
    starts, sizes = (np.array([one[k] for one in slices], np.int64) for k in (0, 1))
    assert gather(starts, sizes).tolist() == [a + k for a, n in slices for k in range(n)]


@given(row_sets, st.data())
def test_a_page_gives_back_its_rows_bits_and_occurrences(case, data):
    span, chosen = case
    rows = np.array(sorted(chosen), np.uint32)
    counts = np.array(
        data.draw(st.lists(st.integers(1, 300), min_size=len(rows), max_size=len(rows))), np.uint32
    )
    raw = encode_page(rows, counts, span)
    assert page_rows(raw, len(rows), span).tolist() == rows.tolist()
    assert unpack(page_bits(raw, len(rows), span)).tolist() == rows.tolist()
    places, often = pages_repeats([(raw, len(rows))])
    found = np.ones(len(rows), np.uint32)
    found[places] = often
    assert found.tolist() == counts.tolist()
    assert (often > 1).all()


@given(st.lists(row_sets, min_size=1, max_size=5), st.data())
def test_many_pages_are_decoded_as_each_of_them_is(cases, data):
    """Pages of different forms too: one row in 32 makes a bitmap."""
    pages, firsts, rows, counts, first = [], [], [], [], 0
    for span, chosen in cases:
        whole = max(chosen) + 1 if span % 2 else (span + 1) * 40
        held = sorted(chosen)
        often = data.draw(st.lists(st.integers(1, 300), min_size=len(held), max_size=len(held)))
        # Bitmaps are of whole bytes, as those of all pages but the last are.
        whole = -(-whole // 64) * 64
        pages.append((encode_page(np.array(held, np.uint32), np.array(often), whole), len(held), whole))
        firsts.append(first)
        rows += [first + row for row in held]
        counts += often
        first += whole + data.draw(st.sampled_from([0, 64, 640]))
    assert pages_rows(pages, firsts).tolist() == rows
    places, often = pages_repeats([page[:2] for page in pages])
    found = np.ones(len(rows), np.uint32)
    found[places] = often
    assert found.tolist() == counts


@given(st.lists(st.lists(numbers32, min_size=1, max_size=9), min_size=1, max_size=4), st.data())
def test_some_of_many_numbers_are_taken_from_their_planes(texts, data):
    every = [number for text in texts for number in text]
    held = Planes([planes(np.array(text, np.uint64)) for text in texts])
    at = data.draw(st.lists(st.integers(0, len(every) - 1), max_size=9))
    assert held.take(np.array(at, np.int64)).tolist() == [every[one] for one in at]
    assert len(held) == len(every)


@given(row_sets, st.data())
def test_a_rank_is_the_number_of_rows_below(case, data):
    span, chosen = case
    rows = sorted(chosen)
    asked = np.array(data.draw(st.lists(st.integers(0, span - 1), max_size=9)), np.uint32)
    bits = pack(np.array(rows, np.uint32), span)
    assert ranks(bits, asked).tolist() == [sum(row < one for row in rows) for one in asked.tolist()]
    assert has(bits, asked).tolist() == [one in chosen for one in asked.tolist()]


@given(st.lists(st.integers(0, (1 << 32) - 1), max_size=12))
def test_few_numbers_are_read_as_many_are(numbers):
    raw = varints(np.array(numbers, np.uint32))[0].tobytes()
    assert few_varints(raw) == unvarints(raw).tolist() == numbers


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), min_size=1, max_size=6))
def test_occurrences_of_many_lists_are_those_of_each(lists):
    starts = starts_of(np.array([len(one) for one in lists]))
    body, at = exceptions(np.concatenate([np.array(one) for one in lists]), starts)
    for k, one in enumerate(lists):
        found = counts_of(body[int(at[k]) : int(at[k + 1])].tobytes(), len(one))
        assert (np.ones(len(one)) if found is None else found).tolist() == one


@given(row_sets, st.sets(st.integers(0, 399)), st.sets(st.integers(0, 399)))
def test_sets_of_rows_combine_as_sets_do(case, second, third):
    span, first = case
    universe = 400
    for dense in (False, True):
        held = [np.array(sorted(one), np.uint32) for one in (first, second, third)]
        a, b, c = (
            RowSet(universe, bits=pack(one, universe)) if dense else RowSet(universe, array=one)
            for one in held
        )
        assert intersection([a, b, c], universe).array().tolist() == sorted(first & second & third)
        assert union([a, b, c], universe).array().tolist() == sorted(first | second | third)
        assert difference(a, b, universe).array().tolist() == sorted(first - second)
        assert difference(everything(universe), b, universe).count == universe - len(second)
        assert has(b.bits(), held[0]).tolist() == [row in second for row in sorted(first)]


@given(st.sets(st.binary(max_size=20) | st.text("ab\0", max_size=30).map(str.encode), max_size=60))
def test_words_are_sorted_by_their_bytes(words):
    held = list(words)
    order = sort_words(pa.array(held, pa.binary()))
    assert [held[at] for at in order] == sorted(held)


def test_length_classes_are_exact_up_to_forty_and_never_above_the_length():
    lengths = np.arange(100_000)
    classes = length_classes(lengths)
    assert classes[:41].tolist() == list(range(41))
    assert (LENGTHS[classes] <= lengths).all()
    assert (np.diff(classes.astype(int)) >= 0).all()


@given(st.lists(st.binary(max_size=9), min_size=1, max_size=9), st.integers(0, 10**6), st.integers(0, 7))
def test_the_root_comes_back_and_notices_any_flipped_bit(separators, where, bit):
    spec = IndexSpec((IndexField("é", "text", "default", "position"),))
    root = Root(
        rows=7, spec=spec, fields=(FieldRoot(blocks=len(separators), words=3, least=-1.5, most=2.5),),
        pieces=(1, 2, 3, 4), checksums=(5, 6, 7, 8),
        block_lengths=np.arange(len(separators)), separator_lengths=np.array([len(s) for s in separators]),
        separators=b"".join(separators),
    )  # fmt: skip
    data = root.encode()
    found = decode_root(data)
    assert (found.rows, found.spec, found.fields, found.pieces) == (7, spec, root.fields, (1, 2, 3, 4))
    assert [found.separator(at) for at in range(len(separators))] == separators
    changed = bytearray(data)
    changed[where % len(data)] ^= 1 << bit
    for wrong in (bytes(changed), data[: where % len(data)], data[1:]):
        with pytest.raises(DamagedIndexError):
            decode_root(wrong)


@pytest.mark.parametrize(("number", "said"), [(1, "an older format"), (99, "a newer format")])
def test_a_sound_root_of_another_format_is_not_called_damaged(number, said):
    empty = np.arange(0)
    root = Root(0, IndexSpec(()), (), (0,) * 4, (0,) * 4, empty, empty, b"")
    body, tail = root.encode()[:-20], root.encode()[-20:]
    lengths = tail[4:12] + number.to_bytes(4, "little")
    checksum = zlib.crc32(lengths, zlib.crc32(body)).to_bytes(4, "little")
    with pytest.raises(DamagedIndexError, match=said) as raised:
        decode_root(body + tail[:4] + lengths + checksum)
    assert "damaged" not in raised.value.message


odd_texts = st.text(
    st.sampled_from("abAB01 .-_é日本。ꙮßİΣς\t\n\x0c\r\u2003🙂") | st.characters(exclude_categories=["Cs"]),
    max_size=40,
)
ids = st.sampled_from(
    ["550e8400-e29b-41d4-a716-446655440000", "deadbeefdeadbeef01", "req00000000000000000042", "abcdefabcdefabcdefabcdef",
     "550e8400-e29b-41d4-a716-44665544000", "0123456789abcdef", "é0123456789abcdef", "x550E8400-E29B-41D4-A716-446655440000"]
)  # fmt: skip
texts = st.lists(odd_texts | ids, max_size=4).map("".join) | st.lists(ids, max_size=3).map("-".join)


def spelled(item, value):
    """The words and gaps of one row, as the definition gives them."""
    if value is None:
        return [NULLS]
    if item.kind == "json":
        return [
            GAPS if word == "\x1d" else word.encode()
            for word in json_text(value, words_of(item.tokenizer)).split(" ")
            if word
        ]
    values = [value] if isinstance(value, str) else [one for one in value if one is not None]
    found = []
    for at, one in enumerate(values):
        found += [GAPS] if at else []
        text = without_ids(one) if item.tokenizer == "compact_ids" else one
        tokenizer = "default" if item.tokenizer == "compact_ids" else item.tokenizer
        found += [word.encode() for word in words_of(tokenizer)(text)]
    return found


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.none() | texts, max_size=6),
    st.sampled_from(["default", "en_stem", "whitespace", "raw", "compact_ids"]),
)
def test_a_batch_has_the_words_that_its_texts_have_one_by_one(rows, tokenizer):
    check(IndexField("c", "text", tokenizer, "position"), rows, pa.array(rows, pa.string()))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.none() | st.lists(st.none() | texts, max_size=3), max_size=5),
    st.sampled_from(["default", "whitespace", "raw", "compact_ids"]),
)
def test_several_texts_in_a_row_have_a_gap_between_them(rows, tokenizer):
    check(IndexField("c", "text", tokenizer, "position"), rows, pa.array(rows, pa.list_(pa.string())))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.none()
        | st.sampled_from(['{"a": "x y", "b": {"c": [1, "z"]}}', "no json", "[]", '{"a": null}'])
        | odd_texts,
        max_size=5,
    )
)
def test_documents_have_their_words_with_paths(rows):
    check(IndexField("c", "json", "default", "position"), rows, pa.array(rows, pa.string()))


def check(item, rows, column):
    found = tokens_of(item, column)
    words = [found.words[int(code)].as_py() for code in found.codes]
    wanted = [spelled(item, row) for row in rows]
    by_row = [[] for _ in rows]
    for word, row, position in zip(words, found.rows.tolist(), found.positions.tolist()):
        assert position == len(by_row[row])
        by_row[row].append(word)
    assert by_row == wanted
    if item.kind == "text":
        assert found.lengths.tolist() == [sum(word not in (GAPS, NULLS) for word in row) for row in wanted]
