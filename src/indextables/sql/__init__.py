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

from indextables.lazy import later

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.sql import runner
else:
    runner = later("indextables.sql.runner")


class _CallablePackage(ModuleType):
    def __call__(self, text: str, spark: Any = None, options: Mapping[str, Any] | None = None) -> pa.Table:
        """Run one maintenance command, or a SELECT over tables named by path, and return its rows."""
        return runner.sql(text, spark, options)


sys.modules[__name__].__class__ = _CallablePackage
