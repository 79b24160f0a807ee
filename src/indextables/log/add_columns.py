"""The columns of adds, read from their lines without building them.

A leaf is one column of the files() form, or one child of its structs. Lines are
parsed for the leaves that are asked for and nothing else: by DuckDB where there
are many, by Arrow where loading DuckDB would cost more than it saves. Both are
strict in their own way, so whatever they stumble over (a number where text
belongs, statistics in an unusual place) is read again action by action, which
is slow and always right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import CorruptLogError
from indextables.log.add_lines import bare_lines, lines_adds
from indextables.log.files_table import files_schema, tabulate
from indextables.model.actions import AddAction
from indextables.model.fields import decode_partition_array, decode_stat_array
from indextables.storage.store import Store

_FEED_ROWS = 1 << 10
_PIECE_ROWS = 1 << 13
STRUCTS = ("partition_values", "min", "max", "null_count")
WIRE = {
    "path": "path", "size": "size", "modification_time": "modificationTime", "num_records": "numRecords",
    "data_change": "dataChange", "index_offset": "hotcacheStartOffset", "index_length": "hotcacheLength",
    "tags": "tags", "partition_values": "partitionValues", "min": "minValues", "max": "maxValues",
}  # fmt: skip
IN_STATS = {"num_records": "numRecords", "min": "minValues", "max": "maxValues", "null_count": "nullCount"}
_NUMBERS = dict.fromkeys(
    (WIRE[name] for name in ("size", "modification_time", "num_records", "index_offset", "index_length")),
    "BIGINT",
)
_ABSENT = {"size": 0, "modification_time": 0}
_TAGS = pa.map_(pa.string(), pa.string())


@dataclass(frozen=True, slots=True)
class Leaf:
    """One column to read of every add."""

    column: str
    child: str | None
    type: pa.DataType
    spare: bool = False
    """Of null counts: wanted only where the column has neither a minimum nor a maximum in the add."""


PATH = Leaf("path", None, pa.string())


@dataclass(frozen=True, slots=True)
class TableForm:
    """What it takes to lay adds out in the files() form."""

    schema: pa.Schema
    partition_columns: Sequence[str]
    store: Store

    def tabulate(self, adds: Sequence[AddAction], columns: Iterable[str] | None = None) -> pa.Table:
        """The adds, in the order given."""
        return tabulate(adds, self.schema, self.partition_columns, self.store, columns)

    def leaves(self, columns: Iterable[str] | None = None) -> tuple[Leaf, ...]:
        """The leaves of the form, or of some of its columns."""
        return leaves_of(self.schema, self.partition_columns, columns)


class Unusual(Exception):  # noqa: N818 - not an error, a reason to read the slow way
    """The lines hold something that only reading them as actions gets right."""


def leaves_of(
    schema: pa.Schema, partition_columns: Sequence[str], columns: Iterable[str] | None = None
) -> tuple[Leaf, ...]:
    """The leaves of the files() form, or of some of its columns: `path` always, the derived `uri` never."""
    found = []
    for field in files_schema(schema, partition_columns, columns):
        if field.name in STRUCTS:
            found += [
                Leaf(field.name, field.type.field(at).name, field.type.field(at).type)
                for at in range(field.type.num_fields)
            ]
        elif field.name != "uri":
            found.append(Leaf(field.name, None, field.type))
    return tuple(found)


def read_leaves(
    batches: Iterable[pa.BinaryArray], leaves: Sequence[Leaf], *, many: bool
) -> Iterator[list[pa.Array]]:
    """One array per leaf for each piece of the lines, in order; `Unusual` when that cannot be trusted."""
    parsed = _parse_with_duckdb(batches, leaves) if many else _parse_with_arrow(batches, leaves)
    try:
        for wire in parsed:
            yield [_typed(leaf, wire) for leaf in leaves]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as bad:
        raise Unusual(str(bad)) from bad


def read_leaves_as_actions(
    batches: Iterable[pa.BinaryArray],
    leaves: Sequence[Leaf],
    table: TableForm,
    name: str,
) -> Iterator[list[pa.Array]]:
    """The same arrays by way of whole actions."""
    columns = {leaf.column for leaf in leaves}
    for lines in batches:
        adds = list(lines_adds(lines, name))
        yield table_leaves(table.tabulate(adds, columns), leaves)


def table_leaves(table: pa.Table, leaves: Sequence[Leaf]) -> list[pa.Array]:
    """The leaves of a table in the files() form."""
    flat = table.combine_chunks()
    arrays = []
    for leaf in leaves:
        column = flat.column(leaf.column)
        if leaf.child is not None:
            column = pc.struct_field(column, column.type.get_field_index(leaf.child))
        arrays.append(_one(column))
    return arrays


def _one(column: Any) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


# --- what is asked of a parser -------------------------------------------------------------------


def _wanted(leaves: Sequence[Leaf]) -> tuple[dict[str, list[str] | None], dict[str, list[str] | None]]:
    """Wire fields to extract from an add and from its `stats` document, with the children of each map."""
    fields: dict[str, list[str] | None] = {}
    stats: dict[str, list[str] | None] = {}
    for leaf in leaves:
        for names, home in ((WIRE, fields), (IN_STATS, stats)):
            name = names.get(leaf.column)
            if name is None:
                continue
            if leaf.child is None:
                home[name] = None
            else:
                _add_child(home, name, leaf.child)
        if leaf.spare:
            for column in ("min", "max"):
                _add_child(fields, WIRE[column], str(leaf.child))
    if stats:
        fields["stats"] = None
    return fields, stats


def _add_child(home: dict[str, list[str] | None], name: str, child: str) -> None:
    children = home.setdefault(name, [])
    assert children is not None
    if child not in children:
        children.append(child)


Wire = Mapping[str, pa.Array]
"""Arrays by wire field: text or numbers, structs of text for maps; those of `stats` as `stats.<field>`."""


def _parse_with_arrow(batches: Iterable[pa.BinaryArray], leaves: Sequence[Leaf]) -> Iterator[Wire]:
    fields, stats = _wanted(leaves)
    for lines in batches:
        text = bare_lines(lines)
        if "tags" in fields and pc.any(pc.match_substring(text, '"tags"')).as_py():
            raise Unusual("tags")
        wire = _arrow_fields(text.buffers()[2], len(text), fields)
        if "tags" in fields:
            wire["tags"] = pa.nulls(len(text), pa.string())
        if stats:
            # Three rows in a million may need their `stats`: hand on an empty document for the rest.
            needed = _needs_stats(wire, leaves)
            documents = pc.fill_null(pc.if_else(needed, wire["stats"], "{}"), "{}")
            joined = pc.binary_join(pa.ListArray.from_arrays([0, len(documents)], documents), "\n")
            inner = _arrow_fields(joined.buffers()[2], len(text), stats)
            wire |= {f"stats.{name}": array for name, array in inner.items()}
        yield wire


def _arrow_fields(text: pa.Buffer, rows: int, fields: Mapping[str, list[str] | None]) -> dict[str, pa.Array]:
    import pyarrow.json as pj

    known = {name: _arrow_type(name, children) for name, children in fields.items() if name != "tags"}
    schema = pa.schema(list(known.items()))
    if not rows or not len(schema):
        return {}
    table = pj.read_json(
        pa.BufferReader(text),
        read_options=pj.ReadOptions(use_threads=False, block_size=text.size + 1),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    if len(table) != rows:
        raise Unusual("a document spans several lines")
    return {name: _one(table.column(name)) for name in schema.names}


def _arrow_type(name: str, children: list[str] | None) -> pa.DataType:
    if children is not None:
        kind = pa.int64() if name == "nullCount" else pa.string()
        return pa.struct([(child, kind) for child in children])
    if name in {"path", "stats"}:
        return pa.string()
    return pa.bool_() if name == "dataChange" else pa.int64()


def _needs_stats(wire: Wire, leaves: Sequence[Leaf]) -> pa.Array:
    """For which adds the `stats` document has something that the add itself has not."""
    needed = pa.scalar(False)
    for leaf in leaves:
        if leaf.column == "null_count":
            if not leaf.spare:
                return pa.scalar(True)
            bounds = [_child(wire[WIRE[name]], leaf.child) for name in ("min", "max")]
            needed = pc.or_(needed, pc.and_(*map(pc.is_null, bounds)))
        elif leaf.column in IN_STATS:
            needed = pc.or_(needed, pc.is_null(wire[WIRE[leaf.column]]))
    return needed


def _sql_needs_stats(leaves: Sequence[Leaf]) -> str:
    """The same as a SQL condition."""
    needed = {"false": None}
    for leaf in leaves:
        if leaf.column == "null_count":
            if not leaf.spare:
                return "true"
            child = _literal(str(leaf.child))
            bounds = (f"struct_extract(a.{WIRE[name]}, {child}) IS NULL" for name in ("min", "max"))
            needed[f"({' AND '.join(bounds)})"] = None
        elif leaf.column in IN_STATS:
            needed[f"a.{WIRE[leaf.column]} IS NULL"] = None
    return " OR ".join(needed)


def _parse_with_duckdb(batches: Iterable[pa.BinaryArray], leaves: Sequence[Leaf]) -> Iterator[Wire]:
    """One streaming query over all lines; DuckDB parses on all cores while the lines are being inflated."""
    import duckdb

    fields, stats = _wanted(leaves)
    fields.pop("stats", None)
    lines = pa.RecordBatchReader.from_batches(pa.schema([("line", pa.string())]), _small_batches(batches))
    add = ", ".join(f'a."{name}" AS "{name}"' for name in fields) or "NULL"
    inner = "".join(f', s."{name}" AS "stats.{name}"' for name in stats)
    # Few adds need their statistics document, so it is looked for only where one does.
    document = f"CASE WHEN {_sql_needs_stats(leaves)} THEN json_extract_string(line, '$.stats') END"
    further = f", from_json({document}, {_structure(stats)}) AS s" if stats else ""
    query = (
        f"SELECT {add}{inner}, odd FROM (SELECT a{further}, {_sql_odd_numbers(fields)} AS odd FROM "
        f"(SELECT line, from_json(line, {_structure(fields)}) AS a FROM lines))"
    )
    with duckdb.connect() as connection:
        connection.register("lines", lines)
        try:
            found = connection.sql(query)
            # DuckDB 2 renamed the method.
            stream = getattr(found, "to_arrow_reader", None) or found.fetch_arrow_reader
            for table in _large_tables(stream(_FEED_ROWS)):
                if pc.any(table.column("odd")).as_py():
                    raise Unusual("a number that is none")
                yield {name: _one(table.column(name)) for name in table.column_names}
        except duckdb.Error as bad:
            raise Unusual(str(bad)) from bad


def _small_batches(batches: Iterable[pa.BinaryArray]) -> Iterator[pa.RecordBatch]:
    """The lines in batches so small that the texts of one stay in the processor's cache."""
    for lines in batches:
        whole = pa.record_batch([bare_lines(lines)], names=["line"])
        for begin in range(0, len(whole), _FEED_ROWS):
            yield whole.slice(begin, _FEED_ROWS)


