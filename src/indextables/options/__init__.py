"""Options, resolved once at the edge into frozen groups that everything below reads.

Keys are written with the prefix `spark.indextables.` in session and Hadoop
configurations; in `.option()` and `options=` the prefix may be left out. The
options themselves stand in `groups`; `page` turns them into
`docs/options.md`.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

from indextables.errors import OptionError
from indextables.lazy import later
from indextables.options.foreign import instead_of
from indextables.options.groups import (
    COLUMN_KEYS,
    CheckpointOptions,
    CompressionOptions,
    IndexingOptions,
    MergeOptions,
    PurgeOptions,
    ReadOptions,
    RepairOptions,
    ReplayOptions,
    RetentionOptions,
    SearchOptions,
    StatsOptions,
    TransactionOptions,
    VectorOptions,
    WriteOptions,
)
from indextables.options.kinds import Kind, parse_size
from indextables.pages import page
from indextables.records import dataclass

if TYPE_CHECKING:
    import difflib
else:
    difflib = later("difflib")

__all__ = [
    "KEYS",
    "PREFIX",
    "CheckpointOptions",
    "CompressionOptions",
    "IndexingOptions",
    "MergeOptions",
    "Options",
    "PurgeOptions",
    "ReadOptions",
    "RepairOptions",
    "ReplayOptions",
    "RetentionOptions",
    "SearchOptions",
    "StatsOptions",
    "TransactionOptions",
    "VectorOptions",
    "WriteOptions",
    "canonical",
    "check_properties",
    "declared",
    "is_storage_key",
    "parse_size",
    "unknown_option",
]

PREFIX = "spark.indextables."
ALLOWED_ROOTS = "read.allowedRoots"
"""Where the files of a table may lie beside the table itself; stores carry it from one to the next."""
STORAGE_PREFIXES = ("aws_", "azure_", "google_", "fs.", "storage.", "s3_", "client_")

_log = logging.getLogger(__name__)
_warned: set[str] = set()


@dataclass(frozen=True, slots=True)
class Options:
    """All options, resolved."""

    checkpoint: CheckpointOptions = field(default_factory=CheckpointOptions)
    retention: RetentionOptions = field(default_factory=RetentionOptions)
    transaction: TransactionOptions = field(default_factory=TransactionOptions)
    compression: CompressionOptions = field(default_factory=CompressionOptions)
    stats: StatsOptions = field(default_factory=StatsOptions)
    repair: RepairOptions = field(default_factory=RepairOptions)
    replay: ReplayOptions = field(default_factory=ReplayOptions)
    read: ReadOptions = field(default_factory=ReadOptions)
    write: WriteOptions = field(default_factory=WriteOptions)
    vectors: VectorOptions = field(default_factory=VectorOptions)
    merge: MergeOptions = field(default_factory=MergeOptions)
    purge: PurgeOptions = field(default_factory=PurgeOptions)
    search: SearchOptions = field(default_factory=SearchOptions)
    indexing: IndexingOptions = field(default_factory=IndexingOptions)
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    explicit: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What an option, the session or the Hadoop configuration says; a table property counts below it."""

    @classmethod
    def of(
        cls,
        explicit: Mapping[str, Any] | Options | None = None,
        *,
        session: Mapping[str, str] | None = None,
        hadoop: Mapping[str, str] | None = None,
    ) -> Options:
        """Resolve option > session configuration > Hadoop configuration > default."""
        if isinstance(explicit, Options):
            if not (session or hadoop):
                return explicit
            explicit = explicit.explicit
        explicit_values = {
            **_our_keys(hadoop or {}, "Hadoop configuration", strict=False),
            **_our_keys(session or {}, "session configuration", strict=False),
            **_our_keys(explicit or {}, "option", strict=True),
        }
        return _build(explicit_values, explicit_values)

    def over(self, properties: Mapping[str, str | None], uri: str) -> Options:
        """These options with a table's properties in the place of defaults.

        A property with a value that its option cannot have is ignored, with a warning: it came from another
        writer, for `update_properties` refuses it. Where files may lie and how they are reached is never a
        table's own decision.
        """
        accepted: dict[str, str] = {}
        for key, value in _our_keys(properties, "table property", strict=False).items():
            if is_storage_key(key) or key in self.explicit:
                continue
            try:
                _build({key: value}, {})
            except OptionError as bad:
                _warn_once(f"{uri}: a table property is ignored: {bad}")
            else:
                accepted[key] = value
        return _build({**accepted, **self.explicit}, self.explicit) if accepted else self

    def zone_or(self, of_table: Callable[[], str]) -> str:
        """The zone of times without an offset where the version is not open yet, as `over` would choose it.

        That is the option's or the session's, which need no look at the table, else the table's own.
        """
        return self.search.time_zone if "timeZone" in self.explicit else of_table()


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(str(item) for item in value)
    return str(value)


