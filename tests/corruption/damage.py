"""Kinds of damage to one file of a table: what disks, copies and careless hands do."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

LOG = "_transaction_log/"
KINDS = ("flip", "truncate", "zero", "sibling", "foreign", "duplicate", "delete")
_NAMES = (
    ("version 0", re.compile(r"_transaction_log/0{20}\.json")),
    ("version", re.compile(r"_transaction_log/[0-9]{20}\.json")),
    ("checkpoint", re.compile(r"_transaction_log/[0-9]{20}\.checkpoint\.(json|parquet)")),
    ("part", re.compile(r"_transaction_log/[0-9]{20}\.checkpoint\..+of.+")),
    ("hint", re.compile(r"_transaction_log/_last_checkpoint")),
    ("split", re.compile(r".+\.split")),
    ("vectors", re.compile(r"deletion_vector_.+\.bin")),
)


@dataclass(frozen=True)
class Damage:
    """What was done to which file."""

    kind: str
    path: str
    what: str
    """In words, with the place or the other file."""

    @property
    def file_kind(self) -> str:
        """What kind of file it was done to."""
        return kind_of(self.path)


def kind_of(path: str) -> str:
    """The kind of a file by its name."""
    return next((name for name, pattern in _NAMES if pattern.fullmatch(path)), "other")


def inflict(
    files: Mapping[str, bytes], other: Mapping[str, bytes], chance: random.Random
) -> tuple[dict[str, bytes], Damage]:
    """Damage one file; every kind of file is as likely as any other, however many there are of it."""
    by_kind: dict[str, list[str]] = {}
    for path in sorted(files):
        by_kind.setdefault(kind_of(path), []).append(path)
    path = chance.choice(by_kind[chance.choice(sorted(by_kind))])
    kind = chance.choice(KINDS)
    changed = dict(files)
    data = files[path]
    match kind:
        case "flip":
            at, bit = chance.randrange(len(data)), chance.randrange(8)
            changed[path] = data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
            what = f"bit {bit} of byte {at} of {len(data)}"
        case "truncate":
            # Ends of lines are where a cut is hardest to see.
            ends = [at + 1 for at, byte in enumerate(data[:-1]) if byte == ord("\n")]
            at = chance.choice([0, chance.randrange(len(data)), *ends[-3:]])
            changed[path] = data[:at]
            what = f"cut to {at} of {len(data)} bytes"
        case "zero":
            # Not from a zero on: that may be all that is left of the file, and nothing would change.
            at = chance.choice([0, chance.choice([place for place, byte in enumerate(data) if byte])])
            length = chance.choice([len(data) - at, min(512, len(data) - at)])
            changed[path] = data[:at] + bytes(length) + data[at + length :]
            what = f"zeros for {length} bytes from {at} of {len(data)}"
        case "sibling":
            siblings = [item for item in by_kind[kind_of(path)] if item != path] or [path]
            twin = chance.choice(siblings)
            changed[path], changed[twin] = files[twin], files[path]
            what = f"swapped with {twin}"
        case "foreign":
            twins = [item for item in sorted(other) if kind_of(item) == kind_of(path)] or [path]
            twin = path if path in other else chance.choice(twins)
            changed[path] = other[twin] if twin in other else data
            what = f"replaced by {twin} of another table"
        case "duplicate":
            twin = chance.choice([item for item in by_kind[kind_of(path)] if item != path] or [path])
            name = chance.choice([twin, _next_name(files, path)])
            changed[name] = data
            what = f"copied to {name}"
        case _:
            del changed[path]
            what = "deleted"
    return changed, Damage(kind, path, what)


def _next_name(files: Mapping[str, bytes], path: str) -> str:
    """A name of the same kind that nobody has: the version after the last one, or a split of another name."""
    if kind_of(path) in {"version", "version 0", "checkpoint"}:
        last = max(int(item[len(LOG) : len(LOG) + 20]) for item in files if kind_of(item) == "version")
        return f"{LOG}{last + 1:020d}{path[len(LOG) + 20 :]}"
    return path.replace("part-", "part-copy-") if kind_of(path) == "split" else f"{path}.copy"
