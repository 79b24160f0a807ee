"""What `search` and `isearch` can be asked: the functions, their modes, and the types they search."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as is_a

from indextables.model.types import is_variant

SUBSTRING, WORD = MODES = ("substring", "word")
CALLS = {"search": "indextables_search", "isearch": "indextables_isearch"}
"""The functions, and the names of the calls they become: the mode, one value, the pattern."""


def is_searchable(kind: pa.DataType) -> bool:
    """Whether there may be texts in values of a type."""
    if is_a.is_string(kind) or is_a.is_large_string(kind) or is_a.is_null(kind) or is_variant(kind):
        return True
    if is_a.is_list(kind) or is_a.is_large_list(kind):
        return is_searchable(kind.value_type)
    if is_a.is_map(kind):
        return is_searchable(kind.item_type)
    return bool(is_a.is_struct(kind) and any(is_searchable(field.type) for field in kind))
