"""The protocol versions and features this version reads and writes, and the checks that enforce them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from indextables.errors import ProtocolError
from indextables.model.actions import ProtocolAction
from indextables.options import Options

READER_VERSION = 3
WRITER_VERSION = 3
FEATURES_FROM = 3
PARQUET_CHECKPOINT = "parquetCheckpoint"
CHECK_CONSTRAINTS = "checkConstraints"
"""A feature of writers: the table may have constraints, and every row that is written is checked."""
DELETION_VECTORS = "deletionVectors"
"""A feature of readers and writers: a file of the table may have rows that are no longer there."""
COLUMN_MAPPING = "columnMapping"
"""A feature of readers and writers: columns are stored under other names than the table gives them."""
FEATURES = frozenset({PARQUET_CHECKPOINT, CHECK_CONSTRAINTS, DELETION_VECTORS, COLUMN_MAPPING})
CLOSED = "closed"
"""The writer feature that no writer has: REPAIR ... SWAP adds it with the last version of the old log."""
CLOSED_BY = "closedBy"
"""Beside the features: `repair`, the id of the repair that closed the log, and `command`, which finishes it.
"""

LEGACY = ProtocolAction(min_reader_version=1, min_writer_version=1)
CURRENT = ProtocolAction(min_reader_version=2, min_writer_version=2)
WITH_PARQUET = ProtocolAction(
    min_reader_version=3,
    min_writer_version=3,
    reader_features=(PARQUET_CHECKPOINT,),
    writer_features=(PARQUET_CHECKPOINT,),
)


AVRO_STATE = "avro-state"
"""The format that `_last_checkpoint` names where the JVM system keeps the state in Avro files."""
_AVRO_VERSION = 4


def avro_state(uri: str) -> ProtocolError:
    """The error for a log of protocol V4 of the JVM system."""
    return ProtocolError(
        f"{uri} cannot be read: its protocol has minReaderVersion = {_AVRO_VERSION}, which is V4 of the JVM "
        "system. It keeps the state of a table in Avro files, and these are not read here. Read the table "
        "with that system and write its rows as Parquet; the page howto/from-jvm.md says how.",
        uri=uri, min_reader_version=_AVRO_VERSION,
    )  # fmt: skip


def check_readable(protocol: ProtocolAction, options: Options, uri: str) -> None:
    """Raise when the table needs a newer reader, unless the option that skips this check is set."""
    if not options.transaction.check_protocol:
        return
    if protocol.min_reader_version == _AVRO_VERSION:
        raise avro_state(uri)
    if protocol.min_reader_version > READER_VERSION:
        raise ProtocolError(
            f"{uri} cannot be read: its protocol has minReaderVersion = {protocol.min_reader_version} and "
            f"this version of IndexTables reads up to {READER_VERSION}. Upgrade IndexTables.",
            uri=uri, min_reader_version=protocol.min_reader_version,
        )  # fmt: skip
    unknown = sorted(set(protocol.reader_features or ()) - FEATURES)
    if unknown:
        raise ProtocolError(
            f"{uri} cannot be read: it needs the reader feature(s) {', '.join(unknown)}, which this version "
            "of IndexTables does not know. Upgrade IndexTables.",
            uri=uri, features=unknown,
        )  # fmt: skip


def check_writable(protocol: ProtocolAction, uri: str) -> None:
    """Raise when the table needs a newer writer, or is closed; no option skips this check."""
    if CLOSED in (protocol.writer_features or ()):
        by = closed_by(protocol)
        command = f": {by['command']}" if "command" in by else "."
        raise ProtocolError(
            f"{uri} is closed for writing: the repair {by.get('repair', '')} is putting another log in the "
            "place of this one, and nothing was committed. Write again once it has finished; if it was "
            f"interrupted, run it once more{command}",
            uri=uri, features=[CLOSED], **by,
        )  # fmt: skip
    if protocol.min_writer_version > WRITER_VERSION:
        raise ProtocolError(
            f"{uri} cannot be written: its protocol has minWriterVersion = {protocol.min_writer_version} and "
            f"this version of IndexTables writes up to {WRITER_VERSION}. Upgrade IndexTables.",
            uri=uri, min_writer_version=protocol.min_writer_version,
        )  # fmt: skip
    if protocol.min_reader_version > READER_VERSION:
        raise ProtocolError(
            f"{uri} cannot be written: its protocol has minReaderVersion = {protocol.min_reader_version} and "
            f"this version of IndexTables reads up to {READER_VERSION}. Upgrade IndexTables.",
            uri=uri, min_reader_version=protocol.min_reader_version,
        )  # fmt: skip
    unknown = sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())} - FEATURES)
    if unknown:
        raise ProtocolError(
            f"{uri} cannot be written: it needs the feature(s) {', '.join(unknown)}, which this version "
            "of IndexTables does not know. Upgrade IndexTables.",
            uri=uri, features=unknown,
        )  # fmt: skip


def with_constraints(protocol: ProtocolAction) -> ProtocolAction:
    """The least protocol that keeps writers out which do not know constraints; readers need nothing new."""
    if CHECK_CONSTRAINTS in (protocol.writer_features or ()):
        return protocol
    writer_only = ProtocolAction(
        min_reader_version=0, min_writer_version=FEATURES_FROM, writer_features=(CHECK_CONSTRAINTS,)
    )
    return merged(protocol, writer_only)


def has_feature(protocol: ProtocolAction, name: str) -> bool:
    """Whether readers of the table need a feature."""
    return name in (protocol.reader_features or ())


def with_feature(protocol: ProtocolAction, name: str) -> ProtocolAction:
    """The least protocol that keeps readers and writers out which do not know a feature."""
    if has_feature(protocol, name):
        return protocol
    names = (name,)
    feature = ProtocolAction(
        min_reader_version=FEATURES_FROM, min_writer_version=FEATURES_FROM,
        reader_features=names, writer_features=names,
    )  # fmt: skip
    return merged(protocol, feature)


def closed(protocol: ProtocolAction, repair: str, command: str) -> ProtocolAction:
    """The protocol that keeps every writer out of a log, and says which repair does so."""
    writer_only = ProtocolAction(
        min_reader_version=0, min_writer_version=FEATURES_FROM, writer_features=(CLOSED,)
    )
    extra = {**protocol.extra, CLOSED_BY: {"repair": repair, "command": command}}
    return replace(merged(protocol, writer_only), extra=extra)


def closed_by(protocol: ProtocolAction) -> Mapping[str, str]:
    """The repair that closed a log, and the command that finishes it; empty if it is not closed."""
    by = protocol.extra.get(CLOSED_BY)
    if CLOSED not in (protocol.writer_features or ()) or not isinstance(by, Mapping):
        return {}
    return {key: value for key, value in by.items() if isinstance(value, str)}


def reopened(protocol: ProtocolAction) -> ProtocolAction:
    """The protocol without what closes the log."""
    features = protocol.writer_features
    if features is None or CLOSED not in features:
        return protocol
    extra = {key: value for key, value in protocol.extra.items() if key != CLOSED_BY}
    left = tuple(name for name in features if name != CLOSED)
    return replace(protocol, writer_features=left, extra=extra)


def check_upgrade(old: ProtocolAction, new: ProtocolAction, uri: str) -> None:
    """Raise when a new protocol would drop a version or feature that the old one has."""
    lower = new.min_reader_version < old.min_reader_version or new.min_writer_version < old.min_writer_version
    lost = {*(old.reader_features or ()), *(old.writer_features or ())} - {
        *(new.reader_features or ()),
        *(new.writer_features or ()),
    }
    if lower or lost:
        raise ProtocolError(
            f"{uri}: a protocol can only be raised: {describe(old)} cannot become {describe(new)}.", uri=uri
        )


def merged(old: ProtocolAction, new: ProtocolAction) -> ProtocolAction:
    """The least protocol that covers both."""
    reader = max(old.min_reader_version, new.min_reader_version)
    writer = max(old.min_writer_version, new.min_writer_version)
    reads = tuple(sorted({*(old.reader_features or ()), *(new.reader_features or ())}))
    writes = tuple(sorted({*(old.writer_features or ()), *(new.writer_features or ())}))
    return ProtocolAction(
        min_reader_version=reader,
        min_writer_version=writer,
        reader_features=reads or (() if reader >= FEATURES_FROM else None),
        writer_features=writes or (() if writer >= FEATURES_FROM else None),
        extra=old.extra,
    )


def describe(protocol: ProtocolAction) -> str:
    """The protocol as text: `2/2`, followed by its features if it has any."""
    features = sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())})
    text = f"{protocol.min_reader_version}/{protocol.min_writer_version}"
    return f"{text} with {', '.join(features)}" if features else text
