"""The index cache: bundles extracted to a local directory, where tantivy can map them into memory.

An entry is a directory that appears whole, by renaming, or not at all; it never
changes afterwards. Several processes may share a cache: whoever extracts first
wins, entries vanish by renaming as well, and an index that is open stays usable
when its entry goes. When the size limit is passed the entries used longest ago
go first. Without a configured directory each process has a temporary one, which
goes with it; the Python workers of a Spark executor share one, which goes with
the application.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from indextables.errors import Error, OptionError, SplitError
from indextables.index.settings import IndexSpec
from indextables.split.layout import (
    Manifest,
    SplitRef,
    decode_manifest,
    encode_manifest,
    parse_footer,
    read_footer,
)
from indextables.split.source import Source
from indextables.split.tantivy_index import IndexUnusableError, OpenIndex
from indextables.storage.checksum import crc32
from indextables.storage.scratch import scratch, shared_root

MANIFEST = "manifest.json"
BOOT = "boot_id"
OPEN_AT_ONCE = 32
"""Each open index keeps a thread of tantivy's that watches files which never change."""
ABANDONED_S = 3600
"""Age at which a half-made entry belongs to a process that is gone."""
_TRIES = 5
PAGES, SKELETON = "pages.arrow", "skeleton.thrift"
_READ = 1 << 20

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entry:
    """An extracted bundle: its directory, and the manifest of the split it came from."""

    directory: str
    manifest: Manifest

    def content(self, name: str) -> bytes | None:
        """One of the small files of the bundle; None when the split has none of that name."""
        if name not in self.manifest.files:
            return None
        return Path(self.directory, name).read_bytes()


class IndexCache:
    """Extracted bundles in one directory, up to a size."""

    def __init__(self, directory: str, max_bytes: int) -> None:
        self.directory = directory
        self.max_bytes = max_bytes
        try:
            Path(directory).mkdir(parents=True, exist_ok=True)
        except OSError as failed:
            raise OptionError(
                f"the directory {directory} for extracted indexes cannot be made: {failed}. "
                "Name another one with indexCache.dir.",
                key="indexCache.dir", value=directory,
            ) from failed  # fmt: skip
        self._lock = threading.Lock()
        self._making: dict[str, threading.Lock] = {}
        self._open: OrderedDict[str, OpenIndex] = OrderedDict()
        self._entries: dict[str, Entry] = {}
        self._damaged: dict[str, IndexUnusableError] = {}

    def entry(self, source: Source, ref: SplitRef) -> Entry:
        """The extracted bundle of a split, extracted now if it is not there yet."""
        key = entry_key(source, ref)
        known = self._entries.get(key)
        if known is not None and Path(known.directory).exists():
            return known
        with self._alone(key):
            entry = self._load(key, source) or self._extract(key, source, ref)
            self._entries[key] = entry
            return entry

    def index(self, source: Source, ref: SplitRef) -> OpenIndex | None:
        """The open index of a split; None when the split has none. IndexUnusableError when it is damaged."""
        key = entry_key(source, ref)
        with self._lock:
            found = self._open.get(key)
            if found is not None:
                self._open.move_to_end(key)
                return found
        if key in self._damaged:
            raise self._damaged[key]
        try:
            opened = self._opened(source, ref)
        except IndexUnusableError as failed:
            self._damaged[key] = failed
            raise
        except OSError as failed:
            if isinstance(failed, Error):
                raise
            # No room, no right to write, or a directory that somebody cleans: rows can be scanned meanwhile.
            raise IndexUnusableError(
                f"the index inside {source.name} cannot be extracted to {self.directory}: {failed}. "
                "Make room there, or name another directory with indexCache.dir.",
                path=source.name,
            ) from failed
        if opened is None:
            return None
        with self._lock:
            self._open[key] = opened
            while len(self._open) > OPEN_AT_ONCE:
                self._open.popitem(last=False)
        return opened

    def _opened(self, source: Source, ref: SplitRef) -> OpenIndex | None:
        for _ in range(_TRIES):
            entry = self.entry(source, ref)
            before = _identity(entry.directory)
            try:
                return _open_entry(entry)
            except IndexUnusableError:
                if before is not None and _identity(entry.directory) == before:
                    raise
            # Another process made room just now: extract once more.
        # Others remove it as soon as it is there. What is open stays readable when its files are gone.
        with self._laid_out(source, ref) as entry:
            return _open_entry(entry)

    def clear(self) -> None:
        """Forget and delete every entry."""
        with self._lock:
            self._open.clear()
            self._entries.clear()
            self._damaged.clear()
        for path in self._listed():
            _remove(path, self.directory)

    @contextlib.contextmanager
    def _alone(self, key: str) -> Iterator[None]:
        with self._lock:
            lock = self._making.setdefault(key, threading.Lock())
        with lock:
            yield
        with self._lock:
            self._making.pop(key, None)

    def _load(self, key: str, source: Source) -> Entry | None:
        path = Path(self.directory, key)
        try:
            manifest = decode_manifest((path / MANIFEST).read_bytes(), source.name)
            sizes = all((path / name).stat().st_size == file.length for name, file in manifest.files.items())
            # After a power failure a file may have its size but not its bytes.
            same_boot = (path / BOOT).read_text() == _boot_id() != ""
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError, ValueError):
            sizes, same_boot = False, True
        if not sizes or not (same_boot or _intact(path, manifest)):
            _log.warning("the cached index %s is incomplete and is extracted again", path)
            _remove(path, self.directory)
            return None
        if not same_boot:
            (path / BOOT).write_text(_boot_id())
        with contextlib.suppress(OSError):
            os.utime(path / MANIFEST)
        return Entry(str(path), manifest)

    def _extract(self, key: str, source: Source, ref: SplitRef) -> Entry:
        path = Path(self.directory, key)
        # Failure to rename means that another process put the same entry there first.
        with self._laid_out(source, ref) as made, contextlib.suppress(OSError):
            Path(made.directory).rename(path)
        self._trim(key)
        return Entry(str(path), made.manifest)

    @contextlib.contextmanager
    def _laid_out(self, source: Source, ref: SplitRef) -> Iterator[Entry]:
        """The bundle of a split, checked and in files, in a directory that nobody else removes meanwhile."""
        manifest, bundle = _fetch(source, ref)
        made = Path(self.directory, f"making-{uuid.uuid4().hex}")
        # Its parent too: what cleans temporary directories may have taken it.
        made.mkdir(parents=True)
        try:
            for name, file in manifest.files.items():
                body = bundle[file.offset : file.offset + file.length]
                if len(body) != file.length or crc32(body) != file.crc32 or os.sep in name:
                    raise IndexUnusableError(
                        f"the index inside {source.name} is damaged: {name} is not what was written",
                        path=source.name,
                    )
                (made / name).write_bytes(body)
            (made / BOOT).write_text(_boot_id())
            (made / MANIFEST).write_bytes(encode_manifest(manifest))
            yield Entry(str(made), manifest)
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def _listed(self) -> list[Path]:
        return [path for path in Path(self.directory).iterdir() if path.is_dir()]

    def _trim(self, newest: str) -> None:
        """Bring the directory below its limit, and take away what dead processes left."""
        found: list[tuple[float, int, Path]] = []
        for path in self._listed():
            try:
                if path.name.startswith(("making-", "leaving-")):
                    if time.time() - path.stat().st_mtime > ABANDONED_S:
                        shutil.rmtree(path, ignore_errors=True)
                    continue
                size = sum(file.stat().st_size for file in path.iterdir())
                found.append(((path / MANIFEST).stat().st_mtime, size, path))
            except OSError:
                # Another process is removing it at this moment.
                continue
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self.max_bytes:
                break
            if path.name != newest:
                _remove(path, self.directory)
                total -= size


