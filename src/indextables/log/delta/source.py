"""Where a Delta log lies, and how log compaction files shorten the reading of its commits.

A log compaction file holds the combined actions of a range of commits. Where such files
cover a long tail, they are read instead of the commits; each key occurs in them once, and
where a writer wrote it twice the first line wins. If a cluster is available, commits too
large for this process are left to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from indextables.errors import CorruptLogError, NotFoundError
from indextables.log.delta.dialect import DELTA
from indextables.log.delta.long_tail import scan_commit
from indextables.log.format.dialect import LogFile
from indextables.log.replay.long_tail import LongTailSource, ScannedCommit
from indextables.log.segment import list_log
from indextables.log.state import LogSource
from indextables.model.actions import Action

# Reading fewer commits than this is faster than listing the directory for compaction files.
_WORTH_A_LISTING = 8


class DeltaSource(LongTailSource):
    """A Delta log in a store."""

    __slots__ = ()

    def read_commits(self, files: Sequence[LogFile]) -> list[tuple[int, tuple[Action, ...]]]:
        """The actions of the commits after a checkpoint, through compaction files where they help."""
        chosen = self._shortened(files)
        if len(chosen) < len(files):
            try:
                return self._through(chosen)
            except (CorruptLogError, NotFoundError):
                # A compaction file cannot be read; the commits it replaces are all there.
                pass
        return LogSource.read_commits(self, files)

    def scan_commit(self, file: LogFile) -> ScannedCommit:
        """Scan one commit or compaction file without decoding its adds and removes."""
        return scan_commit(self.store, file)

    def scan_commits(self, files: Sequence[LogFile]) -> list[ScannedCommit]:
        """Scan several commits, using compaction files where they help."""
        chosen = self._shortened(files)
        try:
            return LongTailSource.scan_commits(self, chosen)
        except (CorruptLogError, NotFoundError):
            if len(chosen) == len(files):
                raise
            return LongTailSource.scan_commits(self, files)

    def _shortened(self, files: Sequence[LogFile]) -> list[LogFile]:
        if len(files) < _WORTH_A_LISTING:
            return list(files)
        listing = list_log(self.store, DELTA, files[0].version)
        return shortcut(files, [file for file in listing.files if file.kind == "compacted"])

    def _through(self, files: Sequence[LogFile]) -> list[tuple[int, tuple[Action, ...]]]:
        plain = LogSource.read_commits(self, files)
        return [
            (file.last_version, tuple(reversed(actions)))
            if file.last_version is not None
            else (number, actions)
            for file, (number, actions) in zip(files, plain, strict=True)
        ]


def shortcut(commits: Sequence[LogFile], compacted: Sequence[LogFile]) -> list[LogFile]:
    """The fewest files that replace these commits; the newest commit is always read itself; pure."""
    last = commits[-1].version
    widest: dict[int, LogFile] = {}
    for file in compacted:
        if file.last_version is not None and file.last_version < last:
            wider = widest.get(file.version)
            if wider is None or (wider.last_version or 0) < file.last_version:
                widest[file.version] = file
    chosen: list[LogFile] = []
    covered = commits[0].version - 1
    for commit in commits:
        if commit.version <= covered:
            continue
        chosen_file = widest.get(commit.version, commit)
        chosen.append(chosen_file)
        covered = commit.version if chosen_file.last_version is None else chosen_file.last_version
    return chosen
