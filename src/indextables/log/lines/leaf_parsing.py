"""Parsers of the lines of adds: what they find stands under the names of the log.

DuckDB where there are many lines, Arrow where loading DuckDB would cost more
than it saves. Both are strict in their own way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from indextables.log.checkpoint.add_lines import bare_lines
from indextables.log.replay.add_columns import IN_STATS, WIRE, Leaf, Unusual, one_array

_FEED_ROWS = 1 << 10
_PIECE_ROWS = 1 << 13
NUMBERS = tuple(
    WIRE[name] for name in ("size", "modification_time", "num_records", "index_offset", "index_length")
)
"""Fields that are numbers in the log."""


def wanted_fields(leaves: Sequence[Leaf]) -> tuple[dict[str, list[str] | None], dict[str, list[str] | None]]:
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


def parse_with_arrow(batches: Iterable[pa.BinaryArray], leaves: Sequence[Leaf]) -> Iterator[Wire]:
    """The fields of the leaves, chunk by chunk."""
    fields, stats = wanted_fields(leaves)
    for lines in batches:
        text = bare_lines(lines)
        if "tags" in fields and pc.any(pc.match_substring(text, '"tags"')).as_py():
            raise Unusual("tags")
        require_objects(text)
        wire = parse_fields(text.buffers()[2], len(text), fields)
        if "tags" in fields:
            wire["tags"] = pa.nulls(len(text), pa.string())
        if stats:
            # Three rows in a million may need their `stats`: hand on an empty document for the rest.
            needed = needs_stats(wire, leaves)
            documents = pc.fill_null(pc.if_else(needed, wire["stats"], "{}"), "{}")
            require_objects(documents)
            inner = parse_fields(join_texts(documents, "\n"), len(text), stats)
            wire |= {f"stats.{name}": array for name, array in inner.items()}
        yield wire


def parse_fields(text: pa.Buffer, rows: int, fields: Mapping[str, list[str] | None]) -> dict[str, pa.Array]:
    """The fields of JSON documents, one a line."""
    import pyarrow.json as pj

    known = {name: wire_type(name, children) for name, children in fields.items() if name != "tags"}
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
    return {name: one_array(table.column(name)) for name in schema.names}


def require_objects(texts: pa.Array) -> None:
    """Leave lines that are no objects to another reader: one that is `null` ends the process in Arrow's."""
    if not pc.all(pc.starts_with(texts, "{"), min_count=0).as_py():
        raise Unusual("a line that is no object")


def join_texts(texts: pa.Array, separator: str) -> pa.Buffer:
    """Texts as one text."""
    return pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), separator).buffers()[2]


def wire_type(name: str, children: list[str] | None) -> pa.DataType:
    """The type of a field as parsers give it."""
    if children is not None:
        kind = pa.int64() if name == "nullCount" else pa.string()
        return pa.struct([(child, kind) for child in children])
    if name in {"path", "stats"}:
        return pa.string()
    return pa.bool_() if name == "dataChange" else pa.int64()


def child_of(struct: pa.StructArray, name: str | None) -> pa.Array:
    """One child of a map."""
    return pc.struct_field(struct, struct.type.get_field_index(name))


def needs_stats(wire: Wire, leaves: Sequence[Leaf]) -> pa.Array:
    """For which adds the `stats` document has something that the add itself has not."""
    needed = pa.scalar(False)
    for leaf in leaves:
        if leaf.column == "null_count":
            if not leaf.spare:
                return pa.scalar(True)
            bounds = [child_of(wire[WIRE[name]], leaf.child) for name in ("min", "max")]
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


def parse_with_duckdb(batches: Iterable[pa.BinaryArray], leaves: Sequence[Leaf]) -> Iterator[Wire]:
    """One streaming query over all lines; DuckDB parses on all cores while the lines are being inflated."""
    import duckdb

    fields, stats = wanted_fields(leaves)
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
                yield {name: one_array(table.column(name)) for name in table.column_names}
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
        name: ("BIGINT" if name in NUMBERS else "VARCHAR")
        if children is None
        else dict.fromkeys(children, "VARCHAR")
        for name, children in fields.items()
    }
    return _literal(json.dumps(shape))


def _sql_odd_numbers(fields: Iterable[str]) -> str:
    """A SQL condition: some number is null although the add has a value there."""
    numbers = [name for name in fields if name in NUMBERS]
    if not numbers:
        return "false"
    absent = " OR ".join(f"a.{name} IS NULL" for name in numbers)
    odd = " OR ".join(
        f"(a.{name} IS NULL AND coalesce(json_type(line, '$.{name}'), 'NULL') <> 'NULL')" for name in numbers
    )
    return f"CASE WHEN {absent} THEN {odd} ELSE false END"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
