"""Creating a version file under its number, and making sure that the number had never been used.

A successful put-if-absent proves that no file has the number now. It does not prove that
none ever had it: cleanup and TRUNCATE delete old version files, and a writer that paused
may return to a number that was used and retired meanwhile. So the writer looks at the log
once more after its put, and only that look decides:

* The floor is at or below its number: the number was never retired, and whoever put the
  file that is there has committed.
* The floor is above its number: the checkpoint at the floor names the commits of the last
  versions. Where it does not reach back that far, the next version names the one it follows.
* Nothing in the log can tell, or no look succeeds: the outcome is unknown.

No clock decides anything here, and that our own file is there proves nothing: it may have
come too late. A writer never deletes a version file that it put.
`docs/spec/commit-protocol.md` has the rules, what each is for, and the model that checks them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from indextables.errors import CommitError, CorruptLogError, NotFoundError, StorageError
from indextables.log.commit.patience import look_patiently
from indextables.log.format.dialect import NATIVE, LogFile
from indextables.log.history import read_info
from indextables.log.segment import Listing, list_log
from indextables.log.state import LogSource
from indextables.model.actions import CommitInfo
from indextables.records import dataclass
from indextables.storage.stores.put_if_absent import require_exclusion

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One version file to create."""

    source: LogSource
    version: int
    data: bytes
    commit_id: str
    base: LogFile | None = None
    """The file of the version before it, as it was listed; None if only its checkpoint is left."""

    @property
    def path(self) -> str:
        """The path of the version file in the store."""
        return self.source.path(NATIVE.commit_name(self.version))

    @property
    def uri(self) -> str:
        """The table's root."""
        return self.source.store.uri

    def unknown(self, why: object) -> CommitError:
        """The error for an outcome that cannot be determined."""
        return CommitError(
            f"{self.uri}: whether version {self.version} was written is unknown: {why} "
            f"TransactionLog.find_commit('{self.commit_id}') tells the version it became, or None. "
            "Look before writing again, or give the write a txnAppId and a txnVersion: a batch that carries "
            "them is written once however often it is repeated.",
            version=self.version, outcome="unknown", commit_id=self.commit_id, uri=self.uri,
        )  # fmt: skip


def place(attempt: Attempt) -> LogFile | None:
    """Create the version file: the file once it is history, None if the number belongs to another commit.

    Raises CommitError when nothing was committed or when the outcome is unknown.
    """
    store = attempt.source.store
    require_exclusion(store, attempt.source.dialect.log_dir)
    try:
        # Also after "exists": a proxy that repeats a request after a lost reply finds our own file.
        ours = store.put_if_absent(attempt.path, attempt.data) or _is_ours(attempt, None)
    except StorageError as failed:
        ours = _is_ours(attempt, failed)
    try:
        return look_patiently(
            lambda: _look(attempt, ours=ours),
            attempt.source.options.transaction,
            attempt.source.runtime.clock,
        )
    except (StorageError, CorruptLogError) as failed:
        raise attempt.unknown(failed) from failed


def _is_ours(attempt: Attempt, failed: StorageError | None) -> bool:
    """Whether the file under our number is ours, when the put did not confirm it.

    `failed` is the error of a put without an answer; None if the store said that a file exists.
    """
    source = attempt.source
    try:
        stored = look_patiently(lambda: _stored(attempt), source.options.transaction, source.runtime.clock)
        if stored is not None:
            return stored == attempt.data or _commit_id(attempt, stored) == attempt.commit_id
    except (StorageError, CorruptLogError) as unreadable:
        raise attempt.unknown(f"the file cannot be read back: {unreadable}") from failed or unreadable
    if failed is None:
        # Two writers blocked each other and neither won, or the winner's file was retired since.
        return False
    if failed.fields.get("final"):
        raise CommitError(
            f"{attempt.uri}: version {attempt.version} could not be written and nothing was committed: "
            f"{failed}",
            version=attempt.version, outcome="absent", uri=attempt.uri,
        ) from failed  # fmt: skip
    raise attempt.unknown(f"{failed} It is not there now, and may still arrive.") from failed


def _stored(attempt: Attempt) -> bytes | None:
    """What lies under our number; None if nothing does."""
    try:
        return attempt.source.store.get(attempt.path)
    except NotFoundError:
        return None


