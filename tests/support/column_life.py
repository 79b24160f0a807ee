"""A table whose columns are renamed, dropped, added again and moved between writes, beside a model of it.

The model holds for every version the columns in their order and the rows by column. Names are few and are
used again, so that one often stands for another column than before, in files too.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import indextables as it

NAMES = ["a", "b", "c", "d", "e f", "E"]
WORDS = ["error", "timeout", "disk error", "", None]
PARTITIONS = ["x", "y/z", None]
KINDS = {"text": pa.string(), "number": pa.int64(), "struct": pa.struct([("x", pa.int64())])}
OPTIONS = {"checkpoint.interval": "5", "write.maxRowsPerSplit": "4", "purge.retentionCheckEnabled": "false"}
PHASES = (Phase.explicit, Phase.generate)
numbers = st.integers(0, 9)


def value_of(kind, number):
    if kind == "text":
        return WORDS[number % len(WORDS)]
    return number if kind == "number" else {"x": number}


def as_sorted(rows):
    return sorted((tuple(map(repr, row.items())) for row in rows), key=str)


class Life(RuleBasedStateMachine):
    """A table beside the columns and rows of each of its versions."""

    options: ClassVar = OPTIONS

    @initialize()
    def create(self):
        self.root = Path(tempfile.mkdtemp())
        self.columns = {"id": "number", "p": "partition", "a": "text", "b": "number"}
        self.indexed = {"a"}
        schema = pa.schema([
            ("id", pa.int64()), ("p", pa.string()), ("a", pa.string()), ("b", pa.int64())
        ])  # fmt: skip
        properties = {**self.options, "indexing.typemap.a": "text", "dataSkippingStatsColumns": "id,b,a"}
        it.Table.create(self.root / "t", schema, partition_by=["p"], options=properties)
        self.table = it.Table.open(self.root / "t", options=self.options)
        self.rows = []
        self.states = {}
        self.next_id = 0
        self.now()

    def teardown(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def now(self):
        for version in range(max(self.states, default=-1) + 1, self.table.version + 1):
            rows = [dict(row) for row in self.rows]
            self.states[version] = (dict(self.columns), rows, set(self.indexed))

    def free(self):
        """Names that no column has."""
        taken = {name.lower() for name in self.columns}
        return [name for name in NAMES if name.lower() not in taken]

    def plain(self):
        """Columns that may be dropped."""
        return [name for name, kind in self.columns.items() if kind != "partition" and name != "id"]

    def do_append(self, rows):
        self.table.append(pa.Table.from_pylist(rows, self.table.schema))

    def do_rename(self, old, new):
        self.table.rename_column(old, new)

    def do_drop(self, name):
        self.table.drop_column(name)

    def do_add(self, name, kind, after):
        self.table.add_column(name, KINDS[kind], first=after is None, after=after)

    def do_move(self, name, after):
        self.table.move_column(name, first=after is None, after=after)

    def do_delete(self, condition):
        self.table.delete(condition)

    def do_update(self, above, name):
        self.table.update(it.col("id") > above, {name: above})

    def do_upsert(self, source):
        self.table.merge(pa.Table.from_pylist([source], self.table.schema), on="id")

    @rule(seeds=st.lists(numbers, min_size=1, max_size=6))
    def append(self, seeds):
        new = []
        for seed in seeds:
            row = {"id": self.next_id}
            self.next_id += 1
            for at, (name, kind) in enumerate(self.columns.items()):
                if kind == "partition":
                    row[name] = PARTITIONS[seed % 3]
                elif name not in row:
                    row[name] = value_of(kind, seed + at)
            new.append({name: row[name] for name in self.columns})
        self.do_append(new)
        self.rows += new
        self.now()

    @precondition(lambda self: self.free())
    @rule(data=st.data())
    def rename(self, data):
        old = data.draw(st.sampled_from([name for name in self.columns if name != "id"]))
        self.rename_to(old, data.draw(st.sampled_from(self.free())))

    def rename_to(self, old, new):
        self.do_rename(old, new)

        def renamed(values):
            return {(new if name == old else name): value for name, value in values.items()}

        self.columns = renamed(self.columns)
        self.rows = [renamed(row) for row in self.rows]
        self.indexed = {new if name == old else name for name in self.indexed}
        self.now()

    @precondition(lambda self: self.plain())
    @rule(data=st.data())
    def drop(self, data):
        name = data.draw(st.sampled_from(self.plain()))
        self.do_drop(name)
        del self.columns[name]
        self.rows = [{key: value for key, value in row.items() if key != name} for row in self.rows]
        self.indexed.discard(name)
        self.now()

    @precondition(lambda self: self.free())
    @rule(data=st.data(), kind=st.sampled_from(sorted(KINDS)))
    def add(self, data, kind):
        name = data.draw(st.sampled_from(self.free()))
        after = data.draw(st.sampled_from([None, *self.columns]))
        self.do_add(name, kind, after)
        order = list(self.columns)
        order.insert(0 if after is None else order.index(after) + 1, name)
        self.columns = {item: self.columns.get(item, kind) for item in order}
        self.rows = [{item: row.get(item) for item in order} for row in self.rows]
        self.now()

    @precondition(lambda self: self.free())
    @rule(data=st.data())
    def grow(self, data):
        """An append that brings a column of its own."""
        name = data.draw(st.sampled_from(self.free()))
        row = {"id": self.next_id, name: self.next_id}
        self.next_id += 1
        self.table.append(pa.table({"id": [row["id"]], name: [row[name]]}), merge_schema=True)
        self.columns[name] = "number"
        self.rows = [{item: each.get(item) for item in self.columns} for each in [*self.rows, row]]
        self.now()

    @rule(data=st.data())
    def move(self, data):
        name = data.draw(st.sampled_from(list(self.columns)))
        after = data.draw(st.sampled_from([None, *(item for item in self.columns if item != name)]))
        self.do_move(name, after)
        order = [item for item in self.columns if item != name]
        order.insert(0 if after is None else order.index(after) + 1, name)
        self.columns = {item: self.columns[item] for item in order}
        self.rows = [{item: row[item] for item in order} for row in self.rows]
        self.now()

    @precondition(lambda self: "text" in self.columns.values())
    @rule(data=st.data())
    def index(self, data):
        name = data.draw(st.sampled_from([item for item, kind in self.columns.items() if kind == "text"]))
        self.table.update_properties({f"indexing.typemap.{name}": "text"})
        self.indexed.add(name)
        self.now()

    @rule(low=numbers)
    def delete(self, low):
        self.do_delete(f"id % 10 = {low}")
        self.rows = [row for row in self.rows if row["id"] % 10 != low]
        self.now()

    @precondition(lambda self: "number" in [kind for name, kind in self.columns.items() if name != "id"])
    @rule(data=st.data(), low=numbers)
    def update(self, data, low):
        names = [name for name, kind in self.columns.items() if kind == "number" and name != "id"]
        name = data.draw(st.sampled_from(names))
        self.do_update(low, name)
        self.rows = [{**row, name: low} if row["id"] > low else row for row in self.rows]
        self.now()

    @rule(low=numbers)
    def upsert(self, low):
        source = {name: None for name in self.columns}
        source["id"] = low
        self.do_upsert(source)
        matched = [row for row in self.rows if row["id"] == low]
        self.rows = [source if row["id"] == low else row for row in self.rows]
        if not matched:
            self.rows = [*self.rows, source]
            self.next_id = max(self.next_id, low + 1)
        self.now()

    @rule()
    def merge(self):
        self.table.merge_splits(target_size="1M")
        self.now()

    @rule()
    def checkpoint(self):
        self.table.checkpoint()
        self.now()

    @rule(data=st.data())
    def restore(self, data):
        version = data.draw(st.sampled_from(sorted(self.states)))
        self.table.restore(version)
        columns, rows, indexed = self.states[version]
        self.columns, self.rows, self.indexed = dict(columns), [dict(row) for row in rows], set(indexed)
        self.now()

    @rule()
    def open_again(self):
        self.table = it.Table.open(self.root / "t", options=self.options)

    @rule(data=st.data())
    def travel(self, data):
        version = data.draw(st.sampled_from(sorted(self.states)))
        self.check(it.Table.open(self.root / "t", version=version), *self.states[version])

    @invariant()
    def newest_reads_as_it_is(self):
        self.check(self.table, self.columns, self.rows, self.indexed)

    def check(self, table, columns, rows, indexed):
        assert table.schema.names == list(columns)
        assert as_sorted(table.scan().read_all().to_pylist()) == as_sorted(rows)
        assert table.count() == len(rows)
        partition = next(name for name, kind in columns.items() if kind == "partition")
        assert table.partition_columns == (partition,)
        live = table.files()
        assert [field.name for field in live.schema.field("partition_values").type] == [partition]
        one = [row for row in rows if row[partition] == "x"]
        assert table.count(it.col(partition) == "x") == len(one)
        assert as_sorted(table.scan(it.col(partition) == "x").read_all().to_pylist()) == as_sorted(one)
        for name, kind in columns.items():
            some = [name, "id"] if name != "id" else ["id"]
            if kind == "number":
                high = [row for row in rows if row[name] is not None and row[name] >= 5]
                assert table.count(it.col(name) >= 5) == len(high), name
                read = table.scan(it.col(name) >= 5, columns=some).read_all().to_pylist()
                assert as_sorted(read) == as_sorted({item: row[item] for item in some} for row in high)
                groups = table.facets(name, top=None).to_pylist()
                values = [row[name] for row in rows]
                assert {group["value"]: group["count"] for group in groups if group["value"] is not None} == {
                    value: values.count(value) for value in values if value is not None
                }, name
            if kind == "text":
                exact = [row for row in rows if row[name] == "error"]
                assert table.count(it.col(name) == "error") == len(exact), name
            if kind == "struct":
                continue
            assert table.count(it.col(name).is_null()) == sum(row[name] is None for row in rows), name
        for name in indexed:
            hits = [row for row in rows if "error" in (row[name] or "")]
            if len(indexed) == 1:
                assert as_sorted(table.search("error").read_all().to_pylist()) == as_sorted(hits), name
            if " " not in name:
                assert table.count(query=f"{name}:error") == len(hits), name
