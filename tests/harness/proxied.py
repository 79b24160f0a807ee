"""Writers behind a network that misbehaves: `python -m harness.proxied --seeds 0:50`, from `tests`.

Requests to a real object store server pass a proxy that refuses some of them,
loses their answers after the server has acted, cuts answers in half or carries
requests out twice. What a verb says afterwards must be true: what it
acknowledged is there once, what it reported as failed is not there, and what it
called unknown is there as a whole or not at all.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import indextables as it
from harness.verbs import OPTIONS, SCHEMA, rows
from support.commit import current_commit
from support.servers import ObjectServer, azure_running, lossy_proxy, s3_running

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "reliability"
FAULTS = ("request", "reply", "reset", "truncated", "duplicate", "500", "503")
STEPS = 8
_ODDS = 0.12


@dataclass
class Tally:
    """What many runs came to."""

    runs: int = 0
    requests: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    failed: int = 0
    unknown: int = 0
    broken: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The figures, for a result file."""
        return {**vars(self), "faults": dict(sorted(self.faults.items()))}


class Weather:
    """The faults of one seed: which request meets which."""

    def __init__(self, seed: int, tally: Tally) -> None:
        self._dice = random.Random(f"weather {seed}")
        self._tally = tally
        self.fair = True

    def __call__(self, _method: str, _path: str) -> str | None:
        self._tally.requests += 1
        if self.fair or self._dice.random() >= _ODDS:
            return None
        fault = self._dice.choice(FAULTS)
        self._tally.faults[fault] += 1
        return fault


def run_seed(server: ObjectServer, seed: int, tally: Tally) -> None:
    """One table, some steps in bad weather, then a look from behind the proxy."""
    root = f"{server.root}/{uuid.uuid4().hex}"
    weather = Weather(seed, tally)
    certain: Counter[str] = Counter()
    possible: list[Counter[str]] = []
    dice = random.Random(seed)
    with lossy_proxy(server.endpoint.removesuffix("/devstoreaccount1"), weather) as proxy:
        far = {**OPTIONS, **server.through(proxy).options}
        it.Table.create(root, SCHEMA, ["day"], options=far)
        weather.fair = False
        for step in range(STEPS):
            new = rows(f"s{seed}", step)
            ids = Counter(new["id"].to_pylist())
            verb = dice.choice(("append", "append", "append", "merge", "checkpoint", "purge"))
            try:
                table = it.Table.open(root, options=far)
                if verb == "append":
                    table.append(new)
                    certain += ids
                elif verb == "merge":
                    table.merge_splits()
                elif verb == "checkpoint":
                    table.checkpoint()
                else:
                    table.purge()
                tally.acknowledged += 1
            except it.Error as error:
                if error.fields.get("outcome") == "unknown":
                    tally.unknown += 1
                    possible += [ids] if verb == "append" else []
                else:
                    tally.failed += 1
    _look(server, root, certain, possible)


def _look(server: ObjectServer, root: str, certain: Counter[str], possible: list[Counter[str]]) -> None:
    near = {**OPTIONS, **server.options}
    table = it.Table.open(root, options=near)
    found = Counter(table.scan(columns=["id"]).read_all()["id"].to_pylist())
    wanted = certain.copy()
    for batch in possible:
        if batch <= found:
            wanted += batch
    if found != wanted:
        missing, extra = sorted((wanted - found).elements()), sorted((found - wanted).elements())
        raise AssertionError(f"acknowledged and gone: {missing[:6]}; there and denied: {extra[:6]}")
    broken = [item for item in it.check(root, near).findings if item.severity == "BROKEN"]
    assert not broken, broken
    versions = it.TransactionLog.open(root, near).versions()
    for version in versions:
        it.Table.open(root, version=version, options=near).count("id IS NOT NULL")
    table.append(rows("after", 0))


def run_proxied(server: ObjectServer, seeds: range) -> Tally:
    """Run a range of seeds; what broke is in the tally."""
    tally = Tally()
    began = time.monotonic()
    for seed in seeds:
        tally.runs += 1
        try:
            run_seed(server, seed, tally)
        except (AssertionError, it.Error) as broken:
            tally.broken[str(seed)] = f"{type(broken).__name__}: {broken}"
    tally.seconds = round(time.monotonic() - began, 1)
    return tally


def main() -> None:
    """Run seeds on S3 and Azure servers and print what came of them; --keep writes the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:20", help="first:end, or one seed")
    parser.add_argument("--stores", default="s3,azure")
    parser.add_argument("--keep", action="store_true", help=f"write {RESULTS}/proxied.json")
    arguments = parser.parse_args()
    first, _, end = arguments.seeds.partition(":")
    seeds = range(int(first), int(end or int(first) + 1))
    figures = {}
    for name in arguments.stores.split(","):
        with (s3_running if name == "s3" else azure_running)() as server:
            figures[name] = run_proxied(server, seeds).to_json()
    print(json.dumps(figures, indent=2))
    if arguments.keep:
        kept = {"commit": current_commit(), "stores": figures}
        (RESULTS / "proxied.json").write_text(json.dumps(kept, indent=2) + "\n")
    raise SystemExit(1 if any(found["broken"] for found in figures.values()) else 0)


if __name__ == "__main__":
    main()
