"""Reads checkpoints of a Delta log, of every kind, into Arrow.

A checkpoint is one Parquet file, several, or a small JSON or Parquet file that names
sidecars. Each kind comes down to a few single actions (the head) and a list of files that
hold `add` rows. Only the columns that are needed are read: an `add` has about twenty
fields and a query needs five.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from indextables.errors import CorruptLogError, NotFoundError
from indextables.lazy import pq
from indextables.log.checkpoint.head import CheckpointHead
from indextables.log.delta.dialect import DELTA
from indextables.log.delta.files.text import decode_paths
from indextables.log.delta.paths import decode_path
from indextables.log.format.dialect import Checkpoint
from indextables.model.actions import (
    AddAction,
    MetadataAction,
    ProtocolAction,
    TxnAction,
    action_from_wire,
)
from indextables.storage.store import Store, resolve

if TYPE_CHECKING:
    import pyarrow.parquet as pq


SIDECAR_DIR = DELTA.path("_sidecars")
# For each single action, one of its columns, whose null counts tell which row groups hold such an action.
_SINGLES = {
    "protocol": "protocol.minReaderVersion",
    "metaData": "metaData.id",
    "txn": "txn.appId",
    "sidecar": "sidecar.path",
}
_BATCH_ROWS = 65_536
_REMOTE_PIECES = 4


@dataclass(frozen=True, slots=True)
class CheckpointManifest:
    """The contents of a checkpoint: its single actions, and the files that hold its adds."""

    protocol: ProtocolAction | None
    metadata: MetadataAction | None
    txns: tuple[TxnAction, ...]
    parquet: tuple[str, ...]
    """Parquet files with `add` rows, relative to the table or absolute."""
    inline: tuple[AddAction, ...]
    """Adds that a JSON top-level file holds itself."""


class DeltaCheckpointReader:
    """Reads the checkpoints of the Delta dialect."""

    def head(self, store: Store, checkpoint: Checkpoint) -> CheckpointHead:
        """Protocol, metadata and transactions; sidecars are checked to exist."""
        manifest = self.manifest(store, checkpoint)
        return CheckpointHead(
            version=checkpoint.version,
            protocol=manifest.protocol,
            metadata=manifest.metadata,
            txns=manifest.txns,
            num_files=checkpoint.num_files,
        )

    def adds(
        self, store: Store, checkpoint: Checkpoint, paths: AbstractSet[str] | None = None
    ) -> Iterator[AddAction]:
        """Adds as whole actions with decoded paths, streamed; only those of `paths` when given."""
        for add in self._all_adds(store, checkpoint):
            if paths is None or add.path in paths:
                yield add

    def verify(self, store: Store, checkpoint: Checkpoint) -> None:
        """Read the checkpoint to its end; raises unless it is complete and sound."""
        manifest = self.manifest(store, checkpoint)
        if manifest.protocol is None or manifest.metadata is None:
            raise CorruptLogError(
                f"the checkpoint of version {checkpoint.version} lacks protocol or metadata",
                version=checkpoint.version,
            )
        for path in manifest.parquet:
            for piece in pieces_of(store, path, checkpoint):
                read_adds(store, piece, checkpoint, [field.name for field in piece.add])

    def _all_adds(self, store: Store, checkpoint: Checkpoint) -> Iterator[AddAction]:
        manifest = self.manifest(store, checkpoint)
        yield from manifest.inline
        for path in manifest.parquet:
            with _reading(path, checkpoint):
                file = _open(store, path)
                if "add" not in file.schema_arrow.names:
                    continue
                for batch in file.iter_batches(_BATCH_ROWS, columns=["add"], use_threads=False):
                    column = batch.column(0)
                    for body in column.filter(column.is_valid()).to_pylist():
                        yield _add(body)

    def manifest(self, store: Store, checkpoint: Checkpoint) -> CheckpointManifest:
        """The single actions and the files of a checkpoint; CorruptLogError if damaged or incomplete."""
        singles: dict[str, list[Any]] = {name: [] for name in _SINGLES}
        inline: list[AddAction] = []
        parquet = []
        for file in checkpoint.files:
            path = DELTA.path(file.name)
            with _reading(path, checkpoint):
                if file.format == "json":
                    inline.extend(_json_singles(store.get(path), singles, path))
                    continue
                opened = _open(store, path)
                for name, leaf in _SINGLES.items():
                    singles[name].extend(_parquet_singles(opened, name, leaf))
                parquet.append(path)
        sidecars = [_sidecar_path(body["path"]) for body in singles["sidecar"]]
        _require_sidecars(store, sidecars, checkpoint)
        protocol, metadata = _last(singles, "protocol"), _last(singles, "metaData")
        if metadata is not None and not isinstance(metadata.get("schemaString"), str):
            metadata = {**metadata, "schemaString": ""}
        return CheckpointManifest(
            protocol=_action("protocol", protocol),
            metadata=_action("metaData", metadata),
            txns=tuple(_action("txn", body) for body in singles["txn"]),
            parquet=(*parquet, *sidecars),
            inline=tuple(inline),
        )


@dataclass(frozen=True, slots=True)
class AddRows:
    """Some row groups of a Parquet file that holds adds: the unit of work for one thread."""

    path: str
    groups: tuple[int, ...]
    add: pa.StructType
    """Arrow type of the file's `add` column."""
    rows: int = 0
    """Number of rows in the groups, with and without an add."""
    is_typed: bool = False
    """Whether the footer proves that every add of the file has typed statistics."""


