"""A segment is the set of log files that make one version: a checkpoint, if any, and every commit after it.

The listing decides what exists. `_last_checkpoint` is only a hint: it says where a
listing may start and what a checkpoint's checksum is. A wrong hint never changes the
result; one that names the Avro state of the JVM system is refused.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from indextables.errors import (
    CorruptLogError,
    MissingVersionError,
    NotATableError,
    NotFoundError,
    StorageError,
    VersionNotFoundError,
)
from indextables.lazy import later
from indextables.log.format.dialect import Checkpoint, Dialect, Hint, LogFile, digits
from indextables.log.format.protocol import AVRO_STATE, avro_state
from indextables.records import dataclass
from indextables.runtime import beside
from indextables.storage.objects import SMALL_OBJECT
from indextables.storage.store import ObjectMeta, Prefetching, Store

if TYPE_CHECKING:
    from indextables.log import table_kind
else:
    table_kind = later("indextables.log.table_kind")

logger = logging.getLogger(__name__)

HINT_NAME = "_last_checkpoint"
PURGE_MARK = "_purge."
"""How the name of a PURGE's mark begins: behind every version, so that every listing shows it."""
_MOST_GAPS = 32
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.tmp")


@dataclass(frozen=True, slots=True)
class Listing:
    """The log files of a directory, in name order, from some version on."""

    files: tuple[LogFile, ...]
    """The files that belong to the history."""
    start: int | None = None
    """The version the listing started at; None means the whole directory."""
    floor: int = 0
    """The oldest version that is still history."""
    retired: tuple[LogFile, ...] = ()
    """Files below the floor (fences, leftovers, puts that came too late), and all floor files."""
    purges: frozenset[str] = frozenset()
    """The marks of PURGEs."""
    leftovers: tuple[ObjectMeta, ...] = ()
    """Temporary files of local writers, who may have been killed. Only a whole listing shows them."""

    @property
    def commits(self) -> dict[int, LogFile]:
        """Commit files by version, ascending."""
        return {file.version: file for file in self.files if file.kind == "commit"}


@dataclass(frozen=True, slots=True)
class Segment:
    """The files that make one version."""

    version: int
    checkpoint: Checkpoint | None
    commits: tuple[LogFile, ...]
    """Ascending and contiguous, from the version after the checkpoint to `version`."""
    head: LogFile | None = None
    """The commit file of `version` itself; None where only its checkpoint is left."""
    newest_checkpoint: int = -1
    """The newest version with a checkpoint in the listing, ignoring damaged ones; -1 if there is none."""
    newest_checkpoint_bytes: int = 0
    """The size of that checkpoint."""
    successor: LogFile | None = None
    """The commit file of the following version, if the listing shows one."""
    purges: frozenset[str] = frozenset()
    """The marks of PURGEs in the listing."""


def read_hint(store: Store, dialect: Dialect) -> Hint | None:
    """Read `_last_checkpoint`; None when it is missing or not valid."""
    path = dialect.path(HINT_NAME)
    try:
        data = store.get(path)
    except NotFoundError:
        return None
    except StorageError as bad:
        # The hint only saves work; if the store is broken, the listing that follows raises.
        logger.warning("%s/%s cannot be read and is ignored: %s", store.uri, path, bad)
        return None
    hint = dialect.decode_hint(data)
    if hint is not None and hint.format == AVRO_STATE:
        raise avro_state(store.uri)
    return hint


def list_log(store: Store, dialect: Dialect, start: int | None = None) -> Listing:
    """List the log directory, from the first file of version `start` if that is given."""
    after = None if start is None else dialect.path(digits(start))
    files = []
    odd = []
    purges = set()
    leftovers = []
    for meta in store.list_level(dialect.log_dir, start_after=after):
        name = meta.path.rpartition("/")[2]
        file = dialect.parse_name(name, meta)
        if file is not None:
            files.append(file)
        elif name.startswith(PURGE_MARK):
            purges.add(name)
        elif _TEMPORARY.fullmatch(name):
            leftovers.append(meta)
        elif name.endswith(".json") and name[:-5].isascii() and name[:-5].isdigit():
            odd.append(name)
    if odd:
        _warn_of_strangers(f"{store.uri}/{dialect.log_dir}", odd[0], len(odd))
    return replace(listing_of(files, start), purges=frozenset(purges), leftovers=tuple(leftovers))


def listing_of(files: Iterable[LogFile], start: int | None = None) -> Listing:
    """Divide the listed files into the history and what lies below its floor."""
    listed = tuple(files)
    latest = max((file.version for file in listed if file.kind != "floor"), default=-1)
    # A floor above every version cannot be ours; it must not hide the table.
    floor = max(
        (file.version for file in listed if file.kind == "floor" and file.version <= latest), default=0
    )
    current = tuple(file for file in listed if file.version >= floor and file.kind != "floor")
    retired = tuple(file for file in listed if file.version < floor or (file.kind == "floor" and floor))
    return Listing(current, start, floor, retired)


