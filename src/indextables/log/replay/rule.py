"""Replay: the rule that computes the live files of a version from the files of a segment.

The rule: for every key the newest action wins, by version and then by position in its
commit; a key whose newest action is an add is live. Protocol and metadata: newest wins.
Skips: newest per path. Transactions: newest per application.

The commits after the checkpoint (the tail) are few. They are reduced first, to one entry
per key they touch. An engine then only has to drop the touched keys from the checkpoint's
adds and add the tail's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from indextables.display.plain import size_text
from indextables.errors import OptionError
from indextables.log.checkpoint.head import KEPT_COMMIT_IDS, CheckpointReader
from indextables.log.format.dialect import Checkpoint, Dialect, FileKey
from indextables.log.segment import Segment
from indextables.model.actions import (
    Action,
    AddAction,
    CommitInfo,
    MetadataAction,
    ProtocolAction,
    RemoveAction,
    SkipAction,
    TxnAction,
)
from indextables.options import Options
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.records import dataclass
from indextables.storage.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.predicate.tree import Node


@dataclass(frozen=True, slots=True)
class Tail:
    """What the commits after the checkpoint say, reduced to the newest action per key."""

    version: int
    adds: Mapping[FileKey, AddAction] = field(default_factory=dict)
    """Keys whose newest action is an add."""
    removed: AbstractSet[FileKey] = frozenset()
    """Keys whose newest action is a remove; disjoint from `adds`."""
    protocol: ProtocolAction | None = None
    metadata: MetadataAction | None = None
    skips: Mapping[str, SkipAction] = field(default_factory=dict)
    txns: Mapping[str, TxnAction] = field(default_factory=dict)
    info: CommitInfo | None = None
    """The commitInfo of `version` itself."""
    table_ids: Mapping[str, int] = field(default_factory=dict)
    """The table ids the commits name, each with the first version that names it."""
    bare: int | None = None
    """The first version after 0 that has no commitInfo."""
    commit_ids: Mapping[int, str] = field(default_factory=dict)
    """The ids of the last commits, by version."""

    def size(self) -> tuple[int, int]:
        """How many files it adds and removes."""
        return len(self.adds), len(self.removed)

    def touches(self) -> frozenset[FileKey]:
        """Every key the tail adds or removes; the checkpoint's entries for these keys are obsolete."""
        return frozenset(self.adds) | self.removed


def reduce_tail(
    commits: Iterable[tuple[int, Iterable[Action]]], dialect: Dialect, start: Tail | None = None
) -> Tail:
    """Reduce commits in ascending order; `start` is the reduction of those before them."""
    adds: dict[FileKey, AddAction] = dict(start.adds) if start else {}
    removed: set[FileKey] = set(start.removed) if start else set()
    skips: dict[str, SkipAction] = dict(start.skips) if start else {}
    txns: dict[str, TxnAction] = dict(start.txns) if start else {}
    protocol = start.protocol if start else None
    metadata = start.metadata if start else None
    version = start.version if start else -1
    info = start.info if start else None
    ids: dict[str, int] = dict(start.table_ids) if start else {}
    bare = start.bare if start else None
    commit_ids: dict[int, str] = dict(start.commit_ids) if start else {}
    key = dialect.key
    for number, actions in commits:
        version, info = number, None
        for action in actions:
            # Nearly all actions are these two, and a pattern costs more than the question it stands for.
            if isinstance(action, AddAction):
                name = key(action)
                adds[name] = action
                removed.discard(name)
                continue
            if isinstance(action, RemoveAction):
                name = key(action)
                adds.pop(name, None)
                removed.add(name)
                continue
            match action:
                case ProtocolAction():
                    protocol = action
                case MetadataAction():
                    metadata = action
                    ids.setdefault(action.id, number)
                case SkipAction():
                    skips[action.path] = action
                case TxnAction():
                    # The newest one comes last: who follows a file goes on with it.
                    txns.pop(action.app_id, None)
                    txns[action.app_id] = action
                case CommitInfo():
                    info = action
                    if action.table_id is not None:
                        ids.setdefault(action.table_id, number)
        if info is None and number > 0 and bare is None:
            bare = number
        if info is not None and info.commit_id is not None:
            commit_ids[number] = info.commit_id
    for number in sorted(commit_ids)[:-KEPT_COMMIT_IDS]:
        del commit_ids[number]
    return Tail(version, adds, removed, protocol, metadata, skips, txns, info, ids, bare, commit_ids)


