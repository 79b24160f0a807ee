"""Which functions of the package run, in the order in which each is first called."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def called(work: Callable[[], Any]) -> list[str]:
    """Run some work; the functions that this thread, and threads it starts, enter, such as `table.Table.append`."""
    names: dict[str, None] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("indextables."):
            names.setdefault(f"{module.removeprefix('indextables.')}.{frame.f_code.co_qualname}")

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return list(names)


def section(title: str) -> str:
    """The text below a heading of the architecture page."""
    found = re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S)
    assert found is not None, title
    return found[1]


def steps(title: str) -> list[str]:
    """The function that each numbered step of a journey begins with."""
    found = re.findall(r"^\d+\. `([\w.]+)`", section(f"Journey: {title}"), re.M)
    assert len(found) == len(re.findall(r"^\d+\. ", section(f"Journey: {title}"), re.M))
    return found


def is_walked(journey: list[str], trace: list[str]) -> str | None:
    """None when the steps were called in the order of the page, else what differs.

    A step that names a class stands for its construction.
    """
    at = -1
    for step in journey:
        place = next((n for n, name in enumerate(trace) if name in {step, f"{step}.__init__"}), None)
        if place is None:
            return f"{step} was not called"
        if place < at:
            return f"{step} was called before the step above it"
        at = place
    return None