@lru_cache(maxsize=1000)
def _warn_of_strangers(directory: str, first: str, count: int) -> None:
    """Warn once about foreign files: a handle lists the same directory many times."""
    logger.warning(
        "%s: ignoring %d file(s) such as %s: a version file is named by a number of 20 digits that fits "
        "into 64 bits",
        directory, count, first,
    )  # fmt: skip


def find_segment(
    store: Store,
    dialect: Dialect,
    version: int | None = None,
    *,
    hint: Hint | None = None,
    rejected: Collection[object] = (),
) -> Segment:
    """Find the files of a version (by default the newest), avoiding checkpoints known to be damaged.

    `rejected` holds `Checkpoint.identity` values. Raises NotATableError, VersionNotFoundError or
    MissingVersionError when there is no such version.
    """
    if hint is not None and (version is None or hint.version <= version):
        listing = _listed_from(store, dialect, hint)
        if _usable(listing, dialect, version, rejected):
            try:
                return _whole(store, listing, dialect, version, hint=hint, rejected=rejected)
            except (VersionNotFoundError, MissingVersionError):
                # Only a complete listing can tell which versions exist.
                pass
    return _whole(store, list_log(store, dialect), dialect, version, hint=hint, rejected=rejected)


def _listed_from(store: Store, dialect: Dialect, hint: Hint) -> Listing:
    """The log from the hint's version on; the checkpoint is read meanwhile where a request takes long."""
    look: Callable[[], Listing] = partial(list_log, store, dialect, hint.version)
    is_small = hint.parts is not None or (hint.size_bytes or SMALL_OBJECT) <= SMALL_OBJECT
    if not is_small or dialect.name != "native" or not isinstance(store, Prefetching):
        return look()
    name = f"{digits(hint.version)}.checkpoint.{hint.format or 'json'}"
    return beside(look, partial(store.prefetch, dialect.path(name)))


def gaps(present: Collection[int], first: int, last: int) -> list[range]:
    """The runs of versions between `first` and `last` that are missing.

    As ranges: a single stray file name may open a gap of more versions than memory can hold.
    """
    runs = []
    for number in sorted({*(item for item in present if first <= item <= last), last + 1}):
        if number > first:
            runs.append(range(first, number))
        first = number + 1
    return runs


def fill_gaps(store: Store, dialect: Dialect, listing: Listing, missing: Sequence[range]) -> Listing | None:
    """Look up commits a listing lacks, one by one; None when one of them really does not exist.

    Listing a local directory is not atomic: a file created meanwhile may be missing from the result although
    a later one is in it.
    """
    if sum(map(len, missing)) > _MOST_GAPS or any(run[0] < listing.floor for run in missing):
        return None
    looked_up = []
    for version in chain.from_iterable(missing):
        try:
            looked_up.append(dialect.commit_file(store, version))
        except NotFoundError:
            return None
    files = sorted((*listing.files, *looked_up), key=lambda file: file.name)
    return replace(listing, files=tuple(files))


def segment_of(
    listing: Listing,
    dialect: Dialect,
    version: int | None = None,
    *,
    hint: Hint | None = None,
    rejected: Collection[object] = (),
    uri: str = "",
) -> Segment:
    """Choose the files of a version from a listing; pure."""
    commits = listing.commits
    checkpoints = dialect.checkpoints(listing.files)
    latest = max([*commits, *(item.version for item in checkpoints)], default=None)
    if latest is None:
        raise NotATableError(f"{uri} is not a table: {dialect.log_dir} holds no version.", uri=uri)
    target = latest if version is None else version
    if target > latest or target < 0:
        raise _no_such_version(target, listing, dialect, uri)
    sound = [item for item in checkpoints if item.identity not in rejected]
    below = [item for item in sound if item.version <= target]
    checkpoint = with_hint(below[0], hint) if below else None
    first = 0 if checkpoint is None else checkpoint.version + 1
    missing = gaps(commits, first, target)
    if missing:
        raise _missing(
            missing, target, listing, dialect, uri, explicit=version is not None, rejected=rejected
        )
    chosen = tuple(commits[number] for number in range(first, target + 1))
    return Segment(
        target,
        checkpoint,
        chosen,
        head=commits.get(target),
        newest_checkpoint=sound[0].version if sound else -1,
        newest_checkpoint_bytes=sound[0].size_bytes if sound else 0,
        successor=commits.get(target + 1),
        purges=listing.purges,
    )


