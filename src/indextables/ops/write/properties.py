"""Changing properties of a table: what no later write or search could use is refused before the commit."""

from __future__ import annotations

from collections.abc import Mapping

from indextables.index.settings import from_options
from indextables.log.transaction_log import TransactionLog
from indextables.ops.table_settings import indexing_of
from indextables.options import Options


def run_update_properties(log: TransactionLog, properties: Mapping[str, str | None]) -> int:
    """Set properties, or remove those given as None; returns the version that has them."""
    snapshot = log.snapshot(max_staleness_s=0)
    after = {**snapshot.metadata.configuration, **properties}
    indexing = indexing_of({key: value for key, value in after.items() if value is not None})
    from_options(Options().over(indexing, log.uri), snapshot.schema)
    return log.update_properties(properties)
