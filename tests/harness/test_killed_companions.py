"""Processes that build, refresh or merge a companion are killed: every search still finds the rows of the source."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import indextables as it
from harness.nursery import Nursery
from indextables.storage.store import open_store
from support.companions import OPERATIONS, SINGLE, CraftedSource, bytes_of

KILLS = 20
_TOUCHES = {"build": 60, "refresh": 60, "merge": 40}
"""About how often an operation touches files of the companion."""
_LONGEST_S = 0.2
WORDS = ("disk", "node", "timeout", "x3")


def work(job: dict[str, Any]) -> None:
    """What a child does until it is killed: an operation of several commits."""
    from indextables.companion import refresh

    refresh.SPLITS_PER_COMMIT = 2
    OPERATIONS[job["verb"]](it.TransactionLog.open(job["root"], SINGLE), job["source"])


def found(table: it.Table) -> dict[str, list[int]]:
    """The ids of each word, by the index and by reading every row, which are the same."""
    by_index = {}
    for word in WORDS:
        ids = table.search(f"msg:{word}", columns=["id"]).read_all().column("id").to_pylist()
        assert table.count(query=f"msg:{word}") == len(ids), word
        by_index[word] = sorted(ids)
    assert by_index == words_of(table.scan().read_all().to_pylist())
    return by_index


def words_of(rows: list[dict[str, Any]]) -> dict[str, list[int]]:
    """The same by plain Python."""
    return {word: sorted(row["id"] for row in rows if word in (row["msg"] or "").split()) for word in WORDS}


@pytest.mark.long
@pytest.mark.sample
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_companion_answers_whenever_its_maker_is_killed(
    tmp_path: Path, operation: str, record_property: Callable[[str, object], None]
) -> None:
    dice = random.Random(f"killed {operation}")
    place, template = str(tmp_path / "source"), str(tmp_path / "index")
    source = CraftedSource.make(open_store(place), random.Random(7))
    source.append(4)
    if operation != "build":
        OPERATIONS["build"](it.TransactionLog.open(template, SINGLE), place)
    source.delete_rows()
    source.append(4)
    source.drop_file()
    if operation == "merge":
        OPERATIONS["refresh"](it.TransactionLog.open(template, SINGLE), place)
        source.append(1)
    before, expected = bytes_of(place), words_of(source.rows().to_pylist())
    killed = answered = 0
    with Nursery() as nursery:
        for number in range(KILLS):
            root = tmp_path / f"index{number}"
            if operation != "build":
                shutil.copytree(template, root)
            counted = dice.random() < 0.7
            job = {
                "work": "harness.test_killed_companions:work", "verb": operation, "root": str(root),
                "source": place, "notes": str(tmp_path / f"{number}.notes"),
                "kill_at": dice.randint(1, _TOUCHES[operation]) if counted else None,
                "kill_after_s": None if counted else dice.uniform(0.005, _LONGEST_S),
            }  # fmt: skip
            (status,) = nursery.run([job])
            assert status in (0, -9), Path(job["notes"]).read_text()
            killed += status != 0
            if it.Table.exists(root):
                assert found(it.Table.open(root)) == expected, (number, job)
                answered += status != 0
            # Whoever comes next finishes it.
            log = it.TransactionLog.open(root, SINGLE)
            OPERATIONS[operation](log, place)
            assert found(it.Table.open(root)) == expected, (number, job)
            assert it.companion(place, str(root)).status().files_stale == (operation == "merge")
            shutil.rmtree(root)
    record_property("killed", killed)
    assert killed >= KILLS // 4
    assert answered >= KILLS // 10
    assert bytes_of(place) == before
