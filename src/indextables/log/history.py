"""The history of a table: the commit and time of each version, and the version at a given time.

The time of a version is its commitInfo's timestamp, which writers make strictly larger
than the one before. A version without commitInfo has its file's time, limited to the
range between its neighbours: copying a log resets file times, so commit times take
precedence.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from datetime import UTC, date, datetime, time
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from indextables.errors import (
    ADVICE_ON_DAMAGE,
    CorruptLogError,
    NotFoundError,
    OptionError,
    VersionNotFoundError,
)
from indextables.lazy import later, msgspec, pa
from indextables.log.format.binding import foreign
from indextables.log.format.dialect import NATIVE, LogFile
from indextables.log.segment import Listing, spans
from indextables.log.state import LogSource
from indextables.model.actions import CommitInfo
from indextables.records import dataclass

if TYPE_CHECKING:
    import zoneinfo
else:
    zoneinfo = later("zoneinfo")

logger = logging.getLogger(__name__)

T = TypeVar("T")

Moment = str | date | datetime
MISSING = "MISSING"
"""How the operation begins in a row of `history()` about versions that have no file."""
_MOST_LOOKS = 5


@dataclass(slots=True)
class Timeline:
    """The times of versions, each read on first use."""

    source: LogSource
    files: Sequence[LogFile]
    """Commit files, ascending. Where files are gone, numbers are missing."""
    _infos: dict[int, CommitInfo | None] = field(default_factory=dict)
    _table_id: str | None = None

    def info(self, at: int) -> CommitInfo | None:
        """The commitInfo of the file at an index."""
        if at not in self._infos:
            self._infos[at] = self._bound(read_info(self.source, self.files[at]), at)
        return self._infos[at]

    def _bound(self, info: CommitInfo | None, at: int) -> CommitInfo | None:
        """The commitInfo, after checking that it names the same table as the others."""
        table_id = None if info is None else info.table_id
        if table_id is not None:
            self._table_id = self._table_id or table_id
            if table_id != self._table_id:
                raise foreign(self.files[at].version, table_id, self._table_id, self.source.store.uri)
        return info

    def time_ms(self, at: int) -> int:
        """The time of the version at an index."""
        stamp = self._stamp(at)
        if stamp is not None:
            return stamp
        low = at - 1
        while low >= 0 and self._stamp(low) is None:
            low -= 1
        moment = self._stamp(low) if low >= 0 else None
        for index in range(low + 1, at + 1):
            modified = self.files[index].modified_ms
            moment = modified if moment is None else max(modified, moment + 1)
        assert moment is not None
        high = at + 1
        while high < len(self.files) and self._stamp(high) is None:
            high += 1
        above = self._stamp(high) if high < len(self.files) else None
        return moment if above is None else min(moment, above - (high - at))

    def at(self, moment_ms: int) -> int | None:
        """The index of the newest version at or before a time; None when all are later."""
        low, high = 0, len(self.files)
        while low < high:
            middle = (low + high) // 2
            if self.time_ms(middle) <= moment_ms:
                low = middle + 1
            else:
                high = middle
        return low - 1 if low else None

    def _stamp(self, at: int) -> int | None:
        try:
            info = self.info(at)
        except CorruptLogError:
            # Other versions can still be told by time; whoever means this one is told when it is opened.
            return None
        return None if info is None else info.timestamp


def read_info(source: LogSource, file: LogFile) -> CommitInfo | None:
    """The commitInfo of a native commit file; if we wrote it, only the last line is decoded."""
    actions = None if source.versions is None else source.versions.get(file.identity)
    if actions is None:
        data = source.store.get(source.path(file.name), etag=file.etag)
        info = NATIVE.decode_info(data, name=file.name)
        if info is not None:
            return info
        actions = tuple(NATIVE.decode_commit(data, name=file.name, version=file.version))
    return next((action for action in reversed(actions) if isinstance(action, CommitInfo)), None)


def find_commit(source: LogSource, look: Callable[[], Listing], commit_id: str) -> int | None:
    """The version that a commit became; None when the log knows no such commit.

    `look` lists the log; it is called again when a file has gone since.
    """
    return from_listings(lambda: _find(source, look(), commit_id))


def from_listings(answer: Callable[[], T]) -> T:
    """The answer of a function that lists the log and reads what it lists.

    It is called again when a file has gone since, because others cleaned up.
    """
    for _ in range(_MOST_LOOKS - 1):
        with contextlib.suppress(NotFoundError):
            return answer()
    return answer()


def _find(source: LogSource, listing: Listing, commit_id: str) -> int | None:
    """Search the version files, newest first, and then what the oldest checkpoint says of those before it.

    A file below the floor proves nothing by itself, since a put that came too late looks like a commit there.
    The commit that a version says it follows is always correct.
    """
    commits = listing.commits
    retired = {file.version: file for file in listing.retired if file.kind == "commit"}
    for version, file in sorted({**retired, **commits}.items(), reverse=True):
        info = read_info(source, file)
        if info is None:
            continue
        if info.commit_id == commit_id and version in commits:
            return version
        if info.previous_commit_id == commit_id:
            return version - 1
    for checkpoint in NATIVE.checkpoints(listing.files)[-1:]:
        ids = source.reader.head(source.store, checkpoint).commit_ids
        return next((version for version, named in ids.items() if named == commit_id), None)
    return None


def version_as_of(timeline: Timeline, moment: Moment, zone: Callable[[], str], uri: str) -> int:
    """The newest version at or before a time; if all are later, the error names the available range."""
    moment_ms = moment_of(moment, zone)
    version = timeline.at(moment_ms)
    if version is None:
        first, last = timeline.time_ms(0), timeline.time_ms(len(timeline.files) - 1)
        raise VersionNotFoundError(
            f"{uri} has no version at or before {instant(moment_ms)}; its versions "
            f"{timeline.files[0].version} to {timeline.files[-1].version} date from {instant(first)} to "
            f"{instant(last)}.",
            uri=uri, as_of_ms=moment_ms,
        )  # fmt: skip
    return timeline.files[version].version


def first_since(timeline: Timeline, moment_ms: int, uri: str) -> int:
    """The oldest version at or after a time; if all are earlier, the error says when the newest is from."""
    before = timeline.at(moment_ms - 1)
    first = 0 if before is None else before + 1
    if first == len(timeline.files):
        newest = instant(timeline.time_ms(first - 1))
        raise VersionNotFoundError(
            f"{uri} has no version at or after {instant(moment_ms)}; its newest version, "
            f"{timeline.files[-1].version}, was written at {newest}.",
            uri=uri, since_ms=moment_ms,
        )  # fmt: skip
    return timeline.files[first].version


def moment_of(moment: Moment, zone: Callable[[], str], name: str = "as_of") -> int:
    """A time in ms since the epoch; only for text and dates without an offset is the zone looked up.

    `name` is what an error calls the time.
    """
    if isinstance(moment, str):
        return _ms(time_of_text(moment, zone, name))
    if isinstance(moment, datetime):
        if moment.tzinfo is None or moment.utcoffset() is None:
            raise OptionError(
                f"as_of={moment!r} has no time zone, so the moment is not clear; give it one, "
                "for example datetime.now(timezone.utc)",
                value=str(moment),
            )
        return _ms(moment)
    if isinstance(moment, date):
        return _ms(datetime.combine(moment, time(), _zone(zone())))
    raise OptionError(f"as_of={moment!r} is neither a datetime, a date nor ISO text", value=repr(moment))


def time_of_text(text: str, zone: Callable[[], str], name: str = "as_of") -> datetime:
    """ISO text as a time with an offset; text without one is taken in the given zone."""
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError as bad:
        raise OptionError(
            f"{name}={text!r} is not a time; write it as 2024-05-01, 2024-05-01T12:30:00 or "
            "2024-05-01T12:30:00+02:00",
            value=text,
        ) from bad
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=_zone(zone()))


def instant(moment_ms: int) -> str:
    """A time in ms since the epoch as ISO text in UTC."""
    return datetime.fromtimestamp(moment_ms / 1000, UTC).isoformat(timespec="milliseconds")


def history_columns() -> pa.Schema:
    """The columns of a history."""
    texts = pa.map_(pa.string(), pa.string())
    return pa.schema(
        [
            ("version", pa.int64()),
            ("timestamp", pa.timestamp("ms", tz="UTC")),
            ("operation", pa.string()),
            ("operation_parameters", texts),
            ("operation_metrics", texts),
            ("user_metadata", pa.string()),
            ("engine_info", pa.string()),
            ("commit_id", pa.string()),
        ]
    )


def history_table(timeline: Timeline, limit: int | None = None) -> pa.Table:
    """One row per version, newest first; only the versions in the result are read.

    Versions between two others whose files are gone share a row: it has the number of the newest of them, an
    operation such as `MISSING 2-4`, and no time. They are logged too.
    """
    columns: dict[str, Callable[[int, CommitInfo | None], Any]] = {
        "version": lambda at, _: timeline.files[at].version,
        "timestamp": lambda at, _: timeline.time_ms(at),
        "operation": lambda at, info: _operation(timeline, at, info),
        "operation_parameters": lambda _, info: _texts(info.operation_parameters if info else {}),
        "operation_metrics": lambda _, info: _texts(info.operation_metrics if info else {}),
        "user_metadata": lambda _, info: info.user_metadata if info else None,
        "engine_info": lambda _, info: info.engine_info if info else None,
        "commit_id": lambda _, info: info.commit_id if info else None,
    }
    schema = history_columns()
    rows = list(islice(_rows(timeline), None if limit is None else max(0, limit)))
    holes = [row for row in rows if isinstance(row, range)]
    if holes:
        logger.warning(
            "%s: version(s) %s have no file in the log, and their history is not known. %s",
            timeline.source.store.uri, spans(reversed(holes)), ADVICE_ON_DAMAGE,
        )  # fmt: skip
    arrays = {
        name: pa.array(
            [
                _of_hole(name, row) if isinstance(row, range) else read(row, timeline.info(row))
                for row in rows
            ],
            schema.field(name).type,
        )
        for name, read in columns.items()
    }
    return pa.table(arrays, schema)


def _rows(timeline: Timeline) -> Iterator[int | range]:
    """The indexes of the files, newest first, and between them the runs of versions that have no file."""
    above: int | None = None
    for at in range(len(timeline.files) - 1, -1, -1):
        version = timeline.files[at].version
        if above is not None and above > version + 1:
            yield range(version + 1, above)
        yield at
        above = version


def _of_hole(column: str, versions: range) -> Any:
    """The value of a column in the row of versions without a file."""
    if column == "operation_parameters":
        return [("versions", spans([versions]))]
    return {
        "version": versions[-1],
        "operation": f"{MISSING} {spans([versions])}",
        "operation_metrics": [],
    }.get(column)


def _operation(timeline: Timeline, at: int, info: CommitInfo | None) -> str | None:
    if info is None and timeline.files[at].version == 0:
        return "CREATE TABLE"
    return info.operation if info else None


def _texts(values: Any) -> list[tuple[str, str]]:
    return [
        (str(key), value if isinstance(value, str) else msgspec.json.encode(value).decode())
        for key, value in values.items()
    ]


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as bad:
        raise OptionError(f"timeZone={name!r} is not a known time zone", key="timeZone", value=name) from bad


def _ms(moment: datetime) -> int:
    whole = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (whole.days * 86_400 + whole.seconds) * 1000 + whole.microseconds // 1000
