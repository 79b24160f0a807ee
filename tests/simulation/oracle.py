"""The oracle: what is true of a history, told from the raw bytes that reached the store.

It replays the log by itself, with json and gzip and nothing of the production
reader. A version file is part of the history when its number is one above the
newest at the moment it lands; a file that lands below that is a stray, which
nobody may be told of. Everything the actors were told, and everything readers
were given, is held against this history.
"""

from __future__ import annotations

import gzip
import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulation.intents import (
    ACKNOWLEDGED,
    CRASHED,
    FAILED,
    NOTHING,
    UNKNOWN,
    Followed,
    Found,
    Intent,
    Observation,
    Violation,
)
from simulation.world import HOUR_MS, LOG_DIR, Effect

_COMMIT = re.compile(rf"{LOG_DIR}/(\d{{20}})\.json")
_FLOOR = re.compile(rf"{LOG_DIR}/(\d{{20}})\.floor")
_CHECKPOINT = re.compile(rf"{LOG_DIR}/(\d{{20}})\.checkpoint\.(json|parquet)")
_SKEW_MS = 4 * HOUR_MS
"""Clocks are wrong by less than this."""
_BESIDE_SWAP = {"ProtocolError", "ConflictError", "VersionNotFoundError", "TableError"}
"""What a verb may be told once a log was closed: that it is, or that another log took its place."""
_PLANS_BY_READING = {"delete", "delete_query", "merge", "update", "upsert", "upsert_delete"}
"""Verbs that read rows of a version before they commit: it may be erased meanwhile."""
_LONG_MS = 20 * HOUR_MS
"""A split that waits longer than this for its commit may be purged: the documented limit is a day."""


def text_of(data: bytes) -> bytes:
    """The text of a log file: plain, or gzip members behind two bytes."""
    return gzip.decompress(data[2:]) if data[:1] == b"\x01" else data


