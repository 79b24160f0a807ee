"""Where the pages of the documentation are.

A wheel carries them, so that they fit the version and need no network; in a clone they are in `docs`.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent


def page(name: str) -> str:
    """The file of a page on this machine, such as that of `options`."""
    files = [place / "docs" / f"{name}.md" for place in (_PACKAGE, _PACKAGE.parents[1])]
    return str(next((file for file in files if file.is_file()), f"the page {name}.md of the documentation"))
