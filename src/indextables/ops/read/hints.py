"""Why a query finds nothing, and what it might have meant."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from indextables.errors import SplitError, StorageError
from indextables.index.query.tree import Boolean, Boosted, Node, Query, Words
from indextables.index.settings import STRING
from indextables.log.snapshot import Snapshot
from indextables.split.layout import SplitRef
from indextables.split.open_splits import cached_index

_LOOKED_FOR, _LOOKED_INTO = 1000, 8
"""How many splits are looked at for an open index, and how many of their dictionaries are searched."""
_MOST_MISSING = 3


def spelling_notes(snapshot: Snapshot, query: Query, refs: Iterable[SplitRef]) -> list[str]:
    """Hints about whole values that splits with an open index hold in another case."""
    values = list(dict.fromkeys(_whole_values(query.node, query)))
    if not values:
        return []
    other_spellings: dict[tuple[str, str], str] = {}
    held = (cached_index(snapshot.store, ref) for ref in itertools.islice(refs, _LOOKED_FOR))
    # A dictionary counts hidden rows too.
    whole = (one for one in held if one is not None and one.live is None)
    for index in itertools.islice(whole, _LOOKED_INTO):
        for column, value in values:
            others = _other_cases(value)
            try:
                counts = index.frequencies([(column, other.encode()) for other in others])
            except (SplitError, StorageError):
                # The search itself says what is wrong with it.
                continue
            present = [other for other, count in zip(others, counts, strict=True) if count]
            if present:
                other_spellings.setdefault((column, value), present[0])
    return [
        f"column {column!r} matches whole values, with upper and lower case: {value!r} finds nothing, "
        f"{other!r} is there"
        for (column, value), other in other_spellings.items()
    ]


def missing_notes(query: Query, finds: Callable[[Query], bool]) -> list[str]:
    """Which pieces of a plain text are in no row; `finds` tells whether a query finds any.

    A piece that is somewhere costs a look into one split or a few, one that is nowhere a look into all: the
    first few of these are named.
    """
    if not query.pieces:
        return []
    absent = (piece for piece, node in query.pieces if not finds(replace(query, node=node, pieces=())))
    missing = list(itertools.islice(absent, _MOST_MISSING))
    if not missing:
        return ["each word of the text is in some row, but no row has all of them: leave some out"]
    return [f"no row has all words of the text: none holds {' or '.join(map(repr, missing))}"]


def _whole_values(node: Node, query: Query) -> Iterator[tuple[str, str]]:
    if isinstance(node, Boolean):
        for part in (*node.must, *node.should):
            yield from _whole_values(part, query)
    elif isinstance(node, Boosted):
        yield from _whole_values(node.node, query)
    elif isinstance(node, Words) and len(node.words) == 1 and node.prefix is None:
        item = query.spec.get(node.column)
        if item is not None and item.kind == STRING:
            yield node.column, node.words[0]


def _other_cases(value: str) -> list[str]:
    others = (value.upper(), value.lower(), value.capitalize(), value.title(), value.swapcase())
    return [other for other in dict.fromkeys(others) if other != value]