def pieces_of(store: Store, path: str, checkpoint: Checkpoint) -> list[AddRows]:
    """The row groups of one checkpoint file as units of work; groups without any add are left out."""
    with _reading(path, checkpoint):
        file = _open(store, path)
        if "add" not in file.schema_arrow.names:
            return []
        kind = file.schema_arrow.field("add").type
        groups = _without_nulls(file, "add.path")
        # For a remote file each unit costs a few requests before its first row, so only a few are made.
        width = len(groups) if resolve(store, path)[0].local_path("") is not None else _REMOTE_PIECES
        shares = [tuple(groups[at::width]) for at in range(min(width, len(groups)))]
        is_typed = _are_typed(file, groups)
        return [AddRows(path, share, kind, _rows_of(file, share), is_typed) for share in shares]


def num_adds(store: Store, path: str, checkpoint: Checkpoint) -> int:
    """How many adds a checkpoint file holds; an upper bound where its footer has no null counts."""
    with _reading(path, checkpoint):
        file = _open(store, path)
        if "add" not in file.schema_arrow.names:
            return 0
        nulls = _null_counts(file, "add.path")
        return _rows_of(file, range(len(nulls))) - sum(count or 0 for count in nulls)


def _rows_of(file: pq.ParquetFile, groups: Iterable[int]) -> int:
    return sum(file.metadata.row_group(group).num_rows for group in groups)


def _are_typed(file: pq.ParquetFile, groups: Iterable[int]) -> bool:
    """Whether the footer shows that every add has a typed count of records."""
    paths, counts = _null_counts(file, "add.path"), _null_counts(file, "add.stats_parsed.numRecords")
    return all(counts[group] is not None and counts[group] == paths[group] for group in groups)


def read_adds(store: Store, piece: AddRows, checkpoint: Checkpoint, leaves: Iterable[str]) -> pa.Table:
    """Read the wanted parts of the `add` column of some row groups; rows without an add are dropped.

    `leaves` are dotted paths below `add`; those the file does not have are left out. The result has one
    column per field of `add`, with paths decoded.
    """
    with _reading(piece.path, checkpoint):
        columns = [f"add.{leaf}" for leaf in {"path", *leaves}]
        table = _open(store, piece.path).read_row_groups(piece.groups, columns=columns, use_threads=False)
        column = table.column("add")
        fields = [column.type.field(at) for at in range(column.type.num_fields)]
        flat = pa.Table.from_arrays(column.flatten(), schema=pa.schema(fields))
        if flat.column("path").null_count:
            flat = flat.filter(flat.column("path").is_valid())
        at = flat.schema.get_field_index("path")
        return flat.set_column(at, "path", decode_paths(flat.column("path").cast(pa.string())))


class _reading:  # noqa: N801
    """Turns whatever a library raises for a broken file into CorruptLogError, naming the file."""

    def __init__(self, path: str, checkpoint: Checkpoint) -> None:
        self._path = path
        self._version = checkpoint.version

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        broken = (pa.ArrowException, msgspec.DecodeError, KeyError, ValueError, NotFoundError)
        # ArrowInvalid is a ValueError, a truncated page an OSError of Arrow's own.
        if isinstance(error, broken) or type(error) is OSError:
            raise CorruptLogError(
                f"checkpoint file {self._path} (version {self._version}) cannot be read: {error}",
                path=self._path,
                version=self._version,
            ) from error


def _open(store: Store, path: str) -> pq.ParquetFile:
    owner, name = resolve(store, path)
    local = owner.local_path(name)
    source = pa.memory_map(local) if local is not None else pa.PythonFile(_Remote(owner, name), mode="r")
    # Old writers store timestamps as INT96, which in nanoseconds would not reach past the year 2262.
    return pq.ParquetFile(source, coerce_int96_timestamp_unit="us", pre_buffer=local is None)


