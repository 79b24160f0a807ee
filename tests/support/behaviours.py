"""Which tests show a behaviour of docs/behaviour.md: those whose docstring begins with its label, as in `E4: ...`."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
LABEL = r"[A-K][0-9]{1,2}"
_LEADING = re.compile(rf"{LABEL}(?:(?:, | and |, and |/){LABEL})*(?=[:,;. ])")


@functools.cache
def labelled() -> dict[str, list[str]]:
    """Tests by label, such as `tests/unit/log/test_skips.py::test_a_skip_expires`."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for label in labels_of(ast.get_docstring(node) or ""):
                    name = f"{path.relative_to(TESTS.parent).as_posix()}::{node.name}"
                    found.setdefault(label, []).append(name)
    return found


def labels_of(docstring: str) -> list[str]:
    """The labels that a docstring begins with."""
    leading = _LEADING.match(docstring)
    return re.findall(LABEL, leading[0]) if leading else []
