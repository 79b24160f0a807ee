"""Writes local files so that neither content nor name is lost or seen half-written."""

# ruff: noqa: PTH102, PTH105, PTH108, PTH112, PTH116, PTH120, PTH123
# because these are the system calls themselves, in the order that matters
from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import uuid
from collections.abc import Iterator
from functools import lru_cache
from typing import BinaryIO

if sys.platform == "darwin":
    import fcntl

_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
_NOT_MOVABLE = frozenset({errno.EXDEV, errno.EPERM, errno.EACCES, errno.EROFS, errno.EBUSY})
_COPY_BYTES = 1 << 20


def replace(target: str, data: bytes) -> None:
    """Write `target` completely, replacing an existing file."""
    with _temporary(target) as (temporary, file):
        _write(file, data)
        os.replace(temporary, target)
        _sync_directory(os.path.dirname(target))


def create(target: str, data: bytes) -> bool:
    """Write `target` completely if the name is free; returns whether it was."""
    # Losing is common and a temporary file costs two syncs, so check first; the link still decides.
    if os.path.lexists(target):
        return False
    with _temporary(target) as (temporary, file):
        _write(file, data)
        try:
            created = _link(temporary, target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            created = _create_exclusively(target, data)
        if created:
            _sync_directory(os.path.dirname(target))
        return created


def publish(target: str, source: str) -> None:
    """Give a finished file the name `target`: moved, or copied where it cannot be moved."""
    with _temporary(target) as (temporary, file):
        # A private temporary must not become a private table file: use the mode of any new file.
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        try:
            _settle(source, mode)
            os.replace(source, temporary)
        except OSError as error:
            if error.errno not in _NOT_MOVABLE:
                raise
            with open(source, "rb") as finished:
                while chunk := finished.read(_COPY_BYTES):
                    file.write(chunk)
            _sync(file)
        os.replace(temporary, target)
        _sync_directory(os.path.dirname(target))


@contextlib.contextmanager
def _temporary(target: str) -> Iterator[tuple[str, BinaryIO]]:
    """A new file beside `target`, gone afterwards unless it was renamed."""
    directory = os.path.dirname(target)
    _make_directory(directory)
    name = f"{directory.rstrip('/')}/.{uuid.uuid4().hex}.tmp"
    descriptor = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield name, file
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)


def _make_directory(directory: str) -> None:
    """Make a directory and its parents so that their names survive a power cut, whoever made them."""
    try:
        status = os.stat(directory)
    except FileNotFoundError:
        parent = os.path.dirname(directory)
        if parent != directory:
            _make_directory(parent)
        try:
            os.mkdir(directory)
        except FileExistsError:
            # Another writer made it; it may not have come to the sync yet.
            if not os.path.isdir(directory):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory) from None
        _sync_directory(parent)
    else:
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
        _sync_names(directory, status.st_dev, status.st_ino)


@lru_cache(maxsize=4096)
def _sync_names(directory: str, device: int, inode: int) -> None:
    """Sync the names of a directory that was there and of those above it, once for each in this process.

    Whoever made them may have been stopped before the sync. No file system stores the name of its own root.
    """
    parent = os.path.dirname(os.path.realpath(directory))
    above = os.stat(parent)
    if above.st_dev != device or above.st_ino == inode:
        return
    _sync_names(parent, above.st_dev, above.st_ino)
    try:
        _sync_directory(parent)
    except PermissionError:
        # A directory that we may neither list nor write to is the care of those who may.
        if os.access(parent, os.W_OK):
            raise


def _write(file: BinaryIO, data: bytes) -> None:
    file.write(data)
    _sync(file)


def _sync(file: BinaryIO) -> None:
    file.flush()
    _sync_descriptor(file.fileno())


def _sync_descriptor(descriptor: int) -> None:
    if sys.platform == "darwin":
        # There fsync leaves the data in the drive's cache.
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network and FUSE file systems keep names safe by themselves and refuse the call.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(descriptor)


def _settle(source: str, mode: int) -> None:
    descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, mode)
        _sync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def _link(temporary: str, target: str) -> bool:
    try:
        os.link(temporary, target)
    except FileExistsError:
        # Over NFS the answer to a link that worked can get lost and the repeated call then finds
        # the name taken, by us: the second name of our file shows it.
        return os.stat(temporary).st_nlink > 1
    return True


def _create_exclusively(target: str, data: bytes) -> bool:
    try:
        descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return False
    try:
        with os.fdopen(descriptor, "wb") as file:
            _write(file, data)
    except BaseException:
        # The name is ours alone, so freeing it takes nothing from anyone.
        with contextlib.suppress(OSError):
            os.unlink(target)
        raise
    return True
