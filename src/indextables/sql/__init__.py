"""The maintenance commands as SQL text: grammar, commands, runner, and search inside SELECT.

Importing this package binds it to the name `sql` of its parent, where users
expect the function of that name. So the package can be called, and calling it
is that function.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


class _CallablePackage(ModuleType):
    def __call__(self, text: str, spark: Any = None, options: Mapping[str, Any] | None = None) -> pa.Table:
        """Run one maintenance command, or a SELECT over tables named by path, and return its rows."""
        from indextables.sql.runner import sql

        return sql(text, spark, options)


sys.modules[__name__].__class__ = _CallablePackage