def reconstructible(
    listing: Listing, dialect: Dialect, is_whole: Callable[[LogFile | Checkpoint], bool] = lambda _: True
) -> list[int]:
    """Every version that can be rebuilt from a complete listing, ascending.

    By default the names of the files decide; `is_whole` tells more of a commit, or of a checkpoint that is
    needed because the commits before it are not all there.
    """
    commits = listing.commits
    starts: dict[int, list[Checkpoint]] = {}
    for item in dialect.checkpoints(listing.files):
        starts.setdefault(item.version, []).append(item)
    versions: list[int] = []
    for number in sorted({*commits, *starts}):
        follows = number in commits and (number == 0 or (bool(versions) and versions[-1] == number - 1))
        if (follows and is_whole(commits[number])) or any(map(is_whole, starts.get(number, ()))):
            versions.append(number)
    return versions


def offering(
    error: VersionNotFoundError | MissingVersionError, available: list[int]
) -> VersionNotFoundError | MissingVersionError:
    """The same error, naming these versions instead of those that file names promise."""
    promised = f"{ranges(error.fields['available']) or 'none'}."
    message = error.message.removesuffix(promised) + f"{ranges(available) or 'none'}."
    return type(error)(message, **{**error.fields, "available": available})


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as text, runs joined: `0-4, 7`."""
    items = sorted(numbers)
    cuts = [0, *(at + 1 for at, (low, high) in enumerate(pairwise(items)) if high != low + 1), len(items)]
    runs = [items[low:high] for low, high in pairwise(cuts) if low < high]
    return spans(runs)


def spans(runs: Iterable[Sequence[int]]) -> str:
    """Runs of numbers as text: `0-4, 7`."""
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _whole(
    store: Store,
    listing: Listing,
    dialect: Dialect,
    version: int | None,
    *,
    hint: Hint | None,
    rejected: Collection[object],
) -> Segment:
    if not listing.commits and not dialect.checkpoints(listing.files):
        listing = _listed_again(store, dialect)
    try:
        return segment_of(listing, dialect, version, hint=hint, rejected=rejected, uri=store.uri)
    except MissingVersionError as gap:
        filled = fill_gaps(store, dialect, listing, gap.missing)
        if filled is None:
            raise
    return segment_of(filled, dialect, version, hint=hint, rejected=rejected, uri=store.uri)


def _listed_again(store: Store, dialect: Dialect) -> Listing:
    """The listing of a log that showed no version: all its files may have been replaced meanwhile.

    Raises NotATableError, with what there is instead, if there is no log.
    """
    nothing = table_kind.not_a_table(store, dialect.log_dir)
    if nothing.fields["kind"] is not nothing.fields["expected"]:
        raise nothing
    return list_log(store, dialect)


def _usable(listing: Listing, dialect: Dialect, version: int | None, rejected: Collection[object]) -> bool:
    return any(
        (version is None or item.version <= version) and item.identity not in rejected
        for item in dialect.checkpoints(listing.files)
    )


def with_hint(checkpoint: Checkpoint, hint: Hint | None) -> Checkpoint:
    """The checkpoint with the checksum and count of the hint, if the hint is about this checkpoint."""
    if hint is None or hint.version != checkpoint.version or (hint.format or "json") != checkpoint.format:
        return checkpoint
    return replace(checkpoint, checksum=hint.checksum, num_files=hint.num_files)


def _no_such_version(version: int, listing: Listing, dialect: Dialect, uri: str) -> VersionNotFoundError:
    available = reconstructible(listing, dialect)
    return VersionNotFoundError(
        f"{uri} has no version {version}; available: {ranges(available) or 'none'}.",
        version=version, available=available, uri=uri,
    )  # fmt: skip


def _missing(
    missing: list[range],
    target: int,
    listing: Listing,
    dialect: Dialect,
    uri: str,
    *,
    explicit: bool,
    rejected: Collection[object],
) -> VersionNotFoundError | CorruptLogError:
    available = reconstructible(listing, dialect)
    oldest = min(listing.commits, default=target)
    # A checkpoint that is no longer listed was deleted by cleanup while it was read; that is not damage.
    damaged = any(item.identity in rejected for item in dialect.checkpoints(listing.files))
    if explicit and not damaged and (target < oldest or missing[-1][-1] < oldest):
        return _no_such_version(target, listing, dialect, uri)
    lost = " Its newer checkpoints are damaged." if damaged else ""
    return MissingVersionError(
        f"{uri}: version {spans(missing)} is missing from {dialect.log_dir}, so version {target} cannot be "
        f"rebuilt.{lost} {dialect.advice} "
        f"Versions that can be opened: {ranges(available) or 'none'}.",
        version=missing[0][0], missing=missing, available=available, uri=uri,
    )  # fmt: skip
