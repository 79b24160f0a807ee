"""Converts text of a Delta log to typed arrays, whole arrays at a time.

Partition values are strings and statistics are JSON documents. Both become Arrow arrays
of the column's type. What cannot be understood becomes null, which always means unknown
and keeps the file.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from indextables.duck import database
from indextables.lazy import duckdb, pc
from indextables.log.delta.paths import LOCAL_SCHEME, decode_path
from indextables.model.arrays import from_values, integers, scalar, whole
from indextables.model.names import quoted_text

ColumnKind = TypeVar("ColumnKind", pa.Array, pa.ChunkedArray)
Path = tuple[str, ...]
TypedPath = tuple[Path, Any]
"""Where a value lies in a document, and the type to decode it to."""
Guard = Callable[[Callable[[bytes], Any]], Callable[[bytes], Any]]
_NO_FIELD = re.compile(r'["\\\x00-\x1f]')
"""Characters that the name of a msgspec field cannot have, while a column's name can."""

# Below this many documents DuckDB's start-up costs more than it saves.
_DUCKDB_FROM = 20_000
# DuckDB reads a JSON number as a double, which keeps this many decimal digits.
DOUBLE_DIGITS = 15
# What DuckDB accepts in a document although it is not JSON, and escapes, which may be half a surrogate pair.
_TRAILING_COMMA = r",\s*[}\]]"
_MARKS = ("NaN", "nan", "Inf", "inf", "\\u")
# Long enough for `{"numRecords":`, the largest 64-bit number and the character after it.
_COUNT_BYTES = 36


