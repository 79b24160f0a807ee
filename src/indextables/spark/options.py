"""The options of one reader or writer call, combined with those of the session.

Some options belong to one call (`versionAsOf`, `replaceWhere`, ...) and are declared
here; every other one is an option of the table (`indextables.options`) and may also be
set in the session or the Hadoop configuration.
"""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from indextables.errors import OptionError
from indextables.options import PREFIX, Options, canonical, is_storage_key, parse_size, unknown_option
from indextables.spark.versions import converters

FORMATS = frozenset(
    {
        "indextables",
        "io.indextables.spark.core.indextables4sparktableprovider",
        "io.indextables.provider.indextablesprovider",
    }
)

READ_KEYS = (
    "path", "versionAsOf", "timestampAsOf", "query", "columns", "refresh", "engine",
    "readChangeFeed", "startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp",
)  # fmt: skip
COMPANION_KEY = "companion"
"""The option of a load by which a Delta table or Parquet files name their companion index."""
STREAM_READ_KEYS = (
    "path", "startingVersion", "startingTimestamp", "maxFilesPerTrigger", "maxBytesPerTrigger",
    "ignoreDeletes", "skipChangeCommits", "readChangeFeed",
)  # fmt: skip
WRITE_KEYS = (
    "path", "replaceWhere", "partitionOverwriteMode", "overwriteSchema", "mergeSchema",
    "userMetadata", "txnAppId", "txnVersion", "expectedVersion",
)  # fmt: skip
STREAM_WRITE_KEYS = ("path", "checkpointLocation", "mergeSchema", "userMetadata", "txnAppId")

_HADOOP_PREFIXES = {
    "s3": ("fs.s3a.",),
    "s3a": ("fs.s3a.",),
    "abfss": ("fs.azure.",),
    "abfs": ("fs.azure.",),
    "az": ("fs.azure.",),
    "wasbs": ("fs.azure.",),
    "gs": ("fs.gs.", "google.cloud."),
}

_mappers: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def is_ours(source: str | None) -> bool:
    """Whether a format name means IndexTables."""
    return source is not None and source.lower() in FORMATS


@dataclass(frozen=True, slots=True)
class CallSettings:
    """The options of one call, and the table options that apply to it."""

    call: Mapping[str, str] = field(default_factory=dict)
    table: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Call options over session over Hadoop configuration, flattened; executors rebuild Options from it."""

    def options(self) -> Options:
        """The same, resolved."""
        return Options.of(self.table)

    def flag(self, key: str, *, default: bool = False) -> bool:
        """A call option that is true or false."""
        text = self.call.get(key)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise OptionError(f"option {key!r} is {text!r}; expected true or false", key=key, value=text)
        return text.lower() == "true"

    def number(self, key: str) -> int | None:
        """A call option that is a whole number from 0."""
        text = self.call.get(key)
        if text is None:
            return None
        if not text.strip().isdigit():
            raise OptionError(f"option {key!r} is {text!r}; expected a whole number", key=key, value=text)
        return int(text)

    def size(self, key: str) -> int | None:
        """A call option that is a number of bytes, as 10000000, 10m or 1g."""
        text = self.call.get(key)
        try:
            return None if text is None else parse_size(text)
        except ValueError as bad:
            raise OptionError(
                f"option {key!r} is {text!r}; expected bytes, such as 10000000 or 10m", key=key, value=text
            ) from bad


def settings_for(
    spark: Any, options: Mapping[str, Any], keys: Iterable[str], path: str | None
) -> CallSettings:
    """Separate the options of one call from table options, and add the session's as defaults."""
    call, explicit = split(options, keys)
    session, hadoop = session_layers(spark, path)
    return CallSettings(call, Options.of(explicit, session=session, hadoop=hadoop).explicit)


def split(options: Mapping[str, Any], keys: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The options of the call, spelled as declared, and the rest."""
    spelled = {key.lower(): key for key in keys}
    call: dict[str, str] = {}
    rest: dict[str, str] = {}
    for key, value in options.items():
        if value is None:
            continue
        bare = key.lower().removeprefix(PREFIX)
        if bare in spelled:
            call[spelled[bare]] = str(value)
        else:
            rest[key] = str(value)
    for key in rest:
        if canonical(key) is None and not is_storage_key(key):
            raise unknown_option(key, spelled.values())
    return call, rest


def session_layers(spark: Any, path: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """The session's and the Hadoop configuration's keys that concern us; Connect shows only the first.

    Where nobody says otherwise, times without an offset are read in the zone of the session.
    """
    zone = {f"{PREFIX}timeZone": session_zone(spark)}
    if is_connect(spark):
        return {**zone, **_ours(spark.conf.getAll)}, {}
    session = {
        **zone,
        **_ours(java_map(spark, converters(spark).mapAsJavaMap(spark._jsparkSession.conf().getAll()))),
    }
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    hadoop = _prefixed(spark, configuration, PREFIX)
    scheme = (path or "").partition(":")[0].lower() if "://" in (path or "") else ""
    for prefix in _HADOOP_PREFIXES.get(scheme, ()):
        hadoop.update(_prefixed(spark, configuration, prefix))
    return session, hadoop


def is_connect(spark: Any) -> bool:
    """Whether a session talks to a Spark Connect server and has no JVM of its own."""
    return ".connect." in type(spark).__module__


def java_map(spark: Any, mapping: Any) -> dict[str, str]:
    """A Java map as a dict in one call to the JVM."""
    return dict(json.loads(_mapper(spark.sparkContext).writeValueAsString(mapping)))


def _mapper(context: Any) -> Any:
    # To find a class of the JVM takes a call per part of its name, and every statement gets here.
    mapper = _mappers.get(context._gateway)
    if mapper is None:
        mapper = _mappers[context._gateway] = context._jvm.com.fasterxml.jackson.databind.ObjectMapper()
    return mapper


def session_zone(spark: Any) -> str:
    """The zone in which the session reads timestamps without an offset."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


def _ours(conf: Mapping[str, str]) -> dict[str, str]:
    delta = "spark.databricks.delta.v2.distributedLogReplay."
    return {key: value for key, value in conf.items() if key.startswith((PREFIX, delta))}


def _prefixed(spark: Any, configuration: Any, prefix: str) -> dict[str, str]:
    """Keys below a prefix, without the values that Hadoop ships as defaults."""
    properties = java_map(spark, configuration.getPropsWithPrefix(prefix))
    if prefix == PREFIX:
        return {PREFIX + key: value for key, value in properties.items()}
    chosen = {}
    for key, value in properties.items():
        sources = configuration.getPropertySources(prefix + key) or ()
        if any("default.xml" not in str(source) for source in sources):
            chosen[prefix + key] = value
    return chosen
