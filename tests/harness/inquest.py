"""What the dead left behind: the content of a table by two readers, and whether life goes on.

One reader is the production one. The other shares no code with it: it unpacks
the version files by hand, replays them from version 0 and reads the splits with
pyarrow.
"""

from __future__ import annotations

import gzip
import json
import uuid
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import indextables as it
from harness.verbs import OPTIONS, Content, rows
from simulation.oracle import hidden_by, of_z85, rows_of_bitmap


class Finding(Exception):
    """A promise that was broken."""


def read(root: Path, version: int | None = None) -> Content:
    """The ids in a table by the production reader."""
    table = it.Table.open(str(root), version=version)
    return Counter(table.scan(columns=["id"]).read_all()["id"].to_pylist())


def read_raw(root: Path) -> Content | None:
    """The ids in a table by hand; None where the log no longer begins with version 0."""
    log = root / "_transaction_log"
    if any(".floor" in file.name for file in log.iterdir()):
        return None  # history was erased: version files below the floor hold their number and nothing else
    files = sorted(file for file in log.iterdir() if len(file.name) == len("0" * 20 + ".json"))
    if not files or int(files[0].stem) != 0:
        return None
    if [int(file.stem) for file in files] != list(range(len(files))):
        raise Finding(f"the version files have a gap: {[file.name for file in files]}")
    live: dict[str, dict[str, Any]] = {}
    for file in files:
        for line in _unpacked(file.read_bytes()).splitlines():
            action: dict[str, Any] = json.loads(line)
            if "add" in action:
                live[action["add"]["path"]] = action["add"]
            elif "remove" in action:
                live.pop(action["remove"]["path"], None)
    found: Content = Counter()
    for path, add in live.items():
        ids = pq.read_table(root / path, columns=["id"], partitioning=None)["id"].to_pylist()
        hidden = _hidden(root, add)
        found.update(name for number, name in enumerate(ids) if number not in hidden)
    return found


def _hidden(root: Path, add: Mapping[str, Any]) -> frozenset[int]:
    """The rows that the deletion vector of an add names, in the log or in a file."""
    vector = add.get("deletionVector")
    if vector is None or vector["storageType"] == "i":
        return hidden_by(add)
    name = uuid.UUID(bytes=of_z85(vector["pathOrInlineDv"][-20:]))
    data = (root / f"deletion_vector_{name}.bin").read_bytes()[vector.get("offset", 0) :]
    size = int.from_bytes(data[:4], "big")
    assert size == vector["sizeInBytes"], vector
    return rows_of_bitmap(data[4 : 4 + size])


def _unpacked(data: bytes) -> bytes:
    return gzip.decompress(data[2:]) if data[:2] == b"\x01\x01" else data


def require_one_of(root: Path, allowed: list[Content]) -> Content:
    """The content of the table, which both readers see alike and which must be one that is allowed."""
    found = read(root)
    by_hand = read_raw(root)
    if by_hand is not None and by_hand != found:
        raise Finding(f"two readers disagree: {_difference(by_hand, found)}")
    if found not in allowed:
        wrong = [_difference(wanted, found) for wanted in allowed]
        raise Finding(f"the content is none of those that are possible: {wrong}")
    return found


def _difference(wanted: Content, found: Content) -> str:
    return f"lacks {sorted((wanted - found).elements())[:6]}, has too much {sorted((found - wanted).elements())[:6]}"


def require_history(root: Path) -> int:
    """Every version that is offered opens and its rows can be read; how many there are."""
    versions = it.TransactionLog.open(str(root)).versions()
    for version in versions:
        try:
            read(root, version)
        except it.Error as error:
            raise Finding(f"version {version} is offered and cannot be read: {error}") from error
    return len(versions)


def require_life(root: Path, content: Content) -> None:
    """Somebody else writes, merges, checkpoints and purges; then nothing is left of the dead."""
    table = it.Table.open(str(root), options=OPTIONS)
    new = rows("survivor", 0)
    table.append(new)
    table.merge_splits()
    table.checkpoint()
    table.purge(older_than_hours=0)
    wanted = content + Counter(new["id"].to_pylist())
    require_one_of(root, [wanted])
    broken = it.check(str(root), {"repair.validateSplits": "deep"})
    worse = [found for found in broken.findings if found.severity != "NOTE"]
    if worse:
        raise Finding(f"CHECK finds {worse[:3]}")
    left = [str(file.relative_to(root)) for file in root.rglob("*.tmp")]
    # A directory that a repair was killed in is no part of the table.
    left = [name for name in left if not name.startswith(("_repaired", "_again"))]
    if left:
        raise Finding(f"PURGE leaves temporaries of the dead behind: {left[:3]}")


def require_repairs(root: Path, least: Content, most: Content) -> None:
    """A target of a killed repair is no log at all, or that of a version the table had meanwhile."""
    for target in root.glob("_repaired-*"):
        try:
            result = it.repair_log(str(target), str(root / f"_again{target.name}"))
        except it.Error as error:
            raise Finding(f"a repaired log cannot be looked at: {error}") from error
        if result.status != "SUCCESS":
            continue
        log_dir = root / "_transaction_log"
        log_dir.rename(root / "_kept")
        target.rename(log_dir)
        found = read(root)
        if not least <= found <= most:
            raise Finding(f"{target.name} looks whole and is not: {_difference(least, found)}")
        log_dir.rename(target)
        (root / "_kept").rename(log_dir)
