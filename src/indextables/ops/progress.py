"""Progress: how a long verb reports how far it has come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from indextables.lazy import later

if TYPE_CHECKING:
    import html
else:
    html = later("html")

T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""Called with the stage, the number of finished units of work, and their total."""


def silent(stage: str, done: int, total: int) -> None:
    """Report nothing."""


def watched(results: Iterable[T], progress: Progress, stage: str, total: int) -> Iterator[T]:
    """Pass results through and report each one as a finished unit."""
    progress(stage, 0, total)
    for done, result in enumerate(results, start=1):
        yield result
        progress(stage, done, total)


def in_notebook() -> Progress:
    """A progress bar below the cell in a notebook; nothing anywhere else.

    IPython's modules are only used if they are already imported, as they are in a notebook.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    display = getattr(sys.modules.get("IPython.core.display_functions"), "display", None)
    # A terminal's IPython has no kernel, and could not draw a bar.
    return silent if display is None or getattr(shell, "kernel", None) is None else _Bars(display)


class _Bars:
    """One bar for each stage, drawn again whenever it has grown by a hundredth."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._shown: dict[str, tuple[Any, int]] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        grown = 100 * done // total if total else 100
        handle, before = self._shown.get(stage, (None, -1))
        if grown == before:
            return
        text = f"{stage}: {done:,} of {total:,}"
        bar = f"<progress value='{done}' max='{max(total, 1)}' style='width:20em'></progress>"
        data = {"text/plain": text, "text/html": f"<div>{bar} {html.escape(text)}</div>"}
        if handle is None:
            handle = self._display(data, raw=True, display_id=True)
        else:
            handle.update(data, raw=True)
        self._shown[stage] = (handle, grown)
