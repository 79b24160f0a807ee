"""Drawn filters over real Delta tables: Spark over every row says which rows match, and none of them is skipped.

Spark computes the filters as columns over a copy of all rows, so nothing is left out on its side. Files that hold a
matching row are needed; the log has to keep all of them. A few tables are tried; with INDEXTABLES_GOLDEN=all every
table is, and what was kept and needed is printed.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.errors import Error
from indextables.ops.delta.data_file import NAMES
from indextables.ops.delta.scan import pieces_of, row_reader
from indextables.ops.read.record import Record
from support.golden import EVERYTHING, expected, manifest, table_path

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("plain_plans")]

MOST_ROWS = 20_000
SEVERAL, SINGLE = 70, 32
"""Filters of a table with several files, and of one with a single file."""
FALSE_STATISTICS = {"delta-rs__issue_1374"}
"""Logs that give a file a minimum above its least value: what they leave out, every reader leaves out."""
MOST_KEPT = 1.4
"""Files that may be kept for each that is needed, of all tables: 16,996 and 12,198 were."""
ON_EXECUTORS = 5
"""One filter of one table in so many is also left to executors."""
FILE = "__file"
ATOMS = {"byte", "short", "integer", "long", "float", "double", "string", "date", "timestamp", "timestamp_ntz", "boolean"}  # fmt: skip


def rows_by_file(table):
    """All live rows, each with the key of its file."""
    snapshot = table._snapshot
    files = snapshot.plan(columns=(*NAMES, "dv")).files
    reader = row_reader(snapshot, table.schema.names, None, files.num_rows)
    parts = []
    for at in range(files.num_rows):
        one = files.slice(at, 1)
        for task in pieces_of(snapshot, reader, one, Record(snapshot)):
            for rows in task():
                key = pa.array([key_of(one.to_pylist()[0])] * rows.num_rows, pa.string())
                parts.append(rows.append_column(FILE, key))
    return pa.concat_tables(parts) if parts else None


def is_plain(kind):
    """Whether a type is one that filters compare, or a struct of such."""
    if pa.types.is_struct(kind):
        return all(is_plain(field.type) for field in kind.fields)
    return not pa.types.is_nested(kind)


def nullable(kind):
    """A type whose fields may all be null: real tables have nulls where their schema says there are none."""
    if not pa.types.is_struct(kind):
        return kind
    return pa.struct([pa.field(field.name, nullable(field.type)) for field in kind.fields])


def key_of(file):
    return f"{file['path']}|{file['dv'] or ''}"


def leaves(fields, prefix=()):
    """The columns, and the fields inside of structs, that a filter can compare."""
    for field in fields:
        path, kind = (*prefix, field["name"]), field["type"]
        if isinstance(kind, dict) and kind.get("type") == "struct":
            yield from leaves(kind["fields"], path)
        elif isinstance(kind, str) and (kind in ATOMS or kind.startswith("decimal")):
            yield path


def literal(value):
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        special = math.isnan(value) or math.isinf(value)
        return f"CAST('{value}' AS DOUBLE)" if special else f"{value!r}D"
    if isinstance(value, Decimal):
        return f"{value:f}BD"
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat(" ")
        return f"TIMESTAMP '{text}+00:00'" if value.tzinfo else f"TIMESTAMP_NTZ '{text}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value)


def beside(chance, value):
    """A value, or one just beside it."""
    if isinstance(value, dt.date) and value.year in (dt.MINYEAR, dt.MAXYEAR):
        return value
    if chance.random() < 0.6 or isinstance(value, bool | str):
        return (
            value if not isinstance(value, str) or chance.random() < 0.7 else value[: len(value) // 2] + "m"
        )
    if isinstance(value, dt.datetime):
        return value + dt.timedelta(microseconds=chance.choice([-1, 1, 999, 86_400_000_000]))
    if isinstance(value, dt.date):
        return value + dt.timedelta(days=chance.choice([-1, 1]))
    if isinstance(value, Decimal):
        return value + value.copy_abs().scaleb(-1).quantize(value) if value else value
    if isinstance(value, float):
        return value + chance.choice([-0.5, 0.5])
    return max(-128, min(127, value + chance.choice([-1, 1]))) if -128 <= value <= 127 else value


def leaf_filter(chance, columns):
    name, values = chance.choice(columns)
    if not values or chance.random() < 0.06:
        return f"{name} IS {chance.choice(['', 'NOT '])}NULL"

    def one():
        return literal(beside(chance, chance.choice(values)))

    shape = chance.randrange(10)
    if shape == 0:
        return f"{name} {chance.choice(['', 'NOT '])}IN ({', '.join(one() for _ in range(chance.randint(1, 3)))})"
    if shape <= 2:
        return f"{name} {chance.choice(['', '', 'NOT '])}BETWEEN {one()} AND {one()}"
    if shape == 3 and isinstance(values[0], str):
        begin = chance.choice(values)[: chance.randint(0, 4)].replace("%", "_")
        return f"{name} {chance.choice(['', '', 'NOT '])}LIKE {literal(begin + '%')}"
    return f"{name} {chance.choice(['=', '=', '<>', '<', '<=', '>', '>=', '<=>'])} {one()}"


def drawn_filter(chance, columns, depth=2):
    shape = chance.randrange(8) if depth else 0
    if shape < 4:
        return leaf_filter(chance, columns)
    if shape == 4:
        return f"NOT ({drawn_filter(chance, columns, depth - 1)})"
    joint = chance.choice([" AND ", " AND ", " OR "])
    return joint.join(f"({drawn_filter(chance, columns, depth - 1)})" for _ in range(2))


def value_at(row, path):
    for part in path:
        row = None if row is None else row[part]
    return row


def filters_of(name, table, rows):
    """Filters with values that are in the table, or nearly."""
    chance = random.Random(f"filters of {name}")
    sample = rows.take(sorted(chance.sample(range(rows.num_rows), min(200, rows.num_rows)))).to_pylist()
    columns = []
    plain = {field.name for field in table.schema if is_plain(field.type)}
    for path in leaves(json.loads(table.spark_schema)["fields"]):
        if path[0] not in plain:
            continue
        quoted = ".".join("`" + part.replace("`", "``") + "`" for part in path)
        columns.append((quoted, [value for row in sample if (value := value_at(row, path)) is not None]))
    count = SEVERAL if table.files(columns=["path"]).num_rows > 1 else SINGLE
    return [drawn_filter(chance, columns) for _ in range(count)] if columns else []


def tables():
    names = [row["name"] for row in manifest() if row["outcome"] in ("ok", "refuse-or-lenient")]
    sound = [name for name in names if expected(name)["versions"] and name not in FALSE_STATISTICS]
    return sound[:: 1 if EVERYTHING else 24]


def test_no_row_that_spark_finds_is_skipped(spark, tmp_path):
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    totals, drawn = Counter(), {}
    for number, name in enumerate(tables()):
        table = it.DeltaTable.open(table_path(name))
        try:
            rows = rows_by_file(table) if table.schema.names and table.count() <= MOST_ROWS else None
        except Error:
            # Data files that the corpus left out.
            continue
        if rows is None or not (filters := filters_of(name, table, rows)):
            continue
        drawn[name] = judged(spark, table, rows, filters, tmp_path / f"{number}.parquet", totals)
        if number % ON_EXECUTORS == 0:
            on_executors(spark, table, filters[0], totals)
    assert totals["filters"] >= (5_000 if EVERYTHING else 150)
    assert totals["lost rows"] == totals["wrong counts"] == 0
    assert totals["needed"] <= totals["kept"] < totals["files"]
    assert totals["kept on executors"] == totals["kept of those here"]
    if EVERYTHING:
        assert totals["kept"] <= MOST_KEPT * totals["needed"]
        (tmp_path / "drawn.json").write_text(json.dumps(drawn))
        print(f"{len(drawn)} tables: {dict(totals)}; the filters are in {tmp_path / 'drawn.json'}")


def judged(spark, table, rows, filters, copy, totals):
    """Add what the filters of a table kept and needed to the totals."""
    plain = [field for field in rows.schema if is_plain(field.type)]
    schema = pa.schema([pa.field(field.name, nullable(field.type)) for field in plain])
    pq.write_table(rows.select(schema.names).cast(schema), copy)
    chosen = [f"coalesce(({text}), false) AS p{at}" for at, text in enumerate(filters)]
    answers = spark.read.parquet(str(copy)).selectExpr(f"`{FILE}`", *chosen).toArrow()
    needed_of_each = []
    for at, text in enumerate(filters):
        matching = answers.filter(answers[f"p{at}"])
        needed = set(pc.unique(matching[FILE]).to_pylist())
        files = table.files(text, columns=["path", "dv"])
        kept = {key_of(file) for file in files.to_pylist()}
        lost = pc.sum(pc.invert(pc.is_in(matching[FILE], pa.array(list(kept), pa.string())))).as_py() or 0
        assert lost == 0, (table, text)
        assert table.count(text) == matching.num_rows, (table, text)
        totals.update({"filters": 1, "needed": len(needed), "kept": len(kept), "lost rows": lost})
        totals["files"] += table.last_scan.files.considered
        needed_of_each.append([text, len(needed), len(kept)])
    return needed_of_each


def on_executors(spark, table, text, totals):
    """Add the files that a filter keeps where executors choose them, and where this process does."""
    replayed = it.delta.replay(spark, table.uri, num_partitions=1)
    totals["kept on executors"] += it.delta.apply_skipping(replayed, table.schema, text).count()
    totals["kept of those here"] += table.files(text, columns=["path"]).num_rows