class _Remote:
    """A file of a store as a Python file object for Parquet's reader; only requested ranges are fetched."""

    closed = False

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self._path = path
        self._size = store.head(path).size
        self._at = 0

    def read(self, count: int = -1) -> bytes:
        """The next bytes, fewer at the end of the file."""
        length = self._size - self._at if count < 0 else min(count, self._size - self._at)
        if length <= 0:
            return b""
        data = self._store.get_range(self._path, self._at, length)
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to an offset from the start, from the current position or from the end."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        """The current position."""
        return self._at

    def flush(self) -> None:
        """Does nothing: the file is read only."""

    def close(self) -> None:
        """Does nothing: no handle is held open."""


def _without_nulls(file: pq.ParquetFile, leaf: str) -> list[int]:
    """The row groups that may hold a value of a column, by the statistics of the file."""
    counts = enumerate(_null_counts(file, leaf))
    return [group for group, nulls in counts if nulls != file.metadata.row_group(group).num_rows]


def _null_counts(file: pq.ParquetFile, leaf: str) -> list[int | None]:
    """The null count of a column in each row group, as the footer says; None where it does not."""
    metadata = file.metadata
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    index = next((at for at in range(metadata.num_columns) if metadata.schema.column(at).path == leaf), None)
    if index is None:
        return [group.num_rows for group in groups]
    statistics = [group.column(index).statistics for group in groups]
    return [None if item is None or not item.has_null_count else item.null_count for item in statistics]


def _parquet_singles(file: pq.ParquetFile, name: str, leaf: str) -> list[Any]:
    if name not in file.schema_arrow.names:
        return []
    groups = _without_nulls(file, leaf)
    if not groups:
        return []
    column = file.read_row_groups(groups, columns=[name], use_threads=False).column(0)
    bodies = column.filter(column.is_valid()).to_pylist()
    tested = leaf.rpartition(".")[2]
    # Some writers fill absent structs with nulls instead of leaving them out.
    return [_as_maps(body) for body in bodies if body.get(tested) is not None]


def _json_singles(data: bytes, singles: dict[str, list[Any]], path: str) -> list[AddAction]:
    adds = []
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        document = msgspec.json.decode(line)
        if not isinstance(document, dict):
            raise CorruptLogError(f"line {number} of {path} is not an action", path=path, line=number)
        for name, body in document.items():
            if body is None:
                continue
            if name in singles:
                singles[name].append(body)
            elif name == "add":
                adds.append(_add(body))
    return adds


def _as_maps(body: dict[str, Any]) -> dict[str, Any]:
    """Arrow returns a map as a list of pairs; actions have dicts there."""
    return {name: _as_map(value) for name, value in body.items() if value is not None}


def _as_map(value: Any) -> Any:
    if isinstance(value, dict):
        return _as_maps(value)
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    return value


_MAP_FIELDS = ("partitionValues", "tags")


def _add(body: dict[str, Any]) -> AddAction:
    wire = {name: value for name, value in body.items() if value is not None}
    for name in _MAP_FIELDS:
        if isinstance(wire.get(name), list):
            wire[name] = dict(wire[name])
    wire["path"] = decode_path(wire["path"])
    action = action_from_wire("add", wire)
    assert isinstance(action, AddAction)
    return action


def _action(name: str, body: dict[str, Any] | None) -> Any:
    if body is None:
        return None
    for field in ("configuration", "options"):
        if body.get(field) == []:
            body = {**body, field: {}}
    if isinstance(body.get("format"), dict) and body["format"].get("options") == []:
        body = {**body, "format": {**body["format"], "options": {}}}
    return action_from_wire(name, body)


def _last(singles: dict[str, list[Any]], name: str) -> dict[str, Any] | None:
    return singles[name][-1] if singles[name] else None


def _sidecar_path(path: str) -> str:
    decoded = decode_path(path)
    return decoded if "/" in decoded else f"{SIDECAR_DIR}/{decoded}"


def _require_sidecars(store: Store, paths: list[str], checkpoint: Checkpoint) -> None:
    if not paths:
        return
    present = {meta.path for meta in store.list_level(SIDECAR_DIR)}
    for path in paths:
        if path in present:
            continue
        try:
            owner, name = resolve(store, path)
            owner.head(name)
        except NotFoundError as error:
            raise CorruptLogError(
                f"sidecar {path} of the checkpoint of version {checkpoint.version} is gone",
                path=path,
                version=checkpoint.version,
            ) from error
