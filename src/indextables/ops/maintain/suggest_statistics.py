"""ANALYZE ... FOR SKIPPING: for which columns statistics pay, judged by filters and the files of the log.

A read never writes, so filters are only remembered in the process that ran them. This verb
puts them, or those the caller gives, to the statistics of the newest version: a column pays
if its statistics rule out files for one of the filters, or could, because files lack them.
The suggestion becomes a table property only if the request says so. With `stats.adaptive`,
MERGE SPLITS and CHECKPOINT then keep statistics of those columns only. Statistics only rule
files out, so whatever is suggested, no query returns fewer rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from indextables.errors import TableError
from indextables.log.scans import FILTERS
from indextables.log.transaction_log import TransactionLog
from indextables.model.names import quoted_name, require_name
from indextables.model.stats import statistics_fields
from indextables.ops.outcomes import ColumnSuggestion, StatisticsSuggestion
from indextables.options import PREFIX
from indextables.predicate.prune.missing import without_bounds
from indextables.predicate.prune.rule import conjuncts, prune_table
from indextables.predicate.tree import Node, columns_of
from indextables.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.log.snapshot import Snapshot

SUGGESTED = f"{PREFIX}stats.suggestedColumns"


@dataclass(frozen=True, slots=True)
class SuggestionRequest:
    """What the statistics are judged by; without filters, by those this process has run on the table."""

    columns: Sequence[str] | None = None
    """Suggest exactly these, whatever the filters say."""
    filters: Sequence[Any] | None = None
    store: bool = False


def run_suggest_statistics(log: TransactionLog, request: SuggestionRequest) -> StatisticsSuggestion:
    """Judge every column that can have statistics; with `store`, note the suggestion in the table."""
    snapshot = log.snapshot(max_staleness_s=0)
    filters = _filters(snapshot, request)
    names = [item.name for item in statistics_fields(snapshot.schema, snapshot.partition_columns)]
    chosen = None if request.columns is None else {require_name(names, name) for name in request.columns}
    files = snapshot.files()
    columns = suggest_statistics(names, filters, files, snapshot.partition_columns, chosen)
    suggestion = StatisticsSuggestion(snapshot.version, columns)
    if not request.store:
        return suggestion
    version = log.update_properties({SUGGESTED: _as_property(suggestion.suggested, snapshot.store.uri)})
    return StatisticsSuggestion(version, columns, stored=True)


def _filters(snapshot: Snapshot, request: SuggestionRequest) -> list[Node]:
    if request.filters is None:
        return FILTERS.of(snapshot.store.uri)
    nodes = (snapshot.filter_of(condition) for condition in request.filters)
    return [node for node in nodes if node is not None]


def suggest_statistics(
    names: Sequence[str],
    filters: Sequence[Node],
    files: pa.Table,
    partition_columns: Sequence[str],
    chosen: set[str] | None = None,
) -> tuple[ColumnSuggestion, ...]:
    """Judge columns by filters and by the files of a version, in the form of `files()`."""
    times, skipped = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for node in filters:
        for name in {column.name for column in columns_of(node)} & times.keys():
            times[name] += 1
        for part in conjuncts(node):
            ruled_out = prune_table(
                part, files, files.schema, partition_columns
            ).metrics.skipped_by_statistics
            for name in {column.name for column in columns_of(part)} & skipped.keys():
                skipped[name] += ruled_out
    result = []
    for name in names:
        missing = without_bounds(files, name)
        pays = bool(times[name]) and bool(skipped[name] or missing)
        suggested = pays if chosen is None else name in chosen
        reason = _reason(times[name], skipped[name], missing) if chosen is None else "named by the caller"
        reason = reason if suggested or chosen is None else "not named by the caller"
        result.append(
            ColumnSuggestion(name, suggested, times[name], files.num_rows, skipped[name], missing, reason)
        )
    return tuple(result)


def _reason(times: int, skipped: int, missing: int) -> str:
    if not times:
        return "no filter uses it"
    if skipped:
        return "its statistics rule out files"
    return "files lack its statistics" if missing else "its statistics rule out no file"


def _as_property(names: Sequence[str], uri: str) -> str:
    if not names:
        raise TableError(
            f"{uri}: there is no column to suggest, so nothing was stored: no filter of this process was "
            "helped by statistics. Run the queries first, or name columns or filters.",
            uri=uri,
        )
    for name in names:
        if "," in name:
            raise TableError(
                f"{uri}: column {name!r} has a comma in its name and cannot be part of a list of columns, so "
                "nothing was stored. Name the other columns.",
                uri=uri,
            )
    return ",".join(quoted_name(name) if "`" in name else name for name in names)
