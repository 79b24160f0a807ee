"""Columns of text as streams of words, a whole batch at a time.

`tokens.words_of` defines the words of a text; this module finds the same ones without an
object per row. Runs of bytes are cut with lookup tables; only distinct words that bytes
cannot decide (letters beyond ASCII, stems, identifiers, JSON documents, addresses) are
processed one by one.

Besides its words a field has two special entries, spelled with a byte that no text
contains: one for the rows that are null, and one for the boundaries between the values of
one row, which no phrase may cross.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from indextables.index.codec.numbers import Array, gather, starts_of
from indextables.index.documents import documents_of, texts_inside
from indextables.index.letters import EMOJI, MARK, PAIRED, SEPARATOR, WORD, folded, kind_of
from indextables.index.settings import FAST, IP, JSON, STRING, SUBSTRING, IndexField, is_list_of_text
from indextables.index.tokens import (
    GAPS,
    ID_MARK,
    LEAF_GAP,
    NULLS,
    Tokenizer,
    address,
    analyzer,
    json_text,
    makes_pairs,
    tokenizer_of,
    words_of,
)
from indextables.lazy import pc
from indextables.records import dataclass

_HEX_ID, _LONG_ID = 16, 20
_UNICODE = 0x110000
_TABLE = 1 << 26
"""Up to this value, values are numbered through a lookup table instead of by sorting."""
_UUID = (8, 4, 4, 4, 12)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The words of a batch of rows, in order."""

    words: pa.BinaryArray
    """All distinct words, in any order; possibly some that do not occur."""
    codes: Array
    """The word of every token, as an index into `words`."""
    rows: Array
    """The row of every token, ascending."""
    positions: Array
    """The position of every token in its row, ascending within the row."""
    lengths: Array
    """Number of tokens of every row, without boundaries and nulls."""


def tokens_of(item: IndexField, column: pa.Array) -> Tokens:
    """The words that a column contributes to the index, and its entries for nulls and boundaries."""
    nulls = pc.is_null(column).to_numpy(zero_copy_only=False).nonzero()[0]
    if item.kind == FAST:
        none = np.zeros(0, np.int64)
        tokens = Tokens(_no_words(), none, none, none, np.zeros(len(column), np.int64))
    elif item.kind == SUBSTRING:
        return _trigrams(column, nulls)
    elif item.kind == JSON:
        tokens = _json(item, column)
    elif is_list_of_text(column.type):
        tokens = _lists(item, column)
    elif pa.types.is_nested(column.type):
        tokens = _lists(item, texts_inside(column))
    else:
        tokens = _texts(item, column)
    return _with_entry(tokens, NULLS, nulls, np.zeros(len(nulls), np.int64)) if len(nulls) else tokens


def _no_words() -> pa.BinaryArray:
    return pa.array([], pa.binary())


def _texts(item: IndexField, column: pa.Array) -> Tokens:
    """One text per row."""
    if item.kind == IP:
        column = _each_distinct(column, address)
    tokenizer = tokenizer_of("raw" if item.kind in (STRING, IP) else item.tokenizer)
    if tokenizer.base == "raw":
        coded = column.cast(pa.binary()).dictionary_encode()
        rows = pc.is_valid(column).to_numpy(zero_copy_only=False).nonzero()[0]
        codes = coded.indices.drop_null().to_numpy()
        lengths = np.zeros(len(column), np.int64)
        lengths[rows] = 1
        return Tokens(coded.dictionary, codes, rows, np.zeros(len(rows), np.int64), lengths)
    words, codes, lengths = _split(column, tokenizer)
    return _with_positions(words, codes, lengths)


def _with_positions(words: pa.BinaryArray, codes: Array, lengths: Array) -> Tokens:
    """Tokens from the word of every token, row after row, and the number of tokens per row."""
    rows = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    first = starts_of(lengths)[:-1].astype(np.int32)
    positions = np.arange(len(codes), dtype=np.int32) - np.repeat(first, lengths)
    return Tokens(words, codes, rows, positions, lengths)


