"""What a disk may hold after the power went: a record of file operations, and the images that it allows.

A disk promises little. The content of a file is safe once the file was synced,
a name once its directory was synced after the change. Everything else may have
happened or not, each by itself and in any order: a file that was not synced may
be empty, cut short, zeros or whole; a name that was given, taken or exchanged
may still be as it was before.
"""

# ruff: noqa: PTH103, PTH105, PTH108, PTH116, PTH123
# because these are the system calls that are recorded
from __future__ import annotations

import contextlib
import os
import random
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from indextables.storage.stores import durable, local

Value: TypeAlias = int | str | None
"""What a name stands for: the number of a file, the path of a directory, or nothing."""


@dataclass(frozen=True, slots=True)
class Named:
    """A name was given to something else, or to nothing."""

    directory: str
    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class NamesSynced:
    """A directory was synced."""

    directory: str


@dataclass(frozen=True, slots=True)
class Written:
    """A file had this content."""

    file: int
    content: bytes


@dataclass(frozen=True, slots=True)
class ContentSynced:
    """A file was synced with this content."""

    file: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """Something that whoever records wants to remember at this place."""

    text: Any


Event: TypeAlias = Named | NamesSynced | Written | ContentSynced | Note


class RecordingOs:
    """The module `os` as the local store uses it: every change below a directory is carried out and recorded.

    Syncs are only recorded, which saves most of the time.
    """

    def __init__(self, base: Path, ignored: Callable[[Event], bool] = lambda _: False) -> None:
        self.events: list[Event] = []
        self._base = f"{base}/"
        self._ignored = ignored
        self._lock = threading.RLock()
        self._open: dict[int, str] = {}
        self._files: dict[int, int] = {}
        self._count = 0
        for directory, directories, files in os.walk(base):
            inside = self._inside(directory) or ""
            for name in directories:
                self.events.append(Named(inside, name, f"{inside}/{name}".lstrip("/")))
            for name in files:
                path = f"{directory}/{name}"
                file = self._number(os.stat(path).st_ino)
                self.events += [ContentSynced(file, Path(path).read_bytes()), Named(inside, name, file)]
            self.events.append(NamesSynced(inside))

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def note(self, text: Any) -> None:
        """Remember something between two operations."""
        self._add(Note(text))

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        with self._lock:
            descriptor = os.open(path, flags, mode)
            self._open[descriptor] = path
            if flags & os.O_CREAT:
                self._files.pop(os.fstat(descriptor).st_ino, None)
                self._named(path, self._number(os.fstat(descriptor).st_ino))
            return descriptor

    def fsync(self, descriptor: int) -> None:
        with self._lock:
            status, path = os.fstat(descriptor), self._open[descriptor]
            if not stat.S_ISDIR(status.st_mode):
                self._add(ContentSynced(self._number(status.st_ino), Path(path).read_bytes()))
            elif (inside := self._inside(path)) is not None:
                self._add(NamesSynced(inside))

    def replace(self, source: str, target: str) -> None:
        with self._lock:
            file = self._written(source)
            self._forget(target)
            os.replace(source, target)
            self._named(target, file)
            self._named(source, None)

    def link(self, source: str, target: str) -> None:
        with self._lock:
            file = self._written(source)
            os.link(source, target)
            self._named(target, file)

    def unlink(self, path: str) -> None:
        with self._lock:
            self._forget(path)
            os.unlink(path)
            self._named(path, None)

    def mkdir(self, path: str, mode: int = 0o777) -> None:
        with self._lock:
            os.mkdir(path, mode)
            self._named(path, self._inside(path))

    def _add(self, event: Event) -> None:
        if not self._ignored(event):
            self.events.append(event)

    def _inside(self, path: str) -> str | None:
        """The path below the base; None for others."""
        return f"{path}/".removeprefix(self._base).rstrip("/") if f"{path}/".startswith(self._base) else None

    def _named(self, path: str, value: Value) -> None:
        inside = self._inside(path)
        if inside:
            directory, _, name = inside.rpartition("/")
            self._add(Named(directory, name, value))

    def _number(self, inode: int) -> int:
        if inode not in self._files:
            self._count += 1
            self._files[inode] = self._count
        return self._files[inode]

    def _written(self, path: str) -> int:
        file = self._number(os.stat(path).st_ino)
        self._add(Written(file, Path(path).read_bytes()))
        return file

    def _forget(self, path: str) -> None:
        """Inodes are used again: one that loses its last name is another file from then on."""
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(path)
            if status.st_nlink == 1:
                self._files.pop(status.st_ino, None)


@contextlib.contextmanager
def recording(base: Path, ignored: Callable[[Event], bool] = lambda _: False) -> Iterator[RecordingOs]:
    """Record what local stores do below a directory while the block runs."""
    recorder = RecordingOs(base, ignored)
    modules: tuple[Any, ...] = (durable, local)
    for module in modules:
        module.os = recorder
    try:
        yield recorder
    finally:
        for module in modules:
            module.os = os


@dataclass(frozen=True, slots=True)
class Cut:
    """When the power goes, and what the disk makes of everything that was not synced."""

    events: int
    names: str
    """`before`, `after` or `mixed`: which of its unsynced values a name has."""
    contents: str
    """`empty`, `whole` or `mixed`: what an unsynced file holds."""
    seed: int = 0


@dataclass
class _Disk:
    """The state of a disk after some operations."""

    names: dict[tuple[str, str], list[Value]] = field(default_factory=dict)
    """What each name may stand for after a power cut, the last that is safe first."""
    safe: dict[int, bytes] = field(default_factory=dict)
    doubtful: dict[int, bytes] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        if isinstance(event, Named):
            self.names.setdefault((event.directory, event.name), [None]).append(event.value)
        elif isinstance(event, NamesSynced):
            for key, values in self.names.items():
                if key[0] == event.directory:
                    del values[:-1]
        elif isinstance(event, ContentSynced):
            self.safe[event.file] = event.content
            self.doubtful.pop(event.file, None)
        elif isinstance(event, Written) and self.safe.get(event.file) != event.content:
            self.doubtful[event.file] = event.content


def write_image(events: list[Event], cut: Cut, target: Path) -> None:
    """Make a directory as the disk may have it after the cut."""
    disk, dice = _Disk(), random.Random(cut.seed)
    later: dict[int, bytes] = {
        event.file: event.content for event in events if isinstance(event, (Written, ContentSynced))
    }
    for event in events[: cut.events]:
        disk.take(event)

    def content(file: int) -> bytes:
        if file in disk.safe and file not in disk.doubtful:
            return disk.safe[file]
        whole = disk.doubtful.get(file, later.get(file, b""))
        choices = {"empty": b"", "half": whole[: len(whole) // 2], "zeros": bytes(len(whole)), "whole": whole}
        return choices[dice.choice(sorted(choices)) if cut.contents == "mixed" else cut.contents]

    def fill(directory: str) -> None:
        (target / directory).mkdir(exist_ok=True)
        for (parent, name), values in sorted(disk.names.items()):
            if parent != directory:
                continue
            value = {"before": values[0], "after": values[-1], "mixed": dice.choice(values)}[cut.names]
            if isinstance(value, str):
                fill(value)
            elif value is not None:
                (target / directory / name).write_bytes(content(value))

    fill("")