def typed(text: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Cast an array of strings to the type of its column."""
    array = whole(text)
    if pa.types.is_string(kind):
        return array.cast(pa.string())
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        return pa.nulls(len(array), kind)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        zoned = pc.match_substring_regex(array, r"(?:Z|[+-]\d{2}:?\d{2})$")
        array = pc.if_else(zoned, array, pc.binary_join_element_wise(array, "Z", ""))
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        encoded = array.dictionary_encode()
        values = [_cast_one(value, kind) for value in encoded.dictionary]
        return pa.array([None if v is None else v.as_py() for v in values], kind).take(encoded.indices)


def typed_partition(text: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Cast partition values; an empty string is null for every type, as the Delta protocol says."""
    encoded: pa.Array = whole(text).dictionary_encode()
    values = encoded.dictionary
    empty = scalar("", pa.string())
    present = pc.if_else(pc.equal(values, empty), scalar(None, pa.string()), values)
    if pa.types.is_binary(kind):
        return present.cast(pa.binary()).take(encoded.indices)
    return typed(present, kind).take(encoded.indices)


def decode_paths(paths: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Undo the percent-encoding of an array of paths, exactly once; see `decode_path`."""
    array = whole(paths)
    if pc.any(pc.match_substring(array, "./"), min_count=0).as_py():
        return from_values(
            [None if path is None else decode_path(path) for path in array.to_pylist()], pa.string()
        )
    if not _mentions(array, "%"):
        return array
    escaped = pc.match_substring(array, "%")
    # Escapes occur in partition directories, of which there are few, so each directory is decoded once.
    cut = pc.split_pattern(pc.filter(array, escaped), "/", max_splits=1, reverse=True)
    encoded = pc.list_element(cut, 0).dictionary_encode()
    has_name = pc.greater(pc.list_value_length(cut), 1)
    names = pc.if_else(has_name, pc.list_element(_padded(cut), 1), pa.scalar(None, pa.string()))
    folders = pa.array([decode_path(folder) for folder in encoded.dictionary.to_pylist()], pa.string())
    folders = folders.take(encoded.indices)
    plain = pc.fill_null(names, "")
    if pc.any(pc.match_substring(plain, "%"), min_count=0).as_py():
        plain = pa.array([decode_path(name) for name in plain.to_pylist()], pa.string())
    decoded = pc.if_else(has_name, pc.binary_join_element_wise(folders, plain, "/"), folders)
    return pc.replace_with_mask(array, escaped, decoded)


def _mentions(texts: pa.StringArray, letter: str) -> bool:
    """Whether an ASCII letter occurs in any text; all bytes are looked through at once."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return False
    first, last = (np.frombuffer(offsets, np.int32)[texts.offset + at] for at in (0, len(texts)))
    return bool((np.frombuffer(data, np.uint8)[first:last] == ord(letter)).any())


def key_paths(paths: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Decoded paths in the form in which they are compared; see `key_path`."""
    array = whole(paths)
    if not pc.any(pc.starts_with(array, "file:"), min_count=0).as_py():
        return array
    return pc.replace_substring_regex(array, LOCAL_SCHEME.pattern, "/")


def json_texts(
    documents: pa.Array | pa.ChunkedArray, paths: Sequence[Path], digits: int = 0
) -> list[pa.Array]:
    """The scalar at each path of each document as text, null where there is none.

    `digits` is the largest decimal precision among the paths; numbers that do not fit a double are read by a
    decoder that keeps their text.
    """
    array = whole(documents)
    if not paths:
        return []
    if len(array) >= _DUCKDB_FROM and digits <= DOUBLE_DIGITS:
        return _texts_by_duckdb(array, paths)
    return texts_by_msgspec(array, paths)


def json_values(
    documents: pa.Array | pa.ChunkedArray, typed_paths: Sequence[tuple[Path, pa.DataType]]
) -> list[pa.Array]:
    """The value at each path of each document, in the given type; null where there is none of that type."""
    array = whole(documents)
    digits = max((kind.precision for _, kind in typed_paths if pa.types.is_decimal(kind)), default=0)
    if len(array) < _DUCKDB_FROM or digits > DOUBLE_DIGITS:
        try:
            return _values_by_msgspec(array, typed_paths)
        except (msgspec.DecodeError, UnicodeDecodeError, pa.ArrowInvalid, OverflowError):
            # Some document is broken, or some value has another type, so each document is decoded on its
            # own.
            pass
    texts = json_texts(array, [path for path, _ in typed_paths], digits)
    return [typed(text, kind) for text, (_, kind) in zip(texts, typed_paths, strict=True)]


def text_column(path: Path) -> str:
    """The column name for the value at one path of the statistics."""
    return "/".join(("stats", *path))


def record_counts(documents: pa.Array | pa.ChunkedArray) -> pa.Array:
    """`numRecords` of each statistics document; where it comes first, the rest is not parsed."""
    array = whole(documents)
    # Matching a regular expression on whole documents costs three times as much as cutting them first.
    starts = pc.binary_slice(array.cast(pa.binary()), 0, _COUNT_BYTES).cast(pa.string(), safe=False)
    counts = pc.struct_field(pc.extract_regex(starts, r'^\{"numRecords":(?P<n>\d+)[,}]'), [0])
    missed = pc.and_(pc.is_null(counts), pc.is_valid(array))
    if pc.any(missed, min_count=0).as_py():
        (rest,) = json_texts(pc.filter(array, missed), [("numRecords",)])
        counts = pc.replace_with_mask(counts, missed, rest)
    return typed(counts, pa.int64())


def map_values(maps: pa.Array | pa.ChunkedArray, key: str) -> pa.Array:
    """The value of one key in each map, null where a map lacks it."""
    array = whole(maps)
    # Arrow's own lookup walks every map; in a log most maps have the same few keys.
    keys = pa.ListArray.from_arrays(array.offsets, array.keys)
    items = pa.ListArray.from_arrays(array.offsets, array.items).flatten()
    held = pc.equal(keys.flatten(), scalar(key, pa.string()))
    values: pa.Array = pc.filter(items, held)
    rows = pc.filter(pc.list_parent_indices(keys), held)
    if len(values) == len(array) and array.null_count == 0 and pc.count_distinct(rows).as_py() == len(rows):
        return values
    return values.take(pc.index_in(integers(np.arange(len(array))).cast(rows.type), value_set=rows))


def _padded(cut: pa.ListArray) -> pa.ListArray:
    """Lists of one element extended to two, so that the second can be accessed."""
    return pc.list_slice(cut, 0, 2, return_fixed_size_list=True)


def _cast_one(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar | None:
    try:
        return value.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        return None


def _texts_by_duckdb(array: pa.Array, paths: Sequence[Path]) -> list[pa.Array]:
    pointers = ["/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in path) for path in paths]
    columns = ", ".join(f"found[{index + 1}] AS c{index}" for index in range(len(pointers)))
    columns += f", {reads_differently('document', paths)} AS differs"
    pointer_list = ", ".join(quoted_text(pointer) for pointer in pointers)
    values = f"json_extract_string(document, [{pointer_list}])"
    with database.connect() as connection:
        connection.register("source", pa.table({"document": array}))

        def run(expression: str) -> Any:
            query = f"SELECT {columns} FROM (SELECT document, {expression} AS found FROM source)"
            return connection.sql(query).to_arrow_table()

        try:
            table = run(values)
        except duckdb.InvalidInputException:
            table = run(if_document("document", values))
    texts = [whole(column).cast(pa.string()) for column in table.columns[:-1]]
    differs = differing(texts, whole(table.column("differs")))
    if not differs.true_count:
        return texts
    exact = texts_by_msgspec(array.filter(differs), paths)
    return [pc.replace_with_mask(text, differs, right) for text, right in zip(texts, exact, strict=True)]


def if_document(column: str, expression: str) -> str:
    """SQL that looks into a JSON column only where it is valid JSON; the check parses the text once more."""
    return f"CASE WHEN json_valid({column}) THEN {expression} END"


def reads_differently(column: str, paths: Sequence[Path]) -> str:
    """SQL that is true for documents that DuckDB may read unlike the decoder that serves smaller logs.

    DuckDB takes the first of two equal keys, and accepts commas before a closing bracket, NaN and infinity.
    What is matched here may still be harmless: such documents are decoded once more, and that decides.
    """
    odd = [f"regexp_matches({column}, {quoted_text(_TRAILING_COMMA)})"]
    odd += [f"contains({column}, {quoted_text(mark)})" for mark in _MARKS]
    # A column has a minimum, a maximum and a null count; a second group of them shows by its columns.
    times = Counter(column_path[-1] for column_path in {path[1:] for path in paths if len(path) > 1})
    odd += [f"{column} LIKE {_several(key, 3 * count + 1)} ESCAPE '^'" for key, count in times.items()]
    return f"({' OR '.join(odd)})"


def _several(key: str, times: int) -> str:
    written = msgspec.json.encode(key).decode()
    for special in "^%_":
        written = written.replace(special, f"^{special}")
    return quoted_text("%" + f"{written}%" * times)


def differing(texts: Sequence[ColumnKind], differs: ColumnKind) -> ColumnKind:
    """Which documents have to be decoded once more: those that may differ, and those with a nested text.

    DuckDB gives the object where a scalar belongs as text, like a text that looks like an object.
    """
    again = pc.fill_null(differs, scalar(False, pa.bool_()))
    for text in texts:
        nested = pc.or_(pc.starts_with(text, "{"), pc.starts_with(text, "["))
        again = pc.or_(again, pc.fill_null(nested, scalar(False, pa.bool_())))
    return again


def texts_by_msgspec(array: pa.Array, paths: Sequence[Path]) -> list[pa.Array]:
    """The scalar at each path of each document as text; of two equal keys the last counts, as for Spark."""
    columns = _follow(array, [(path, msgspec.Raw) for path in paths], _or_none)
    return [
        pa.array([None if value is None else _scalar_text(bytes(value)) for value in values], pa.string())
        for values in columns
    ]


def _values_by_msgspec(array: pa.Array, typed_paths: Sequence[tuple[Path, pa.DataType]]) -> list[pa.Array]:
    """The fast path: decode each value to the Python type of its column."""
    columns = _follow(array, [(path, _python_type(kind) | None) for path, kind in typed_paths])
    arrays = []
    for values, (_, kind) in zip(columns, typed_paths, strict=True):
        if pa.types.is_temporal(kind):
            arrays.append(typed(from_values(values, pa.string()), kind))
        elif pa.types.is_nested(kind) or pa.types.is_binary(kind):
            arrays.append(pa.nulls(len(values), kind))
        else:
            arrays.append(from_values(values, kind))
    return arrays


def _python_type(kind: pa.DataType) -> Any:
    if pa.types.is_integer(kind):
        return int
    if pa.types.is_floating(kind):
        return float
    if pa.types.is_decimal(kind):
        return Decimal
    return bool if pa.types.is_boolean(kind) else str


def _follow(
    array: pa.Array,
    leaves: Sequence[TypedPath],
    guarded: Guard = lambda decode: decode,
) -> list[list[Any]]:
    """Decode only the wanted keys of the documents, and return the values at each path."""
    decode = guarded(msgspec.json.Decoder(_shape(leaves, 0)).decode)
    # As bytes: text that is not UTF-8 makes one broken document, not an error.
    documents = array.cast(pa.binary()).to_pylist()
    rows = [None if document is None else decode(document) for document in documents]
    return [_cut_out(rows, leaves, path, guarded) for path, _ in leaves]


def _or_none(decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Wrap a decoder so that it returns None for a document it cannot read: its statistics are unknown."""

    def tried(document: bytes) -> Any:
        try:
            return decode(document)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    return tried


def _shape(leaves: Sequence[TypedPath], depth: int) -> Any:
    """The type to decode into: only the wanted keys, with the given types at the ends of the paths.

    A level with a key that no msgspec field can have stays undecoded, by key, until it is used.
    """
    heads = _heads(leaves, depth)
    if any(_NO_FIELD.search(head) for head in heads):
        return dict[str, msgspec.Raw]
    fields = [(f"f{index}", _kind_of(leaves, depth, head), None) for index, head in enumerate(heads)]
    names = {f"f{index}": head for index, head in enumerate(heads)}
    return msgspec.defstruct("Document", fields, rename=names, gc=False)


def _heads(leaves: Sequence[TypedPath], depth: int) -> list[str]:
    return sorted({path[depth] for path, _ in leaves})


def _kind_of(leaves: Sequence[TypedPath], depth: int, head: str) -> Any:
    """The type of the value under a key."""
    here = [(path, kind) for path, kind in leaves if path[depth] == head]
    below = [(path, kind) for path, kind in here if len(path) > depth + 1]
    return _shape(below, depth + 1) | None if below else here[0][1]


def _cut_out(values: list[Any], leaves: Sequence[TypedPath], path: Path, guarded: Guard) -> list[Any]:
    """Follow one path through all decoded documents, level by level."""
    for depth, head in enumerate(path):
        inside = [leaf for leaf in leaves if leaf[0][:depth] == path[:depth] and len(leaf[0]) > depth]
        heads = _heads(inside, depth)
        if any(_NO_FIELD.search(name) for name in heads):
            decode = guarded(msgspec.json.Decoder(_kind_of(inside, depth, head)).decode)
            values = [
                decode(value[head]) if value is not None and head in value else None for value in values
            ]
        else:
            follow = operator.attrgetter(f"f{heads.index(head)}")
            try:
                values = list(map(follow, values))
            except AttributeError:
                # A document, or an object in it, is not there.
                values = [None if value is None else follow(value) for value in values]
    return values


def _scalar_text(raw: bytes) -> str | None:
    first = raw[:1]
    if first in {b"n", b"{", b"[", b""}:
        return None
    try:
        return str(msgspec.json.decode(raw)) if first == b'"' else raw.decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        # For example half of a surrogate pair, which is not text that a column could hold.
        return None
