"""Log files say which table and version they belong to, and every reader checks it.

A commit's `commitInfo` carries `tableId` and `version`; version 0, which has no
commitInfo, is bound by the id in its `metaData`, and a checkpoint by `version` and
`tableId` beside its own metaData. So a file that was copied over another one, from
another version or another table, is reported as damage with its name and does not return
wrong rows. Fields that another writer left out are not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from indextables.errors import ADVICE_ON_DAMAGE, CorruptLogError
from indextables.model.actions import Action, CommitInfo, MetadataAction, ProtocolAction

COMMIT_INFO, REQUIRED = "commitInfo", "required"
"""An option in `metaData.format`: every version but 0 ends with its commitInfo, else it was cut short."""
PART, PARTS = "part", "of"
"""The keys under which a part of a checkpoint says which one it is, counted from 1, and of how many."""


def check_whole(bare: int | None, metadata: MetadataAction | None, uri: str) -> None:
    """Raise if a version (`bare`) lacks the commitInfo that every version of this table must end with."""
    options = None if metadata is None else metadata.format.get("options")
    if bare is None or not isinstance(options, Mapping) or options.get(COMMIT_INFO) != REQUIRED:
        return
    raise CorruptLogError(
        f"{uri}: version {bare} was cut short: its last line, commitInfo, is missing. "
        f"{ADVICE_ON_DAMAGE}",
        uri=uri, version=bare,
    )  # fmt: skip


def check_version(actions: Sequence[Action], name: str, version: int) -> None:
    """Raise when the version a commit states differs from the one in its file name."""
    # In commits of ours it is the last line; other writers may put it anywhere.
    info = next((action for action in reversed(actions) if isinstance(action, CommitInfo)), None)
    # Only version 0 has none; it holds actions that only the creation of a table writes.
    stated = info.version if info is not None else 0 if _is_creation(actions) else None
    if stated is not None and stated != version:
        raise CorruptLogError(
            f"{name} (version {version}) holds the commit of version {stated}: it was overwritten with "
            f"a copy of another file. {ADVICE_ON_DAMAGE}",
            file=name, version=version, found=stated,
        )  # fmt: skip


def _is_creation(actions: Sequence[Action]) -> bool:
    return [type(action) for action in actions] == [ProtocolAction, MetadataAction]


def check_tables(commits: Iterable[tuple[int, Iterable[Action]]], table_id: str, uri: str) -> None:
    """Raise when a commit states that it belongs to another table."""
    for version, actions in commits:
        for other_id in ids_of(actions):
            if other_id != table_id:
                raise foreign(version, other_id, table_id, uri)


def ids_of(actions: Iterable[Action]) -> list[str]:
    """The table ids that a commit names."""
    ids = []
    for action in actions:
        if isinstance(action, CommitInfo) and action.table_id is not None:
            ids.append(action.table_id)
        elif isinstance(action, MetadataAction):
            ids.append(action.id)
    return ids


def check_one_table(ids: Mapping[str, int], base: MetadataAction | None, uri: str) -> None:
    """Raise unless all commits of a version and the checkpoint below them name one table.

    `ids` maps each table id to the first version that names it.
    """
    table_id = base.id if base is not None else next(iter(ids), "")
    for other_id, version in ids.items():
        if other_id != table_id:
            raise foreign(version, other_id, table_id, uri)


def foreign(version: int, other_id: str, table_id: str, uri: str) -> CorruptLogError:
    """The error for a log file of another table."""
    return CorruptLogError(
        f"{uri}: version {version} belongs to the table {other_id}, the rest of the log to {table_id}. One "
        f"of them was overwritten with a file of another table. {ADVICE_ON_DAMAGE}",
        uri=uri, version=version, found=other_id, table_id=table_id,
    )  # fmt: skip


def check_head(head: Mapping[str, Any], metadata: MetadataAction, name: str, version: int) -> None:
    """Raise when a checkpoint states another version or table than the one it is used for."""
    stated = head.get("version")
    if isinstance(stated, int) and stated != version:
        raise CorruptLogError(
            f"{name} holds the checkpoint of version {stated}: it was overwritten with a copy",
            file=name, version=version,
        )  # fmt: skip
    table_id = head.get("tableId")
    if isinstance(table_id, str) and table_id != metadata.id:
        raise CorruptLogError(
            f"{name} says it belongs to the table {table_id}, and its metaData to {metadata.id}",
            file=name, version=version,
        )  # fmt: skip


def check_main(head: Mapping[str, Any], name: str) -> None:
    """Raise when a file in the place of a checkpoint is only one of its parts."""
    if PART in head:
        raise CorruptLogError(
            f"{name} is part {head[PART]} of {head.get(PARTS)} of a checkpoint and no checkpoint by itself: "
            "the checkpoint was overwritten with one of its parts",
            file=name,
        )


def check_same_table(head: Mapping[str, Any], expected: str | None, name: str) -> None:
    """Raise when a checkpoint that is read again belongs to another table than at first.

    A log that was repaired and put in the place of the old one has checkpoints of the same names.
    """
    stated = head.get("tableId")
    if expected is not None and isinstance(stated, str) and stated != expected:
        raise CorruptLogError(
            f"{name} belongs to the table {stated} now, and belonged to {expected}: the log was replaced",
            file=name, found=stated, table_id=expected,
        )  # fmt: skip
