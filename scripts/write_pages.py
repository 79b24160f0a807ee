"""Write the pages that are made from the source: options, command line, decisions, a table of figures.

A test compares what this makes with what is in the tree.
"""

from __future__ import annotations

import json
from pathlib import Path

from indextables.cli.page import markdown as command_line
from indextables.options.page import markdown as options

DOCS = Path(__file__).parent.parent / "docs"
_FIGURES = DOCS.parent / "benchmarks" / "results" / "delta.json"
_FROM, _TO = "<!-- written by scripts/write_pages.py from benchmarks/results/delta.json -->", "<!-- end -->"
_SIZES = ("1k", "10k", "100k", "1M")
_FORMS = (("", ("list", "prune 1%")), (" in commits alone", ("list commits", "prune commits")))
_SYSTEMS = {
    "delta local": "Delta, this process",
    "delta spark": "Delta, Spark",
    "native local": "IndexTables, this process",
    "native spark": "IndexTables, Spark",
}
_DECISIONS = """# Decisions

Why things are as they are: what was weighed, what was measured, what was chosen.

"""


def decisions() -> str:
    """Every decision by its title."""
    pages = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    titles = [(page.name, page.read_text().partition("\n")[0].removeprefix("# ")) for page in pages]
    return _DECISIONS + "".join(f"- [{title}]({name})\n" for name, title in titles)


def delta() -> str:
    """The page on Delta tables, with the seconds of each engine as they were measured last."""
    before, _, rest = (DOCS / "delta.md").read_text().partition(_FROM)
    _, _, after = rest.partition(_TO)
    return before + _FROM + "\n" + _engines() + _TO + after


def _engines() -> str:
    rows = json.loads(_FIGURES.read_text())["rows"]
    seconds = {(row["case"], row["system"], row["size"]): row["seconds"] for row in rows}
    lines = ["| files | " + " | ".join(_SYSTEMS.values()) + " |", "|---" * (len(_SYSTEMS) + 1) + "|"]
    for size, (note, cases) in ((size, form) for form in _FORMS for size in _SIZES):
        known = [[seconds.get((case, system, size)) for case in cases] for system in _SYSTEMS]
        if any(found is not None for pair in known for found in pair):
            cells = (", ".join(map(_shown, pair)) for pair in known)
            lines.append(f"| {size}{note} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _shown(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.3g}"


PAGES = {
    "options.md": options,
    "reference/cli.md": command_line,
    "decisions/index.md": decisions,
    "delta.md": delta,
}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (DOCS / name).write_text(make())
