"""The features a Delta table requires of its readers, and those that are supported here.

Reader version 2 brings column mapping, version 3 a list of named features. A table that
requires a feature this module does not know is refused, and the error names the feature:
reading the file list without supporting it could give wrong rows.
"""

from __future__ import annotations

from types import MappingProxyType

from indextables.errors import CorruptLogError, ProtocolError
from indextables.model.actions import MetadataAction, ProtocolAction

_FEATURES_VERSION = 3

UNDERSTOOD = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        # Variant values pass through untouched, shredded or not, and are never compared.
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
_ASK_CATALOG = (
    "its newest commits are known to its catalog alone, and the log directory is behind it; read it through "
    "an engine that asks the catalog, copy it there with CREATE TABLE ... AS SELECT, or drop the feature "
    "from the table"
)
_ASK_COORDINATOR = (
    "its newest commits are known to a commit coordinator alone, and the log directory is behind it; "
    "read it through an engine that asks the coordinator, or drop the feature from the table"
)
# Writer-only features by the protocol, which readers have to know about all the same: without them they see
# an outdated table.
_COORDINATED = frozenset({"coordinatedCommits", "coordinatedCommits-preview"})
_REASONS = MappingProxyType(
    dict.fromkeys(("catalogManaged", "catalogOwned", "catalogOwned-preview"), _ASK_CATALOG)
    | dict.fromkeys(_COORDINATED, _ASK_COORDINATOR)
)


def require_readable(protocol: ProtocolAction | None, *, uri: str) -> ProtocolAction:
    """Raise unless every feature the table requires of a reader is supported."""
    if protocol is None:
        raise CorruptLogError(
            f"the log of {uri} has no protocol action, which every Delta table has; it cannot be trusted",
            uri=uri,
        )
    version = protocol.min_reader_version
    if not 1 <= version <= _FEATURES_VERSION:
        raise ProtocolError(
            f"{uri} asks for minReaderVersion = {version}; versions 1 to {_FEATURES_VERSION} are understood. "
            "Upgrade indextables to read it",
            uri=uri,
            min_reader_version=version,
        )
    required = set(protocol.reader_features or ()) if version == _FEATURES_VERSION else set[str]()
    unknown = sorted((required - UNDERSTOOD) | (set(protocol.writer_features or ()) & _COORDINATED))
    if unknown:
        reasons = "; ".join(f"{name}: {_REASONS[name]}" for name in unknown if name in _REASONS)
        plural = "s" if len(unknown) > 1 else ""
        raise ProtocolError(
            f"{uri} uses the feature{plural} {', '.join(unknown)}, which this version does not understand"
            f"; {reasons or 'upgrade indextables to read it'}",
            uri=uri,
            features=tuple(unknown),
        )
    return protocol


def require_metadata(metadata: MetadataAction | None, *, uri: str) -> MetadataAction:
    """Raise unless the table says what its columns are."""
    if metadata is None:
        raise CorruptLogError(f"the log of {uri} has no metaData action, so the table has no schema", uri=uri)
    provider = metadata.format.get("provider", "parquet")
    if provider != "parquet":
        raise ProtocolError(f"{uri} stores its rows as {provider!r}; only parquet is understood", uri=uri)
    return metadata
