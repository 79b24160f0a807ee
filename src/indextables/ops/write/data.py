"""Rows as people have them, turned into Arrow: the one place that decides what a write takes.

In come data frames, dicts, Arrow data, or batches one after another. Out comes a table, whose
rows can be read again, or a reader, whose rows can be read once. Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa

from indextables.errors import SchemaError
from indextables.model.fields import cast_table
from indextables.ops.write.evolution import schema_difference

ArrowData = pa.Table | pa.RecordBatchReader


def to_arrow(data: Any) -> ArrowData:
    """The rows of a data frame, a dict of columns, dicts, Arrow data, or an iterable of any of these."""
    try:
        return _to_arrow(data)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as bad:
        *reasons, where = bad.args if len(bad.args) > 1 else (bad, "")
        raise SchemaError(
            f"the {type(data).__name__} cannot be written: {'; '.join(map(str, reasons))}"
            f"{f' ({where})' if where else ''}. Give every value of a column the same type."
        ) from bad


def _to_arrow(data: Any) -> ArrowData:
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    package, kind = type(data).__module__.partition(".")[0], type(data).__name__
    if package == "pandas" and kind == "DataFrame":
        return _of_pandas(data)
    if package == "polars" and kind == "LazyFrame":
        return _to_arrow(data.collect())
    if package == "polars" and kind == "DataFrame":
        return pa.table(data)
    if package in ("pandas", "polars") and kind == "Series":
        raise SchemaError("a Series is one column; make it a DataFrame with to_frame()")
    if package == "pyspark":
        raise SchemaError(
            "a Spark DataFrame is written by Spark: frame.write.format('indextables').save(path)"
        )
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if isinstance(data, Mapping):
        return _of_columns(data)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return _of_items(iter(data))
    raise SchemaError(
        f"cannot write {kind}; give a pandas or Polars DataFrame, a dict of columns, a list of dicts, "
        "a DuckDB relation, a pyarrow Table, RecordBatch or RecordBatchReader, an iterable of batches, "
        "or anything with the Arrow C stream interface"
    )


def _of_pandas(frame: Any) -> pa.Table:
    """The columns, and the levels of the index that have a name; an index without one only counts rows."""
    named = [name for name in frame.index.names if name is not None]
    if named:
        try:
            frame = frame.reset_index(level=named)
        except ValueError as taken:
            raise SchemaError(
                f"a level of the DataFrame's index is named like a column: {taken}. Rename it, or drop it "
                "with reset_index(drop=True)."
            ) from taken
    return pa.Table.from_pandas(frame, preserve_index=False)


def _of_columns(columns: Mapping[str, Any]) -> pa.Table:
    for name, values in columns.items():
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise SchemaError(
                f"a dict is taken as columns, and {name!r} is {values!r}, not a list of values. "
                "For rows give a list of dicts, also where there is one row.",
                column=str(name),
            )
    return pa.table(dict(columns))


def _of_items(items: Iterator[Any]) -> ArrowData:
    first = next(items, None)
    if first is None:
        return pa.table({})
    if isinstance(first, Mapping):
        return _of_rows([first, *items])
    source = to_arrow(first)
    return pa.RecordBatchReader.from_batches(source.schema, _chained(source, items))


def _of_rows(rows: list[Mapping[str, Any]]) -> pa.Table:
    """One row per dict; a key that a dict lacks is null there."""
    structs = pa.array(rows)
    if structs.null_count:
        raise SchemaError(f"{structs.null_count} of the {len(rows)} rows are None, not dicts")
    return pa.Table.from_struct_array(structs)


def _chained(first: ArrowData, rest: Iterator[Any]) -> Iterator[pa.RecordBatch]:
    schema = first.schema
    for source in chain([first], map(to_arrow, rest)):
        is_alike = source.schema.equals(schema)
        for batch in batches_of(source):
            try:
                yield batch if is_alike else cast_table(batch, schema)
            except SchemaError as bad:
                lines = schema_difference(schema, source.schema, "the first batch", "this one")
                raise SchemaError(
                    "a batch does not fit the first one:\n  " + "\n  ".join(lines), differences=tuple(lines)
                ) from bad


def batches_of(source: ArrowData) -> Iterator[pa.RecordBatch]:
    """The rows as batches."""
    return iter(source.to_batches() if isinstance(source, pa.Table) else source)


def peeked(source: ArrowData, rows: int) -> tuple[pa.Table, ArrowData]:
    """The first rows, and a source that still has them."""
    if isinstance(source, pa.Table):
        return source.slice(0, rows), source
    batches, count = [], 0
    for batch in source:
        batches.append(batch)
        count += batch.num_rows
        if count >= rows:
            break
    whole = pa.RecordBatchReader.from_batches(source.schema, chain(batches, source))
    return pa.Table.from_batches(batches, source.schema).slice(0, rows), whole
