"""Ten rows at a time: what a hundred more appends cost a table that has had many, and what a writer saves.

    python -m benchmarks.run tiny --sizes 100,1k

SIZES counts the appends of ten rows before the measurement. Ours indexes the text of its rows; the rivals store rows alone.
`batches` hands a thousand batches of ten rows to a writer; the rivals have none, and append each of them. `open and search`
opens a table whose splits were merged by levels, as writers and streams leave it, and counts a rare word, its rows read
besides, beside the same rows in one split.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.harness import Case, Operation, Target, count_of

OURS, DELTA, LANCE = "indextables", "delta-rs", "LanceDB"
ROWS, APPENDS, BATCHES = 10, 100, 1_000
SLOWER_GOAL, LOG_GOAL, OPEN_GOAL_S, WRITER_GOAL, LEVELS_GOAL = 1.3, 2.0, 0.1, 0.1, 2.0
"""At most: appends later over those at the start, bytes of log over bytes of splits, CPU seconds to open and count, a
writer's CPU over that of as many appends, and a search of splits merged by levels over that of one split."""
LEVELS = 255
"""After so many appends, two levels of splits are as full as they get: 30 splits."""
SEARCHES = 15


def batch(number: int) -> pa.Table:
    """Ten rows with eight columns; a pure function of the number."""
    ids = range(number * ROWS, (number + 1) * ROWS)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "ts": pa.array([1_700_000_000_000_000 + at for at in ids], pa.timestamp("us")),
            "host": pa.array([f"host{at % 50}" for at in ids], pa.string()),
            "level": pa.array([("INFO", "WARN")[at % 2] for at in ids], pa.string()),
            "code": pa.array([200 + at % 10 for at in ids], pa.int32()),
            "ms": pa.array([float(at % 977) for at in ids], pa.float64()),
            "user": pa.array([f"user{at % 997}" for at in ids], pa.string()),
            "message": pa.array(
                [f"GET /api/items/{at} took {at % 977} ms for user{at % 997} id {at * 7:08x}" for at in ids],
                pa.string(),
            ),
        }
    )


def _ours(place: Path, options: Mapping[str, str] | None = None) -> Callable[[pa.Table], Any]:
    import indextables as it

    if not it.Table.exists(place):
        it.Table.create(place, batch(0).schema, text="message")
    return it.Table.open(place, options=options).append


def _delta(place: Path) -> Callable[[pa.Table], Any]:
    from deltalake import write_deltalake

    return lambda rows: write_deltalake(str(place), rows, mode="append")


def _lance(place: Path) -> Callable[[pa.Table], Any]:
    import lancedb

    database = lancedb.connect(str(place))
    if "t" not in database.table_names():
        database.create_table("t", schema=batch(0).schema)
    return database.open_table("t").add


SYSTEMS: Mapping[str, Callable[[Path], Callable[[pa.Table], Any]]] = {
    "ours": _ours,
    "delta": _delta,
    "lance": _lance,
}


def prepare(directory: Path, size: str) -> None:
    """Our table after so many appends; those of rivals are made by their first case."""
    _grow(directory / "ours", "ours", count_of(size))


def _grow(place: Path, name: str, appends: int) -> None:
    append = SYSTEMS[name](place)
    for number in range(appends):
        append(batch(number))


def _grown(directory: Path, name: str) -> Path:
    if not (directory / name).exists():
        _grow(directory / name, name, count_of(directory.name))
    return directory / name


def _copy(directory: Path, name: str) -> Path:
    place = directory / f"{name}-copy"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(_grown(directory, name), place)
    return place


def _appends(directory: Path, name: str, *, fresh: bool) -> Operation:
    place = directory / f"{name}-fresh"
    if fresh:
        shutil.rmtree(place, ignore_errors=True)
    else:
        place = _copy(directory, name)
    append = SYSTEMS[name](place)
    more = [batch(1_000_000 + number) for number in range(APPENDS + 1)]
    append(more.pop())  # loads what is loaded late

    def operation() -> Mapping[str, Any]:
        for rows in more:
            append(rows)
        if name != "ours":
            return {}
        log = sum(file.stat().st_size for file in (place / "_transaction_log").rglob("*") if file.is_file())
        splits = sum(file.stat().st_size for file in place.rglob("*.split"))
        return {"log_per_splits": round(log / splits, 2)}

    return operation


def ours_writer(directory: Path) -> Operation:
    """A thousand batches through one writer, until the last is committed."""
    import indextables as it

    place = directory / "writer"
    shutil.rmtree(place, ignore_errors=True)
    table = it.Table.create(place, batch(0).schema, text="message")
    table.append(batch(0))
    batches = [batch(number) for number in range(1, BATCHES + 1)]

    def operation() -> Mapping[str, Any]:
        with table.writer() as writer:
            for rows in batches:
                writer.write(rows)
        return {"rows": table.refresh().count()}

    return operation


def _batches(directory: Path, name: str) -> Operation:
    place = directory / f"{name}-batches"
    shutil.rmtree(place, ignore_errors=True)
    append = SYSTEMS[name](place)
    append(batch(0))
    batches = [batch(number) for number in range(1, BATCHES + 1)]

    def operation() -> Mapping[str, Any]:
        for rows in batches:
            append(rows)
        return {}

    return operation


def ours_open(directory: Path) -> Operation:
    """Open the table and count its rows, as the first question of a handle."""
    import indextables as it

    it.Table.open(directory / "ours").count()

    def operation() -> Mapping[str, Any]:
        return {"rows": it.Table.open(directory / "ours").count()}

    return operation


