"""The examples of a page: its Python blocks run in order, and the text block after one is what it prints.

Needs nothing but Python, so that it runs where only the wheel is installed:
`python pages.py README.md "README.md#In Python" docs/*.md`, with `--in DIRECTORY`
first to leave there what the pages make.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
import time
from pathlib import Path

_FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(path: Path, section: str | None = None) -> list[tuple[str, str]]:
    """The language and text of each block, of the whole page or of the section with that heading."""
    text = path.read_text(encoding="utf-8")
    if section is not None:
        _, found, text = text.partition(f"\n## {section}\n")
        assert found, f"{path.name} has no section {section!r}"
        text = text.partition("\n## ")[0]
    return [(match[1], match[2]) for match in _FENCE.finditer(text)]


def run_page(path: Path, section: str | None = None) -> None:
    """Run the Python blocks one after the other; a block that prints something else is an error."""
    names = {"__name__": "__page__"}
    found = blocks(path, section)
    for at, (kind, code) in enumerate(found):
        if kind != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{path.name} block {at}", "exec"), names)
        if at + 1 < len(found) and found[at + 1][0] == "text":
            assert _lines(printed.getvalue()) == _lines(found[at + 1][1]), (
                f"{path.name} block {at} printed:\n{printed.getvalue()}"
            )


def forget_views() -> None:
    """Leave the session as it was: the tables behind a page's views go with the page."""
    if "pyspark" not in sys.modules:
        return
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        # `listTables` of Spark 3.5.0 fails in a session with our catalog.
        for view in session.sql("SHOW VIEWS").collect():
            if view["isTemporary"]:
                session.catalog.dropTempView(view["viewName"])


def _lines(text: str) -> list[str]:
    """Lines to compare, blank ends aside."""
    return [line.rstrip() for line in text.strip().splitlines()]


def main(pages: list[str]) -> None:
    """Run pages, or sections of them, each in a directory of its own unless one is given for all."""
    kept = pages[1] if pages[:1] == ["--in"] else None
    for page in pages[2:] if kept else pages:
        name, _, section = page.partition("#")
        path, began = Path(name).resolve(), time.monotonic()
        with tempfile.TemporaryDirectory() as directory, contextlib.chdir(kept or directory):
            run_page(path, section or None)
            forget_views()
        sys.stdout.write(f"  {page} runs as written ({time.monotonic() - began:.1f} s)\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
