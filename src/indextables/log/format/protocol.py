"""The protocol versions and features this version reads and writes, and the checks that enforce them."""

from __future__ import annotations

from indextables.errors import ProtocolError
from indextables.model.actions import ProtocolAction
from indextables.options import Options

READER_VERSION = 3
WRITER_VERSION = 3
FEATURES_FROM = 3
PARQUET_CHECKPOINT = "parquetCheckpoint"
FEATURES = frozenset({PARQUET_CHECKPOINT})

LEGACY = ProtocolAction(min_reader_version=1, min_writer_version=1)
CURRENT = ProtocolAction(min_reader_version=2, min_writer_version=2)
WITH_PARQUET = ProtocolAction(
    min_reader_version=3,
    min_writer_version=3,
    reader_features=(PARQUET_CHECKPOINT,),
    writer_features=(PARQUET_CHECKPOINT,),
)


def check_readable(protocol: ProtocolAction, options: Options, uri: str) -> None:
    """Raise when the table needs a newer reader, unless the option that skips this check is set."""
    if not options.transaction.check_protocol:
        return
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
    """Raise when the table needs a newer writer; no option skips this check."""
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
