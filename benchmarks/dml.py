"""Rows that change: DELETE of one row, 0.1 % and 10 %, UPDATE of 1 %, MERGE of 1 % and of 1,500 rows, here and by delta-rs, on the same rows.

Our table has an index of its text, and deletion vectors. What deleted rows cost readers is measured
beside the same rows after PURGE ROWS, in turn.

Each run has a copy of its own, made of hard links: neither system changes a file
that is there. Half of the merged rows are new. Every case reports how many rows
the table has afterwards and what they sum up to, and those must agree.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.harness import Case, Operation, Target, count_of, installed
from benchmarks.in_turn import OURS, in_turn, ratios

SCHEMA = pa.schema(
    [("id", pa.int64()), ("bucket", pa.int64()), ("value", pa.float64()), ("message", pa.string())]
)
OPTIONS = {"indexing.typemap.message": "text", "deletionVectors.enabled": "true"}
STEP = 250_000
SMALL = "-small"
"""Of tables that are changed once before, so that what is loaded then is not measured."""
ONE, FEW, MANY = "id = 77", "id % 1000 = 77", "bucket < 10"
SPREAD, UPDATES = "bucket = 7", {"value": "value + 1.0"}
ALLOWED_MB = 1024
HIDDEN, PURGED = "hidden", "purged"
"""The same rows, of which one in a hundred was deleted: by vectors, and after PURGE ROWS."""
FOLDED = "without vectors"
SOURCES = {"source": 100, "few": None}
"""Rows to merge: one in so many, or 1,500, of a small table half as many as it has."""
FEW_ROWS = 1500
WORDS = "took 7"
MOST = {"count, 1% deleted": 1.2, "rows of a word, 1% deleted": 1.2, "best ten, 1% deleted": 1.2}
FIRST, MOST_FIRST = "best ten for the first time, 1% deleted", 2.0


def prepare(directory: Path, size: str) -> None:
    """The same rows as a table of ours and of delta-rs, in as many files, and the rows to merge."""
    import indextables as it

    count = count_of(size)
    for name, rows in (("", count), (SMALL, 100)):
        ours = it.Table.create(directory / f"ours{name}", SCHEMA, options=OPTIONS)
        for part in _rows(rows):
            ours.append(part)
        if installed("deltalake"):
            from deltalake import write_deltalake

            for part in _rows(rows):
                write_deltalake(str(directory / f"delta{name}"), part, mode="append")
    for name, share in SOURCES.items():
        rows = min(FEW_ROWS, count // 2) if share is None else count // share
        ids = [*range(0, count, 2 * (count // rows)), *range(count, count + rows - rows // 2)]
        source = _of(pa.array(ids, pa.int64()), -1.0)
        with pa.OSFile(str(directory / f"{name}.arrow"), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as file:
            file.write_table(source)
    for name in (HIDDEN, PURGED):
        shutil.copytree(directory / "ours", directory / name, copy_function=os.link)
        table = it.Table.open(directory / name)
        table.delete("id % 100 = 3")
        if name == PURGED:
            table.purge_rows()


def _rows(count: int) -> Iterator[pa.Table]:
    for start in range(0, count, STEP):
        yield _of(pa.array(range(start, min(start + STEP, count)), pa.int64()), 1.0)


def _of(ids: pa.Array, value: float) -> pa.Table:
    spread = pc.bit_wise_and(pc.multiply(ids, 2654435761), 0x7FFFFFFF)
    bucket = pc.subtract(spread, pc.multiply(pc.divide(spread, 100), 100))
    message = pc.binary_join_element_wise(
        "request", ids.cast(pa.string()), "took", bucket.cast(pa.string()), "milliseconds", " "
    )
    return pa.Table.from_arrays([ids, bucket, pa.repeat(value, len(ids)), message], schema=SCHEMA)


def _run(directory: Path, name: str, opened: Callable[[str], Any], change: Callable[[Any], Any]) -> Operation:
    """The change of a copy, timed alone; another process says what is in the table then."""
    scratch = Path(tempfile.mkdtemp(dir=directory, prefix="run-"))
    path = scratch / name
    for each in (name, name + SMALL):
        shutil.copytree(directory / each, scratch / each, copy_function=os.link)
    change(opened(str(path) + SMALL))
    table = opened(str(path))

    def run() -> Mapping[str, Any]:
        began = time.perf_counter()
        change(table)
        seconds = time.perf_counter() - began
        asked = subprocess.run(
            [sys.executable, "-m", "benchmarks.dml", str(path)], capture_output=True, text=True, check=True
        )
        shutil.rmtree(scratch)
        return {"seconds": seconds, **json.loads(asked.stdout)}

    return run


def contents(path: str) -> dict[str, Any]:
    """How many rows a table has, and the sum of their values."""
    import indextables as it

    table = it.DeltaTable.open(path) if Path(path, "_delta_log").exists() else it.Table.open(path)
    rows, total = 0, 0.0
    for batch in table.scan(columns=["value"]):
        rows += batch.num_rows
        total += pc.sum(batch.column("value")).as_py() or 0.0
    return {"rows": rows, "sum": total}


def _source(directory: Path, name: str = "source") -> pa.Table:
    return pa.ipc.open_file(pa.OSFile(str(directory / f"{name}.arrow"))).read_all()


def _range(directory: Path) -> str:
    """The first hundredth of the rows, which lie in one file."""
    return f"id < {pc.max(_source(directory)['id']).as_py() // 100}"


def _ours(directory: Path, change: Callable[[Any], Any]) -> Operation:
    import indextables as it

    return _run(directory, "ours", it.Table.open, change)


def _delta(directory: Path, change: Callable[[Any], Any]) -> Operation:
    from deltalake import DeltaTable

    return _run(directory, "delta", DeltaTable, change)


def _more(rows: pa.Table) -> pa.Array:
    return pc.add(rows["value"], 1.0)


def delete_one(directory: Path) -> Operation:
    """One row."""
    return _ours(directory, lambda table: table.delete(ONE))


def delete_few(directory: Path) -> Operation:
    """One row of a thousand in every file."""
    return _ours(directory, lambda table: table.delete(FEW))


def delete_many(directory: Path) -> Operation:
    """One row of ten in every file."""
    return _ours(directory, lambda table: table.delete(MANY))


def delete_one_delta(directory: Path) -> Operation:
    """The same by delta-rs."""
    return _delta(directory, lambda table: table.delete(ONE))


def delete_few_delta(directory: Path) -> Operation:
    """The same by delta-rs."""
    return _delta(directory, lambda table: table.delete(FEW))


def delete_many_delta(directory: Path) -> Operation:
    """The same by delta-rs."""
    return _delta(directory, lambda table: table.delete(MANY))


def update_spread(directory: Path) -> Operation:
    """One row of a hundred in every file."""
    return _ours(directory, lambda table: table.update(SPREAD, {"value": _more}))


def update_range(directory: Path) -> Operation:
    """Neighbouring rows."""
    where = _range(directory)
    return _ours(directory, lambda table: table.update(where, {"value": _more}))


def merge(directory: Path) -> Operation:
    """Rows by key, half of them new."""
    source = _source(directory)
    return _ours(directory, lambda table: table.merge(source, on="id"))


def merge_few(directory: Path) -> Operation:
    """1,500 rows by key, half of them new."""
    source = _source(directory, "few")
    return _ours(directory, lambda table: table.merge(source, on="id"))


def update_spread_delta(directory: Path) -> Operation:
    """The same by delta-rs."""
    return _delta(directory, lambda table: table.update(UPDATES, predicate=SPREAD))


def update_range_delta(directory: Path) -> Operation:
    """The same by delta-rs."""
    where = _range(directory)
    return _delta(directory, lambda table: table.update(UPDATES, predicate=where))


def merge_delta(directory: Path) -> Operation:
    """The same by delta-rs."""
    return _merge_delta(directory, _source(directory))


def merge_few_delta(directory: Path) -> Operation:
    """The same by delta-rs."""
    return _merge_delta(directory, _source(directory, "few"))


def _merge_delta(directory: Path, source: pa.Table) -> Operation:

    def change(table: Any) -> None:
        merging = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        merging.when_matched_update_all().when_not_matched_insert_all().execute()

    return _delta(directory, change)


def _best(table: Any) -> list[Any]:
    rows = table.search(WORDS, columns=["id"], score=True, limit=10).to_arrow()
    return [round(score, 5) for score in rows["_score"].to_pylist()]


def _beside(directory: Path, ask: Callable[[Any], Any]) -> Operation:
    """A question to the table with deleted rows, and to the one without."""
    import indextables as it

    hidden, purged = (it.Table.open(directory / name) for name in (HIDDEN, PURGED))
    return lambda: in_turn({OURS: lambda: ask(hidden), FOLDED: lambda: ask(purged)})


def count_rows(directory: Path) -> Operation:
    """A count with a condition."""
    return _beside(directory, lambda table: table.count("bucket < 50"))


def word_rows(directory: Path) -> Operation:
    """All rows of a word."""
    return _beside(directory, lambda table: table.search("7", columns=["id"]).to_arrow().num_rows)


def best_rows(directory: Path) -> Operation:
    """The ten best rows of a query, asked before."""
    return _beside(directory, _best)


def _first(directory: Path, name: str) -> Operation:
    import indextables as it

    table = it.Table.open(directory / f"ours{SMALL}")
    _best(table)
    return lambda: {"answer": _best(it.Table.open(directory / name))}


def first_best(directory: Path) -> Operation:
    """The ten best rows of a query that nobody has asked this process."""
    return _first(directory, HIDDEN)


def first_best_purged(directory: Path) -> Operation:
    """The same after PURGE ROWS."""
    return _first(directory, PURGED)


def _first_ratio(by: Mapping[Any, Mapping[str, Any]], size: str) -> list[str]:
    pair = [by.get((FIRST, size, system)) for system in (OURS, FOLDED)]
    if None in pair:
        return []
    hidden, purged = (row for row in pair if row is not None)
    ratio = hidden["cpu_seconds"] / purged["cpu_seconds"]
    same = "the same scores" if hidden["facts"]["answer"] == purged["facts"]["answer"] else "OTHER SCORES"
    met = "met" if ratio <= MOST_FIRST else "MISSED"
    return [f"{size}: {FIRST}: {same}, {ratio:.2g} of the CPU without vectors, goal <= {MOST_FIRST:g}: {met}"]


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say whether both systems end with the same rows, and whether memory stays bounded."""
    lines = []
    by = {(row["case"], row["size"], row["system"]): row for row in rows}
    for (case, size, system), row in by.items():
        rival = by.get((case, size, "delta-rs"))
        if system != OURS or "rows" not in row["facts"]:
            continue
        if rival is not None:
            same = all(row["facts"][key] == rival["facts"][key] for key in ("rows", "sum"))
            lines.append(f"{case} at {size}: {'the same rows' if same else 'OTHER ROWS'} as delta-rs")
        met = "met" if row["peak_mb"] <= ALLOWED_MB else "missed"
        lines.append(f"{case} at {size}: {row['peak_mb']:.0f} MB of {ALLOWED_MB} allowed: {met}")
    for size in dict.fromkeys(row["size"] for row in rows):
        lines += _first_ratio(by, size)
    return [*lines, *ratios(rows, MOST)]


