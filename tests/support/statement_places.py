"""Where a statement is run, and whether it gave its rows and made its one commit there.

A place says how names are written and where their tables lie. `wrong` runs
statements in one, whoever sends them: a session, a Connect client, or a shell
that prints rows as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import indextables as it
from support.named_statements import Said

Rows = list[tuple[Any, ...]]
Run = Callable[[str], Rows]


@dataclass(frozen=True)
class Place:
    """Names in a catalog, or paths where `prefix` is None; `base` is the directory of the tables."""

    prefix: str | None
    base: Path

    @property
    def paths(self) -> Mapping[str, Path]:
        return {name: self.base / name for name in "tuv"}

    @property
    def words(self) -> Mapping[str, str]:
        """What stands for the names in braces."""
        prefix = self.prefix or ""
        tables = {
            name: f"indextables.`{path}`" if self.prefix is None else f"{prefix}{name}"
            for name, path in self.paths.items()
        }
        return {**tables, "q": prefix, "db": prefix.rstrip("."), "last": "t"}

    def version(self, on: str) -> int:
        path = str(self.paths[on.strip("{}")])
        return it.Table.open(path).version if it.Table.exists(path) else -1


def wrong(
    run: Run, place: Place, statements: Iterable[Said], spark_version: str, *, text: bool = False
) -> list[str]:
    """What is wrong with each statement that is; `text` where rows come as they are printed."""
    have = _number(spark_version)
    runs = (
        said if said.since is None or _number(said.since) <= have else said.older
        for said in statements
        if not (said.named and place.prefix is None)
    )
    return [found for said in runs if said is not None and (found := _outcome(run, place, said, text))]


def _number(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def printed(rows: Rows) -> Rows:
    """Rows as spark-sql prints them."""
    return [
        tuple(
            "NULL" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
            for value in row
        )
        for row in rows
    ]


def _outcome(run: Run, place: Place, said: Said, text: bool) -> str | None:
    """What is wrong with a statement; None when nothing is."""
    sql = said.sql.format(**place.words)
    before = place.version(said.on)
    try:
        rows = run(sql)
    except Exception as error:
        if said.refused is None or not re.search(said.refused, str(error)):
            return f"{sql}: {type(error).__name__} {str(error)[:600]}"
        return None if place.version(said.on) == before else f"{sql}: refused, and has made a version"
    if said.refused is not None:
        return f"{sql}: not refused, gave {rows}"
    wanted = printed(said.rows) if text and said.rows is not None else said.rows
    if wanted is not None and rows != wanted:
        return f"{sql}: gave {rows}, not {wanted}"
    if said.has is not None and said.has not in str(rows):
        return f"{sql}: gave {rows}, without {said.has}"
    return _wrong_commit(place, said, sql, before)


def _wrong_commit(place: Place, said: Said, sql: str, before: int) -> str | None:
    after = place.version(said.on)
    if said.op is None:
        created = before == -1 and after == 0
        return None if after in {before, -1} or created else f"{sql}: made version {after}, expected none"
    newest = it.Table.open(str(place.paths[said.on.strip("{}")])).history(1).to_pylist()[0]
    first = before == -1 and after == 1  # a table that is created with its rows
    if (after != before + said.versions and not first) or newest["operation"] != said.op:
        return f"{sql}: versions {before} to {after} by {newest['operation']}, expected one {said.op}"
    return None
