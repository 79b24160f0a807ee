"""Companions of the golden Delta tables: every version answers as a scan does, however far behind the index is."""

from __future__ import annotations

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import Error, SchemaError
from indextables.ops.table_settings import settings_of
from support.companions import bytes_of
from support.golden import plain, table_path, versions
from support.sampled import first_of

PARTS = 6
MOST_ROWS = 5_000


def queries_of(rows, columns):
    """Some words of the texts, one that is nowhere, and every row."""
    texts = [text for name in columns for text in rows.column(name).to_pylist() if text]
    words = {word for text in texts for word in text.split() if word.isascii() and word.isalnum()}
    asked = [" OR ".join(f"{name}:{word}" for name in columns) for word in [*sorted(words)[:3], "nowhere"]]
    return [*asked, "*"]


def as_rows(reader):
    return sorted(str([plain(value) for value in row.values()]) for row in reader.read_all().to_pylist())


def text_columns(table):
    return [
        field.name
        for field in table.schema
        if pa.types.is_string(field.type) and field.name not in table.partition_columns
    ]


def read(source, version):
    """A version and its rows; None where it is refused, or files of it are not there."""
    try:
        table = it.DeltaTable.open(source, version=version)
        return table, table.scan().read_all()
    except Error:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("part", first_of(1, range(PARTS)))
def test_a_companion_of_a_golden_table_finds_what_a_scan_finds(part, tmp_path, record_property):
    asked = 0
    for name in sorted({name for name, _ in versions("ok")})[part::PARTS]:
        source, index = str(table_path(name)), str(tmp_path / name)
        readable = {
            version: found
            for table, version in versions("ok")
            if table == name and (found := read(source, version)) and found[1].num_rows <= MOST_ROWS
        }
        newest = read(source, None)
        if not newest or not readable or not text_columns(newest[0]):
            continue
        before = bytes_of(source)
        columns = text_columns(newest[0])
        companion = it.companion(source, index, columns)
        # A split for each file, of which half are merged.
        half = it.companion(source, f"{index} half", columns, {"write.targetSplitBytes": "1"})
        splits = half.status().splits
        if splits > 1:
            it.Table.open(half.uri).merge_splits(max_source_splits=max(2, splits // 2), max_dest_splits=1)
        for at in (None, min(readable)):
            if at is not None:
                try:
                    companion.refresh(version=at)
                except Error:
                    # It had none of these columns yet.
                    continue
            for version, (brute, rows) in readable.items():
                about = (name, version, at)
                oracle = oracle_of(tmp_path / f"{name} {version} {at}", rows, columns)
                for uri in (index, half.uri) if at is None else (index,):
                    table = it.Table.open(uri, version=version)
                    asked += assert_same(table, brute, oracle, rows, (*about, uri))
        assert bytes_of(source) == before
    assert asked > 100
    record_property("questions", asked)


def oracle_of(path, rows, columns):
    """A table of ours with these rows alone, indexed as the companion is."""
    present = [name for name in columns if name in rows.column_names]
    options = {f"indexing.typemap.{name}": "text" for name in present}
    return it.Table.create(path, rows.schema, options=options, data=rows if rows.num_rows else None)


def assert_same(table, brute, oracle, rows, about):
    assert table.count() == rows.num_rows, about
    indexed = [name for name in settings_of(table.snapshot).columns if name.isidentifier()]
    number = 1
    for query in queries_of(rows, indexed) if indexed else ():
        noted = (about, query)
        assert as_rows(table.search(query)) == as_rows(brute.search(query)), noted
        assert table.count(query=query) == brute.count(query=query), noted
        best = [
            [
                round(row["_score"], 4)
                for row in item.search(query, limit=10, score=True).read_all().to_pylist()
            ]
            for item in (table, oracle)
        ]
        assert best[0] == best[1], noted
        number += 3
    for column in indexed[:2]:
        try:
            table.facets(column, top=None)
        except SchemaError as refused:
            assert "collation" in str(refused), about
            continue
        facets = [item.facets(column, top=None).sort_by("value").to_pylist() for item in (table, oracle)]
        assert facets[0] == facets[1], (about, column)
        by = {"rows": "count(*)", "least": f"min({column})", "most": f"max({column})"}
        sums = [sorted(item.aggregate(column, by).to_pylist(), key=str) for item in (table, oracle)]
        assert sums[0] == sums[1], (about, column)
        number += 2
    return number