TARGET = Target(
    name="dml",
    prepare=prepare,
    cases=[
        Case("delete one row", "indextables", "delete_one"),
        Case("delete one row", "delta-rs", "delete_one_delta", needs="deltalake"),
        Case("delete 0.1%", "indextables", "delete_few"),
        Case("delete 0.1%", "delta-rs", "delete_few_delta", needs="deltalake"),
        Case("delete 10%", "indextables", "delete_many"),
        Case("delete 10%", "delta-rs", "delete_many_delta", needs="deltalake"),
        Case("update 1% everywhere", "indextables", "update_spread"),
        Case("update 1% everywhere", "delta-rs", "update_spread_delta", needs="deltalake"),
        Case("update 1% in one place", "indextables", "update_range"),
        Case("update 1% in one place", "delta-rs", "update_range_delta", needs="deltalake"),
        Case("merge 1%", "indextables", "merge"),
        Case("merge 1%", "delta-rs", "merge_delta", needs="deltalake"),
        Case("merge 1,500 rows", "indextables", "merge_few"),
        Case("merge 1,500 rows", "delta-rs", "merge_few_delta", needs="deltalake"),
        Case("count, 1% deleted", "indextables", "count_rows", repeat=1),
        Case("rows of a word, 1% deleted", "indextables", "word_rows", repeat=1),
        Case("best ten, 1% deleted", "indextables", "best_rows", repeat=1),
        Case(FIRST, "indextables", "first_best"),
        Case(FIRST, FOLDED, "first_best_purged"),
    ],
    rival="delta-rs",
    packages=("pyarrow", "deltalake"),
    goals=goals,
)

if __name__ == "__main__":
    print(json.dumps(contents(sys.argv[1])))
