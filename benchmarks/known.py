"""Logs of known shapes, after the table recipes of the benchmarks of delta-kernel-rs, beside delta-rs.

    python -m benchmarks.run known --sizes 1k,10k,100k

SIZES counts the adds of each recipe. `commits` are adds alone, a thousand a commit (1kAdds, 10kAdds, 100kAdds); `checkpoint` has
them in one checkpoint, `no statistics` without anything about their data (1MAddsNoData), `tail` with a thousand commits of one add
after it (101kAdds1kCommitsSinceChkpt), `sidecars` in a V2 checkpoint of ten files, `checksum` with a version checksum beside `tail`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.harness import ratio as ratio_of
from benchmarks.replay import load_imports
from benchmarks.workloads import (
    DELTA_ADD,
    File,
    ReplayWorkload,
    delta_checkpoint,
    delta_head,
    generated,
    write_delta_commits,
)

OURS, RIVAL = "indextables", "delta-rs"
RECIPES = ("commits", "checkpoint", "no statistics", "tail", "sidecars", "checksum")
TAIL_COMMITS = 1_000
SIDECARS = 10
VERSION = 11
_NO_STATISTICS = DELTA_ADD[: DELTA_ADD.rindex(", 'stats':")] + ", 'stats': NULL::varchar}"
_V2 = {
    "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["v2Checkpoint"], "writerFeatures": ["v2Checkpoint"],
}  # fmt: skip


def prepare(directory: Path, size: str) -> None:
    """Every recipe, in a directory of its name."""
    files = count_of(size)
    shutil.rmtree(directory / "first", ignore_errors=True)
    write_delta_commits(directory / "first", ReplayWorkload(10, commits=0))
    for recipe in RECIPES:
        shutil.rmtree(directory / recipe, ignore_errors=True)
        log = directory / recipe / "_delta_log"
        log.mkdir(parents=True)
        if recipe == "commits":
            write_delta_commits(directory / recipe, ReplayWorkload(files, commits=0))
        elif recipe == "sidecars":
            _write_sidecars(log, files)
        else:
            add = _NO_STATISTICS if recipe == "no statistics" else DELTA_ADD
            delta_checkpoint(
                log / f"{VERSION:020d}.checkpoint.parquet", generated(files, add), delta_head([])
            )
            (log / "_last_checkpoint").write_text(json.dumps({"version": VERSION, "size": files + 2}))
        if recipe in ("tail", "checksum"):
            _write_tail(log, files)
        if recipe == "checksum":
            _write_checksum(log, files)


def _write_tail(log: Path, files: int) -> None:
    for number in range(TAIL_COMMITS):
        lines = [
            {"add": File(files + number).delta()},
            {"commitInfo": {"timestamp": number, "operation": "WRITE"}},
        ]
        _write_lines(log / f"{VERSION + 1 + number:020d}.json", lines)


def _write_sidecars(log: Path, files: int) -> None:
    (log / "_sidecars").mkdir()
    batches = list(generated(files, DELTA_ADD))
    each = -(-len(batches) // SIDECARS)
    sidecars = []
    for number, begin in enumerate(range(0, len(batches), each)):
        file = log / "_sidecars" / f"{number:08d}-0000-4000-8000-000000000000.parquet"
        delta_checkpoint(file, batches[begin : begin + each], [])
        sidecars.append(
            {"path": file.name, "sizeInBytes": file.stat().st_size, "modificationTime": 1_704_067_200_000}
        )
    lines = [{"protocol": _V2}, delta_head({})[1], {"checkpointMetadata": {"version": VERSION}}]
    lines += [{"sidecar": sidecar} for sidecar in sidecars]
    _write_lines(log / f"{VERSION:020d}.checkpoint.00000000-0000-4000-8000-00000000000b.json", lines)
    # A version is a commit as well.
    _write_lines(log / f"{VERSION:020d}.json", [{"commitInfo": {"timestamp": 0, "operation": "WRITE"}}])


def _write_checksum(log: Path, files: int) -> None:
    facts = {
        "tableSizeBytes": sum(File(number).size for number in range(files + TAIL_COMMITS)),
        "numFiles": files + TAIL_COMMITS, "numMetadata": 1, "numProtocol": 1,
        "protocol": delta_head({})[0]["protocol"], "metadata": delta_head({})[1]["metaData"],
    }  # fmt: skip
    (log / f"{VERSION + TAIL_COMMITS:020d}.crc").write_text(json.dumps(facts))


def _write_lines(file: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _ours(place: Path, where: str | None) -> Operation:
    import indextables as it

    load_imports()
    return lambda: {"files": len(it.delta.files(str(place), where=where, columns=("path",)))}


def _theirs(place: Path, where: str | None) -> Operation:
    from deltalake import DeltaTable

    if where is None:
        return lambda: {"files": len(DeltaTable(place).file_uris())}
    return lambda: {"files": len(DeltaTable(place).file_uris(file_pruning_predicate=where))}


def __getattr__(name: str) -> Callable[[Path], Operation]:
    """The function of a case: `ours_list_tail`, `theirs_prune_sidecars`."""
    system, _, rest = name.partition("_")
    question, _, recipe = rest.partition("_")
    recipe = recipe.replace("_", " ")
    if system not in ("ours", "theirs") or question not in ("list", "prune") or recipe not in RECIPES:
        raise AttributeError(name)
    ask = _ours if system == "ours" else _theirs

    def case(directory: Path) -> Operation:
        where = ReplayWorkload(count_of(directory.name)).prune if question == "prune" else None
        ask(directory / "first", where)()  # loads what is loaded late, for both
        return ask(directory / recipe, where)

    return case


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every recipe beside delta-rs: equal answers, and not slower."""
    lines = []
    by_case = {(row["size"], row["case"], row["system"]): row for row in rows}
    for (size, case, system), row in by_case.items():
        rival = by_case.get((size, case, RIVAL))
        if system != OURS or rival is None:
            continue
        equal = row["facts"]["files"] == rival["facts"]["files"]
        times, by = ratio_of(row, rival)
        verdict = "met" if times >= 1 and equal else "MISSED"
        lines.append(
            f"{verdict}: {case}, {size}, not slower: {times:.1f}x ({by})" + ("" if equal else ", OTHER FILES")
        )
    return lines


TARGET = Target(
    "known",
    prepare,
    [
        Case(f"{question} {recipe}", system, f"{name}_{question}_{recipe.replace(' ', '_')}", needs=needs)
        for recipe in RECIPES
        for question in ("list", "prune")
        if (question, recipe) != ("prune", "no statistics")
        for system, name, needs in ((OURS, "ours", None), (RIVAL, "theirs", "deltalake"))
    ],
    rival=RIVAL,
    packages=("indextables", "deltalake", "pyarrow", "duckdb"),
    goals=goals,
)
