"""Says in the log of the process for which columns files could not be skipped, as they lack statistics."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from indextables.lazy import later, pa, pc

if TYPE_CHECKING:
    from indextables.predicate.prune import rule
    from indextables.predicate.tree import Node
else:
    rule = later("indextables.predicate.prune.rule")

_log = logging.getLogger(__name__)


def shows_missing(node: Node | None) -> bool:
    """Whether a scan with this filter has to look for missing statistics: only somebody debugging asks."""
    return node is not None and _log.isEnabledFor(logging.DEBUG)


def without_bounds(files: pa.Table, column: str) -> int:
    """How many files, in the form of `files()`, have neither a minimum nor a maximum of a column."""
    bounded = pa.repeat(False, files.num_rows)
    for half in ("min", "max"):
        values = files.column(half).combine_chunks()
        place = values.type.get_field_index(column)
        if place >= 0:
            bounded = pc.or_(bounded, pc.is_valid(pc.struct_field(values, [place])))
    return int(files.num_rows - bounded.true_count)


def log_missing(node: Node, files: pa.Table, partition_columns: Collection[str]) -> None:
    """Log, once per column of the filter, how many of the files that stay lack statistics of it."""
    for column in sorted(rule.columns_needed(node, partition_columns).statistics):
        count = without_bounds(files, column)
        if count:
            _log.debug(
                "Statistics missing for column %r, cannot skip file (%d of the %d files to read)",
                column, count, files.num_rows,
            )  # fmt: skip
