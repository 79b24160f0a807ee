"""The first rows of a split that match a query, in the order of some columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from indextables.index.query.tree import Query
from indextables.model.arrays import as_numpy, integers
from indextables.options import Options
from indextables.predicate.evaluate.ordering import spark_order
from indextables.predicate.tree import Node
from indextables.split.filtered import Filtered
from indextables.split.layout import SplitRef
from indextables.split.metrics import Note
from indextables.split.open_splits import open_split
from indextables.split.search import fetch_rows, hits_split
from indextables.storage.store import Store


def sorted_split(
    store: Store,
    ref: SplitRef,
    query: Query,
    schema: pa.Schema,
    columns: Sequence[str],
    *,
    keys: Sequence[tuple[str, bool]],
    where: Node | None,
    limit: int | None,
    options: Options,
    note: Note,
) -> pa.Table:
    """The first `limit` rows that match query and filter; other columns are read only for these rows.

    Keys are columns, each with a flag for descending order. Equal rows keep their order.
    """
    rows = as_numpy(hits_split(store, ref, query, schema, options=options, note=note))
    if where is not None and len(rows):
        zone = options.search.time_zone
        rows = Filtered(open_split(store, ref), ref, schema, where, zone=zone).rows(rows)
    if not len(rows):
        return pa.schema([schema.field(name) for name in columns]).empty_table()
    order = spark_order(fetch_rows(store, ref, schema, [name for name, _ in keys], rows), keys)
    chosen = as_numpy(order if limit is None else order.slice(0, limit))
    ascending = np.sort(chosen)
    found = fetch_rows(store, ref, schema, columns, rows[ascending])
    return found.take(integers(np.searchsorted(ascending, chosen)))
