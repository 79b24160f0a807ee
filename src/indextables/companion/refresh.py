"""Bringing a companion up to date with its source: new files are indexed, splits of gone files removed.

The plan is a difference of keys, made from two logs. It is carried out in commits of up to
`SPLITS_PER_COMMIT` new splits, and readers answer alike before, between and after them. So a refresh that
dies is continued by the next one: what was committed is covered, and splits that no version names are
removed by PURGE. A commit by somebody else in between is a conflict, after which the plan is made anew, so
no file is ever indexed twice. Much work is done by the workers of the runtime, on a Spark session its
executors. The source is never written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from indextables.companion.build import IndexForm, SplitPlace, build_split
from indextables.companion.settings import CompanionSettings, Indexed
from indextables.companion.source import ParquetFiles, Source, SourceFile
from indextables.companion.source_map import covered_keys, indexed_types
from indextables.errors import ConflictError, SchemaError
from indextables.log.commit.changes import properties, removals
from indextables.log.commit.conflicts import CommitPlan, Rule
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import Action, AddAction, TxnAction
from indextables.ops.outcomes import CompanionStatus, RefreshResult
from indextables.ops.progress import Progress, silent, watched
from indextables.ops.rewrite.replace import commit_or_discard
from indextables.ops.rewrite.rows import discard
from indextables.options import Options
from indextables.runtime import LOCAL

MOST_FILES = 1000
"""A split covers at most this many files: their keys stand in the log."""
MOST_DEAD = 0.3
"""Beyond this share of files that are gone, the others of a split are indexed again."""
ATTEMPTS = 3
"""How often a commit is planned anew because another one came first."""
SPLITS_PER_COMMIT = 32
"""So many new splits become part of a companion at once; a refresh that dies loses no more than these."""
DISTRIBUTE_BYTES = 256 << 20
"""Source files of this size together are indexed by the workers of the runtime, less by this process."""


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """What a refresh will do."""

    groups: tuple[tuple[SourceFile, ...], ...]
    """The files to index, those of one new split together."""
    invalidated: tuple[AddAction, ...]
    """The splits that go: all their files are gone, or those that are left are indexed again."""

    @property
    def files(self) -> int:
        """How many files will be indexed."""
        return sum(map(len, self.groups))

    @property
    def source_bytes(self) -> int:
        """How large they are."""
        return sum(item.file.size for group in self.groups for item in group)

    def next_commit(self) -> RefreshPlan:
        """What the next commit does. Splits go with the last one: until then they cover what they covered."""
        if len(self.groups) <= SPLITS_PER_COMMIT:
            return self
        return RefreshPlan(self.groups[:SPLITS_PER_COMMIT], ())


def plan_refresh(
    adds: Sequence[AddAction], files: Sequence[SourceFile], indexed: Indexed, options: Options
) -> RefreshPlan:
    """The difference between what the splits of a companion cover and the live files of its source."""
    left = {item.key: item for item in files}
    invalidated = []
    for add in adds:
        keys = covered_keys(add)
        live = [key for key in keys if key in left]
        sound = indexed.answers(indexed_types(add)) and len(live) >= (1 - MOST_DEAD) * len(keys)
        if live and sound:
            for key in live:
                del left[key]
        else:
            invalidated.append(add)
    return RefreshPlan(tuple(_groups(list(left.values()), options)), tuple(invalidated))


def _groups(items: Sequence[SourceFile], options: Options) -> Iterator[tuple[SourceFile, ...]]:
    """Files that go into one split: of one partition, up to its target size."""
    most_bytes, most_rows = options.write.target_split_bytes, options.write.max_rows_per_split

    def partition(item: SourceFile) -> str:
        return repr(item.file.partition_values)

    for _, of_partition in groupby(sorted(items, key=partition), key=partition):
        group: list[SourceFile] = []
        size = rows = 0
        for item in of_partition:
            more = item.file.num_records or 0
            full = size + item.file.size > most_bytes or rows + more > most_rows or len(group) == MOST_FILES
            if group and full:
                yield tuple(group)
                group, size, rows = [], 0, 0
            group.append(item)
            size += item.file.size
            rows += more
        if group:
            yield tuple(group)


def run_refresh(
    log: TransactionLog, *, version: int | None = None, dry_run: bool = False, progress: Progress = silent
) -> RefreshResult:
    """Index what is new in the source, at its newest version or another one, and forget what is gone."""
    clock = log.runtime.clock
    began_s = clock.monotonic_s()
    results: list[RefreshResult] = []
    attempt, is_complete = 0, False
    while not is_complete:
        attempt += 1
        try:
            result, is_complete = _refreshed(log, version, progress, results, dry_run=dry_run)
        except ConflictError:
            # Another refresh, a merge or a change of properties came first.
            if attempt == ATTEMPTS:
                raise
            continue
        results.append(result)
        attempt = 0
    return replace(_together(results), duration_ms=int((clock.monotonic_s() - began_s) * 1000))


def _refreshed(
    log: TransactionLog,
    version: int | None,
    progress: Progress,
    before: Sequence[RefreshResult],
    *,
    dry_run: bool,
) -> tuple[RefreshResult, bool]:
    """The result of the next commit, and whether it is the last one; `before` are those of this refresh."""
    own = log.snapshot(max_staleness_s=0)
    settings = CompanionSettings.of(own)
    if before and version is None:
        # One refresh indexes one version of the source, which may move on meanwhile.
        version = before[0].source_version
    source = settings.open(own, version)
    indexed = settings.on(source)
    if not indexed.spec.fields:
        raise SchemaError(
            f"{source.uri} has none of the columns that {log.uri} indexes: "
            f"{', '.join(settings.spec.columns)}. Make another companion for the columns it has now.",
            uri=log.uri,
        )
    whole = plan_refresh(own.adds(), settings.files_of(source), indexed, own.settings)
    plan = whole if dry_run else whole.next_commit()
    is_last = plan is whole
    if isinstance(source, ParquetFiles):
        source = source.grown(item for group in plan.groups for item in group)
        settings = replace(settings, schema=source.columns.schema)
    settings = replace(settings, source_id=source.id)
    if dry_run:
        return _result(log, source, plan, "dry_run", f"{_counted(plan.files)} would be indexed"), True
    done = sum(result.splits_created for result in before)

    def continued(stage: str, at: int, _total: int) -> None:
        progress(stage, done + at, done + len(whole.groups))

    built: list[AddAction] = []
    try:
        results = _built(log, own, IndexForm.of(settings, source), source, plan)
        built.extend(watched(results, continued, "index", len(plan.groups)))
    except BaseException:
        discard(log.store, built)
        raise
    commit = refresh_commit(own, settings, source, plan, built, is_last=is_last)
    if commit is None:
        return _result(log, source, plan, "no_action", "the index is up to date"), is_last
    commit_or_discard(log, commit, built)
    return _result(log, source, plan, "success", f"{_counted(plan.files)} indexed", built=built), is_last


def _built(
    log: TransactionLog, own: Snapshot, form: IndexForm, source: Source, plan: RefreshPlan
) -> Iterator[AddAction]:
    """The new splits: of much work made by the workers of the runtime, else one after the other here."""
    place, workers = SplitPlace.of(own), log.runtime.workers
    if workers.name == LOCAL.workers.name or plan.source_bytes < DISTRIBUTE_BYTES:
        return (build_split(place, form, source.rows_in, group) for group in plan.groups)
    return workers.map(partial(build_split, place, form, source.rows_in), plan.groups)


def _together(results: Sequence[RefreshResult]) -> RefreshResult:
    """One result for the commits of a refresh."""
    if len(results) == 1:
        return results[0]
    committed = [result for result in results if result.status == "success"]
    files = sum(result.parquet_files_indexed for result in committed)
    return replace(
        results[-1],
        status="success",
        splits_created=sum(result.splits_created for result in committed),
        splits_invalidated=sum(result.splits_invalidated for result in committed),
        parquet_files_indexed=files,
        parquet_bytes_downloaded=sum(result.parquet_bytes_downloaded or 0 for result in committed),
        split_bytes_uploaded=sum(result.split_bytes_uploaded or 0 for result in committed),
        message=f"{_counted(files)} indexed in {len(committed)} commits",
    )


def planned_build(
    log: TransactionLog, settings: CompanionSettings, version: int | None = None
) -> RefreshResult:
    """What the first refresh of a companion would do, which has not been made."""
    source = settings.opened(log.options, log.runtime, version)
    plan = plan_refresh((), settings.files_of(source), settings.on(source), log.options)
    return _result(log, source, plan, "dry_run", f"{_counted(plan.files)} would be indexed")


def refresh_commit(
    own: Snapshot,
    settings: CompanionSettings,
    source: Source,
    plan: RefreshPlan,
    adds: Sequence[AddAction],
    *,
    is_last: bool = True,
) -> CommitPlan | None:
    """A commit of a refresh, the last of which says which version is indexed; None with nothing to record."""
    changed = properties(own, _changed_properties(own, settings))
    last = own.txns.get(source.id)
    newer = source.version is not None and (last is None or last.version < source.version)
    if not adds and not plan.invalidated and not changed:
        return None

    def actions(base: Snapshot) -> Sequence[Action]:
        return [*changed, *removals(base, plan.invalidated), *adds]

    txn = None
    if newer and is_last and source.version is not None:
        txn = TxnAction(app_id=source.id, version=source.version)
    return CommitPlan(
        "REFRESH",
        Rule.EXCLUSIVE,
        actions,
        sources=frozenset(add.path for add in plan.invalidated),
        read_version=own.version,
        written_for=own.metadata,
        purges=own.segment.purges,
        txn=txn,
        parameters={"source": source.uri, "sourceVersion": source.version},
        metrics={"numIndexedFiles": plan.files},
    )


def _changed_properties(own: Snapshot, settings: CompanionSettings) -> Mapping[str, str]:
    current = own.metadata.configuration
    return {key: value for key, value in settings.properties().items() if current.get(key) != value}


def status_of(log: TransactionLog) -> CompanionStatus:
    """How far a companion is up to date with the newest version of its source; two logs are read."""
    own = log.snapshot(max_staleness_s=0)
    settings = CompanionSettings.of(own)
    source = settings.open(own)
    indexed = settings.on(source)
    live = {item.key for item in source.files}
    to_index = {item.key for item in settings.files_of(source)}
    adds = own.adds()
    answering = [add for add in adds if indexed.answers(indexed_types(add))]
    covered = {key for add in answering for key in covered_keys(add)}
    every = {key for add in adds for key in covered_keys(add)}
    last = own.txns.get(source.id)
    indexed_version = None if last is None else last.version
    return CompanionStatus(
        table_path=log.uri,
        source_path=source.uri,
        source_version=source.version,
        indexed_version=source.version if to_index <= covered else indexed_version,
        files_indexed=len(covered & live),
        files_stale=len(to_index - covered),
        files_left_out=len(live - to_index - covered),
        files_gone=len(every - live),
        splits=len(adds),
        index_bytes=sum(add.size for add in adds),
    )


def _counted(files: int) -> str:
    return f"{files} file{'' if files == 1 else 's'}"


def _result(
    log: TransactionLog,
    source: Source,
    plan: RefreshPlan,
    status: str,
    message: str,
    *,
    built: Sequence[AddAction] = (),
) -> RefreshResult:
    done = status == "success"
    return RefreshResult(
        table_path=log.uri,
        source_path=source.uri,
        status=status,
        source_version=source.version,
        splits_created=len(plan.groups),
        splits_invalidated=len(plan.invalidated),
        parquet_files_indexed=plan.files,
        parquet_bytes_downloaded=plan.source_bytes if done else None,
        split_bytes_uploaded=sum(add.size for add in built) if done else None,
        duration_ms=0,
        message=message,
    )
