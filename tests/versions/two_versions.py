"""Two releases at one table: `python -m versions.two_versions --seeds 0:20`, from the directory `tests`.

`--until 100` goes on where the last run ended and keeps the figures.

The release before this one and this tree take turns at one table, each in a process that keeps its handle open.
A seed decides who does what. After every verb both are asked the same questions, and both must give the answers
of a dictionary of rows. While this tree holds the log closed, which is a protocol that the earlier release does
not know, that release must refuse to write and go on reading every row.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeAlias

import indextables as it
from support.earlier import WHY_SKIPPED, unpack_release
from support.seeded import run_from_command_line

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "reliability" / "two-versions.json"
EARLIER = "0.2.0"
STEPS = 20
DAYS = ("mon", "tue", "wed")
WORDS = ("red", "green", "blue", "amber")

Row: TypeAlias = tuple[int, str, int, str]
Rows: TypeAlias = dict[int, Row]


class Finding(Exception):
    """Something that a release did and must not do."""


class Remote:
    """A release in a process of its own."""

    def __init__(self, src: Path, root: Path) -> None:
        command = [sys.executable, str(Path(__file__).with_name("peer.py")), str(root)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "PYTHONPATH": str(src)},
        )  # fmt: skip
        self.version = json.loads(self._line())

    def ask(self, *request: Any) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._line())
        return answer

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Finding(f"the process ended with {self._process.wait()}")
        return line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


@dataclass
class Tally:
    """What many turns came to."""

    runs: int = 0
    """Seeds that were run, from 0 on."""
    verbs: Counter[str] = field(default_factory=Counter)
    answers: int = 0
    """Times that a release was asked everything, and compared."""
    refused: int = 0
    """Writes of the earlier release to a closed log, which it must refuse."""
    broken: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    commit: str = ""

    def to_json(self) -> dict[str, Any]:
        """The figures, for a result file."""
        return {**vars(self), "verbs": dict(sorted(self.verbs.items()))}

    @classmethod
    def of_json(cls, figures: dict[str, Any]) -> Tally:
        """Read a result file."""
        return cls(**{**figures, "verbs": Counter(figures["verbs"])})


class Turns:
    """One table, two releases, and what the rows have to be."""

    def __init__(self, seed: int, root: Path, peers: dict[str, Remote], tally: Tally) -> None:
        self.chance = random.Random(f"turns {seed}")
        self.root, self.peers, self.tally = root, peers, tally
        self.rows: Rows = {}
        self.versions: dict[int, Rows] = {}
        self.version = -1
        self.ids = itertools.count(1)
        self.batches = itertools.count(1)
        self.trace: list[str] = []

    def run(self) -> None:
        """Take every turn, and compare after each."""
        self.create()
        for _ in range(STEPS):
            self.take(self.chance.choice(VERBS))

    def create(self) -> None:
        """Make the table."""
        chance = self.chance
        options = {
            "indexing.typemap.text": "text",
            "checkpoint.interval": str(chance.choice((2, 4, 10))),
            "checkpoint.format": chance.choice(("auto", "json", "parquet")),
            "transaction.compression.enabled": chance.choice(("true", "false")),
            "indexFilters.enabled": chance.choice(("true", "false")),
            "purge.retentionCheckEnabled": "false",
        }
        # The earlier release knows the first rules of words only, and has no name for them. It reads no table
        # with a deletion vector; one that it has made itself never gets any.
        first = {"indexing.tokenizer.text": "default@1", "deletionVectors.enabled": "false"}
        self._turn(
            "create",
            lambda peer: peer.ask(
                "create",
                chance.random() < 0.5,  # noqa: S311
                options if peer is self.peers.get("earlier") else options | first,
            ),
            dict,
        )

    def take(self, verb: str) -> None:
        """Take one turn, and compare."""
        getattr(self, f"_{verb}")()
        self._compare()

    # Turns

    def _turn(
        self, verb: str, call: Callable[[Remote], dict[str, Any]], effect: Callable[[], Rows] | None = None
    ) -> None:
        """One of the two does something; the rows become what `effect` says, or stay as they are."""
        who = self.chance.choice(sorted(self.peers))
        before = self.version
        told = call(self.peers[who])
        self.trace.append(f"{who} {verb} -> {json.dumps(told)[:200]}")
        self.tally.verbs[f"{verb} by {who}"] += 1
        if "error" in told:
            raise Finding(f"{who} could not {verb}")
        if effect is not None:
            self.rows = effect()
        self.version = told["answer"]
        if self.version < before:
            raise Finding(f"{who} is at version {self.version} after {verb}, and {before} was there")
        self.versions.setdefault(self.version, dict(self.rows))

    def _new_rows(self, count: int) -> list[Row]:
        return [self._draw_row(next(self.ids)) for _ in range(count)]

    def _draw_row(self, key: int) -> Row:
        chance = self.chance
        text = " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 4)))
        return key, chance.choice(DAYS), chance.randint(0, 9), text

    def _draw_condition(self) -> tuple[str, Callable[[Row], bool]]:
        number, day, word = self.chance.randint(0, 9), self.chance.choice(DAYS), self.chance.choice(WORDS)
        kinds: list[tuple[str, Callable[[Row], bool]]] = [
            (f"n >= {number}", lambda row: row[2] >= number),
            (f"day = '{day}'", lambda row: row[1] == day),
            (f"day <> '{day}' AND n < {number}", lambda row: row[1] != day and row[2] < number),
            (f"text LIKE '%{word[1:]}%'", lambda row: word[1:] in row[3]),
            (f"id IN ({number}, {number + 1}, {number + 2})", lambda row: number <= row[0] <= number + 2),
        ]
        return self.chance.choice(kinds)

    def _append(self) -> None:
        rows = self._new_rows(self.chance.randint(1, 4))
        self._turn("append", lambda peer: peer.ask("append", rows), lambda: self.rows | _keyed(rows))

    def _grow(self) -> None:
        rows = self._new_rows(1)
        self._turn("grow", lambda peer: peer.ask("grow", rows), lambda: self.rows | _keyed(rows))

    def _batch(self) -> None:
        """A batch that both send: the second finds it there."""
        rows, number = self._new_rows(2), next(self.batches)
        for _ in range(2):
            self._turn(
                "batch", lambda peer: peer.ask("batch", rows, number), lambda: self.rows | _keyed(rows)
            )

    def _overwrite(self) -> None:
        rows = self._new_rows(self.chance.randint(1, 4))
        self._turn("overwrite", lambda peer: peer.ask("overwrite", rows, None), lambda: _keyed(rows))

    def _overwrite_where(self) -> None:
        day = self.chance.choice(DAYS)
        rows = [(key, day, n, text) for key, _, n, text in self._new_rows(2)]
        self._turn(
            "overwrite where",
            lambda peer: peer.ask("overwrite", rows, f"day = '{day}'"),
            lambda: self._without(lambda row: row[1] == day) | _keyed(rows),
        )

    def _delete(self) -> None:
        where, matches = self._draw_condition()
        self._turn("delete", lambda peer: peer.ask("delete", where, None), lambda: self._without(matches))

    def _delete_query(self) -> None:
        word = self.chance.choice(WORDS)
        self._turn(
            "delete by query",
            lambda peer: peer.ask("delete", None, word),
            lambda: self._without(lambda row: word in row[3].split()),
        )

    def _update(self) -> None:
        (where, matches), number = self._draw_condition(), self.chance.randint(0, 9)
        text = self.chance.choice(WORDS)
        self._turn(
            "update",
            lambda peer: peer.ask("update", where, {"n": number, "text": text}),
            lambda: {
                key: (key, row[1], number, text) if matches(row) else row for key, row in self.rows.items()
            },
        )

    def _merge(self) -> None:
        keys = self.chance.sample(sorted(self.rows), min(2, len(self.rows)))
        rows = [*(self._draw_row(key) for key in keys), *self._new_rows(1)]
        self._turn("merge", lambda peer: peer.ask("merge", rows, "update"), lambda: self.rows | _keyed(rows))

    def _merge_delete(self) -> None:
        keys = self.chance.sample(sorted(self.rows), min(2, len(self.rows)))
        rows = [*(self._draw_row(key) for key in keys), *self._new_rows(1)]
        rest = {key: row for key, row in self.rows.items() if key not in keys}
        self._turn(
            "merge that deletes",
            lambda peer: peer.ask("merge", rows, "delete"),
            lambda: rest | {rows[-1][0]: rows[-1]},
        )

    def _restore(self) -> None:
        version = self.chance.choice(sorted(self.versions))
        self._turn("restore", lambda peer: peer.ask("restore", version), lambda: dict(self.versions[version]))

    def _properties(self) -> None:
        self._turn("properties", lambda peer: peer.ask("properties", {"note": str(self.chance.random())}))

    def _upkeep(self) -> None:
        verb = self.chance.choice(("merge_splits", "checkpoint", "purge", "reopen"))
        self._turn(verb, lambda peer: peer.ask(verb))

    def _truncate(self) -> None:
        self._turn("truncate", lambda peer: peer.ask("truncate"))
        self.versions = {self.version: dict(self.rows)}

    def _close(self) -> None:
        """This tree closes the log; 0.2.0 must refuse to write and read on. Then another log takes its place."""
        from versions.closing import close_log, finish_swap

        close_log(self.root)
        earlier = self.peers["earlier"]
        for request in (["append", self._new_rows(1)], ["delete", "n >= 0", None], ["merge_splits"]):
            told = earlier.ask(*request)
            self.trace.append(f"earlier {request[0]} while closed -> {json.dumps(told)[:300]}")
            if request[0] == "merge_splits" and "answer" in told:
                continue
            if told.get("error") != "ProtocolError" or "closed" not in told["message"]:
                raise Finding("0.2.0 did not refuse to write to a closed log")
            self.tally.refused += 1
        where, matches = self._draw_condition()
        told = earlier.ask("ask", where, WORDS[0], max(self.versions))
        if told.get("answer", {}).get("rows") != _listed(self.rows):
            raise Finding(f"0.2.0 reads other rows of a closed log: {json.dumps(told)[:500]}")
        finish_swap(self.root)
        self.trace.append("this tree put another log in place")
        self.tally.verbs["swap by this"] += 1
        for peer in self.peers.values():
            peer.ask("reopen")
        self.version = it.Table.open(str(self.root)).version
        self.versions = {self.version: dict(self.rows)}

    def _without(self, matches: Callable[[Row], bool]) -> Rows:
        return {key: row for key, row in self.rows.items() if not matches(row)}

    # Looking

    def _compare(self) -> None:
        where, matches = self._draw_condition()
        word = self.chance.choice(WORDS)
        old = self.chance.choice(sorted(self.versions))
        expected: dict[str, Any] = {
            "rows": _listed(self.rows),
            "where": _listed(self.rows, matches),
            "count": sum(map(matches, self.rows.values())),
            "search": _listed(self.rows, lambda row: word in row[3].split()),
            "found": sum(word in row[3].split() for row in self.rows.values()),
            "days": sorted(
                [day, len(numbers), sum(numbers)]
                for day in DAYS
                if (numbers := [row[2] for row in self.rows.values() if row[1] == day])
            ),
            "old": _listed(self.versions[old]),
        }
        versions = set()
        for who, peer in self.peers.items():
            told = peer.ask("ask", where, word, old)
            self.tally.answers += 1
            if "error" in told:
                raise Finding(f"{who} could not read {where}, {word}, version {old}: {told}")
            answer = told["answer"]
            wrong = [name for name, truth in expected.items() if answer[name] != truth]
            if wrong:
                name = wrong[0]
                raise Finding(f"{who}, {name} ({where}, {word}, {old}): {answer[name]}, not {expected[name]}")
            versions.add(answer["version"])
        if len(versions) != 1 or min(versions) < self.version:
            raise Finding(f"the newest version is {versions}, and {self.version} was written")
        self.version = versions.pop()
        self.versions.setdefault(self.version, dict(self.rows))


VERBS = (
    "append", "append", "grow", "batch", "overwrite", "overwrite_where", "delete", "delete_query", "update", "merge",
    "merge_delete", "restore", "properties", "upkeep", "upkeep", "truncate", "close",
)  # fmt: skip


def _keyed(rows: list[Row]) -> Rows:
    return {row[0]: row for row in rows}


def _listed(rows: Rows, matches: Callable[[Row], bool] = lambda _: True) -> list[list[Any]]:
    return sorted(list(row) for row in rows.values() if matches(row))


def run_seeds(seeds: range, src: Path, tally: Tally | None = None) -> Tally:
    """Run a range of seeds; what broke is in the tally."""
    tally = tally or Tally()
    began = time.monotonic()
    here = Path(it.__file__).parents[1]
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="versions-") as home:
            root = Path(home) / "t"
            with Remote(src, root) as earlier, Remote(here, root) as this:
                assert earlier.version == EARLIER
                turns = Turns(seed, root, {"earlier": earlier, "this": this}, tally)
                try:
                    turns.run()
                except Finding as found:
                    tally.broken[str(seed)] = "\n".join([*turns.trace, str(found)])
        tally.runs += 1
    tally.seconds = round(tally.seconds + time.monotonic() - began, 1)
    return tally


def main() -> None:
    """Run seeds and print what came of them."""
    with tempfile.TemporaryDirectory(prefix="earlier-") as home:
        src = unpack_release(EARLIER, Path(home))
        if src is None:
            raise SystemExit(WHY_SKIPPED)
        run_from_command_line(__doc__, RESULTS, Tally, lambda seeds, tally: run_seeds(seeds, src, tally))


if __name__ == "__main__":
    main()
