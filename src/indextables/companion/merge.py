"""MERGE SPLITS of a companion: the indexes of small splits become one, and the source is not read.

Lists are joined, and source maps and page maps put one after the other. Files that are gone stay masked until
a refresh builds their split again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from indextables.companion.build import IndexForm, SplitPlace, write_split
from indextables.companion.refresh import MOST_FILES
from indextables.companion.source_map import (
    CoveredFile,
    covered_keys,
    indexed_types,
    read_source_map,
    stored_page_map,
)
from indextables.display.plain import counted
from indextables.index.build.merge import merge_indexes
from indextables.index.read.lookup import Index
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.ops.foreign_rows import is_companion
from indextables.ops.outcomes import DRY_RUN, NO_ACTION, SUCCESS, MergeResult
from indextables.ops.progress import Progress, silent, watched
from indextables.ops.rewrite.merge import OPERATION, MergeRequest, plan_by_log, run_merge
from indextables.ops.rewrite.replace import commit_or_discard, replace_plan
from indextables.ops.rewrite.rows import discard
from indextables.split.layout import SplitRef
from indextables.split.open_splits import damaged, open_index


def merge_splits(log: TransactionLog, request: MergeRequest, progress: Progress = silent) -> MergeResult:
    """Turn small splits into larger ones, of a table with rows or of a companion."""
    own = log.snapshot(max_staleness_s=0)
    if is_companion(own):
        return _run(log, own, request, progress)
    return run_merge(log, request, progress, own)


def _run(log: TransactionLog, own: Snapshot, request: MergeRequest, progress: Progress) -> MergeResult:
    plan = plan_by_log(own, request, log.runtime.clock.now_ms())
    groups = list(alike(group.sources for group in plan.groups))
    sources = [add for group in groups for add in group]
    if request.dry_run:
        return _result(log, DRY_RUN, groups, None, f"would merge {counted(len(sources), 'split')}")
    if not groups:
        return _result(log, NO_ACTION, groups, (), "there is nothing to merge")
    merged: list[AddAction] = []
    try:
        results = (_merged_split(own, group) for group in groups)
        merged.extend(watched(results, progress, "Merging splits", len(groups)))
    except BaseException:
        discard(log.store, merged)
        raise
    commit = replace_plan(own, OPERATION, sources, merged, data_change=False)
    version = commit_or_discard(log, commit, merged).version
    message = f"merged into {counted(len(merged), 'split')} in version {version}"
    return _result(log, SUCCESS, groups, merged, message)


def alike(planned: Iterable[Sequence[AddAction]]) -> Iterator[list[AddAction]]:
    """Of the splits planned to become one, those that can: indexed alike, and with not too many files."""
    for sources in planned:
        by_form: dict[str, list[AddAction]] = defaultdict(list)
        for add in sources:
            form = str(sorted(indexed_types(add).items()))
            files = sum(len(covered_keys(one)) for one in by_form[form])
            if files + len(covered_keys(add)) > MOST_FILES:
                if len(by_form[form]) > 1:
                    yield by_form[form]
                by_form[form] = []
            by_form[form].append(add)
        yield from (group for group in by_form.values() if len(group) > 1)


def _merged_split(own: Snapshot, group: Sequence[AddAction]) -> AddAction:
    indexes: list[Index] = []
    files: list[CoveredFile] = []
    page_maps: list[memoryview | None] = []
    for add in group:
        ref = SplitRef.of(add)
        index = open_index(own.reading, ref, with_rows=True)
        source_map = read_source_map(own.reading, ref)
        if index is None or index.rows != source_map.rows:
            raise damaged(ref.path, "it is not one of the rows of its source map")
        indexes.append(index)
        files += source_map.files
        page_maps += [stored_page_map(own.reading, ref, file) for file in source_map.files]
    spec, types = indexes[0].spec, indexed_types(group[0])
    schema = pa.schema([own.schema.field(name) for name in spec.columns])
    form = IndexForm(spec, schema, types, spec.columns)
    return write_split(SplitPlace.of(own), form, merge_indexes(indexes), files, page_maps)


def _result(
    log: TransactionLog,
    status: str,
    groups: Sequence[Sequence[AddAction]],
    merged: Sequence[AddAction] | None,
    message: str,
) -> MergeResult:
    return MergeResult(
        table_path=log.uri,
        status=status,
        merged_files=sum(map(len, groups)),
        merge_groups=len(groups),
        original_size_bytes=sum(add.size for group in groups for add in group),
        merged_size_bytes=None if merged is None else sum(add.size for add in merged),
        skipped_files=0,
        message=message,
    )
