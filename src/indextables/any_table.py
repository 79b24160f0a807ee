"""Opening a table without knowing whose it is: ours or Delta's, as its log says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from indextables.errors import NotATableError
from indextables.table import Table

if TYPE_CHECKING:
    from indextables.delta import DeltaTable


def open_table(
    uri: str | os.PathLike[str], version: int | None = None, options: Mapping[str, str] | None = None
) -> Table | DeltaTable:
    """Open a table at its newest version, or at the one that is given."""
    try:
        return Table.open(uri, version=version, options=options)
    except NotATableError as other:
        from indextables.log.table_kind import TableKind

        if other.fields.get("kind") is not TableKind.DELTA:
            raise
    from indextables.delta import DeltaTable

    return DeltaTable.open(uri, version=version, options=dict(options or {}))