def _each_distinct(column: pa.Array, change: Callable[[str], str | None]) -> pa.Array:
    """Apply `change` to every text, once per distinct text."""
    coded = column.dictionary_encode()
    changed = pa.array([change(text) for text in coded.dictionary.to_pylist()], pa.string())
    return changed.take(coded.indices)


def _trigrams(column: pa.Array, nulls: Array) -> Tokens:
    """All sequences of three characters in a value; their order is not needed.

    Shorter values have none: no pattern with three consecutive characters can match them.
    """
    texts = pa.concat_arrays([pc.fill_null(column, "")])
    sizes = pc.utf8_length(texts).to_numpy().astype(np.int64)
    joined = b"".join(texts.cast(pa.binary()).to_pylist())
    chars = np.frombuffer(joined.decode().encode("utf-32-le"), np.uint32)
    owner = np.repeat(np.arange(len(texts), dtype=np.int32), sizes)
    first = (owner[:-2] == owner[2:]).nonzero()[0]
    # Characters are numbered among those that occur, so that three of them fit into one number.
    alphabet, coded = _numbered(chars, _UNICODE)
    size = max(1, len(alphabet))
    coded = coded.astype(np.int64)
    distinct, codes = _numbered((coded[first] * size + coded[first + 1]) * size + coded[first + 2], size**3)
    spelled = np.stack([distinct // size**2, distinct // size % size, distinct % size], axis=1)
    text = alphabet[spelled].astype(np.uint32).tobytes().decode("utf-32-le") if len(distinct) else ""
    words = [text[at : at + 3].encode() for at in range(0, len(text), 3)]
    if len(nulls):
        codes = np.concatenate([codes, np.full(len(nulls), len(words), codes.dtype)])
        words.append(NULLS)
    rows = np.concatenate([owner[first], nulls.astype(np.int32)])
    none = np.zeros(len(column), np.int64)
    return Tokens(pa.array(words, pa.binary()), codes, rows, np.zeros(len(rows), np.int32), none)


def _numbered(values: Array, end: int) -> tuple[Array, Array]:
    """The distinct values in order, and the index of every value among them; all are below `end`."""
    if end > _TABLE:
        distinct, indexes = np.unique(values, return_inverse=True)
        return distinct, indexes
    seen = np.zeros(end, bool)
    seen[values] = True
    distinct = seen.nonzero()[0]
    index = np.zeros(end, np.int32)
    index[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, index[values]


def _lists(item: IndexField, column: pa.Array) -> Tokens:
    """Several texts per row: their words in sequence, with a boundary between two texts."""
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
    values = column.flatten()
    owner = np.repeat(np.arange(len(column)), sizes)
    valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
    owner, values = owner[valid], values.drop_null()
    inner = _texts(item, values)
    rows = owner[inner.rows]
    tokens_before = starts_of(inner.lengths)[:-1]
    number = np.arange(len(values))
    first = np.searchsorted(owner, owner)  # the first value of each value's row
    shift = number - first + (tokens_before - tokens_before[first] if len(first) else 0)
    positions = inner.positions + shift[inner.rows]
    lengths = np.bincount(rows, minlength=len(column)).astype(np.int64)
    tokens = Tokens(inner.words, inner.codes, rows, positions, lengths)
    later = (number > first).nonzero()[0]
    if not len(later):
        return tokens
    return _with_entry(tokens, GAPS, owner[later], shift[later] - 1)


def _with_entry(tokens: Tokens, entry: bytes, rows: Array, positions: Array) -> Tokens:
    """The same tokens with a special entry added; row lengths stay."""
    words = pa.concat_arrays([tokens.words, pa.array([entry], pa.binary())])
    all_rows = np.concatenate([tokens.rows, rows])
    all_positions = np.concatenate([tokens.positions, positions])
    codes = np.concatenate([tokens.codes, np.full(len(rows), len(words) - 1, np.int64)])
    order = np.lexsort((all_positions, all_rows))
    return Tokens(words, codes[order], all_rows[order], all_positions[order], tokens.lengths)


def _json(item: IndexField, column: pa.Array) -> Tokens:
    """Every word of a document with its path; positions between JSON values are boundaries."""
    tokenize = words_of(item.tokenizer)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = _each_distinct(column, lambda text: json_text(text, tokenize))
    else:
        rows = documents_of(column, item.tokenizer)
        texts = pa.array(
            [None if row is None else json_text(row, tokenize, is_text=False) for row in rows], pa.string()
        )
    words, codes, lengths = _split(texts, Tokenizer("whitespace"))
    renamed = [GAPS if word == LEAF_GAP.encode() else word for word in words.to_pylist()]
    return _with_positions(pa.array(renamed, pa.binary()), codes, lengths)


# Which bytes belong to a word: letters, digits and all beyond ASCII; or all but white space.
_ALNUM = np.array([byte >= 128 or chr(byte).isalnum() for byte in range(256)])  # noqa: PLR2004
_BLACK = np.array([byte not in b" \t\n\r\x0c" for byte in range(256)])
_ASCII_ALNUM = np.array([byte < 128 and chr(byte).isalnum() for byte in range(256)])  # noqa: PLR2004
_DIGIT = np.array([48 <= byte < 58 for byte in range(256)])  # noqa: PLR2004
_NOT_HEX = np.array([chr(byte) not in "0123456789abcdefABCDEF" for byte in range(256)])
_LOWER = np.array([byte + 32 if 65 <= byte < 91 else byte for byte in range(256)], np.uint8)  # noqa: PLR2004


def _bytes_of(column: pa.Array) -> tuple[Array, Array]:
    """The bytes of a column of texts, and the offset of each row; nulls have no bytes."""
    texts = pc.fill_null(column.cast(pa.large_string()), "")
    _, offsets, data = texts.buffers()
    at = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    all_bytes = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    return all_bytes[at[0] : at[-1]], at - at[0]


def _split(column: pa.Array, tokenizer: Tokenizer) -> tuple[pa.BinaryArray, Array, Array]:
    """Distinct words, the word of every token, and the number of tokens per row."""
    if not len(column):
        return _no_words(), np.zeros(0, np.int64), np.zeros(0, np.int64)
    data, at = _bytes_of(column)
    if not len(data):
        return _no_words(), np.zeros(0, np.int64), np.zeros(len(column), np.int64)
    inside = (_BLACK if tokenizer.base == "whitespace" else _ALNUM)[data]
    breaks = at[1:-1]
    breaks = breaks[(breaks > 0) & (breaks < len(data))]
    ids = np.zeros(0, np.int64)
    if tokenizer.base == "compact_ids":
        ids, id_ends = _identifiers(data, breaks)
        inside[gather(ids, id_ends - ids)] = True
        edges = np.concatenate([ids, id_ends])
        breaks = np.unique(np.concatenate([breaks, edges[(edges > 0) & (edges < len(data))]]))
    begin, end = _edges(inside, breaks)
    chars = data[inside] if tokenizer.base == "whitespace" else _LOWER[data[inside]]
    offsets = starts_of(end - begin).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(chars)]
    coded = pa.Array.from_buffers(pa.binary(), len(begin), buffers).dictionary_encode()
    words, codes = coded.dictionary, coded.indices.to_numpy()
    lengths = np.diff(np.searchsorted(begin, at))
    if tokenizer.base == "whitespace":
        return words, codes, lengths
    if len(ids):
        id_words = np.unique(codes[np.searchsorted(begin, ids)])
        words = _with_buckets(words, id_words)
    beyond_ascii = bool(chars.max(initial=0) >= 128)  # noqa: PLR2004 - the end of ASCII
    if tokenizer.base == "en_stem" or beyond_ascii:
        return _analysed(words, codes, lengths, tokenizer)
    return words, codes, lengths


def _edges(inside: Array, breaks: Array) -> tuple[Array, Array]:
    """Where runs begin and end; a run never crosses a break."""
    near = np.empty_like(inside)
    near[0] = False
    near[1:] = inside[:-1]
    near[breaks] = False
    begin = (inside > near).nonzero()[0]
    near[-1] = False
    near[:-1] = inside[1:]
    near[breaks - 1] = False
    return begin, (inside > near).nonzero()[0] + 1


def _identifiers(data: Array, breaks: Array) -> tuple[Array, Array]:
    """Start and end of the identifiers that `compact_ids` recognises."""
    begin, end = _edges(_ASCII_ALNUM[data], breaks)
    if not len(begin):
        return begin, end
    size = end - begin
    digits = starts_of(_DIGIT[data])
    others = starts_of(_NOT_HEX[data])
    digit = digits[end] > digits[begin]
    hexadecimal = others[end] == others[begin]
    single = digit & ((size >= _LONG_ID) | (hexadecimal & (size >= _HEX_ID)))
    first_bytes, end_bytes = [begin[single]], [end[single]]
    if len(begin) >= len(_UUID):
        count = len(begin) - len(_UUID) + 1
        whole = np.ones(count, bool)
        for at, length in enumerate(_UUID):
            whole &= (size[at : at + count] == length) & hexadecimal[at : at + count]
            if at:
                whole &= begin[at : at + count] == end[at - 1 : at - 1 + count] + 1
        first = whole.nonzero()[0]
        for at in range(len(_UUID) - 1):
            first = first[data[end[first + at]] == ord("-")]
        # Five runs that reach into the next row are not one identifier.
        first = first[
            np.searchsorted(breaks, begin[first], "right") == np.searchsorted(breaks, end[first + 4])
        ]
        first_bytes.append(begin[first])
        end_bytes.append(end[first + 4])
    order = np.argsort(np.concatenate(first_bytes))
    return np.concatenate(first_bytes)[order], np.concatenate(end_bytes)[order]


def _with_buckets(words: pa.BinaryArray, ids: Array) -> pa.BinaryArray:
    """The words with every identifier replaced by its bucket; buckets may then occur more than once."""
    mark = ID_MARK.encode()
    buckets = [mark + b"%04x" % (zlib.crc32(word) & 0xFFFF) for word in words.take(pa.array(ids)).to_pylist()]
    mask = np.zeros(len(words), bool)
    mask[ids] = True
    return pc.replace_with_mask(words, pa.array(mask), pa.array(buckets, pa.binary()))


def _analysed(
    words: pa.BinaryArray, codes: Array, lengths: Array, tokenizer: Tokenizer
) -> tuple[pa.BinaryArray, Array, Array]:
    """Make words of the distinct runs that bytes alone cannot decide."""
    data, at = word_bytes(words)
    beyond = starts_of(data >= 128)  # noqa: PLR2004 - the end of ASCII
    plain = beyond[at[1:]] == beyond[at[:-1]]
    code = np.arange(len(words))
    sizes = np.ones(len(words), np.int64)
    out: list[pa.BinaryArray] = [words]
    if tokenizer.base == "en_stem":
        # Words of only letters and digits stay one word.
        out.append(_stems(words.filter(pa.array(plain))))
        code[plain] = len(words) + np.arange(len(out[-1]))
    if not plain.all():
        runs = words.filter(pa.array(~plain))
        more, sizes[~plain] = (
            _by_letters(runs, tokenizer) if makes_pairs(tokenizer.name) else _analysed_runs(runs, tokenizer)
        )
        code[~plain] = sum(map(len, out)) + starts_of(sizes[~plain])[:-1]
        out.append(more)
    per = sizes[codes]
    new_codes = code[codes]
    if not (per == 1).all():
        first = starts_of(per)[:-1]
        new_codes = np.repeat(new_codes, per)
        several = (per > 1).nonzero()[0]
        indexes = gather(first[several], per[several])
        new_codes[indexes] += indexes - np.repeat(first[several], per[several])
        total = starts_of(per)
        lengths = np.diff(total[starts_of(lengths)])
    return pa.concat_arrays(out), new_codes, lengths


def _stems(words: pa.BinaryArray) -> pa.BinaryArray:
    """The stems of words, all by a single call."""
    stems = analyzer("stems").analyze(b"\n".join(words.to_pylist()).decode())
    return pa.array(stems, pa.string()).cast(pa.binary())


def _analysed_runs(runs: pa.BinaryArray, tokenizer: Tokenizer) -> tuple[pa.BinaryArray, list[int]]:
    """The words of runs by version 1 or by a dictionary, in order, and how many each run has."""
    analyze = analyzer(tokenizer.base).analyze if tokenizer.version == 1 else words_of(tokenizer.name)
    analysed = list(map(analyze, map(bytes.decode, runs.to_pylist())))
    words = pa.array([word for some in analysed for word in some], pa.string())
    return words.cast(pa.binary()), list(map(len, analysed))


def _by_letters(runs: pa.BinaryArray, tokenizer: Tokenizer) -> tuple[pa.BinaryArray, Array]:
    """The words of runs by the rules of `letters`, in order, and how many each run has."""
    text = folded(b"\n".join([*runs.to_pylist(), b""]).decode(), accents=not tokenizer.accents)
    chars = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    alphabet, coded = _numbered(chars, _UNICODE)
    kinds = np.fromiter((kind_of(chr(char)) for char in alphabet.tolist()), np.int8, len(alphabet))[coded]
    marks = kinds == MARK
    if marks.any():
        # A mark is what the character before it is; behind an emoji, and at the start, it is nothing.
        base = np.maximum.accumulate(np.where(marks, 0, np.arange(len(kinds))))
        kinds = kinds[base]
        kinds[marks & ((kinds == EMOJI) | (kinds == MARK))] = SEPARATOR
    begin, end = _pieces(kinds, marks)
    sizes = np.bincount(np.cumsum(chars == ord("\n"))[begin], minlength=len(runs))
    widths = 1 + (chars >= 0x80).astype(np.int8) + (chars >= 0x800) + (chars >= 0x10000)  # noqa: PLR2004
    at = starts_of(widths)
    lengths = at[end] - at[begin]
    spelled = np.frombuffer(text.encode(), np.uint8)[gather(at[begin], lengths)]
    buffers = [None, pa.py_buffer(starts_of(lengths).astype(np.int32)), pa.py_buffer(spelled)]
    words = pa.Array.from_buffers(pa.binary(), len(begin), buffers)
    return _stems(words) if tokenizer.base == "en_stem" else words, sizes


def _pieces(kinds: Array, marks: Array) -> tuple[Array, Array]:
    """Start and end of every word, by what its characters are: `letters.pieces_of` for a whole array."""
    nowhere = np.zeros(0, np.int64)
    word_begin, word_end = _edges(kinds == WORD, nowhere)
    paired = kinds == PAIRED
    run_end = _edges(paired, nowhere)[1]
    first = (paired & ~marks).nonzero()[0]
    # A character ends where the next one begins, or where its run does; a pair ends with the next character.
    last_of_run = run_end[np.searchsorted(run_end, first, "right")]
    next_begin = np.append(first[1:], len(kinds))
    own_end = np.minimum(next_begin, last_of_run)
    pair_end = np.where(next_begin < last_of_run, np.append(own_end[1:], 0), own_end)
    emoji = (kinds == EMOJI).nonzero()[0]
    begin = np.concatenate([word_begin, first, emoji])
    end = np.concatenate([word_end, pair_end, emoji + 1])
    order = np.argsort(begin, kind="stable")
    return begin[order], end[order]


def word_bytes(words: pa.BinaryArray) -> tuple[Array, Array]:
    """The bytes of an array of words, and the offset of each word."""
    _, offsets, data = words.buffers()
    at = np.frombuffer(offsets, np.int32)[words.offset : words.offset + len(words) + 1].astype(np.int64)
    all_bytes = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    return all_bytes, at


__all__ = ["Tokens", "tokens_of", "word_bytes"]
