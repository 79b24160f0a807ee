"""The history of a Delta table: the commit of each version, and when it was written.

The time of a version is the one `as_of` uses: the in-commit timestamp where the table
records them, else the time of the commit's file, adjusted so that times increase.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from indextables.errors import NotATableError
from indextables.log.delta.commits import decode_commit
from indextables.log.delta.timestamps import monotone, recorded_since, recorded_time
from indextables.log.format.dialect import LogFile
from indextables.log.history import Timeline
from indextables.log.segment import list_log
from indextables.log.state import LogSource
from indextables.model.actions import CommitInfo

_MARK = b'"commitInfo"'
_CLONED_PATH = re.compile(r"(?:delta\.)?(?P<quote>`?)(?P<path>(?:\w+:)?/.*?)(?P=quote)")
"""How a CLONE names its source where that is an address: delta.`/path`, or the path alone."""


@dataclass(slots=True)
class DeltaTimeline(Timeline):
    """The times of versions, each read on first use."""

    since: int = 0
    """Index of the first commit that records its own time."""
    _file_times: list[int] = field(default_factory=list)

    def info(self, at: int) -> CommitInfo | None:
        """The commitInfo of the file at an index; its adds are not decoded."""
        if at not in self._infos:
            data = self.source.store.get(self.source.path(self.files[at].name))
            self._infos[at] = _info_of(data, self.files[at])
        return self._infos[at]

    def time_ms(self, at: int) -> int:
        """The time of the version at an index."""
        if at < self.since:
            if not self._file_times:
                self._file_times = monotone([file.modified_ms for file in self.files[: self.since]])
            return self._file_times[at]
        info = self.info(at)
        recorded = None if info is None else info.extra.get("inCommitTimestamp")
        return recorded_time(self.source, self.files[at]) if recorded is None else int(recorded)


def delta_timeline(source: LogSource, configuration: Mapping[str, str | None]) -> DeltaTimeline:
    """The timeline of the versions that have commit files; `configuration` is the newest version's."""
    commits = sorted(list_log(source.store, source.dialect).commits.items())
    files = [file for _, file in commits]
    if not files:
        raise NotATableError(
            f"{source.store.uri} has no commit file left, so nothing says how its versions came about.",
            uri=source.store.uri,
        )
    return DeltaTimeline(source, files, since=recorded_since(configuration, files))


def clone_sources(source: LogSource) -> list[str]:
    """The addresses of the tables that this one was cloned from, as its own commits name them.

    A source that has a name in a catalog instead of an address is left out: where it is, only the catalog
    knows.
    """
    commits = sorted(list_log(source.store, source.dialect).commits.items())
    timeline = DeltaTimeline(source, [file for _, file in commits])
    infos = (timeline.info(at) for at in range(len(commits)))
    named = [
        _CLONED_PATH.fullmatch(str(info.operation_parameters.get("source", "")))
        for info in infos
        if info is not None and info.operation == "CLONE"
    ]
    return list(dict.fromkeys(match["path"] for match in named if match is not None))


def _info_of(data: bytes, file: LogFile) -> CommitInfo | None:
    for line in data.splitlines():
        if _MARK in line:
            for action in decode_commit(line, name=file.name, version=file.version):
                if isinstance(action, CommitInfo):
                    return action
    return None
