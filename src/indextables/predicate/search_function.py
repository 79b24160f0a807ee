"""`search` and `isearch` in a filter, with the meaning they have in Databricks.

`search(a, b, 'text')` is true where one of the values contains the text, NULL where none does and one of them
is NULL, and false elsewhere. `isearch` ignores case: both sides are compared in lower case. With
`mode => 'word'` a value matches that has every word of the pattern, in any order (see `word_breaks`). Texts,
and texts inside structs, arrays, the values of maps and variants are searched; other values are not.

A struct is the same as its fields, and a plain text is compared by `contains`, which statistics and
trigrams understand. What is left is a call, `indextables_search(mode, value, pattern)`: Spark knows a
function of that name in a connected session.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as is_a

from indextables.errors import PredicateError
from indextables.model.fields import string_order
from indextables.model.types import is_variant, type_to_sql
from indextables.predicate.searchable import CALLS, MODES, SUBSTRING, WORD, is_searchable
from indextables.predicate.tree import Call, Column, Literal, Match, Node, Value, all_of, any_of, type_of
from indextables.predicate.values import Args, as_value, call_of, condition, is_void
from indextables.predicate.word_breaks import words_of

_TEXT, _BOOL = pa.string(), pa.bool_()


def search(name: str, args: Args, mode: Value | None) -> Value:
    """Return the condition that `search` or `isearch` is of these arguments; the last is the pattern.

    >>> message = Column(("message",), pa.string())
    >>> str(search("search", [message, Literal("disk", pa.string())], None))
    "contains(message, 'disk')"
    """
    if len(args) < 2:  # noqa: PLR2004 - something to search, and what to look for
        raise PredicateError(
            f"{name} takes at least two arguments, the values to search and the text to look for: "
            f"{name}(message, 'timeout')",
            part=name,
        )
    *targets, last = args
    chosen, pattern = _mode(name, mode), _pattern(name, last)
    parts = [part for number, target in enumerate(targets, 1) for part in _searchable(name, number, target)]
    if pattern is None:
        return Literal(None, _BOOL)
    if chosen == WORD and not words_of(pattern):
        raise PredicateError(
            f"{name}: the pattern {pattern!r} has no word in it; mode => 'word' looks for words, "
            "mode => 'substring' for any text",
            part=name,
        )
    return as_value(any_of([condition(_of_one(name, part, pattern, chosen)) for part in parts]))


def _mode(name: str, mode: Value | None) -> str:
    if mode is None:
        return SUBSTRING
    chosen = mode.value if isinstance(mode, Literal) else None
    if not isinstance(chosen, str) or chosen.lower() not in MODES:
        raise PredicateError(f"{name}: the mode is {mode}; it is 'substring' or 'word'", part=name)
    return chosen.lower()


def _pattern(name: str, pattern: Value) -> str | None:
    if not isinstance(pattern, Literal) or not (is_void(pattern) or is_a.is_string(pattern.type)):
        raise PredicateError(
            f"{name}: the pattern, its last argument, is a constant text, not {pattern}", part=name
        )
    return None if pattern.value is None else str(pattern.value)


def _searchable(name: str, number: int, value: Value) -> Iterator[Value]:
    """The value, or the fields of a struct that can be searched."""
    kind = type_of(value)
    if not is_searchable(kind):
        raise PredicateError(
            f"{name}: argument {number} ({value}) is {type_to_sql(kind)}, which holds no text; it searches "
            "STRING and VARIANT, and ARRAY, MAP and STRUCT with such values in them. CAST it to STRING",
            part=str(value),
        )
    if isinstance(value, Column) and value.order == "collated":
        raise PredicateError(f"{name}: {value} has a collation other than UTF8_BINARY", part=str(value))
    if not isinstance(value, Column) or not is_a.is_struct(kind) or is_variant(kind):
        yield value
        return
    for field in kind:
        if is_searchable(field.type):
            order = string_order(field) if is_a.is_string(field.type) else "binary"
            yield from _searchable(name, number, Column((*value.path, field.name), field.type, order))


def _of_one(name: str, value: Value, pattern: str, mode: str) -> Value:
    literal = Literal(pattern, _TEXT)
    is_plain = isinstance(value, Column) and is_a.is_string(value.type) and name == "search"
    if is_plain and mode == SUBSTRING:
        assert isinstance(value, Column)
        return Match("contains", value, pattern)
    call = call_of(CALLS[name], [Literal(mode, _TEXT), value, literal], _BOOL)
    if not is_plain or not isinstance(call, Call):
        return call
    assert isinstance(value, Column)
    # Rules out most rows, by trigrams and by reading; the call then looks at what stands around the words.
    contained: list[Node] = [Match("contains", value, word) for word in dict.fromkeys(words_of(pattern))]
    return all_of([*contained, condition(call)])
