"""Functions for DataFrames of Spark: `search` and `isearch`, as Databricks has them.

They find text in any column, of any table: `df.filter(functions.search("message", "timeout"))`. The session
has to be connected. In SQL they are called `search` and `isearch`, unless Spark has functions of those
names itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from indextables.predicate.searchable import CALLS

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["isearch", "search"]


def search(*columns_and_pattern: Column | str, mode: str = "substring") -> Column:
    """Whether one of the columns contains a text, which is the last argument; case counts.

    A column is a Column or its name. In mode "word", a value matches that has every word of the text. Texts
    inside structs, arrays, the values of maps and variants are searched too. The result is NULL where nothing
    matches and a value is NULL.
    """
    return _called("search", columns_and_pattern, mode)


def isearch(*columns_and_pattern: Column | str, mode: str = "substring") -> Column:
    """The same as `search`, in lower and upper case alike."""
    return _called("isearch", columns_and_pattern, mode)


def _called(name: str, columns_and_pattern: tuple[Any, ...], mode: str) -> Column:
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

    *columns, pattern = columns_and_pattern or (None,)
    given = [F.col(column) if isinstance(column, str) else column for column in columns]
    last = [] if pattern is None and not columns else [F.lit(pattern)]
    return F.call_function(CALLS[name], F.lit(mode), *given, *last)
