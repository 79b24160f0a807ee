"""Take the pictures of the page for the documentation: `python scripts/screenshots.py` writes docs/images."""

from __future__ import annotations

import html
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from indextables.demo import DAYS, events
from indextables.table import Table
from indextables.web.server import prepare
from indextables.web.tables import Catalog

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
EXAMPLES = ROOT / "examples"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
Shot = tuple[str, int, str, str, str]
"""The name of a picture, the width, the colours, the query of the address, and what has to be there first."""
SHOTS: tuple[Shot, ...] = (
    ("serve-light", 1280, "light", "q=upstream%20AND%20timeout", "#rows mark"),
    ("serve-dark", 1280, "dark", "q=upstream%20AND%20timeout", "#rows mark"),
    ("serve-phone", 390, "light", "q=upstream%20AND%20timeout", "#rows mark"),
    ("serve-phone-dark", 390, "dark", "q=upstream%20AND%20timeout", "#rows mark"),
    ("serve-about", 1280, "light", "tab=about", "#view-about .tile"),
)
_NIGHT = "q=%22failed%20password%22&from=2026-11-14T02:00:00Z&to=2026-11-14T05:00:00Z"
EXAMPLE_SHOTS: dict[str, tuple[str, Shot]] = {
    "security_hunt": ("logins", ("example-hunt", 1280, "light", _NIGHT, "#rows mark")),
    "document_search": ("library", ("example-documents", 1280, "light", "q=tide%20stars", "#rows mark")),
    "streaming_ingestion": ("clicks", ("example-stream", 1280, "light", "tab=versions", "#view-versions td")),
}
TERMINAL = """<body style="margin:0;background:#16181d">
<pre style="margin:0;padding:20px;font:15px/1.5 monospace;color:#dfe3ea"
><i style="color:#8b93a3">$ python {name}.py</i>
{text}</pre>"""


def make_table(place: str) -> None:
    """The table of the demo: eight days of log events."""
    options = {"indexing.typemap.message": "text", "indexing.typemap.service": "string"}
    table = Table.create(place, events(DAYS[0], 1).schema, ["day"], options=options)
    for day in DAYS:
        for half in (0, 1):
            table.append(events(day, 3000, half))


def take(browser: Browser, address: str, shots: tuple[Shot, ...]) -> None:
    """Every picture, once the page has settled."""
    for name, width, scheme, query, ready in shots:
        context = browser.new_context(
            viewport={"width": width, "height": 860},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page = context.new_page()
        # Once before: what a first question loads is no part of the time that the page shows.
        page.goto(f"{address}&{query}")
        page.wait_for_selector(ready, timeout=60_000)
        page.goto(f"{address}&{query}")
        page.wait_for_selector(ready, timeout=60_000)
        page.wait_for_selector(".loading", state="detached", timeout=60_000)
        page.screenshot(path=IMAGES / f"{name}.png")
        context.close()


def served(browser: Browser, table: str, shots: tuple[Shot, ...]) -> None:
    """Pictures of one table in the page."""
    made = prepare(Catalog.of([table]))
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    take(browser, made.address, shots)
    made.server.should_exit = True
    thread.join()


def examples(browser: Browser, root: str) -> None:
    """Run each example, and take a picture of its table, or of what it prints."""
    for path in sorted(EXAMPLES.glob("*.py")):
        place = Path(root, path.stem)
        place.mkdir()
        command = [sys.executable, str(path)]
        done = subprocess.run(command, cwd=place, check=True, capture_output=True, text=True)
        if path.stem in EXAMPLE_SHOTS:
            table, shot = EXAMPLE_SHOTS[path.stem]
            served(browser, str(place / table), (shot,))
            continue
        page = browser.new_page(viewport={"width": 860, "height": 300})
        page.set_content(TERMINAL.format(name=path.stem, text=html.escape(done.stdout)))
        page.locator("pre").screenshot(path=IMAGES / f"example-{path.stem.partition('_')[0]}.png")
        page.close()


def main() -> None:
    """Make the tables, serve them, and look at them."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        sys.exit("no Chromium here; on Debian: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as root, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found, args=FLAGS)
        make_table(f"{root}/events")
        served(browser, f"{root}/events", SHOTS)
        examples(browser, root)
        browser.close()


if __name__ == "__main__":
    main()
