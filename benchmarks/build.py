"""Rows with a full-text index, written at once: CPU and memory by the kind of text, beside LanceDB.

    python -m benchmarks.run build --sizes 100k

SIZES counts rows of log lines; of longer texts there are fewer. Both sides store the rows and an index with
positions, without stemming and stop words; Chinese and Japanese are indexed as pairs of characters on both.
Memory is what a process needs beyond what it had with the libraries and the rows loaded.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Case, Operation, Target, count_of
from benchmarks.index import corpus
from benchmarks.log_lines import log_lines

OURS, LANCE = "indextables", "LanceDB"
CPU_GOAL, MEMORY_GOAL = 1.3, 6.0
"""At most these multiples: of LanceDB's CPU seconds, and of the text in memory."""
COLUMNS = 50
PARAGRAPHS_PER_DOCUMENT = 75


def _lines(rows: int) -> Mapping[str, list[str]]:
    return {"text": [text for batch in log_lines(rows) for text in batch["message"].to_pylist()]}


def _prose(rows: int) -> Mapping[str, list[str]]:
    return {"text": corpus("documentation", rows)["text"].to_pylist()}


def _long(rows: int) -> Mapping[str, list[str]]:
    parts, size = _prose(rows)["text"], PARAGRAPHS_PER_DOCUMENT
    return {"text": ["\n".join(parts[at : at + size]) for at in range(0, len(parts), size)]}


def _json(rows: int) -> Mapping[str, list[str]]:
    dice = random.Random(5)
    return {
        "text": [
            json.dumps(
                {
                    "id": str(uuid.UUID(int=dice.getrandbits(128), version=4)),
                    "user": f"u{dice.randrange(5000)}",
                    "path": f"/api/v{dice.randrange(3)}/{dice.choice(('orders', 'carts', 'users'))}",
                    "ms": dice.randrange(2000),
                }
            )
            for _ in range(rows)
        ]
    }


def _tags(rows: int) -> Mapping[str, list[str]]:
    dice, names = random.Random(3), ("red", "green", "blue", "prod", "dev", "eu", "us")
    return {
        "text": [" ".join(f"{dice.choice(names)}{dice.randrange(50)}" for _ in range(3)) for _ in range(rows)]
    }


def _wide(rows: int) -> Mapping[str, list[str]]:
    texts = _lines(rows)["text"]
    return {f"text{at}": texts[at::COLUMNS][: rows // COLUMNS] for at in range(COLUMNS)}


def _language(code: str) -> Callable[[int], Mapping[str, list[str]]]:
    def texts(rows: int) -> Mapping[str, list[str]]:
        place = Path(os.environ.get("INDEXTABLES_SHARED", "../shared"), "languages", "descriptions.jsonl.gz")
        if not place.is_file():
            return {}
        with gzip.open(place, "rt", encoding="utf-8") as lines:
            some = [row["text"] for row in map(json.loads, lines) if row["lang"] == code]
        return {"text": (some * (rows // len(some) + 1))[: rows // 4]}

    return texts


CORPORA: Mapping[str, Callable[[int], Mapping[str, list[str]]]] = {
    "lines": _lines,
    "prose": _prose,
    "long": _long,
    "json": _json,
    "tags": _tags,
    "wide": _wide,
    "chinese": _language("zh_CN"),
    "japanese": _language("ja"),
}


def prepare(directory: Path, size: str) -> None:
    """The texts of every corpus that is there, as Parquet."""
    for name, texts in CORPORA.items():
        columns = texts(count_of(size))
        if columns:
            pq.write_table(
                pa.table({key: pa.array(values, pa.string()) for key, values in columns.items()}),
                directory / f"{name}.parquet",
            )


def _measured(directory: Path, corpus_name: str, write: Callable[[pa.Table, Path], None]) -> Operation:
    """Write a corpus, and say how much memory that took for each byte of text."""
    source, place = directory / f"{corpus_name}.parquet", directory / "written"
    shutil.rmtree(place, ignore_errors=True)
    if not source.exists():
        return lambda: {"left_out": "the texts are not there"}
    rows = pq.read_table(source)
    text_bytes = sum(column.nbytes for column in rows.columns)
    # A first, small write loads what is loaded late.
    write(rows.slice(0, 10), place / "first")

    def operation() -> Mapping[str, Any]:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the past
        before = _status_kb("VmRSS")
        write(rows, place / "all")
        used = (_status_kb("VmHWM") - before) * 1024
        return {
            "rows": rows.num_rows,
            "text_mb": round(text_bytes / 1e6, 2),
            "memory_per_text": round(used / text_bytes, 1),
        }

    return operation


def _status_kb(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key))


def _write_ours() -> Callable[[pa.Table, Path], None]:
    import indextables as it

    def write(rows: pa.Table, place: Path) -> None:
        it.write(place, rows, text=rows.column_names)

    return write


def _write_lance(pairs: bool) -> Callable[[pa.Table, Path], None]:
    import lancedb

    cut: dict[str, Any] = (
        {"base_tokenizer": "ngram", "ngram_min_length": 2, "ngram_max_length": 2} if pairs else {}
    )

    def write(rows: pa.Table, place: Path) -> None:
        table = lancedb.connect(str(place)).create_table("t", rows)
        for name in rows.column_names:
            table.create_fts_index(
                name, with_position=True, stem=False, remove_stop_words=False, ascii_folding=False,
                max_token_length=None, **cut,
            )  # fmt: skip

    return write


def __getattr__(name: str) -> Callable[[Path], Operation]:
    """The function of a case: `ours_prose` writes prose as IndexTables, `lance_prose` as LanceDB."""
    side, _, corpus_name = name.partition("_")
    if corpus_name not in CORPORA or side not in ("ours", "lance"):
        raise AttributeError(name)
    if side == "ours":
        return lambda directory: _measured(directory, corpus_name, _write_ours())
    return lambda directory: _measured(
        directory, corpus_name, _write_lance(corpus_name in ("chinese", "japanese"))
    )


def _cases() -> Iterator[Case]:
    for name in CORPORA:
        yield Case(name, OURS, f"ours_{name}")
        yield Case(name, LANCE, f"lance_{name}", needs="lancedb")


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """CPU over LanceDB's, and memory over the text, for each corpus."""
    lines = []
    for case, size in dict.fromkeys((row["case"], row["size"]) for row in rows):
        by_system = {row["system"]: row for row in rows if (row["case"], row["size"]) == (case, size)}
        ours = by_system.get(OURS)
        if ours is None or "left_out" in ours["facts"]:
            continue
        memory, text = ours["facts"]["memory_per_text"], ours["facts"]["text_mb"]
        line = f"{case}, {size} ({text} MB of text): memory {memory}x the text, at most {MEMORY_GOAL}x: {_verdict(memory, MEMORY_GOAL)}"
        if LANCE in by_system:
            ratio = ours["cpu_seconds"] / by_system[LANCE]["cpu_seconds"]
            line += f"; CPU {ratio:.2f}x LanceDB's, at most {CPU_GOAL}x: {_verdict(ratio, CPU_GOAL)}"
        lines.append(line)
    return lines


def _verdict(value: float, most: float) -> str:
    return "met" if value <= most else "missed"


TARGET = Target(
    "build",
    prepare,
    list(_cases()),
    rival=LANCE,
    packages=("pyarrow", "lancedb"),
    goals=goals,
)
