"""Running a check: the files of the log first, then the splits that the log names.

Nothing is written. It works on a table that cannot be opened: whatever fails on
the way is a finding. Only a path that holds no table at all, or a store that
cannot be listed, is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from indextables.display.plain import counted
from indextables.errors import Error
from indextables.log.format.dialect import NATIVE
from indextables.log.format.protocol import check_writable, closed_by
from indextables.log.snapshot import Snapshot
from indextables.log.table_kind import not_a_table
from indextables.log.transaction_log import TransactionLog
from indextables.ops.existence import existing_sizes
from indextables.ops.foreign_rows import is_companion
from indextables.ops.maintain.check.findings import (
    BROKEN,
    NOTE,
    WARNING,
    CheckResult,
    Commands,
    Finding,
    worst_first,
)
from indextables.ops.maintain.check.log_files import LogFacts, log_findings, read_log
from indextables.ops.maintain.check.splits import inspect_splits
from indextables.ops.maintain.purge import Needed, is_split, is_vector_file, needed_paths, own_files
from indextables.ops.progress import Progress, silent
from indextables.options import Options
from indextables.runtime import LOCAL, Runtime
from indextables.storage.store import ObjectMeta, is_allowed


def run_check(
    uri: str, options: Options, runtime: Runtime = LOCAL, progress: Progress = silent
) -> CheckResult:
    """Read the log and look for its splits; every problem becomes a finding."""
    log = TransactionLog.open(uri, options, runtime=runtime)
    facts = read_log(log.source, progress)
    if not facts.listing.files:
        return CheckResult(log.uri, -1, (_no_log(log),), "the table")
    findings = list(log_findings(facts, log.uri))
    if facts.newest is None:
        return CheckResult(log.uri, -1, worst_first(findings), "the log")
    findings += _protocol(facts.newest)
    splits = SplitCheck(log, facts.newest, progress)
    if facts.newest.settings.repair.validate_splits != "false":
        findings += splits.findings()
    return CheckResult(log.uri, facts.newest.version, worst_first(findings), _looked_at(facts, facts.newest))


LOST_ROWS = (
    BROKEN,
    (
        "queries that need it fail. Restore it from a backup, or accept the loss of its rows and write a log "
        "without it"
    ),
)
LOST_COVER = (
    WARNING,
    (
        "searches read the files of the source that it covers: same answers, but slower. After a log without "
        "it, a refresh indexes them again"
    ),
)
"""What a lost split means: of a table, and of a companion index."""


def _looked_at(facts: LogFacts, newest: Snapshot) -> str:
    return (
        f"version {newest.version}: {counted(len(facts.listing.commits), 'version file')}, "
        f"{counted(len(facts.checkpoints), 'checkpoint')}, {counted(newest.num_files, 'split')}"
    )


def _no_log(log: TransactionLog) -> Finding:
    splits = [file for file in own_files(log.store.list()) if is_split(file.path)]
    if not splits:
        raise not_a_table(log.store, NATIVE.log_dir)
    return Finding(
        BROKEN, f"{log.uri}/{NATIVE.log_dir}",
        f"there is no version and no checkpoint, but {counted(len(splits), 'split')}",
        "the table cannot be opened; the splits still know their rows, columns and index settings, but not "
        "which of them were removed",
        Commands(log.uri).repair("FROM SPLITS"),
    )  # fmt: skip


def _protocol(newest: Snapshot) -> Iterator[Finding]:
    try:
        check_writable(newest.protocol, newest.store.uri)
    except Error as refused:
        yield Finding(
            WARNING, "protocol", refused.message, "the table can be read and not written",
            closed_by(newest.protocol).get("command", "pip install --upgrade indextables"),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SplitCheck:
    """The splits that the log names, and those in the directory that it does not."""

    log: TransactionLog
    newest: Snapshot
    progress: Progress

    def findings(self) -> Iterator[Finding]:
        """What is wrong with them."""
        yield from self._live()
        try:
            needed = needed_paths(self.log)
        except Error:
            return  # a damaged version file, which is a finding of its own, hides what it names
        files = own_files(self.log.store.list())
        yield from self._kept_logs(files)
        listed = {file.path: file.size for file in files if is_split(file.path) or is_vector_file(file.path)}
        yield from self._of_older_versions(needed, listed)
        orphans = listed.keys() - needed.paths
        if orphans:
            size = sum(listed[path] for path in orphans)
            yield Finding(
                NOTE, self.log.uri,
                f"no version names {counted(len(orphans), 'split')} ({counted(size, 'byte')})"
                if all(map(is_split, orphans))
                else f"no version names {counted(len(orphans), 'file')} ({counted(size, 'byte')})",
                "they take up space, unless a running write is about to commit them",
                self._commands.on_table("PURGE INDEXTABLE"),
            )  # fmt: skip

    def _kept_logs(self, files: list[ObjectMeta]) -> Iterator[Finding]:
        """The logs that REPAIR ... SWAP has replaced."""
        bytes_of: Counter[str] = Counter()
        for file in files:
            directory, _, name = file.path.partition("/")
            if name and directory.startswith(f"{NATIVE.log_dir}."):
                bytes_of[directory] += file.size
        for directory, size in bytes_of.items():
            yield Finding(
                NOTE, f"{self.log.uri}/{directory}", f"a log that was replaced ({counted(size, 'byte')})",
                "REPAIR ... SWAP keeps the old log, and nothing reads it; delete the directory once you are "
                "sure that the table is as it should be",
                "",
            )  # fmt: skip

    @property
    def _commands(self) -> Commands:
        return Commands(self.log.uri)

    def _live(self) -> Iterator[Finding]:
        named = self.newest.adds()
        adds = [add for add in named if is_allowed(self.log.store, add.path)]
        if len(adds) < len(named):
            yield Finding(
                WARNING, self.log.uri, f"{counted(len(named) - len(adds), 'live file')} outside the table",
                "they were not looked at, and reading them is refused until the option read.allowedRoots "
                "names where they are",
                "",
            )  # fmt: skip
        settings = self.newest.settings.repair
        store, runtime, width = self.log.store, self.log.runtime, settings.parallelism
        paths = [add.path for add in adds]
        sizes = existing_sizes(store, paths, runtime, parallelism=width, progress=self.progress)
        deep = settings.validate_splits == "deep"
        for finding in inspect_splits(
            store, adds, sizes, runtime, deep=deep, parallelism=width, progress=self.progress
        ):
            if finding.rows is not None:
                severity, meaning = LOST_COVER if is_companion(self.newest) else LOST_ROWS
                yield Finding(severity, finding.path, finding.rows, meaning, self._commands.repair())
            if finding.index is not None:
                yield Finding(
                    WARNING, finding.path, f"its index cannot be used: {finding.index}",
                    "searches scan its rows instead: same answers, but slower",
                    self._commands.on_table("MERGE SPLITS"),
                )  # fmt: skip

    def _of_older_versions(self, needed: Needed, listed: Mapping[str, int]) -> Iterator[Finding]:
        for path in sorted(needed.paths - needed.live - listed.keys()):
            yield Finding(
                WARNING, path, "the file is not there; only older versions have it",
                "those versions cannot be read or restored in full",
                self._commands.on_table("TRUNCATE INDEXTABLES TIME TRAVEL"),
            )  # fmt: skip
