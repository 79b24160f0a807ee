"""Checks the files of a log by reading each: versions, checkpoints, the hint, and unknown files.

Damage is rated by its consequence. A version file after the newest sound checkpoint is
needed by every reader; an older one only for the versions it makes; a damaged checkpoint
only costs time, as long as an older one and the commits after it exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from indextables.errors import Error, NotFoundError, ProtocolError
from indextables.log.format.dialect import NATIVE, Checkpoint, Hint, LogFile
from indextables.log.openable import damage_of_checkpoint, damage_of_commit
from indextables.log.segment import HINT_NAME, Listing, list_log, ranges, reconstructible, with_hint
from indextables.log.snapshot import Snapshot
from indextables.log.state import LogSource, load_state
from indextables.ops.maintain.check.findings import BROKEN, NOTE, WARNING, Commands, Finding
from indextables.ops.progress import Progress, watched
from indextables.runtime import LOCAL

_TEMPORARY = ".tmp"


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The result of reading every file of a log."""

    listing: Listing
    checkpoints: tuple[Checkpoint, ...]
    """Newest first."""
    damaged: dict[str, str]
    """Why a file cannot be read, by its name."""
    hint_version: int | None
    """The version the hint names; None when there is no hint, or none that can be read."""
    strangers: tuple[str, ...]
    """Names in the directory that are not log files."""
    newest: Snapshot | None
    unopened: Error | None
    """Why the newest version cannot be opened."""
    disagreement: str | None
    """How the newest checkpoint contradicts the version files it was made from."""

    @property
    def sound(self) -> tuple[Checkpoint, ...]:
        """The checkpoints that can be read, newest first."""
        return tuple(item for item in self.checkpoints if item.files[0].name not in self.damaged)

    @property
    def rebuildable(self) -> list[int]:
        """The versions that can be rebuilt from what is not damaged, ascending."""
        return reconstructible(self.listing, NATIVE, lambda item: _name(item) not in self.damaged)


def _name(item: LogFile | Checkpoint) -> str:
    return item.files[0].name if isinstance(item, Checkpoint) else item.name


def read_log(source: LogSource, progress: Progress) -> LogFacts:
    """Read every file of the log directory."""
    store = source.store
    listing = list_log(store, NATIVE)
    names = [meta.path.rpartition("/")[2] for meta in store.list_level(NATIVE.log_dir)]
    expected_names = {file.name for file in (*listing.files, *listing.retired)} | {HINT_NAME, *listing.purges}
    hint, bad_hint = _read_hint(source) if HINT_NAME in names else (None, None)
    checkpoints = tuple(with_hint(item, hint) for item in NATIVE.checkpoints(listing.files))
    commits = list(listing.commits.values())
    work = {file.name: partial(_read_version, source, file) for file in commits}
    work |= {item.files[0].name: partial(_read_checkpoint, source, item) for item in checkpoints}
    width = source.reads_at_once
    outcomes = LOCAL.workers.map(_call, work.values(), parallelism=width)
    outcomes = watched(outcomes, progress, "Reading the log", len(work))
    problems = {HINT_NAME: bad_hint, **dict(zip(work, outcomes, strict=True))}
    damaged = {name: problem for name, problem in problems.items() if problem is not None}
    newest, unopened = _open(source)
    culprit = None if unopened is None else listing.commits.get(unopened.fields.get("version", -1))
    if culprit is not None and unopened is not None:
        # The file is valid by itself; that it belongs to another table shows only in comparison.
        damaged.setdefault(culprit.name, unopened.message)
    return LogFacts(
        listing, checkpoints, damaged, None if hint is None else hint.version,
        tuple(name for name in names if name not in expected_names), newest, unopened,
        _disagreement(source, checkpoints, damaged),
    )  # fmt: skip


def _read_hint(source: LogSource) -> tuple[Hint | None, str | None]:
    """The hint, or why it cannot be read."""
    try:
        hint = NATIVE.decode_hint(source.store.get(source.path(HINT_NAME)))
    except Error as bad:
        return None, bad.message
    return hint, "it does not point to a checkpoint" if hint is None else None


def _call(work: partial[str | None]) -> str | None:
    return work()


def _read_version(source: LogSource, file: LogFile) -> str | None:
    """Why a version file cannot be read; None when it can."""
    return _message(damage_of_commit(source, file))


def _read_checkpoint(source: LogSource, checkpoint: Checkpoint) -> str | None:
    """Why a checkpoint cannot be read; every byte is read and checked, though no add is returned."""
    return _message(damage_of_checkpoint(source, checkpoint))


def _message(damage: Error | None) -> str | None:
    """What is wrong with a file; nothing if cleanup took it meanwhile."""
    return None if damage is None or isinstance(damage, NotFoundError) else damage.message


def _open(source: LogSource) -> tuple[Snapshot | None, Error | None]:
    try:
        snapshot = Snapshot(source, load_state(source))
        _ = snapshot.metadata, snapshot.schema
        snapshot.live_paths()
    except Error as bad:
        return None, bad
    return snapshot, None


