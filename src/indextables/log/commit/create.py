"""Creating a table: version 0, holding the protocol and the metadata, written once and never again."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from indextables.errors import CommitError, NotATableError, NotFoundError, SchemaError, StorageError
from indextables.log.commit.patience import look_patiently
from indextables.log.commit.redaction import refuse_secrets
from indextables.log.format.binding import COMMIT_INFO, REQUIRED
from indextables.log.format.dialect import NATIVE
from indextables.log.format.protocol import CURRENT, WITH_PARQUET, with_constraints
from indextables.log.segment import list_log
from indextables.log.snapshot import Snapshot
from indextables.log.state import LogSource
from indextables.log.table_kind import refuse_foreign
from indextables.model.actions import Action, MetadataAction, ProtocolAction
from indextables.model.constraints import constraints_of
from indextables.model.fields import check_partition_columns, normalise_schema, schema_to_json
from indextables.options import Options
from indextables.storage.envelope import pack
from indextables.storage.stores.put_if_absent import require_exclusion

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT: Mapping[str, Any] = {"provider": "indextables", "options": {"container": "parquet"}}


def create_table(
    source: LogSource,
    look: Callable[[], Snapshot],
    schema: Any,
    partition_columns: Sequence[str],
    configuration: Mapping[str, str],
    *,
    table_id: str | None = None,
    description: str | None = None,
    container: str = "parquet",
) -> int:
    """Create the table as version 0; if there is one already, check that it agrees and return its version.

    `table_id` is given when splits were built before the table they will belong to. `container` says what its
    splits are: Parquet files with rows, unless it is a companion index.
    """
    refuse_secrets(configuration)
    normalised = normalise_schema(schema)
    partitions = check_partition_columns(normalised, partition_columns)
    try:
        return _agreed(look(), normalised, partitions)
    except NotATableError:
        refuse_foreign(source.store)
    metadata = MetadataAction(
        id=table_id or str(uuid.uuid4()),
        description=description,
        format=_format(container, sealed=not source.options.compression.enabled),
        schema_string=schema_to_json(normalised),
        partition_columns=partitions,
        configuration=dict(configuration),
        created_time=source.runtime.clock.now_ms(),
    )
    protocol = first_protocol(source.options)
    if constraints_of(configuration):
        protocol = with_constraints(protocol)
    if _put_first(source, (protocol, metadata), metadata.id):
        return 0
    return _agreed(look(), normalised, partitions)


def _format(container: str, *, sealed: bool) -> Mapping[str, Any]:
    """The format of a table; version files of a sealed one must end with commitInfo, or were cut short."""
    options = {**FORMAT["options"], "container": container}
    return {**FORMAT, "options": {**options, COMMIT_INFO: REQUIRED} if sealed else options}


def first_protocol(options: Options) -> ProtocolAction:
    """The protocol of a new table; Parquet checkpoints from the start need a newer one."""
    return WITH_PARQUET if options.checkpoint.prefers_parquet(0) else CURRENT


def _put_first(source: LogSource, actions: Sequence[Action], table_id: str) -> bool:
    """Create version 0; False when there is a table already and it is not ours."""
    name = NATIVE.commit_name(0)
    require_exclusion(source.store, source.dialect.log_dir)
    data = pack(NATIVE.encode_commit(actions), source.options.compression)
    failed: StorageError | None = None
    ours = False
    try:
        ours = source.store.put_if_absent(source.path(name), data)
    except StorageError as error:
        failed = error
    try:
        # If the reply to our put was lost, the existing file may be our own.
        return (ours or _holds(source, name, table_id)) and _never_retired(source)
    except StorageError as absent:
        certain = not ours and isinstance(absent, NotFoundError)
        raise _not_created(source, failed or absent, certain=certain) from absent


def _holds(source: LogSource, name: str, table_id: str) -> bool:
    """Whether version 0 is that of this table."""
    actions = NATIVE.decode_commit(source.store.get(source.path(name)), name=name, version=0)
    return any(isinstance(action, MetadataAction) and action.id == table_id for action in actions)


def _never_retired(source: LogSource) -> bool:
    """Whether version 0 was never retired: since we looked, a table may have been created and truncated."""
    clock = source.runtime.clock
    listing = look_patiently(lambda: list_log(source.store, NATIVE, 0), source.options.transaction, clock)
    return listing.floor == 0


def _not_created(source: LogSource, failed: StorageError, *, certain: bool) -> CommitError:
    is_final = certain and bool(failed.fields.get("final"))
    outcome = "" if is_final else " It may have been made all the same: creating it again does no harm."
    return CommitError(
        f"{source.store.uri}: the table could not be created: {failed}{outcome}",
        version=0, outcome="absent" if is_final else "unknown", uri=source.store.uri,
    )  # fmt: skip


def _agreed(existing: Snapshot, schema: pa.Schema, partitions: Sequence[str]) -> int:
    uri = existing.store.uri
    if tuple(partitions) != existing.partition_columns:
        raise SchemaError(
            f"{uri} is a table partitioned by {_names(existing.partition_columns)}, not by "
            f"{_names(partitions)}. Open it as it is, or choose another path.",
            uri=uri,
        )
    if not existing.schema.equals(schema):
        raise SchemaError(
            f"{uri} is a table with the schema {_columns(existing.schema)}, not {_columns(schema)}. "
            "Open it as it is, or choose another path.",
            uri=uri,
        )
    return existing.version


def _names(columns: Sequence[str]) -> str:
    return ", ".join(columns) or "nothing"


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{item.name} {item.type}{'' if item.nullable else ' not null'}" for item in schema)
