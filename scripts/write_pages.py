"""Write the pages that are made from the source: options, command line, list of decisions.

A test compares what this makes with what is in the tree.
"""

from __future__ import annotations

from pathlib import Path

from indextables.cli.page import markdown as command_line
from indextables.options.page import markdown as options

DOCS = Path(__file__).parent.parent / "docs"
_DECISIONS = """# Decisions

Why things are as they are: what was weighed, what was measured, what was chosen.

"""


def decisions() -> str:
    """Every decision by its title."""
    pages = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    titles = [(page.name, page.read_text().partition("\n")[0].removeprefix("# ")) for page in pages]
    return _DECISIONS + "".join(f"- [{title}]({name})\n" for name, title in titles)


PAGES = {"options.md": options, "reference/cli.md": command_line, "decisions/index.md": decisions}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (DOCS / name).write_text(make())
