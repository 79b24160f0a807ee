"""Creating a version file under its number, and making sure that the number had never been used.

A successful put-if-absent proves that no file has the number now. It does not prove that
none ever had it: cleanup and TRUNCATE delete old version files, and a writer that paused
may return to a number that was used and retired meanwhile. So the writer looks at the log
once more after its put:

* The floor is at or below its number: the number was never retired, and the
  file is part of the history.
* The next version exists: it names the commit it follows, ours or another.
* The next version is gone and our file is still there: version files are deleted
  oldest first, so the next one was retired before ours was created.
* Otherwise nothing in the log can tell, and the outcome is unknown.

A writer never deletes a version file that it put. `docs/spec/commit-protocol.md` has the
rules, what each is for, and the model that checks them.
"""

from __future__ import annotations

import logging
from enum import Enum, auto

from indextables.errors import CommitError, CorruptLogError, NotFoundError, StorageError
from indextables.log.format.dialect import NATIVE, LogFile
from indextables.log.history import read_info
from indextables.log.retention import FENCE_MS
from indextables.log.segment import list_log
from indextables.log.state import LogSource
from indextables.model.actions import CommitInfo
from indextables.records import dataclass
from indextables.storage.stores.put_if_absent import require_exclusion

logger = logging.getLogger(__name__)


class Outcome(Enum):
    """The outcome of one try to create a version file."""

    LANDED = auto()
    """The file was created and is part of the history."""
    TAKEN = auto()
    """Another commit has the number."""
    RETIRED = auto()
    """The file was created under a number that another commit had used before; no reader will ever use it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One version file to create."""

    source: LogSource
    version: int
    data: bytes
    commit_id: str
    began_s: float
    """When the writer looked at the log, on its monotonic clock."""

    @property
    def path(self) -> str:
        """The path of the version file in the store."""
        return self.source.path(NATIVE.commit_name(self.version))

    @property
    def uri(self) -> str:
        """The table's root."""
        return self.source.store.uri

    def unknown(self, why: str) -> CommitError:
        """The error for an outcome that cannot be determined."""
        return CommitError(
            f"{self.uri}: whether version {self.version} was written is unknown: {why} "
            f"TransactionLog.find_commit('{self.commit_id}') tells the version it became, or None. "
            "Look before writing again, or give the write a txnAppId and a txnVersion: a batch that carries "
            "them is written once however often it is repeated.",
            version=self.version, outcome="unknown", commit_id=self.commit_id, uri=self.uri,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Placed:
    """The outcome of an attempt."""

    outcome: Outcome
    file: LogFile | None = None
    """The version file as a listing shows it."""


def place(attempt: Attempt) -> Placed:
    """Create the version file; raises CommitError when it failed or when its outcome is unknown."""
    failed: StorageError | None = None
    require_exclusion(attempt.source.store, attempt.source.dialect.log_dir)
    try:
        if attempt.source.store.put_if_absent(attempt.path, attempt.data):
            return _look_back(attempt, ours=True, answered=True)
    except StorageError as error:
        failed = error
    # Needed for "already exists" too: a store that repeats a request after a lost reply finds its own file.
    return _settle(attempt, failed)


def _settle(attempt: Attempt, failed: StorageError | None) -> Placed:
    """Find out what happened when the put was not confirmed: our file exists, another's does, or none."""
    try:
        ours = _is_ours(attempt)
    except NotFoundError:
        if failed is None:
            # Two writers blocked each other and neither won, or the winner's file was retired since.
            return _look_back(attempt, ours=False, answered=False)
        if failed.fields.get("final"):
            raise CommitError(
                f"{attempt.uri}: version {attempt.version} could not be written and nothing was committed: "
                f"{failed}",
                version=attempt.version, outcome="absent", uri=attempt.uri,
            ) from failed  # fmt: skip
        raise attempt.unknown(f"{failed} It is not there now, and may still arrive.") from failed
    except (StorageError, CorruptLogError) as unreadable:
        raise attempt.unknown(f"the file cannot be read back: {unreadable}") from failed or unreadable
    if not ours and failed is None and _in_time(attempt):
        return Placed(Outcome.TAKEN)
    return _look_back(attempt, ours=ours, answered=False)


def _look_back(attempt: Attempt, *, ours: bool, answered: bool) -> Placed:
    """Decide whether a file under our number is part of the history.

    `ours`: the file is ours, not another writer's. `answered`: the store confirmed that our put created it.
    """
    source, version = attempt.source, attempt.version
    try:
        listing = list_log(source.store, NATIVE, version)
        if listing.floor <= version:
            return Placed(Outcome.LANDED if ours else Outcome.TAKEN, listing.commits.get(version))
        logger.warning(
            "%s: version %d was retired while it was being written; checking whether the commit counts",
            attempt.uri, version,
        )  # fmt: skip
        follower = _info(source, version + 1)
        if follower is not None:
            return Placed(_followed(attempt, follower, ours=ours))
        if ours and answered and source.store.get(attempt.path) == attempt.data:
            return Placed(Outcome.RETIRED)
    except NotFoundError:
        pass
    except (StorageError, CorruptLogError) as failed:
        if ours and answered and _in_time(attempt):
            # Retired numbers stay taken for longer than this attempt took, so ours cannot have been
            # retired.
            logger.warning("%s: version %d is written; %s", attempt.uri, version, failed)
            return Placed(Outcome.LANDED)
        raise attempt.unknown(f"{failed}") from failed
    raise attempt.unknown("the log has moved on too far to tell.")


def _followed(attempt: Attempt, follower: CommitInfo, *, ours: bool) -> Outcome:
    if follower.previous_commit_id is None:
        raise attempt.unknown(f"version {attempt.version + 1} does not say which commit it follows.")
    if follower.previous_commit_id == attempt.commit_id:
        return Outcome.LANDED
    return Outcome.RETIRED if ours else Outcome.TAKEN


def _info(source: LogSource, version: int) -> CommitInfo | None:
    """The commitInfo of a version; None when the version has no file or its file has no commitInfo."""
    try:
        return read_info(source, LogFile(NATIVE.commit_name(version), version, "commit")) or CommitInfo()
    except NotFoundError:
        return None


def _in_time(attempt: Attempt) -> bool:
    elapsed_s = attempt.source.runtime.clock.monotonic_s() - attempt.began_s
    return elapsed_s * 1000 < FENCE_MS / 2


def _is_ours(attempt: Attempt) -> bool:
    name = NATIVE.commit_name(attempt.version)
    stored = attempt.source.store.get(attempt.path)
    if stored == attempt.data:
        return True
    actions = NATIVE.decode_commit(stored, name=name, version=attempt.version)
    return any(isinstance(action, CommitInfo) and action.commit_id == attempt.commit_id for action in actions)
