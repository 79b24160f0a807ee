"""The rows of a middling word, scattered over the table: CPU of a first answer and of a repeated one.

    python -m benchmarks.run rows --sizes 10k,100k,1M

SIZES counts rows of log lines; of longer texts there are fewer. Words that no text has are put into 10, 100 and
1,000 rows, five words for each number, so that every first answer is about rows nobody asked for before. All
columns are fetched. DuckDB scans the same rows as plain Parquet: the best scan, which no answer should exceed.
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.build import CORPORA
from benchmarks.harness import Case, Operation, Target, count_of

OURS, LANCE, SQLITE, SCAN = "indextables", "LanceDB", "SQLite FTS5", "DuckDB scan"
SIDES = {"ours": OURS, "lance": LANCE, "sqlite": SQLITE, "scan": SCAN}
TEXTS = tuple(name for name in CORPORA if name != "wide")
ANSWERS = (10, 100, 1_000)
WORDS = 5
FEWEST_ROWS_PER_ANSWER = 20
"""A word that more than one row in twenty has is not a middling one."""
FIRST_MS, AGAIN_MS = {10: 5.0, 100: 10.0, 1_000: 40.0}, 3.0
SCAN_SHARE = 0.5
"""Goals: CPU milliseconds of an answer, and the share of DuckDB's scan that a first one may take."""
EVERY_ROW = 100_000_000

Search = Callable[[str], int]
"""Fetch the rows of a word, and say how many there are."""


def word_of(answer: int, number: int) -> str:
    """A word that no text has."""
    return f"zq{answer}n{number}"


def prepare(directory: Path, size: str) -> None:
    """The texts of every corpus that is there, with words put into some of them, and three small columns."""
    for name in TEXTS:
        texts = list(CORPORA[name](count_of(size)).get("text", ()))
        dice = random.Random(17)
        for answer in answers_in(len(texts)):
            for number in range(WORDS):
                for row in dice.sample(range(len(texts)), answer):
                    texts[row] += f" {word_of(answer, number)}"
        if texts:
            columns = {
                "id": pa.array(range(len(texts)), pa.int64()),
                "level": pa.array(dice.choices(("INFO", "WARN", "ERROR"), k=len(texts))),
                "status": pa.array([dice.randrange(200, 600) for _ in texts], pa.int32()),
                "text": pa.array(texts, pa.string()),
            }
            pq.write_table(pa.table(columns), directory / f"{name}.parquet", compression="zstd")


def answers_in(rows: int) -> list[int]:
    """The sizes of answers that a table of so many rows is asked for."""
    return [answer for answer in ANSWERS if answer * FEWEST_ROWS_PER_ANSWER <= rows]


def _ours(source: Path, place: Path) -> Search:
    import indextables as it

    if not it.Table.exists(place):
        it.write(place, pq.read_table(source), text="text")
    table = it.open(place)
    return lambda word: table.search(word).read_all().num_rows


def _lance(source: Path, place: Path) -> Search:
    import lancedb

    database = lancedb.connect(str(place))
    if "t" not in database.table_names():
        database.create_table("t", pq.read_table(source)).create_fts_index(
            "text", with_position=True, stem=False, remove_stop_words=False, ascii_folding=False,
            max_token_length=None,
        )  # fmt: skip
    table = database.open_table("t")
    return lambda word: table.search(word, query_type="fts").limit(EVERY_ROW).to_arrow().num_rows


def _sqlite(source: Path, place: Path) -> Search:
    place.mkdir(exist_ok=True)
    made = (place / "t.db").exists()
    database = sqlite3.connect(place / "t.db")
    if not made:
        rows = zip(*pq.read_table(source).to_pydict().values(), strict=True)
        database.execute(
            "CREATE VIRTUAL TABLE t USING fts5(id UNINDEXED, level UNINDEXED, status UNINDEXED, text)"
        )
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        database.commit()
    return lambda word: len(database.execute("SELECT * FROM t WHERE t MATCH ?", [word]).fetchall())


