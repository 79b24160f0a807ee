"""Sources for companion indexes, and the one law: every answer is that of a table with the source's rows alone.

The oracle is a table of ours that holds the live rows of the source at that version, written anew; what it says is
checked elsewhere. A few answers are also found by plain Python.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import indextables as it
from indextables.companion.make import BuildRequest, run_build
from indextables.companion.merge import merge_splits
from indextables.companion.refresh import run_refresh
from indextables.companion.settings import ColumnChoice
from indextables.ops.rewrite.merge import MergeRequest
from indextables.options import Options
from support.deltarows import inline_vector, put_file, stored_vector
from support.deltatables import KINDS, DeltaLog, remove

WORDS = ["disk", "full", "node", "timeout", "error", "retry", "alpha", "beta"]
RARE = [f"x{number}" for number in range(40)]
LEVELS = ["INFO", "WARN", "ERROR", None]


def text_of(rng: random.Random) -> str | None:
    """A message: mostly short, at times longer than an index stores the length of exactly."""
    if rng.random() < 0.05:
        return None
    length = rng.choice([1, 2, 3, 5, 8, 8, 61])
    return " ".join(rng.choice(RARE if rng.random() < 0.2 else WORDS) for _ in range(length))


def rows_of(rng: random.Random, first: int, count: int) -> pa.Table:
    """Rows with ids of their own."""
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "level": pa.array([rng.choice(LEVELS) for _ in range(count)], pa.string()),
            "n": pa.array([rng.randrange(100) for _ in range(count)], pa.int32()),
            "msg": pa.array([text_of(rng) for _ in range(count)], pa.string()),
        }
    )


QUERIES = [
    "disk", "disk AND full", "disk OR x3", "error NOT disk", '"disk full"', '"disk full"~2', "x7", "x1*", "tim*",
    "msg:retry", "disk full", "alpha^2 beta", "level:ERROR AND disk", "*", "nowhere", "msg:[x1 TO x3]",
    "di?k AND node", "full~1", "level:WARN", "+node -error", "(alpha OR beta) AND timeout",
]  # fmt: skip
FILTERS = [
    None, None, "n < 50", "level = 'ERROR'", "id % 3 = 0", "n >= 20 AND level IS NULL", "msg LIKE '%x1%'",
    "level IN ('INFO', 'WARN')", "n > 1000",
]  # fmt: skip
COLUMNS = {"msg": "text", "level": "string"}
SINGLE = Options.of({"write.targetSplitBytes": "1"})
"""A split for each file, so that a refresh has several commits and there is something to merge."""
OPERATIONS: dict[str, Callable[[it.TransactionLog, str], Any]] = {
    "build": lambda log, source: run_build(log, BuildRequest(source, ColumnChoice.of({"msg": "text"}))),
    "refresh": lambda log, _: run_refresh(log),
    "merge": lambda log, _: merge_splits(log, MergeRequest()),
}
"""What is done to a companion of a source, or to a place where one is to be."""


def questions(rng: random.Random, count: int) -> list[tuple[str, str | None]]:
    """Some queries with filters."""
    return [(rng.choice(QUERIES), rng.choice(FILTERS)) for _ in range(count)]


def oracle_of(
    path: Any, rows: pa.Table, names: dict[str, str] | None = None, indexed: dict[str, str] = COLUMNS
) -> it.Table:
    """A table of ours with these rows, indexed as companions here are."""
    kinds = {(names or {}).get(column, column): kind for column, kind in indexed.items()}
    options = {f"indexing.typemap.{column}": kind for column, kind in kinds.items()}
    return it.Table.create(path, rows.schema, options=options, data=rows if rows.num_rows else None)


def ids(reader: Any) -> list[int]:
    return sorted(reader.read_all().column("id").to_pylist())


def assert_alike(
    table: it.Table,
    oracle: it.Table,
    asked: list[tuple[str, str | None]],
    note: Any = None,
    *,
    level: str = "level",
    n: str = "n",
) -> int:
    """Ask both the same and compare; returns the number of questions."""
    assert table.count() == oracle.count(), note
    assert ids(table.scan(columns=["id"])) == ids(oracle.scan(columns=["id"])), note
    number = 2
    for at, (query, where) in enumerate(asked):
        about = (note, query, where)
        assert ids(table.search(query, where, columns=["id"])) == ids(
            oracle.search(query, where, columns=["id"])
        ), about
        assert table.count(where, query=query) == oracle.count(where, query=query), about
        assert_same_ranking(table, oracle, query, where, about)
        number += 3
        if at % 3 == 0:
            assert table.count(where) == oracle.count(where), about
            one, other = (
                {row["value"]: row["count"] for row in item.facets(level, query, where, top=None).to_pylist()}
                for item in (table, oracle)
            )
            assert one == other, about
            by = {"rows": "count(*)", "most": "max(id)", "total": f"sum({n})"}
            one, other = (
                sorted(item.aggregate(level, by, query, where).to_pylist(), key=str)
                for item in (table, oracle)
            )
            assert one == other, about
            one, other = (
                item.search(query, where, limit=7, sort=f"{n} DESC, id").read_all().to_pylist()
                for item in (table, oracle)
            )
            assert one == other, about
            one, other = (item.histogram(n, 10, query, where).to_pylist() for item in (table, oracle))
            assert one == other, about
            number += 5
    return number


def assert_same_ranking(
    table: it.Table, oracle: it.Table, query: str, where: str | None, about: Any, limit: int = 10
) -> None:
    """The best rows have the same scores, and are the same but for those that share the last score."""
    one, other = (
        item.search(query, where, columns=["id"], limit=limit, score=True).read_all().to_pylist()
        for item in (table, oracle)
    )
    scores = [[round(row["_score"], 4) for row in rows] for rows in (one, other)]
    assert scores[0] == scores[1], (about, one, other)
    last = scores[0][-1] if scores[0] else None
    chosen = [{row["id"] for row in rows if round(row["_score"], 4) != last} for rows in (one, other)]
    assert chosen[0] == chosen[1], about


class Indexes:
    """One source indexed three times: kept up to date, left behind, and merged in part."""

    def __init__(self, source: str, root: Path, columns: dict[str, str], rng: random.Random) -> None:
        # A split for each file, so that there is something to merge.
        single = {"write.targetSplitBytes": "1"}
        drawn = single if rng.random() < 0.5 else None
        places = {"fresh": drawn, "stale": drawn, "half merged": single}
        self.made = {
            name: it.companion(source, str(root / name), columns, options) for name, options in places.items()
        }
        self.rng = rng

    def before_commit(self) -> None:
        """Bring the one that is left behind up to date at times: the commit that follows is not in it."""
        if self.rng.random() < 0.4:
            self.made["stale"].refresh()

    def after_commit(self) -> None:
        """Bring the other two up to date; of one, some splits are merged, and at times some are lost."""
        self.made["fresh"].refresh()
        half = self.made["half merged"]
        half.refresh()
        splits = half.status().splits
        if splits > 1:
            most = max(2, splits // 2)
            it.Table.open(half.uri).merge_splits(max_source_splits=most, max_dest_splits=1)
        if self.rng.random() < 0.15:
            log = it.TransactionLog.open(half.uri)
            log.remove_files([add.path for add in log.list_files()][::2])

    def tables(self, version: int | None = None) -> dict[str, it.Table]:
        """The source through each of them."""
        return {name: it.Table.open(made.uri, version=version) for name, made in self.made.items()}

    def assert_alike(
        self,
        oracle: it.Table,
        questions: list[tuple[str, str | None]],
        note: Any,
        version: int | None = None,
        **names: str,
    ) -> int:
        """Ask all of them the same; returns the number of questions, each of which was asked three times."""
        tables = self.tables(version)
        if version is None:
            newest = tables["stale"].version
            log = it.TransactionLog.open(self.made["stale"].uri)
            indexed = max(txn.version for txn in log.snapshot().txns.values())
            assert indexed < newest, (note, "not stale")
        numbers = {
            assert_alike(table, oracle, questions, (note, name), **names) for name, table in tables.items()
        }
        (number,) = numbers
        return number


def bytes_of(directory: Any) -> dict[str, str]:
    """What every file of a directory holds."""
    root = Path(directory)
    files = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@dataclass
class CraftedSource:
    """A Delta table whose log is written here: deletion vectors, mapped columns, files of several row groups."""

    log: DeltaLog
    rng: random.Random
    mapped: bool
    names: dict[str, str]
    """The names of the columns now, by the names that the rows are made with."""
    kinds: dict[str, str]
    indexed: dict[str, str] = field(default_factory=lambda: dict(COLUMNS))
    """The columns that companions index, and how; one that was dropped is no longer among them."""
    drops: int = 0
    """How often `level` was dropped and added again, as another column of that name."""
    stored: dict[str, pa.Table] = field(default_factory=dict)
    """All rows of each live file, by path."""
    hidden: dict[str, set[int]] = field(default_factory=dict)
    number: int = 0

    @classmethod
    def make(cls, store: Any, rng: random.Random) -> CraftedSource:
        mapped = rng.random() < 0.5
        names = {name: name for name in ("id", "level", "n", "msg")}
        kinds = {"id": "long", "level": "string", "n": "integer", "msg": "string"}
        source = cls(None, rng, mapped, names, kinds)  # type: ignore[arg-type]
        source.log = DeltaLog(
            store, source.schema(), features=("deletionVectors", "v2Checkpoint", "columnMapping", "typeWidening"),
            configuration={"delta.columnMapping.mode": rng.choice(["name", "id"])} if mapped else {},
        )  # fmt: skip
        return source

    def physical(self, name: str) -> str:
        again = f"-{self.drops}" if name == "level" and self.drops else ""
        return f"col-{name}{again}" if self.mapped else name

    def column_id(self, name: str) -> int:
        return 100 + self.drops if name == "level" and self.drops else list(self.names).index(name) + 1

    def schema(self) -> str:
        fields = []
        for name, shown in self.names.items():
            metadata = (
                {
                    "delta.columnMapping.id": self.column_id(name),
                    "delta.columnMapping.physicalName": self.physical(name),
                }
                if self.mapped
                else {}
            )
            fields.append({"name": shown, "type": self.kinds[name], "nullable": True, "metadata": metadata})
        return json.dumps({"type": "struct", "fields": fields})

    def rows(self) -> pa.Table:
        """The live rows, under the names that the columns have now."""
        parts = []
        for path, table in self.stored.items():
            keep = [at for at in range(table.num_rows) if at not in self.hidden.get(path, ())]
            parts.append(table.take(pa.array(keep, pa.int64())))
        kinds = {"long": pa.int64(), "integer": pa.int32(), "string": pa.string()}
        schema = pa.schema([(name, kinds[self.kinds[name]]) for name in self.names])
        return pa.concat_tables(
            [schema.empty_table(), *(part.cast(schema) for part in parts)]
        ).rename_columns(list(self.names.values()))

    def append(self, files: int = 1) -> None:
        adds = []
        for _ in range(files):
            self.number += 1
            adds.append(self._put(rows_of(self.rng, self.number * 1000, self.rng.choice([1, 5, 30, 120]))))
        self.log.commit(*adds)

    def _put(self, rows: pa.Table) -> dict[str, Any]:
        path = f"part {self.number} {self.rng.getrandbits(32):08x}.parquet"
        fields = [
            pa.field(self.physical(item.name), item.type, metadata={"PARQUET:field_id": str(self.column_id(item.name))})
            for item in rows.schema
        ]  # fmt: skip
        stored = pa.Table.from_arrays(rows.columns, schema=pa.schema(fields))
        body = put_file(
            self.log, path, stored, group_rows=self.rng.choice([None, 7, 40]),
            statistics=self.rng.random() < 0.8,
        )  # fmt: skip
        self.stored[path] = rows
        return body

    def delete_rows(self) -> None:
        """Hide some rows of a file behind a deletion vector, which may have hidden some before."""
        path = self.rng.choice(list(self.stored))
        count = self.stored[path].num_rows
        hidden = self.hidden.get(path, set()) | set(self.rng.sample(range(count), self.rng.randint(1, count)))
        (key,) = [key for key in self.log.live if key[0] == path]
        old = self.log.live[key]
        make = inline_vector if self.rng.random() < 0.5 else lambda rows: stored_vector(self.log.store, rows)
        changed = {**old, "deletionVector": make(sorted(hidden))}
        self.log.commit(remove(path, dv=old.get("deletionVector")), {"add": changed})
        self.hidden[path] = hidden

    def drop_file(self) -> None:
        path = self.rng.choice(list(self.stored))
        (key,) = [key for key in self.log.live if key[0] == path]
        self.log.commit(remove(path, dv=self.log.live[key].get("deletionVector")))
        del self.stored[path]
        self.hidden.pop(path, None)

    def optimize(self) -> None:
        """Write the live rows of two files into one."""
        paths = self.rng.sample(list(self.stored), 2)
        parts, actions = [], []
        for path in paths:
            keep = [at for at in range(self.stored[path].num_rows) if at not in self.hidden.get(path, ())]
            parts.append(self.stored[path].take(pa.array(keep, pa.int64())))
            (key,) = [key for key in self.log.live if key[0] == path]
            actions.append(remove(path, dv=self.log.live[key].get("deletionVector")))
        for path in paths:
            del self.stored[path]
            self.hidden.pop(path, None)
        self.number += 1
        kind = pa.int64() if self.kinds["n"] == "long" else pa.int32()
        wider = rows_of(self.rng, 0, 0).schema.set(2, pa.field("n", kind))
        actions.append(self._put(pa.concat_tables(part.cast(wider) for part in parts)))
        self.log.commit(*actions)

    def evolve(self) -> None:
        """Rename a column where names are mapped, else widen one."""
        if self.mapped:
            name = self.rng.choice(["msg", "level", "n"])
            self.names[name] = f"{name}{self.number}"
        else:
            self.kinds["n"] = "long"
        self.log.commit({"metaData": {**self.log.metadata, "schemaString": self.schema()}})

    def drop_and_add(self) -> None:
        """Drop a column and add another of its name: rows that are there have none of it."""
        self.drops += 1
        self.indexed.pop("level", None)
        for path, rows in self.stored.items():
            self.stored[path] = rows.set_column(1, "level", pa.nulls(rows.num_rows, pa.string()))
        self.log.commit({"metaData": {**self.log.metadata, "schemaString": self.schema()}})

    def step(self) -> str:
        """One commit, drawn."""
        choices = ["append", "append", "checkpoint"]
        if self.stored:
            choices += ["delete_rows", "delete_rows", "drop_file", "evolve"]
            if self.mapped:
                choices += ["drop_and_add"]
        if len(self.stored) > 1:
            choices += ["optimize"]
        choice = self.rng.choice(choices)
        if choice == "append":
            self.append(self.rng.choice([1, 1, 3]))
        elif choice == "checkpoint":
            self.log.checkpoint(self.rng.choice(KINDS))
        else:
            getattr(self, choice)()
        return choice

    def renamed(self, asked: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
        """Questions in the names that the columns have now."""
        out = []
        for query, where in asked:
            for name in ("msg", "level", "n"):
                query = query.replace(f"{name}:", f"{self.names[name]}:")
                where = where and " ".join(
                    self.names[name] if word == name else word for word in where.split(" ")
                )
            out.append((query, where))
        return out
