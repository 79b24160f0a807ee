"""The mark that a PURGE leaves in the log before it deletes a split.

Until it commits, a writer's splits belong to no version, and to a PURGE they look like
files that nobody needs. Their age protects them for as long as the retention. A writer that
takes longer finds the mark: it sorts behind every version, so each listing of the log shows
it, and a mark that was not there before the writer began means that its splits may be gone.
It then looks for them before it commits.

A PURGE deletes the marks of earlier ones only after it has put its own, so whoever began
before either of them still finds one that it does not know.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable

from indextables.errors import MissingSplitError, NotFoundError
from indextables.log.segment import PURGE_MARK
from indextables.log.state import LogSource
from indextables.model.actions import Action, AddAction, RemoveAction
from indextables.runtime import in_threads
from indextables.storage.deletion_vectors import unique_id, vector_file
from indextables.storage.store import Store, requests_at_once, resolve


def put_mark(source: LogSource) -> str:
    """Put a new mark and return its name. It is empty: a disk without a free byte has room for it."""
    name = f"{PURGE_MARK}{uuid.uuid4().hex}"
    source.store.put(source.path(name), b"")
    return name


def drop_marks(source: LogSource, names: Iterable[str]) -> None:
    """Delete marks that a newer one replaces, or whose PURGE deleted nothing."""
    for name in names:
        source.store.delete(source.path(name))


def check_splits(
    store: Store, actions: Iterable[Action], earlier_marks: Collection[str] | None, marks: Collection[str]
) -> None:
    """Raise MissingSplitError when a PURGE began after the writer did and a file to be committed is gone.

    `earlier_marks` are the ones that were there before the writer began; None if it did not look.
    """
    if not set(marks) - set(earlier_marks or ()):
        return
    adds = [action for action in actions if isinstance(action, AddAction)]
    paths = [*(add.path for add in adds), *files_of_vectors(adds)]
    for path, present in zip(
        paths, in_threads(lambda path: _exists(store, path), paths, requests_at_once(store)), strict=True
    ):
        if not present:
            raise MissingSplitError(
                f"{store.uri}: the file {path} was deleted before it was committed, by a PURGE that ran "
                "meanwhile. Nothing was committed. Write the rows again, and let PURGE keep files "
                "for longer than a write takes (purge.defaultRetentionHours).",
                path=path, uri=store.uri,
            )  # fmt: skip


def files_of_vectors(files: Iterable[AddAction | RemoveAction]) -> list[str]:
    """The paths of the files that hold the deletion vectors of some adds and removes."""
    ids = {vector for file in files if (vector := unique_id(file.deletion_vector)) is not None}
    return sorted({file for one in ids if (file := vector_file(one)) is not None})


def _exists(root: Store, path: str) -> bool:
    store, inside = resolve(root, path, anywhere=True)
    try:
        store.head(inside)
    except NotFoundError:
        return False
    return True
