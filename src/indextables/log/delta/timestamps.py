"""When the versions of a Delta table were written.

If in-commit timestamps are enabled, the commit itself records the time. Before that, it
is the modification time of the commit file, adjusted to increase from version to version,
since copying a log resets file times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from indextables.errors import CorruptLogError, VersionNotFoundError
from indextables.log.format.dialect import LogFile
from indextables.log.history import instant
from indextables.log.segment import list_log, reconstructible
from indextables.log.state import LogSource
from indextables.model.actions import CommitInfo

ENABLED = "delta.enableInCommitTimestamps"
_SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
_SINCE_TIME = "delta.inCommitTimestampEnablementTimestamp"


def version_as_of_ms(source: LogSource, time_ms: int, configuration: Mapping[str, str | None]) -> int:
    """The newest version at or before a time; `configuration` is the table's at the newest version."""
    listing = list_log(source.store, source.dialect)
    possible = set(reconstructible(listing, source.dialect))
    commits = [file for version, file in sorted(listing.commits.items()) if version in possible]
    if not commits:
        raise VersionNotFoundError(
            f"{source.store.uri} has no commit file left that says when a version was written; "
            "ask for a version by number",
            uri=source.store.uri,
        )
    recorded_from = recorded_since(configuration, commits)
    older, newer = commits[:recorded_from], commits[recorded_from:]
    if newer and time_ms >= _since_time(source, configuration, newer[0]):
        return newer[_last_at_or_before(source, newer, time_ms)].version
    times = monotone([file.modified_ms for file in older])
    not_later = [file.version for file, written in zip(older, times, strict=True) if written <= time_ms]
    if not not_later:
        first = times[0] if times else recorded_time(source, newer[0])
        raise VersionNotFoundError(
            f"{source.store.uri} has no version at or before {instant(time_ms)}; its oldest readable "
            f"version, {commits[0].version}, was written at {instant(first)}.",
            uri=source.store.uri, time_ms=time_ms, earliest_ms=first,
        )  # fmt: skip
    return not_later[-1]


def monotone(times: Sequence[int]) -> list[int]:
    """Each time, or one millisecond after the one before it where the clock did not advance."""
    forced: list[int] = []
    for written in times:
        forced.append(written if not forced else max(written, forced[-1] + 1))
    return forced


def recorded_time(source: LogSource, file: LogFile) -> int:
    """The in-commit timestamp of a commit file; of a damaged one the time of the file."""
    try:
        actions = source.read_commit(file)
    except CorruptLogError:
        # Other versions can still be told by time; whoever means this one is told when it is opened.
        return file.modified_ms
    for action in actions:
        if isinstance(action, CommitInfo):
            recorded = action.extra.get("inCommitTimestamp")
            if recorded is not None:
                return int(recorded)
    raise CorruptLogError(
        f"{file.name} records no inCommitTimestamp, although the table says that its commits do",
        file=file.name, version=file.version,
    )  # fmt: skip


def recorded_since(configuration: Mapping[str, str | None], commits: Sequence[LogFile]) -> int:
    """Index of the first commit that records its own time."""
    if str(configuration.get(ENABLED) or "").lower() != "true":
        return len(commits)
    since = int(configuration.get(_SINCE_VERSION) or 0)
    return next((at for at, file in enumerate(commits) if file.version >= since), len(commits))


def _since_time(source: LogSource, configuration: Mapping[str, str | None], first: LogFile) -> int:
    since = configuration.get(_SINCE_TIME)
    return recorded_time(source, first) if since is None else int(since)


def _last_at_or_before(source: LogSource, commits: Sequence[LogFile], time_ms: int) -> int:
    low, high = 0, len(commits) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if recorded_time(source, commits[middle]) <= time_ms:
            low = middle
        else:
            high = middle - 1
    return low
