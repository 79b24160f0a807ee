"""Tables written by delta-rs: no file with a matching row is dropped, and no file it would drop is kept.

What is in a file is read back from the file, and an oracle in plain Python says
which of its rows match.
"""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from indextables.log.delta.snapshot import open_snapshot
from indextables.options import Options
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.tree import Unknown, walk
from support.deltaworlds import ARROW, arrow_array, value_of
from support.predicates import condition
from support.sampled import first_of
from support.spark_meaning import truth

TABLES, PREDICATES = 72, 28
KINDS = [kind for kind in ARROW if kind != "binary"]
OPERATORS = {"<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__", "=": "__eq__"}


def rows_table(columns, rng, first):
    count = rng.choice([1, 2, 5])
    arrays = {"id": pa.array(range(first, first + count), pa.int64())}
    for name, kind in columns.items():
        values = [None if rng.random() < 0.15 else value_of(kind, rng) for _ in range(count)]
        arrays[name] = arrow_array(values, kind)
    return pa.table(arrays)


def history(path, rng):
    """A table of appends, deletes, overwrites and compactions, perhaps with a checkpoint in between."""
    import deltalake

    columns = {f"c{at}": rng.choice(KINDS) for at in range(rng.choice([2, 4, 34]))}
    columns["k"] = rng.choice(["string", "integer", "date"])
    by = ["k"] if rng.random() < 0.5 else None
    for number in range(rng.randint(2, 4)):
        mode = "overwrite" if number and rng.random() < 0.1 else "append"
        deltalake.write_deltalake(path, rows_table(columns, rng, number * 100), mode=mode, partition_by=by)
        if rng.random() < 0.3:
            deltalake.DeltaTable(path).delete(f"id = {number * 100}")
        if rng.random() < 0.3:
            deltalake.DeltaTable(path).create_checkpoint()
    if rng.random() < 0.2:
        deltalake.DeltaTable(path).optimize.compact()
    return columns | {"id": "long"}


def internal(array):
    if pa.types.is_date(array.type):
        return array.cast(pa.int32()).to_pylist()
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64()).to_pylist()
    return array.to_pylist()


def rows_by_file(path, snapshot):
    """The rows of each live file, partition values from the log."""
    found = {}
    for file in snapshot.plan(columns=["partition_values"]).files.to_pylist():
        table = pq.read_table(Path(path) / file["path"], partitioning=None)
        columns = {name: internal(table.column(name).combine_chunks()) for name in table.column_names}
        for name, value in (file["partition_values"] or {}).items():
            kind = snapshot.schema.field(name).type
            columns[name] = internal(pa.array([value], kind)) * table.num_rows
        found[file["path"]] = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
    return found


def kept_by_others(path, column, op, value):
    """Files that delta-rs hands to a reader for a comparison, by the statistics it found in the log."""
    import deltalake

    dataset = deltalake.DeltaTable(path).to_pyarrow_dataset()
    fragments = dataset.get_fragments(filter=getattr(ds.field(column), OPERATORS[op])(value))
    return {fragment.path.rpartition("/")[2] for fragment in fragments}


@pytest.mark.slow
@pytest.mark.parametrize("group", first_of(1, range(6)))
def test_tables_of_delta_rs_lose_no_row_and_keep_no_more_files_than_its_own_reader(tmp_path, group):
    for seed in range(group * TABLES // 6, (group + 1) * TABLES // 6):
        rng = random.Random(seed)
        path = str(tmp_path / str(seed))
        columns = history(path, rng)
        snapshot = open_snapshot(path, options=Options.of(None))
        files = rows_by_file(path, snapshot)
        asked = 0
        while asked < PREDICATES:
            text = condition(list(columns.items()), lambda kind: value_of(kind, rng), rng)
            node = as_node(text, snapshot.schema, "UTC")
            if any(isinstance(item, Unknown) for item in walk(node)):
                continue
            asked += 1
            expected = {name for name, rows in files.items() if any(truth(node, row) is True for row in rows)}
            for engine in ("columnar", "reference"):
                kept = set(snapshot.plan(text, engine=engine).files.column("path").to_pylist())
                assert expected <= kept, (seed, text, engine, expected - kept)
        for op in OPERATORS:
            value = rng.choice([1, 150, 100, 302])
            ours = snapshot.plan(f"id {op} {value}").files.column("path").to_pylist()
            assert {name.rpartition("/")[2] for name in ours} <= kept_by_others(path, "id", op, value), (
                seed,
                op,
                value,
            )
