"""A table as a stream: the rows of its splits, version after version.

An offset is a place in the log: which log it is, a version and how many of its
added files are done. A stream begins with the whole table as it is, then follows its commits;
`startingVersion` begins with a commit instead. Commits that only rearrange
rows (`dataChange` false, as a merge writes) are passed over. A commit that
removes rows cannot be told to a stream and is an error, unless
`skipChangeCommits` says to pass over those as well. A repaired log, or that of a
table made anew at the same place, counts its versions from 0 again: a stream
that meets one stops.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from indextables.errors import OptionError, TableError
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction, MetadataAction, RemoveAction
from indextables.options import is_storage_key
from indextables.spark.options import STREAM_READ_KEYS, settings_for
from indextables.spark.read.arrow_scan import read_files
from indextables.spark.requests import ReadRequest
from indextables.split.layout import SplitRef
from indextables.storage.store import open_store

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1 has neither read limits nor this trait for Python sources.

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in where Spark does not know the trait."""


NAME = "indextables_stream"
_FILES_PER_TASK = 4


def load_stream(spark: Any, request: ReadRequest) -> Any:
    """A streaming DataFrame over the table."""
    settings = settings_for(spark, request.options, STREAM_READ_KEYS, request.path)
    _starting_version(settings.call.get("startingVersion"))
    settings.number("maxFilesPerTrigger")
    settings.flag("skipChangeCommits")
    spark.dataSource.register(TableStream)
    options = {**{f"table.{key}": value for key, value in settings.table.items()}, **settings.call}
    # The stream is planned in a process of its own, where a relative path means another place.
    storage = {key: value for key, value in settings.table.items() if is_storage_key(key)}
    uri = open_store(request.path, storage).uri
    return spark.readStream.format(NAME).options(**{**options, "path": uri}).load()


def _starting_version(text: str | None) -> int | None:
    """The commit to begin with; None is the whole table first, -1 only what comes after now."""
    if text is None:
        return None
    if text.lower() == "latest":
        return -1
    if not text.isdigit():
        raise OptionError(
            f"option 'startingVersion' is {text!r}; expected a version or 'latest'",
            key="startingVersion", value=text,
        )  # fmt: skip
    return int(text)


class TableStream(DataSource):  # type: ignore[misc]
    """The registration of table streams with Spark."""

    @classmethod
    def name(cls) -> str:
        """The name the streaming reader asks for behind the scenes."""
        return NAME

    def schema(self) -> StructType:
        """The table's schema."""
        from pyspark.sql.types import StructType

        return StructType.fromJson(json.loads(_log(self.options).metadata().schema_string))

    def streamReader(self, schema: StructType) -> TableStreamReader:  # noqa: N802
        """The reader of one query."""
        return TableStreamReader({key.lower(): value for key, value in self.options.items()}, schema.json())


@dataclass
class FilesOfTask(InputPartition):  # type: ignore[misc]
    """Files one task reads."""

    files: tuple[SplitRef, ...]


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """The progress of a stream: the next file `index` of a version, or of the table as it was then."""

    table_id: str
    """The id of the log that the version belongs to."""
    version: int
    index: int = 0
    whole: bool = False

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> StreamOffset:
        """Read an offset."""
        return cls(
            str(offset["tableId"]), int(offset["version"]), int(offset["index"]), bool(offset["whole"])
        )

    def offset(self) -> dict[str, Any]:
        """Write an offset."""
        return {
            "tableId": self.table_id, "version": self.version, "index": self.index, "whole": self.whole,
        }  # fmt: skip

    def following(self) -> StreamOffset:
        """The offset at the start of the next version."""
        return StreamOffset(self.table_id, self.version + 1)


class TableStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Offsets and files of one streaming query; lives on the driver, reads on the executors."""

    def __init__(self, options: Mapping[str, str], schema_json: str) -> None:
        self._options = dict(options)
        self._schema_json = schema_json
        self._last: StreamOffset | None = None
        self._frozen_at: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a new query begins."""
        start = _starting_version(self._options.get("startingversion"))
        now = _log(self._options).snapshot()
        if start is None:
            begin = StreamOffset(now.table_id, now.version, whole=True)
        else:
            begin = StreamOffset(now.table_id, now.version + 1 if start < 0 else start)
        return begin.offset()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """The limit of `maxFilesPerTrigger`."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

        limit = self._options.get("maxfilespertrigger")
        return ReadAllAvailable() if limit is None else ReadMaxFiles(int(limit))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read up to the version that is newest now, and no further."""
        self._frozen_at = _log(self._options).latest_version()

    def latestOffset(self, start: Mapping[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch."""
        begin = (
            StreamOffset.of(start)
            if start is not None
            else self._last or StreamOffset.of(self.initialOffset())
        )
        most = getattr(limit, "max_files", None) if limit is not None else self._configured_limit()
        self._last = self._advance(begin, most)
        return self._last.offset()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The files between two offsets, a few per task."""
        files = list(self._between(StreamOffset.of(start), StreamOffset.of(end)))
        return [
            FilesOfTask(tuple(files[at : at + _FILES_PER_TASK]))
            for at in range(0, len(files), _FILES_PER_TASK)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task's files."""
        assert isinstance(partition, FilesOfTask)
        return read_files(
            partition.files, self._schema_json, _table_options(self._options), self._options["path"]
        )

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: nothing is kept for finished offsets."""

    def stop(self) -> None:
        """Nothing to do: nothing is open between batches."""

    def _configured_limit(self) -> int | None:
        limit = self._options.get("maxfilespertrigger")
        return None if limit is None else int(limit)

    def _advance(self, offset: StreamOffset, most: int | None) -> StreamOffset:
        log = self._same_log(offset)
        newest = log.latest_version()
        if self._frozen_at is not None:
            newest = min(newest, self._frozen_at)
        taken = 0
        while offset.whole or offset.version <= newest:
            left = len(self._files(log, offset)) - offset.index
            if most is not None and taken + left > most:
                return replace(offset, index=offset.index + most - taken)
            taken += left
            offset = offset.following()
        return offset

    def _between(self, start: StreamOffset, end: StreamOffset) -> Iterator[SplitRef]:
        log = self._same_log(start)
        offset = start
        while (offset.version, offset.whole) != (end.version, end.whole) and offset.version <= end.version:
            yield from self._files(log, offset)[offset.index :]
            offset = offset.following()
        if offset.version == end.version and end.index:
            yield from self._files(log, offset)[offset.index : end.index]

    def _same_log(self, offset: StreamOffset) -> TransactionLog:
        """The log as it is now; an error if it is not the log the offset belongs to."""
        log = _log(self._options)
        _require_same(log.snapshot(max_staleness_s=0), offset)
        return log

    def _files(self, log: TransactionLog, offset: StreamOffset) -> list[SplitRef]:
        if not offset.whole:
            # What is read is checked against the log's id, which is that of the stream.
            return self._added(log, offset.version)
        snapshot = log.snapshot(version=offset.version)
        _require_same(snapshot, offset)
        return [SplitRef.of(add) for add in snapshot.adds()]

    def _added(self, log: TransactionLog, version: int) -> list[SplitRef]:
        actions = log.read_version(version)
        removed = [a.path for a in actions if isinstance(a, RemoveAction) and a.data_change]
        if removed:
            if self._options.get("skipchangecommits", "false").lower() == "true":
                return []
            raise TableError(
                f"{log.uri}: version {version} removes {len(removed)} files with their rows, for example "
                f"{removed[0]}, which a stream cannot take back. Set skipChangeCommits=true to pass over "
                f"such commits, or start a new query with startingVersion={version + 1}.",
                version=version,
            )
        self._check_schema(log, actions, version)
        adds = [a for a in actions if isinstance(a, AddAction) and a.data_change]
        return [SplitRef.of(add) for add in sorted(adds, key=lambda add: add.path)]

    def _check_schema(self, log: TransactionLog, actions: Sequence[Any], version: int) -> None:
        for action in actions:
            if isinstance(action, MetadataAction) and version > 0:
                names = {field["name"].lower() for field in json.loads(self._schema_json)["fields"]}
                fields = json.loads(action.schema_string)["fields"]
                new = [field["name"] for field in fields if field["name"].lower() not in names]
                if new:
                    raise TableError(
                        f"{log.uri}: version {version} adds the columns {', '.join(new)}. Start the query "
                        "again from its checkpoint to read them.",
                        version=version,
                    )


def _require_same(snapshot: Snapshot, offset: StreamOffset) -> None:
    if snapshot.table_id != offset.table_id:
        raise TableError(
            f"{snapshot.store.uri}: the log is not the one this query has read so far (its id is "
            f"{snapshot.table_id} and was {offset.table_id}): it was repaired, or the table was created "
            f"again, and its versions count from 0 again. The query has read up to version "
            f"{offset.version} of the old log and stops, because going on would miss rows. Start a new query "
            "with another checkpointLocation: without startingVersion it reads the whole table, and after a "
            "repair startingVersion=2 begins with what was committed since.",
            uri=snapshot.store.uri, found=snapshot.table_id, expected=offset.table_id,
        )  # fmt: skip


def _table_options(options: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix("table."): value for key, value in options.items() if key.startswith("table.")}


def _log(options: Mapping[str, str]) -> TransactionLog:
    return TransactionLog.open(options["path"], _table_options(options))