def _scan(source: Path, place: Path) -> Search:
    import duckdb

    del place
    database = duckdb.connect()
    query = f"SELECT * FROM read_parquet('{source}') WHERE contains(text, ?)"
    return lambda word: database.execute(query, [word]).to_arrow_table().num_rows


OPEN = {"ours": _ours, "lance": _lance, "sqlite": _sqlite, "scan": _scan}


def _measured(directory: Path, side: str, text: str, answer: int) -> Operation:
    source = directory / f"{text}.parquet"
    if not source.exists() or answer not in answers_in(pq.read_metadata(source).num_rows):
        return lambda: {"left_out": "the text is not there, or has too few rows"}
    search = OPEN[side](source, directory / f"{side}-{text}")
    # A word of another answer loads what is loaded late.
    search(word_of(ANSWERS[0], 0))

    def milliseconds(word: str) -> float:
        began = time.process_time()
        rows = search(word)
        spent = (time.process_time() - began) * 1e3
        if rows != answer:
            raise SystemExit(f"{side}: {rows} rows of {word} in {text}, not {answer}")
        return spent

    def operation() -> Mapping[str, Any]:
        words = [word_of(answer, number) for number in range(1, WORDS)]
        first = [milliseconds(word) for word in words]
        again = [milliseconds(word) for word in words]
        return {
            "rows": answer,
            "first_ms": round(statistics.median(first), 2),
            "again_ms": round(statistics.median(again), 2),
        }

    return operation


def __getattr__(name: str) -> Callable[[Path], Operation]:
    """The function of a case: `ours_prose_100` fetches the hundred rows of a word from prose."""
    side, text, answer = (*name.split("_"), "", "", "")[:3]
    if side not in SIDES or text not in TEXTS:
        raise AttributeError(name)
    return lambda directory: _measured(directory, side, text, int(answer))


def _cases() -> Iterator[Case]:
    for text in TEXTS:
        for answer in ANSWERS:
            for side, system in SIDES.items():
                # Lance cuts words at white space only by another tokenizer, which Chinese and Japanese lack.
                if side == "lance" and text in ("chinese", "japanese"):
                    continue
                needs = "lancedb" if side == "lance" else None
                yield Case(f"{answer} rows of {text}", system, f"{side}_{text}_{answer}", needs=needs)


def goals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """First and repeated answers against their goals, and against the best scan of the same run."""
    lines = []
    for case, size in dict.fromkeys((row["case"], row["size"]) for row in rows):
        by_system = {
            row["system"]: row["facts"]
            for row in rows
            if (row["case"], row["size"]) == (case, size) and "left_out" not in row["facts"]
        }
        if OURS not in by_system or SCAN not in by_system:
            continue
        ours, scan = by_system[OURS], by_system[SCAN]
        share = ours["first_ms"] / scan["first_ms"]
        first_goal = FIRST_MS[ours["rows"]]
        others = ", ".join(
            f"{system} {facts['first_ms']} and {facts['again_ms']}"
            for system, facts in by_system.items()
            if system not in (OURS, SCAN)
        )
        lines.append(
            f"{case}, {size}: first {ours['first_ms']} ms, at most {first_goal}: {_verdict(ours['first_ms'], first_goal)}; "
            f"again {ours['again_ms']} ms, at most {AGAIN_MS}: {_verdict(ours['again_ms'], AGAIN_MS)}; "
            f"{share:.2f}x of DuckDB's scan, at most {SCAN_SHARE}x: {_verdict(share, SCAN_SHARE)} ({others})"
        )
    return lines


def _verdict(value: float, most: float) -> str:
    return "met" if value <= most else "missed"


TARGET = Target(
    "rows", prepare, list(_cases()), rival=SCAN, packages=("pyarrow", "duckdb", "lancedb"), goals=goals
)
