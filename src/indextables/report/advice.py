"""What is worth doing for a table, by the plans of the verbs that would do it.

Each piece of advice says what was found, what the verb would change, and the
statement. A verb that would do nothing is not advised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from indextables.display.plain import size_text
from indextables.errors import Error
from indextables.lazy import pc
from indextables.log.segment import ranges
from indextables.log.transaction_log import MOST_SINCE_CHECKPOINT, TransactionLog
from indextables.model.names import quoted_name, quoted_text
from indextables.ops.maintain.describe import Description
from indextables.ops.maintain.purge import PurgeRequest
from indextables.ops.maintain.purge import plan_for as plan_purge
from indextables.ops.rewrite.merge import MergeRequest, plan_by_log
from indextables.options import Options
from indextables.table import Table

if TYPE_CHECKING:
    from indextables.delta import DeltaTable

_HISTORY_SHARE = 2
"""Files kept for older versions are worth a word when they take more than 1 / this of the live ones."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Something worth doing: why, what it changes, and the statement that does it."""

    text: str
    statement: str | None = None
    effect: str = ""


def table_advice(table: Table, state: Description) -> list[Recommendation]:
    """Advice for an IndexTables table."""
    log, path = table.log, quoted_text(state.table_path)
    advice = [*_merge(table, path), *_purge(log, state, path), *_checkpoint(log, state, path)]
    if state.files_in_cooldown:
        text = f"{_several(state.files_in_cooldown, 'split')} could not be merged and wait for another try."
        effect = "The list says why each of them failed, and until when it is left alone."
        advice.append(Recommendation(text, f"DESCRIBE INDEXTABLES SKIPPED FILES {path}", effect))
    if state.num_rows is None:
        advice.append(_uncounted("splits"))
    return advice


def _merge(table: Table, path: str) -> list[Recommendation]:
    """What MERGE SPLITS would do now, with the settings of the table."""
    log = table.log
    snapshot = log.snapshot()
    plan = plan_by_log(snapshot, MergeRequest(), log.runtime.clock.now_ms())
    if not plan.groups:
        return []
    files, groups = len(plan.sources), len(plan.groups)
    groups_of_one = sum(len(group.sources) == 1 for group in plan.groups)
    if groups_of_one == groups:
        text = f"{_several(files, 'split')} were indexed by other settings than the table has now."
        effect = f"They are indexed again, so that searches need not scan their {size_text(plan.size_bytes)}."
    else:
        text = (
            f"{files:,} of {plan.considered:,} splits are small: {size_text(plan.size_bytes)} together, "
            f"{size_text(plan.size_bytes / files)} on average."
        )
        effect = (
            f"{files:,} splits become {groups:,}, so that a query over all of them opens "
            f"{plan.considered - files + groups:,} files instead of {plan.considered:,}."
        )
    return [Recommendation(text, f"MERGE SPLITS {path}", effect)]


def _purge(log: TransactionLog, state: Description, path: str) -> list[Recommendation]:
    """What PURGE INDEXTABLE would delete now, and what it would keep for whom."""
    try:
        plan = plan_purge(log, PurgeRequest(dry_run=True), log.snapshot(max_staleness_s=0))
    except Error as unknown:
        return [Recommendation(f"Which files no version needs cannot be told: {unknown.message}")]
    advice, retained = [], plan.retained
    if plan.orphans:
        size = size_text(sum(file.size for file in plan.orphans))
        text = f"{_several(len(plan.orphans), 'file')} of {size} belong to no version any more."
        advice.append(Recommendation(text, f"PURGE INDEXTABLE {path}", f"{size} are freed."))
    if retained.young:
        text = (
            f"{_several(retained.young, 'file')} of {size_text(retained.young_bytes)} belong to no version, "
            f"and are younger than {plan.hours:g} hours: a running write may still commit them."
        )
        effect = (
            f"PURGE deletes them once they are older than {plan.hours:g} hours; nothing is to be done now."
        )
        advice.append(Recommendation(text, None, effect))
    if retained.history_bytes * _HISTORY_SHARE > max(1, state.size_bytes):
        size = size_text(retained.history_bytes)
        text = (
            f"{_several(retained.history, 'file')} of {size} are kept only for the older versions "
            f"{ranges(plan.needed.older)}."
        )
        effect = (
            f"Up to {size} are freed by the next PURGE, and those versions can no longer be read. "
            "Leave it if you want to go back to them."
        )
        advice.append(Recommendation(text, f"TRUNCATE INDEXTABLES TIME TRAVEL {path}", effect))
    return advice


def _checkpoint(log: TransactionLog, state: Description, path: str) -> list[Recommendation]:
    behind = state.version - (state.checkpoint_version or 0)
    interval = log.snapshot().settings.checkpoint.interval
    if behind <= (MOST_SINCE_CHECKPOINT if interval is None else 2 * interval):
        return []
    text = f"The newest checkpoint is {behind:,} versions behind, and every reader reads them one by one."
    effect = f"A reader begins at version {state.version:,} and reads no older commit."
    return [Recommendation(text, f"CHECKPOINT INDEXTABLES {path}", effect)]


def delta_advice(table: DeltaTable, state: Description, files: pa.Table) -> list[Recommendation]:
    """What to do for a Delta table; the statements are for the system that writes it."""
    advice = []
    small, files_after = _small_files(files, Options.of(None).merge.target_bytes)
    if small - files_after > files_after:
        text = (
            f"{small:,} of {state.num_files:,} files are small: "
            f"{size_text(state.size_bytes / state.num_files)} on average."
        )
        effect = f"About {small:,} files become {files_after:,}. Run it in the system that writes the table."
        advice.append(Recommendation(text, f"OPTIMIZE delta.{quoted_name(table.uri)}", effect))
    if state.num_rows is None:
        advice.append(_uncounted("files"))
    return advice


def _small_files(files: pa.Table, target: int) -> tuple[int, int]:
    """How many files are small, and how many would be left if those of each partition were put together."""
    mask = pc.less(files.column("size"), target // 2)
    values = files.column("partition_values").filter(mask)
    keys = pc.cast(values, pa.string()) if not pa.types.is_struct(values.type) else _keys(values)
    sizes = pa.table({"key": keys, "size": files.column("size").filter(mask)})
    totals = sizes.group_by("key").aggregate([("size", "sum")])
    bins = pc.ceil(pc.divide(totals.column("size_sum").cast(pa.float64()), float(target)))
    return sizes.num_rows, int(pc.sum(bins).as_py() or 0)


def _keys(values: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    names = [field.name for field in values.type]
    if not names:
        return pa.repeat(pa.scalar(""), len(values))
    parts = [pc.fill_null(pc.struct_field(values, name).cast(pa.string()), "") for name in names]
    return pc.binary_join_element_wise(*parts, "\x1f")


def _several(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _uncounted(what: str) -> Recommendation:
    return Recommendation(f"Some {what} do not say how many rows they have, so counting has to open them.")