GROUPS: Mapping[str, type[Any]] = {
    item.name: cast("type[Any]", item.default_factory)
    for item in dataclasses.fields(Options)
    if dataclasses.is_dataclass(item.default_factory)
}


def declared() -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    """Every option with the name of its group, in the order of this file."""
    for name, group in GROUPS.items():
        for item in dataclasses.fields(group):
            if "key" in item.metadata:
                yield name, item


_CANONICAL: dict[str, str] = {}
for _, _item in declared():
    _key = _item.metadata["key"]
    for _name in (_key, *_item.metadata["aliases"]):
        _CANONICAL[_name.lower()] = _key
KEYS = tuple(sorted(set(_CANONICAL.values())))


def canonical(key: str) -> str | None:
    """Return the key as this file spells it, without prefix; None if there is no such option."""
    lowered = key.lower()
    bare = lowered.removeprefix(PREFIX)
    spelling = _CANONICAL.get(bare) or _CANONICAL.get(lowered)
    if spelling is not None:
        return spelling
    for prefix in COLUMN_KEYS:
        if bare.startswith(prefix.lower()) and len(bare) > len(prefix):
            return prefix + key[len(key) - len(bare) + len(prefix) :]
    return None


def is_storage_key(key: str) -> bool:
    """Whether a key configures the store rather than the table."""
    bare = key.lower().removeprefix(PREFIX)
    return bare.startswith(STORAGE_PREFIXES) or bare == ALLOWED_ROOTS.lower()


def _our_keys(layer: Mapping[str, Any], origin: str, *, strict: bool) -> dict[str, str]:
    values: dict[str, str] = {}
    for key, value in layer.items():
        if value is None:
            continue
        name = canonical(key)
        if name is not None:
            values[name] = _as_text(value)
        elif is_storage_key(key):
            values[key] = _as_text(value)
        elif strict:
            raise unknown_option(key)
        elif key.lower().startswith(PREFIX):
            _warn_once(f"unknown key {key!r} in the {origin} is ignored{_nearest(key)}")
    return values


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        _log.warning("%s", text)


def check_properties(properties: Mapping[str, Any]) -> None:
    """Refuse a value that no reader of the property would take."""
    _build(_our_keys(properties, "table property", strict=False), {})


def unknown_option(key: str, more: Iterable[str] = ()) -> OptionError:
    """The error for a key that is neither an option nor one of `more`, with the nearest that is."""
    return OptionError(f"unknown option {key!r}{_nearest(key, more)}", key=key)


def _nearest(key: str, more: Iterable[str] = ()) -> str:
    bare = key.lower().removeprefix(PREFIX)
    instead = instead_of(bare)
    if instead is not None:
        return f": {instead}"
    prefix = key[: len(key) - len(bare)]
    names = (*KEYS, *(name + "<column>" for name in COLUMN_KEYS), *more)
    spelled = {name.lower(): name for name in names}
    close = difflib.get_close_matches(bare, spelled, n=1, cutoff=0.5)
    return (
        f"; did you mean {prefix + spelled[close[0]]!r}?"
        if close
        else f"; all are listed in {page('options')}"
    )


def _build(merged: Mapping[str, str], explicit: Mapping[str, str]) -> Options:
    groups: dict[str, dict[str, Any]] = {}
    for group, item in declared():
        key = item.metadata["key"]
        if key in merged:
            groups.setdefault(group, {})[item.name] = _read(key, merged[key], item.metadata["kind"])
    for prefix, by_column in COLUMN_KEYS.items():
        values = {
            key.removeprefix(prefix): _read(key, value, by_column.kind)
            for key, value in merged.items()
            if key.startswith(prefix)
        }
        if values:
            groups.setdefault(by_column.group, {})[by_column.field] = values
    built: dict[str, Any] = {name: GROUPS[name](**values) for name, values in groups.items()}
    storage = {
        key: value
        for key, value in merged.items()
        if is_storage_key(key) and canonical(key) in (None, ALLOWED_ROOTS)
    }
    return Options(**built, storage=storage, explicit=explicit)


def _read(key: str, value: str, kind: Kind) -> Any:
    try:
        return kind.read(value)
    except ValueError as bad:
        raise OptionError(
            f"option {PREFIX + key} is {value!r}; expected {kind.name}", key=PREFIX + key, value=value
        ) from bad