def delta_open(directory: Path) -> Operation:
    """The same with delta-rs, from the row counts of its log."""
    from deltalake import DeltaTable

    place = str(_grown(directory, "delta"))

    def operation() -> Mapping[str, Any]:
        adds = pa.table(DeltaTable(place).get_add_actions(flatten=True))
        return {"rows": sum(adds.column("num_records").to_pylist())}

    return operation


def _searching(directory: Path, name: str, *, rows: bool) -> Operation:
    import indextables as it
    from indextables.index.read.cache import MEMORY
    from indextables.split.open_splits import forget_splits

    place = directory / "levels"
    if not place.exists():
        append = _ours(place, {"mergeOnWrite.enabled": "true"})
        for number in range(LEVELS):
            append(batch(number))
        shutil.copytree(place, directory / "merged")
        it.Table.open(directory / "merged").merge_splits()

    def once() -> int:
        forget_splits()
        MEMORY.clear()
        table = it.Table.open(directory / name)
        return table.search("user77").read_all().num_rows if rows else table.count(query="user77")

    once()

    def operation() -> Mapping[str, Any]:
        began, worked = time.perf_counter(), time.process_time()
        matching = [once() for _ in range(SEARCHES)]
        spent = (time.perf_counter() - began) / SEARCHES, (time.process_time() - worked) / SEARCHES
        splits = len(it.Table.open(directory / name).files())
        return {"seconds": spent[0], "cpu_seconds": spent[1], "rows": matching[0], "splits": splits}

    return operation


def levels_count(directory: Path) -> Operation:
    """Open, and count a rare word, with the splits that merging by levels leaves."""
    return _searching(directory, "levels", rows=False)


def merged_count(directory: Path) -> Operation:
    """The same with one split."""
    return _searching(directory, "merged", rows=False)


def levels_rows(directory: Path) -> Operation:
    """Open, and read the rows of a rare word."""
    return _searching(directory, "levels", rows=True)


def merged_rows(directory: Path) -> Operation:
    """The same with one split."""
    return _searching(directory, "merged", rows=True)


def __getattr__(name: str) -> Callable[[Path], Operation]:
    """The function of a case: `ours_later`, `delta_first`, `lance_batches`."""
    system, _, case = name.partition("_")
    if system not in SYSTEMS or case not in ("first", "later", "batches"):
        raise AttributeError(name)
    if case == "batches":
        return lambda directory: _batches(directory, system)
    return lambda directory: _appends(directory, system, fresh=case == "first")


CASES = [
    *(
        Case(title, system, f"{name}_{case}", needs=needs)
        for title, case in (("first 100 appends", "first"), ("100 more appends", "later"))
        for system, name, needs in (
            (OURS, "ours", None),
            (DELTA, "delta", "deltalake"),
            (LANCE, "lance", "lancedb"),
        )
    ),
    Case("open and count", OURS, "ours_open"),
    Case("open and count", DELTA, "delta_open", needs="deltalake"),
    Case("1,000 batches", f"{OURS}, writer", "ours_writer"),
    Case("1,000 batches", f"{OURS}, appends", "ours_batches"),
    Case("1,000 batches", DELTA, "delta_batches", needs="deltalake"),
    Case("1,000 batches", LANCE, "lance_batches", needs="lancedb"),
    Case("open and count a word", f"{OURS}, levels", "levels_count"),
    Case("open and count a word", f"{OURS}, merged", "merged_count"),
    Case("open and read its rows", f"{OURS}, levels", "levels_rows"),
    Case("open and read its rows", f"{OURS}, merged", "merged_rows"),
]


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Appends later over the first ones, the log over the splits, opening, and a writer over appends."""
    lines = []
    for size in dict.fromkeys(row["size"] for row in rows):
        of_case = {(row["case"], row["system"]): row for row in rows if row["size"] == size}
        first, later = of_case.get(("first 100 appends", OURS)), of_case.get(("100 more appends", OURS))
        if first and later:
            ratio, log = later["cpu_seconds"] / first["cpu_seconds"], later["facts"]["log_per_splits"]
            lines += [
                f"{size}: 100 more appends take {ratio:.2f}x the CPU of the first 100, at most {SLOWER_GOAL}x: {_verdict(ratio, SLOWER_GOAL)}",
                f"{size}: the log has {log}x the bytes of the splits, at most {LOG_GOAL}x: {_verdict(log, LOG_GOAL)}",
            ]
        opened = of_case.get(("open and count", OURS))
        if opened:
            seconds = opened["cpu_seconds"]
            lines.append(
                f"{size}: open and count in {seconds * 1000:.0f} ms of CPU, at most {OPEN_GOAL_S * 1000:.0f}: {_verdict(seconds, OPEN_GOAL_S)}"
            )
        writer, appends = (of_case.get(("1,000 batches", f"{OURS}, {way}")) for way in ("writer", "appends"))
        if writer and appends:
            ratio = writer["cpu_seconds"] / appends["cpu_seconds"]
            lines.append(
                f"{size}: a writer takes {ratio:.3f}x the CPU of as many appends, at most {WRITER_GOAL}x: {_verdict(ratio, WRITER_GOAL)}"
            )
        for case in ("open and count a word", "open and read its rows"):
            levels, merged = (of_case.get((case, f"{OURS}, {way}")) for way in ("levels", "merged"))
            if levels and merged:
                ratio = levels["cpu_seconds"] / merged["cpu_seconds"]
                lines.append(
                    f"{size}: {case}: {levels['facts']['splits']} splits take {ratio:.1f}x the CPU of one, at most {LEVELS_GOAL}x: {_verdict(ratio, LEVELS_GOAL)}"
                )
    return lines


def _verdict(value: float, most: float) -> str:
    return "met" if value <= most else "missed"


TARGET = Target(
    "tiny", prepare, CASES, rival=DELTA, packages=("pyarrow", "deltalake", "lancedb"), goals=goals
)
