"""What callers of put-if-absent share: settling a lost answer, and a check that the server honours it.

The vendors' own services do. A compatible server that ignores `If-None-Match: *` confirms
two writers of one version, and one of their commits is lost without a trace; committing
safely is impossible there, so the first commit is refused. Each bucket is checked once per
process, by putting one key twice.
"""

from __future__ import annotations

import contextlib
import threading
import uuid

from indextables.errors import StorageError, TableError
from indextables.storage.store import Store

_lock = threading.Lock()
_honest: set[object] = set()


def create_or_read(store: Store, path: str, data: bytes) -> bool:
    """Create an object; if the answer gets lost, read it: whether it holds these bytes now.

    Only for names that are never freed and used for something else, such as checkpoints and floors. What
    lies under the number of a version may have come later: `log.commit.placement` decides about those.
    """
    try:
        return store.put_if_absent(path, data)
    except StorageError as lost:
        try:
            return store.get(path) == data
        except StorageError:
            # Absent is no answer either: the request may still be on its way.
            raise lost from lost.__cause__


def require_exclusion(store: Store, directory: str) -> None:
    """Raise when the server behind a store lets two writers create one object.

    If the server does not answer, nothing is concluded: the next put will show it.
    """
    server = getattr(store, "server", None)
    with _lock:
        if server is None or server in _honest:
            return
    # Named like a temporary, so that no listing takes it for a log file and PURGE knows it.
    path = f"{directory}/.{uuid.uuid4().hex}.tmp"
    try:
        again = store.put_if_absent(path, b"one") and store.put_if_absent(path, b"two")
    except StorageError:
        return
    finally:
        with contextlib.suppress(StorageError):
            store.delete(path)
    if again:
        raise TableError(
            f"{store.uri} cannot be written safely: its server accepted two writes of one object, each of "
            "which should succeed only if the object does not exist (`If-None-Match: *`). Two writers would "
            "overwrite each other's commits. Nothing was written. Use a server, or a version of it, with "
            "conditional writes, as S3, Azure and Google Cloud have them.",
            uri=store.uri,
        )
    with _lock:
        _honest.add(server)