def _disagreement(
    source: LogSource, checkpoints: tuple[Checkpoint, ...], damaged: dict[str, str]
) -> str | None:
    """Compare the newest sound checkpoint with its version rebuilt without it, where that is possible."""
    sound = [item for item in checkpoints if item.files[0].name not in damaged]
    if not sound:
        return None
    version = sound[0].version
    rejected = [item.identity for item in checkpoints if item.version == version]
    try:
        rebuilt = Snapshot(source, load_state(source, version, rejected)).live_paths()
        stored = Snapshot(source, load_state(source, version)).live_paths()
    except Error:
        return None  # cleanup took what it was made from, or that is damaged, which is a finding of its own
    here, there = set(stored.to_pylist()), set(rebuilt.to_pylist())
    if here == there:
        return None
    return (
        f"it has {len(here - there)} files that the versions do not have, and lacks {len(there - here)} that "
        "they have"
    )


def log_findings(facts: LogFacts, uri: str) -> Iterator[Finding]:
    """What is wrong with the files of a log; pure."""
    commands = Commands(uri)
    if facts.unopened is not None:
        yield _unopened(facts, facts.unopened, commands)
    yield from _versions(facts, commands)
    yield from _checkpoints(facts, commands)
    yield from _hint(facts, commands)
    for name in facts.strangers:
        left_over = name.endswith(_TEMPORARY)
        yield Finding(
            NOTE, name,
            "a killed writer left it" if left_over else "it is not a log file",
            "it takes up space" if left_over else "readers ignore it",
            commands.on_table("PURGE INDEXTABLE") if left_over else "",
        )  # fmt: skip


def _unopened(facts: LogFacts, why: Error, commands: Commands) -> Finding:
    place = f"{commands.uri}/{NATIVE.log_dir}"
    if isinstance(why, ProtocolError):
        return Finding(
            BROKEN, place, why.message, "this version of IndexTables cannot read the table",
            "pip install --upgrade indextables",
        )  # fmt: skip
    saved = facts.rebuildable
    if not saved:
        return Finding(
            BROKEN, place, why.message,
            "no version can be opened; the splits still know their rows, columns and index settings, but not "
            "which of them were removed",
            commands.repair("FROM SPLITS"),
        )  # fmt: skip
    last = saved[-1]
    return Finding(
        BROKEN, place, why.message,
        f"the newest version cannot be opened; up to version {last} everything can be saved. What was "
        f"committed after it comes back with FROM SPLITS only, along with removed splits that PURGE has not "
        "deleted yet",
        commands.repair(f"UP TO VERSION {last}"),
    )  # fmt: skip


def _versions(facts: LogFacts, commands: Commands) -> Iterator[Finding]:
    """Version files that are damaged or missing but not needed by the newest version."""
    base = max((item.version for item in facts.sound), default=-1)
    commits = facts.listing.commits
    rebuilt = set(facts.rebuildable)
    # Cleanup deletes version files oldest first: those below the first remaining one are not missing.
    for number in range(min(commits, default=base), base + 1):
        file = commits.get(number)
        problem = "it is missing" if file is None else facts.damaged.get(file.name)
        if problem is None:
            continue
        later = (item.version for item in facts.sound if item.version >= number)
        lost = ranges(set(range(number, min(later, default=number + 1))) - rebuilt)
        yield Finding(
            WARNING, NATIVE.commit_name(number), problem,
            f"version {lost} cannot be opened; the newest can" if lost else "its changes cannot be shown",
            commands.on_table("TRUNCATE INDEXTABLES TIME TRAVEL"),
        )  # fmt: skip


def _checkpoints(facts: LogFacts, commands: Commands) -> Iterator[Finding]:
    anew = commands.on_table("CHECKPOINT INDEXTABLES")
    for checkpoint in facts.checkpoints:
        name = checkpoint.files[0].name
        if name in facts.damaged:
            yield Finding(
                WARNING, name, facts.damaged[name],
                "readers fall back to an older checkpoint and replay more versions",
                anew if checkpoint is facts.checkpoints[0] else "",
            )  # fmt: skip
    if facts.disagreement is not None:
        name = facts.sound[0].files[0].name
        yield Finding(
            BROKEN, name, facts.disagreement,
            f"readers believe the checkpoint. The versions are the authority: move {name} away, then write "
            "another",
            anew,
        )  # fmt: skip


def _hint(facts: LogFacts, commands: Commands) -> Iterator[Finding]:
    newest = facts.sound[0].version if facts.sound else None
    if HINT_NAME in facts.damaged:
        problem = facts.damaged[HINT_NAME]
    elif facts.hint_version == newest:
        return
    elif facts.hint_version is None:
        problem = f"it is missing, the newest checkpoint is that of version {newest}"
    else:
        is_there = "none can be read" if newest is None else f"the newest one is that of version {newest}"
        problem = f"it names the checkpoint of version {facts.hint_version}, {is_there}"
    yield Finding(
        WARNING, HINT_NAME, problem, "readers list the whole log instead of its end",
        commands.on_table("CHECKPOINT INDEXTABLES"),
    )  # fmt: skip
