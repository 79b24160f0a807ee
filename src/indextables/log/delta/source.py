"""Where a Delta log lies, and a shortcut through its commits.

A log compaction file holds what the commits of a range come to. Where such
files cover a long tail, they are read in place of the commits; each key stands
in them once, and where a writer wrote it twice the first line counts. Where a
cluster is at hand, commits too large for this process are left to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from indextables.errors import CorruptLogError, NotFoundError
from indextables.log.delta.dialect import DELTA
from indextables.log.delta.long_tail import FarTail, Passed, pass_over, pieces_of
from indextables.log.format.dialect import LogFile
from indextables.log.replay.rule import Tail, reduce_tail
from indextables.log.segment import list_log
from indextables.log.state import LogSource
from indextables.model.actions import Action

# Fewer commits are read sooner than a listing could show what stands in for them.
_WORTH_A_LISTING = 8
# Commits of more bytes are left to executors, since an add takes several times its text as an object.
_FAR_BYTES = 32 << 20
_BYTES_OF_MEMORY = 8


class DeltaSource(LogSource):
    """A Delta log in a store."""

    __slots__ = ()

    def read_commits(self, files: Sequence[LogFile]) -> list[tuple[int, tuple[Action, ...]]]:
        """The actions of the commits after a checkpoint, through compaction files where they help."""
        chosen = self._shortened(files)
        if len(chosen) < len(files):
            try:
                return self._through(chosen)
            except (CorruptLogError, NotFoundError):
                # A shortcut that cannot be walked: the commits themselves are all there.
                pass
        return LogSource.read_commits(self, files)

    def reduced(self, files: Sequence[LogFile], start: Tail) -> Tail:
        """The commits after a tail; above a size only their heads, if there are executors for the rest."""
        far = isinstance(start, FarTail)
        if not files or not (far or (start.size() == (0, 0) and self._is_large(files))):
            return LogSource.reduced(self, files, start)
        chosen = self._shortened(files)
        try:
            passed = self._passed(chosen)
        except (CorruptLogError, NotFoundError):
            if len(chosen) == len(files):
                raise
            chosen = list(files)
            passed = self._passed(chosen)
        return self._far(start, (*(start.files if isinstance(start, FarTail) else ()), *files), passed)

    def _is_large(self, files: Sequence[LogFile]) -> bool:
        replay = self.options.replay
        if "spark" not in self.runtime.engines or not replay.enabled:
            return False
        return sum(file.size for file in files) > min(_FAR_BYTES, replay.local_memory // _BYTES_OF_MEMORY)

    def _passed(self, files: Sequence[LogFile]) -> list[tuple[LogFile, Passed]]:
        with ThreadPoolExecutor(self.options.checkpoint.parallelism, "indextables-log") as pool:
            return list(zip(files, pool.map(lambda file: pass_over(self.store, file), files), strict=True))

    def _far(
        self, start: Tail, files: tuple[LogFile, ...], passed: Sequence[tuple[LogFile, Passed]]
    ) -> FarTail:
        before = Tail(
            start.version, protocol=start.protocol, metadata=start.metadata, txns=start.txns, info=start.info
        )
        heads = [
            (file.version, found.heads)
            if file.last_version is None
            else (file.last_version, tuple(reversed(found.heads)))
            for file, found in passed
        ]
        pieces = [piece for file, found in passed for piece in pieces_of(file, found)]
        adds, removes = start.size()
        return FarTail(
            reduce_tail(heads, DELTA, before),
            files,
            (*(start.pieces if isinstance(start, FarTail) else ()), *pieces),
            adds + sum(found.adds for _, found in passed),
            removes + sum(found.removes for _, found in passed),
            lambda: reduce_tail(self.read_commits(files), DELTA, Tail(files[0].version - 1)),
        )

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
    """The fewest files that say what the commits say; the newest commit is always read itself; pure."""
    last = commits[-1].version
    widest: dict[int, LogFile] = {}
    for file in compacted:
        if file.last_version is not None and file.last_version < last:
            known = widest.get(file.version)
            if known is None or (known.last_version or 0) < file.last_version:
                widest[file.version] = file
    chosen: list[LogFile] = []
    covered = commits[0].version - 1
    for commit in commits:
        if commit.version <= covered:
            continue
        found = widest.get(commit.version, commit)
        chosen.append(found)
        covered = commit.version if found.last_version is None else found.last_version
    return chosen
