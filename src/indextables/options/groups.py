"""Every option, once: its key, type, default and meaning, in groups that belong together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

from indextables.options.kinds import (
    ADDRESSES,
    BOOLEAN,
    COUNT,
    FRACTION,
    HOURS,
    NAMES,
    POSITIVE,
    SIZE,
    STRATEGIES,
    STRATEGY,
    TEXT,
    Kind,
    at_least,
    auto_or,
    one_of,
    option,
)
from indextables.records import dataclass

DELTA_REPLAY_PREFIX = "spark.databricks.delta.v2.distributedLogReplay."


OPERATORS = ("or", "and")
"""What can join two words of a query that stand side by side."""


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    """When and how checkpoints are written and read."""

    enabled: bool = option("checkpoint.enabled", True, BOOLEAN, "Write checkpoints after commits.")
    interval: int | None = option(
        "checkpoint.interval", None, auto_or(POSITIVE),
        "Versions between two checkpoints. If unset, 10, and from the third checkpoint on it waits until the "
        "versions since the last one have a quarter of its bytes, but not for more than 200 versions.",
    )  # fmt: skip
    parallelism: int | None = option(
        "checkpoint.parallelism", None, POSITIVE,
        "Log files read at the same time; if unset, 4 on a local disk and 32 on an object store. As a table "
        "property it counts once the metadata is known: for the versions after a checkpoint, or after the "
        "version a handle has open.",
    )  # fmt: skip
    read_timeout_s: int = option(
        "checkpoint.read.timeoutSeconds", 30, POSITIVE,
        "Seconds for which the store may send nothing of a version file before reading fails; decoding and "
        "waiting for a thread do not count. As a table property it counts where `checkpoint.parallelism` "
        "does.",
    )  # fmt: skip
    actions_per_part: int = option(
        "checkpoint.actionsPerPart",
        100_000,
        POSITIVE,
        "Files above which a checkpoint is written in parts, and as Parquet if its format is `auto`.",
    )
    format: str = option(
        "checkpoint.format", "auto", one_of("auto", "json", "parquet"),
        "Format of checkpoints; `auto` is JSON up to `checkpoint.actionsPerPart` files, else Parquet. The "
        "first Parquet checkpoint raises the table to protocol 3/3.",
    )  # fmt: skip

    @property
    def usual_interval(self) -> int:
        """The interval that is set, or else the one for a table whose checkpoints are small."""
        return self.interval or 10

    def prefers_parquet(self, num_files: int) -> bool:
        """Whether a checkpoint of `num_files` adds should be Parquet, if the table's protocol allows it."""
        return self.format == "parquet" or (self.format == "auto" and num_files > self.actions_per_part)