def _fetch(source: Source, ref: SplitRef) -> tuple[Manifest, memoryview]:
    """The manifest and the bundle, with one read where the log says where the bundle lies."""
    if ref.size is not None and ref.index_offset is not None and ref.index_length is not None:
        data = source.read_one(ref.index_offset, ref.size - ref.index_offset)
        with contextlib.suppress(SplitError):
            manifest = parse_footer(
                bytes(data[ref.index_length :]), ref.size, source.name, ref.footer_crc
            ).manifest
            if (manifest.offset, manifest.length) == (ref.index_offset, ref.index_length):
                return manifest, data[: ref.index_length]
    manifest = read_footer(source, ref).manifest
    return manifest, source.read_one(manifest.offset, manifest.length)


def entry_key(source: Source, ref: SplitRef) -> str:
    """The name of an entry. Split names carry a UUID and splits never change, so the address is enough."""
    identity = f"{source.store.uri}\0{source.path}\0{ref.size}\0{ref.index_offset}\0{ref.index_length}"
    return hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:40]


def _remove(path: Path, directory: str) -> None:
    # Renaming first makes the entry vanish whole for every process.
    leaving = Path(directory, f"leaving-{uuid.uuid4().hex}")
    with contextlib.suppress(OSError):
        path.rename(leaving)
        shutil.rmtree(leaving, ignore_errors=True)


def _open_entry(entry: Entry) -> OpenIndex | None:
    manifest = entry.manifest
    if not manifest.fields:
        return None
    spec = IndexSpec.from_wire(manifest.fields)
    return OpenIndex(entry.directory, spec, frozenset(manifest.unsure), manifest.rows)


def _identity(directory: str) -> tuple[int, int] | None:
    """What tells a directory from a later one of its name, even with its number; None when there is none."""
    try:
        found = Path(directory).stat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns


def _intact(path: Path, manifest: Manifest) -> bool:
    return all(crc32((path / name).read_bytes()) == file.crc32 for name, file in manifest.files.items())


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


_caches: dict[tuple[str | None, int], IndexCache] = {}
_caches_lock = threading.Lock()


def cache_for(directory: str | None, max_bytes: int) -> IndexCache:
    """The cache of this process for a directory, or its temporary one."""
    key = (directory, os.getpid())
    with _caches_lock:
        found = _caches.get(key)
        if found is None:
            if directory is None:
                found = IndexCache(_temporary(), max_bytes)
            else:
                found = IndexCache(directory, max_bytes)
            _caches[key] = found
        found.max_bytes = max_bytes
        return found


def _temporary() -> str:
    root = shared_root()
    return str(Path(root, "indextables-index")) if root is not None else scratch("index")