def _large_tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches put together, so that what follows has few arrays to go through."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= _PIECE_ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _structure(fields: Mapping[str, list[str] | None]) -> str:
    """What from_json is to extract, as a SQL literal; bounds are text there, so that nothing is coerced."""
    shape = {
        name: _NUMBERS.get(name, "VARCHAR") if children is None else dict.fromkeys(children, "VARCHAR")
        for name, children in fields.items()
    }
    return _literal(json.dumps(shape))


def _sql_odd_numbers(fields: Iterable[str]) -> str:
    """A SQL condition: some number is null although the add has a value there."""
    numbers = [name for name in fields if name in _NUMBERS]
    if not numbers:
        return "false"
    absent = " OR ".join(f"a.{name} IS NULL" for name in numbers)
    odd = " OR ".join(
        f"(a.{name} IS NULL AND coalesce(json_type(line, '$.{name}'), 'NULL') <> 'NULL')" for name in numbers
    )
    return f"CASE WHEN {absent} THEN {odd} ELSE false END"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# --- from wire fields to the files() form --------------------------------------------------------


def _typed(leaf: Leaf, wire: Wire) -> pa.Array:
    if leaf.column == "path":
        if wire["path"].null_count:
            raise Unusual("an add without a path")
        return wire["path"]
    if leaf.column == "tags":
        return _tags(wire["tags"])
    if leaf.column == "partition_values":
        return decode_partition_array(_child(wire["partitionValues"], leaf.child), leaf.type)
    if leaf.column == "data_change":
        return pc.fill_null(pc.cast(wire["dataChange"], pa.bool_()), True)
    if leaf.column == "null_count":
        return _number(_child(wire["stats.nullCount"], leaf.child))
    if leaf.column in {"min", "max"}:
        name = WIRE[leaf.column]
        text = _child(wire[name], leaf.child)
        if wire[name].null_count:
            text = pc.if_else(pc.is_null(wire[name]), _child(wire[f"stats.{name}"], leaf.child), text)
        return decode_stat_array(text, leaf.type)
    found = _number(wire[WIRE[leaf.column]])
    if leaf.column == "num_records" and found.null_count:
        found = pc.coalesce(found, _number(wire["stats.numRecords"]))
    default = _ABSENT.get(leaf.column)
    return pc.cast(found if default is None else pc.fill_null(found, default), leaf.type)


def _number(array: pa.Array) -> pa.Array:
    return pc.cast(array, pa.int64())


def _child(struct: pa.StructArray, name: str | None) -> pa.Array:
    return pc.struct_field(struct, struct.type.get_field_index(name))


def _tags(texts: pa.Array) -> pa.Array:
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), _TAGS)
    distinct = texts.dictionary_encode()
    maps = []
    for text in distinct.dictionary.to_pylist():
        found = msgspec.json.decode(text)
        if not isinstance(found, dict) or not all(isinstance(value, str | None) for value in found.values()):
            raise Unusual("tags that are not text")
        maps.append(list(found.items()))
    return pa.array(maps, _TAGS).take(distinct.indices)


def check_increasing(paths: pa.Array, previous: str | None) -> bool:
    """Whether paths are in strictly ascending order, and begin after `previous`."""
    if not len(paths):
        return True
    if previous is not None and not previous.encode() < paths[0].as_py().encode():
        return False
    return bool(pc.all(pc.less(paths[:-1], paths[1:]), min_count=0).as_py())


def disordered(name: str) -> CorruptLogError:
    """The error for a checkpoint whose adds are not in the order it promises."""
    return CorruptLogError(f"{name} is damaged: its paths are not in ascending order", file=name)
