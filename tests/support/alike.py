"""The same request put to Python and to Spark, and what the table on disk looks like afterwards.

`InPython` and `OnSpark` have the same verbs, each on a table of its own. `written` describes such a table
without what must differ between two tables: ids, times and the random part of file names.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import indextables as it

Row = dict[str, Any]
_TOLD = (str, list, dict)
_TELLING = re.compile(
    r"\d+ bytes|'num\w*Bytes', '\d+'|[0-9a-f]{8}-[0-9a-f-]{27}|\"(?:timestamp|createdTime|modificationTime|deletionTimestamp)\":\d+"
)
_BY_CHANCE = frozenset(
    {
        "id", "created_time", "modification_time", "deletion_timestamp", "timestamp", "footer_crc", "extra",
        "engine_info", "commit_id", "previous_commit_id", "table_id",
    }
)  # fmt: skip
_SIZES = ("size", "offset", "hotcache_length", "uncompressed_size_bytes", "bytes")
"""In the names of what depends on the order of rows, which random file names decide when splits are merged."""


@dataclass(frozen=True)
class Save:
    """One write of rows."""

    data: pa.Table
    mode: str = "append"
    partition_by: tuple[str, ...] = ()
    where: str | None = None
    dynamic: bool = False
    merge_schema: bool = False
    overwrite_schema: bool = False
    user_metadata: str | None = None
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Run:
    """One maintenance verb: as a method of Table, and as a statement about the table at `{path}`."""

    method: Callable[[it.Table], Any]
    statement: str


@dataclass(frozen=True)
class Change:
    """UPDATE, MERGE or DELETE of rows: as a method of Table, and as a statement of Spark's about `{t}`.

    A MERGE has a `source`, which the method is given and the statement finds as the view `source`.
    """

    method: Callable[..., Any]
    statement: str
    source: pa.Table | None = None


class InPython:
    """Everything through `it.Table`, opened with the given options or inside a session."""

    def __init__(self, path: Path, spark: SparkSession | None = None, **options: str) -> None:
        self.path = str(path)
        self.spark = spark
        self.options = options

    def open(self, options: Mapping[str, str] | None = None) -> it.Table:
        return it.Table.open(self.path, options={**self.options, **(options or {})}, spark=self.spark)

    def save(self, step: Save) -> None:
        # The options of a DataFrame's writer are those of one call.
        options = dict(step.options)
        if it.Table.exists(self.path):
            table = self.open()
        else:
            chosen = {**self.options, **options}
            table = it.Table.create(self.path, step.data.schema, step.partition_by, chosen, self.spark)
        more: dict[str, Any] = {
            "merge_schema": step.merge_schema, "user_metadata": step.user_metadata, "options": options,
        }  # fmt: skip
        if step.mode == "append":
            table.append(step.data, **more)
            return
        partitions = "dynamic" if step.dynamic else "static"
        columns = step.partition_by or None
        more |= {"overwrite_schema": step.overwrite_schema, "partition_by": columns}
        table.overwrite(step.data, step.where, partitions=partitions, **more)

    def run(self, step: Run) -> list[Row]:
        found = step.method(self.open())
        rows = found if isinstance(found, pa.Table) else found.to_arrow()
        return told(rows.to_pylist(), self.path)

    def change(self, step: Change) -> None:
        step.method(self.open(), *(() if step.source is None else (step.source,)))

    def rows(self) -> list[Row]:
        return self.open().scan().read_all().to_pylist()


class OnSpark:
    """Everything through DataFrames and `spark.sql`."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark = spark
        self.path = str(path)

    def save(self, step: Save) -> None:
        frame = frame_of(self.spark, step.data)
        writer = frame.write.format("indextables").mode(step.mode).options(**dict(step.options))
        if step.partition_by:
            writer = writer.partitionBy(*step.partition_by)
        if step.where is not None:
            writer = writer.option("replaceWhere", step.where)
        if step.dynamic:
            writer = writer.option("partitionOverwriteMode", "dynamic")
        if step.merge_schema:
            writer = writer.option("mergeSchema", "true")
        if step.overwrite_schema:
            writer = writer.option("overwriteSchema", "true")
        if step.user_metadata is not None:
            writer = writer.option("userMetadata", step.user_metadata)
        writer.save(self.path)

    def run(self, step: Run) -> list[Row]:
        return told(self.spark.sql(step.statement.format(path=self.path)).toArrow().to_pylist(), self.path)

    def change(self, step: Change) -> None:
        if step.source is not None:
            frame_of(self.spark, step.source).createOrReplaceTempView("source")
        self.spark.sql(step.statement.format(t=f"indextables.`{self.path}`"))

    def rows(self) -> list[Row]:
        return self.spark.read.format("indextables").load(self.path).toArrow().to_pylist()


def frame_of(spark: SparkSession, data: pa.Table) -> DataFrame:
    """The rows in one task, in their order, with the nullability that the Arrow schema has."""
    from pyspark.sql.types import StructType

    import indextables.model.fields as fields

    schema = StructType.fromJson(json.loads(fields.schema_to_json(fields.normalise_schema(data.schema))))
    return spark.createDataFrame(data, schema).coalesce(1)