@dataclass(frozen=True, slots=True)
class RetentionOptions:
    """How long log files are kept."""

    log_ms: int = option(
        "logRetention.duration", 2_592_000_000, COUNT, "Milliseconds a version file is kept."
    )
    checkpoint_ms: int = option(
        "checkpointRetention.duration", 7_200_000, COUNT, "Milliseconds an older checkpoint is kept."
    )
    cleanup_enabled: bool = option(
        "cleanup.enabled", True, BOOLEAN, "Delete expired log files after commits."
    )
    failure_policy: str = option(
        "cleanup.failurePolicy", "continue", one_of("continue", "fail"),
        "What a log file that cannot be deleted means. `continue`: a warning, and the cleanup goes on with "
        "what it may still delete. `fail`: the cleanup stops there, and a cleanup that was asked for raises "
        "the error. A cleanup after a commit never raises, because the commit is durable: its failure is "
        "logged as a warning under either policy.",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class TransactionOptions:
    """How the log is read, cached and committed to."""

    use_optimized: bool = option(
        "transaction.useOptimized", True, BOOLEAN,
        "Replay with the columnar engine; false selects the plain sequential one.",
        aliases=("transaction.optimized.enabled",),
    )  # fmt: skip
    cache_enabled: bool = option(
        "transaction.cache.enabled", True, BOOLEAN, "Cache what was read from the log."
    )
    cache_expiration_s: int = option(
        "transaction.cache.expirationSeconds", 300, COUNT, "Seconds for which a cached value is used."
    )
    max_staleness_s: int = option(
        "transaction.maxStalenessSeconds",
        5,
        COUNT,
        "Seconds for which a reader may miss a newer version of another process; 0 always checks.",
    )
    max_attempts: int = option(
        "transaction.retry.maxAttempts", 10, POSITIVE, "Commit attempts without progress before giving up."
    )
    base_delay_ms: int = option("transaction.retry.baseDelayMs", 100, COUNT, "First pause after a conflict.")
    max_delay_ms: int = option("transaction.retry.maxDelayMs", 5000, COUNT, "Longest pause after a conflict.")
    txn_retention_hours: float = option(
        "transaction.txnRetentionHours",
        720,
        HOURS,
        "Hours a batch number is remembered.",
    )
    check_protocol: bool = option(
        "protocol.checkEnabled", True, BOOLEAN,
        "Refuse to read tables of a newer protocol; writing them is always refused.",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CompressionOptions:
    """How log files are compressed."""

    enabled: bool = option(
        "transaction.compression.enabled", True, BOOLEAN, "Compress version files and checkpoints."
    )
    codec: str = option("transaction.compression.codec", "gzip", one_of("gzip"), "The compression codec.")
    gzip_level: int | None = option(
        "transaction.compression.gzip.level",
        None,
        at_least(1, 9),
        "gzip level. If unset, 1: ten times cheaper than 6, and logs are at most a tenth larger.",
    )


@dataclass(frozen=True, slots=True)
class StatsOptions:
    """Which statistics are collected, and how long they may be."""

    truncation_enabled: bool = option(
        "stats.truncation.enabled", True, BOOLEAN, "Keep long values out of the statistics."
    )
    max_length: int = option(
        "stats.truncation.maxLength", 1024, POSITIVE, "Longest minimum or maximum kept whole, in characters."
    )
    strategy: str = option(
        "stats.truncation.strategy", "drop", STRATEGY,
        "`drop` leaves a long value out, `truncate` keeps its beginning and a marker.",
    )  # fmt: skip
    num_indexed_cols: int = option(
        "dataSkippingNumIndexedCols", 32, at_least(-1),
        "How many of the first columns get statistics; -1 all, 0 none.",
    )  # fmt: skip
    columns: tuple[str, ...] | None = option(
        "dataSkippingStatsColumns", None, NAMES, "Columns that get statistics, instead of the first ones."
    )
    adaptive: bool = option(
        "stats.adaptive", False, BOOLEAN,
        "MERGE SPLITS and CHECKPOINT keep statistics only of the columns in `stats.suggestedColumns`, "
        "unless `dataSkippingStatsColumns` is set.",
    )  # fmt: skip
    suggested: tuple[str, ...] | None = option(
        "stats.suggestedColumns", None, NAMES,
        "Columns for which statistics pay, as ANALYZE ... FOR SKIPPING STORE leaves them.",
    )  # fmt: skip
    max_lengths: Mapping[str, int] = field(default_factory=dict)
    strategies: Mapping[str, str] = field(default_factory=dict)
    skip_cooldown_hours: float = option(
        "skippedFiles.cooldownHours", 24, HOURS, "Hours before a file that could not be read is tried again."
    )

    def limit_of(self, name: str) -> int:
        """The longest minimum or maximum kept whole for a column, or a field of one."""
        limit: int = _for_column(self.max_lengths, name, self.max_length)
        return limit

    def cut_to(self, name: str) -> int:
        """The length to which a text that is too long is cut; 0 where it is dropped."""
        strategy = _for_column(self.strategies, name, self.strategy)
        return self.limit_of(name) if strategy == "truncate" else 0

    def with_columns(self, renamed: Callable[[str], str]) -> StatsOptions:
        """The same options, with other names for the columns that they name."""
        return replace(
            self,
            columns=None if self.columns is None else tuple(map(renamed, self.columns)),
            suggested=None if self.suggested is None else tuple(map(renamed, self.suggested)),
            max_lengths={renamed(name): value for name, value in self.max_lengths.items()},
            strategies={renamed(name): value for name, value in self.strategies.items()},
        )

    def shortest_limit(self) -> int:
        """No value of this length or less is too long in any column."""
        return min(self.max_length, *self.max_lengths.values()) if self.max_lengths else self.max_length

    def unknown_strategies(self) -> tuple[str, ...]:
        """The strategies that do not exist, sorted."""
        return tuple(sorted({self.strategy, *self.strategies.values()} - set(STRATEGIES)))

    def adapted(self) -> StatsOptions:
        """These settings with the suggested columns, where they say that a suggestion is to be applied."""
        if not self.adaptive or self.suggested is None or self.columns is not None:
            return self
        return replace(self, columns=self.suggested)


def _for_column(by_column: Mapping[str, Any], name: str, default: Any) -> Any:
    """The setting of a column or of the nearest struct around it; else the one for all columns."""
    if not by_column:
        return default
    by_name = {column.replace("`", "").lower(): value for column, value in by_column.items()}
    steps = name.lower().split(".")
    names = (".".join(steps[:length]) for length in range(len(steps), 0, -1))
    return next((by_name[step] for step in names if step in by_name), default)


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """How REPAIR checks and writes."""

    validate_splits: str = option(
        "repair.validateSplits", "true", one_of("true", "false", "deep"),
        "Check that splits exist; `deep` also reads footers and verifies checksums.",
    )  # fmt: skip
    preserve_stats: bool = option("repair.preserveStats", True, BOOLEAN, "Keep the statistics of the splits.")
    parallelism: int = option("repair.parallelism", 4, POSITIVE, "Checks that run at the same time.")
    fail_on_missing: bool = option(
        "repair.failOnMissing", False, BOOLEAN, "Write nothing when a split is missing."
    )


def _replay(name: str) -> dict[str, tuple[str, ...]]:
    return {"aliases": (DELTA_REPLAY_PREFIX + name,)}


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Where the log is replayed."""

    enabled: bool = option(
        "distributedLogReplay.enabled",
        True,
        BOOLEAN,
        "Let Spark read large logs.",
        **_replay("enabled"),
    )
    num_partitions: int | None = option(
        "distributedLogReplay.numPartitions", None, auto_or(POSITIVE),
        "Spark partitions used to read the log; auto is at most 50.", **_replay("numPartitions"),
    )  # fmt: skip
    file_threshold: int | None = option(
        "distributedLogReplay.fileThreshold", None, auto_or(COUNT),
        "Files above which Spark reads the log; auto decides by memory.", **_replay("fileThreshold"),
    )  # fmt: skip
    local_memory: int = option(
        "distributedLogReplay.localMemory",
        1 << 30,
        SIZE,
        "Memory that reading the log in this process may need before Spark does it.",
    )


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Which files a reader follows."""

    allowed_roots: tuple[str, ...] | None = option(
        "read.allowedRoots", None, ADDRESSES,
        "Addresses below which a log may name files outside its table, separated by commas; also those to "
        "which symbolic links in a local table lead.",
    )  # fmt: skip
    allow_clone_source: bool = option(
        "read.allowCloneSource", False, BOOLEAN,
        "Whether a shallow clone of a Delta table may name files of the table that its own log calls its "
        "source.",
    )  # fmt: skip
    no_nan: bool = option(
        "read.noNaN", False, BOOLEAN,
        "Whether floating-point columns of a Delta table are known to hold no NaN. Then `x > 5` alone leaves "
        "files out by maxima of writers that do not count NaN. If one is there, its row may be missing.",
    )  # fmt: skip
    aggregate_pushdown: bool = option(
        "aggregatePushdown.enabled", True, BOOLEAN,
        "Whether Spark's count, min and max are answered by the log where it knows them, and under a search "
        "by the splits, and LIMIT lists no more files than it needs. Of a session `false` switches all of "
        "that off, of one read its aggregates.",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How rows become splits."""

    target_split_bytes: int = option(
        "write.targetSplitBytes", 128 << 20, SIZE, "Size at which a split is closed."
    )
    max_rows_per_split: int = option(
        "write.maxRowsPerSplit", 2_000_000, POSITIVE, "Rows at which a split is closed."
    )
    max_open_splits: int = option("write.maxOpenSplits", 8, POSITIVE, "Splits a task keeps open at once.")
    optimize: bool = option(
        "write.optimizeWrite", False, BOOLEAN, "Repartition to the target split size before writing.",
        aliases=("optimizeWrite", "write.optimizeWrite.enabled"),
    )  # fmt: skip
    timestamps: str = option(
        "write.timestamps", "error", one_of("error", "truncate"),
        "What to do with nanoseconds, since columns store microseconds.", aliases=("timestamps",),
    )  # fmt: skip
    merge_on_write: bool | None = option(
        "mergeOnWrite.enabled", None, BOOLEAN,
        "Merge small splits after a write, by levels: some splits with about the same number of rows at a "
        "time, so that a row is rewritten a few times only. If unset, writers of small batches "
        "(`Table.writer`), `tail` and Spark's streams do, and other writes do not.",
    )  # fmt: skip
    merge_fan_in: int = option(
        "mergeOnWrite.fanIn", 16, at_least(2),
        "Splits with about the same number of rows that are merged after a write once there are so many.",
    )  # fmt: skip
    purge_on_write: bool = option("purgeOnWrite.enabled", False, BOOLEAN, "Run PURGE after a write.")


@dataclass(frozen=True, slots=True)
class VectorOptions:
    """How rows are deleted."""

    enabled: bool = option(
        "deletionVectors.enabled", False, BOOLEAN,
        "Delete rows by naming them in the log, in place of writing their split anew. New tables have it as "
        "a property that is true; it is false in tables made by 0.2. The first such DELETE raises the table "
        "to protocol 3/3.",
    )  # fmt: skip
    fold_share: float = option(
        "deletionVectors.foldShare", 0.3, FRACTION,
        "Share of deleted rows above which a split is written anew without them.",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How small splits are merged."""

    target_bytes: int = option("merge.targetBytes", 512 << 20, SIZE, "Size of a merged split.")
    skip_split_threshold: float = option(
        "merge.skipSplitThreshold", 0.45, FRACTION,
        "Splits at or above this share of the target are left alone.",
    )  # fmt: skip
    max_source_splits: int = option(
        "merge.maxSourceSplitsPerMerge", 1000, at_least(2), "Most splits merged into one."
    )


@dataclass(frozen=True, slots=True)
class PurgeOptions:
    """What PURGE may delete."""

    default_retention_hours: float = option(
        "purge.defaultRetentionHours",
        168,
        HOURS,
        "Age at which PURGE deletes unused files.",
    )
    min_retention_hours: float = option(
        "purge.minRetentionHours", 24, HOURS, "The smallest age PURGE accepts."
    )
    retention_check: bool = option(
        "purge.retentionCheckEnabled", True, BOOLEAN, "Refuse ages below the minimum."
    )


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How searches run."""

    max_hits: int | None = option(
        "search.maxHits",
        None,
        POSITIVE,
        "Most rows of a split that the query of a search without a limit may find, "
        "whatever filter and order it has.",
    )
    default_operator: str = option(
        "search.defaultOperator",
        "or",
        one_of(*OPERATORS),
        "How two words without an operator between them are joined: or, and.",
    )
    lowercase_operators: bool = option(
        "search.lowercaseOperators",
        False,
        BOOLEAN,
        "Read `and` and `or` in queries as operators and refuse `not`, as up to 0.2; else they are words.",
    )
    cache_dir: str | None = option(
        "indexCache.dir",
        None,
        TEXT,
        "Directory that caches parts of indexes on remote storage; if unset, none is used.",
    )
    cache_max_bytes: int = option("indexCache.maxBytes", 4 << 30, SIZE, "Size limit of that directory.")
    filters_enabled: bool | None = option(
        "indexFilters.enabled",
        None,
        BOOLEAN,
        "Keep small files that say which splits can contain a word; if unset, from 64 splits on.",
    )
    time_zone: str = option(
        "timeZone",
        "UTC",
        TEXT,
        "Time zone of times without an offset in conditions, queries and `as_of`; "
        "on Spark by default the session's.",
    )


@dataclass(frozen=True, slots=True)
class IndexingOptions:
    """Which columns are indexed for search, and how; settings by column name."""

    fast_fields: tuple[str, ...] | None = option(
        "indexing.fastfields",
        None,
        NAMES,
        "Columns (numbers, booleans, dates, times, texts) that queries can compare, as in `status:>=500`.",
    )
    auto: bool | None = option(
        "indexing.auto",
        None,
        BOOLEAN,
        "Index columns of text by their first rows when a write makes a table: sentences as `text`, few "
        "values (level, host, service, status) as `string`. `load` and `tail` do unless it is false.",
    )
    typemap: Mapping[str, str] = field(default_factory=dict)
    tokenizer: Mapping[str, str] = field(default_factory=dict)
    record_option: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ColumnKey:
    """An option that is set column by column: the field that holds it, and the kind of its values."""

    group: str
    field: str
    kind: Kind
    doc: str


COLUMN_KEYS: Mapping[str, ColumnKey] = MappingProxyType(
    {
        "stats.truncation.maxLength.": ColumnKey(
            "stats",
            "max_lengths",
            POSITIVE,
            "`stats.truncation.maxLength` for one column, or for all fields of a struct.",
        ),
        "stats.truncation.strategy.": ColumnKey(
            "stats",
            "strategies",
            STRATEGY,
            "`stats.truncation.strategy` for one column, or for all fields of a struct.",
        ),
        "indexing.typemap.": ColumnKey(
            "indexing",
            "typemap",
            TEXT,
            "Index type of a column: text, string, json, ip, substring, or several as in `text,substring`; "
            "`indexing.typemap.<type>`: a list.",
        ),
        "indexing.tokenizer.": ColumnKey(
            "indexing",
            "tokenizer",
            TEXT,
            "How text becomes words: default, raw, en_stem, whitespace, compact_ids, jieba, icu; "
            "`+fold` ignores accents.",
        ),
        "indexing.indexrecordoption.": ColumnKey(
            "indexing",
            "record_option",
            TEXT,
            "What the index stores for each word: basic, freq, position.",
        ),
    }
)
