"""Which values `search` and `isearch` find: texts, and texts inside nested values.

An answer is true where a text matches, null where none does and one is null, and false elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_a

from indextables.lazy import pc
from indextables.model.types import is_variant
from indextables.model.variants import texts_in_variants
from indextables.predicate.evaluate.texts import contain_text
from indextables.predicate.searchable import CALLS, WORD, is_searchable
from indextables.predicate.tree import Call, Literal, type_of
from indextables.predicate.word_breaks import have_words, words_of

Test = Callable[[pa.Array], pa.Array]


def searched(call: Call, args: Sequence[Any], lowered: Test) -> pa.Array:
    """The answer of a call for every row. `lowered` makes texts lower case, as SQL's `lower` does."""
    mode, pattern = (arg.value for arg in (call.args[0], call.args[2]) if isinstance(arg, Literal))
    test = _test(mode, pattern, lowered if call.name == CALLS["isearch"] else None)
    values = args[1]
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    # The type that was declared: arrays may have lost what tells a variant from a struct.
    return _found(whole, type_of(call.args[1]), test)


def _test(mode: str, pattern: str, lowered: Test | None) -> Test:
    needle = pattern if lowered is None else lowered(pa.array([pattern], pa.string()))[0].as_py()
    words = words_of(needle) if mode == WORD else []

    def test(texts: pa.Array) -> pa.Array:
        compared = texts if lowered is None else lowered(texts)
        return have_words(compared, words) if mode == WORD else contain_text(compared, needle)

    return test


def _found(values: pa.Array, kind: pa.DataType, test: Test) -> pa.Array:
    if is_a.is_null(kind):
        return pa.nulls(len(values), pa.bool_())
    if is_variant(kind):
        return _any_of(texts_in_variants(values), pa.string(), test)
    if is_a.is_list(kind) or is_a.is_large_list(kind):
        return _any_of(values, kind.value_type, test)
    if is_a.is_map(kind):
        # The values of a map, with the offsets and nulls of the map; Arrow wants both to begin at its start.
        values = pa.concat_arrays([values])
        lists = pa.ListArray.from_arrays(values.offsets, values.items, mask=pc.is_null(values))
        return _any_of(lists, kind.item_type, test)
    if is_a.is_struct(kind):
        answers = [
            pc.if_else(pc.is_valid(values), _found(values.field(at), field.type, test), _NULL)
            for at, field in enumerate(kind)
            if is_searchable(field.type)
        ]
        return reduce(pc.or_kleene, answers)
    return test(values.cast(pa.string()) if is_a.is_large_string(kind) else values)


def _any_of(lists: pa.Array, kind: pa.DataType, test: Test) -> pa.Array:
    """The answers for the items of each row, which are of a type, as one."""
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    owner = np.repeat(np.arange(len(lists)), sizes)
    answers = _found(lists.flatten(), kind, test)
    hits = pc.fill_null(answers, False).to_numpy(zero_copy_only=False)
    is_hit, is_open = np.zeros(len(lists), bool), np.zeros(len(lists), bool)
    is_hit[owner[hits]] = True
    is_open[owner[pc.is_null(answers).to_numpy(zero_copy_only=False)]] = True
    undecided = pc.or_(pc.is_null(lists), pa.array(is_open & ~is_hit))
    return pc.if_else(undecided, _NULL, pa.array(is_hit))


# Taken out of an array: making a scalar from a Python value loads pandas.
_NULL = pa.nulls(1, pa.bool_())[0]
