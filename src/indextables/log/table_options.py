"""Options a table carries in its properties: they count where nobody else says anything.

Option, session and Hadoop configuration come before a table property, the
default comes after it. The first three are resolved when a handle is made; the
property is only known once the table is read.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from indextables.errors import OptionError
from indextables.options import Options, canonical

logger = logging.getLogger(__name__)

_GROUPS = (
    "checkpoint", "retention", "transaction", "compression", "stats", "repair", "replay", "write", "merge",
    "purge", "search",
)  # fmt: skip


def with_table(options: Options, configuration: Mapping[str, str | None], uri: str) -> Options:
    """The options with the table's properties in the place of defaults."""
    known = {key: value for key, value in configuration.items() if canonical(key) is not None}
    if not known:
        return options
    try:
        table = Options.of(None, table=known)
    except OptionError as bad:
        logger.warning("%s: a table property is ignored: %s", uri, bad)
        return options
    said = {canonical(key) for key in options.explicit}
    groups: dict[str, Any] = {}
    for name in _GROUPS:
        group = getattr(options, name)
        default = type(group)()
        groups[name] = replace(
            group,
            **{
                field.name: getattr(getattr(table, name), field.name)
                for field in fields(group)
                if field.metadata.get("key") not in said
                and getattr(group, field.name) == getattr(default, field.name)
            },
        )
    return replace(options, **groups)
