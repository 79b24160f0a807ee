"""A table whose rows were deleted by vectors answers everything as one that was written without those rows."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter

import pyarrow as pa
import pytest

import indextables as it
from indextables.ops.read.follow import Follower
from indextables.split.open_splits import forget_splits

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.string()),
        ("kind", pa.string()),
        ("message", pa.string()),
        ("amount", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
INDEXED = {
    "indexing.typemap.message": "text,substring",
    "indexing.typemap.kind": "string",
    "checkpoint.interval": "3",
}
VECTORS = {**INDEXED, "deletionVectors.enabled": "true", "deletionVectors.foldShare": "1.0"}
WORDS = ["disk", "error", "timeout", "node", "seven", "restart", "ünïcode", "retry"]
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
QUERIES = [
    "error",
    "disk AND timeout",
    '"disk error"',
    "time*",
    "NOT error",
    "kind:b",
    "seven OR ünïcode",
    "message:[a TO f]",
]
CONDITIONS = [
    "id < 40", "kind = 'b'", "message LIKE '%sk err%'", "amount > 0.5 OR amount IS NULL", "message IS NULL",
    "at >= '2026-01-03T00:00:00Z'", "day = '1' AND id % 2 = 0",
]  # fmt: skip


def random_rows(rng, first, count):
    """Rows with nulls, and texts both shorter and longer than the lengths that an index keeps exactly."""
    rows = []
    for number in range(first, first + count):
        size = rng.choice([0, 3, 3, 8, 8, 45, 130])
        rows.append(
            {
                "id": number,
                "day": str(number % 2),
                "kind": rng.choice(["a", "b", "c", None]),
                "message": None if rng.random() < 0.1 else " ".join(rng.choices(WORDS, k=size)),
                "amount": rng.choice([None, 0.0, 0.25, 1.5, float("nan")]),
                "at": START + dt.timedelta(hours=number),
            }
        )
    return rows


def arrow(rows):
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.fixture(scope="module", params=[0, 1, 2], ids=["whole", "partitioned", "checkpointed"])
def pair(request, tmp_path_factory):
    """The table with vectors, and the same rows written without the deleted ones."""
    rng = random.Random(request.param)
    root = tmp_path_factory.mktemp("vectors")
    partition_by = ["day"] if request.param == 1 else []
    table = it.Table.create(root / "t", SCHEMA, partition_by=partition_by, options=VECTORS)
    rows = []
    for part in range(3):
        new = random_rows(rng, 100 * part, 100)
        rows += new
        table.append(arrow(new))
    gone = set(rng.sample(range(300), 60))
    gone |= {number for number in range(300) if 120 <= number < 160}
    for some in (sorted(gone)[::2], sorted(gone)[1::2]):
        table.delete(f"id IN ({', '.join(map(str, some))})")
    if request.param == 2:
        table.checkpoint()
        forget_splits()
        table = it.open(root / "t", options={"checkpoint.format": "parquet"})
        table.checkpoint()
        table = it.open(root / "t")
    left = [row for row in rows if row["id"] not in gone]
    plain = it.Table.create(root / "plain", SCHEMA, partition_by=partition_by, options=INDEXED)
    for part in range(3):
        plain.append(arrow([row for row in left if row["id"] // 100 == part]))
    assert table.files()["num_deleted"].null_count == 0
    return table, plain


def shown(rows, *, ordered=False):
    """Rows as values that can be compared: NaN equals itself, and order counts only where it is promised."""
    listed = [tuple(sorted((key, repr(value)) for key, value in row.items())) for row in rows]
    return listed if ordered else sorted(listed)


def read(rows):
    return (rows.to_arrow() if hasattr(rows, "to_arrow") else pa.table(rows)).to_pylist()


def net_changes(table, where=None):
    """What all changes together brought: how often each row came, less how often it left."""
    counts = Counter()
    for row in read(table.changes(0, where=where)):
        kind, _, _ = (row.pop(f"_{name}") for name in ("change_type", "commit_version", "commit_timestamp"))
        counts[shown([row])[0]] += 1 if kind in ("insert", "update_postimage") else -1
    return sorted((row, count) for row, count in counts.items() if count)


READERS = {
    "changes": lambda table: [net_changes(table, where) for where in [None, *CONDITIONS[:2]]],
    "scan": lambda table: [shown(read(table.scan(where))) for where in [None, *CONDITIONS]],
    "scan sorted": lambda table: [
        shown(read(table.scan(where, sort="amount DESC, id", limit=17)), ordered=True) for where in [None, *CONDITIONS]
    ],
    "scan limited": lambda table: [
        len(read(table.scan(where, columns=["id"], limit=limit))) for where in [None, *CONDITIONS] for limit in (0, 7, 1000)
    ],
    "count": lambda table: [
        table.count(where, query=query) for where in [None, *CONDITIONS[:4]] for query in [None, *QUERIES]
    ],
    "len": len,
    "search": lambda table: [
        shown(read(table.search(query, where))) for where in [None, CONDITIONS[0]] for query in QUERIES
    ],
    "search sorted": lambda table: [
        shown(read(table.search(query, sort="id DESC", limit=5)), ordered=True) for query in QUERIES
    ],
    "search scored": lambda table: [
        sorted((row["id"], row["_score"]) for row in read(table.search(query, where, score=True)))
        for where in [None, CONDITIONS[0], CONDITIONS[3]]
        for query in QUERIES
    ],
    "search best": lambda table: [
        [row["_score"] for row in read(table.search(query, where, limit=limit, score=True))]
        for where in [None, CONDITIONS[3]]
        for query in QUERIES
        for limit in (1, 4, 50)
    ],
    "search highlights": lambda table: [
        shown(read(table.search(query, columns=["id"], highlight=True))) for query in QUERIES[:2]
    ],
    "aggregate": lambda table: [
        shown(
            read(
                table.aggregate(
                    group,
                    {"n": "count(*)", "m": "count(message)", "least": "min(id)", "most": "max(at)", "s": "sum(id)"},
                    query=query,
                    where=where,
                )
            )
        )
        for group in (None, "kind", "day", ["day", "kind"])
        for query in (None, "error")
        for where in (None, *CONDITIONS[:3])
    ],
    "facets": lambda table: [
        shown(read(table.facets(column, query=query, top=None)))
        for column in ("kind", "day")
        for query in (None, "disk")
    ],
    "histogram": lambda table: [
        shown(read(table.histogram("at", "day", query=query))) for query in (None, "disk")
    ] + [shown(read(table.histogram("id", 50)))],
    "sample": lambda table: shown(read(table.sample(10_000))),
    "head": lambda table: len(read(table.head(10_000))),
    "to_pandas": lambda table: sorted(table.to_pandas()["id"]),
    "to_polars": lambda table: sorted(table.to_polars()["id"]),
    "arrow stream": lambda table: shown(pa.table(table).to_pylist()),
    "describe": lambda table: table.describe().num_rows,
    "sql": lambda table: [
        shown(it.sql(text.replace("{t}", f"'{table.uri.removeprefix('file://')}'")).to_pylist())
        for text in (
            "SELECT count(*) AS n FROM {t}",
            "SELECT kind, count(*) AS n FROM {t} GROUP BY kind",
            "SELECT id FROM {t} WHERE message indexquery 'error' OR id < 20",
            "SELECT id FROM {t} WHERE NOT message indexquery 'error'",
            "SELECT max(id) AS m, min(amount) AS a FROM {t} WHERE day = '1'",
        )
    ],
    "follow": lambda table: sorted(
        row["id"] for rows in follow_from_first_delete(table) for row in rows.to_pylist()
    ),
    "explain_score": lambda table: explained(table),
}  # fmt: skip


def follow_from_first_delete(table):
    """A deletion brings no new row, so that a follower that begins before it sees none of its splits again."""
    return list(Follower(table.log, after=min(3, table.version)).poll())


def explained(table):
    query = "error"
    best = table.search(query, columns=["id"], score=True, limit=1).to_arrow()
    at = table.files()["path"].to_pylist()
    parts = [table.explain_score(query, path, row) for path in at for row in range(40)]
    scores = [part["score"].to_pylist()[0] for part in parts if part is not None and part.num_rows]
    return bool(scores) and best["_score"][0].as_py() > 0


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_sees_the_live_rows_alone(pair, reader):
    table, plain = pair
    assert READERS[reader](table) == READERS[reader](plain)


NOT_READERS = {
    "create", "open", "exists", "log", "history", "skipped_files", "refresh", "files", "append", "overwrite", "delete",
    "update", "merge", "restore", "merge_splits", "purge", "purge_rows", "checkpoint", "suggest_statistics", "drop_partitions",
    "truncate_history", "update_properties", "constraints", "add_constraint", "drop_constraint", "uri", "version",
    "schema", "add_column", "rename_column", "drop_column", "move_column", "stored_names", "time_zone", "spark_schema", "partition_columns", "protocol", "metadata", "last_scan", "snapshot", "writer",
}  # fmt: skip
ON_SPARK = {"to_df", "search_df"}
"""Tested in tests/spark/test_deletion_vectors.py."""


def test_every_public_reader_of_a_table_has_a_law_here():
    public = {name for name in dir(it.Table) if not name.startswith("_")}
    tested = {name.split()[0] for name in READERS}
    assert public - NOT_READERS - ON_SPARK - tested == set()


@pytest.mark.parametrize("fold", ["merge_splits", "purge_rows"])
def test_folding_changes_no_answer(pair, tmp_path, fold):
    import shutil

    table, plain = pair
    copy = tmp_path / "t"
    shutil.copytree(table.uri.removeprefix("file://"), copy)
    folded = it.open(copy, options={"merge.targetBytes": "1"})
    getattr(folded, fold)()
    assert folded.files()["num_deleted"].null_count == folded.files().num_rows
    for name, reader in READERS.items():
        if name not in {"follow", "explain_score"}:
            assert reader(folded) == reader(plain), name
