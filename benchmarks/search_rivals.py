"""The rivals of a search in log lines that keep an index of their own: Lance and Infino, from PyPI."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import Operation
from benchmarks.log_lines import COMMON, RARE, SCHEMA

EVERY = 100_000_000
WARM = 50


def stored(directory: Path) -> int:
    """Bytes of all files below a directory."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def lines_of(directory: Path) -> Any:
    """The prepared lines."""
    import pyarrow as pa

    with pa.ipc.open_file(pa.OSFile(str(directory / "lines.arrow"))) as reader:
        return reader.read_all()


def timed(work: Callable[[], Any], repeats: int) -> tuple[Any, float, float]:
    """What work gives, and its wall and CPU seconds: one run to warm up, then the mean of some."""
    work()
    cpu, began = time.process_time(), time.perf_counter()
    for _ in range(repeats):
        found = work()
    return found, (time.perf_counter() - began) / repeats, (time.process_time() - cpu) / repeats


def facts_of(rows: int, seconds: float, cpu: float) -> Mapping[str, Any]:
    """What a warm search cost; too short a time for the digits that results keep."""
    return {
        "seconds": seconds,
        "rows": rows,
        "microseconds": round(seconds * 1e6, 1),
        "cpu_us": round(cpu * 1e6, 1),
    }


class Lance:
    """LanceDB with a full-text index that keeps positions, no stemming and no stop words: the same words."""

    def __init__(self, directory: Path) -> None:
        import lancedb

        warnings.simplefilter("ignore")
        self.place = directory / "lance"
        self.rows = lines_of(directory)
        self.db = lancedb.connect(str(self.place))

    def build(self) -> Mapping[str, Any]:
        table = self.db.create_table("lines", self.rows, mode="overwrite")
        plain = stored(self.place)
        table.create_fts_index(
            "message", with_position=True, replace=True, stem=False, remove_stop_words=False,
            ascii_folding=False, max_token_length=None,
        )  # fmt: skip
        return {"bytes": stored(self.place), "index_bytes": stored(self.place) - plain}

    def search(self, word: str) -> Any:
        return self.opened().search(word, query_type="fts").limit(EVERY).to_arrow()

    def opened(self) -> Any:
        if "lines" not in self.db.table_names():
            self.build()
        return self.db.open_table("lines")


class Infino:
    """Infino: Parquet with an embedded index."""

    def __init__(self, directory: Path) -> None:
        import pyarrow as pa

        self.place = directory / "infino"
        rows = lines_of(directory)
        fields = [
            field.with_type(pa.large_utf8()) if pa.types.is_string(field.type) else field for field in SCHEMA
        ]
        self.rows = rows.cast(pa.schema(fields))

    def build(self) -> Mapping[str, Any]:
        import infino

        shutil.rmtree(self.place, ignore_errors=True)
        db = infino.connect(str(self.place))
        table = db.create_table("lines", self.rows.schema, infino.IndexSpec().fts("message"))
        table.append(self.rows)
        return {"bytes": stored(self.place)}

    def opened(self) -> Any:
        import infino

        if not self.place.exists():
            self.build()
        return infino.connect(str(self.place)).open_table("lines")


def build_lance(directory: Path) -> Operation:
    """Rows and a full-text index with positions."""
    return Lance(directory).build


def build_infino(directory: Path) -> Operation:
    """Rows and their index."""
    return Infino(directory).build


def _lance(word: str, repeats: int) -> Callable[[Path], Operation]:
    def case(directory: Path) -> Operation:
        rival = Lance(directory)
        table = rival.opened()

        def operation() -> Mapping[str, Any]:
            search = lambda: table.search(word, query_type="fts").limit(EVERY).to_arrow()  # noqa: E731
            found, seconds, cpu = timed(search, repeats)
            return facts_of(found.num_rows, seconds, cpu)

        return operation

    return case


def _infino(word: str, repeats: int) -> Callable[[Path], Operation]:
    def case(directory: Path) -> Operation:
        table = Infino(directory).opened()

        def operation() -> Mapping[str, Any]:
            columns = SCHEMA.names
            found, seconds, cpu = timed(lambda: table.token_match("message", word, None, columns), repeats)
            return facts_of(found.num_rows, seconds, cpu)

        return operation

    return case


def count_infino(directory: Path) -> Operation:
    """A rare word counted."""
    table = Infino(directory).opened()

    def operation() -> Mapping[str, Any]:
        return facts_of(*timed(lambda: table.count("message", RARE), WARM))

    return operation


fetch_ten_lance, fetch_many_lance = _lance(RARE, 10), _lance(COMMON, 2)
fetch_ten_infino, fetch_many_infino = _infino(RARE, 10), _infino(COMMON, 2)