class Fold:
    """A private checkpoint on local disk, for the checkpoint and the commits of a segment together."""

    __slots__ = ("__weakref__", "checkpoint", "store", "tail")

    def __init__(self, tail: Tail, store: Store, checkpoint: Checkpoint) -> None:
        self.tail = tail
        """What the commits say beside adds and removes."""
        self.store = store
        self.checkpoint = checkpoint


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A request to an engine: the files of one version, all of them or those a predicate may match."""

    store: Store
    dialect: Dialect
    reader: CheckpointReader
    segment: Segment
    tail: Tail
    schema: pa.Schema
    partition_columns: tuple[str, ...]
    options: Options
    where: Node | None = None
    """Files that the predicate certainly excludes are left out (three-valued logic)."""
    columns: frozenset[str] | None = None
    """Columns of `files()` to return; None means all. `path` is always included."""
    explain: bool = False
    """Whether the prune metrics include reasons."""
    memo: MutableMapping[str, Any] = field(default_factory=dict)
    """Storage shared by all versions on the same checkpoint: an engine keeps under its own name what it has
    read."""
    fold: Fold | None = None
    """What the tail is applied to instead of the segment's checkpoint."""

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint that the tail is applied to."""
        return self.segment.checkpoint if self.fold is None else self.fold.checkpoint

    @property
    def checkpoint_store(self) -> Store:
        """The store that holds the checkpoint."""
        return self.store if self.fold is None else self.fold.store


@dataclass(frozen=True, slots=True)
class ReplayMetrics:
    """How the live files were found."""

    engine: str
    checkpoint_files: int = 0
    tail_adds: int = 0
    tail_removes: int = 0
    why: str = ""
    """Why this engine was chosen."""
    bytes_read: int = 0
    """How much was read of the checkpoint, in bytes, as far as the engine knows."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds per stage, by the engine's own names."""
    rows_collected: int = 0
    """Files that were sent to the caller's process."""
    rows_on_executors: int = 0
    """Entries of the log that executors parsed; 0 for an engine in this process."""


@dataclass(frozen=True, slots=True)
class LiveFiles:
    """Live files as the `files()` table, sorted by path, and how they were found."""

    files: pa.Table
    metrics: PruneMetrics
    replay: ReplayMetrics


class ReplayEngine(Protocol):
    """Finds the live files of a segment; every engine must agree with `reference`."""

    @property
    def name(self) -> str:
        """Name in `engine=` and in the metrics."""
        ...

    def replay(self, request: ReplayRequest) -> LiveFiles:
        """Return the live files of the request; raises CorruptLogError when the checkpoint is damaged."""
        ...


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over all live files."""

    num_files: int
    sums: Mapping[str, int]
    """The sum of each requested column of numbers, by name."""
    counts: Mapping[str, int]
    """In how many files a column has a value."""
    replay: ReplayMetrics | None = field(default=None, compare=False)
    """How the files were found."""


@runtime_checkable
class SummingEngine(Protocol):
    """An engine that sums where the files are, so that the list of them stays there."""

    def sums(self, request: ReplayRequest) -> Sums:
        """Sums of the request's columns over the live files."""
        ...


BYTES_PER_FILE = 1_900
"""Peak memory that one live file costs a local engine at most (measured with a million files of a Delta log
and every default column: 950 bytes listed from a checkpoint, 1,580 if a filter on five columns keeps all of
them, 1,850 listed from commits)."""


def choose(options: Options, num_files: int | None, available: AbstractSet[str], engine: str = "auto") -> str:
    """Name the engine for a table of `num_files` files (None: unknown); pure.

    `available` names the engines this runtime has besides the local ones.
    """
    if engine == "local":
        engine = "columnar" if options.transaction.use_optimized else "reference"
    if engine != "auto":
        engines = {"reference", "columnar", *available}
        if engine not in engines:
            raise OptionError(
                f"engine={engine!r} is not one of {', '.join(sorted({'auto', 'local', *engines}))}",
                engine=engine,
            )
        return engine
    local = "columnar" if options.transaction.use_optimized else "reference"
    distributed = options.replay
    if not distributed.enabled or "spark" not in available or num_files is None:
        return local
    if distributed.file_threshold is not None:
        return "spark" if num_files > distributed.file_threshold else local
    return "spark" if num_files * BYTES_PER_FILE > distributed.local_memory else local


def explain_choice(options: Options, num_files: int | None, engine: str) -> str:
    """Say in words what `choose` based its choice on."""
    if engine != "auto":
        return f"engine={engine} was asked for"
    distributed = options.replay
    if not distributed.enabled:
        return "distributed replay is switched off"
    if num_files is None:
        return "the number of files is unknown"
    if distributed.file_threshold is not None:
        return f"{num_files} files, threshold {distributed.file_threshold}"
    needed, allowed = size_text(num_files * BYTES_PER_FILE), size_text(distributed.local_memory)
    return f"{num_files} files, about {needed} in memory where {allowed} are allowed"
