"""Large Delta checkpoints whose statistics are JSON text, read by DuckDB.

Extracting a few values from a million documents during the scan costs half as much as
loading the documents into memory first. The full statistics are fetched afterwards, for
the rows that survive pruning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from indextables.duck import database
from indextables.errors import CorruptLogError
from indextables.lazy import duckdb, pc
from indextables.log.delta.checkpoint.reader import AddRows
from indextables.log.delta.files.text import (
    Path,
    decode_paths,
    differing,
    if_document,
    reads_differently,
    text_column,
    texts_by_msgspec,
)
from indextables.model.arrays import whole
from indextables.model.names import quoted_text
from indextables.runtime import default_parallelism, in_threads
from indextables.storage.store import Store, resolve

ROW = "__row"
_DIFFERS = "__differs"
_WORTH_IT_ROWS = 50_000


def local_file(store: Store, pieces: Sequence[AddRows]) -> str | None:
    """The local path of the file these row groups belong to, if it is local and large enough; else None."""
    if sum(piece.rows for piece in pieces) < _WORTH_IT_ROWS:
        return None
    owner, name = resolve(store, pieces[0].path)
    path = owner.local_path(name)
    return path if path is not None and database.can_name(path) else None


def read_adds_with_texts(
    file: str, add: pa.StructType, names: Iterable[str], texts: Sequence[Path]
) -> pa.Table:
    """The named fields of `add`, and one text column per path into the statistics."""
    present = [field.name for field in add]
    fields = [name for name in sorted({"path", *names}) if name in present and name != "stats"]
    columns = [f"add.{database.quoted(name)} AS {database.quoted(name)}" for name in fields]
    columns += [f"found[{at + 1}] AS {database.quoted(text_column(path))}" for at, path in enumerate(texts)]
    columns.append(f"{reads_differently('add.stats', texts)} AS {_DIFFERS}")
    pointers = ", ".join(quoted_text(_pointer(path)) for path in texts)
    values = f"json_extract_string(add.stats, [{pointers}])"

    def query(texts_sql: str) -> str:
        inner = f"SELECT add, file_row_number, {texts_sql} AS found FROM {database.scan(file)}"
        return (
            f"SELECT file_row_number AS {ROW}, {', '.join(columns)} FROM ({inner} WHERE add.path IS NOT NULL)"
        )

    try:
        table = _run(query(values), file)
    except CorruptLogError:
        # A single document that is not JSON makes the query fail; then each is checked before it is opened.
        table = _run(query(if_document("add.stats", values)), file)
    table = _exact(table, file, texts)
    at = table.schema.get_field_index("path")
    written = table.column("path").cast(pa.string()).chunks
    # Chunk by chunk: joining a million paths takes as long as reading them.
    decoded = list(in_threads(decode_paths, written, default_parallelism()))
    return table.set_column(at, "path", pa.chunked_array(decoded, pa.string()))


def _exact(table: pa.Table, file: str, texts: Sequence[Path]) -> pa.Table:
    """The table with the texts of documents that DuckDB may have read differently decoded once more."""
    names = [text_column(path) for path in texts]
    differs = differing([table.column(name).cast(pa.string()) for name in names], table.column(_DIFFERS))
    table = table.drop_columns([_DIFFERS])
    again = whole(differs)
    if not again.true_count:
        return table
    documents = statistics_of(file, whole(table.column(ROW)).filter(again))
    for name, exact in zip(names, texts_by_msgspec(documents, texts), strict=True):
        column = pc.replace_with_mask(whole(table.column(name)).cast(pa.string()), again, exact)
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def statistics_of(file: str, rows: pa.Array) -> pa.Array:
    """The statistics documents of some rows of a file, in the order of the rows."""
    columns = "file_row_number AS row, add.stats AS stats"
    query = f"SELECT {columns} FROM {database.scan(file)} SEMI JOIN selected USING (file_row_number)"
    documents = _run(query, file, selected=pa.table({"file_row_number": rows}))
    order = pc.index_in(rows, value_set=documents.column("row").combine_chunks())
    return documents.column("stats").combine_chunks().cast(pa.string()).take(order)


def _run(query: str, file: str, **tables: pa.Table) -> pa.Table:
    try:
        with database.connect() as connection:
            for name, table in tables.items():
                connection.register(name, table)
            result: pa.Table = connection.sql(query).to_arrow_table()
            return result
    except duckdb.Error as error:
        raise CorruptLogError(f"checkpoint file {file} cannot be read: {error}", path=file) from error


def _pointer(path: Path) -> str:
    return "/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in path)
