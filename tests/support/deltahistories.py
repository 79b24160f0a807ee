"""Random Delta histories: adds, removes, re-adds, deletion vectors, checkpoints of every kind anywhere."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from support.deltatables import KINDS, DeltaLog, add, remove, schema_string, vector

SCHEMA = schema_string(p="integer", id="long", name="string")
PARSED = pa.struct(
    [
        ("numRecords", pa.int64()),
        ("minValues", pa.struct([("id", pa.int64()), ("name", pa.string())])),
        ("maxValues", pa.struct([("id", pa.int64()), ("name", pa.string())])),
        ("nullCount", pa.struct([("id", pa.int64()), ("name", pa.int64())])),
    ]
)
PREDICATES = (
    None, "id > 50", "id = 7", "p = 1", "p IS NULL", "p = 1 AND id < 30", "p = 2 OR name LIKE 'n1%'",
    "name IS NULL", "id IN (3, 40, 77)", "NOT (id > 20)",
)  # fmt: skip


def random_log(store: Any, rng: random.Random, commits: int) -> DeltaLog:
    """A log of some commits; its `live` is what the protocol says is live."""
    log = DeltaLog(store, SCHEMA, ("p",))
    for _ in range(commits):
        log.commit(*_actions(log, rng))
        if rng.random() < 0.25:
            typed = rng.random() < 0.5
            log.checkpoint(
                rng.choice(KINDS),
                parsed=PARSED if typed else None,
                text=not typed or rng.random() < 0.5,
                hint=rng.random() < 0.7,
            )
            if rng.random() < 0.5:
                log.drop_commits(log.version)
    return log


def _actions(log: DeltaLog, rng: random.Random) -> list[dict[str, Any]]:
    actions = []
    touched: set[Any] = set()
    for _ in range(rng.randint(1, 5)):
        # Few names, so that files come back; some need escaping.
        path = rng.choice(["a", "b c", "d%20e", "p=1/é", "+f", "g"]) + str(rng.randint(0, 4))
        dv = rng.choice([None, None, vector(1), vector(1, offset=35), vector(2, offset=None)])
        known = [key for key in log.live if key not in touched]
        if known and rng.random() < 0.4:
            old = rng.choice(known)
            touched.add(old)
            actions.append({"remove": {**remove(old[0])["remove"], **_vector_of(log.live[old])}})
            if rng.random() < 0.5:
                actions.append(_add(old[0], dv, rng))
        elif rng.random() < 0.1:
            actions.append(remove(path, dv=dv))
        else:
            actions.append(_add(path, dv, rng))
    return actions


def _vector_of(body: dict[str, Any]) -> dict[str, Any]:
    return {"deletionVector": body["deletionVector"]} if body.get("deletionVector") else {}


def _add(path: str, dv: dict[str, Any] | None, rng: random.Random) -> dict[str, Any]:
    low = rng.randint(0, 90)
    stats = {
        "numRecords": 10,
        "minValues": {"id": low, "name": f"n{low}"},
        "maxValues": {"id": low + rng.randint(0, 10), "name": f"n{low}z"},
        "nullCount": {"id": rng.choice([0, 1]), "name": rng.choice([0, 10])},
    }
    value = rng.choice(["1", "2", None, ""])
    body = add(path, stats=stats if rng.random() < 0.8 else None, dv=dv, partitionValues={"p": value})
    body["add"]["size"] = rng.randint(1, 1000)
    return body


def keys_of(files: pa.Table) -> list[tuple[str, str | None, int]]:
    """Path, deletion vector and size of every file, sorted."""
    columns = [files.column(name).to_pylist() for name in ("path", "dv", "size")]
    return sorted(zip(*columns, strict=True), key=str)


def live_of(log: DeltaLog, version: int | None = None) -> list[tuple[str, str | None, int]]:
    """The same from the log's own bookkeeping."""
    live = log.live if version is None else log.history[version]
    return sorted(((path, dv, body["size"]) for (path, dv), body in live.items()), key=str)