def _commit_id(attempt: Attempt, stored: bytes) -> str | None:
    name = NATIVE.commit_name(attempt.version)
    actions = NATIVE.decode_commit(stored, name=name, version=attempt.version)
    return next((action.commit_id for action in actions if isinstance(action, CommitInfo)), None)


def _look(attempt: Attempt, *, ours: bool) -> LogFile | None:
    """Decide whether our commit is part of the history: its file if so, None if another has the number.

    `ours`: the file under the number is, or was, ours. A StorageError says that this look decided nothing.
    """
    source, version = attempt.source, attempt.version
    if ours and (own := _beside_base(attempt)) is not None:
        return own
    listing = list_log(source.store, NATIVE, version - 1)
    if listing.floor > version:
        logger.warning(
            "%s: version %d was retired while it was being written; checking whether the commit counts",
            attempt.uri, version,
        )  # fmt: skip
        return _retired(attempt, listing)
    commits = listing.commits
    if listing.floor < version:
        # Nothing below our number was retired, so the base must be there; else this listing missed a floor,
        # or somebody deleted the table.
        _require(attempt, attempt.base, commits.get(version - 1))
    if not ours:
        return None
    if version not in commits:
        raise _missing(attempt, NATIVE.commit_name(version))
    return commits[version]


def _beside_base(attempt: Attempt) -> LogFile | None:
    """Our file, if on a local disk the base is still the file that was listed; else a listing has to tell.

    Version files go from the oldest up, so while the base is there our number was never retired. Our own
    file is looked at first: then what it shows is from before that.
    """
    source, base = attempt.source, attempt.base
    if base is None or base.etag is None or source.store.local_path("") is None:
        return None
    try:
        own = source.commit_file(attempt.version)
        # Opened rather than looked at: network file systems answer a mere `stat` from a cache.
        source.store.get_range(source.path(base.name), 0, 0, etag=base.etag)
    except NotFoundError:
        return None
    return own


def _require(attempt: Attempt, expected: LogFile | None, listed: LogFile | None) -> None:
    if expected is None or expected.etag is None:
        return
    if listed is None or listed.identity != expected.identity:
        raise _missing(attempt, expected.name)


def _missing(attempt: Attempt, name: str) -> NotFoundError:
    return NotFoundError(
        f"{name}, which was there a moment ago, is gone or is another file now, although the log does not "
        "say that it was retired. Somebody deleted or replaced the table.",
        uri=attempt.uri, path=attempt.source.path(name),
    )  # fmt: skip


def _retired(attempt: Attempt, listing: Listing) -> LogFile | None:
    """Decide by what the log keeps about a number below its floor."""
    version = attempt.version
    commit_id = _ids_at_floor(attempt, listing).get(version)
    if commit_id is None:
        commit_id = _followed(attempt)
    # Readers do not use the file any more, so it does not matter which one is there now.
    file = LogFile(NATIVE.commit_name(version), version, "commit", len(attempt.data))
    return file if commit_id == attempt.commit_id else None


def _ids_at_floor(attempt: Attempt, listing: Listing) -> Mapping[int, str]:
    """The commits that the checkpoint at the floor names, by version; NotFoundError if it is gone by now."""
    source = attempt.source
    at_floor = [item for item in NATIVE.checkpoints(listing.files) if item.version == listing.floor]
    if not at_floor:
        # A newer floor took its place, which the next listing shows.
        raise _missing(attempt, NATIVE.checkpoint_name(listing.floor))
    for checkpoint in at_floor:
        try:
            return source.reader.head(source.store, checkpoint).commit_ids
        except CorruptLogError as damaged:
            logger.warning("%s: %s", attempt.uri, damaged)
    return {}


def _followed(attempt: Attempt) -> str:
    """The commit that the next version says it follows."""
    following = attempt.version + 1
    try:
        info = read_info(attempt.source, LogFile(NATIVE.commit_name(following), following, "commit"))
    except NotFoundError:
        raise attempt.unknown("the log has moved on too far to tell.") from None
    if info is None or info.previous_commit_id is None:
        raise attempt.unknown(f"version {following} does not say which commit it follows.")
    return info.previous_commit_id
