"""Count the modules that append, search, MERGE INTO and a request to `serve` pass through.

    python scripts/journeys.py [append search merge serve] [--list]

Each journey is made twice and the second time is counted: what is loaded or compiled once is no part of
the way. With --list, the modules are printed in the order in which they are first entered, each with the
first function that is called there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import indextables as it
from support.journeys import called
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


def crossed(name: str) -> dict[str, str]:
    """The modules of one journey, each with its first function."""
    with tempfile.TemporaryDirectory() as directory:
        table = it.Table.create(str(Path(directory, "t")), SCHEMA, ["day"], options=OPTIONS)
        table.append(rows(1))
        JOURNEYS[name](table, 2)()
        modules: dict[str, str] = {}
        for function in called(JOURNEYS[name](table, 3)):
            modules.setdefault(module_of(function), function)
    return modules


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
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    for name in arguments.names:
        modules = crossed(name)
        sys.stdout.write(f"{name}: {len(modules)} modules\n")
        for function in modules.values() if arguments.list else ():
            sys.stdout.write(f"  {function}\n")


if __name__ == "__main__":
    main()
