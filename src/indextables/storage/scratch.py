"""Scratch directories: local space for files that are being made before they are stored.

A process holds a lock on each of its scratch directories while it uses it. Locks end with
their process, however it ends, so an unlocked directory was left behind by a killed
process; the next process that needs scratch space removes such directories. A Python
worker of Spark works inside the block directory of its executor, which Spark itself
removes with the application.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: directories go when they are closed or at exit, and nothing is swept
    fcntl = None  # type: ignore[assignment]

SWEEP_EVERY_S = 600
_NAME = re.compile(r"indextables-[a-z]+-\d+-\w+")
_SPARK_BLOCKS = "blockmgr-"

_held: dict[str, tuple[int, int]] = {}
"""The scratch directories of this process: who made each, and the open handle that locks it."""
_lock = threading.Lock()
_swept: dict[str, float] = {}


def scratch(kind: str) -> str:
    """A new directory, removed by `discard`, at exit, or by another process when this one was killed."""
    root = shared_root() or tempfile.gettempdir()
    _sweep_sometimes(root)
    while True:
        directory = tempfile.mkdtemp(prefix=f"indextables-{kind}-{os.getpid()}-", dir=root)
        handle = _locked(directory)
        if handle is not None:
            break
    with _lock:
        _held[directory] = (os.getpid(), handle)
    return directory


@contextlib.contextmanager
def scratch_directory(kind: str) -> Iterator[Path]:
    """A scratch directory for the length of a block."""
    directory = scratch(kind)
    try:
        yield Path(directory)
    finally:
        discard(directory)


def discard(directory: str) -> None:
    """Remove a scratch directory."""
    shutil.rmtree(directory, ignore_errors=True)
    with _lock:
        held = _held.pop(directory, None)
    if held is not None and held[1] >= 0:
        os.close(held[1])


def shared_root() -> str | None:
    """The directory that the Python workers of one Spark executor share; None in any other process."""
    # Spark tells its workers where the executor keeps blocks; a driver sees what its user set, if anything.
    for place in os.environ.get("SPARK_LOCAL_DIRS", "").split(","):
        if Path(place).name.startswith(_SPARK_BLOCKS) and os.access(place, os.W_OK | os.X_OK):
            return place
    return None


def sweep(root: str) -> int:
    """Remove the scratch directories in `root` whose process is gone; returns how many there were."""
    removed = 0
    if fcntl is None:
        return removed
    with contextlib.suppress(OSError), os.scandir(root) as listed:
        for item in listed:
            if _NAME.fullmatch(item.name) and item.is_dir(follow_symlinks=False):
                removed += _removed_if_left(item.path)
    return removed


def _sweep_sometimes(root: str) -> None:
    now = time.monotonic()
    with _lock:
        if now - _swept.get(root, -SWEEP_EVERY_S) < SWEEP_EVERY_S:
            return
        _swept[root] = now
    sweep(root)


def _removed_if_left(directory: str) -> bool:
    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError:
        # Another user's, or gone already.
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory, ignore_errors=True)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _locked(directory: str) -> int | None:
    """A handle that locks the directory; None when another process swept it before it was locked."""
    if fcntl is None:
        return -1
    try:
        handle = os.open(directory, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if Path(directory).stat().st_ino == os.fstat(handle).st_ino:
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:
        # A file system without locks: nobody can sweep here either.
        return handle
    os.close(handle)
    return None


@atexit.register
def _discard_all() -> None:
    # A forked child inherits this hook and the table, but not the directories.
    mine = [directory for directory, (owner, _) in _held.items() if owner == os.getpid()]
    for directory in mine:
        discard(directory)