def actions_of(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The actions of a version file."""
    lines = [json.loads(line) for line in text_of(data).splitlines() if line.strip()]
    return [(kind, body) for line in lines for kind, body in line.items()]


def checkpoint_of(data: bytes, form: str, fetch: Callable[[str], bytes]) -> dict[str, Any]:
    """The live files of a checkpoint by path, its parts fetched by name."""
    if form == "parquet":
        return _parquet_checkpoint(data, fetch)
    document = json.loads(text_of(data))
    adds = list(document.get("add") or ())
    for part in document.get("parts") or ():
        adds += json.loads(text_of(fetch(f"{LOG_DIR}/{part['path']}")))["add"]
    return {add["path"]: add for add in adds}


def checkpoint_head(data: bytes, form: str) -> dict[str, Any]:
    """What a checkpoint says of the table beside its files."""
    if form == "json":
        document: dict[str, Any] = json.loads(text_of(data))
        return document
    import pyarrow as pa
    import pyarrow.parquet as pq

    kept = pq.ParquetFile(pa.BufferReader(data)).schema_arrow.metadata or {}
    return next(json.loads(value) for value in kept.values() if b"metaData" in value)


def _parquet_checkpoint(data: bytes, fetch: Callable[[str], bytes]) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    head = checkpoint_head(data, "parquet")
    sources = [fetch(f"{LOG_DIR}/{part['path']}") for part in head.get("parts") or ()] or [data]
    adds = [
        json.loads(text)
        for source in sources
        for text in pq.read_table(pa.BufferReader(source), columns=["add"], use_threads=False)[
            "add"
        ].to_pylist()
    ]
    return {add["path"]: add for add in adds}


_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def hidden_by(add: Mapping[str, Any]) -> frozenset[int]:
    """The rows that the deletion vector of an add names: in a simulation they are few, and stand in the log."""
    vector = add.get("deletionVector")
    if vector is None:
        return frozenset()
    assert vector["storageType"] == "i", vector
    rows = rows_of_bitmap(of_z85(vector["pathOrInlineDv"]))
    assert len(rows) == vector["cardinality"], vector
    return rows


def of_z85(text: str) -> bytes:
    """The bytes that a text stands for."""
    data = b""
    for at in range(0, len(text), 5):
        number = 0
        for letter in text[at : at + 5]:
            number = number * 85 + _Z85.index(letter)
        data += number.to_bytes(4, "big")
    return data


def rows_of_bitmap(data: bytes) -> frozenset[int]:
    """The numbers in a bitmap that has them as one list, as those of few rows do."""
    magic, buckets, high, cookie, containers, key, most = struct.unpack_from("<iqIIIHH", data)
    assert (magic, buckets, high, cookie, containers, key) == (1681511377, 1, 0, 12346, 1, 0)
    return frozenset(struct.unpack_from(f"<{most + 1}H", data, 32))


@dataclass
class Version:
    """One version of the history."""

    number: int
    at_ms: int
    intent: Intent | None
    operation: str
    live: frozenset[str]
    rows: Counter[Any]
    actions: list[tuple[str, dict[str, Any]]]
    timestamp: int
    hidden: dict[str, frozenset[int]] = field(default_factory=dict)
    """The numbers of the rows that are deleted in a live file, by its path; only of files that have any."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """The newest metaData action up to this version; empty where a repaired log does not tell it."""

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return self.metadata.get("configuration") or {}

    @property
    def columns(self) -> dict[str, str]:
        """The types of the columns by name."""
        fields = json.loads(self.metadata["schemaString"])["fields"] if self.metadata else []
        return {item["name"]: item["type"] for item in fields}

    def bodies(self, kind: str) -> list[dict[str, Any]]:
        """The actions of one kind."""
        return [body for found, body in self.actions if found == kind]


@dataclass
class Truth:
    """The history of one table, built effect by effect."""

    rows_in: Callable[[str, bytes], Sequence[Any]]
    """The rows a split holds, from its bytes."""
    epochs: list[dict[int, Version]] = field(default_factory=lambda: [{}])
    began_ms: list[int] = field(default_factory=lambda: [0])
    violations: list[Violation] = field(default_factory=list)
    strays: list[tuple[int, Intent | None]] = field(default_factory=list)
    contents: dict[str, tuple[int, Sequence[Any]]] = field(default_factory=dict)
    deleted_ms: dict[str, int] = field(default_factory=dict)
    erased_ms: list[int] = field(default_factory=list)
    """When a file of the log was deleted or a floor put: versions may have gone at these moments."""
    switched: set[int] = field(default_factory=set)
    """Versions that a SWAP made by their checkpoint, and whose version files are still to come."""

    def broken(self, promise: str, what: str) -> None:
        """Record a violation."""
        self.violations.append(Violation(promise, what))

    @property
    def versions(self) -> dict[int, Version]:
        """The versions of the log as it is now."""
        return self.epochs[-1]

    @property
    def newest(self) -> int:
        """The newest version's number; -1 before there is any."""
        return max(self.versions, default=-1)

    def see(self, effects: Iterable[Effect]) -> None:
        """Take in everything that happened to the store, in order."""
        files: dict[str, bytes] = {}
        for effect in effects:
            if effect.kind == "swap":
                self._swapped(effect, files)
                continue
            if effect.kind == "delete":
                files.pop(effect.path, None)
                self.deleted_ms[effect.path] = effect.at_ms
                if effect.path.startswith(f"{LOG_DIR}/"):
                    self.erased_ms.append(effect.at_ms)
                continue
            assert effect.data is not None
            if _FLOOR.fullmatch(effect.path):
                self.erased_ms.append(effect.at_ms)
            files[effect.path] = effect.data
            if commit := _COMMIT.fullmatch(effect.path):
                self._landed(int(commit[1]), effect)
            elif checkpoint := _CHECKPOINT.fullmatch(effect.path):
                self._checkpointed(int(checkpoint[1]), checkpoint[2], effect, files)
            elif effect.path.endswith(".split"):
                self.contents[effect.path] = effect.at_ms, tuple(self.rows_in(effect.path, effect.data))

    def rows_of(self, live: Iterable[str], hidden: Mapping[str, frozenset[int]]) -> Counter[Any]:
        """All rows of some files that are not deleted, each with how often it is there."""
        return Counter(
            row
            for path in live
            for number, row in enumerate(self.contents.get(path, (0, (("lost", path),)))[1])
            if number not in hidden.get(path, ())
        )

    def _landed(self, number: int, effect: Effect) -> None:
        assert effect.data is not None
        actions = actions_of(effect.data)
        if _is_fence(actions) and number < self.newest:
            return
        if number in self.switched:
            # The checkpoint of a repaired log made this version; its file may follow late.
            self.versions[number].actions = actions
            self.switched.discard(number)
            return
        if effect.replaced:
            self.broken("versions are written once", f"version {number} was replaced by {effect.intent}")
        if number <= self.newest:
            self.strays.append((number, effect.intent))
            return
        if number > self.newest + 1:
            self.broken("versions are linear", f"version {number} follows {self.newest}: {effect.intent}")
        self._append(number, effect.at_ms, effect.intent, actions)

    def _append(
        self,
        number: int,
        at_ms: int,
        intent: Intent | None,
        actions: list[tuple[str, dict[str, Any]]],
        *,
        repaired: bool = False,
    ) -> None:
        before = self.versions.get(self.newest)
        live = set(before.live if before else ())
        removed = [body["path"] for kind, body in actions if kind == "remove"]
        hidden = dict(before.hidden if before else {})
        for path in removed:
            if path not in live:
                self.broken("a file is removed once", f"version {number} removes {path}, not live: {intent}")
            live.discard(path)
            hidden.pop(path, None)
        for body in (body for kind, body in actions if kind == "add"):
            path = body["path"]
            if path in live:
                self.broken("a file is added once", f"version {number} adds {path}, live already: {intent}")
            live.add(path)
            if rows := hidden_by(body):
                hidden[path] = rows
        info = next((body for kind, body in actions if kind == "commitInfo"), {})
        version = Version(
            number, at_ms, intent, info.get("operation", "CREATE"), frozenset(live),
            self.rows_of(live, hidden), actions, info.get("timestamp") or 0, hidden,
            next((body for kind, body in actions if kind == "metaData"), before.metadata if before else {}),
        )  # fmt: skip
        self.versions[number] = version
        if before is not None and not repaired:
            self._check_step(before, version)

    # What a version may do to the one before

    def _check_step(self, before: Version, after: Version) -> None:
        intent = after.intent
        keys = Counter(row if isinstance(row, str) else row[0] for row in after.rows.elements())
        doubled = sorted(key for key, times in keys.items() if times > 1)
        if doubled:
            self.broken("every row is there once", f"version {after.number} doubles {doubled[:3]}: {intent}")
        if after.timestamp and before.timestamp and after.timestamp <= before.timestamp:
            self.broken("commit times grow", f"version {after.number} is not later than {before.number}")
        for body in after.bodies("txn"):
            key = (body["appId"], body["version"])
            if any(
                (known["appId"], known["version"]) == key
                for version in self.versions.values()
                if version is not after
                for known in version.bodies("txn")
            ):
                self.broken(
                    "a transaction is written once", f"version {after.number} repeats {key}: {intent}"
                )
        self._check_definition(before, after)
        if intent is None or after.operation != intent.operation:
            if before.rows != after.rows:
                self.broken("upkeep changes no row", f"version {after.number}, {after.operation}")
            return
        reason = _wrong(self, intent, before, after)
        if reason:
            self.broken("a commit does what was asked", f"version {after.number} {reason}: {intent}")

    def _check_definition(self, before: Version, after: Version) -> None:
        """Properties change by what sets them, and every row has the columns of its version."""
        intent = after.intent
        if intent is not None and after.operation == intent.operation == "RESTORE":
            source = self.versions.get(intent.version or 0)
            expected = before.properties if source is None else source.properties
        elif intent is not None and after.operation == intent.operation == "SET PROPERTIES":
            merged = {**before.properties, **intent.properties}
            expected = {key: value for key, value in merged.items() if value is not None}
        else:
            expected = before.properties
        if before.metadata and _notes(after.properties, intent) != _notes(expected, intent):
            self.broken("properties are what was set last", f"version {after.number}: {intent}")
        columns = after.columns
        for row in after.rows:
            if not isinstance(row, str) and not _fits(row, columns):
                self.broken("every row fits the schema", f"version {after.number}, {row}: {intent}")
                return

    def _checkpointed(self, number: int, form: str, effect: Effect, files: Mapping[str, bytes]) -> None:
        version = self.versions.get(number)
        if version is None and number == self.newest + 1 and _is_closing(self.versions[self.newest]):
            self._switched(number, form, effect, files)
            return
        if version is None:
            self.broken(
                "a checkpoint follows its commit", f"a checkpoint of version {number}: {effect.intent}"
            )
            return
        assert effect.data is not None
        try:
            adds = checkpoint_of(effect.data, form, files.__getitem__)
        except KeyError:
            # A part is gone already: nobody can use this checkpoint, and the end shows that nobody has to.
            return
        live = adds.keys()
        if _hidden_in(adds) != version.hidden:
            self.broken("a checkpoint holds its version", f"that of {number} has other deleted rows")
        if live != version.live:
            self.broken(
                "a checkpoint holds its version",
                f"that of {number} lacks {sorted(version.live - live)[:3]}, "
                f"has {sorted(live - version.live)[:3]} too many: {effect.intent}",
            )
        metadata = checkpoint_head(effect.data, form)["metaData"]
        if version.metadata and any(
            metadata.get(key) != version.metadata.get(key)
            for key in ("id", "schemaString", "partitionColumns", "configuration")
        ):
            self.broken("a checkpoint holds its version", f"that of {number} has other metadata")

    def _switched(self, number: int, form: str, effect: Effect, files: Mapping[str, bytes]) -> None:
        """The checkpoint that puts a repaired log in the place of a closed one: no row is lost or gained."""
        assert effect.data is not None
        old = self.versions[self.newest]
        adds = checkpoint_of(effect.data, form, files.__getitem__)
        live, hidden = frozenset(adds), _hidden_in(adds)
        if live != old.live or hidden != old.hidden:
            self.broken("a repaired log has every row", f"version {number}: {effect.intent}")
        head = checkpoint_head(effect.data, form)
        self.versions[number] = Version(
            number, effect.at_ms, effect.intent, "REPAIR", live, self.rows_of(live, hidden), [], 0, hidden,
            head["metaData"],
        )  # fmt: skip
        self.switched.add(number)

    def _swapped(self, effect: Effect, files: dict[str, bytes]) -> None:
        """A repaired log took the place of the old one: numbers begin anew, rows stay."""
        old = self.versions.get(self.newest)
        for path in [path for path in files if path.startswith(f"{LOG_DIR}/")]:
            del files[path]
        target = effect.path
        for path, data in list(files.items()):
            if path.startswith(f"{target}/"):
                files[LOG_DIR + path[len(target) :]] = files.pop(path)
        self.epochs.append({})
        self.began_ms.append(effect.at_ms)
        numbers = sorted(int(match[1]) for path in files if (match := _COMMIT.fullmatch(path)))
        for number in numbers:
            actions = actions_of(files[f"{LOG_DIR}/{number:020d}.json"])
            self._append(number, effect.at_ms, None, actions, repaired=True)
        new = self.versions.get(self.newest)
        if old is not None and (new is None or new.rows != old.rows):
            self.broken("a repaired log has every row", f"{effect.intent}")

    # What actors were told

    def check_told(self, intents: Iterable[Intent]) -> None:
        """Hold every answer of a verb against the history."""
        landed: dict[int, list[Version]] = {}
        for epoch in self.epochs:
            for version in epoch.values():
                if version.intent is not None and version.operation == version.intent.operation:
                    landed.setdefault(version.intent.number, []).append(version)
        written = {
            (body["appId"], body["version"])
            for epoch in self.epochs
            for version in epoch.values()
            for body in version.bodies("txn")
        }
        closed_ms = min(
            (item.at_ms for epoch in self.epochs for item in epoch.values() if _is_closing(item)),
            default=None,
        )
        for intent in intents:
            beside: set[str] = set()
            if closed_ms is not None and intent.ended_ms >= closed_ms:
                beside |= _BESIDE_SWAP
            if intent.verb in _PLANS_BY_READING and any(
                intent.began_ms <= at_ms <= intent.ended_ms for at_ms in self.erased_ms
            ):
                beside.add("VersionNotFoundError")
            reason = _untrue(intent, landed.get(intent.number, []), written, beside)
            if reason:
                self.broken(*reason)

    def check_seen(self, observations: Iterable[Observation]) -> None:
        """Hold everything that readers were given against the history."""
        for seen in observations:
            reason = self._misread(seen)
            if reason:
                self.broken("readers see a version as it is", f"{reason}: {seen.intent}")

    def _misread(self, seen: Observation) -> str | None:
        intent = seen.intent
        first = intent.began_ms - seen.staleness_ms
        reasons = []
        for at, epoch in enumerate(self.epochs):
            ended = self.began_ms[at + 1] if at + 1 < len(self.epochs) else None
            if self.began_ms[at] > intent.ended_ms or (ended is not None and ended < first):
                continue
            if seen.version is None:
                oldest = max(0, _newest_at(epoch, first))
                if any(
                    _is_seen(version, seen) and version.number >= oldest and version.at_ms <= intent.ended_ms
                    for version in epoch.values()
                ):
                    return None
                reasons.append(f"no version from {oldest} on has {sorted(seen.paths)[:3]}")
                continue
            version = epoch.get(seen.version)
            if version is None:
                reasons.append(f"version {seen.version} never was")
            elif version.at_ms > intent.ended_ms:
                reasons.append(f"version {seen.version} came later")
            elif version.live != seen.paths:
                lacks, more = sorted(version.live - seen.paths)[:3], sorted(seen.paths - version.live)[:3]
                reasons.append(f"version {seen.version} without {lacks} and with {more}")
            elif not _is_seen(version, seen):
                reasons.append(f"version {seen.version} with the deleted rows {seen.hidden}")
            elif (reason := self._misanswered(seen, version)) is not None:
                reasons.append(reason)
            elif seen.as_of_ms is not None and not _is_as_of(epoch, version, seen.as_of_ms, first):
                reasons.append(f"version {seen.version} as of {seen.as_of_ms}")
            elif seen.newest and (newer := _newest_at(epoch, first)) > seen.version:
                reasons.append(f"version {seen.version} when {newer} was there")
            else:
                return None
        return reasons[-1] if reasons else None

    @staticmethod
    def _misanswered(seen: Observation, version: Version) -> str | None:
        question = seen.question
        if question is None or not version.metadata:
            return None
        truth = question.truth(version)
        if seen.answer == truth:
            return None
        return f"version {version.number}, {question.name}: {seen.answer} instead of {truth}"

    def check_found(self, answers: Iterable[Found], present: Collection[str]) -> None:
        """Hold what a log said about commits against the history."""
        if len(self.epochs) > 1:
            return
        became = {
            body.get("commitId"): version
            for version in self.versions.values()
            for body in version.bodies("commitInfo")
        }
        for answer in answers:
            version = became.get(answer.commit_id)
            number = None if version is None else version.number
            if answer.version == number:
                continue
            late = version is not None and version.at_ms >= answer.intent.began_ms
            gone = f"{LOG_DIR}/{number or 0:020d}.json" not in present
            if answer.version is not None or not (late or gone):
                self.broken("a commit is found", f"{answer.version} instead of {number}: {answer.intent}")

    def check_followed(self, streams: Iterable[Followed]) -> None:
        """Every follower was given each appended row once."""
        if len(self.epochs) > 1:
            return
        for stream in streams:
            last = stream.follower.version
            due = sum((self._appended(number) for number in range(stream.first + 1, last + 1)), Counter())
            given = Counter(stream.rows)
            lost, more = due - given, given - due
            if lost or more - self._appended(last + 1):
                self.broken(
                    "a follower is given every row once",
                    f"{stream.who} up to version {last}: lost {sorted(lost)[:3]}, more {sorted(more)[:3]}",
                )

    def _appended(self, number: int) -> Counter[Any]:
        """The rows that a version appends; none if it also takes some away."""
        version = self.versions.get(number)
        if version is None or any(body.get("dataChange", True) for body in version.bodies("remove")):
            return Counter()
        paths = (body["path"] for body in version.bodies("add") if body.get("dataChange", True))
        return self.rows_of(paths, version.hidden)

    def kept_for(self, retention_ms: int, now_ms: int) -> list[int]:
        """The versions that are too young for any cleanup, whatever its clock says."""
        return [
            number
            for number, version in self.versions.items()
            if now_ms - version.at_ms < retention_ms - _SKEW_MS
        ]

    def lost_splits(self, live: Iterable[str], present: Iterable[str]) -> list[str]:
        """The live files that are gone, but for those whose writer took longer than any writer may."""
        here = set(present)
        return [path for path in sorted(live) if path not in here and not self._waited_long(path)]

    def _waited_long(self, path: str) -> bool:
        """Whether the file was purged before its slow writer committed it."""
        written_ms = self.contents.get(path, (0, ()))[0]
        gone_ms = self.deleted_ms.get(path, 0)
        first = min(
            (
                version.at_ms
                for epoch in self.epochs
                for version in epoch.values()
                if any(body["path"] == path for body in version.bodies("add"))
            ),
            default=0,
        )
        return first - written_ms > _LONG_MS and gone_ms - written_ms > _LONG_MS


def _is_closing(version: Version) -> bool:
    """Whether a version closed the log for a repaired one."""
    return any("closed" in (body.get("writerFeatures") or ()) for body in version.bodies("protocol"))


def _is_fence(actions: Sequence[tuple[str, dict[str, Any]]]) -> bool:
    """Whether a file is all that is left of an old version: it keeps the number and tells nothing."""
    return all(kind == "commitInfo" and body.get("retired") for kind, body in actions)


def _notes(properties: Mapping[str, str], intent: Intent | None) -> dict[str, str]:
    """The properties that a commit has to leave alone: all, but that a new schema brings its own indexing."""
    renewed = intent is not None and intent.verb == "redefine"
    return {key: value for key, value in properties.items() if not renewed or ".indexing." not in key}


def _fits(row: Any, columns: Mapping[str, str]) -> bool:
    """Whether the one column that comes and goes has a value of its type."""
    kinds = {int: {"integer", "long"}, str: {"string"}}
    return row.x is None or columns.get("x") in kinds[type(row.x)]


def _is_as_of(epoch: Mapping[int, Version], version: Version, moment_ms: int, began_ms: int) -> bool:
    """Whether a version is the newest that is not later than a moment, as far as it could be known."""
    later = (other for other in epoch.values() if other.number > version.number and other.at_ms < began_ms)
    return version.timestamp <= moment_ms and all(other.timestamp > moment_ms for other in later)


def _newest_at(epoch: Mapping[int, Version], moment_ms: int) -> int:
    return max((version.number for version in epoch.values() if version.at_ms < moment_ms), default=-1)


def _untrue(
    intent: Intent, landed: Sequence[Version], txns: set[tuple[str, int]], beside: Collection[str]
) -> tuple[str, str] | None:
    """Why what an actor was told is not true; None when it is.

    `beside` names the errors that what others did meanwhile explains.
    """
    numbers = [version.number for version in landed]
    if len(numbers) > 1:
        return "a commit lands once", f"versions {numbers}: {intent}"
    if intent.outcome == ACKNOWLEDGED and intent.operation is not None:
        if not numbers:
            return "what is acknowledged is there", str(intent)
        if intent.returned != numbers[0]:
            return "a commit knows its version", f"it is {numbers[0]}: {intent}"
    if intent.outcome == NOTHING:
        if numbers:
            return "what did nothing wrote nothing", f"version {numbers[0]}: {intent}"
        if intent.txn is not None and intent.txn not in txns:
            return "a transaction is skipped only when it is there", str(intent)
    if intent.outcome == FAILED:
        if numbers:
            return "an error is true", f"version {numbers[0]} is there: {intent}"
        if type(intent.error).__name__ not in beside and not _excusable(intent):
            return "nothing fails without a cause", str(intent)
    if intent.outcome == UNKNOWN and not intent.doubtful:
        return "unknown is what could not be known", str(intent)
    assert intent.outcome in {ACKNOWLEDGED, NOTHING, FAILED, UNKNOWN, CRASHED}
    return None


def _excusable(intent: Intent) -> bool:
    """Whether a failure has a cause: a fault on the way, or a rule that the verb is known for."""
    slow = {"pause"} if intent.verb in _PLANS_BY_READING else set()
    if any(fault not in slow for fault, _, _ in intent.faults):
        return True
    allowed = {
        "restore": {"ConflictError", "VersionNotFoundError", "MissingSplitError"},
        "travel": {"VersionNotFoundError"},
        "follow": {"VersionNotFoundError", "TableError"},
        "reread": {"VersionNotFoundError"},
        "append": set(),
        "txn": set(),
        "read": set(),
        "look": {"VersionNotFoundError"} if intent.after_swap else set(),
        "checkpoint": set(),
        "cleanup": set(),
        "properties": set(),
        "grow": {"SchemaError", "ConflictError"},
        "as_of": {"VersionNotFoundError"},
        "find": {"VersionNotFoundError"},
    }.get(intent.verb, {"ConflictError"})
    return type(intent.error).__name__ in {*allowed, "AttemptsExhaustedError"}


def _is_seen(version: Version, seen: Observation) -> bool:
    """Whether a reader was given the files of a version, and the rows that are deleted in them."""
    return version.live == seen.paths and seen.hidden in (None, version.hidden)


def _hidden_in(adds: Mapping[str, Mapping[str, Any]]) -> dict[str, frozenset[int]]:
    return {path: rows for path, add in adds.items() if (rows := hidden_by(add))}


def _wrong(truth: Truth, intent: Intent, before: Version, after: Version) -> str | None:
    """What a commit did other than its verb promises; None when it is right."""
    mine = Counter(intent.rows)
    added = {body["path"] for body in after.bodies("add")}
    removed = {body["path"] for body in after.bodies("remove")}
    if any(before.hidden.get(path, frozenset()) & rows for path, rows in intent.marked.items()):
        return "deleted a row that another had deleted or changed meanwhile"
    if intent.effect is not None:
        return None if after.rows == intent.effect(before.rows) else "did not do what it says to the rows"
    if intent.verb in {"append", "txn", "grow"}:
        return None if after.rows == before.rows + mine and not removed else "did not just append"
    if intent.verb in {"overwrite", "redefine"}:
        if intent.version is not None and truth.versions[intent.version].rows != before.rows:
            return f"overwrote what came after version {intent.version}"
        return None if after.rows == mine else "left or lost rows"
    if intent.verb in {"overwrite_where", "overwrite_partitions"}:
        assert intent.matches is not None
        kept = Counter({row: times for row, times in before.rows.items() if not intent.matches(row)})
        return None if after.rows == kept + mine else "did not replace what matches"
    if intent.verb == "upsert":
        assert intent.matches is not None
        kept = Counter({row: times for row, times in before.rows.items() if not intent.matches(row)})
        return None if after.rows == kept + mine else "left two rows with one key, or lost others"
    if intent.verb == "remove":
        return None if removed == set(intent.sources) and not added else "did not just remove its files"
    if intent.verb in {"delete", "delete_query", "drop_partitions"}:
        return _wrong_delete(truth, intent, before, after)
    if intent.verb == "update":
        return _wrong_update(truth, intent, before, after)
    if intent.verb == "restore":
        assert intent.version is not None
        wanted = truth.versions.get(intent.version)
        same = wanted is not None and (after.live, after.hidden) == (wanted.live, wanted.hidden)
        return None if same else "is not the version to restore"
    if after.rows != before.rows:
        lost, more = before.rows - after.rows, after.rows - before.rows
        return f"lost {sorted(lost)[:3]} and gained {sorted(more)[:3]}"
    return None


def _wrong_delete(truth: Truth, intent: Intent, before: Version, after: Version) -> str | None:
    assert intent.matches is not None
    if after.rows - before.rows:
        return "brought rows back"
    gone = before.rows - after.rows
    if not all(intent.matches(row) for row in gone):
        return "deleted rows that do not match"
    at_begin = _newest_at(truth.versions, intent.began_ms)
    known = truth.versions[at_begin].rows if at_begin >= 0 else Counter()
    left = [row for row in after.rows if intent.matches(row) and row in known]
    return f"left matching rows {left[:3]}" if left else None


def _wrong_update(truth: Truth, intent: Intent, before: Version, after: Version) -> str | None:
    assert intent.matches is not None
    assert intent.change is not None
    at_begin = _newest_at(truth.versions, intent.began_ms)
    known = truth.versions[at_begin].rows if at_begin >= 0 else Counter()
    now = {row.id: row for row in after.rows}
    if now.keys() != {row.id for row in before.rows}:
        return "lost or gained rows"
    for row in before.rows:
        changed = intent.change(row) if intent.matches(row) else row
        if now[row.id] != changed and (now[row.id] != row or row in known):
            return f"made {now[row.id]} of {row}"
    return None