def told(rows: Sequence[Row], path: str) -> list[Row]:
    """The rows of a command without the table's own path and without what chance decides."""
    return [
        {
            key: _TELLING.sub("...", str(value).replace(path, "TABLE")) if isinstance(value, _TOLD) else value
            for key, value in ((key, _unordered(value)) for key, value in row.items())
            if key not in {"duration_ms", "created", "skipped_at", "retry_after", "content", *_BY_CHANCE}
            and not any(word in key for word in _SIZES)
        }
        for row in rows
    ]


def _unordered(value: Any) -> Any:
    """A map, which Arrow gives as a list of pairs, in an order of its own: Spark's maps have none."""
    is_map = isinstance(value, list) and all(isinstance(item, tuple) for item in value)
    return sorted(value) if is_map else value


def sorted_rows(rows: Iterable[Row]) -> list[str]:
    """Rows as text, in which a NaN equals itself, in an order of their own."""
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)


def written(path: str) -> dict[str, Any]:
    """What a table's log and files say, commit by commit and file by file."""
    log = it.TransactionLog.open(path)
    commits = [sorted_rows(map(described, log.read_version(number))) for number in log.versions()]
    return {
        "commits": commits,
        "rows": sorted_rows(it.Table.open(path).scan().read_all().to_pylist()),
        "files": sorted_rows(parquet(Path(path) / add.path) for add in log.list_files()),
        "checkpoints": sorted(
            re.sub(r"\.[0-9a-f]{32}\.", ".", item.name)
            for item in Path(path, "_transaction_log").glob("*checkpoint*")
        ),
    }


def changed(path: str) -> list[dict[str, Any]]:
    """For each version what was changed, without how many files the changed rows became."""
    found = []
    log = it.TransactionLog.open(path)
    for number in log.versions():
        actions = log.read_version(number)
        adds = [described(action) for action in actions if isinstance(action, it.AddAction)]
        info = next((action for action in actions if isinstance(action, it.CommitInfo)), it.CommitInfo())
        rest = [action for action in actions if not isinstance(action, it.AddAction | it.CommitInfo)]
        metrics = info.operation_metrics or {}
        found.append(
            {
                "operation": info.operation,
                "rows": {name: metrics.get(name) for name in ("numReadRows", "numOutputRows")},
                "others": sorted_rows(map(described, rest)),
                "adds": sorted({json.dumps(form, default=str, sort_keys=True) for form in map(_form, adds)}),
            }
        )
    return found


def _form(add: Row) -> Row:
    """An add without its values: which statistics, tags and fields it carries."""
    return {
        key: sorted(value) if isinstance(value, dict) and key not in {"partition_values", "tags"} else value
        for key, value in add.items()
        if key not in {"stats", "num_records"}
    }


def described(action: Any) -> Row:
    """An action without what chance decides."""
    found = {"action": type(action).__name__}
    for item in dataclasses.fields(action):
        value = getattr(action, item.name)
        if item.name == "path":
            found["directory"] = str(value).rpartition("/")[0]
        elif any(word in item.name for word in _SIZES):
            found[item.name] = value is not None
        elif item.name == "tags":
            placed = {"rowMap", "indexRoot"}
            found["tags"] = value and {key: key in placed or text for key, text in value.items()}
        elif item.name == "deletion_vector":
            # Merged rows are in the order of the names of their sources, so their numbers are chance.
            found["vector"] = value and {key: value[key] for key in ("storageType", "cardinality")}
        elif item.name not in _BY_CHANCE:
            found[item.name] = value
    return found


def parquet(path: Path) -> Row:
    """How a split was written: row groups, compression, and which statistics and metadata it carries."""
    footer = pq.read_metadata(path)
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    index = json.loads(footer.metadata.get(b"indextables.index", b"{}"))
    return {
        "rows": [group.num_rows for group in groups],
        "columns": [
            [column.path_in_schema, column.compression, sorted(column.encodings), column.is_stats_set]
            for group in groups
            for column in (group.column(at) for at in range(group.num_columns))
        ],
        "metadata": sorted(key.decode() for key in footer.metadata),
        "index": {
            key: index[key] for key in sorted(index) if key in {"fields", "settings", "spec", "version"}
        },
    }


def adds_by_operation(path: str) -> dict[str, list[it.AddAction]]:
    """The files that each operation of a table's history has added."""
    return _by_operation(path, it.AddAction)


def removes_by_operation(path: str) -> dict[str, list[it.RemoveAction]]:
    """The tombstones that each operation of a table's history has written."""
    return _by_operation(path, it.RemoveAction)


def _by_operation(path: str, kind: type[Any]) -> dict[str, list[Any]]:
    log = it.TransactionLog.open(path)
    found: dict[str, list[Any]] = {}
    for number in log.versions():
        actions = log.read_version(number)
        chosen = [action for action in actions if isinstance(action, kind)]
        if chosen:
            info = next(action for action in actions if isinstance(action, it.CommitInfo))
            found.setdefault(str(info.operation), []).extend(chosen)
    return found


@contextmanager
def session_zone(spark: SparkSession, zone: str) -> Iterator[None]:
    """A session whose clock is in another place."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
