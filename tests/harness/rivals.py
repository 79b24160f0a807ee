"""The same treatment for others: `python -m harness.rivals`, from `tests`. Needs deltalake and lancedb.

Three workloads that every table format knows. Writers are killed while they
append; several processes append at once; and single files of a finished table
are damaged, after which a reader must see the truth or an error. Counted is what
is wrong afterwards: rows that were acknowledged and are gone, rows that are
there twice, and damaged tables that read as other rows without a word.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from support.commit import current_commit

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "reliability"
SCHEMA = pa.schema([("id", pa.string())])
KILLS, WRITERS, APPENDS = 20, 4, 10


@dataclass(frozen=True, slots=True)
class System:
    """A table format as the workloads see it."""

    create: Callable[[str], None]
    append: Callable[[str, pa.Table], None]
    read: Callable[[str], list[str]]
    version: Callable[[], str]


def _ours() -> System:
    import indextables as it

    options = {"transaction.retry.maxAttempts": "100", "transaction.retry.baseDelayMs": "5"}
    return System(
        lambda root: it.Table.create(root, SCHEMA) and None,
        lambda root, rows: it.Table.open(root, options=options).append(rows) and None,
        lambda root: it.Table.open(root).scan().read_all()["id"].to_pylist(),
        lambda: it.__version__,
    )


def _delta() -> System:
    import deltalake

    return System(
        lambda root: deltalake.DeltaTable.create(root, SCHEMA) and None,
        lambda root, rows: deltalake.write_deltalake(root, rows, mode="append"),
        lambda root: pa.table(deltalake.DeltaTable(root).to_pyarrow_table())["id"].to_pylist(),
        lambda: str(deltalake.__version__),
    )


def _lance() -> System:
    import lancedb

    def table(root: str) -> Any:
        return lancedb.connect(root).open_table("t")

    return System(
        lambda root: lancedb.connect(root).create_table("t", schema=SCHEMA) and None,
        lambda root, rows: table(root).add(rows) and None,
        lambda root: table(root).to_arrow()["id"].to_pylist(),
        lambda: str(lancedb.__version__),
    )


SYSTEMS: dict[str, Callable[[], System]] = {"IndexTables": _ours, "delta-rs": _delta, "Lance": _lance}


def batch(name: str, number: int) -> pa.Table:
    """Three rows that no other batch has."""
    return pa.table({"id": [f"{name}-{number}-{n}" for n in range(3)]}, SCHEMA)


def append_many(name: str, root: str, writer: str, count: int, notes: str) -> None:
    """What a process runs; it notes each batch before it is written and once more when it is acknowledged."""
    system = SYSTEMS[name]()
    for number in range(count):
        _note(notes, f"begun {number}")
        try:
            system.append(root, batch(writer, number))
        except Exception as error:  # noqa: BLE001 - each system has errors of its own
            _note(notes, f"failed {number} {type(error).__name__}")
        else:
            _note(notes, f"done {number}")


def _note(place: str, text: str) -> None:
    with open(place, "ab", buffering=0) as file:  # noqa: PTH123
        file.write(text.encode() + b"\n")


def _told(place: str, word: str) -> set[int]:
    if not Path(place).exists():
        return set()
    return {
        int(line.split()[1]) for line in Path(place).read_text().splitlines() if line.startswith(word + " ")
    }


def kill_writers(name: str, home: Path, times: int) -> dict[str, int]:
    """Kill a writer again and again, on one table; what it acknowledged must be there."""
    system, root = SYSTEMS[name](), str(home / "killed")
    system.create(root)
    context = multiprocessing.get_context("spawn")
    dice = random.Random(name)
    lost = doubled = torn = unreadable = 0
    for time_ in range(times):
        notes = str(home / f"notes-{time_}")
        child = context.Process(target=append_many, args=(name, root, f"k{time_}", 1000, notes))
        child.start()
        while not Path(notes).exists() and child.is_alive():
            time.sleep(0.005)
        time.sleep(dice.uniform(0.02, 0.5))
        os.kill(child.pid or 0, signal.SIGKILL)
        child.join()
        try:
            found = Counter(system.read(root))
        except Exception:  # noqa: BLE001 - whatever it is, the table cannot be read
            unreadable += 1
            continue
        done, begun = _told(notes, "done"), _told(notes, "begun")
        wanted = Counter(key for number in done for key in batch(f"k{time_}", number)["id"].to_pylist())
        mine = Counter({key: count for key, count in found.items() if key.startswith(f"k{time_}-")})
        lost += (wanted - mine).total()
        doubled += sum(count - 1 for count in mine.values())
        extra = mine.keys() - wanted.keys()
        torn += bool(extra) and (len(extra) % 3 != 0 or not begun - done)
    return {"kills": times, "lost": lost, "doubled": doubled, "torn": torn, "unreadable": unreadable}


def write_at_once(name: str, home: Path) -> dict[str, int]:
    """Several processes append at the same time."""
    system, root = SYSTEMS[name](), str(home / "busy")
    system.create(root)
    context = multiprocessing.get_context("spawn")
    jobs = [(f"w{writer}", str(home / f"busy-{writer}")) for writer in range(WRITERS)]
    children = [
        context.Process(target=append_many, args=(name, root, writer, APPENDS, notes))
        for writer, notes in jobs
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
    found = Counter(system.read(root))
    done = [(writer, number) for writer, notes in jobs for number in _told(notes, "done")]
    failed = sum(len(_told(notes, "failed")) for _, notes in jobs)
    wanted = Counter(key for writer, number in done for key in batch(writer, number)["id"].to_pylist())
    return {
        "appends": WRITERS * APPENDS, "acknowledged": len(done), "refused": failed,
        "lost": (wanted - found).total(), "doubled": sum(count - 1 for count in found.values()),
    }  # fmt: skip


def damage(name: str, home: Path) -> dict[str, int]:
    """Damage one file of a finished table at a time; the truth, an error, or something else."""
    system, root = SYSTEMS[name](), home / "whole"
    system.create(str(root))
    for number in range(12):
        system.append(str(root), batch("d", number))
    truth = Counter(system.read(str(root)))
    outcomes: Counter[str] = Counter()
    for change in _changes(root):
        place = home / "damaged"
        shutil.copytree(root, place)
        change(place)
        outcomes[_outcome(name, str(place), truth)] += 1
        shutil.rmtree(place)
    return {
        "damages": outcomes.total(),
        **{kind: outcomes[kind] for kind in ("truth", "error", "other rows")},
    }


def _changes(root: Path) -> Iterator[Callable[[Path], None]]:
    files = sorted(file.relative_to(root) for file in root.rglob("*") if file.is_file())
    dice = random.Random(7)
    for at, file in enumerate(files):
        size = (root / file).stat().st_size
        sibling = next((other for other in files[at + 1 :] + files[:at] if other.suffix == file.suffix), None)
        for spot in dice.sample(range(size), min(3, size)):
            yield lambda place, file=file, spot=spot: _flip(place / file, spot)
        yield lambda place, file=file, size=size: os.truncate(place / file, size // 2)
        yield lambda place, file=file: (place / file).unlink()
        yield lambda place, file=file: (place / file).write_bytes(b"")
        if sibling is not None:
            yield lambda place, file=file, other=sibling: (place / file).write_bytes(
                (place / other).read_bytes()
            )


def _flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 0x41
    file.write_bytes(data)


def _outcome(name: str, root: str, truth: Counter[str]) -> str:
    try:
        found = Counter(SYSTEMS[name]().read(root))
    except BaseException as error:  # noqa: BLE001 - a panic of a Rust library is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return "error"
    return "truth" if found == truth else "other rows"


def run_rivals(names: list[str], kills: int) -> dict[str, Any]:
    """Every workload for every system."""
    figures: dict[str, Any] = {}
    for name in names:
        with tempfile.TemporaryDirectory(prefix="rivals-") as home:
            figures[name] = {
                "version": SYSTEMS[name]().version(),
                "killed writers": kill_writers(name, Path(home), kills),
                "writers at once": write_at_once(name, Path(home)),
                "damaged files": damage(name, Path(home)),
            }
    return figures


def main() -> None:
    """Run and print the figures; --keep writes the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--keep", action="store_true", help=f"write {RESULTS}/rivals.json")
    arguments = parser.parse_args()
    figures = run_rivals(arguments.systems.split(","), arguments.kills)
    print(json.dumps(figures, indent=2))
    if arguments.keep:
        kept = {"commit": current_commit(), "systems": figures}
        (RESULTS / "rivals.json").write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    main()
