"""The reference page of all options, made from their declarations.

`python -m indextables.options.page` prints what `docs/options.md` holds;
a test compares the two.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from indextables.options import GROUPS, PREFIX, declared
from indextables.options.groups import COLUMN_KEYS

_HEAD = f"""# Options

Every key may be given to `.option()` and `options=` with or without the prefix
`{PREFIX}`; in a Spark session or Hadoop configuration the prefix is needed.
An option beats the session configuration, which beats the Hadoop configuration,
which beats a table property, which beats the default. Keys are not case-sensitive.
"""


def markdown() -> str:
    """Render the whole page."""
    lines = [_HEAD]
    current = ""
    for group, item in declared():
        if group != current:
            current = group
            summary = (GROUPS[group].__doc__ or "").strip().rstrip(".")
            lines += [
                "",
                f"## {summary}",
                "",
                "| key | default | expects | meaning |",
                "| --- | --- | --- | --- |",
            ]
        lines.append(_row(item))
    for prefix, (_, doc) in COLUMN_KEYS.items():
        lines.append(f"| `{prefix}<column>` | | text | {doc} |")
    lines += [
        "",
        "Keys that begin with `aws_`, `azure_`, `google_`, `fs.`, `s3_`, `client_` or `storage.`",
        "configure the object store.",
        "",
    ]
    return "\n".join(lines)


def _row(item: dataclasses.Field[Any]) -> str:
    also = "".join(f" Also `{alias}`." for alias in item.metadata["aliases"])
    default = _shown(item.metadata["kind"].name, item.default)
    expects = item.metadata["kind"].name.replace("|", "\\|")
    return f"| `{item.metadata['key']}` | {default} | {expects} | {item.metadata['doc']}{also} |"


def _shown(kind: str, default: Any) -> str:
    if default is None:
        return "auto" if kind.startswith("auto") else ""
    if isinstance(default, bool):
        return str(default).lower()
    if kind.startswith("a size"):
        return f"{default >> 30}G" if default % (1 << 30) == 0 else f"{default >> 20}M"
    return str(default)


if __name__ == "__main__":
    sys.stdout.write(markdown())
