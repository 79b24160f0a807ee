"""One release at one table: a request per line of standard input, an answer per line of standard output.

The same file runs on the release before this one and on this tree, so it uses nothing that only one of
them has. It keeps its handle on the table open from one request to the next.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pyarrow as pa

import indextables as it

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("n", pa.int64()), ("text", pa.string())])


class Peer:
    """The verbs of a table in terms of JSON."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.table: Any = None

    def answer(self, request: list[Any]) -> dict[str, Any]:
        """Carry out a request; an error of the release's own tree is an answer too."""
        verb, *values = request
        try:
            if self.table is None and verb != "create":
                self.table = it.Table.open(self.root)
            return {"answer": getattr(self, f"do_{verb}")(*values)}
        except it.errors.Error as error:
            return {"error": type(error).__name__, "message": str(error)}

    # Writing

    def do_create(self, partitioned: bool, options: dict[str, str]) -> int:
        self.table = it.Table.create(self.root, SCHEMA, ["day"] if partitioned else [], options=options)
        return self.table.version

    def do_append(self, rows: list[Any]) -> int:
        return self.table.append(_rows(rows)).version

    def do_grow(self, rows: list[Any]) -> int:
        more = _rows(rows).append_column("extra", pa.array([row[0] for row in rows], pa.int64()))
        return self.table.append(more, merge_schema=True).version

    def do_batch(self, rows: list[Any], number: int) -> int:
        return self.table.append(_rows(rows), txn=it.TxnAction(app_id="app", version=number)).version

    def do_overwrite(self, rows: list[Any], where: str | None) -> int:
        return self.table.overwrite(_rows(rows), where).version

    def do_delete(self, where: str | None, query: str | None) -> int:
        self.table.delete(where, query=query)
        return self.table.version

    def do_update(self, where: str, values: dict[str, Any]) -> int:
        self.table.update(where, values)
        return self.table.version

    def do_merge(self, rows: list[Any], matched: str) -> int:
        self.table.merge(_rows(rows), "id", matched=matched)
        return self.table.version

    def do_restore(self, version: int) -> int:
        self.table.restore(version)
        return self.table.version

    def do_properties(self, properties: dict[str, str | None]) -> int:
        self.table.update_properties(properties)
        return self.table.version

    # Upkeep

    def do_merge_splits(self) -> int:
        self.table.merge_splits()
        return self.table.version

    def do_checkpoint(self) -> int:
        self.table.checkpoint()
        return self.table.version

    def do_truncate(self) -> int:
        self.table.truncate_history()
        return self.table.version

    def do_purge(self) -> int:
        self.table.purge(older_than_hours=24)
        return self.table.version

    def do_reopen(self) -> int:
        self.table = it.Table.open(self.root)
        return self.table.version

    # Reading

    def do_refresh(self) -> int:
        return self.table.refresh().version

    def do_ask(self, where: str, query: str, version: int) -> dict[str, Any]:
        """The newest version by several ways, and an older one."""
        table = self.table.refresh()
        days = table.aggregate("day", {"rows": "count(*)", "sum": "sum(n)"}).to_pylist()
        return {
            "version": table.version,
            "rows": _ids(table.scan()),
            "where": _ids(table.scan(where)),
            "count": table.count(where),
            "search": _ids(table.search(query)),
            "found": table.count(query=query),
            "days": sorted([row["day"], row["rows"], row["sum"]] for row in days),
            "old": _ids(it.Table.open(self.root, version=version).scan()),
        }


def _rows(rows: list[Any]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [[]] * len(SCHEMA)
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)], SCHEMA
    )


def _ids(reader: Any) -> list[Any]:
    rows = reader.read_all().select(SCHEMA.names).to_pylist()
    return sorted(list(row.values()) for row in rows)


if __name__ == "__main__":
    peer = Peer(sys.argv[1])
    print(json.dumps(it.__version__), flush=True)
    for line in sys.stdin:
        print(json.dumps(peer.answer(json.loads(line))), flush=True)
