"""Count the modules that append, search, MERGE INTO and a request to `serve` pass through.

    python scripts/journeys.py [append search merge serve] [--modules | --functions]

Each journey is made twice and the second time is counted: what is loaded or compiled once is no part of
the way. With --modules, each module is printed with the first of its functions that is called; with
--functions, every function. Both are in the order of their first calls.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.request import Request, urlopen

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import indextables as it
from support.served import TOKEN, serving

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("message", pa.string())])
OPTIONS = {"indexing.typemap.message": "text"}
Work = Callable[[], Any]


def rows(number: int) -> pa.Table:
    """Two rows with a word of their own: parts of an index are cached by their contents."""
    texts = [f"an error, then a timeout {number}", f"all quiet {number}"]
    return pa.table({"id": [number, -number], "day": ["2024-01-01", "2024-01-02"], "message": texts}, SCHEMA)


def append(table: it.Table, number: int) -> Work:
    """`table.append(rows)`."""
    return lambda: table.append(rows(number))


def search(table: it.Table, number: int) -> Work:
    """`table.search(query, where=...)` of rows that nobody searched before."""
    table.append(rows(number))
    opened = it.Table.open(table.uri)
    return lambda: opened.search("error AND timeout", where="day = '2024-01-01'").read_all()


def merge(table: it.Table, number: int) -> Work:
    """MERGE INTO with a row to change and a row to insert."""
    from indextables.spark.session import start_local

    spark = start_local("journeys")
    spark.sql(f"CREATE TABLE IF NOT EXISTS journey USING indextables LOCATION '{table.uri}'")
    return lambda: spark.sql(
        f"MERGE INTO journey t USING (SELECT explode(array(1L, {number}L)) AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET message = 'changed' "
        "WHEN NOT MATCHED THEN INSERT (id, day, message) VALUES (s.id, '2024-01-02', 'new')"
    )


def serve(table: it.Table, number: int) -> Work:
    """`indextables serve` and one search in its page."""
    table.append(rows(number))

    def work() -> None:
        with serving(table.uri) as address:
            url = f"{address}/api/tables/t/rows?q=error%20AND%20timeout"
            request = Request(url, headers={"authorization": f"Bearer {TOKEN}"})  # noqa: S310
            with urlopen(request) as answer:  # noqa: S310
                assert b"timeout" in answer.read()

    return work


JOURNEYS = {"append": append, "search": search, "merge": merge, "serve": serve}


class Trace:
    """Notes calls in every thread that starts after it, also in those that Spark calls Python in."""

    def __init__(self) -> None:
        self._functions: dict[str, None] | None = None
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def functions_of(self, work: Work) -> list[str]:
        """The functions of the package that some work enters, in the order of their first calls."""
        noted = self._functions = {}
        work()
        self._functions = None
        return list(noted)

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if self._functions is not None and event == "call" and module.startswith("indextables."):
            self._functions.setdefault(f"{module.removeprefix('indextables.')}.{frame.f_code.co_qualname}")


def functions_of(name: str, trace: Trace) -> list[str]:
    """The functions that one journey enters when it is made for the second time."""
    with tempfile.TemporaryDirectory() as directory:
        table = it.Table.create(str(Path(directory, "t")), SCHEMA, ["day"], options=OPTIONS)
        table.append(rows(1))
        JOURNEYS[name](table, 2)()
        return trace.functions_of(JOURNEYS[name](table, 3))


def module_of(function: str) -> str:
    """The module of a dotted name such as `table.Table.append`."""
    parts = function.split(".")
    source = Path(it.__file__).parent
    while parts and not source.joinpath(*parts).with_suffix(".py").is_file():
        if source.joinpath(*parts, "__init__.py").is_file():
            break
        parts.pop()
    return ".".join(parts)


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(JOURNEYS))
    parser.add_argument("--modules", action="store_true")
    parser.add_argument("--functions", action="store_true")
    arguments = parser.parse_args()
    trace = Trace()
    for name in arguments.names:
        functions = functions_of(name, trace)
        first: dict[str, str] = {}
        for function in functions:
            first.setdefault(module_of(function), function)
        listed = functions if arguments.functions else list(first.values())
        sys.stdout.write(f"{name}: {len(first)} modules\n")
        if arguments.modules or arguments.functions:
            sys.stdout.writelines(f"  {function}\n" for function in listed)


if __name__ == "__main__":
    main()
