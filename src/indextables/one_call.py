"""A table by its path, in one call: open it, read rows of it, write rows to it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from indextables.connection import open_log
from indextables.table import Table

if TYPE_CHECKING:
    from indextables.log.history import Moment
    from indextables.ops.read.rows import Rows
    from indextables.ops.results import WriteResult
    from indextables.options import Options

open = Table.open  # noqa: A001 - a name of the package, as `it.open`


def read(
    uri: str | os.PathLike[str],
    where: Any = None,
    columns: Sequence[str] | None = None,
    *,
    query: str | None = None,
    version: int | None = None,
    as_of: Moment | None = None,
    options: Mapping[str, Any] | Options | None = None,
) -> Rows:
    """The rows of a table, those for which a filter is true, or those that a full-text query finds."""
    table = Table.open(uri, version, as_of, options)
    return table.scan(where, columns) if query is None else table.search(query, where, columns)


def write(
    uri: str | os.PathLike[str],
    data: Any,
    *,
    text: str | Sequence[str] = (),
    partition_by: str | Sequence[str] = (),
    mode: str = "error",
    options: Mapping[str, Any] | Options | None = None,
) -> WriteResult:
    """Write rows to a table at a path, which is created if there is none.

    `data` is a pandas or Polars DataFrame, a dict of columns, a list of dicts, a DuckDB relation, Arrow data,
    or an iterable of batches. `text` names the columns that can be searched by words.

    Where there is a table, `mode` decides: `error` writes nothing, so that a script that runs twice does not
    double its rows; `append` adds the rows; `overwrite` replaces all rows; `ignore` does nothing. A table
    that has never been written to takes its first rows in every mode. If the rows of a new table cannot be
    written, there is no table; if the process ends on the way, the same call finishes it.
    """
    from indextables.ops.write.save import column_list, save, with_text

    settings = with_text(options, text)
    return save(open_log(uri, settings), data, mode, settings, column_list(partition_by))
