"""DESCRIBE INDEXTABLES COMPONENT SIZES: what the bytes of every split are spent on.

One row per split and component: each column of its rows, each part of its
index, and the footer. Only footers are read, side by side, on Spark's
executors where there are many.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.ops.existence import as_store, portable, workers_for
from indextables.ops.maintain.repair.footers import parquet_metadata
from indextables.ops.outcomes import rows_to_arrow
from indextables.split.layout import TAIL, SplitRef, read_footer
from indextables.split.source import SplitFile
from indextables.storage.store import Store, StoreSpec

if TYPE_CHECKING:
    import pyarrow as pa

COLUMN, INDEX, FOOTER = "column", "index", "footer"


@dataclass(frozen=True, slots=True)
class Component:
    """One part of one split; its fields are the columns of the command."""

    path: str
    num_rows: int
    component: str
    name: str | None
    size_bytes: int
    uncompressed_bytes: int | None


def component_rows(log: TransactionLog) -> pa.Table:
    """The components of every live split, in path order."""
    adds = log.snapshot(max_staleness_s=0).adds()
    workers = workers_for(log.runtime, len(adds))
    work = partial(components_of, portable(log.store, workers))
    return rows_to_arrow(Component, [part for parts in workers.map(work, adds) for part in parts])


def components_of(store: Store | StoreSpec, add: AddAction) -> list[Component]:
    """The components of one split, read from its footer."""
    root = as_store(store)
    footer = read_footer(SplitFile.of(root, add.path), SplitRef.of(add))
    metadata = parquet_metadata(footer)
    stored: Counter[str] = Counter()
    plain: Counter[str] = Counter()
    for group in range(metadata.num_row_groups):
        for at in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(at)
            name = chunk.path_in_schema.split(".")[0]
            stored[name] += chunk.total_compressed_size
            plain[name] += chunk.total_uncompressed_size
    rows = footer.manifest.rows
    columns = [Component(add.path, rows, COLUMN, name, stored[name], plain[name]) for name in stored]
    index = [
        Component(add.path, rows, INDEX, name, size, None)
        for name, size in sorted(footer.manifest.components.items())
    ]
    return [*columns, *index, Component(add.path, rows, FOOTER, None, len(footer.body) + TAIL, None)]
