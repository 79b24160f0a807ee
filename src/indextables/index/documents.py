"""Nested values as documents: what an index has of structs, arrays, maps and variants.

A struct is an object of its fields, a map one of its keys, and a variant is the document it holds. A `json`
field has every value with its path; a `text` field has the values as several texts.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from indextables.index.tokens import PAIRING, json_leaves, leaf_text, tokenizer_of
from indextables.model.types import holds_variants, is_variant
from indextables.model.variants import variant_value


def documents_of(column: pa.Array, tokenizer: str = "raw") -> list[Any]:
    """The value of each row as Python has it: dicts, lists and plain values; None for null.

    The first version of a tokenizer had no objects of maps, only lists of their keys and values; a field of
    that version still means those.
    """
    rule = tokenizer_of(tokenizer)
    if rule.base in PAIRING and rule.version == 1:
        return column.to_pylist()
    rows = column.to_pylist(maps_as_pydicts="lossy")
    if not holds_variants(column.type):
        return rows
    return [_without_variants(row, column.type) for row in rows]


def texts_inside(column: pa.Array) -> pa.ListArray:
    """The values in each row as texts, whatever their names; null for null."""
    return pa.array(
        [
            None if row is None else [leaf_text(leaf) for _, leaf in json_leaves(row, is_text=False)]
            for row in documents_of(column)
        ],
        pa.list_(pa.string()),
    )


def _without_variants(value: Any, kind: pa.DataType) -> Any:
    """A value with the documents that the variants in it hold."""
    if value is None:
        return None
    if is_variant(kind):
        return variant_value(value["value"], value["metadata"])
    if pa.types.is_struct(kind):
        return {field.name: _without_variants(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return {key: _without_variants(one, kind.item_type) for key, one in value.items()}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_without_variants(one, kind.value_type) for one in value]
    return value
