"""The actions of common changes: removing files, setting properties, raising the protocol."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from indextables.errors import OptionError, ProtocolError
from indextables.lazy import later
from indextables.log.commit.redaction import refuse_secrets
from indextables.log.format.protocol import FEATURES, READER_VERSION, WRITER_VERSION, describe, merged
from indextables.log.snapshot import Snapshot
from indextables.model.actions import Action, AddAction, MetadataAction, ProtocolAction, RemoveAction
from indextables.model.constraints import PROPERTY
from indextables.options import check_properties

if TYPE_CHECKING:
    from indextables.model import stats
else:
    stats = later("indextables.model.stats")


def removals(base: Snapshot, adds: Iterable[AddAction], *, data_change: bool = True) -> list[RemoveAction]:
    """The tombstones of live files."""
    now_ms = base.runtime.clock.now_ms()
    return [
        RemoveAction(
            path=add.path,
            deletion_timestamp=now_ms,
            data_change=data_change,
            extended_file_metadata=True,
            partition_values=add.partition_values,
            size=add.size,
            tags=add.tags,
            deletion_vector=add.deletion_vector,
        )
        for add in adds
    ]


def properties(base: Snapshot, changes: Mapping[str, str | None]) -> list[Action]:
    """The metadata with some properties set or, where given as None, removed; empty when nothing changes."""
    set_values = {key: text(value) for key, value in changes.items() if value is not None}
    refuse_secrets(set_values)
    refuse_constraints(changes, base.store.uri)
    check_properties(set_values)
    if any("stats.truncation." in key.lower() for key in set_values):
        stats.check_column_options(set_values, base.schema)
    current: Mapping[str, str | None] = base.metadata.configuration
    result = {key: text(value) for key, value in {**current, **changes}.items() if value is not None}
    if result == dict(current):
        return []
    changed: MetadataAction = replace(base.metadata, configuration=result)
    return [changed]


def refuse_constraints(names: Iterable[str], uri: str) -> None:
    """Refuse a constraint that is set or removed as a property: rows that are there have to be checked."""
    for name in names:
        if name.startswith(PROPERTY):
            raise OptionError(
                f"{uri}: {name} is a constraint, not a property to be set or removed: use ALTER TABLE ... "
                "ADD CONSTRAINT name CHECK (condition), or DROP CONSTRAINT name",
                key=name,
            )


def text(value: Any) -> str:
    """The value of a property as the log stores it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def upgrade(base: Snapshot, reader: int, writer: int, features: Collection[str]) -> list[Action]:
    """The least protocol with the table's and the given features; empty if the table has them already."""
    if reader < base.protocol.min_reader_version or writer < base.protocol.min_writer_version:
        raise ProtocolError(
            f"{base.store.uri}: a protocol can only be raised: {describe(base.protocol)} cannot become "
            f"{reader}/{writer}.",
            uri=base.store.uri,
        )
    if reader > READER_VERSION or writer > WRITER_VERSION or not FEATURES.issuperset(features):
        described = " ".join([f"{reader}/{writer}", *sorted(features)])
        raise ProtocolError(
            f"{base.store.uri}: the protocol {described} is more than this version of IndexTables reads and "
            f"writes ({READER_VERSION}/{WRITER_VERSION}, "
            f"{', '.join(sorted(FEATURES))}); it would lock itself out. Upgrade IndexTables first.",
            uri=base.store.uri,
        )
    named = tuple(sorted(features)) or None
    requested = ProtocolAction(
        min_reader_version=reader, min_writer_version=writer, reader_features=named, writer_features=named
    )
    result = merged(base.protocol, requested)
    return [] if result == base.protocol else [result]
