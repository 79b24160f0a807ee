"""Companion indexes: search over Delta tables and Parquet files, which stay where they are.

Importing this package binds it to the name `companion` of its parent, where users
expect the function of that name. So the package can be called, and calling it
is that function.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from indextables.lazy import later

if TYPE_CHECKING:
    from indextables.companion import handle
    from indextables.companion.handle import Companion
else:
    handle = later("indextables.companion.handle")


class _CallablePackage(ModuleType):
    def __call__(
        self,
        source: Any,
        at: Any,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
        spark: Any = None,
        *,
        exclude: Sequence[str] | None = None,
        where: str | None = None,
    ) -> Companion:
        """Open the companion index at a place, or make it and build it."""
        return handle.companion(source, at, columns, options, spark, exclude=exclude, where=where)


sys.modules[__name__].__class__ = _CallablePackage
