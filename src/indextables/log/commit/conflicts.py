"""What a commit relies on, and which changes by others it tolerates.

| rule            | on a foreign commit                                                             |
|-----------------|---------------------------------------------------------------------------------|
| APPEND          | rebased; if the winner changed the schema, the added files must still fit it    |
| OVERWRITE       | rebased; with a read version, any foreign data change is an error               |
| OVERWRITE_WHERE | the same, for changes that can touch the scope                                  |
| MERGE, DELETE   | rebased; every source must still be live, with the deletion vector it was read  |
|                 | with; a DELETE that writes vectors joins its rows to those that others deleted  |
|                 | of the same source, and a row that both deleted is an error                     |
| UPSERT          | as DELETE; rows that a foreign commit other than an append wrote in the scope are   |
|                 | an error, for it may have inserted what this one inserts                        |
| EXCLUSIVE       | any foreign change of files, schema, properties or protocol is an error         |
| all that write rows | a constraint that was added meanwhile is an error: it was not checked       |

A change of files is one of data only where `dataChange` says so: a merge moves rows
to other files, which matters to a commit that names files (EXCLUSIVE, and sources)
and not to one that replaces whatever is there (OVERWRITE builds its removals on the
newest version at every attempt). Files that were written for one schema are checked
against the newest one, from the version they were prepared on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from indextables.errors import ConflictError, NotFoundError
from indextables.lazy import later, pa
from indextables.log.snapshot import Snapshot
from indextables.model.actions import (
    Action,
    AddAction,
    CommitInfo,
    MetadataAction,
    ProtocolAction,
    RemoveAction,
    TxnAction,
)
from indextables.model.column_mapping import column_names, stored_names_of
from indextables.model.constraints import constraints_of
from indextables.model.truncation import NOTHING_TRUNCATED, Truncated
from indextables.records import dataclass
from indextables.storage.deletion_vectors import number_deleted, unique_id

if TYPE_CHECKING:
    from indextables.model import fields, stats
    from indextables.predicate.prune import rule
    from indextables.predicate.tree import Node
else:
    fields = later("indextables.model.fields")
    stats = later("indextables.model.stats")
    rule = later("indextables.predicate.prune.rule")

APPENDED = "WRITE"
"""The operation name of a commit that adds rows and has read none."""
RESTORED = "RESTORE"
"""That of a commit that makes an older version the newest."""


CHANGED_ROWS = "changed_rows"
"""The field of a ConflictError that says that every source is there, with other deleted rows."""


class Rule(Enum):
    """What a commit relies on; see the table in the module's docstring."""

    APPEND = auto()
    OVERWRITE = auto()
    OVERWRITE_WHERE = auto()
    MERGE = auto()
    DELETE = auto()
    UPSERT = auto()
    EXCLUSIVE = auto()


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """What to commit, as a function of the version it is built on."""

    operation: str
    rule: Rule
    build: Callable[[Snapshot], Sequence[Action]]
    """Called once per attempt with the newest version; if it returns no actions, nothing is written."""
    sources: frozenset[str] = frozenset()
    """Paths that must still be live, or the commit fails with a conflict."""
    vectors: Mapping[str, str | None] = field(default_factory=dict)
    """The sources whose live rows must still be the same: the unique id of the deletion vector that each had
    when its rows were read, None for none. Of the other sources, others may delete rows meanwhile."""
    scope: Node | None = None
    """The predicate of OVERWRITE_WHERE, or that of the rows an UPSERT looked for."""
    read_version: int | None = None
    """The version the plan was made from. None: the version at which the commit begins, where that matters.
    """
    written_for: MetadataAction | None = None
    """The snapshot for which the added files were written. None: the one at which the commit begins."""
    purges: frozenset[str] | None = None
    """The marks of PURGEs that the log had before the first added file was written. None: not looked at."""
    txn: TxnAction | None = None
    """The transaction written with the commit; if its version is not above the stored one, nothing is
    written."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    truncated: Truncated = NOTHING_TRUNCATED
    """What was left out of the statistics of files that were written before the commit."""
    truncated_by_build: Callable[[], Truncated] | None = None
    """What was left out of those that the last call of `build` wrote."""
    user_metadata: str | None = None

    def all_truncated(self) -> Truncated:
        """What was left out of the statistics of the added files."""
        if self.truncated_by_build is None:
            return self.truncated
        return Truncated.total([self.truncated, self.truncated_by_build()])


def check_conflicts(plan: CommitPlan, first: Snapshot, base: Snapshot) -> None:
    """Raise ConflictError when what the plan relies on no longer holds at `base`.

    `first` is the version the commit began with.
    """
    since = first.version if plan.read_version is None else plan.read_version
    _check_columns(plan, first, base)
    _check_sources(plan, first, base)
    relies = plan.rule in {Rule.EXCLUSIVE, Rule.UPSERT} or (
        plan.rule in {Rule.OVERWRITE, Rule.OVERWRITE_WHERE} and plan.read_version is not None
    )
    if relies and since > base.version:
        raise ConflictError(
            f"{base.store.uri}: {plan.operation} was prepared on version {since}, and the newest one is "
            f"{base.version}: this is not the table that was read. Nothing was committed; read it again.",
            version=base.version, read_version=since, operation=plan.operation, uri=base.store.uri,
        )  # fmt: skip
    if not relies:
        return
    for version, actions in foreign_commits(base, since):
        if plan.rule is Rule.UPSERT and _is_append(actions):
            continue
        only_lose = _only_lose(actions) if plan.rule is Rule.UPSERT else frozenset()
        for action in actions:
            if isinstance(action, AddAction) and action.path in only_lose:
                continue
            reason = _reason(plan, action, base)
            if reason:
                raise ConflictError(
                    f"{base.store.uri}: {plan.operation} was prepared on version {since}, and version "
                    f"{version} {reason}; nothing was committed. Read the table again and repeat it.",
                    version=version, read_version=since, operation=plan.operation, uri=base.store.uri,
                )  # fmt: skip


def foreign_commits(base: Snapshot, since: int) -> Iterable[tuple[int, tuple[Action, ...]]]:
    """The commits after a version up to the newest, in order; ConflictError where they cannot be read."""
    files = {file.version: file for file in base.segment.commits}
    before: str | None = None
    for version in range(since + 1, base.version + 1):
        try:
            actions = base.source.read_commit(files.get(version) or base.source.commit_file(version))
        except NotFoundError as gone:
            raise _untold(base, version, since, "is gone from the log") from gone
        info = next((action for action in reversed(actions) if isinstance(action, CommitInfo)), CommitInfo())
        if before is not None and info.previous_commit_id not in {None, before}:
            # The file before it was created too late, under a version number that had been retired.
            raise _untold(base, version - 1, since, "is not the one that the next version follows")
        before = info.commit_id
        yield version, actions


def _untold(base: Snapshot, version: int, since: int, why: str) -> ConflictError:
    return ConflictError(
        f"{base.store.uri}: cannot tell what changed since version {since}: version {version} {why}. "
        "Nothing was committed. Read the table again and repeat the operation.",
        version=version, read_version=since, uri=base.store.uri,
    )  # fmt: skip


def _check_sources(plan: CommitPlan, first: Snapshot, base: Snapshot) -> None:
    if not plan.sources:
        return
    same_base = base.state.head is first.state.head and base.state.fold is first.state.fold
    if base is not first and same_base:
        # All sources were live when the commit began, and all later changes are in the tail.
        gone = sorted(path for path in plan.sources if path in base.state.tail.removed)
        live = [add for path in plan.vectors if (add := base.state.tail.adds.get(path)) is not None]
    else:
        live = base.adds(plan.sources)
        gone = sorted(plan.sources - {add.path for add in live})
    changed = sorted(
        add.path
        for add in live
        if add.path in plan.vectors and unique_id(add.deletion_vector) != plan.vectors[add.path]
    )
    if changed and not gone:
        raise ConflictError(
            f"{base.store.uri}: {plan.operation} has read rows of {changed[0]} that another writer has "
            "deleted or changed meanwhile; nothing was committed. Read the table again and repeat the "
            "operation.",
            paths=changed, version=base.version, operation=plan.operation, uri=base.store.uri,
            **{CHANGED_ROWS: True},
        )  # fmt: skip
    if gone:
        more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        raise ConflictError(
            f"{base.store.uri}: {plan.operation} needs {gone[0]}{more}, no longer live in version "
            f"{base.version}; nothing was committed. Read the table again and repeat the operation.",
            paths=gone, version=base.version, operation=plan.operation, uri=base.store.uri,
        )  # fmt: skip


def _check_columns(plan: CommitPlan, first: Snapshot, base: Snapshot) -> None:
    """Raise if a column that the plan may name was renamed, or dropped, since it was prepared."""
    old = plan.written_for or first.metadata
    new = stored_names_of(base.metadata)
    if new is None or old.id != base.metadata.id or old.column_mapping == base.metadata.column_mapping:
        return
    before = stored_names_of(old) or {name: name for name in column_names(old)}
    moved = [name for name, stored in before.items() if new.get(name) != stored]
    if moved:
        raise ConflictError(
            f"{base.store.uri}: another writer renamed or dropped the column {moved[0]} before "
            f"{plan.operation} could commit; nothing was committed. Read the table again and repeat the "
            "operation.",
            version=base.version, operation=plan.operation, uri=base.store.uri, column=moved[0],
        )  # fmt: skip


def check_schema(plan: CommitPlan, first: Snapshot, base: Snapshot, actions: Iterable[Action]) -> None:
    """Raise unless files written for one schema can be read under the schema another commit set."""
    old, new = plan.written_for or first.metadata, base.metadata
    same = old.schema_string == new.schema_string and old.partition_columns == new.partition_columns
    unchecked = dict(constraints_of(new.configuration).items() - constraints_of(old.configuration).items())
    if same and old.id == new.id and not unchecked:
        return
    adds = [action for action in actions if isinstance(action, AddAction)]
    if old.id != new.id:
        reason = "made the table anew"
    elif not adds:
        return
    elif unchecked and any(add.data_change for add in adds):
        name = min(unchecked)
        reason = f"added the constraint {name} CHECK ({unchecked[name]}), which these rows may break,"
    elif same:
        return
    elif old.partition_columns != new.partition_columns:
        reason = "changed the partition columns"
    elif not _still_fits(old, base):
        reason = "changed the schema so that these files no longer fit it"
    else:
        return
    raise ConflictError(
        f"{base.store.uri}: another writer {reason} before {plan.operation} could commit; nothing was "
        "committed. Read the table again and repeat the operation.",
        version=base.version, operation=plan.operation, uri=base.store.uri,
    )  # fmt: skip


def _still_fits(old: MetadataAction, base: Snapshot) -> bool:
    return fits(fields.schema_from_json(old.schema_string), base.schema)


def fits(old: pa.Schema, new: pa.Schema) -> bool:
    """Whether a file of the old schema can be read under the new one, and has what that asks for."""
    wider = {(pa.int32(), pa.int64()), (pa.float32(), pa.float64())}
    for column in old:
        at = new.get_field_index(column.name)
        if at < 0:
            return False
        kind = new.field(at).type
        if kind != column.type and (column.type, kind) not in wider:
            return False
        if column.nullable and not new.field(at).nullable:
            return False
    old_names = set(old.names)
    return all(column.nullable for column in new if column.name not in old_names)


def _is_append(actions: Iterable[Action]) -> bool:
    """Whether a commit says that it only added rows and has read none."""
    info = next((action for action in actions if isinstance(action, CommitInfo)), None)
    return info is not None and info.operation == APPENDED


def _only_lose(actions: Sequence[Action]) -> frozenset[str]:
    """The paths of files of which a commit deletes some rows and adds none.

    A RESTORE may hide more rows of a file than were hidden, and bring others back.
    """
    if any(isinstance(action, CommitInfo) and action.operation == RESTORED for action in actions):
        return frozenset()
    before = {action.path: action for action in actions if isinstance(action, RemoveAction)}
    return frozenset(
        action.path
        for action in actions
        if isinstance(action, AddAction)
        and action.path in before
        and number_deleted(action.deletion_vector) > number_deleted(before[action.path].deletion_vector)
    )


def _reason(plan: CommitPlan, action: Action, base: Snapshot) -> str | None:
    if isinstance(action, (AddAction, RemoveAction)):
        matters = action.data_change or plan.rule is Rule.EXCLUSIVE
        if not matters or not _in_scope(plan, action, base):
            return None
        if plan.rule is Rule.UPSERT and isinstance(action, RemoveAction):
            # It cannot have removed a source of ours: that has been checked before.
            return None
        verb = "added" if isinstance(action, AddAction) else "removed"
        return f"{verb} {action.path}"
    if plan.rule is Rule.EXCLUSIVE and isinstance(action, (MetadataAction, ProtocolAction)):
        return "changed the metadata" if isinstance(action, MetadataAction) else "changed the protocol"
    return None


def _in_scope(plan: CommitPlan, action: AddAction | RemoveAction, base: Snapshot) -> bool:
    if plan.rule not in {Rule.OVERWRITE_WHERE, Rule.UPSERT} or plan.scope is None:
        return True
    add = action if isinstance(action, AddAction) else AddAction(path=action.path)
    if base.names is not None:
        add = replace(add, partition_values=action.partition_values or {}, names=base.names)
    if isinstance(action, RemoveAction) and action.partition_values is None:
        return True
    values = (action.partition_values or {}) if base.names is None else add.values
    verdict = rule.prune_file(plan.scope, stats.of_add(add), values, base.schema, base.partition_columns)
    return verdict is not rule.Verdict.DROP
