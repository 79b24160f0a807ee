"""Take the pictures of the page for the documentation: `python scripts/screenshots.py` writes docs/images."""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from indextables.cli.tour import DAYS, events
from indextables.table import Table
from indextables.web.server import prepare
from indextables.web.tables import Catalog

IMAGES = Path(__file__).parent.parent / "docs" / "images"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
SHOTS = (
    ("serve-light", 1280, "light", "q=upstream%20AND%20timeout", "#rows mark"),
    ("serve-dark", 1280, "dark", "q=upstream%20AND%20timeout", "#rows mark"),
    ("serve-phone", 390, "light", "q=upstream%20AND%20timeout", "#rows mark"),
    ("serve-about", 1280, "light", "tab=about", "#view-about .tile"),
)


def make_table(place: str) -> None:
    """The table of the demo: eight days of log events."""
    options = {"indexing.typemap.message": "text", "indexing.typemap.service": "string"}
    table = Table.create(place, events(DAYS[0], 1).schema, ["day"], options=options)
    for day in DAYS:
        for half in (0, 1):
            table.append(events(day, 3000, half))


def take(browser: Browser, address: str) -> None:
    """Every picture, once the page has settled."""
    for name, width, scheme, query, ready in SHOTS:
        context = browser.new_context(
            viewport={"width": width, "height": 860},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page = context.new_page()
        page.goto(f"{address}&{query}")
        page.wait_for_selector(ready, timeout=60_000)
        page.wait_for_selector(".loading", state="detached", timeout=60_000)
        page.screenshot(path=IMAGES / f"{name}.png")
        context.close()


def main() -> None:
    """Make the table, serve it, and look at it."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        sys.exit("no Chromium here; on Debian: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as root:
        make_table(f"{root}/events")
        made = prepare(Catalog.of([f"{root}/events"]))
        thread = threading.Thread(target=made.run, daemon=True)
        thread.start()
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=found, args=FLAGS)
            take(browser, made.address)
            browser.close()
        made.server.should_exit = True
        thread.join()


if __name__ == "__main__":
    main()
