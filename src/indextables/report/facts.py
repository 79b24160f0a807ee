"""The facts of a report: what a table is, how its files are spread, what made it, and what is worth doing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from indextables.display.plain import size_text
from indextables.ops.maintain.describe import Description
from indextables.report.advice import Recommendation, delta_advice, table_advice
from indextables.runtime import LOCAL
from indextables.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.delta import DeltaTable

_SHOWN_VERSIONS = 15
_SHOWN_PARTITIONS = 16
_BIN_BASE = 1 << 14


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a chart: what it stands for, how long it is, and what it says at its end."""

    label: str
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """Everything a report shows."""

    state: Description
    created_ms: int
    history: Sequence[Mapping[str, Any]]
    partitions: Sequence[Bar]
    file_sizes: Sequence[Bar]
    advice: Sequence[Recommendation]


def facts_of(table: Table | DeltaTable) -> ReportFacts:
    """Gather what a report shows, from the log and a listing of the directory; no split is opened."""
    state = table.describe()
    files = table.files(columns=["partition_values", "size"])
    advice = table_advice(table, state) if isinstance(table, Table) else delta_advice(table, state, files)
    return ReportFacts(
        state=state,
        created_ms=LOCAL.clock.now_ms(),
        history=table.history(_SHOWN_VERSIONS).to_pylist(),
        partitions=_partition_bars(files, table.partition_columns),
        file_sizes=_size_bars(files.column("size").to_pylist()),
        advice=advice,
    )


def _partition_bars(files: pa.Table, columns: Sequence[str]) -> list[Bar]:
    """The largest partitions, the rest as one bar."""
    if not columns:
        return []
    totals: dict[str, int] = {}
    for values, size in zip(
        files.column("partition_values").to_pylist(), files.column("size").to_pylist(), strict=True
    ):
        # A value that is not of its column's type makes the whole struct unknown.
        label = ", ".join(f"{name}={values[name]}" for name in columns) if values else "unreadable"
        totals[label] = totals.get(label, 0) + size
    ranked = sorted(totals.items(), key=lambda item: -item[1])
    bars = [Bar(label, size, size_text(size)) for label, size in ranked[:_SHOWN_PARTITIONS]]
    rest = ranked[_SHOWN_PARTITIONS:]
    if rest:
        size = sum(size for _, size in rest)
        bars.append(Bar(f"{len(rest):,} others", size, size_text(size)))
    return bars


def _size_bars(sizes: Sequence[int]) -> list[Bar]:
    """How many files there are per order of magnitude."""
    bins: dict[int, int] = {}
    for size in sizes:
        order = 0
        while size >= _BIN_BASE << (2 * order):
            order += 1
        bins[order] = bins.get(order, 0) + 1
    if not bins:
        return []
    bars = []
    for order in range(min(bins), max(bins) + 1):
        count = bins.get(order, 0)
        bars.append(Bar(f"below {size_text(_BIN_BASE << (2 * order))}", count, f"{count:,}"))
    return bars
